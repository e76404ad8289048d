"""Fifth stage of a write: find out whether what comes is known already.

Only for items that came without an id of their own: who gives ids says what is the same. Two
memories are one when they say the same (`language.sameness`) to the same user, from the same
source, within a window of days. A high similarity alone makes a possible update: linked, kept.
The value of an attribute that is given again is news once another value came in between.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import numpy as np
import structlog
from numpy.typing import NDArray

from ecphoria.errors import EmbeddingFailed, InvalidVector, StoreError
from ecphoria.language.sameness import content, says_the_same
from ecphoria.model import Memory, Status, Vector
from ecphoria.parts import EngineParts
from ecphoria.settings import Settings
from ecphoria.stores.ports import Reinforcement, VectorFilter
from ecphoria.timeline import said_value
from ecphoria_schema.domain import Kind

log = structlog.get_logger(__name__)

# So many of the nearest memories are looked at for each new one, so many are called updated.
NEAREST, MAX_UPDATED = 8, 3
_SEARCHES_AT_ONCE = 8
HELD = frozenset({Status.ACTIVE, Status.SUPERSEDED})


@dataclass(frozen=True, slots=True)
class Known:
    """What is known already of a new memory.

    Attributes:
        same_as: The memory that says the same; None = it is new.
        resembles: Memories that it may be an update of.
    """

    same_as: Memory | None = None
    resembles: tuple[Memory, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of comparing a batch.

    Attributes:
        known: What is known of each memory without an id of its own, by key.
        kept: Memories that are new, by key, as the batch leaves them.
        again: Stored memories that were said again, by key.
        vectors: Vectors made on the way, by text.
        note: What a person should know; empty otherwise.
    """

    known: Mapping[str, Known] = field(default_factory=dict)
    kept: Mapping[str, Memory] = field(default_factory=dict)
    again: Mapping[str, Reinforcement] = field(default_factory=dict)
    vectors: Mapping[str, Vector] = field(default_factory=dict)
    note: str = ""


def _comparable(new: Memory, old: Memory, window: timedelta) -> bool:
    return (
        old.key != new.key
        and old.status is Status.ACTIVE
        and (old.user_id, old.kind, old.source_id, old.privacy)
        == (new.user_id, new.kind, new.source_id, new.privacy)
        and abs(new.occurred_at - old.occurred_at) <= window
    )


def is_duplicate(new: Memory, old: Memory, window: timedelta) -> bool:
    """Whether two memories are one: comparable, the same said, about the same, value for value."""
    return (
        _comparable(new, old, window)
        and (new.valid_until, new.attribute, new.value, new.value_hash, new.subject)
        == (old.valid_until, old.attribute, old.value, old.value_hash, old.subject)
        and new.about == old.about
        # of a hidden text only what is left of it can be read: two phones are both "[phone]"
        and new.words_hash == old.words_hash
        and says_the_same(new.text, old.text)
    )


def is_news(new: Memory, old: Memory, rivals: Iterable[Memory]) -> bool:
    """Whether a value that is given again is more than a repetition.

    It is when it held earlier than was known, or when another value came after the old one.

    Args:
        new: Gives the value again.
        old: Gave it before.
        rivals: All that give values of the same attribute.
    """
    return new.valid_from < old.valid_from or any(
        said_value(other) != said_value(old) and other.valid_from >= old.valid_from
        for other in rivals
    )


def is_possible_update(new: Memory, old: Memory) -> bool:
    """Whether a similar memory may be what a new one updates: not about other things."""
    if new.claim is not None and new.claim == old.claim:
        # values of one attribute are put in order by time and source, nothing is left open
        return False
    return (
        old.user_id == new.user_id
        and old.status is Status.ACTIVE
        and not (new.about and old.about and set(new.about).isdisjoint(old.about))
        and (content(new.text), new.words_hash) != (content(old.text), old.words_hash)
    )


def better_text(new: Memory, old: Memory) -> str | None:
    """Return the new text where it says more with the same words: with more letters."""
    # what is sealed goes with its own text
    plain = new.sealed is None and old.sealed is None
    return new.text if plain and len(new.text) > len(old.text) else None


