"""Recall through the engine against the sum of its raw parts, question by question.

The raw parts of a question are what the engine sends for it, sent by bare clients: one embedded
question, two searches a kind, by meaning and by words (all at once, as the engine does; by meaning
alone where the store has no BM25), one Cypher for the expansion.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

import httpx
from neo4j import AsyncDriver
from pymilvus import AsyncMilvusClient

from benchmarks.answering import graphql_client
from benchmarks.data import Asked, Dataset
from benchmarks.figures import Series, timed
from benchmarks.recorder import (
    Search,
    Statement,
    TermSearch,
    raw_search,
    raw_term_search,
    watched_engine,
)
from benchmarks.stores import StoreSet
from ecphoria.engine import Engine
from ecphoria.model import RecallRequest, Scope, Vector
from ecphoria_graphql.app import GRAPHQL_PATH

EMBED: Final = "embed the question"
SEARCH: Final = "search, 3 kinds at once"
CYPHER: Final = "Cypher of the expansion"
RAW: Final = "sum of the raw parts"
ENGINE: Final = "Engine.recall"
GRAPHQL: Final = "GraphQL over HTTP"
NAMES: Final = "Cypher of the user's names"

WARM: Final = 20
_OPERATION: Final = Path(__file__).parents[1] / "graphql" / "operations" / "recall.graphql"

Tick = Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A question and what the engine sends for it."""

    asked: Asked
    searches: tuple[Search, ...]
    term_searches: tuple[TermSearch, ...]
    expansion: Statement
    names: Statement


@dataclass(frozen=True, slots=True)
class _Bare:
    """Clients without an engine around them."""

    engine: Engine
    driver: AsyncDriver
    milvus: AsyncMilvusClient

    async def cypher(self, statement: Statement) -> None:
        """Run a text and fetch every row."""
        async with self.driver.session(database=self.engine.settings.neo4j_database) as session:
            result = await session.run(statement.text, dict(statement.parameters))
            async for _ in result:
                pass

    async def search(self, search: Search, vector: Vector) -> list[str]:
        """Search one kind as the engine does; return the graph keys found."""
        return await raw_search(
            self.milvus,
            self.engine.settings.collection_prefix,
            replace(search, vector=vector),
            spec=self.engine.embedder.spec,
            consistency="Bounded",
        )

    async def search_terms(self, search: TermSearch) -> list[str]:
        """Do the same by terms."""
        return await raw_term_search(
            self.milvus,
            self.engine.settings.collection_prefix,
            search,
            consistency="Bounded",
        )

    async def parts(self, item: _Prepared) -> tuple[dict[str, float], list[list[str]]]:
        """Run the raw parts one after the other; return the times, and what was found."""
        vector, embed = await timed(self.engine.embedder.embed_query(item.asked.question))
        found, search = await timed(
            asyncio.gather(
                *(self.search(each, vector) for each in item.searches),
                *(self.search_terms(each) for each in item.term_searches),
            )
        )
        _, cypher = await timed(self.cypher(item.expansion))
        return {EMBED: embed, SEARCH: search, CYPHER: cypher, RAW: embed + search + cypher}, found


def rounds(made: Dataset) -> int:
    """Return how many ticks a measurement makes."""
    return 2 * len(made.questions) + min(WARM, len(made.questions))


