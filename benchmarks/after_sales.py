"""Ask the questions of the after-sales benchmark through GraphQL; write what its scorer reads.

Data of the benchmark's generator goes in through the product's own import; of a question, only
its text, its user and its moment go in. Settings are as shipped, and the same for all questions.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
from rich.console import Console

from benchmarks.answering import BadData, asked, asking_parser, bar, graphql_client
from benchmarks.figures import percentile
from benchmarks.stores import open_store_set
from ecphoria.bulk_import import import_files
from ecphoria.engine import Engine
from ecphoria.model import EveryUser, Role, Scope
from ecphoria_graphql.app import GRAPHQL_PATH

FILES: Final = ("entities.jsonl", "relations.jsonl", "memories.jsonl")
QUESTIONS: Final = "questions.jsonl"
TENANT: Final = "after-sales"
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


async def _ask(client: httpx.AsyncClient, question: Question) -> Mapping[str, Any]:
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


async def _run(arguments: argparse.Namespace, root: Path, console: Console) -> None:
    questions = read_questions(arguments.data)
    scope = Scope(TENANT, "benchmark", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)
    times: list[float] = []
    async with open_store_set(arguments.stores, root / "stores") as stores:
        settings = stores.settings("bench", root / "data")
        async with Engine.open(settings) as engine:
            await load(engine, scope, arguments.data, root, console)
            async with graphql_client(engine, scope) as client:
                await _ask(client, questions[0])
                with (
                    arguments.answers.open("w", encoding="utf-8") as out,
                    bar(console, "ask", len(questions)) as moved,
                ):
                    for number, question in enumerate(questions, start=1):
                        start = time.perf_counter()
                        found = await _ask(client, question)
                        times.append((time.perf_counter() - start) * 1000)
                        line = json.dumps(answer_line(question, found), ensure_ascii=False)
                        out.write(line + "\n")
                        moved(number)
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