async def compare(
    parts: EngineParts, memories: Sequence[Memory], unnamed: frozenset[str]
) -> Comparison:
    """Compare new memories with what is stored, and with those before them in the batch.

    Without the vector index, or the model, only equal words are found.

    Args:
        parts: The stores and the model.
        memories: All of a batch, in order.
        unnamed: Keys of those that came without an id of their own.
    """
    settings = parts.settings
    asked = [memory for memory in memories if memory.key in unnamed]
    if not asked or settings.duplicate_window_days == 0:
        return Comparison()
    said = await parts.graph.said(asked)
    note, vectors = "", {}
    near: Mapping[str, tuple[tuple[float, Memory], ...]] = {}
    try:
        texts = list(dict.fromkeys(memory.text for memory in _together_with(asked, memories)))
        vectors = dict(zip(texts, await parts.embedder.embed_passages(texts), strict=True))
        near = await _nearest(parts, asked, vectors)
    except (StoreError, EmbeddingFailed, InvalidVector) as error:
        note = f"not compared with similar memories: {error.message}"
        log.warning("memories not compared", code=error.code, reason=error.message)
    window = timedelta(days=settings.duplicate_window_days)
    claims = await _rivals(parts, asked, memories, said, near, window)
    found = _Batch(vectors, settings, window, claims)
    for memory in memories:
        if memory.key in unnamed:
            found.add(memory, said.get(memory.key, ()), near.get(memory.key, ()))
        else:
            found.keep(memory)
    return Comparison(found.known, found.kept, found.again, vectors, note)


def _together_with(asked: Sequence[Memory], memories: Sequence[Memory]) -> list[Memory]:
    """Return the memories of a batch that one of those asked about may be compared with."""
    groups = {(memory.user_id, memory.kind) for memory in asked}
    return [memory for memory in memories if (memory.user_id, memory.kind) in groups]


async def _rivals(
    parts: EngineParts,
    asked: Sequence[Memory],
    memories: Sequence[Memory],
    said: Mapping[str, tuple[Memory, ...]],
    near: Mapping[str, tuple[tuple[float, Memory], ...]],
    window: timedelta,
) -> dict[str, list[Memory]]:
    """Return the stored values of those attributes of which one may be given again."""
    batch: dict[str, list[Memory]] = defaultdict(list)
    for memory in memories:
        if memory.claim is not None:
            batch[memory.claim].append(memory)
    claims = sorted(
        {
            memory.claim
            for memory in asked
            if memory.claim is not None
            and any(
                is_duplicate(memory, other, window)
                for other in (
                    *said.get(memory.key, ()),
                    *(other for _, other in near.get(memory.key, ())),
                    *batch[memory.claim],
                )
            )
        }
    )
    found = await asyncio.gather(*(parts.graph.claimed(claim) for claim in claims))
    return {
        claim: [memory for memory in stored if memory.status in HELD]
        for claim, stored in zip(claims, found, strict=True)
    }


async def _nearest(
    parts: EngineParts, memories: Sequence[Memory], vectors: Mapping[str, Vector]
) -> dict[str, tuple[tuple[float, Memory], ...]]:
    gate = asyncio.Semaphore(_SEARCHES_AT_ONCE)

    async def search(memory: Memory) -> Mapping[str, float]:
        if memory.user_id is None:
            # what all users share is found by its words alone
            return {}
        async with gate:
            hits = await parts.index.search(
                memory.kind,
                vectors[memory.text],
                VectorFilter(
                    tenant=memory.tenant,
                    user_id=memory.user_id,
                    as_of=None,
                    privacy=(memory.privacy,),
                    tiers=("hot", "archive"),
                ),
                NEAREST,
            )
        least = parts.settings.update_similarity
        return {hit.key: hit.similarity for hit in hits if hit.similarity >= least}

    found = await asyncio.gather(*(search(memory) for memory in memories))
    ids = sorted({key.split("|", 2)[2] for hits in found for key in hits})
    stored = (
        {memory.key: memory for memory in await parts.graph.memories(memories[0].tenant, ids)}
        if ids
        else {}
    )
    return {
        memory.key: tuple(
            (similarity, stored[key]) for key, similarity in hits.items() if key in stored
        )
        for memory, hits in zip(memories, found, strict=True)
    }


