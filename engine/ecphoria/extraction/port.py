"""The port through which a text is cut into atomic facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from ecphoria.model import Urgency
from ecphoria_schema.domain import Kind, Language


@dataclass(frozen=True, slots=True)
class SourceText:
    """A clean text and what is known about it.

    Attributes:
        said_at: When it was said.
    """

    text: str
    lang: Language
    kind: Kind
    said_at: datetime


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement that can be understood on its own: who, what, object, when, evidence.

    Attributes:
        text: The statement; for a text that no rule understands, that text or a chunk of it.
        fact_type: The domain's fact rule; None where no rule spoke.
        topics: The domain's topics, the likeliest first.
        intent: One of the domain's intents.
        attribute: The domain's attribute that it gives the value of; it is linked to its entity
            later, from the ids and names in `text`.
        value: The value, canonical where the domain lists values.
        subject: What a keyed attribute is about.
        evidence: The words of the source that it rests on; None where `text` is those words.
        details: What was found, by name, e.g. ``{"tracking_number": "SF112233"}``.
    """

    text: str
    fact_type: str | None = None
    topics: tuple[str, ...] = ()
    intent: str | None = None
    urgency: Urgency = "normal"
    attribute: str | None = None
    value: str | None = None
    subject: str | None = None
    evidence: str | None = None
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Extraction:
    """The facts of a text, at least one, and how they were found.

    Attributes:
        by: Which extractor found them, ``rules`` or ``chat``.
        note: What a person should know, e.g. why the chat model was not used; empty otherwise.
    """

    facts: tuple[Fact, ...]
    by: str
    note: str = ""


class FactExtractor(Protocol):
    """Cuts a text into facts. It never fails and never drops words of the source."""

    async def extract(self, source: SourceText) -> Extraction:
        """Return the facts of a text, in its order."""
        ...

    async def close(self) -> None:
        """Free what it holds."""
        ...
