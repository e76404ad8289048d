"""How long a recall takes as the data grows, and with many clients at once.

For each number of memories there are fresh stores, filled by what `ecphoria import` runs, and given
time to build their indexes. Then, one question at a time, `Engine.recall` and GraphQL are measured
against their raw parts, in pairs (`recall_overhead.py`). At last `ecphoria serve` runs in a process
of its own, and so many clients at once, each with a connection of its own, ask it the same
questions: every answer that is an error, or says that something was left out, is counted.

Vectors of questions are not kept between them: here each is asked many times.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shlex
import signal
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.answering import http_client, positive, progress_on, tenant_key
from benchmarks.data import NOW, Asked, Sizes, make_dataset, write_files
from benchmarks.figures import machine, percentile, timed
from benchmarks.loading import digest, load_files
from benchmarks.recall_overhead import (
    CYPHER,
    EMBED,
    ENGINE,
    GRAPHQL,
    RAW,
    SEARCH,
    WARM,
    ask_graphql,
    measure_recall,
    rounds,
)
from benchmarks.report import plain_table
from benchmarks.stores import STORE_SETS, LeftOut, StoreSet, open_store_set
from ecphoria.clock import Clock
from ecphoria.engine import Engine
from ecphoria.logs import configure_logging
from ecphoria.model import EveryUser, Role, Scope

RESULTS: Final = Path(__file__).with_name("latency.json")
SCOPE: Final = Scope("bench", "benchmark", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)
MEMORIES_A_USER: Final = 20
# What one recall may take at the median, in times of its raw parts.
AIM: Final = 1.3

_PREFIX: Final = "bench"
_LEAST_USERS: Final = 10
_UNCACHED: Final = {"query_cache_size": 0}
_SERVING: Final = re.compile(r"Serving (http://[^\s/]+)")
_LOOK_EVERY_S: Final = 0.1
_START_S: Final = 180
_STOP_S: Final = 30
_LOG_TAIL: Final = 2_000

Tick = Callable[[], None]


# --- many clients --------------------------------------------------------------------------


@dataclass(slots=True)
class Load:
    """What some clients at once met with.

    Attributes:
        seconds: From the first question to the last answer.
        times: Milliseconds of each question that was answered.
        errors: How often, by what it was.
    """

    clients: int
    seconds: float = 0.0
    times: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)

    def figures(self) -> dict[str, Any]:
        """Return it for the results."""
        found: dict[str, Any] = {
            "clients": self.clients,
            "requests": len(self.times) + self.errors.total(),
            "seconds": round(self.seconds, 2),
            "a_second": round(len(self.times) / self.seconds, 2),
            "errors": dict(self.errors),
        }
        if self.times:
            for part in (50, 95, 99):
                found[f"p{part}_ms"] = round(percentile(self.times, part), 1)
            found["longest_ms"] = round(max(self.times), 1)
        return found


async def under_load(
    url: str, secret: str, questions: Sequence[Asked], *, clients: int, requests: int, tick: Tick
) -> Load:
    """Let clients ask at once, each its next question when the one before is answered.

    Args:
        url: Of the server.
        secret: Of a key.
        questions: Asked in turn, again from the first after the last.
        clients: How many.
        requests: Questions in all.
        tick: Called after each.
    """
    found = Load(clients)
    asked = iter(questions[number % len(questions)] for number in range(requests))
    async with AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(http_client(url, secret)) for _ in range(clients)]
        # a connection and a first answer each before anything counts
        await asyncio.gather(*(_ask(client, questions[0], Load(clients)) for client in opened))
        start = time.perf_counter()
        await asyncio.gather(*(_client(client, asked, found, tick) for client in opened))
        found.seconds = time.perf_counter() - start
    return found


async def _client(
    client: httpx.AsyncClient, asked: Iterator[Asked], found: Load, tick: Tick
) -> None:
    # all clients take from one line
    for question in asked:
        await _ask(client, question, found)
        tick()


async def _ask(client: httpx.AsyncClient, question: Asked, found: Load) -> None:
    try:
        answer, milliseconds = await timed(ask_graphql(client, question, NOW))
    except httpx.HTTPStatusError as error:
        found.errors[f"HTTP {error.response.status_code}"] += 1
    except httpx.HTTPError as error:
        found.errors[type(error).__name__] += 1
    except RuntimeError as error:
        found.errors[str(error)[:200]] += 1
    else:
        left_out = answer["data"]["recall"]["degradations"]
        if left_out:
            found.errors[f"left out: {left_out[0]}"] += 1
        else:
            found.times.append(milliseconds)


@asynccontextmanager
async def serving(stores: StoreSet, root: Path, **changed: object) -> AsyncIterator[str]:
    """Run `ecphoria serve` on the stores; yield its URL.

    Args:
        stores: Where its data are.
        root: Where it may write.
        changed: Settings that are to be other than shipped; by default no vector is kept.

    Raises:
        RuntimeError: When it does not start, with the end of its log.
    """
    log = root / "serve.log"
    with log.open("wb") as file:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "ecphoria", "serve", "--port", "0", "--log-level", "warning"),
            stdin=DEVNULL,
            stdout=file,
            stderr=file,
            env=stores.environment(_PREFIX, root / "serve", **(changed or _UNCACHED)),
        )
    try:
        yield await _announced(child, log)
    finally:
        if child.returncode is None:
            child.send_signal(signal.SIGINT)
            try:
                await asyncio.wait_for(child.wait(), _STOP_S)
            except TimeoutError:
                child.kill()
                await child.wait()


async def _announced(child: asyncio.subprocess.Process, log: Path) -> str:
    for _ in range(round(_START_S / _LOOK_EVERY_S)):
        text = await asyncio.to_thread(log.read_text, "utf-8", "replace")
        if found := _SERVING.search(text):
            return found[1]
        if child.returncode is not None:
            break
        await asyncio.sleep(_LOOK_EVERY_S)
    msg = f"`ecphoria serve` does not start: {text[-_LOG_TAIL:]}"
    raise RuntimeError(msg)


# --- one size ------------------------------------------------------------------------------


async def _measure(
    stores: StoreSet, memories: int, arguments: argparse.Namespace, root: Path, progress: Progress
) -> dict[str, Any]:
    def bar(what: str, total: int | None) -> Callable[..., None]:
        task = progress.add_task(f"{stores.name}, {memories:,}: {what}", total=total)
        return lambda steps=1: progress.advance(task, steps)

    users = max(_LEAST_USERS, memories // MEMORIES_A_USER)
    made = make_dataset(Sizes(users, memories, arguments.questions))
    files = write_files(made, root / "files")
    settings = stores.settings(_PREFIX, root / "data", **_UNCACHED)
    async with Engine.open(settings, clock=Clock(now=lambda: NOW)) as engine:
        health = await engine.health()
        lines = len(made.entities) + len(made.relations) + len(made.memories)
        _, loading = await timed(load_files(engine, SCOPE, files, bar("load", lines)))
        async with stores.bare() as (_, milvus):
            _, digesting = await timed(digest(engine, milvus))
        ticks = bar("recall", rounds(made))
        recall = await measure_recall(engine, stores, SCOPE, made, ticks)
        secret = await tenant_key(engine, SCOPE)
    loads = []
    async with serving(stores, root) as url:
        # its first questions alone take Neo4j seconds
        await under_load(
            url, secret, made.questions, clients=1, requests=WARM, tick=bar("warm up", WARM)
        )
        for clients in arguments.clients:
            requests = max(arguments.requests, 5 * clients)
            ticks = bar(f"{clients} clients", requests)
            found = await under_load(
                url, secret, made.questions, clients=clients, requests=requests, tick=ticks
            )
            loads.append(found.figures())
    return {
        "graph": f"{health.graph.product} {health.graph.version}",
        "vectors": f"{health.vectors.product} {health.vectors.version}",
        "model": health.model,
        "users": users,
        "load_s": round(loading / 1000, 1),
        "digest_s": round(digesting / 1000, 1),
        "recall": recall,
        "under_load": loads,
    }


# --- all of it -----------------------------------------------------------------------------


def recall_table(name: str, found: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return the table of one recall by number of memories, for a store set."""
    table = plain_table(
        f"One recall at a time, {name}, ms, and its ratio to the raw parts",
        "memories",
        *("raw", "p50", "p95", "p99", "ratio", "at p95", "at p99", "GraphQL"),
    )
    for memories, each in found.items():
        times, ratios = each["recall"]["times"], each["recall"]["ratios"]
        ratio = ratios[ENGINE]
        table.add_row(
            f"{int(memories):,}",
            f"{times[RAW]['p50_ms']:.0f}",
            *(f"{times[ENGINE][f'p{part}_ms']:.0f}" for part in (50, 95, 99)),
            f"[{'green' if ratio['p50'] <= AIM else 'red'}]{ratio['p50']:.2f}[/]",
            *(f"{ratio[f'of_p{part}']:.2f}" for part in (95, 99)),
            f"{ratios[GRAPHQL]['p50']:.2f}",
        )
    return table


