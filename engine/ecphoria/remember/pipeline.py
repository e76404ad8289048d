"""The write path: clean, tag, link, one graph transaction, then the index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import structlog

from ecphoria.errors import (
    BatchTooLarge,
    DuplicateId,
    EcphoriaError,
    EmbeddingFailed,
    IdConflict,
    InvalidVector,
    StoreError,
)
from ecphoria.model import EntityRef, Memory, MemoryInput, Receipt, ReceiptStatus, Scope
from ecphoria.parts import EngineParts
from ecphoria.remember.indexing import index_pending
from ecphoria.remember.link import Linked, link
from ecphoria.remember.normalise import clean_memory
from ecphoria.remember.tag import tagged
from ecphoria.stores.ports import MemoryWrite

log = structlog.get_logger(__name__)


def _rejected(index: int, id_: object, error: EcphoriaError) -> Receipt:
    return Receipt(
        index,
        ReceiptStatus.REJECTED,
        id=id_ if isinstance(id_, str) else None,
        code=error.code,
        reason=error.message,
        path=error.path,
    )


async def remember(
    parts: EngineParts, scope: Scope, items: Sequence[MemoryInput]
) -> tuple[Receipt, ...]:
    """Keep memories; see `Engine.remember`."""
    if len(items) > parts.settings.max_batch:
        msg = f"{len(items)} memories are more than {parts.settings.max_batch} in one call"
        raise BatchTooLarge(msg)
    receipts: dict[int, Receipt] = {}
    good = _cleaned(parts, scope, items, receipts)
    linked = await link(parts, scope.tenant, [(memory, about) for _, memory, about in good])
    unique: dict[str, tuple[int, Linked]] = {}
    twins: list[tuple[int, str]] = []
    for (place, memory, _), item in zip(good, linked, strict=True):
        if item.error is not None:
            receipts[place] = _rejected(place, memory.id, item.error)
        elif memory.key not in unique:
            unique[memory.key] = (place, item)
        elif _same(unique[memory.key][1].memory, memory):
            twins.append((place, memory.key))
        else:
            msg = f"{memory.id!r} comes twice in this batch with different content"
            receipts[place] = _rejected(place, memory.id, DuplicateId(msg, path=("id",)))
    if unique:
        receipts |= {receipt.index: receipt for receipt in await _write(parts, unique)}
    for place, key in twins:
        receipts[place] = _twin(place, receipts[unique[key][0]])
    return tuple(receipts[place] for place in range(len(items)))


def _cleaned(
    parts: EngineParts,
    scope: Scope,
    items: Sequence[MemoryInput],
    receipts: dict[int, Receipt],
) -> list[tuple[int, Memory, tuple[EntityRef, ...]]]:
    good: list[tuple[int, Memory, tuple[EntityRef, ...]]] = []
    now = parts.clock.now()
    for place, item in enumerate(items):
        try:
            clean = clean_memory(
                item,
                scope=scope,
                domain=parts.domain,
                now=now,
                max_chars=parts.settings.max_text_chars,
            )
        except EcphoriaError as error:
            receipts[place] = _rejected(place, item.id, error)
            continue
        memory = tagged(
            clean,
            scope=scope,
            domain=parts.domain,
            lexicon=parts.lexicon,
            spec=parts.embedder.spec,
            now=now,
        )
        good.append((place, memory, clean.item.about))
    return good


def _twin(place: int, first: Receipt) -> Receipt:
    if first.status is ReceiptStatus.REJECTED:
        return replace(first, index=place)
    return replace(first, index=place, status=ReceiptStatus.DUPLICATE)


def _same(first: Memory, second: Memory) -> bool:
    return (first.content_hash, first.user_id) == (second.content_hash, second.user_id)


async def _write(parts: EngineParts, unique: dict[str, tuple[int, Linked]]) -> list[Receipt]:
    token = parts.clock.token()
    written = await parts.graph.write_memories([item.memory for _, item in unique.values()], token)
    created = {write.key for write in written if write.outcome == "CREATED"}
    indexed = await _index(parts, token) if created else frozenset()
    return [
        _receipt(unique[write.key], write, indexed=write.key in indexed or write.key not in created)
        for write in written
    ]


def _receipt(entry: tuple[int, Linked], write: MemoryWrite, *, indexed: bool) -> Receipt:
    place, item = entry
    if write.outcome == "CONFLICT":
        return _rejected(place, item.memory.id, IdConflict(write.conflict, path=("id",)))
    return Receipt(place, ReceiptStatus(write.outcome), item.memory.id, item.refs, indexed=indexed)


async def _index(parts: EngineParts, token: str) -> frozenset[str]:
    # the graph has committed: whatever fails from here on, the reconciler will finish
    try:
        pending = await parts.graph.pending_of(token)
        return await index_pending(parts, pending)
    except (StoreError, EmbeddingFailed, InvalidVector) as error:
        log.warning("memories kept but not indexed yet", code=error.code, reason=error.message)
        return frozenset()
