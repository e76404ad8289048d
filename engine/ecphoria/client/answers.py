"""What the client returns: the parts of the API's answers that agents use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ecphoria.client.faults import fault_from
from ecphoria.errors import EcphoriaError
from ecphoria.model import Action, ReceiptStatus, parse_time


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """A memory.

    Attributes:
        user_id: Whose it is; None = shared.
        kind: ``EPISODIC``, ``SEMANTIC`` or ``PROCEDURAL``.
        valid_until: Open end = None.
    """

    id: str
    user_id: str | None
    kind: str
    topic: str | None
    text: str
    source: str | None
    valid_from: datetime | None
    valid_until: datetime | None
    status: str


@dataclass(frozen=True, slots=True)
class FoundMemory:
    """A memory in an answer.

    Attributes:
        relevance: How well it fits the question, 0 to 1.
        confidence: How far to trust it, 0 to 1.
        because: Why it is there.
    """

    memory: StoredMemory
    relevance: float
    confidence: float
    because: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FoundEntity:
    """An entity in an answer."""

    type: str
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a question.

    Attributes:
        advisory: A warning in the question's language.
        confidence: Of the whole, 0 to 1; None without anything to trust.
        context: The answer as text for a prompt.
        degradations: What was not available.
    """

    action: Action
    advisory: str | None
    confidence: float | None
    context: str
    topics: tuple[str, ...]
    memories: tuple[FoundMemory, ...]
    entities: tuple[FoundEntity, ...]
    degradations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """What became of one memory that was to be kept.

    Attributes:
        id: Under which it is found; None when one without an id of its own was rejected.
        error: Why it was rejected, with code, message and path; None when it was not.
    """

    status: ReceiptStatus
    id: str | None
    indexed: bool
    error: EcphoriaError | None
    supersedes: tuple[str, ...]
    conflicts_with: tuple[str, ...]
    possible_update_of: tuple[str, ...]
    waiting_for: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What became of what was to be forgotten.

    Attributes:
        count: How many memories went.
        unknown: Ids that are not there, or not this user's own.
    """

    count: int
    unknown: tuple[str, ...]


def _time(value: str | None) -> datetime | None:
    return None if value is None else parse_time(value)


def memory_from(found: Mapping[str, Any]) -> StoredMemory:
    """Return a memory as the API has it."""
    return StoredMemory(
        id=found["id"],
        user_id=found["userId"],
        kind=found["kind"],
        topic=found["topic"],
        text=found["text"],
        source=found["source"],
        valid_from=_time(found["validFrom"]),
        valid_until=_time(found["validUntil"]),
        status=found["status"],
    )


def answer_from(found: Mapping[str, Any]) -> Answer:
    """Return an answer as the API has it."""
    return Answer(
        action=Action(found["action"]),
        advisory=found["advisory"],
        confidence=None if found["confidence"] is None else found["confidence"]["overall"],
        context=found["contextBlock"],
        topics=tuple(found["topics"]),
        memories=tuple(
            FoundMemory(
                memory_from(item["memory"]),
                item["relevance"],
                item["confidence"]["overall"],
                tuple(because["path"] for because in item["because"]),
            )
            for item in found["memories"]
        ),
        entities=tuple(
            FoundEntity(item["type"], item["id"], item["name"]) for item in found["entities"]
        ),
        degradations=tuple(found["degradations"]),
    )


def written_from(found: Mapping[str, Any]) -> Written:
    """Return a receipt as the API has it."""
    return Written(
        status=ReceiptStatus(found["status"]),
        id=found["id"],
        indexed=found["indexed"],
        error=fault_from(found["error"]),
        supersedes=tuple(found["supersedes"]),
        conflicts_with=tuple(found["conflictsWith"]),
        possible_update_of=tuple(found["possibleUpdateOf"]),
        waiting_for=tuple(found["waitingFor"]),
        notes=tuple(found["notes"]),
    )


def forgotten_from(found: Mapping[str, Any]) -> Forgotten:
    """Return a report of forgetting as the API has it."""
    return Forgotten(found["forgotten"], tuple(found["unknown"]))
