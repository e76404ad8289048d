"""The cache of vectors: bounded, never across users, and gone when it must be."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW
from ecphoria.changes import ChangeFeed
from ecphoria.errors import EmbeddingFailed
from ecphoria.model import ChangeKind, EmbeddingSpec, MemoryChange
from ecphoria.recall.query_cache import CacheFigures, QueryCache

SPEC = EmbeddingSpec("model", "1", 2)


class Counting:
    """An embedder that never makes the same vector twice, and knows what it was asked."""

    def __init__(self, spec=SPEC):
        self.spec = spec
        self.asked = Counter()
        self.batches = []
        self.fails = False
        self.wait = None

    def _vector(self, text, *, query):
        self.asked[text, query] += 1
        return [float(self.asked.total()), 0.1]

    async def embed_query(self, text):
        if self.wait is not None:
            await self.wait.wait()
        if self.fails:
            msg = "no model"
            raise EmbeddingFailed(msg)
        return self._vector(text, query=True)

    async def embed_passages(self, texts):
        self.batches.append(list(texts))
        return [self._vector(text, query=False) for text in texts]

    async def close(self):
        return None


async def test_a_text_is_embedded_once_a_user_and_sort():
    cache, inner = QueryCache(10), Counting()
    mine, yours = (cache.embedder(inner, "t", user) for user in ("u1", "u2"))

    first = await mine.embed_query("我的订单在哪里")
    assert await mine.embed_query("我的订单在哪里") == first
    assert await yours.embed_query("我的订单在哪里") != first
    assert await mine.embed_passages(["我的订单在哪里"]) != [first]
    assert cache.figures() == CacheFigures(hits=1, misses=3, entries=3, capacity=10)


async def test_only_what_is_not_kept_is_embedded_and_the_order_stays():
    cache, inner = QueryCache(10), Counting()
    embedder = cache.embedder(inner, "t", "u1")

    (b,) = await embedder.embed_passages(["b"])
    found = await embedder.embed_passages(["a", "b", "c", "a"])
    assert inner.batches == [["b"], ["a", "c"]]
    assert found[1] == b
    assert found[0] == found[3] != found[2]
    assert await embedder.embed_passages(["a", "b", "c", "a"]) == found
    assert await embedder.embed_passages([]) == []


async def test_another_model_has_vectors_of_its_own():
    cache = QueryCache(10)
    one = cache.embedder(Counting(), "t", "u1")
    other = cache.embedder(Counting(EmbeddingSpec("model", "2", 2)), "t", "u1")

    await one.embed_query("x")
    await other.embed_query("x")
    assert cache.figures().hits == 0


async def test_the_least_recently_used_goes_first():
    cache, inner = QueryCache(2), Counting()
    embedder = cache.embedder(inner, "t", "u1")

    for text in ("a", "b", "a", "c", "a", "b"):
        await embedder.embed_query(text)
    assert inner.asked == {("a", True): 1, ("b", True): 2, ("c", True): 1}


async def test_without_a_size_nothing_is_kept():
    cache, inner = QueryCache(0), Counting()
    assert cache.embedder(inner, "t", "u1") is inner
    cache.drop("t", None)
    assert cache.figures() == CacheFigures(0, 0, 0, 0)


async def test_texts_are_not_kept_themselves():
    cache = QueryCache(10)
    await cache.embedder(Counting(), "t", "u1").embed_query("a secret")
    assert "secret" not in repr(vars(cache))


async def test_any_text_can_be_asked():
    embedder = QueryCache(10).embedder(Counting(), "t", "u1")
    for text in ("", "a\ud800b", "\0", "龘" * 5_000):
        assert await embedder.embed_query(text) == await embedder.embed_query(text)


async def test_what_is_dropped_while_it_is_embedded_is_not_kept():
    cache, inner = QueryCache(10), Counting()
    inner.wait = asyncio.Event()
    asking = asyncio.create_task(cache.embedder(inner, "t", "u1").embed_query("x"))
    await asyncio.sleep(0)

    cache.drop("t", "u1")
    inner.wait.set()
    assert await asking == [1.0, 0.1]
    assert cache.figures().entries == 0
    await cache.embedder(inner, "t", "u1").embed_query("x")
    assert cache.figures().entries == 1


async def test_a_model_that_fails_leaves_nothing_behind():
    cache, inner = QueryCache(10), Counting()
    inner.fails = True
    for number in range(100):
        with pytest.raises(EmbeddingFailed):
            await cache.embedder(inner, "t", f"u{number}").embed_query("x")
    assert not cache._keys


@pytest.mark.parametrize(
    ("user", "left"), [("u1", {("t", "u2"), ("s", "u1")}), (None, {("s", "u1")})]
)
async def test_a_change_drops_whose_memories_changed(user, left):
    cache, inner = QueryCache(10), Counting()
    owners = [("t", "u1"), ("t", "u2"), ("s", "u1")]
    for owner in owners:
        await cache.embedder(inner, *owner).embed_query("x")

    ChangeFeed(told=cache.drop).publish(
        MemoryChange(ChangeKind.FORGOTTEN, "t", user, f"m{number}", NOW) for number in range(3)
    )
    before = inner.asked.total()
    kept = set()
    for owner in owners:
        await cache.embedder(inner, *owner).embed_query("x")
        if inner.asked.total() == before:
            kept.add(owner)
        before = inner.asked.total()
    assert kept == left


OWNERS = st.tuples(st.sampled_from("st"), st.sampled_from(["u1", "u2", "u3"]))
TEXTS = st.sampled_from(["a", "b", "保修", "退款"])
STEPS = st.one_of(
    st.tuples(st.just("query"), OWNERS, TEXTS),
    st.tuples(st.just("passages"), OWNERS, st.lists(TEXTS, max_size=5)),
    st.tuples(st.just("drop"), OWNERS, st.booleans()),
)


@given(capacity=st.integers(1, 6), steps=st.lists(STEPS, max_size=60))
def test_it_is_bounded_and_never_across_users(capacity, steps):
    asyncio.run(_follow(capacity, steps))


async def _follow(capacity, steps):
    cache = QueryCache(capacity)
    inners = {}
    # vectors that an owner may get, by what they are of: those made since his last drop
    made = {}
    for step, owner, what in steps:
        inner = inners.setdefault(owner, _Owned(float(len(inners))))
        embedder = cache.embedder(inner, *owner)
        if step == "drop":
            cache.drop(owner[0], owner[1] if what else None)
            made = {
                key: vectors
                for key, vectors in made.items()
                if key[0][0] != owner[0] or (what and key[0] != owner)
            }
            continue
        texts = [what] if step == "query" else what
        found = (
            [await embedder.embed_query(what)]
            if step == "query"
            else await embedder.embed_passages(what)
        )
        for text, vector in zip(texts, found, strict=True):
            assert inner.made[tuple(vector)] == (text, step == "query")
            key = (owner, step, text)
            if tuple(vector) not in made.get(key, ()):
                # not kept: so it was made just now
                assert vector[0] > inner.before
            made.setdefault(key, set()).add(tuple(vector))
        inner.before = inner.number
        figures = cache.figures()
        assert figures.entries <= capacity
        assert sum(map(len, cache._keys.values())) == figures.entries
        assert all(cache._keys.values())


class _Owned:
    """An embedder that tells its vectors from anybody else's."""

    spec = SPEC

    def __init__(self, sign):
        self.sign = sign
        self.number = self.before = 0.0
        self.made = {}

    def _vector(self, text, *, query):
        self.number += 1
        self.made[self.number, self.sign] = (text, query)
        return [self.number, self.sign]

    async def embed_query(self, text):
        return self._vector(text, query=True)

    async def embed_passages(self, texts):
        return [self._vector(text, query=False) for text in texts]
