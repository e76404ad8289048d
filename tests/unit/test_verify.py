"""Comparing graph and index: what counts as a difference, what does not, and at what cost."""

from __future__ import annotations

import dataclasses
import tracemalloc
from types import SimpleNamespace

import pytest

import builders
from ecphoria.clock import Clock
from ecphoria.lifecycle import verify as verifying
from ecphoria.lifecycle.verify import MODEL, Fault, verify
from ecphoria.model import Status, memory_key, vector_id
from ecphoria.remember.indexing import row_fields, text_hash
from ecphoria.stores.ports import IndexedRow, MemoryState, RowFields

MODEL_NAME = builders.SPEC.model


def indexed(memory, **changes):
    row = row_fields(memory)
    values = {item.name: getattr(row, item.name) for item in dataclasses.fields(RowFields)}
    return IndexedRow(**(values | {"id": vector_id(memory.key)} | changes))


class Graph:
    """Memories in a dict; `before` is called with the name of each call and its number."""

    def __init__(self, memories=(), pending=(), before=None):
        self.memories = {memory.key: memory for memory in memories}
        self.waiting = dict.fromkeys(pending, "token")
        self.before = before
        self.calls = {}

    def _called(self, name):
        self.calls[name] = self.calls.get(name, 0) + 1
        if self.before is not None:
            self.before(name, self.calls[name])

    async def scan_memories(self, after, limit, tenant):
        self._called("scan_memories")
        keys = sorted(key for key in self.memories if key > after)
        found = (self.memories[key] for key in keys[:limit])
        return tuple(memory for memory in found if tenant in {None, memory.tenant})

    async def states(self, keys):
        self._called("states")
        return tuple(MemoryState(key, self.memories.get(key), key in self.waiting) for key in keys)

    async def kinds(self, keys):
        self._called("kinds")
        return {key: self.memories[key].kind for key in keys if key in self.memories}

    async def requeue(self, keys, token):
        self._called("requeue")
        self.waiting |= dict.fromkeys(keys, token)

    async def mark_indexed(self, done, model):
        self._called("mark_indexed")
        marked = {key for key, token in done.items() if self.waiting.get(key) == token}
        for key in marked:
            del self.waiting[key]
            if key in self.memories:
                self.memories[key] = dataclasses.replace(self.memories[key], embedding_model=model)
        return frozenset(marked)


class Index:
    def __init__(self, rows=()):
        self.stored = {(row.kind, row.key): row for row in rows}

    async def count(self, tenant):
        return sum(tenant in {None, row.tenant} for row in self.stored.values())

    async def rows_of(self, kind, keys):
        return {key: self.stored[kind, key] for key in keys if (kind, key) in self.stored}

    async def rows(self, kind, after, limit, tenant):
        found = (
            row
            for (its, _), row in self.stored.items()
            if its == kind and row.id > after and tenant in {None, row.tenant}
        )
        return tuple(sorted(found, key=lambda row: row.id)[:limit])

    async def upsert(self, rows):
        for row in rows:
            values = {item.name: getattr(row, item.name) for item in dataclasses.fields(RowFields)}
            self.stored[row.kind, row.key] = IndexedRow(**values, id=vector_id(row.key))

    async def delete(self, keys):
        for place in [place for place in self.stored if place[1] in keys]:
            del self.stored[place]


class Embedder:
    spec = builders.SPEC

    def __init__(self):
        self.asked = []

    async def embed_passages(self, texts):
        self.asked += texts
        return [(1.0, 0.0, 0.0, 0.0) for _ in texts]


def parts(graph, index):
    tokens = iter(range(1000))
    return SimpleNamespace(
        graph=graph,
        index=index,
        embedder=Embedder(),
        clock=Clock(token=lambda: f"t{next(tokens)}"),
    )


async def result(its, **options):
    report = None
    async for progress in verify(its, **options):
        report = progress.report
    return report


async def checked(memories, rows, **options):
    return await result(parts(Graph(memories), Index(rows)), **options)


def faults(report):
    return (report.missing, report.orphaned, report.stale_text, report.stale_fields)


