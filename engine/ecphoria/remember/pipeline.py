"""The write path: clean, cut into facts, tag, link, compare, one graph transaction, the index."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

import structlog

from ecphoria.errors import (
    BatchTooLarge,
    DuplicateId,
    EcphoriaError,
    EmbeddingFailed,
    IdConflict,
    InvalidVector,
    MemoryForgotten,
    StoreError,
)
from ecphoria.extraction.chunks import chunks
from ecphoria.extraction.port import Extraction, Fact, SourceText
from ecphoria.language.folding import language_of
from ecphoria.model import (
    ChangeKind,
    IndexState,
    Memory,
    MemoryChange,
    MemoryInput,
    Receipt,
    ReceiptStatus,
    Scope,
    Vector,
    utc,
)
from ecphoria.parts import EngineParts
from ecphoria.remember.compare import Comparison, Known, compare
from ecphoria.remember.forgotten import tombstones
from ecphoria.remember.indexing import index_pending
from ecphoria.remember.link import Draft, Linked, by_text, link
from ecphoria.remember.normalise import CleanMemory, clean_memory
from ecphoria.remember.protect import Hiding, hides, hiding, protected, sealing_keys
from ecphoria.remember.tag import given_facts, tagged
from ecphoria.stores.ports import MemoryWrite, NewMemory, PendingMemory

log = structlog.get_logger(__name__)

# A text that says more than this is a document: it is kept in chunks, not in statements.
MAX_FACTS_A_TEXT = 200
# So many memories may one call make of its items, times the items it may have.
MAX_FACTS_AN_ITEM = 10

# The least good news first: what an item's receipt says where its facts fared differently.
_TELLING = (
    ReceiptStatus.REJECTED,
    ReceiptStatus.CONFLICT,
    ReceiptStatus.SUPERSEDED,
    ReceiptStatus.HISTORICAL,
    ReceiptStatus.CREATED,
    ReceiptStatus.DUPLICATE,
)


_NOT_KEPT = frozenset({"CONFLICT", "FORGOTTEN"})


@dataclass(frozen=True, slots=True)
class ByHand:
    """That a person, not a writer's word, puts a memory in another's place."""

    reason: str
    by: str


@dataclass(slots=True)
class _Item:
    """One item of a batch on its way.

    Attributes:
        place: Position in the batch.
        given: As it came.
        memories: One a fact, not yet linked.
        linked: The same with their links.
        sensitive: Whether nothing of its words is stored.
    """

    place: int
    given: MemoryInput
    clean: CleanMemory
    extraction: Extraction
    memories: tuple[Memory, ...]
    linked: tuple[Linked, ...] = ()
    sensitive: bool = False


@dataclass(slots=True)
class _Batch:
    """All items of a call, what became of them, and what is to be written.

    Attributes:
        unless: Keys of the tombstones that must not be in force when they are written.
    """

    receipts: dict[int, Receipt] = field(default_factory=dict)
    items: list[_Item] = field(default_factory=list)
    twins: list[tuple[int, int]] = field(default_factory=list)
    unless: tuple[str, ...] = ()


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
    parts: EngineParts,
    scope: Scope,
    items: Sequence[MemoryInput],
    *,
    by_hand: ByHand | None = None,
) -> tuple[Receipt, ...]:
    """Keep memories; see `Engine.remember`."""
    if len(items) > parts.settings.max_batch:
        msg = f"{len(items)} memories are more than {parts.settings.max_batch} in one call"
        raise BatchTooLarge(msg)
    # to the stores' resolution: what is recorded and what ends with it have one time
    now = utc(parts.clock.now())
    batch = _Batch()
    await _read(parts, scope, items, batch, now)
    await _link(parts, scope, batch)
    _group_twins(batch)
    if batch.items:
        await _write(parts, batch, now, by_hand)
    for place, first in batch.twins:
        batch.receipts[place] = _twin(place, batch.receipts[first])
    return tuple(batch.receipts[place] for place in range(len(items)))


async def _read(
    parts: EngineParts,
    scope: Scope,
    items: Sequence[MemoryInput],
    batch: _Batch,
    now: datetime,
) -> None:
    """Clean the items and cut them into facts; what is wrong with one does not harm the others."""
    good: list[tuple[int, CleanMemory]] = []
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
            batch.receipts[place] = _rejected(place, item.id, error)
            continue
        good.append((place, clean))
    users = {clean.item.user_id for _, clean in good} - {None}
    stones, extractions = await asyncio.gather(
        tombstones(parts, scope.tenant, users),
        asyncio.gather(*(_extracted(parts, clean) for _, clean in good)),
    )
    batch.unless = stones.keys
    made = sum(len(extraction.facts) for extraction in extractions)
    if made > MAX_FACTS_AN_ITEM * parts.settings.max_batch:
        msg = f"these texts make {made:,} memories; send fewer of them in one call"
        raise BatchTooLarge(msg)
    read = [
        (place, clean, extraction, hiding(clean, extraction, parts.domain))
        for (place, clean), extraction in zip(good, extractions, strict=True)
    ]
    hidden = {place for place, clean, found, how in read if hides(clean, found, how)}
    keys = await sealing_keys(
        parts, scope.tenant, {clean.item.user_id for place, clean, *_ in read if place in hidden}
    )
    # the parts of a text have ids that a caller might use, too
    for place, clean, extraction, how in read:
        if clean.item.user_id in stones.forgotten:
            refusal = stones.refusal()
            batch.receipts[place] = _rejected(place, items[place].id, refusal)
            continue
        its = keys[clean.item.user_id] if place in hidden else None
        if isinstance(its, EcphoriaError):
            batch.receipts[place] = _rejected(place, items[place].id, its)
            continue
        memories = tuple(
            tagged(
                clean,
                fact,
                number,
                scope=scope,
                domain=parts.domain,
                spec=parts.embedder.spec,
                now=now,
                key=None if its is None else its.compares,
            )
            for number, fact in enumerate(extraction.facts)
        )
        if its is not None:
            memories = tuple(
                protected(memory, how, its, _named_ids(parts, how, memory)) for memory in memories
            )
        batch.items.append(
            _Item(place, items[place], clean, extraction, memories, sensitive=how.everything)
        )


def _named_ids(parts: EngineParts, how: Hiding, memory: Memory) -> tuple[str, ...]:
    if not how.everything:
        return ()
    shown = how.shown(memory.text, memory.lang)
    return tuple(mention.text for mention in parts.lexicon.id_mentions(shown))


async def _extracted(parts: EngineParts, clean: CleanMemory) -> Extraction:
    item = clean.item
    if item.facts:
        return given_facts(clean, parts.domain)
    found = await parts.extractor.extract(
        SourceText(item.text, item.lang or language_of(item.text), item.kind, clean.occurred_at)
    )
    if len(found.facts) <= MAX_FACTS_A_TEXT:
        return found
    settings = parts.settings
    topics = parts.lexicon.topics(item.text)
    return Extraction(
        tuple(
            Fact(piece, topics=topics)
            for piece in chunks(item.text, settings.chunk_chars, settings.chunk_overlap)
        ),
        found.by,
        f"{len(found.facts):,} statements in one text: it was kept in chunks instead",
    )


def _twin(place: int, first: Receipt) -> Receipt:
    if first.status is ReceiptStatus.REJECTED:
        return replace(first, index=place)
    return replace(first, index=place, status=ReceiptStatus.DUPLICATE)


def _same(first: Memory, second: Memory) -> bool:
    return (first.content_hash, first.user_id) == (second.content_hash, second.user_id)


async def _link(parts: EngineParts, scope: Scope, batch: _Batch) -> None:
    drafts = [
        Draft(
            memory,
            item.clean.item.about,
            item.clean.item.facts[number].entity if item.clean.item.facts else None,
            item.extraction.facts[number].text if item.sensitive else None,
        )
        for item in batch.items
        for number, memory in enumerate(item.memories)
    ]
    linked = iter(await link(parts, scope.tenant, drafts))
    kept: list[_Item] = []
    for item in batch.items:
        item.linked = tuple(next(linked) for _ in item.memories)
        error = next((one.error for one in item.linked if one.error is not None), None)
        if error is None:
            kept.append(item)
        else:
            batch.receipts[item.place] = _rejected(item.place, item.memories[0].id, error)
    batch.items = kept


def _group_twins(batch: _Batch) -> None:
    """Keep one item of those that are the same; only what could be linked has twins."""
    seen: dict[str, tuple[int, Memory]] = {}
    kept: list[_Item] = []
    for item in batch.items:
        first = item.memories[0]
        before = next((seen[one.key] for one in item.memories if one.key in seen), None)
        if before is None:
            seen |= {memory.key: (item.place, memory) for memory in item.memories}
            kept.append(item)
        elif before[1].key == first.key and _same(before[1], first):
            batch.twins.append((item.place, before[0]))
        else:
            msg = f"{before[1].id!r} comes twice in this batch with different content"
            twice = DuplicateId(msg, path=("id",))
            batch.receipts[item.place] = _rejected(item.place, first.id, twice)
    batch.items = kept


async def _write(parts: EngineParts, batch: _Batch, now: datetime, by_hand: ByHand | None) -> None:
    repeats = Counter(first for _, first in batch.twins)
    drafts = [
        # a twin within the batch says it again
        (item, replace(one.memory, reinforced=repeats[item.place]))
        for item in batch.items
        for one in item.linked
    ]
    unnamed = frozenset(memory.key for item, memory in drafts if item.given.id is None)
    comparison = await compare(parts, [memory for _, memory in drafts], unnamed)
    known = dict(comparison.known)
    new = {
        memory.key: comparison.kept.get(memory.key, memory)
        for _, memory in drafts
        if memory.key not in known or known[memory.key].same_as is None
    }
    written = await parts.graph.write_memories(
        _new_memories(batch, new, comparison, by_hand),
        parts.clock.token(),
        now,
        list(comparison.again.values()),
        batch.unless,
    )
    writes = {write.key: write for write in written.writes}
    indexed = await _index(parts, written.pending, comparison.vectors)
    # what was to be said again is not there any more: then it is news
    missed = set(written.missed) | {key for key in writes if writes[key].outcome in _NOT_KEPT}
    late = {
        memory.key: memory
        for _, memory in drafts
        if memory.key in known and _same_key(known[memory.key]) in missed
    }
    if late:
        known |= dict.fromkeys(late, Known())
        second = await parts.graph.write_memories(
            _new_memories(batch, late, comparison, by_hand),
            parts.clock.token(),
            now,
            unless=batch.unless,
        )
        writes |= {write.key: write for write in second.writes}
        indexed |= await _index(parts, second.pending, comparison.vectors)
    comparison = replace(comparison, known=known)
    for item in batch.items:
        batch.receipts[item.place] = _receipt(item, writes, comparison, indexed)
    parts.changes.publish(_changes(batch.items, tuple(writes.values()), now))


def _same_key(known: Known) -> str | None:
    return None if known.same_as is None else known.same_as.key


def _new_memories(
    batch: _Batch,
    memories: Mapping[str, Memory],
    comparison: Comparison,
    by_hand: ByHand | None,
) -> list[NewMemory]:
    how: Literal["stated", "hand"] = "stated" if by_hand is None else "hand"
    new: list[NewMemory] = []
    for item in batch.items:
        first = item.memories[0].key
        for one in item.linked:
            key = one.memory.key
            if key not in memories:
                continue
            known = comparison.known.get(key)
            new.append(
                NewMemory(
                    memories[key],
                    one.links,
                    one.mentions,
                    tuple(other.key for other in known.resembles) if known else (),
                    None if key == first else first,
                    how,
                    by_hand.reason if by_hand else None,
                    by_hand.by if by_hand else None,
                )
            )
    return new


def _receipt(
    item: _Item,
    writes: Mapping[str, MemoryWrite],
    comparison: Comparison,
    indexed: frozenset[str],
) -> Receipt:
    parts = [_part(item, one, writes, comparison, indexed) for one in item.linked]
    notes = tuple(note for note in (item.extraction.note, comparison.note) if note)
    if len(parts) == 1:
        return replace(parts[0], index=item.place, notes=notes)
    status = min((part.status for part in parts), key=_TELLING.index)
    first = parts[0]
    if first.status is ReceiptStatus.REJECTED:
        return replace(first, index=item.place, notes=notes)
    return Receipt(
        item.place,
        status,
        id=first.id,
        links=tuple({link.entity: link for part in parts for link in part.links}.values()),
        indexed=all(part.indexed for part in parts),
        supersedes=_together(part.supersedes for part in parts),
        conflicts_with=_together(part.conflicts_with for part in parts),
        possible_update_of=_together(part.possible_update_of for part in parts),
        waiting_for=_together(part.waiting_for for part in parts),
        notes=notes,
        facts=tuple(replace(part, index=number) for number, part in enumerate(parts)),
    )


def _together(groups: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for group in groups for value in group))


def _part(
    item: _Item,
    one: Linked,
    writes: Mapping[str, MemoryWrite],
    comparison: Comparison,
    indexed: frozenset[str],
) -> Receipt:
    memory = one.memory
    known = comparison.known.get(memory.key)
    if known is not None and known.same_as is not None:
        same = known.same_as
        # one of this batch is indexed, or not, like any other new one
        done = same.key in indexed or (
            same.key not in writes and same.index_state is IndexState.INDEXED
        )
        return Receipt(0, ReceiptStatus.DUPLICATE, same.id, one.links, indexed=done)
    write = writes[memory.key]
    if write.outcome == "CONFLICT":
        return _rejected(item.place, memory.id, IdConflict(write.conflict, path=("id",)))
    if write.outcome == "FORGOTTEN":
        msg = f"{memory.id!r} was forgotten and does not come back"
        return _rejected(item.place, memory.id, MemoryForgotten(msg, path=("id",)))
    if write.outcome == "DUPLICATE":
        done = write.index_state is IndexState.INDEXED
        return Receipt(0, ReceiptStatus.DUPLICATE, memory.id, one.links, indexed=done)
    return Receipt(
        0,
        _status(write),
        memory.id,
        one.links,
        indexed=memory.key in indexed,
        supersedes=_ids(write.supersedes),
        superseded_by=next(iter(_ids((write.superseded_by,) if write.superseded_by else ())), None),
        conflicts_with=_ids(write.conflicts_with),
        possible_update_of=tuple(other.id for other in known.resembles) if known else (),
        waiting_for=by_text(one.mentions),
    )


def _status(write: MemoryWrite) -> ReceiptStatus:
    if write.conflicts_with:
        return ReceiptStatus.CONFLICT
    if write.superseded_by is not None:
        return ReceiptStatus.HISTORICAL
    if write.supersedes:
        return ReceiptStatus.SUPERSEDED
    return ReceiptStatus.CREATED


def _ids(keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(key.split("|", 2)[2] for key in keys)


async def _index(
    parts: EngineParts, pending: Sequence[PendingMemory], vectors: Mapping[str, Vector]
) -> frozenset[str]:
    # the graph has committed: whatever fails from here on, the reconciler will finish
    if not pending:
        return frozenset()
    try:
        return await index_pending(parts, pending, vectors)
    except (StoreError, EmbeddingFailed, InvalidVector) as error:
        log.warning("memories kept but not indexed yet", code=error.code, reason=error.message)
        return frozenset()


def _changes(
    items: Sequence[_Item], writes: Sequence[MemoryWrite], now: datetime
) -> list[MemoryChange]:
    memories = {one.memory.key: one.memory for item in items for one in item.linked}
    changes: list[MemoryChange] = []
    for write in writes:
        if write.outcome != "CREATED":
            continue
        memory = memories[write.key]
        owner = (memory.tenant, memory.user_id)
        changes.append(MemoryChange(ChangeKind.CREATED, *owner, memory.id, now))
        changes += [
            MemoryChange(ChangeKind.SUPERSEDED, *owner, old, now) for old in _ids(write.supersedes)
        ]
    return changes
