"""Rows of the index: which memories have one, and what a bad text or vector leaves of the rest."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

import builders
from ecphoria.clock import Clock
from ecphoria.errors import EmbeddingFailed, InvalidVector, StoreUnavailable, TextEmpty
from ecphoria.model import Status
from ecphoria.remember.indexing import index_memories, index_pending, row_fields, text_hash
from ecphoria.stores.ports import PendingMemory, RowFields

GOOD = (1.0, 0.0)


class Index:
    def __init__(self):
        self.rows = {}
        self.deleted = []

    async def upsert(self, rows):
        for position, row in enumerate(rows):
            if row.vector != GOOD:
                msg = "the vector is all zeros"
                raise InvalidVector(msg, path=("rows", position, "vector"))
        self.rows |= {row.key: row for row in rows}

    async def delete(self, keys):
        self.deleted += keys


class Embedder:
    spec = builders.SPEC

    def __init__(self, bad=(), error=EmbeddingFailed):
        self.bad = bad
        self.error = error
        self.asked = []

    async def embed_passages(self, texts):
        self.asked += texts
        if any(text in self.bad for text in texts):
            msg = "the model failed"
            raise self.error(msg)
        return [GOOD for _ in texts]


class Graph:
    def __init__(self, overtaken=()):
        self.overtaken = overtaken
        self.requeued = []

    async def mark_indexed(self, done, model):
        assert model == builders.SPEC.model
        return frozenset(done) - frozenset(self.overtaken)

    async def requeue(self, keys, token):
        self.requeued.append((keys, token))


def memories(count):
    return [builders.memory(f"m{number}", f"text {number}") for number in range(count)]


def parts(index, embedder, graph):
    clock = Clock(token=lambda: "later")
    return SimpleNamespace(index=index, embedder=embedder, graph=graph, clock=clock)


def pending(*items):
    return [PendingMemory(item.key, f"token of {item.id}", item) for item in items]


def test_a_row_says_what_its_vector_was_made_from():
    one, other = builders.memory("m", "text"), builders.memory("m", "text.")
    assert row_fields(one).hash == text_hash("text") != row_fields(other).hash
    assert len(text_hash("张伟的手机")) == 32
    shown = {item.name for item in dataclasses.fields(RowFields)}
    assert "text" not in shown


async def test_a_bad_text_is_named_and_the_others_are_written():
    items = memories(9)
    index, embedder = Index(), Embedder(bad={"text 4", "text 7"})
    with capture_logs() as logs:
        done = await index_memories(index, embedder, items)
    good = {item.key for item in items} - {items[4].key, items[7].key}
    assert done == index.rows.keys() == good
    assert {(log["memory"], log["code"]) for log in logs} == {
        (items[4].key, "EMBEDDING_FAILED"),
        (items[7].key, "EMBEDDING_FAILED"),
    }


@pytest.mark.parametrize("error", [EmbeddingFailed, InvalidVector, TextEmpty])
async def test_when_every_text_is_bad_the_fault_is_raised(error):
    items = memories(3)
    wanted = InvalidVector if error is InvalidVector else EmbeddingFailed
    with pytest.raises(wanted, match="the model failed"):
        await index_memories(Index(), Embedder({item.text for item in items}, error), items)


async def test_a_bad_vector_in_a_batch_is_named_and_the_others_are_written():
    items = memories(5)
    index, embedder = Index(), Embedder()
    known = {"text 0": (0.0, 0.0), "text 1": GOOD, "text 3": (0.0, 0.0), "other": (0.0, 0.0)}
    with capture_logs() as logs:
        done = await index_memories(index, embedder, items, known)
    assert done == index.rows.keys() == {items[n].key for n in (1, 2, 4)}
    # a vector that is known is not made again, and only used for the text it was made from
    assert embedder.asked == ["text 2", "text 4"]
    assert {log["memory"] for log in logs} == {items[0].key, items[3].key}
    with pytest.raises(InvalidVector):
        await index_memories(index, embedder, items[:1], known)


async def test_an_index_that_fails_is_no_bad_vector():
    class Down(Index):
        async def upsert(self, rows):
            del rows
            msg = "away"
            raise StoreUnavailable(msg)

    with pytest.raises(StoreUnavailable):
        await index_memories(Down(), Embedder(), memories(2))


async def test_what_was_taken_back_stays_in_the_index_and_what_was_forgotten_does_not():
    shown = [
        builders.memory(status, f"text {status}", status=status)
        for status in (Status.ACTIVE, Status.SUPERSEDED, Status.DISABLED)
    ]
    gone = builders.memory("gone", status=Status.FORGOTTEN)
    absent = PendingMemory(builders.memory("absent").key, "token", None)
    index, graph = Index(), Graph()
    todo = [*pending(*shown, gone), absent]
    done = await index_pending(parts(index, Embedder(), graph), todo)
    assert index.rows.keys() == {item.key for item in shown}
    assert {row.status for row in index.rows.values()} == {"active", "superseded", "disabled"}
    assert sorted(index.deleted) == sorted([gone.key, absent.key])
    assert done == {item.key for item in todo}
    assert graph.requeued == []


async def test_deletions_are_done_though_the_model_fails():
    index, embedder = Index(), Embedder(bad={"text 0"})
    gone = PendingMemory("t|Memory|gone", "token", None)
    todo = [*pending(*memories(1)), gone]
    assert await index_pending(parts(index, embedder, Graph()), todo) == {gone.key}
    assert index.deleted == [gone.key]
    with pytest.raises(EmbeddingFailed):
        await index_pending(parts(index, embedder, Graph()), todo[:1])


async def test_a_row_that_was_overtaken_is_queued_again():
    first, second = memories(2)
    index, graph = Index(), Graph(overtaken=[second.key])
    done = await index_pending(parts(index, Embedder(), graph), pending(first, second))
    assert done == {first.key}
    assert graph.requeued == [([second.key], "later")]


async def test_nothing_to_do():
    assert await index_pending(parts(None, None, None), []) == frozenset()
    assert await index_memories(None, None, []) == frozenset()
