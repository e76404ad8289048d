"""Ask the questions of the conversation benchmark; write what its scorer reads.

Every turn goes in through the engine's own write path, in the order of the conversation, as the
line of a dialogue (`speaker: text`) with the id of its session. The data has one time a session;
turns are a second apart here, as any chat has them. A conversation is a user of its own. Of a
question only its text and its conversation go in, and settings are as shipped.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.answering import BadData, asked, asking_parser
from benchmarks.figures import percentile
from benchmarks.stores import open_store_set
from ecphoria.engine import Engine
from ecphoria.model import (
    EveryUser,
    MemoryInput,
    RecallRequest,
    Receipt,
    ReceiptStatus,
    Role,
    Scope,
    parse_time,
)
from ecphoria.remember.tag import whole_of

MEMORIES: Final = "memories.jsonl"
QUESTIONS: Final = "questions.jsonl"
TENANT: Final = "conversations"
# As many as the scorer asks for.
LIMIT: Final = 50

_APART: Final = timedelta(seconds=1)
_LOADED: Final = "loaded.json"


@dataclass(frozen=True, slots=True)
class Turn:
    """One line of a conversation."""

    id: str
    conversation: str
    session: str
    speaker: str
    occurred_at: datetime
    text: str
    lang: Any


@dataclass(frozen=True, slots=True)
class Question:
    """What may be known of a question."""

    id: str
    conversation: str
    text: str


def _rows(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    if not file.is_file():
        msg = f"{file} is missing: the benchmark's prepare.py writes it"
        raise BadData(msg)
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                yield number, dict(json.loads(line))
            except (ValueError, TypeError) as error:
                msg = f"{file}, line {number}: no JSON object ({error})"
                raise BadData(msg) from error


def read_turns(directory: Path) -> tuple[Turn, ...]:
    """Read the turns in order, each a second after the one before in its session.

    Raises:
        BadData: When the file is missing or a line is no turn.
    """
    said: dict[tuple[str, str], int] = defaultdict(int)
    found = []
    for number, row in _rows(directory / MEMORIES):
        try:
            session = (row["conversation"], row["session"])
            found.append(
                Turn(
                    id=row["id"],
                    conversation=row["conversation"],
                    session=row["session"],
                    speaker=row["speaker"],
                    occurred_at=parse_time(row["occurred_at"]) + said[session] * _APART,
                    text=row["text"],
                    lang=row["lang"],
                )
            )
        except KeyError as error:
            msg = f"{directory / MEMORIES}, line {number}: no turn (it lacks {error})"
            raise BadData(msg) from error
        said[session] += 1
    return tuple(found)


def read_questions(directory: Path) -> tuple[Question, ...]:
    """Read the questions, and of each no more than an engine may know.

    Raises:
        BadData: When the file is missing or a line is no question.
    """
    found = []
    for number, row in _rows(directory / QUESTIONS):
        try:
            found.append(Question(row["id"], row["conversation"], row["text"]))
        except KeyError as error:
            msg = f"{directory / QUESTIONS}, line {number}: no question (it lacks {error})"
            raise BadData(msg) from error
    return tuple(found)


def memory_input(turn: Turn) -> MemoryInput:
    """Return a turn as it is handed to the engine."""
    return MemoryInput(
        text=f"{turn.speaker}: {turn.text}",
        user_id=turn.conversation,
        id=turn.id,
        lang=turn.lang,
        occurred_at=turn.occurred_at,
        session_id=turn.session,
    )


def kept_as(turns: Sequence[Turn], receipts: Sequence[Receipt]) -> Mapping[str, tuple[str, ...]]:
    """Return for each memory that was kept which turns it stands for.

    What is said again word by word is kept once, and stands for both.

    Raises:
        BadData: When a turn was refused.
    """
    stands_for: dict[str, list[str]] = defaultdict(list)
    for turn, receipt in zip(turns, receipts, strict=True):
        if receipt.status is ReceiptStatus.REJECTED:
            msg = f"turn {turn.id} was refused: {receipt.reason}"
            raise BadData(msg)
        for each in receipt.facts or (receipt,):
            if each.id is not None:
                stands_for[each.id].append(turn.id)
    return {id_: tuple(dict.fromkeys(turn_ids)) for id_, turn_ids in stands_for.items()}


async def _load(
    engine: Engine, scope: Scope, turns: Sequence[Turn], progress: Progress
) -> Mapping[str, tuple[str, ...]]:
    task = progress.add_task("import", total=len(turns))
    stands_for: dict[str, tuple[str, ...]] = {}
    for _, session in groupby(turns, key=lambda turn: (turn.conversation, turn.session)):
        said = list(session)
        receipts = await engine.remember(scope, [memory_input(turn) for turn in said])
        for id_, turn_ids in kept_as(said, receipts).items():
            stands_for[id_] = (*stands_for.get(id_, ()), *turn_ids)
        progress.advance(task, len(said))
    while (await engine.reconcile()).done:
        pass
    return stands_for


def ranked(memory_ids: Sequence[str], stands_for: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the turns that memories stand for, in the order of the memories, each once."""
    found: dict[str, None] = {}
    for id_ in memory_ids:
        turn_ids = stands_for.get(id_) or stands_for.get(whole_of(id_) or id_, ())
        found |= dict.fromkeys(turn_ids)
    return list(found)


async def _run(arguments: argparse.Namespace, root: Path, console: Console) -> None:
    turns, questions = read_turns(arguments.data), read_questions(arguments.data)
    loaded = root / _LOADED
    size = (arguments.data / MEMORIES).stat().st_size
    scope = Scope(TENANT, "benchmark", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)
    kept = json.loads(loaded.read_text(encoding="utf-8")) if loaded.is_file() else None
    if kept is not None and kept["size"] != size:
        msg = f"{root} holds other data: name another directory with --keep, or remove it"
        raise BadData(msg)
    times: list[float] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    async with open_store_set(arguments.stores, root / "stores") as stores:
        settings = stores.settings("bench", root / "data")
        async with Engine.open(settings) as engine:
            with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
                if kept is None:
                    stands_for = await _load(engine, scope, turns, progress)
                    kept = {"size": size, "stands_for": stands_for}
                    loaded.write_text(json.dumps(kept), encoding="utf-8")
                task = progress.add_task("ask", total=len(questions))
                with arguments.answers.open("w", encoding="utf-8") as out:
                    for question in questions:
                        start = time.perf_counter()
                        found = await engine.recall(
                            scope,
                            RecallRequest(question.text, question.conversation, limit=LIMIT),
                        )
                        times.append((time.perf_counter() - start) * 1000)
                        ids = [item.memory.id for item in found.memories]
                        line = {"id": question.id, "memories": ranked(ids, kept["stands_for"])}
                        out.write(json.dumps(line, ensure_ascii=False) + "\n")
                        progress.advance(task)
    console.print(
        f"{len(questions)} rankings written to {arguments.answers.name}; recall, ms: "
        f"p50 {percentile(times, 50):.0f}, p95 {percentile(times, 95):.0f}, "
        f"p99 {percentile(times, 99):.0f}",
        highlight=False,
    )


def main() -> int:
    """Run what the command line asks for."""
    parser = asking_parser("python -m benchmarks.conversations", __doc__, "prepare.py")
    return asked(parser, sys.argv[1:], QUESTIONS, _run)


if __name__ == "__main__":
    sys.exit(main())
