"""What must happen at the least for the same nodes, links and rows as the product has stored.

What a set of memories left in the stores is read back once it is there: every property, link, claim
and waiting mention. The raw side then writes that for another tenant: embed the texts, one
transaction, one upsert a kind. It decides nothing, looks nothing up and writes nothing twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from neo4j import AsyncDriver, AsyncManagedTransaction
from pymilvus import AsyncMilvusClient

from benchmarks.figures import timed
from ecphoria.embedding.port import Embedder
from ecphoria.model import Memory, vector_id
from ecphoria.remember.indexing import vector_row
from ecphoria.stores.graph_rows import memory_from, native, native_props, split_key
from ecphoria.stores.milvus_collections import TERMS_FIELD, vector_field
from ecphoria.stores.milvus_filter import OPEN_END, milliseconds
from ecphoria.stores.milvus_rows import stored_terms
from ecphoria_schema.domain import KINDS, Kind

EMBED: Final = "embed the texts"
CYPHER: Final = "one transaction"
UPSERT: Final = "upsert, 3 kinds in turn"
RAW: Final = "sum of the raw writes"

_PAGE: Final = 1_000
_RELATIONS: Final = ("SUPERSEDES", "CONFLICTS_WITH", "POSSIBLE_UPDATE_OF")

_MEMORIES: Final = (
    "UNWIND $keys AS k MATCH (m:Memory {key: k}) "
    "RETURN properties(m) AS props, [(m)-[:FROM_SOURCE]->(s) | s.key] AS sources, "
    "[(m)-[a:ABOUT]->(e) | {key: e.key, certainty: a.certainty, how: a.how, "
    "attribute: a.attribute, value: a.value}] AS about"
)
_BETWEEN: Final = (
    f"UNWIND $keys AS k MATCH (a:Memory {{key: k}})-[r:{'|'.join(_RELATIONS)}]->(b:Memory) "
    "RETURN type(r) AS type, k AS start, b.key AS end, properties(r) AS props"
)
_CLAIMS: Final = "UNWIND $keys AS k MATCH (c:Claim {key: k}) RETURN properties(c) AS props"
_MENTIONS: Final = "UNWIND $keys AS k MATCH (n:Mention {memory: k}) RETURN properties(n) AS props"
_SOURCES: Final = "MATCH (s:Source) WHERE s.tenant = $tenant RETURN properties(s) AS props"

Props = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RawMemory:
    """A memory as the stores hold it.

    Attributes:
        props: Of its node.
        about: Links to entities, by the entity's label.
        source: Key of its source.
    """

    props: Props
    about: Mapping[str, Sequence[Props]]
    source: str

    def row(self) -> Memory:
        """Return what its row of the vector index is made from."""
        return memory_from(self.props, ())


@dataclass(slots=True)
class RawBatch:
    """What a batch left in the stores.

    Attributes:
        nodes: Properties of claims and mentions, by label.
        relations: Relations between memories, by type.
    """

    memories: list[RawMemory] = field(default_factory=list)
    nodes: dict[str, list[Props]] = field(default_factory=lambda: defaultdict(list))
    relations: dict[str, list[Props]] = field(default_factory=lambda: defaultdict(list))

    def of(self, old: str, new: str) -> RawBatch:
        """Return the same of another tenant."""

        def moved(value: Any) -> Any:  # noqa: ANN401 - a property may be of any type
            if isinstance(value, str):
                return f"{new}|{value[len(old) + 1 :]}" if value.startswith(f"{old}|") else value
            if isinstance(value, dict):
                tenant = {"tenant": new} if value.get("tenant") == old else {}
                return {name: moved(each) for name, each in value.items()} | tenant
            return [moved(each) for each in value] if isinstance(value, list) else value

        return RawBatch(
            [
                RawMemory(moved(item.props), moved(dict(item.about)), moved(item.source))
                for item in self.memories
            ],
            moved(dict(self.nodes)),
            moved(dict(self.relations)),
        )


@dataclass(frozen=True, slots=True)
class Graph:
    """A bare driver and the database to use."""

    driver: AsyncDriver
    database: str

    async def rows(self, text: str, **parameters: object) -> list[Props]:
        """Return the rows of a query."""
        async with self.driver.session(database=self.database) as session:
            result = await session.run(text, parameters)
            return [dict(record) async for record in result]

    async def write(self, statements: Sequence[tuple[str, Props]]) -> None:
        """Run statements in one transaction."""

        async def work(tx: AsyncManagedTransaction) -> None:
            for text, parameters in statements:
                result = await tx.run(text, parameters)
                await result.consume()

        async with self.driver.session(database=self.database) as session:
            await session.execute_write(work)


# --- reading back --------------------------------------------------------------------------


async def keys_of(graph: Graph, tenant: str) -> list[str]:
    """Return the keys of all memories of a tenant."""
    text = "MATCH (m:Memory) WHERE m.tenant = $tenant RETURN m.key AS key ORDER BY key"
    return [row["key"] for row in await graph.rows(text, tenant=tenant)]


async def stored(graph: Graph, keys: Sequence[str]) -> RawBatch:
    """Return what the graph holds of memories; relations to any others are left out."""
    found = RawBatch()
    for start in range(0, len(keys), _PAGE):
        page = list(keys[start : start + _PAGE])
        found.memories += [_memory(row) for row in await graph.rows(_MEMORIES, keys=page)]
        for row in await graph.rows(_MENTIONS, keys=page):
            found.nodes["Mention"].append(native_props(row["props"]))
        for row in await graph.rows(_BETWEEN, keys=page):
            ends = {"start": row["start"], "end": row["end"]}
            found.relations[row["type"]].append(ends | {"props": native_props(row["props"])})
    known = set(keys)
    for type_, rows in found.relations.items():
        found.relations[type_] = [row for row in rows if row["end"] in known]
    claims = sorted({item.props["claim"] for item in found.memories if "claim" in item.props})
    for start in range(0, len(claims), _PAGE):
        for row in await graph.rows(_CLAIMS, keys=claims[start : start + _PAGE]):
            found.nodes["Claim"].append(native_props(row["props"]))
    return found


def _memory(row: Props) -> RawMemory:
    about: dict[str, list[Props]] = defaultdict(list)
    for link in row["about"]:
        label = split_key(link["key"])[1].type
        about[label].append({name: native(value) for name, value in link.items()})
    props = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in native_props(row["props"]).items()
    }
    return RawMemory(props, dict(about), row["sources"][0])


def in_batches(whole: RawBatch, batch_of: Mapping[str, int]) -> list[RawBatch]:
    """Return what was stored in batches, each with what needs nothing of a later one.

    Args:
        whole: All of it.
        batch_of: Key of a memory -> number of its batch.
    """
    batches = [RawBatch() for _ in range(max(batch_of.values()) + 1)]
    claimed: dict[str, int] = {}
    for item in whole.memories:
        number = batch_of[item.props["key"]]
        batches[number].memories.append(item)
        claim = item.props.get("claim")
        if claim is not None:
            claimed[claim] = min(number, claimed.get(claim, number))
    for node in whole.nodes.get("Mention", ()):
        batches[batch_of[node["memory"]]].nodes["Mention"].append(node)
    for node in whole.nodes.get("Claim", ()):
        batches[claimed[node["key"]]].nodes["Claim"].append(node)
    for type_, rows in whole.relations.items():
        for row in rows:
            number = max(batch_of[row["start"]], batch_of[row["end"]])
            batches[number].relations[type_].append(row)
    return batches


# --- writing -------------------------------------------------------------------------------


def raw_cypher(labels: Iterable[str]) -> str:
    """Return the one text that creates memories with their links to entities and sources."""
    links = "\n".join(
        f"CALL (m, row) {{ UNWIND coalesce(row.about.{label}, []) AS l "
        f"MATCH (e:{label} {{key: l.key}}) CREATE (m)-[:ABOUT {{certainty: l.certainty, "
        f"how: l.how, attribute: l.attribute, value: l.value}}]->(e) RETURN count(*) AS n{place} }}"
        for place, label in enumerate(labels)
    )
    return (
        "UNWIND $rows AS row\nCREATE (m:Memory) SET m = row.props\n"
        "WITH m, row MATCH (s:Source {key: row.source}) CREATE (m)-[:FROM_SOURCE]->(s)\n"
        f"WITH m, row\n{links}\nRETURN count(m) AS memories"
    )


def _statements(cypher: str, batch: RawBatch) -> list[tuple[str, Props]]:
    rows = [
        {"props": item.props, "source": item.source, "about": item.about} for item in batch.memories
    ]
    found: list[tuple[str, Props]] = [(cypher, {"rows": rows})]
    for label, nodes in batch.nodes.items():
        # a claim outlives a batch
        text = f"UNWIND $rows AS row MERGE (n:{label} {{key: row.key}}) SET n = row"
        found.append((text, {"rows": nodes}))
    for type_, between in batch.relations.items():
        text = (
            "UNWIND $rows AS row MATCH (a:Memory {key: row.start}) "
            f"MATCH (b:Memory {{key: row.end}}) CREATE (a)-[r:{type_}]->(b) SET r = row.props"
        )
        found.append((text, {"rows": between}))
    return [each for each in found if each[1]["rows"]]


@dataclass(frozen=True, slots=True)
class RawWriter:
    """Writes without an engine around them.

    Attributes:
        cypher: Of `raw_cypher`.
        collections: Beginning of the names of the collections to write to.
        lexical: Whether their rows have terms.
    """

    graph: Graph
    milvus: AsyncMilvusClient
    embedder: Embedder
    cypher: str
    collections: str
    lexical: bool

    async def sources(self, old: str, new: str) -> None:
        """Copy the nodes of the sources to another tenant, which the product finds there, too."""
        rows = [native_props(row["props"]) for row in await self.graph.rows(_SOURCES, tenant=old)]
        moved = RawBatch(nodes={"Source": rows}).of(old, new).nodes["Source"]
        text = "UNWIND $rows AS row MERGE (s:Source {key: row.key}) SET s = row"
        await self.graph.write([(text, {"rows": moved})])

    async def write(self, batch: RawBatch) -> dict[str, float]:
        """Write a batch; return the milliseconds of the parts."""
        statements = _statements(self.cypher, batch)
        records = [(item.props["kind"], _record(item.row())) for item in batch.memories]
        texts = [item.props["text"] for item in batch.memories]
        vectors, embed = await timed(self.embedder.embed_passages(texts))
        _, graph = await timed(self.graph.write(statements))
        name = vector_field(self.embedder.spec)
        for (_, record), vector in zip(records, vectors, strict=True):
            record[name] = vector
            if not self.lexical:
                del record[TERMS_FIELD]
        by_kind = {kind: [each for its, each in records if its == kind] for kind in KINDS}
        _, upsert = await timed(self._upsert(by_kind))
        return {EMBED: embed, CYPHER: graph, UPSERT: upsert, RAW: embed + graph + upsert}

    async def _upsert(self, by_kind: Mapping[Kind, list[dict[str, object]]]) -> None:
        for kind, rows in by_kind.items():
            if rows:
                await self.milvus.upsert(f"{self.collections}_{kind}", rows)


def _record(memory: Memory) -> dict[str, object]:
    """Return a memory's row of the vector index, without its vector."""
    row = vector_row(memory, ())
    end, expiry = row.valid_until, row.expires_at
    return {
        "id": vector_id(row.key),
        "key": row.key,
        "tenant": row.tenant,
        "user_id": row.user_id or "",
        "topic": row.topic or "",
        "source_id": row.source_id,
        "privacy": row.privacy,
        "status": row.status,
        "tier": row.tier,
        "lang": row.lang,
        "hash": row.hash,
        "importance": row.importance,
        "valid_from": milliseconds(row.valid_from),
        "valid_until": OPEN_END if end is None else milliseconds(end),
        "expires_at": OPEN_END if expiry is None else milliseconds(expiry),
        TERMS_FIELD: stored_terms(row),
    }
