"""Watch what an engine sends to its stores, so that the same can be sent without it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from neo4j import AsyncDriver, AsyncManagedTransaction, AsyncResult, AsyncSession
from pymilvus import AsyncMilvusClient

from ecphoria.engine import Engine
from ecphoria.model import EmbeddingSpec, Vector
from ecphoria.stores.milvus_collections import LEXICAL_FIELD, TERMS_FIELD, vector_field
from ecphoria.stores.milvus_filter import expression
from ecphoria.stores.neo4j import Neo4jGraph
from ecphoria.stores.ports import TermHit, VectorFilter, VectorHit, VectorIndex
from ecphoria_schema.domain import Kind

Result = TypeVar("Result")
_Work = Callable[[AsyncManagedTransaction], Awaitable[Result]]


@dataclass(frozen=True, slots=True)
class Statement:
    """A Cypher text and its parameters."""

    text: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Search:
    """A search of one kind, and what it found."""

    kind: Kind
    vector: Vector
    filter: VectorFilter
    limit: int
    hits: tuple[VectorHit, ...]


@dataclass(frozen=True, slots=True)
class TermSearch:
    """A search of one kind by terms, and what it found."""

    kind: Kind
    terms: tuple[str, ...]
    filter: VectorFilter
    limit: int
    hits: tuple[TermHit, ...]


@dataclass(slots=True)
class Seen:
    """What was sent since the last `clear`."""

    statements: list[Statement] = field(default_factory=list)
    searches: list[Search] = field(default_factory=list)
    term_searches: list[TermSearch] = field(default_factory=list)

    def clear(self) -> None:
        """Forget it."""
        self.statements.clear()
        self.searches.clear()
        self.term_searches.clear()


@dataclass(frozen=True, slots=True)
class _Transaction:
    inner: AsyncManagedTransaction
    seen: Seen

    async def run(self, text: str, parameters: Mapping[str, Any]) -> AsyncResult:
        self.seen.statements.append(Statement(text, parameters))
        return await self.inner.run(text, dict(parameters))


@dataclass(frozen=True, slots=True)
class _Session:
    inner: AsyncSession
    seen: Seen

    async def __aenter__(self) -> Self:
        await self.inner.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.inner.__aexit__(kind, error, trace)  # type: ignore[no-untyped-call]

    def _watched(self, work: _Work[Result]) -> _Work[Result]:
        async def watched(tx: AsyncManagedTransaction) -> Result:
            return await work(cast("AsyncManagedTransaction", _Transaction(tx, self.seen)))

        return watched

    async def execute_read(self, work: _Work[Result]) -> Result:
        return await self.inner.execute_read(self._watched(work))

    async def execute_write(self, work: _Work[Result]) -> Result:
        return await self.inner.execute_write(self._watched(work))


@dataclass(frozen=True, slots=True)
class _Driver:
    inner: AsyncDriver
    seen: Seen

    def session(self, *, database: str) -> _Session:
        return _Session(self.inner.session(database=database), self.seen)


@dataclass(frozen=True, slots=True)
class _Index:
    inner: VectorIndex
    seen: Seen

    async def search(
        self, kind: Kind, vector: Vector, filter_: VectorFilter, limit: int
    ) -> tuple[VectorHit, ...]:
        hits = await self.inner.search(kind, vector, filter_, limit)
        self.seen.searches.append(Search(kind, vector, filter_, limit, hits))
        return hits

    async def search_terms(
        self, kind: Kind, terms: Sequence[str], filter_: VectorFilter, limit: int
    ) -> tuple[TermHit, ...] | None:
        hits = await self.inner.search_terms(kind, terms, filter_, limit)
        if hits is not None:
            self.seen.term_searches.append(TermSearch(kind, tuple(terms), filter_, limit, hits))
        return hits

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - all the other verbs
        return getattr(self.inner, name)


async def raw_search(
    milvus: AsyncMilvusClient, prefix: str, search: Search, *, spec: EmbeddingSpec, consistency: str
) -> list[str]:
    """Search one kind as the engine does; return the graph keys found."""
    found: Any = await milvus.search(
        f"{prefix}_{search.kind}",
        data=[search.vector],
        anns_field=vector_field(spec),
        filter=expression(search.filter),
        limit=search.limit,
        output_fields=["key"],
        search_params={"metric_type": "COSINE", "params": {"ef": max(2 * search.limit, 64)}},
        consistency_level=consistency,
    )
    return [hit["entity"]["key"] for hit in found[0]]


async def raw_term_search(
    milvus: AsyncMilvusClient, prefix: str, search: TermSearch, *, consistency: str
) -> list[str]:
    """Search one kind by terms as the engine does; return the graph keys found."""
    found: Any = await milvus.search(
        f"{prefix}_{search.kind}",
        data=[" ".join(search.terms)],
        anns_field=LEXICAL_FIELD,
        filter=expression(search.filter),
        limit=search.limit,
        output_fields=["key", TERMS_FIELD],
        search_params={"metric_type": "BM25"},
        consistency_level=consistency,
    )
    return [hit["entity"]["key"] for hit in found[0]]


def watched_index(engine: Engine) -> tuple[Engine, Seen]:
    """Return an engine that does the same, and what it searches for."""
    seen = Seen()
    return replace(engine, index=cast("VectorIndex", _Index(engine.index, seen))), seen


def watched_engine(engine: Engine, driver: AsyncDriver) -> tuple[Engine, Seen]:
    """Return an engine that does the same over another driver, and what it sends.

    Only for preparing: its times are not the engine's.
    """
    watched, seen = watched_index(engine)
    graph = Neo4jGraph(
        cast("AsyncDriver", _Driver(driver, seen)),
        engine.settings.neo4j_database,
        engine.domain,
        engine.settings.store_timeout_s,
    )
    return replace(watched, graph=graph), seen
