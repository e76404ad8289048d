"""Import through the product against raw store writes of the same memories, batch by batch.

A batch by the product is one step of `import_files`, which `ecphoria import` runs: lines are read
and checked, texts tagged and linked, the graph written in one transaction, texts embedded, rows
upserted and marked, the progress kept. A raw batch is what must happen at the least for the same
nodes, links and rows: embed the texts, one Cypher, one upsert a kind.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from neo4j import AsyncDriver, AsyncManagedTransaction
from pymilvus import AsyncMilvusClient

from benchmarks.data import ENTITIES, MEMORIES, RELATIONS
from benchmarks.figures import Series, timed
from benchmarks.recorder import Seen, watched_engine
from benchmarks.stores import StoreSet
from ecphoria.bulk_import import import_files
from ecphoria.engine import Engine
from ecphoria.model import Scope, vector_id
from ecphoria.stores.milvus import MilvusIndex
from ecphoria.stores.milvus_filter import OPEN_END, milliseconds
from ecphoria_schema.domain import KINDS, Kind
from ecphoria_schema.queries import query

EMBED: Final = "embed the texts"
CYPHER: Final = "one Cypher"
UPSERT: Final = "upsert, 3 kinds in turn"
RAW: Final = "sum of the raw writes"
PRODUCT: Final = "import_files"

Tick = Callable[[], None]


@dataclass(frozen=True, slots=True)
class RawMemory:
    """A memory as the stores hold it in the end, but for the tenant.

    Attributes:
        about: Keys of entities by label.
    """

    props: Mapping[str, Any]
    about: Mapping[str, Sequence[str]]
    source: Mapping[str, Any]

    def of(self, tenant: str) -> RawMemory:
        """Return the same memory in another tenant."""
        old = f"{self.props['tenant']}|"

        def moved(key: str) -> str:
            return f"{tenant}|{key.removeprefix(old)}"

        return RawMemory(
            dict(self.props) | {"tenant": tenant, "key": moved(self.props["key"])},
            {label: [moved(key) for key in keys] for label, keys in self.about.items()},
            dict(self.source) | {"source_key": moved(self.source["source_key"])},
        )


async def load(
    engine: Engine,
    stores: StoreSet,
    scope: Scope,
    files: Mapping[str, str],
    batch: int,
    moved: Callable[[int], None],
) -> tuple[RawMemory, ...]:
    """Import the files and return the memories as they were written, in the file's order."""
    async with stores.bare() as (driver, _):
        watched, seen = watched_engine(engine, driver)
        lines = 0
        written: list[RawMemory] = []
        order = (files[ENTITIES], files[RELATIONS], files[MEMORIES])
        async for step in import_files(watched, scope, order, batch_items=batch):
            if step.bad:
                msg = f"the made-up data is refused: {step.bad[0]}"
                raise RuntimeError(msg)
            moved(step.lines - lines)
            lines = step.lines
            written += _written(engine, seen)
            seen.clear()
    # within a batch the engine writes by key, which is the file's order, too
    return tuple(written)


def _written(engine: Engine, seen: Seen) -> list[RawMemory]:
    merged = query("merge_memories")
    labels = {query("link_about", label=label): label for label in engine.domain.entities}
    sources = query("link_source")
    props: dict[str, Mapping[str, Any]] = {}
    about: dict[str, dict[str, list[str]]] = {}
    source: dict[str, Mapping[str, Any]] = {}
    for statement in seen.statements:
        rows = statement.parameters.get("rows", ())
        if statement.text == merged:
            props |= {row["key"]: row["props"] for row in rows}
        elif statement.text in labels:
            for row in rows:
                links = about.setdefault(row["memory"], {})
                links.setdefault(labels[statement.text], []).append(row["entity"])
        elif statement.text == sources:
            source |= {row["memory"]: row for row in rows}
    return [
        RawMemory(dict(values) | {"index_state": "indexed"}, about.get(key, {}), dict(source[key]))
        for key, values in props.items()
    ]


def raw_cypher(labels: Sequence[str]) -> str:
    """Return the one text that creates memories with all their links."""
    links = "\n".join(
        f"CALL (m, row) {{ UNWIND coalesce(row.about.{label}, []) AS k "
        f"MATCH (e:{label} {{key: k}}) CREATE (m)-[:ABOUT]->(e) RETURN count(*) AS n{place} }}"
        for place, label in enumerate(labels)
    )
    return (
        "UNWIND $rows AS row\nCREATE (m:Memory) SET m = row.props\n"
        "WITH m, row MATCH (s:Source {key: row.source}) CREATE (m)-[:FROM_SOURCE]->(s)\n"
        f"WITH m, row\n{links}\nRETURN count(m) AS memories"
    )


