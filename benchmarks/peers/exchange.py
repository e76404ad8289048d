"""What every peer reads and writes: its order, the data of the benchmark, and answers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

# Names of the files of vectors, in the order of the lines they were made of.
MEMORY_VECTORS: Final = "memories.npy"
QUESTION_VECTORS: Final = "questions.npy"
# Whose memories are everybody's, and a validity without an end: both stores compare values.
EVERYBODY: Final = ""
OPEN_END: Final = 2**53

_TOLD_EVERY: Final = 20

Ref = dict[str, str]
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Order:
    """What a peer is told on standard input.

    Attributes:
        data: Directory that the benchmark's generator wrote.
        questions: File of the questions to answer.
        vectors: Directory with the vectors of all memories and of these questions.
        answers: File to write.
        memory_limit: Memories to find for a question.
        entity_limit: Entities to give with them.
        gate: FALLBACK when the best similarity, -1..1, is less; never if None.
        neo4j: URI, user, password and database of an empty server, for who wants one.
    """

    data: Path
    questions: Path
    vectors: Path
    answers: Path
    memory_limit: int
    entity_limit: int
    gate: float | None
    neo4j: tuple[str, str, str, str]

    def line(self) -> str:
        """Return it as one line."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps(values, default=str) + "\n"


def read_order() -> Order:
    """Read the order from standard input."""
    values: dict[str, Any] = json.loads(sys.stdin.readline())
    for name in ("data", "questions", "vectors", "answers"):
        values[name] = Path(values[name])
    return Order(**values | {"neo4j": tuple(values["neo4j"])})


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory, with its validity in milliseconds since 1970."""

    id: str
    user_id: str
    text: str
    valid_from: int
    valid_until: int
    about: tuple[Ref, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """What may be known of a question; its moment in milliseconds since 1970."""

    id: str
    user_id: str
    text: str
    asked_at: int


@dataclass(frozen=True, slots=True)
class Found:
    """What a peer found.

    Attributes:
        similarity: Of the best memory, -1..1.
    """

    memories: Sequence[str]
    entities: Sequence[Ref]
    similarity: float


def rows(file: Path) -> Iterator[dict[str, Any]]:
    """Read a file of JSON lines."""
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def milliseconds(text: str) -> int:
    """Return a moment in milliseconds since 1970."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def read_memories(file: Path) -> list[Memory]:
    """Read the memories; one that another replaces is valid until that one is."""
    found: dict[str, Memory] = {}
    replaced: dict[str, int] = {}
    for row in rows(file):
        start = milliseconds(row["valid_from"])
        end = row["valid_until"]
        found[row["id"]] = Memory(
            id=row["id"],
            user_id=row["user_id"] or EVERYBODY,
            text=row["text"],
            valid_from=start,
            valid_until=OPEN_END if end is None else milliseconds(end),
            about=tuple({"type": ref["type"], "id": ref["id"]} for ref in row["about"]),
        )
        if row["supersedes"] is not None:
            replaced[row["supersedes"]] = start
    for id_, end in replaced.items():
        found[id_] = replace(found[id_], valid_until=min(end, found[id_].valid_until))
    return list(found.values())


def read_questions(file: Path) -> list[Question]:
    """Read the questions, and of each no more than may be known."""
    return [
        Question(row["id"], row["user_id"], row["text"], milliseconds(row["asked_at"]))
        for row in rows(file)
    ]


def key_of(ref: Mapping[str, str]) -> str:
    """Return one text for a type and an id."""
    return f"{ref['type']}|{ref['id']}"


def in_order(found: Sequence[Sequence[Mapping[str, Any]]]) -> list[Ref]:
    """Return the things of all memories, each once: nearer ones first, then by memory.

    Args:
        found: What each memory, best first, led to, with the steps to it.
    """
    by_steps = sorted(
        (thing["steps"], place, number)
        for place, things in enumerate(found)
        for number, thing in enumerate(things)
        if thing["id"] is not None
    )
    kept: dict[str, Ref] = {}
    for _, place, number in by_steps:
        thing = found[place][number]
        kept.setdefault(key_of(thing), {"type": thing["type"], "id": thing["id"]})
    return list(kept.values())


def answer(question: Question, found: Found, order: Order) -> dict[str, object]:
    """Return an answer as the scorer reads it."""
    refused = not found.memories or (order.gate is not None and found.similarity < order.gate)
    return {
        "id": question.id,
        "memories": list(found.memories[: order.memory_limit]),
        "entities": list(found.entities[: order.entity_limit]),
        "action": "FALLBACK" if refused else "ANSWER",
        "similarity": round(found.similarity, 4),
    }


def write_answers(order: Order, answers: Iterator[dict[str, object]]) -> None:
    """Write the answers, and say on standard output how many there are so far."""
    with order.answers.open("w", encoding="utf-8") as out:
        for number, line in enumerate(answers, start=1):
            out.write(json.dumps(line, ensure_ascii=False) + "\n")
            if number % _TOLD_EVERY == 0:
                print(number, flush=True)