def parts_table(name: str, found: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return the table of the raw parts and of the stages of a recall, for a store set."""
    table = plain_table(
        f"Where the time goes, {name}, p50 ms", "memories", *(f"{int(size):,}" for size in found)
    )
    recalls = [each["recall"] for each in found.values()]
    for of, names in (
        ("times", (EMBED, SEARCH, CYPHER, RAW)),
        ("stages", tuple(recalls[0]["stages"])),
        ("times", (ENGINE,)),
    ):
        for part in names:
            figures = (f"{each[of][part]['p50_ms']:.1f}" for each in recalls)
            table.add_row(part, *figures, end_section=part == names[-1])
    return table


def load_table(name: str, found: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return the table of many clients by number of memories, for a store set."""
    table = plain_table(
        f"Clients at once, GraphQL, {name}",
        "memories",
        *("clients", "requests", "a second", "p50", "p95", "p99 ms", "errors"),
    )
    for memories, each in found.items():
        for load in each["under_load"]:
            errors = sum(load["errors"].values())
            table.add_row(
                f"{int(memories):,}",
                str(load["clients"]),
                str(load["requests"]),
                f"{load['a_second']:.1f}",
                *(f"{load.get(f'p{part}_ms', float('nan')):.0f}" for part in (50, 95, 99)),
                f"[red]{errors}[/]" if errors else "0",
                end_section=load is each["under_load"][-1],
            )
    return table


async def _run(arguments: argparse.Namespace, console: Console) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in arguments.stores:
        sizes: dict[str, Any] = {}
        for memories in arguments.memories:
            busy = os.getloadavg()[0]
            with tempfile.TemporaryDirectory(
                prefix="ecphoria-latency-", ignore_cleanup_errors=True
            ) as directory:
                root = Path(directory)
                try:
                    async with open_store_set(name, root / "stores") as stores:
                        with progress_on(console) as progress:
                            each = await _measure(stores, memories, arguments, root, progress)
                except LeftOut as error:
                    console.print(f"[yellow]{name} left out[/]: {error}", highlight=False)
                    break
            sizes[str(memories)] = each | {"load_average_before": round(busy, 1)}
            # the next size may take an hour
            _save(arguments.output, name, sizes)
        if sizes:
            found[name] = sizes
            console.print(recall_table(name, sizes))
            console.print(parts_table(name, sizes))
            console.print(load_table(name, sizes))
            for load in (load for each in sizes.values() for load in each["under_load"]):
                for what, times in load["errors"].items():
                    console.print(f"[red]{times} x[/] {what}", highlight=False)
    return found


def _save(output: Path, name: str, sizes: Mapping[str, Any]) -> None:
    old = json.loads(output.read_text("utf-8")) if output.exists() else {}
    stores = old.get("stores", {})
    kept = stores.get(name, {}) | sizes
    figures = {
        "command": shlex.join(["python", "-m", "benchmarks.latency", *sys.argv[1:]]),
        "machine": machine(),
        "stores": stores | {name: dict(sorted(kept.items(), key=lambda item: int(item[0])))},
    }
    text = json.dumps(figures, ensure_ascii=False, indent=2) + "\n"
    output.write_text(text, encoding="utf-8")


def main() -> int:
    """Run what the command line asks for; exit status 1 when an answer was an error."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description=__doc__)
    for name, default, text in (
        ("memories", (1_000, 10_000, 50_000), "numbers of memories, each in fresh stores"),
        ("clients", (1, 8, 32), "clients at once"),
    ):
        parser.add_argument(
            f"--{name}",
            type=positive,
            nargs="+",
            default=default,
            help=f"{text} (default: {' '.join(map(str, default))})",
        )
    parser.add_argument(
        "--stores", nargs="+", choices=STORE_SETS, default=STORE_SETS, help="default: both"
    )
    for name, size, text in (
        ("questions", 200, "different questions, each measured once"),
        ("requests", 200, "questions in all that clients at once ask; at least 5 each"),
    ):
        parser.add_argument(
            f"--{name}", type=positive, default=size, help=f"{text} (default: {size})"
        )
    parser.add_argument(
        "--output",
        type=Path,
        default=RESULTS,
        help="file for the figures; those of other sizes in it stay (default: latency.json)",
    )
    arguments = parser.parse_args()
    configure_logging("warning")
    console = Console()
    found = asyncio.run(_run(arguments, console))
    if not found:
        return 1
    console.print(f"Figures written to {arguments.output.name}.", highlight=False)
    failed = any(
        load["errors"]
        for sizes in found.values()
        for each in sizes.values()
        for load in each["under_load"]
    )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
