"""Last stage of a write: bring rows of the vector index in line with the graph.

Used by `remember` right after the graph has committed, and by the reconciler for what a crash
or an outage left. The graph's token tells whether a row changed meanwhile.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from types import MappingProxyType

import structlog

from ecphoria.embedding.port import Embedder
from ecphoria.errors import EcphoriaError, EmbeddingFailed, InvalidVector, TextEmpty
from ecphoria.language.terms import terms
from ecphoria.model import Memory, Status, Vector
from ecphoria.parts import EngineParts
from ecphoria.stores.ports import (
    GraphStore,
    PendingMemory,
    RowFields,
    VectorRow,
    VectorRows,
)

log = structlog.get_logger(__name__)

# A disabled memory was taken back, but who asks what was known before still finds it.
INDEXED = frozenset({Status.ACTIVE, Status.SUPERSEDED, Status.DISABLED})

_FAILED = (EmbeddingFailed, InvalidVector)
_NONE: Mapping[str, Vector] = MappingProxyType({})
_NO_CONTEXT: Mapping[str, Sequence[str]] = MappingProxyType({})


def text_hash(text: str) -> str:
    """Return what tells whether a vector was made from this text: 32 hex digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def row_fields(memory: Memory) -> RowFields:
    """Return what the index holds of a memory beside its vector."""
    return RowFields(
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
        hash=text_hash(memory.text),
    )


def vector_row(memory: Memory, vector: Vector, context: Sequence[str] = ()) -> VectorRow:
    """Return the row that a memory has in the index.

    Args:
        memory: Whose.
        vector: Of its text.
        context: The texts right before it in its session.
    """
    row = row_fields(memory)
    return VectorRow(
        **{item.name: getattr(row, item.name) for item in fields(row)},
        vector=vector,
        terms=_index_terms(memory, memory.text),
        context=_index_terms(memory, *context),
    )


def _index_terms(memory: Memory, *texts: str) -> tuple[str, ...]:
    # they stand in the index in clear, which nothing sensitive may
    if memory.privacy == "sensitive":
        return ()
    return tuple(term for text in texts for term in terms(text))


def is_indexed(memory: Memory | None) -> bool:
    """Tell whether a memory has a row in the index."""
    return memory is not None and memory.status in INDEXED


async def contexts_of(graph: GraphStore, memories: Sequence[Memory]) -> Mapping[str, Sequence[str]]:
    """Return the texts right before memories in their sessions, by key.

    "Yes, both of them" is found by what it answers.
    """
    spoken = [memory for memory in memories if memory.session_id is not None]
    return await graph.said_before(spoken) if spoken else _NO_CONTEXT


async def index_memories(
    index: VectorRows,
    embedder: Embedder,
    memories: Sequence[Memory],
    vectors: Mapping[str, Vector] = _NONE,
    contexts: Mapping[str, Sequence[str]] = _NO_CONTEXT,
) -> frozenset[str]:
    """Embed memories and write their rows; return the keys of those that are written.

    A text that the model fails on, and a vector that is none, are named in the log and left out;
    they do not keep the others from being written.

    Args:
        index: Where to.
        embedder: The model that the index was made for.
        memories: Each with a key of its own.
        vectors: Vectors that are known already, by the text they were made from.
        contexts: The texts right before a memory in its session, by key.

    Raises:
        StoreError: When the index cannot be written.
        EmbeddingFailed: When nothing could be written, because the model fails on every text;
            likewise `InvalidVector`.
    """
    known = [(memory, vectors[memory.text]) for memory in memories if memory.text in vectors]
    unknown = [memory for memory in memories if memory.text not in vectors]
    bad: list[EcphoriaError] = []
    made = await _embedded(embedder, unknown, bad) if unknown else []
    new = [
        vector_row(memory, vector, contexts.get(memory.key, ()))
        for memory, vector in (*known, *made)
    ]
    rows = await _written(index, new, bad)
    if bad and not rows:
        raise bad[0]
    return frozenset(row.key for row in rows)


async def _embedded(
    embedder: Embedder, memories: Sequence[Memory], bad: list[EcphoriaError]
) -> list[tuple[Memory, Vector]]:
    try:
        vectors = await embedder.embed_passages([memory.text for memory in memories])
    except (*_FAILED, TextEmpty) as error:
        if len(memories) == 1:
            _name(memories[0].key, error)
            # a memory has a text; what is empty is what this model reads of it
            bad.append(error if isinstance(error, _FAILED) else EmbeddingFailed(error.message))
            return []
        # one bad text must not keep the others out: halve until it stands alone
        middle = len(memories) // 2
        first = await _embedded(embedder, memories[:middle], bad)
        return first + await _embedded(embedder, memories[middle:], bad)
    return list(zip(memories, vectors, strict=True))


async def _written(
    index: VectorRows, rows: list[VectorRow], bad: list[EcphoriaError]
) -> list[VectorRow]:
    while rows:
        try:
            await index.upsert(rows)
        except InvalidVector as error:
            match error.path:
                case ("rows", int(position), *_):
                    _name(rows[position].key, error)
                    bad.append(error)
                    rows = rows[:position] + rows[position + 1 :]
                case _:
                    raise
        else:
            break
    return rows


def _name(key: str, error: EcphoriaError) -> None:
    log.warning("memory cannot be indexed", memory=key, code=error.code, reason=error.message)


async def index_pending(
    parts: EngineParts,
    pending: Sequence[PendingMemory],
    vectors: Mapping[str, Vector] = _NONE,
) -> frozenset[str]:
    """Make the rows of pending memories again; return keys that are now up to date.

    A row whose token was no longer current when it was done may have been written over a newer
    one: it is queued again.

    Args:
        parts: The stores and the model.
        pending: What to bring up to date, each with its token.
        vectors: Vectors that are known already, by the text they were made from.

    Raises:
        StoreUnavailable: When a store does not answer; whatever was not marked stays pending.
        EmbeddingMismatch: When the index belongs to another model by now.
        EmbeddingFailed: When the model fails on every text and nothing else was to be done;
            likewise `InvalidVector`.
    """
    if not pending:
        return frozenset()
    tokens = {item.key: item.token for item in pending}
    shown = [item.memory for item in pending if item.memory and is_indexed(item.memory)]
    done = {item.key for item in pending if not is_indexed(item.memory)}
    if done:
        await parts.index.delete(sorted(done))
    if shown:
        try:
            contexts = await contexts_of(parts.graph, shown)
            done |= await index_memories(parts.index, parts.embedder, shown, vectors, contexts)
        except _FAILED:
            if not done:
                raise
    marked = await parts.graph.mark_indexed(
        {key: tokens[key] for key in done}, parts.embedder.spec.model
    )
    if overtaken := done - marked:
        await parts.graph.requeue(sorted(overtaken), parts.clock.token())
    return marked
