"""Writing through the product against raw store writes of the same memories, batch by batch.

Two ways through the product are measured:

- `import_files`, which `ecphoria import` runs, with ids given: lines are read and checked, texts
  cut into facts, tagged and linked, the graph written in one transaction with claims and an outbox,
  texts embedded, rows upserted and marked, the progress kept.
- `Engine.remember` of memories without ids: each is compared with what is known, too.

A raw batch is what must happen at the least for the same nodes, links and rows (`raw_writes`).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

from benchmarks.data import ENTITIES, MEMORIES, RELATIONS
from benchmarks.figures import Series, timed
from benchmarks.raw_writes import (
    CYPHER,
    EMBED,
    RAW,
    UPSERT,
    Graph,
    RawBatch,
    RawWriter,
    in_batches,
    keys_of,
    raw_cypher,
    stored,
)
from benchmarks.recorder import Search, raw_search, watched_index
from benchmarks.stores import StoreSet
from ecphoria.bulk_import import import_files
from ecphoria.engine import Engine
from ecphoria.model import MemoryInput, Receipt, ReceiptStatus, Scope
from ecphoria.stores.milvus import MilvusIndex

IMPORT: Final = "import_files"
REMEMBER: Final = "remember, no ids"
SEARCH: Final = "searches for what is like it"

_SEARCHES_AT_ONCE: Final = 8
_GOOD: Final = frozenset(ReceiptStatus) - {ReceiptStatus.REJECTED}

Tick = Callable[[], None]
# One step is one batch, written and indexed.
_Steps = AsyncIterator[None]


@dataclass(frozen=True, slots=True)
class Way:
    """A way to write through the product.

    Attributes:
        files: Of the data set, by name; entities and relations are there before.
        steps: Writes into an engine, batch by batch.
        batches: How many there are.
        compares: Whether it searches for what is like each memory.
    """

    name: str
    files: Mapping[str, str]
    steps: Callable[[Engine, Scope], _Steps]
    batches: int
    compares: bool = False

    def pairs(self, rounds: int) -> int:
        """Return how many ticks a measurement makes."""
        return self.batches * (rounds + 1) + 1


def by_import(files: Mapping[str, str], memories: int, batch: int) -> Way:
    """Return the import of a file of memories with ids."""

    async def steps(engine: Engine, scope: Scope) -> _Steps:
        lines = 0
        async for step in import_files(engine, scope, (files[MEMORIES],), batch_items=batch):
            if step.bad or step.unindexed:
                msg = f"the import left something out: {step}"
                raise RuntimeError(msg)
            # the last event tells of the end of the file only
            if step.lines > lines:
                lines = step.lines
                yield

    return Way(IMPORT, files, steps, -(-memories // batch))


def by_remember(files: Mapping[str, str], memories: Sequence[MemoryInput], batch: int) -> Way:
    """Return the remembering of memories without ids."""
    items = [replace(item, id=None) for item in memories]

    async def steps(engine: Engine, scope: Scope) -> _Steps:
        for start in range(0, len(items), batch):
            _check(await engine.remember(scope, items[start : start + batch]))
            yield

    return Way(REMEMBER, files, steps, -(-len(items) // batch), compares=True)


def _check(receipts: Sequence[Receipt]) -> None:
    for receipt in receipts:
        if receipt.status not in _GOOD or not receipt.indexed or receipt.notes:
            msg = f"something was left out: {receipt}"
            raise RuntimeError(msg)


@dataclass(frozen=True, slots=True)
class _Batch:
    """What the raw side has to do for a batch."""

    written: RawBatch
    searches: Sequence[Search] = ()

    def of(self, old: str, new: str) -> _Batch:
        moved = [
            replace(each, filter=replace(each.filter, tenant=new), hits=())
            for each in self.searches
        ]
        return _Batch(self.written.of(old, new), moved)


@dataclass(frozen=True, slots=True)
class _Sides:
    """Fresh tenants and collections for both sides, which the stack drops at the end."""

    stack: AsyncExitStack
    engine: Engine
    stores: StoreSet
    scope: Scope
    files: Mapping[str, str]

    async def opened(self, name: str) -> tuple[Engine, Scope]:
        """Return an engine and a scope of a fresh tenant that holds the entities."""
        settings = self.engine.settings.model_copy(update={"collection_prefix": name})
        index = MilvusIndex(
            self.stores.milvus_uri, token=None, prefix=name, timeout_s=settings.store_timeout_s
        )
        self.stack.push_async_callback(index.close)
        self.stack.push_async_callback(index.drop)
        await index.prepare(self.engine.embedder.spec)
        engine, scope = (
            replace(self.engine, index=index, settings=settings),
            replace(self.scope, tenant=name),
        )
        files = (self.files[ENTITIES], self.files[RELATIONS])
        async for step in import_files(engine, scope, files):
            if step.bad:
                msg = f"the made-up data is refused: {step.bad[0]}"
                raise RuntimeError(msg)
        return engine, scope


async def measure_writing(
    engine: Engine,
    stores: StoreSet,
    scope: Scope,
    way: Way,
    *,
    rounds: int,
    tick: Tick,
) -> dict[str, Any]:
    """Return the figures of writing into fresh tenants and collections.

    Args:
        engine: Whose graph to write to; the vectors go to collections of their own.
        stores: Where the bare clients connect to.
        scope: Whose roles to write with.
        way: How the product writes.
        rounds: How often everything is written by each side.
        tick: Called after every batch of the first run by the product, whose outcome the raw side
            copies, after a pair that warms up, and after every pair.
    """
    series = Series()
    counts: dict[str, int] = {}
    # either side comes first equally often
    raw_first = itertools.cycle((False, True))
    letter = "r" if way.compares else "i"
    first = f"bench{letter}first"
    async with stores.bare() as (driver, milvus):
        graph = Graph(driver, engine.settings.neo4j_database)
        async with AsyncExitStack() as stack:
            sides = _Sides(stack, engine, stores, scope, way.files)
            batches = await _first_run(sides, way, first, graph, tick)
        labels = sorted(
            {label for each in batches for item in each.written.memories for label in item.about}
        )
        for number in range(rounds + 1):
            warming = number == 0
            async with AsyncExitStack() as stack:
                sides = _Sides(stack, engine, stores, scope, way.files)
                product = await sides.opened(f"bench{letter}product{number}")
                bare, _ = await sides.opened(f"bench{letter}raw{number}")
                prefix = bare.settings.collection_prefix
                made = await bare.index.info()
                lexical = any(info.lexical for info in made.values())
                raw = RawWriter(graph, milvus, engine.embedder, raw_cypher(labels), prefix, lexical)
                await raw.sources(first, prefix)
                mine = [each.of(first, prefix) for each in batches[: 1 if warming else None]]
                into = Series() if warming else series
                await _pairs(way.steps(*product), mine, raw, raw_first, into, way.name, tick)
                if not warming:
                    counts = await _counted(graph, (product[0], bare))
    return _figures(series, counts, way, rounds)


def _figures(series: Series, counts: dict[str, int], way: Way, rounds: int) -> dict[str, Any]:
    rows = rounds * counts["memories"]
    parts = (EMBED, *((SEARCH,) if way.compares else ()), CYPHER, UPSERT, RAW)
    return {
        "rounds": rounds,
        "pairs": len(series.times[RAW]),
        "seconds": {name: round(series.total_s(name), 2) for name in (*parts, way.name)},
        "rows_per_s": {name: round(rows / series.total_s(name), 1) for name in (RAW, way.name)},
        "ratio": series.ratio(way.name, RAW)
        | {"of_totals": round(series.total_s(way.name) / series.total_s(RAW), 3)},
        "written": counts,
    }


async def _first_run(
    sides: _Sides, way: Way, tenant: str, graph: Graph, tick: Tick
) -> list[_Batch]:
    """Write by the product once; return what the raw side has to do for each batch."""
    engine, scope = await sides.opened(tenant)
    watched, seen = watched_index(engine)
    batch_of: dict[str, int] = {}
    searches: list[Sequence[Search]] = []
    async for _ in way.steps(watched, scope):
        for key in await keys_of(graph, tenant):
            batch_of.setdefault(key, len(searches))
        searches.append(tuple(seen.searches))
        seen.clear()
        tick()
    written = in_batches(await stored(graph, list(batch_of)), batch_of)
    return [_Batch(*pair) for pair in zip(written, searches, strict=True)]


async def _pairs(
    steps: _Steps,
    batches: Sequence[_Batch],
    raw: RawWriter,
    raw_first: Iterator[bool],
    into: Series,
    name: str,
    tick: Tick,
) -> None:
    """Write batch after batch, each by both sides; the product's times go by its name."""

    async def step() -> None:
        await anext(steps)

    for batch, first in zip(batches, raw_first, strict=False):
        if first:
            await _by_raw(raw, batch, into)
        _, taken = await timed(step())
        into.add(name, taken)
        if not first:
            await _by_raw(raw, batch, into)
        tick()


