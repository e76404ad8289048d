"""Keep the vectors of what users ask, and of what describes their things.

Only vectors are kept. A vector follows from its text and the model alone, so one that is kept can
never make an answer wrong, whatever other replicas write meanwhile; it also is what takes the
longest of all that repeats (measured with the shipped model on 2 cores: 3.5 ms a question, 28 ms
for 20 descriptions). What is read from the graph, such as the names of a user's things, is read
each time: another replica may have changed it, and asking whether it has takes as long as reading.
What is understood of a question is worked out each time as well: that takes 0.2 to 0.4 ms, and it
depends on the moment of the question.

Texts are kept as their digests, not as themselves.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from cachetools import LRUCache

from ecphoria.embedding.port import Embedder
from ecphoria.model import EmbeddingSpec, Vector

_DIGEST_BYTES = 16

_Owner: TypeAlias = tuple[str, str]


class _Key(NamedTuple):
    """Whose text it is, of which model the vector is, and whether as a question or a passage."""

    owner: _Owner
    model: str
    version: str
    query: bool
    digest: bytes


@dataclass(frozen=True, slots=True)
class CacheFigures:
    """How a cache does.

    Attributes:
        hits: Texts whose vector was kept, since the start.
        misses: Texts that had to be embedded, since the start.
        entries: Vectors that are kept now.
        capacity: Vectors that are kept at most; 0 = the cache is off.
    """

    hits: int
    misses: int
    entries: int
    capacity: int


class QueryCache:
    """Vectors by tenant, user, model and text; the least recently used go first.

    It belongs to one event loop. Two who ask the same at once may both embed it.
    """

    def __init__(self, capacity: int) -> None:
        """Begin empty.

        Args:
            capacity: Most vectors kept, of all users together; 0 = keep none.
        """
        self._capacity = capacity
        # packed: a tuple of floats takes four times the memory
        self._kept: LRUCache[_Key, array[float]] = LRUCache(capacity)
        self._keys: dict[_Owner, set[_Key]] = {}
        self._hits = self._misses = 0

    def embedder(self, inner: Embedder, tenant: str, user_id: str) -> Embedder:
        """Return an embedder that remembers for one user; `inner` stays its opener's to close."""
        return UsersEmbedder(self, inner, (tenant, user_id)) if self._capacity else inner

    def drop(self, tenant: str, user_id: str | None) -> None:
        """Drop what is kept for a user, or (None) for every user of a tenant."""
        if user_id is None:
            owners = [owner for owner in self._keys if owner[0] == tenant]
        else:
            owners = [(tenant, user_id)]
        for owner in owners:
            for key in self._keys.pop(owner, ()):
                del self._kept[key]

    def count(self, tenant: str, user_id: str) -> int:
        """Return how many vectors are kept for a user."""
        return len(self._keys.get((tenant, user_id), ()))

    def figures(self) -> CacheFigures:
        """Return how it does."""
        return CacheFigures(self._hits, self._misses, len(self._kept), self._capacity)

    def find(self, key: _Key) -> Vector | None:
        """Return a vector that is kept, and count whether it was."""
        found = self._kept.get(key)
        if found is None:
            self._misses += 1
            return None
        self._hits += 1
        return found.tolist()

    @contextmanager
    def shelf(self, owner: _Owner) -> Iterator[set[_Key]]:
        """Return where `keep` puts what is made for an owner in the block."""
        shelf = self._keys.setdefault(owner, set())
        try:
            yield shelf
        finally:
            if not shelf and self._keys.get(owner) is shelf:
                del self._keys[owner]

    def keep(self, shelf: set[_Key], key: _Key, vector: Vector) -> None:
        """Keep a vector, unless its owner's were dropped while it was being made."""
        if self._keys.get(key.owner) is not shelf:
            return
        if key not in self._kept and len(self._kept) >= self._capacity:
            self._evict()
        self._kept[key] = array("d", vector)
        shelf.add(key)
        # the eviction may have emptied it
        self._keys[key.owner] = shelf

    def _evict(self) -> None:
        oldest, _ = self._kept.popitem()
        shelf = self._keys[oldest.owner]
        shelf.discard(oldest)
        if not shelf:
            del self._keys[oldest.owner]


class UsersEmbedder:
    """An `Embedder` that asks another one only for what is not kept for this user."""

    def __init__(self, cache: QueryCache, inner: Embedder, owner: _Owner) -> None:
        """Keep in a cache what another embedder makes for an owner: a tenant and a user."""
        self._cache = cache
        self._inner = inner
        self._owner = owner

    @property
    def spec(self) -> EmbeddingSpec:
        """What the vectors are like."""
        return self._inner.spec

    async def embed_query(self, text: str) -> Vector:
        """Embed one question; errors as for the embedder itself."""
        key = self._key(text, query=True)
        found = self._cache.find(key)
        if found is not None:
            return found
        with self._cache.shelf(self._owner) as shelf:
            vector = await self._inner.embed_query(text)
            self._cache.keep(shelf, key, vector)
        return vector

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Embed descriptions, in order.

        Errors as for the embedder itself; an index in one counts only what was not kept.
        """
        keys = [self._key(text, query=False) for text in texts]
        found: dict[_Key, Vector] = {}
        lacking: dict[_Key, str] = {}
        for key, text in dict(zip(keys, texts, strict=True)).items():
            vector = self._cache.find(key)
            if vector is None:
                lacking[key] = text
            else:
                found[key] = vector
        if lacking:
            with self._cache.shelf(self._owner) as shelf:
                made = await self._inner.embed_passages(list(lacking.values()))
                for key, vector in zip(lacking, made, strict=True):
                    self._cache.keep(shelf, key, vector)
                    found[key] = vector
        return [found[key] for key in keys]

    async def close(self) -> None:
        """Do nothing: who opened the embedder closes it."""

    def _key(self, text: str, *, query: bool) -> _Key:
        spec = self._inner.spec
        # a lone surrogate is no UTF-8, but a text all the same
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES)
        return _Key(self._owner, spec.model, spec.version, query, digest.digest())