def vector_record(memory: RawMemory) -> dict[str, object]:
    """Return a memory's row of the vector index, without its vector."""
    props = memory.props

    def moment(name: str) -> int:
        value: datetime | None = props.get(name)
        return OPEN_END if value is None else milliseconds(value)

    return {
        "id": vector_id(props["key"]),
        "user_id": props.get("user_id", ""),
        "topic": props.get("topic", ""),
        **{
            name: props[name]
            for name in (
                "key",
                "tenant",
                "source_id",
                "privacy",
                "status",
                "tier",
                "lang",
                "importance",
            )
        },
        **{name: moment(name) for name in ("valid_from", "valid_until", "expires_at")},
    }


@dataclass(frozen=True, slots=True)
class _Raw:
    """Writes without an engine around them, into collections of a prefix of their own."""

    engine: Engine
    driver: AsyncDriver
    milvus: AsyncMilvusClient
    cypher: str
    prefix: str = ""  # of the collections, and the tenant

    async def sources(self, memories: Sequence[RawMemory]) -> None:
        """Create the nodes of the sources, which the product has after its first batch."""
        rows = {item.source["source_key"]: dict(item.source) for item in memories}
        text = (
            "UNWIND $rows AS row MERGE (s:Source {key: row.source_key}) "
            "SET s.tenant = $tenant, s.id = row.source_id, s.name = row.source_name, "
            "s.reliability = row.reliability, s.disabled = false"
        )
        await self._graph(text, rows=list(rows.values()), tenant=self.prefix)

    async def _graph(self, text: str, **parameters: object) -> None:
        async def work(tx: AsyncManagedTransaction) -> None:
            result = await tx.run(text, parameters)
            await result.consume()

        async with self.driver.session(database=self.engine.settings.neo4j_database) as session:
            await session.execute_write(work)

    async def write(self, memories: Sequence[RawMemory]) -> dict[str, float]:
        """Write a batch; return the times of the parts."""
        rows = [
            {
                "props": item.props,
                "source": item.source["source_key"],
                "about": item.about,
            }
            for item in memories
        ]
        records = [vector_record(item) for item in memories]
        texts = [item.props["text"] for item in memories]
        vectors, embed = await timed(self.engine.embedder.embed_passages(texts))
        _, graph = await timed(self._graph(self.cypher, rows=rows))
        for record, vector in zip(records, vectors, strict=True):
            record["dense"] = vector
        by_kind = {
            kind: [
                record
                for record, item in zip(records, memories, strict=True)
                if item.props["kind"] == kind
            ]
            for kind in KINDS
        }
        _, upsert = await timed(self._upsert(by_kind))
        return {EMBED: embed, CYPHER: graph, UPSERT: upsert, RAW: embed + graph + upsert}

    async def _upsert(self, by_kind: Mapping[Kind, list[dict[str, object]]]) -> None:
        for kind, rows in by_kind.items():
            if rows:
                await self.milvus.upsert(f"{self.prefix}_{kind}", rows)


@dataclass(frozen=True, slots=True)
class _Turn:
    """One import by each side: tenants and collections of their own."""

    raw: _Raw
    engines: Mapping[str, Engine]
    product: str
    scope: Scope


async def _opened(
    stack: AsyncExitStack,
    engine: Engine,
    stores: StoreSet,
    scope: Scope,
    files: Mapping[str, str],
    raw: _Raw,
    number: int,
) -> _Turn:
    """Make fresh tenants that hold the entities, and collections that the stack drops."""
    engines: dict[str, Engine] = {}
    product, bare = names = f"benchproduct{number}", f"benchraw{number}"
    for name in names:
        settings = engine.settings.model_copy(update={"collection_prefix": name})
        index = MilvusIndex(
            stores.milvus_uri, token=None, prefix=name, timeout_s=settings.store_timeout_s
        )
        stack.push_async_callback(index.close)
        stack.push_async_callback(index.drop)
        await index.prepare(engine.embedder.spec)
        engines[name] = replace(engine, index=index, settings=settings)
        async for _ in import_files(
            engines[name], replace(scope, tenant=name), (files[ENTITIES], files[RELATIONS])
        ):
            pass
    return _Turn(replace(raw, prefix=bare), engines, product, replace(scope, tenant=product))