async def _by_raw(raw: RawWriter, batch: _Batch, into: Series) -> None:
    searching = 0.0
    if batch.searches:
        _, searching = await timed(_searched(raw, batch.searches))
        into.add(SEARCH, searching)
    for name, taken in (await raw.write(batch.written)).items():
        into.add(name, taken + searching if name == RAW else taken)


async def _searched(raw: RawWriter, searches: Sequence[Search]) -> None:
    gate = asyncio.Semaphore(_SEARCHES_AT_ONCE)

    async def search(each: Search) -> None:
        async with gate:
            await raw_search(
                raw.milvus, raw.collections, each, spec=raw.embedder.spec, consistency="Session"
            )

    await asyncio.gather(*(search(each) for each in searches))


async def _counted(graph: Graph, engines: Sequence[Engine]) -> dict[str, int]:
    """Count what both sides have written.

    Raises:
        RuntimeError: When it is not the same.
    """
    nodes = "MATCH (n:{}) WHERE n.key STARTS WITH $tenant RETURN count(n) AS count"
    links = (
        "MATCH (m:Memory) WHERE m.tenant = $tenant "
        "MATCH (m)-[r:ABOUT|FROM_SOURCE|SUPERSEDES|CONFLICTS_WITH|POSSIBLE_UPDATE_OF]->() "
        "RETURN count(r) AS count"
    )
    counts: list[dict[str, int]] = []
    for engine in engines:
        tenant = engine.settings.collection_prefix
        found = {
            name: (await graph.rows(nodes.format(label), tenant=f"{tenant}|"))[0]["count"]
            for name, label in (("memories", "Memory"), ("claims", "Claim"), ("waiting", "Mention"))
        }
        (row,) = await graph.rows(links, tenant=tenant)
        counts.append(found | {"links": row["count"], "vectors": await engine.index.count(tenant)})
    product, raw = counts
    if product != raw:
        msg = f"the product wrote {product}, the raw writes {raw}"
        raise RuntimeError(msg)
    return product
