"""Ask the questions of the after-sales benchmark through GraphQL; write what its scorer reads.

Data of the benchmark's generator goes in through the product's own import; of a question, only
its text, its user and its moment go in. Settings are as shipped, and the same for all questions.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
from rich.console import Console

from benchmarks.answering import BadData, asked, asking_parser, bar, graphql_client
from benchmarks.figures import percentile, timed
from benchmarks.stores import open_store_set
from ecphoria.bulk_import import import_files
from ecphoria.engine import Engine
from ecphoria.model import EveryUser, Role, Scope
from ecphoria_graphql.app import GRAPHQL_PATH

FILES: Final = ("entities.jsonl", "relations.jsonl", "memories.jsonl")
QUESTIONS: Final = "questions.jsonl"
TENANT: Final = "after-sales"
SCOPE: Final = Scope(TENANT, "benchmark", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)
# As many as the scorer looks at.
MEMORIES, ENTITIES = 5, 20

_LOADED: Final = "loaded.json"
_OPERATION: Final = """
query Ask($question: String!, $userId: ID!, $asOf: DateTime!, $limit: Int!, $entityLimit: Int!) {
  recall(
    input: {
      question: $question, userId: $userId, asOf: $asOf, limit: $limit, entityLimit: $entityLimit
    }
  ) {
    action
    confidence { overall }
    memories { relevance memory { id } }
    entities { id __typename }
    trace { stage milliseconds candidates dropped { rule count } note }
  }
}
"""


@dataclass(frozen=True, slots=True)
class Question:
    """What may be known of a question."""

    id: str
    text: str
    user_id: str
    asked_at: str


def read_questions(directory: Path) -> tuple[Question, ...]:
    """Read the questions, and of each no more than an engine may know.

    Raises:
        BadData: When a file is missing or a line is no question.
    """
    for name in (*FILES, QUESTIONS):
        if not (directory / name).is_file():
            msg = f"{directory / name} is missing: the benchmark's generate.py writes it"
            raise BadData(msg)
    found = []
    with (directory / QUESTIONS).open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
                found.append(Question(row["id"], row["text"], row["user_id"], row["asked_at"]))
            except (ValueError, KeyError, TypeError) as error:
                msg = f"{directory / QUESTIONS}, line {number}: no question ({error!r})"
                raise BadData(msg) from error
    if not found:
        msg = f"{directory / QUESTIONS} has no questions"
        raise BadData(msg)
    return tuple(found)


async def load(engine: Engine, scope: Scope, directory: Path, keep: Path, console: Console) -> None:
    """Import the data, unless the stores hold it from an earlier run.

    Raises:
        BadData: When the product refuses a line, or the stores hold something else.
    """
    loaded = keep / _LOADED
    what = {"data": [(directory / name).stat().st_size for name in FILES]}
    if loaded.is_file():
        if json.loads(loaded.read_text(encoding="utf-8")) == what:
            return
        msg = f"{keep} holds other data: name another directory with --keep, or remove it"
        raise BadData(msg)
    files = tuple(str(directory / name) for name in FILES)
    total = sum(_lines(Path(file)) for file in files)
    with bar(console, "import", total) as moved:
        async for step in import_files(engine, scope, files):
            if step.bad:
                msg = f"the data is refused: {step.bad[0]}"
                raise BadData(msg)
            moved(step.lines)
    loaded.write_text(json.dumps(what), encoding="utf-8")


def _lines(file: Path) -> int:
    with file.open("rb") as stream:
        return sum(1 for _ in stream)


async def ask(client: httpx.AsyncClient, question: Question) -> Mapping[str, Any]:
    """Ask one question; return what GraphQL answered.

    Raises:
        RuntimeError: When it answered with errors.
    """
    variables = {
        "question": question.text,
        "userId": question.user_id,
        "asOf": question.asked_at,
        "limit": MEMORIES,
        "entityLimit": ENTITIES,
    }
    response = await client.post(GRAPHQL_PATH, json={"query": _OPERATION, "variables": variables})
    answer: Mapping[str, Any] = response.raise_for_status().json()
    if "errors" in answer:
        msg = f"GraphQL answered {question.id} with errors: {answer['errors']}"
        raise RuntimeError(msg)
    found: Mapping[str, Any] = answer["data"]["recall"]
    return found


def answer_line(question: Question, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer as the scorer reads it, with what explains it beside."""
    return {
        "id": question.id,
        "memories": [item["memory"]["id"] for item in found["memories"]],
        "entities": [{"type": item["__typename"], "id": item["id"]} for item in found["entities"]],
        "action": found["action"],
        "relevance": [round(item["relevance"], 4) for item in found["memories"]],
        "confidence": found["confidence"] and found["confidence"]["overall"],
        "notes": {step["stage"]: step["note"] for step in found["trace"] if step["note"]},
    }


async def ask_all(
    client: httpx.AsyncClient,
    questions: Sequence[Question],
    answers: Path,
    console: Console,
    what: str = "ask",
) -> list[float]:
    """Ask questions one by one; write the answers to a file, return the milliseconds of each."""
    times: list[float] = []
    with answers.open("w", encoding="utf-8") as out, bar(console, what, len(questions)) as moved:
        for number, question in enumerate(questions, start=1):
            found, milliseconds = await timed(ask(client, question))
            times.append(milliseconds)
            out.write(json.dumps(answer_line(question, found), ensure_ascii=False) + "\n")
            moved(number)
    return times


def sampled(questions: Sequence[Question], number: int | None, seed: int) -> tuple[Question, ...]:
    """Return so many of the questions, in their order and the same for a seed; all for None."""
    if number is None or number >= len(questions):
        return tuple(questions)
    # cryptography is not the point, sameness is
    chosen = random.Random(seed).sample(range(len(questions)), number)  # noqa: S311
    return tuple(questions[place] for place in sorted(chosen))


@asynccontextmanager
async def served(
    stores: str, root: Path, directory: Path, console: Console
) -> AsyncIterator[tuple[Engine, httpx.AsyncClient]]:
    """Load the data into a store set and serve it; yield the engine and a client, both warm.

    Args:
        stores: Name of the store set.
        root: Directory for the stores.
        directory: What the generator wrote.
        console: For progress.

    Raises:
        LeftOut: When this machine cannot run the stores.
        BadData: As for `load`.
    """
    first, *_ = read_questions(directory)
    async with open_store_set(stores, root / "stores") as opened:
        settings = opened.settings("bench", root / "data")
        async with Engine.open(settings) as engine:
            await load(engine, SCOPE, directory, root, console)
            async with graphql_client(engine, SCOPE) as client:
                await ask(client, first)
                yield engine, client


async def _run(arguments: argparse.Namespace, root: Path, console: Console) -> None:
    questions = read_questions(arguments.data)
    async with served(arguments.stores, root, arguments.data, console) as (_, client):
        times = await ask_all(client, questions, arguments.answers, console)
    console.print(
        f"{len(questions)} answers written to {arguments.answers.name}; GraphQL over HTTP, ms: "
        f"p50 {percentile(times, 50):.0f}, p95 {percentile(times, 95):.0f}, "
        f"p99 {percentile(times, 99):.0f}",
        highlight=False,
    )


def main() -> int:
    """Run what the command line asks for."""
    parser = asking_parser("python -m benchmarks.after_sales", __doc__, "the benchmark's generator")
    return asked(parser, sys.argv[1:], QUESTIONS, _run)


if __name__ == "__main__":
    sys.exit(main())
