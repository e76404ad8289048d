"""Whether `ecphoria serve` stays as large as it is under a load of every kind.

A made-up shop is loaded, then `ecphoria serve` runs in a process of its own. Clients, each with a
connection of its own, do what agents do, by the shipped operations: they ask, remember, correct,
forget, say turns of conversations, give feedback, and follow what changes. Each forgets as much as
it remembers, so that there is as much to look through at the end as at the beginning.

Memory is the resident set of the API's process, looked at every second. The first three tenths of
the time are warm-up: caches fill, and the allocator finds its size. Through the looks after that a
line is laid by least squares. The verdict is GROWS when that line rises, from its beginning to its
end, by more than 5 % and by more than 16 MiB; otherwise FLAT.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import shlex
import statistics
import sys
import tempfile
import time
import uuid
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import psutil
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.answering import http_client, positive, progress_on, tenant_key
from benchmarks.data import Dataset, Sizes, make_dataset, write_files
from benchmarks.figures import Series, machine
from benchmarks.latency import SCOPE, serving
from benchmarks.loading import load_files
from benchmarks.report import plain_table
from benchmarks.stores import STORE_SETS, LeftOut, StoreSet, open_store_set
from ecphoria.engine import Engine
from ecphoria.logs import configure_logging
from ecphoria_graphql.app import GRAPHQL_PATH

RESULTS: Final = Path(__file__).with_name("mixed_load.json")
OPERATIONS: Final = Path(__file__).parents[1] / "graphql" / "operations"
MIB: Final = 1024 * 1024
TENTHS: Final = 10
WARM_TENTHS: Final = 3
MAX_RISE: Final = 0.05
MAX_RISE_BYTES: Final = 16 * MIB
ALLOWED_ERRORS: Final = frozenset({"RATE_LIMITED"})

_PREFIX: Final = "bench"
_LOOK_EVERY_S: Final = 1.0
# A subscription that is ended and begun anew is one that could be left behind.
_FOLLOW_S: Final = 30.0
_KEPT: Final = 40
# How often each, of a hundred; what is remembered is forgotten again besides.
_MIX: Final = {"recall": 60, "remember": 20, "correct": 7, "turn": 6, "feedback": 7}
_SAID: Final = (
    ("The customer asks to be called after {n} pm", "en"),
    ("Parcel {n} was left with the neighbour", "en"),
    ("客户说包裹{n}放在邻居那里", "zh"),
    ("客户希望{n}点以后再打电话", "zh"),
)


# --- what is found -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Growth:
    """What became of a process's memory after warm-up.

    Attributes:
        tenths: Median bytes of each tenth of the time.
        per_minute: Slope of the line, in bytes.
        rise: What it rises by in all, as a share of its beginning.
    """

    tenths: tuple[int, ...]
    per_minute: float
    rise: float
    grows: bool

    @property
    def verdict(self) -> str:
        """The one word."""
        return "GROWS" if self.grows else "FLAT"


def growth(looks: Sequence[tuple[float, int]]) -> Growth:
    """Return what became of the memory; see the module for the rule.

    Args:
        looks: Seconds since the start, and bytes.

    Raises:
        ValueError: When a tenth of the time has no look: then it was too short.
    """
    end = looks[-1][0]
    tenths: list[list[int]] = [[] for _ in range(TENTHS)]
    for at, size in looks:
        tenths[min(TENTHS - 1, int(at / end * TENTHS))].append(size)
    if not all(tenths):
        msg = "too short: each tenth of the time needs a look at the memory"
        raise ValueError(msg)
    warm = [(at, size) for at, size in looks if at >= end * WARM_TENTHS / TENTHS]
    slope, begin = statistics.linear_regression(*zip(*warm, strict=True))
    first = begin + slope * warm[0][0]
    risen = slope * (end - warm[0][0])
    return Growth(
        tenths=tuple(round(statistics.median(sizes)) for sizes in tenths),
        per_minute=slope * 60,
        rise=risen / first,
        grows=risen > MAX_RISE * first and risen > MAX_RISE_BYTES,
    )


@dataclass(slots=True)
class Met:
    """What the clients met with.

    Attributes:
        series: Milliseconds of each operation that did what it should.
        errors: How often, by operation and code.
        changes: How many were heard of by those who followed.
    """

    series: Series = field(default_factory=Series)
    errors: Counter[str] = field(default_factory=Counter)
    changes: int = 0

    @property
    def bad(self) -> int:
        """How many errors there were that must not be."""
        return sum(
            count
            for what, count in self.errors.items()
            if what.rpartition(" ")[2] not in ALLOWED_ERRORS
        )

    def figures(self, seconds: float) -> dict[str, Any]:
        """Return it for the results."""
        done = {name: len(times) for name, times in self.series.times.items()}
        return {
            "seconds": round(seconds, 1),
            "requests": sum(done.values()) + self.errors.total(),
            "a_second": round(sum(done.values()) / seconds, 2),
            "errors": dict(self.errors),
            "changes_heard_of": self.changes,
            "operations": {
                name: {"requests": done[name], **self.series.summary(name)} for name in sorted(done)
            },
        }


# --- clients -------------------------------------------------------------------------------


def shipped() -> dict[str, str]:
    """Return the shipped operations that clients use, as far as there are any."""
    files = {
        "recall": "recall",
        "remember": "remember",
        "correct": "correct",
        "forget": "forget",
        "turn": "remember_turn",
        "feedback": "feedback",
        "follow": "memory_changed",
    }
    found = {name: OPERATIONS / f"{file}.graphql" for name, file in files.items()}
    return {name: path.read_text("utf-8") for name, path in found.items() if path.exists()}


def fault_of(answer: Mapping[str, Any]) -> str | None:
    """Return the code of what an answer complains about; None when it did what it should."""
    for error in answer.get("errors", ()):
        return str(error.get("extensions", {}).get("code", "none"))
    for payload in (answer.get("data") or {}).values():
        if not isinstance(payload, dict):
            continue
        if error := payload.get("error"):
            return str(error.get("code", "none"))
        if payload.get("status") == "REJECTED":
            return str(payload.get("code"))
        if payload.get("degradations"):
            return "DEGRADED"
    return None


@dataclass(slots=True)
class Client:
    """One agent: what it has remembered, and what it does next.

    Attributes:
        kept: Ids and users of what it has remembered and not forgotten.
    """

    http: httpx.AsyncClient
    made: Dataset
    met: Met
    operations: Mapping[str, str]
    rng: random.Random
    kept: deque[tuple[str, str]] = field(default_factory=deque)

    async def go_on(self, until: float, tick: Callable[[], None]) -> None:
        """Do one thing after the other."""
        mix = {name: weight for name, weight in _MIX.items() if name in self.operations}
        names, weights = list(mix), list(mix.values())
        while time.monotonic() < until:
            (name,) = self.rng.choices(names, weights)
            await getattr(self, f"_{name}")()
            while len(self.kept) > _KEPT:
                await self._forget_one(self.kept.popleft())
            tick()

    async def _send(self, name: str, **variables: object) -> Mapping[str, Any] | None:
        body = {"query": self.operations[name], "variables": variables}
        start = time.perf_counter()
        try:
            response = await self.http.post(GRAPHQL_PATH, json=body)
            answer: Mapping[str, Any] = response.json()
        except (httpx.HTTPError, ValueError) as error:
            self.met.errors[f"{name}: {type(error).__name__}"] += 1
            return None
        took = (time.perf_counter() - start) * 1000
        if (fault := fault_of(answer)) is not None:
            self.met.errors[f"{name}: {fault}"] += 1
            return None
        if response.is_error:
            self.met.errors[f"{name}: HTTP {response.status_code}"] += 1
            return None
        self.met.series.add(name, took)
        return answer

    def _said(self) -> str:
        text, _ = self.rng.choice(_SAID)
        return text.format(n=self.rng.randrange(10_000_000))

    def _user(self) -> str:
        return self.rng.choice(self.made.questions).user_id

    async def _recall(self) -> None:
        asked = self.rng.choice(self.made.questions)
        await self._send("recall", question=asked.question, userId=asked.user_id)

    async def _remember(self) -> None:
        user, id_ = self._user(), f"mixed-{uuid.UUID(int=self.rng.getrandbits(128)).hex}"
        if await self._send("remember", input={"id": id_, "userId": user, "text": self._said()}):
            self.kept.append((id_, user))

    async def _correct(self) -> None:
        if not self.kept:
            await self._remember()
            return
        id_, user = self.kept.popleft()
        answer = await self._send(
            "correct",
            memoryId=id_,
            new={"userId": user, "text": self._said()},
            reason="heard wrongly",
        )
        if answer is not None:
            self.kept.append((answer["data"]["correct"]["id"], user))
        # what was corrected is history, and goes as well
        await self._forget_one((id_, user))

    async def _turn(self) -> None:
        user = self._user()
        await self._send(
            "turn",
            userId=user,
            sessionId=f"mixed-{self.rng.randrange(50)}",
            speaker="CUSTOMER",
            text=self._said(),
        )

    async def _feedback(self) -> None:
        if not self.kept:
            await self._remember()
            return
        id_, user = self.kept.popleft()
        await self._send("feedback", input={"memoryId": id_, "userId": user, "verdict": "HELPFUL"})
        await self._forget_one((id_, user))

    async def _forget_one(self, which: tuple[str, str]) -> None:
        id_, user = which
        await self._send("forget", userId=user, ids=[id_], reason="no use any more")

    async def follow(self, until: float) -> None:
        """Follow one user after the other, each for a while."""
        while (left := until - time.monotonic()) > 0:
            body = {"query": self.operations["follow"], "variables": {"userId": self._user()}}
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, _FOLLOW_S)):
                    await self._hear(body)

    async def _hear(self, body: Mapping[str, Any]) -> None:
        headers = {"Accept": "text/event-stream"}
        try:
            async with self.http.stream(
                "POST", GRAPHQL_PATH, json=body, headers=headers, timeout=None
            ) as response:
                async for line in response.aiter_lines():
                    if not line.startswith("data: {"):
                        continue
                    if fault := fault_of(json.loads(line.removeprefix("data: "))):
                        self.met.errors[f"follow: {fault}"] += 1
                    self.met.changes += 1
        except httpx.HTTPError as error:
            self.met.errors[f"follow: {type(error).__name__}"] += 1
        else:
            self.met.errors["follow: ended"] += 1


# --- the run -------------------------------------------------------------------------------


def _api() -> psutil.Process:
    """Return the process of `ecphoria serve`, which this one has started."""
    for child in psutil.Process().children():
        if "serve" in child.cmdline():
            return child
    msg = "`ecphoria serve` does not run"
    raise RuntimeError(msg)


async def _look(process: psutil.Process, looks: list[tuple[float, int]]) -> None:
    start = time.monotonic()
    while True:
        looks.append((time.monotonic() - start, process.memory_info().rss))
        await asyncio.sleep(_LOOK_EVERY_S)


@contextlib.asynccontextmanager
async def _looking(looks: list[tuple[float, int]]) -> AsyncIterator[None]:
    task = asyncio.create_task(_look(_api(), looks))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _measure(
    stores: StoreSet, arguments: argparse.Namespace, root: Path, progress: Progress
) -> dict[str, Any]:
    made = make_dataset(Sizes(arguments.users, arguments.memories))
    settings = stores.settings(_PREFIX, root / "data")
    lines = len(made.entities) + len(made.relations) + len(made.memories)
    loading = progress.add_task(f"{stores.name}: load", total=lines)
    async with Engine.open(settings) as engine:
        await load_files(
            engine,
            SCOPE,
            write_files(made, root / "files"),
            lambda steps: progress.advance(loading, steps),
        )
        secret = await tenant_key(engine, SCOPE)
    met, looks = Met(), list[tuple[float, int]]()
    running = progress.add_task(f"{stores.name}: mixed load", total=None)
    # as shipped: the worker, the caches and all
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(serving(stores, root, reconcile_every_s=5.0))
        clients = [
            Client(
                await stack.enter_async_context(http_client(url, secret)),
                made,
                met,
                shipped(),
                random.Random(number),  # noqa: S311 - made-up load
            )
            for number in range(arguments.clients)
        ]
        start = time.monotonic()
        until = start + arguments.minutes * 60
        async with _looking(looks), asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(client.go_on(until, lambda: progress.advance(running)))
                group.create_task(client.follow(until))
        seconds = time.monotonic() - start
    found = growth(looks)
    return met.figures(seconds) | {
        "bad_errors": met.bad,
        "rss_mib": [round(size / MIB, 1) for size in found.tenths],
        "rss_mib_a_minute": round(found.per_minute / MIB, 3),
        "rise": round(found.rise, 4),
        "verdict": found.verdict,
    }


def operations_table(name: str, found: Mapping[str, Any]) -> Table:
    """Return the table of requests and times."""
    table = plain_table(
        f"Mixed load, {name}, {found['seconds']:.0f} s, {found['a_second']:.1f} requests/s",
        "operation",
        *("requests", "p50 ms", "p99 ms"),
    )
    for operation, each in found["operations"].items():
        table.add_row(
            operation, f"{each['requests']:,}", f"{each['p50_ms']:.0f}", f"{each['p99_ms']:.0f}"
        )
    return table


def memory_table(name: str, found: Mapping[str, Any]) -> Table:
    """Return the table of memory by tenths of the time."""
    sizes = found["rss_mib"]
    tenths = (f"{number}/{TENTHS}" for number in range(1, TENTHS + 1))
    table = plain_table(f"Memory of the API's process, {name}, MiB", "", *tenths)
    table.add_row("resident", *(f"{size:.0f}" for size in sizes))
    return table


async def _run(arguments: argparse.Namespace, console: Console) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in arguments.stores:
        busy = os.getloadavg()[0]
        with tempfile.TemporaryDirectory(
            prefix="ecphoria-mixed-", ignore_cleanup_errors=True
        ) as directory:
            root = Path(directory)
            try:
                async with open_store_set(name, root / "stores") as stores:
                    with progress_on(console) as progress:
                        each = await _measure(stores, arguments, root, progress)
            except LeftOut as error:
                console.print(f"[yellow]{name} left out[/]: {error}", highlight=False)
                continue
        found[name] = each | {"load_average_before": round(busy, 1)}
        console.print(operations_table(name, each))
        console.print(memory_table(name, each))
        colour = "red" if each["verdict"] == "GROWS" else "green"
        console.print(
            f"[{colour}]{each['verdict']}[/]: {each['rss_mib_a_minute']:+.2f} MiB a minute after "
            f"warm-up, {each['rise']:+.1%} in all; {each['changes_heard_of']:,} changes heard of",
            highlight=False,
        )
        for what, times in each["errors"].items():
            console.print(f"[red]{times} x[/] {what}", highlight=False)
    return found


def main() -> int:
    """Run what the command line asks for; exit status 1 for an error, or when memory grows."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mixed_load",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=30.0, help="how long (default: 30)")
    for name, size, text in (
        ("clients", 4, "clients at once"),
        ("users", 50, "users of the made-up shop"),
        ("memories", 1_000, "memories in it"),
    ):
        parser.add_argument(
            f"--{name}", type=positive, default=size, help=f"{text} (default: {size})"
        )
    parser.add_argument(
        "--stores", nargs="+", choices=STORE_SETS, default=["embedded"], help="default: embedded"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=RESULTS,
        help="file for the figures (default: mixed_load.json)",
    )
    arguments = parser.parse_args()
    configure_logging("warning")
    console = Console()
    found = asyncio.run(_run(arguments, console))
    if not found:
        return 1
    figures = {
        "command": shlex.join(["python", "-m", "benchmarks.mixed_load", *sys.argv[1:]]),
        "clients": arguments.clients,
        "users": arguments.users,
        "memories": arguments.memories,
        "machine": machine(),
        "stores": found,
    }
    text = json.dumps(figures, ensure_ascii=False, indent=2) + "\n"
    arguments.output.write_text(text, encoding="utf-8")
    console.print(f"Figures written to {arguments.output.name}.", highlight=False)
    return int(any(each["bad_errors"] or each["verdict"] == "GROWS" for each in found.values()))


if __name__ == "__main__":
    sys.exit(main())
