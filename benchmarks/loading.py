"""Bring made-up data into an engine, and wait until its stores have digested it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from pymilvus import AsyncMilvusClient

from benchmarks.data import ENTITIES, MEMORIES, RELATIONS
from ecphoria.bulk_import import import_files
from ecphoria.engine import Engine
from ecphoria.model import Scope

_LOOK_EVERY_S: Final = 1.0
# An index is finished when nothing waited for it so many times in a row: what is sealed, or put
# together, joins the queue a moment later.
_LOOKS: Final = 5
_LOOKS_AT_MOST: Final = 900


async def load_files(
    engine: Engine, scope: Scope, files: Mapping[str, str], moved: Callable[[int], None]
) -> None:
    """Import a data set by what `ecphoria import` runs; its files by name.

    Raises:
        RuntimeError: When a line is refused.
    """
    lines = 0
    order = (files[ENTITIES], files[RELATIONS], files[MEMORIES])
    async for step in import_files(engine, scope, order):
        if step.bad:
            msg = f"the made-up data is refused: {step.bad[0]}"
            raise RuntimeError(msg)
        moved(step.lines - lines)
        lines = step.lines


async def digest(engine: Engine, milvus: AsyncMilvusClient) -> None:
    """Build the search index as a worker does, and wait until the store is done with it.

    A worker seals what was written when it has grown, and puts it together once it is indexed.

    Raises:
        RuntimeError: When the store is not done after a quarter of an hour.
    """
    while True:
        did = await engine.index.refresh()
        await _indexed(engine, milvus)
        if not did:
            return


async def _indexed(engine: Engine, milvus: AsyncMilvusClient) -> None:
    quiet = 0
    for _ in range(_LOOKS_AT_MOST):
        waiting = await _waiting(engine, milvus)
        quiet = 0 if waiting else quiet + 1
        if waiting is None or quiet == _LOOKS:
            return
        await asyncio.sleep(_LOOK_EVERY_S)
    msg = "the vector store does not finish its index"
    raise RuntimeError(msg)


async def _waiting(engine: Engine, milvus: AsyncMilvusClient) -> int | None:
    """Return how many rows wait to be indexed; None where the store does not tell."""
    total = 0
    for info in (await engine.index.info()).values():
        for index in await milvus.list_indexes(info.collection):
            found = await milvus.describe_index(info.collection, index)
            if "pending_index_rows" not in found:
                return None
            total += int(found["pending_index_rows"])
    return total