async def test_stores_in_line():
    memories = [builders.memory(f"m{n}", kind=kind) for n, kind in enumerate(verifying.KINDS)]
    memories.append(builders.memory("taken-back", status=Status.DISABLED))
    report = await checked(memories, [indexed(memory) for memory in memories])
    assert (report.checked, report.found, report.left, report.examples) == (4, 0, 0, ())
    assert (await checked([], [])).checked == 0


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"user_id": "other"}, ("user_id",)),
        ({"topic": None}, ("topic",)),
        ({"privacy": "public", "tier": "archive"}, ("privacy", "tier")),
        ({"status": "superseded"}, ("status",)),
        ({"importance": 0.51}, ("importance",)),
        ({"valid_until": builders.day(1)}, ("valid_until",)),
        ({"expires_at": builders.day(1)}, ("expires_at",)),
        ({"importance": 0.5 + 3e-8}, ()),
    ],
)
async def test_filter_fields_are_compared_and_named(changes, fields):
    memory = builders.memory()
    report = await checked([memory], [indexed(memory, **changes)])
    assert faults(report) == (0, 0, 0, 1 if fields else 0)
    assert [example.fields for example in report.examples] == ([fields] if fields else [])


async def test_times_are_compared_to_the_millisecond():
    moment = builders.NOW.replace(microsecond=123_456)
    memory = builders.memory(expires_at=moment)
    stored = moment.replace(microsecond=123_000)
    assert (await checked([memory], [indexed(memory, expires_at=stored)])).found == 0


async def test_every_kind_of_difference_is_told_apart_and_mended():
    good, missing, text, field, kind, model, gone = memories = [
        builders.memory(f"m{number}", f"text {number}") for number in range(7)
    ]
    model = dataclasses.replace(model, embedding_model="an older one")
    rows = [indexed(each) for each in (good, field, kind, model, gone)]
    rows[1] = indexed(field, tier="archive")
    rows[2] = indexed(kind, kind="episodic")
    rows.append(indexed(text, hash=text_hash("another text")))
    its = parts(Graph([good, missing, text, field, kind, model]), Index(rows))

    report = await result(its)
    # one in the collection of another kind is missing in its own
    assert faults(report) == (2, 1, 1, 2)
    assert {(each.fault, each.memory_id): each.fields for each in report.examples} == {
        (Fault.MISSING, "m1"): (),
        (Fault.STALE_TEXT, "m2"): (),
        (Fault.STALE_FIELDS, "m3"): ("tier",),
        (Fault.MISSING, "m4"): (),
        (Fault.STALE_FIELDS, "m5"): (MODEL,),
        (Fault.ORPHANED, "m6"): (),
    }
    assert report.left == report.found == 6

    mended = await result(its, repair=True)
    assert (mended.found, mended.repaired, mended.left) == (7, 7, 0)
    assert sorted(its.embedder.asked) == ["text 1", "text 2", "text 3", "text 4", "text 4"]
    again = await result(its)
    assert (again.found, again.checked) == (0, 6)
    assert {row.key for row in its.index.stored.values()} == {each.key for each in memories[:6]}
    assert len(its.index.stored) == 6
    assert its.graph.waiting == {}


async def test_what_is_queued_is_no_fault():
    missing, gone = builders.memory("m"), builders.memory("gone")
    graph = Graph([missing], pending=[missing.key, gone.key])
    assert (await result(parts(graph, Index([indexed(gone)])))).found == 0


@pytest.mark.parametrize("call", [1, 2])
async def test_what_changes_meanwhile_is_no_fault(call):
    memory, late = builders.memory("m"), builders.memory("late")
    changed = dataclasses.replace(memory, status=Status.SUPERSEDED)
    index = Index([indexed(memory, tier="archive"), indexed(late)])

    def before(name, number):
        # a whole write, graph and index, between two looks at the page
        if (name, number) == ("states", call):
            graph.memories |= {memory.key: changed, late.key: late}
            index.stored["semantic", memory.key] = indexed(changed)

    graph = Graph([memory], before=before)
    assert (await result(parts(graph, index))).found == 0


