"""Import many memories in bulk: killed once, resumed, checked, verified, its memory watched.

    python -m benchmarks.bulk_import --memories 100000

The data is made by seed, straight into files. A process of its own imports them by what
`ecphoria import` runs. In the middle of a batch it is killed (SIGKILL); another one resumes. In
between, after every so many batches, it waits while the same rows are written without an engine
(`raw_writes`), into another tenant of the same stores: so both sides meet equally full stores and
an equally busy machine. The raw time of all batches is that of the samples, scaled up.

At the end every memory must be there once, in the graph and in the index, and `ecphoria verify`
must find both in line.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psutil
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.answering import progress_on
from benchmarks.data import ENTITIES, MEMORIES, RELATIONS, Sizes, memory_id, stream_files
from benchmarks.figures import machine
from benchmarks.raw_writes import RAW, Graph, RawWriter, raw_cypher, stored
from benchmarks.stores import MASTER_KEY, STORE_SETS, LeftOut, StoreSet, open_store_set
from ecphoria.bulk_import import BATCH_ITEMS, import_files
from ecphoria.engine import Engine
from ecphoria.lifecycle.verify import graph_pages, index_pages
from ecphoria.logs import configure_logging
from ecphoria.model import EveryUser, Role, Scope, memory_key

RESULTS: Final = Path(__file__).with_name("bulk_import.json")
TENANT: Final = "bulk"
RAW_TENANT: Final = "bulkraw"
_PREFIX: Final = "bulk"
_EVERY_S: Final = 0.2
_MIB: Final = 1024 * 1024
# A text is cut into so many memories at the most, in this data.
_PARTS: Final = 4

Tick = Callable[..., None]


@dataclass(slots=True)
class Watch:
    """The resident memory of a process, in bytes, by how far it was."""

    peaks: list[int] = field(default_factory=lambda: [0] * 10)
    done: float = 0.0  # 0..1

    async def over(self, pid: int) -> None:
        """Look again and again until the process has ended."""
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            while True:
                tenth = min(9, int(self.done * 10))
                self.peaks[tenth] = max(self.peaks[tenth], process.memory_info().rss)
                await asyncio.sleep(_EVERY_S)

    def mib(self) -> list[float]:
        """Return the peaks of the tenths in MiB."""
        return [round(peak / _MIB, 1) for peak in self.peaks]


@dataclass(slots=True)
class Times:
    """Seconds of batches by the product, and of the same ones without it."""

    product: float = 0.0
    batches: int = 0
    pairs: list[tuple[float, float]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Run:
    """What all steps of a run share."""

    stores: StoreSet
    engine: Engine
    files: Mapping[str, str]
    memories: int
    sample_every: int
    root: Path

    @property
    def settings(self) -> dict[str, str]:
        return {
            "neo4j_uri": self.stores.neo4j_uri,
            "neo4j_user": self.stores.neo4j_user,
            "neo4j_password": self.stores.neo4j_password,
            "neo4j_database": self.stores.neo4j_database,
            "milvus_uri": self.stores.milvus_uri,
            "collection_prefix": _PREFIX,
            "data_dir": str(self.root / "data"),
            "master_keys": MASTER_KEY,
        }

    @property
    def log(self) -> Path:
        return self.root / "child.log"

    def keys(self, batch: Mapping[str, Any]) -> list[str]:
        """Return the keys that the memories of a batch may have."""
        first = int(batch["first"].removeprefix(memory_id(0).rstrip("0")))
        ids = (memory_id(number) for number in range(first, first + batch["items"]))
        parts = ("", *(f"~{part}" for part in range(2, _PARTS + 1)))
        return [memory_key(TENANT, f"{id_}{part}") for id_ in ids for part in parts]


# --- importing -----------------------------------------------------------------------------


@dataclass(slots=True)
class _Sampler:
    """Writes samples of what was imported without an engine."""

    run: _Run
    writer: RawWriter
    begun: bool = False

    async def write(self, batch: Mapping[str, Any]) -> float:
        """Write a batch again, for the other tenant; return the seconds it took."""
        if not self.begun:
            await self.writer.sources(TENANT, RAW_TENANT)
            self.begun = True
        found = await stored(self.writer.graph, self.run.keys(batch))
        return (await self.writer.write(found.of(TENANT, RAW_TENANT)))[RAW] / 1000


@contextlib.asynccontextmanager
async def _importing(run: _Run) -> AsyncIterator[tuple[Process, AsyncIterator[dict[str, Any]]]]:
    """Start the importing process; give it and what it says."""
    order = {
        "settings": run.settings,
        "tenant": TENANT,
        "files": [run.files[name] for name in (ENTITIES, RELATIONS, MEMORIES)],
        "wait_every": run.sample_every,
    }
    with run.log.open("ab") as log:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "benchmarks.bulk_child"), stdin=PIPE, stdout=PIPE, stderr=log
        )
    if child.stdin is None or child.stdout is None:  # for the type checker: they were asked for
        raise AssertionError
    lines = child.stdout

    async def said() -> AsyncIterator[dict[str, Any]]:
        while line := await lines.readline():
            yield json.loads(line)

    try:
        child.stdin.write(json.dumps(order).encode() + b"\n")
        yield child, said()
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


async def _import(
    run: _Run, sampler: _Sampler, watch: Watch, times: Times, tick: Tick, *, kill_at: int | None
) -> dict[str, Any] | None:
    """Import until it is done, or until it is killed within the batch of a memory.

    Returns:
        What the process said at the end; None when it was killed.

    Raises:
        RuntimeError: When it ended otherwise.
    """
    async with _importing(run) as (child, said):
        watching = asyncio.create_task(watch.over(child.pid))
        before: dict[str, Any] | None = None
        async for event in said:
            if before is not None:
                took = event["clock"] - before["clock"]
                times.product += took
                times.batches += 1
                if event.get("waits"):
                    times.pairs.append((took, await sampler.write(before)))
            if event["event"] == "done":
                await watching
                return event
            before = event
            first = int(event["first"].removeprefix("mem-"))
            watch.done = first / run.memories
            tick(completed=first)
            if event["waits"] and child.stdin is not None:
                child.stdin.write(b"go\n")
            if kill_at is not None and first >= kill_at:
                # wherever in the batch that is: some time after it has begun
                await asyncio.sleep(times.product / max(1, times.batches) / 2)
                child.send_signal(signal.SIGKILL)
                await child.wait()
                await watching
                return None
        await watching
    msg = f"the importing process ended with {child.returncode}: {_tail(run.log)}"
    raise RuntimeError(msg)


def _tail(log: Path) -> str:
    return "\n".join(log.read_text("utf-8", "replace").splitlines()[-20:])


# --- afterwards ----------------------------------------------------------------------------


async def _checked(run: _Run) -> dict[str, int]:
    """Count what is there.

    Raises:
        RuntimeError: When a memory of the file is missing, or there twice, in either store.
    """
    engine, wanted, found = run.engine, 0, 0
    async for page in graph_pages(engine.graph, TENANT):
        found += len(page)
        for memory in page:
            id_, _, part = memory.id.partition("~")
            if not part and id_ == memory_id(wanted):
                wanted += 1
            elif not part or id_ != memory_id(wanted - 1):
                msg = f"the graph has {memory.id} where {memory_id(wanted)} should come"
                raise RuntimeError(msg)
    rows = 0
    ids: set[str] = set()
    async for found_rows in index_pages(engine.index, TENANT):
        rows += len(found_rows)
        ids.update(row.id for row in found_rows)
    if wanted != run.memories or rows != found or len(ids) != rows:
        msg = f"{wanted} of {run.memories} items, {found} memories, {rows} rows, {len(ids)} ids"
        raise RuntimeError(msg)
    return {"items": wanted, "memories": found, "rows": rows}


async def _verified(run: _Run) -> dict[str, Any]:
    """Run `ecphoria verify` over all; return what it found and how much memory it took.

    Raises:
        RuntimeError: When graph and index differ.
    """
    env = {f"ECPHORIA_{name.upper()}": value for name, value in run.settings.items()}
    start = time.perf_counter()
    with run.log.open("ab") as log:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "ecphoria", "verify", "--json"),
            stdout=PIPE,
            stderr=log,
            env={**os.environ, **env},
        )
    seen: list[int] = []

    async def watch() -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(child.pid)
            while True:
                seen.append(process.memory_info().rss)
                await asyncio.sleep(_EVERY_S)

    watching = asyncio.create_task(watch())
    out, _ = await child.communicate()
    await watching
    if child.returncode != 0:
        msg = f"`ecphoria verify` ended with {child.returncode}: {out.decode()}{_tail(run.log)}"
        raise RuntimeError(msg)
    report = json.loads(out)
    # the last look may find a process that has given its memory back
    size = max(1, len(seen) // 10)
    tenths = [max(seen[place : place + size]) for place in range(0, 10 * size, size)]
    return {
        "checked": report["checked"],
        "differences": report["found"],
        "seconds": round(time.perf_counter() - start, 1),
        "peak_mib": round(max(seen) / _MIB, 1),
        "peak_mib_by_tenth_of_time": [round(peak / _MIB, 1) for peak in tenths],
    }


# --- all of it -----------------------------------------------------------------------------


async def _measure(run: _Run, progress: Progress) -> dict[str, Any]:
    scope = Scope(RAW_TENANT, "benchmark", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)
    files = (run.files[ENTITIES], run.files[RELATIONS])
    task = progress.add_task("entities of the other side", total=None)
    async for step in import_files(run.engine, scope, files):
        progress.update(task, completed=step.done, total=step.total)
    task = progress.add_task("import", total=run.memories)

    def tick(completed: int) -> None:
        progress.update(task, completed=completed)

    times = Times()
    watches = (Watch(), Watch())
    async with run.stores.bare() as (driver, milvus):
        graph = Graph(driver, run.engine.settings.neo4j_database)
        labels = sorted(run.engine.domain.entities)
        made = await run.engine.index.info()
        writer = RawWriter(
            graph,
            milvus,
            run.engine.embedder,
            raw_cypher(labels),
            _PREFIX,
            any(info.lexical for info in made.values()),
        )
        sampler = _Sampler(run, writer)
        half = run.memories // 2
        if await _import(run, sampler, watches[0], times, tick, kill_at=half) is not None:
            msg = "the import was over before it could be killed"
            raise RuntimeError(msg)
        progress.console.print(f"killed within the batch of {memory_id(half)}; resuming")
        done = await _import(run, sampler, watches[1], times, tick, kill_at=None)
    if done is None:  # for the type checker: only who is killed says nothing
        raise AssertionError
    progress.update(task, completed=run.memories)
    left = await run.engine.graph.count_pending()
    await run.engine.reconcile()
    task = progress.add_task("check", total=None)
    counts = await _checked(run)
    progress.update(task, total=1, completed=1)
    task = progress.add_task("ecphoria verify", total=None)
    verified = await _verified(run)
    progress.update(task, total=1, completed=1)
    raw = [pair[1] for pair in times.pairs]
    raw_s = statistics.mean(raw) * times.batches
    return {
        "counts": counts,
        "tally": done["tally"],
        "left_by_the_kill": left,
        "batches": times.batches,
        "samples": len(raw),
        "seconds": {"product": round(times.product, 1), "raw, scaled": round(raw_s, 1)},
        "rows_per_s": {
            "product": round(BATCH_ITEMS * times.batches / times.product, 1),
            "raw": round(BATCH_ITEMS * times.batches / raw_s, 1),
        },
        "ratio": {
            "p50": round(statistics.median(ours / bare for ours, bare in times.pairs), 3),
            "of_totals": round(times.product / raw_s, 3),
        },
        "rows_per_s_by_tenth_of_samples": _by_tenth(times.pairs),
        "peak_mib_by_tenth": {
            "until the kill": watches[0].mib()[:5],
            "resumed": watches[1].mib()[5:],
        },
        "verify": verified,
    }


def _by_tenth(pairs: Sequence[tuple[float, float]]) -> list[dict[str, float]]:
    """Return the pace of both sides by how far the import was."""
    found = []
    for tenth in range(10):
        part = pairs[len(pairs) * tenth // 10 : len(pairs) * (tenth + 1) // 10]
        if part:
            rows = BATCH_ITEMS * len(part)
            ours, bare = (sum(pair[side] for pair in part) for side in (0, 1))
            found.append({"product": round(rows / ours, 1), "raw": round(rows / bare, 1)})
    return found


def _tables(name: str, found: Mapping[str, Any]) -> tuple[Table, ...]:
    title = f"Bulk import, {name}, {found['counts']['items']:,} lines, {found['samples']} samples"
    speed = Table(title=title, title_justify="left", title_style="bold")
    speed.add_column("")
    for column in ("seconds", "rows/s", "ratio p50", "ratio of totals"):
        speed.add_column(column, justify="right")
    rate, seconds, ratio = found["rows_per_s"], found["seconds"], found["ratio"]
    speed.add_row("raw writes, scaled", f"{seconds['raw, scaled']:,.0f}", f"{rate['raw']:,.0f}")
    speed.add_row(
        "import",
        f"{seconds['product']:,.0f}",
        f"{rate['product']:,.0f}",
        f"{ratio['p50']:.2f}",
        f"{ratio['of_totals']:.2f}",
        style="bold",
    )
    memory = Table(title="Peak resident memory, MiB", title_justify="left", title_style="bold")
    memory.add_column("")
    for tenth in range(1, 11):
        memory.add_column(f"{tenth}.", justify="right")
    peaks = found["peak_mib_by_tenth"]
    import_peaks = [*peaks["until the kill"], *peaks["resumed"]]
    memory.add_row("import, by tenths", *(f"{peak:.0f}" for peak in import_peaks))
    verify_peaks = found["verify"]["peak_mib_by_tenth_of_time"]
    memory.add_row("verify, by tenths of its time", *(f"{peak:.0f}" for peak in verify_peaks))
    return speed, memory


async def _run(arguments: argparse.Namespace, console: Console) -> dict[str, Any]:
    load_before = os.getloadavg()[0]
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="ecphoria-bulk-") as directory:
        root = Path(directory)
        async with open_store_set(arguments.stores, root / "stores") as stores:
            with progress_on(console) as progress:
                task = progress.add_task("make the data", total=arguments.memories)
                sizes = Sizes(arguments.users, arguments.memories, 0, as_it_comes=True)
                files = stream_files(sizes, root / "files", lambda: progress.advance(task))
                settings = stores.settings(_PREFIX, root / "parent")
                async with Engine.open(settings) as engine:
                    health = await engine.health()
                    run = _Run(
                        stores, engine, files, arguments.memories, arguments.sample_every, root
                    )
                    found = await _measure(run, progress)
    for table in _tables(arguments.stores, found):
        console.print(table)
    verified = found["verify"]
    console.print(
        f"verify: {verified['checked']:,} memories checked in {verified['seconds']:,.0f} s, "
        f"{verified['differences']} differences",
        highlight=False,
    )
    return {
        "graph": f"{health.graph.product} {health.graph.version}",
        "vectors": f"{health.vectors.product} {health.vectors.version}",
        "model": health.model,
        "users": arguments.users,
        **found,
        "load_average_before": round(load_before, 1),
        "load_average_after": round(os.getloadavg()[0], 1),
        "seconds_in_all": round(time.perf_counter() - start, 1),
    }


def main(given: Sequence[str] | None = None) -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bulk_import", description=__doc__)
    parser.add_argument("--memories", type=int, default=100_000, help="lines (default: 100000)")
    parser.add_argument("--users", type=int, default=2_000, help="users (default: 2000)")
    parser.add_argument("--stores", choices=STORE_SETS, default="embedded", help="store set")
    parser.add_argument(
        "--sample-every", type=int, default=10, help="batches between two samples (default: 10)"
    )
    parser.add_argument("--output", type=Path, default=RESULTS, help="file for the figures")
    arguments = parser.parse_args(given)
    configure_logging("warning")
    console = Console()
    try:
        found = asyncio.run(_run(arguments, console))
    except LeftOut as error:
        console.print(f"[yellow]left out[/]: {error}", highlight=False)
        return 1
    old = json.loads(arguments.output.read_text("utf-8")) if arguments.output.exists() else {}
    figures = {
        **old,
        "machine": machine(),
        "stores": {**old.get("stores", {}), arguments.stores: found},
    }
    text = json.dumps(figures, ensure_ascii=False, indent=2) + "\n"
    arguments.output.write_text(text, encoding="utf-8")
    console.print(f"Figures written to {arguments.output.name}.", highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
