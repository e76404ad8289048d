"""Last stage of a write: bring rows of the vector index in line with the graph.

Used by `remember` right after the graph has committed, and by the reconciler for what a crash
or an outage left. The graph's token tells whether a row changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

from ecphoria.embedding.port import Embedder
from ecphoria.errors import EmbeddingFailed, InvalidVector
from ecphoria.model import Memory, Status, Vector
from ecphoria.parts import EngineParts
from ecphoria.stores.ports import PendingMemory, VectorRow

_KEPT = frozenset({Status.ACTIVE, Status.SUPERSEDED})


def vector_row(memory: Memory, vector: Vector) -> VectorRow:
    """Return the row that a memory has in the index."""
    return VectorRow(
        key=memory.key,
        tenant=memory.tenant,
        user_id=memory.user_id,
        kind=memory.kind,
        topic=memory.topic,
        source_id=memory.source_id,
        privacy=memory.privacy,
        importance=memory.importance,
        valid_from=memory.valid_from,
        valid_until=memory.valid_until,
        expires_at=memory.expires_at,
        status=memory.status,
        tier=memory.tier,
        lang=memory.lang,
        vector=vector,
    )


async def _embedded(embedder: Embedder, memories: Sequence[Memory]) -> list[tuple[Memory, Vector]]:
    try:
        vectors = await embedder.embed_passages([memory.text for memory in memories])
    except (EmbeddingFailed, InvalidVector):
        if len(memories) == 1:
            raise
        # one bad text must not keep the others out: halve until it stands alone
        middle = len(memories) // 2
        good: list[tuple[Memory, Vector]] = []
        failed: list[Exception] = []
        for part in (memories[:middle], memories[middle:]):
            try:
                good += await _embedded(embedder, part)
            except (EmbeddingFailed, InvalidVector) as error:
                failed.append(error)
        if not good:
            raise failed[0] from None
        return good
    return list(zip(memories, vectors, strict=True))


async def index_pending(parts: EngineParts, pending: Sequence[PendingMemory]) -> frozenset[str]:
    """Make the rows of pending memories again; return keys that are now up to date.

    A row whose token was no longer current when it was done may have been written over a newer
    one: it is queued again.

    Raises:
        StoreUnavailable: When a store does not answer; whatever was not marked stays pending.
        EmbeddingFailed: When the model fails on every text.
    """
    shown = [item.memory for item in pending if item.memory and item.memory.status in _KEPT]
    gone = [item.key for item in pending if not item.memory or item.memory.status not in _KEPT]
    done: dict[str, str] = {}
    tokens = {item.key: item.token for item in pending}
    if shown:
        rows = [
            vector_row(memory, vector) for memory, vector in await _embedded(parts.embedder, shown)
        ]
        await parts.index.upsert(rows)
        done |= {row.key: tokens[row.key] for row in rows}
    if gone:
        await parts.index.delete(gone)
        done |= {key: tokens[key] for key in gone}
    marked = await parts.graph.mark_indexed(done, parts.embedder.spec.model)
    if overtaken := done.keys() - marked:
        await parts.graph.requeue(sorted(overtaken), parts.clock.token())
    return marked