async def measure_recall(
    engine: Engine,
    stores: StoreSet,
    scope: Scope,
    made: Dataset,
    tick: Tick,
) -> dict[str, Any]:
    """Return the figures of recall on an engine that holds the data set."""
    async with AsyncExitStack() as stack:
        driver, milvus = await stack.enter_async_context(stores.bare())
        bare = _Bare(engine, driver, milvus)
        client = await stack.enter_async_context(graphql_client(engine, scope))
        # all ways are warm before anything counts: the first expansion alone takes Neo4j seconds
        start = time.perf_counter()
        prepared = [await _prepare(engine, driver, scope, asked, tick) for asked in made.questions]
        same = 0
        for item in prepared[:WARM]:
            _, found = await bare.parts(item)
            same += _same(item, found)
            await bare.cypher(item.names)
            await ask_graphql(client, item.asked)
            tick()
        warmed_s = time.perf_counter() - start
        series, stages, found_counts = Series(), Series(), Series()

        async def by_engine(item: _Prepared) -> None:
            request = RecallRequest(item.asked.question, item.asked.user_id)
            result, milliseconds = await timed(engine.recall(scope, request))
            series.add(ENGINE, milliseconds)
            for step in result.trace:
                stages.add(step.stage, step.milliseconds)
            found_counts.add("memories", len(result.memories))
            found_counts.add("entities", len(result.entities))

        async def by_parts(item: _Prepared) -> None:
            times, _ = await bare.parts(item)
            for name, milliseconds in times.items():
                series.add(name, milliseconds)

        async def by_graphql(item: _Prepared) -> None:
            _, milliseconds = await timed(ask_graphql(client, item.asked))
            series.add(GRAPHQL, milliseconds)

        ways: tuple[Callable[[_Prepared], Awaitable[None]], ...] = (by_engine, by_parts, by_graphql)
        # every order equally often: whoever comes first warms the pages for the others
        for item, order in zip(
            prepared, itertools.cycle(itertools.permutations(ways)), strict=False
        ):
            for way in order:
                await way(item)
            series.add(NAMES, (await timed(bare.cypher(item.names)))[1])
            tick()
    return {
        "questions": len(prepared),
        "warm_up_s": round(warmed_s, 1),
        "raw_search_finds_the_same": f"{same} of {min(WARM, len(prepared))}",
        "times": {
            name: series.summary(name)
            for name in (EMBED, SEARCH, CYPHER, RAW, ENGINE, GRAPHQL, NAMES)
        },
        "ratios": {name: series.ratio(name, RAW) for name in (ENGINE, GRAPHQL)},
        "stages": {name: stages.summary(name) for name in stages.times},
        "answer_p50": {
            name: sorted(values)[len(values) // 2] for name, values in found_counts.times.items()
        },
    }


async def _prepare(
    engine: Engine, driver: AsyncDriver, scope: Scope, asked: Asked, tick: Tick
) -> _Prepared:
    watched, seen = watched_engine(engine, driver)
    await watched.recall(scope, RecallRequest(asked.question, asked.user_id))
    tick()
    # what an expansion needs travels in one map, `p`; the names are asked for by their owner
    (expansion,) = (each for each in seen.statements if "p" in each.parameters)
    # those that end so are looked up only where an id is said by its digits alone
    (names,) = (
        each
        for each in seen.statements
        if "owner" in each.parameters and "ends" not in each.parameters
    )
    return _Prepared(asked, tuple(seen.searches), tuple(seen.term_searches), expansion, names)


def _same(item: _Prepared, found: list[list[str]]) -> bool:
    searches: tuple[Search | TermSearch, ...] = (*item.searches, *item.term_searches)
    return all(
        {hit.key for hit in search.hits} == set(keys)
        for search, keys in zip(searches, found, strict=True)
    )


async def ask_graphql(
    client: httpx.AsyncClient, asked: Asked, as_of: datetime | None = None
) -> Mapping[str, Any]:
    """Ask a question by the operation that agents copy; return the whole answer.

    Args:
        client: From `graphql_client`, or another one with its headers.
        asked: The question.
        as_of: Its moment; that of the server's clock if None.

    Raises:
        HTTPError: When there is no answer, or one that is not 2xx.
        RuntimeError: When the answer has errors.
    """
    variables = {
        "question": asked.question,
        "userId": asked.user_id,
        "asOf": as_of and as_of.isoformat(),
    }
    response = await client.post(GRAPHQL_PATH, json={"query": operation(), "variables": variables})
    answer: Mapping[str, Any] = response.raise_for_status().json()
    if "errors" in answer:
        msg = f"GraphQL answered with errors: {answer['errors']}"
        raise RuntimeError(msg)
    return answer


@cache
def operation() -> str:
    """Return the text of the operation."""
    return _OPERATION.read_text(encoding="utf-8")