async def _turn(
    turn: _Turn,
    file: str,
    batches: Sequence[Sequence[RawMemory]],
    raw_first: Iterator[bool],
    into: Series,
    tick: Tick,
) -> None:
    """Write batch after batch, each by both sides."""
    steps = import_files(
        turn.engines[turn.product], turn.scope, (file,), batch_items=len(batches[0])
    )
    for batch, first in zip(batches, raw_first, strict=False):
        if first:
            await _by_raw(turn, batch, into)
        step, taken = await timed(anext(steps))
        if step.bad or step.unindexed:
            msg = f"the import left something out: {step}"
            raise RuntimeError(msg)
        into.add(PRODUCT, taken)
        if not first:
            await _by_raw(turn, batch, into)
        tick()


async def _by_raw(turn: _Turn, batch: Sequence[RawMemory], into: Series) -> None:
    for name, taken in (await turn.raw.write(batch)).items():
        into.add(name, taken)


async def measure_import(
    engine: Engine,
    stores: StoreSet,
    scope: Scope,
    files: Mapping[str, str],
    memories: Sequence[RawMemory],
    *,
    batch: int,
    rounds: int,
    tick: Tick,
) -> dict[str, Any]:
    """Return the figures of imports into fresh tenants and collections.

    Args:
        engine: Whose graph to write to; the vectors go to collections of their own.
        stores: Where the bare clients connect to.
        scope: Whose roles to write with.
        files: Of the data set, by name.
        memories: The same memories, as `load` returned them.
        batch: Memories a write, on both sides.
        rounds: How often everything is imported by each.
        tick: Called after every pair of batches; there is one pair more, which warms up.
    """
    series = Series()
    counts: dict[str, int] = {}
    # either side comes first equally often
    raw_first = itertools.cycle((False, True))
    labels = sorted({label for item in memories for label in item.about})
    async with stores.bare() as (driver, milvus):
        raw = _Raw(engine, driver, milvus, raw_cypher(labels))
        for number in range(rounds + 1):
            warming = number == 0
            async with AsyncExitStack() as stack:
                turn = await _opened(stack, engine, stores, scope, files, raw, number)
                mine = [item.of(turn.raw.prefix) for item in memories]
                await turn.raw.sources(mine)
                batches = [mine[start : start + batch] for start in range(0, len(mine), batch)]
                await _turn(
                    turn,
                    files[MEMORIES],
                    batches[:1] if warming else batches,
                    raw_first,
                    Series() if warming else series,
                    tick,
                )
                if not warming:
                    counts = await _counted(turn, driver)
    rows = rounds * len(memories)
    return {
        "memories": len(memories),
        "batch": batch,
        "rounds": rounds,
        "pairs": len(series.times[RAW]),
        "seconds": {
            name: round(series.total_s(name), 2) for name in (EMBED, CYPHER, UPSERT, RAW, PRODUCT)
        },
        "rows_per_s": {name: round(rows / series.total_s(name), 1) for name in (RAW, PRODUCT)},
        "ratio": series.ratio(PRODUCT, RAW)
        | {"of_totals": round(series.total_s(PRODUCT) / series.total_s(RAW), 3)},
        "written": counts,
    }


def pairs(memories: int, batch: int, rounds: int) -> int:
    """Return how many ticks a measurement makes."""
    return 1 + rounds * -(-memories // batch)


async def _counted(turn: _Turn, driver: AsyncDriver) -> dict[str, int]:
    """Count what both sides have written.

    Raises:
        RuntimeError: When it is not the same.
    """
    text = (
        "MATCH (m:Memory) WHERE m.tenant = $tenant "
        "OPTIONAL MATCH (m)-[r:ABOUT|FROM_SOURCE]->() "
        "RETURN count(DISTINCT m) AS nodes, count(r) AS links"
    )
    counts: list[dict[str, int]] = []
    for tenant, engine in turn.engines.items():
        async with driver.session(database=engine.settings.neo4j_database) as session:
            (row,) = await (await session.run(text, tenant=tenant)).data()
        counts.append({**row, "vectors": await engine.index.count(tenant)})
    product, raw = counts
    if product != raw:
        msg = f"the product wrote {product}, the raw writes {raw}"
        raise RuntimeError(msg)
    return product
