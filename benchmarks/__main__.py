"""Measure recall and import against their raw parts, on embedded stores and on real servers."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import Progress

from benchmarks import import_overhead, recall_overhead
from benchmarks.answering import positive, progress_on
from benchmarks.data import (
    NOW,
    Dataset,
    Sizes,
    make_dataset,
    write_files,
)
from benchmarks.figures import machine
from benchmarks.import_overhead import Way, by_import, by_remember
from benchmarks.loading import load_files
from benchmarks.report import recall_table, stages_table, writing_table
from benchmarks.stores import STORE_SETS, LeftOut, StoreSet, open_store_set
from ecphoria.clock import Clock
from ecphoria.engine import Engine
from ecphoria.logs import configure_logging
from ecphoria.model import EveryUser, Role, Scope

RESULTS: Final = Path(__file__).with_name("results.json")


def _arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    sizes = Sizes()
    parser.add_argument(
        "--stores",
        default=",".join(STORE_SETS),
        help=f"comma-separated store sets: {', '.join(STORE_SETS)} (default: both)",
    )
    for name, default, text in (
        ("users", sizes.users, "users of the made-up shop"),
        ("memories", sizes.memories, "memories in it"),
        ("questions", sizes.questions, "questions asked"),
        ("batch", 500, "memories a write; `ecphoria import` takes 500"),
        ("rounds", 2, "imports by each side"),
    ):
        parser.add_argument(
            f"--{name}", type=positive, default=default, help=f"{text} (default: {default})"
        )
    parser.add_argument(
        "--output", type=Path, default=RESULTS, help="file for the figures (default: results.json)"
    )
    arguments = parser.parse_args(given)
    arguments.stores = arguments.stores.split(",")
    for name in arguments.stores:
        if name not in STORE_SETS:
            parser.error(f"--stores: {name!r} is none of {', '.join(STORE_SETS)}")
    return arguments


async def _measure(
    stores: StoreSet,
    made: Dataset,
    arguments: argparse.Namespace,
    root: Path,
    progress: Progress,
) -> dict[str, Any]:
    def bar(what: str, total: int) -> Callable[..., None]:
        task = progress.add_task(f"{stores.name}: {what}", total=total)
        return lambda steps=1: progress.advance(task, steps)

    files = write_files(made, root / "files")
    scope = Scope("bench", "benchmark", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)
    # each question is asked more than once
    settings = stores.settings("bench", root / "data", query_cache_size=0)
    async with Engine.open(settings, clock=Clock(now=lambda: NOW)) as engine:
        health = await engine.health()
        await load_files(
            engine, scope, files, bar("load", len(made.entities + made.relations + made.memories))
        )
        recall = await recall_overhead.measure_recall(
            engine, stores, scope, made, bar("recall", recall_overhead.rounds(made))
        )
        written = {
            way.name: await import_overhead.measure_writing(
                engine,
                stores,
                scope,
                way,
                rounds=rounds,
                tick=bar(way.name, way.pairs(rounds)),
            )
            for way, rounds in _ways(arguments, root / "as_it_comes")
        }
    return {
        "graph": f"{health.graph.product} {health.graph.version}",
        "vectors": f"{health.vectors.product} {health.vectors.version}",
        "model": health.model,
        "recall": recall,
        "writing": written,
    }


def _ways(arguments: argparse.Namespace, directory: Path) -> tuple[tuple[Way, int], ...]:
    """Return the ways to write, each with how often it is measured."""
    sizes = Sizes(arguments.users, arguments.memories, as_it_comes=True)
    made = make_dataset(sizes)
    files = write_files(made, directory)
    return (
        (by_import(files, sizes.memories, arguments.batch), arguments.rounds),
        (by_remember(files, made.memories, arguments.batch), 1),
    )


async def _run(arguments: argparse.Namespace, console: Console) -> dict[str, Any]:
    sizes = Sizes(arguments.users, arguments.memories, arguments.questions)
    made = make_dataset(sizes)
    measured: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    for name in arguments.stores:
        start = time.perf_counter()
        load_before = os.getloadavg()[0]
        with tempfile.TemporaryDirectory(prefix="ecphoria-bench-") as directory:
            root = Path(directory)
            try:
                async with open_store_set(name, root / "stores") as stores:
                    with progress_on(console) as progress:
                        found = await _measure(stores, made, arguments, root, progress)
            except LeftOut as error:
                left_out[name] = str(error).splitlines()[0].replace(str(Path.cwd()), ".")
                console.print(f"[yellow]{name} left out[/]: {left_out[name]}", highlight=False)
                continue
        measured[name] = found | {
            "load_average_before": round(load_before, 1),
            "seconds": round(time.perf_counter() - start, 1),
        }
        console.print(f"\n{name}: {found['graph']}, {found['vectors']}", highlight=False)
        console.print(recall_table(name, found["recall"]))
        console.print(stages_table(name, found["recall"]))
        for way, figures in found["writing"].items():
            console.print(writing_table(name, way, figures))
    return {
        "command": shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]]),
        "sizes": {
            "users": sizes.users,
            "entities": len(made.entities),
            "relations": len(made.relations),
            "memories": len(made.memories),
            "questions": len(made.questions),
            "batch": arguments.batch,
            "rounds": arguments.rounds,
        },
        "machine": machine(),
        "stores": measured,
        "left_out": left_out,
    }


def main() -> int:
    """Run what the command line asks for."""
    arguments = _arguments(sys.argv[1:])
    configure_logging("warning")
    console = Console()
    results = asyncio.run(_run(arguments, console))
    if not results["stores"]:
        return 1
    text = json.dumps(results, ensure_ascii=False, indent=2) + "\n"
    arguments.output.write_text(text, encoding="utf-8")
    console.print(f"Figures written to {arguments.output.name}.", highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