class _Batch:
    """A batch on its way: what each of its memories finds, as if they came one by one."""

    def __init__(
        self,
        vectors: Mapping[str, Vector],
        settings: Settings,
        window: timedelta,
        claims: dict[str, list[Memory]],
    ) -> None:
        self._vectors = vectors
        self._settings = settings
        self._window = window
        self._claims = claims
        # stored memories as this batch leaves them
        self._stored: dict[str, Memory] = {}
        self.known: dict[str, Known] = {}
        self.kept: dict[str, Memory] = {}
        self.again: dict[str, Reinforcement] = {}
        # keys of what is kept: by words, by claim, by the id that it replaces, by user and kind
        self._by_words: dict[tuple[str, ...], list[str]] = defaultdict(list)
        self._by_claim: dict[str, list[str]] = defaultdict(list)
        self._replacing: dict[str, list[str]] = defaultdict(list)
        self._near: dict[tuple[str | None, Kind], _Vectors] = defaultdict(_Vectors)

    def keep(self, memory: Memory) -> None:
        """Add one that is new, or that came with an id of its own."""
        self.kept[memory.key] = memory
        self._by_words[content(memory.text)].append(memory.key)
        if memory.claim is not None:
            self._by_claim[memory.claim].append(memory.key)
        if memory.supersedes is not None:
            self._replacing[memory.supersedes].append(memory.key)
        if memory.text in self._vectors:
            near = self._near[memory.user_id, memory.kind]
            near.add(memory.key, self._vectors[memory.text])

    def add(
        self,
        memory: Memory,
        said: Sequence[Memory],
        near: Sequence[tuple[float, Memory]],
    ) -> None:
        """Find out what is known of a memory; keep it when it is new."""
        stored = {old.key: self._stored.get(old.key, old) for old in (*said, *self._all(near))}
        # one that is written again is there already, whatever comes of writing it
        own = [(value, old) for value, old in self._similar(memory) if old.key not in stored]
        similar = [*((value, stored[old.key]) for value, old in near), *own]
        words = [self.kept[key] for key in self._by_words[content(memory.text)]]
        # the same one whether they came in bulk or one by one
        same = min(
            (
                old
                for old in (*stored.values(), *words, *self._all(own))
                if is_duplicate(memory, old, self._window) and not self._is_over(memory, old)
            ),
            key=lambda old: (old.occurred_at, old.key),
            default=None,
        )
        if same is not None:
            self._merge(memory, same, is_stored=same.key in stored)
            return
        by_similarity = sorted(similar, key=lambda item: (-item[0], item[1].key))
        updated = {
            old.key: old
            for _, old in by_similarity
            if is_possible_update(memory, old) and not self._replaced(old)
        }
        self.known[memory.key] = Known(resembles=tuple(updated.values())[:MAX_UPDATED])
        self.keep(memory)

    @staticmethod
    def _all(pairs: Sequence[tuple[float, Memory]]) -> list[Memory]:
        return [old for _, old in pairs]

    def _merge(self, memory: Memory, same: Memory, *, is_stored: bool) -> None:
        better = better_text(memory, same)
        times = 1 + memory.reinforced
        self.known[memory.key] = Known(same)
        if not is_stored:
            self.kept[same.key] = replace(
                same, text=better or same.text, reinforced=same.reinforced + times
            )
            return
        self._stored[same.key] = replace(same, text=better or same.text)
        before = self.again.get(same.key, Reinforcement(same.key, times=0))
        self.again[same.key] = Reinforcement(same.key, better or before.text, before.times + times)

    def _is_over(self, new: Memory, old: Memory) -> bool:
        if self._replaced(old):
            return True
        if new.claim is None:
            return False
        return is_news(new, old, (*self._claims.get(new.claim, ()), *self._giving(new.claim)))

    def _replaced(self, old: Memory) -> bool:
        """Whether a memory of this batch takes the place of another one."""
        by_name = (self.kept[key] for key in self._replacing[old.id])
        return any(other.reliability >= old.reliability for other in by_name) or any(
            said_value(other) != said_value(old)
            and other.valid_from >= old.valid_from
            and other.reliability >= old.reliability
            for other in self._giving(old.claim)
        )

    def _giving(self, claim: str | None) -> list[Memory]:
        return [] if claim is None else [self.kept[key] for key in self._by_claim[claim]]

    def _similar(self, memory: Memory) -> list[tuple[float, Memory]]:
        if memory.text not in self._vectors:
            return []
        near = self._near[memory.user_id, memory.kind]
        least = self._settings.update_similarity
        found = near.nearer(self._vectors[memory.text], least)
        return [(value, self.kept[key]) for value, key in found]


class _Vectors:
    """Vectors of unit length by key, in one matrix that grows."""

    def __init__(self) -> None:
        self._keys: list[str] = []
        self._rows: NDArray[np.float64] = np.empty((0, 0))

    def add(self, key: str, vector: Vector) -> None:
        row = np.asarray(vector)
        if len(self._keys) == len(self._rows):
            grown = np.empty((max(16, 2 * len(self._rows)), len(row)))
            if self._keys:
                grown[: len(self._keys)] = self._rows
            self._rows = grown
        self._rows[len(self._keys)] = row
        self._keys.append(key)

    def nearer(self, vector: Vector, least: float) -> list[tuple[float, str]]:
        if not self._keys:
            return []
        cosines = self._rows[: len(self._keys)] @ np.asarray(vector)
        places = np.flatnonzero(cosines >= least)
        return [(float(cosines[place]), self._keys[place]) for place in places]