async def test_what_another_worker_was_quicker_to_mend_counts_as_mended():
    memory = builders.memory("m")
    index = Index()

    def before(name, number):
        del number
        if name == "mark_indexed":
            graph.waiting = {}

    graph = Graph([memory], before=before)
    report = await result(parts(graph, index), repair=True)
    assert (report.missing, report.repaired) == (1, 1)


async def test_what_the_model_fails_on_is_left_and_the_rest_is_mended():
    memories = [builders.memory(f"m{n}", f"text {n}") for n in range(3)]
    its = parts(Graph(memories), Index())
    whole = its.embedder.embed_passages

    async def picky(texts):
        if "text 1" in texts:
            msg = "not that"
            raise verifying.EmbeddingFailed(msg)
        return await whole(texts)

    its.embedder.embed_passages = picky
    report = await result(its, repair=True)
    assert (report.missing, report.repaired, report.left) == (3, 2, 1)
    assert list(its.graph.waiting) == [memories[1].key]


async def test_one_tenant_only():
    own, other = builders.memory("m"), builders.memory("m")
    other = dataclasses.replace(other, tenant="other", key=memory_key("other", "m"))
    its = parts(Graph([own, other]), Index())
    assert (await result(its, tenant="other")).checked == 1
    assert (await result(its, tenant="other")).examples[0].tenant == "other"
    assert (await result(its)).missing == 2


async def test_examples_are_few(monkeypatch):
    monkeypatch.setattr(verifying, "PAGE", 7)
    memories = [builders.memory(f"m{n:03}") for n in range(100)]
    report = await checked(memories, [])
    assert (report.missing, len(report.examples)) == (100, verifying.MAX_EXAMPLES)


async def test_progress_reaches_its_end(monkeypatch):
    monkeypatch.setattr(verifying, "PAGE", 10)
    memories = [builders.memory(f"m{n:03}") for n in range(35)]
    rows = [indexed(memory) for memory in memories[:25]]
    seen = [progress async for progress in verify(parts(Graph(memories), Index(rows)))]
    assert [each.done for each in seen] == [10, 20, 30, 35, 45, 55, 60, 60]
    assert all(each.done <= each.total for each in seen)
    assert seen[-1].done == seen[-1].total == 60
    assert [each.stage for each in seen].index("index") == 4


class Endless:
    """Makes memories and their rows when asked for, and keeps none."""

    def __init__(self, count):
        self.ids = [f"m{number:06}" for number in range(count)]
        self.by_key = {memory_key(builders.TENANT, id_): id_ for id_ in self.ids}
        self.by_row = {vector_id(key): id_ for key, id_ in self.by_key.items()}
        self.rows_in_order = sorted(self.by_row)

    @staticmethod
    def memory(id_):
        return builders.memory(id_, f"text of {id_} " * 50)

    async def scan_memories(self, after, limit, _tenant):
        start = 0 if not after else self.ids.index(self.by_key[after]) + 1
        return tuple(self.memory(id_) for id_ in self.ids[start : start + limit])

    async def states(self, keys):
        return tuple(MemoryState(key, self.memory(self.by_key[key]), pending=False) for key in keys)

    async def kinds(self, keys):
        return {key: "semantic" for key in keys if key in self.by_key}

    async def count(self, _tenant):
        return len(self.ids)

    async def rows_of(self, kind, keys):
        assert kind == "semantic"
        return {key: indexed(self.memory(self.by_key[key])) for key in keys}

    async def rows(self, kind, after, limit, _tenant):
        if kind != "semantic":
            return ()
        start = 0 if not after else self.rows_in_order.index(after) + 1
        ids = (self.by_row[row] for row in self.rows_in_order[start : start + limit])
        return tuple(indexed(self.memory(id_)) for id_ in ids)


async def peak_of(count):
    stores = Endless(count)
    its = parts(stores, stores)
    tracemalloc.start()
    report = await result(its)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (report.checked, report.found) == (count, 0)
    return peak


async def test_memory_use_does_not_grow_with_the_number_of_memories(monkeypatch):
    monkeypatch.setattr(verifying, "PAGE", 100)
    few, many = await peak_of(500), await peak_of(5_000)
    assert many < 1.3 * few
