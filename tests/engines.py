"""Engines for tests: with a clock of their own, and held against their stores."""

from __future__ import annotations

import hashlib
from dataclasses import fields, replace

from ecphoria.access_log import AccessLog
from ecphoria.language.sameness import content
from ecphoria.model import Memory
from ecphoria.recall.query_cache import QueryCache
from ecphoria.remember.indexing import is_indexed, row_fields
from ecphoria.stores.ports import RowFields
from ecphoria_schema.domain import KINDS

PAGE = 500


def with_clock(engine, clock, **parts):
    """Return the same engine as another process would have it: its own clock, nothing noted."""
    access = AccessLog(parts.get("graph", engine.graph), engine.domain, clock)
    kept = {"queries": QueryCache(engine.settings.query_cache_size)} | parts
    return replace(engine, clock=clock, access=access, **kept)


async def all_memories(engine, tenant) -> list[Memory]:
    """Return every memory of a tenant that is not forgotten, from the graph."""
    found, after = [], ""
    while page := await engine.graph.scan_memories(after, PAGE, tenant):
        found += page
        after = page[-1].key
    return found


async def all_rows(engine, tenant) -> list[RowFields]:
    """Return every row of a tenant, from the index."""
    names = [item.name for item in fields(RowFields)]
    found = []
    for kind in KINDS:
        after = ""
        while page := await engine.index.rows(kind, after, PAGE, tenant):
            found += [RowFields(**{name: getattr(row, name) for name in names}) for row in page]
            after = page[-1].id
    return found


async def settle(engine, tenant):
    """Reconcile until nothing of the tenant is pending."""
    while (await engine.graph.counts(tenant))["pending"]:
        report = await engine.reconcile()
        assert report.done, f"rows are pending and nothing gets them done: {report}"


async def check_index_equals_graph(engine, tenant) -> list[Memory]:
    """Check that the index holds what the graph does, field by field; return the memories."""
    memories = await all_memories(engine, tenant)
    expected = [row_fields(memory) for memory in memories if is_indexed(memory)]
    found = await all_rows(engine, tenant)
    assert len({row.key for row in found}) == len(found)
    assert _by_key(found) == _by_key(expected)
    return memories


def _by_key(rows):
    # the index keeps numbers of 32 bits
    return {row.key: replace(row, importance=round(row.importance, 5)) for row in rows}


async def snapshot(engine, tenant, *, leave_out=()):
    """Return all that a tenant's memories are and how they hang together, without its name.

    Of two tenants in which the same was done, the snapshots are equal.
    """
    memories = await check_index_equals_graph(engine, tenant)
    ids = [memory.id for memory in memories]
    lineage = await engine.graph.lineage(tenant, ids)
    links = await engine.graph.links(tenant, ids)
    names = {memory.id: _name(memory) for memory in memories}
    kept = [item.name for item in fields(Memory) if item.name not in {*_OF_A_TENANT, *leave_out}]
    return {
        names[memory.id]: (
            {name: getattr(memory, name) for name in kept},
            set(links.get(memory.id, ())),
            {
                (found.type, found.outgoing, names[found.other], found.how, found.reason, found.by)
                for found in lineage.get(memory.id, ())
            },
        )
        for memory in memories
    }


# What is made by the keys of the tenant.
_KEYED = {"sealed", "value_hash", "words_hash"}
# What names the tenant; `links` has what a memory is about.
_OF_A_TENANT = {"key", "id", "tenant", "claim", "about", *_KEYED}


def _name(memory):
    # ids that were made hold the tenant
    made, part = memory.id.startswith("mem-"), memory.id.partition("~")[2]
    return f"{memory.content_hash}@{memory.occurred_at}~{part}" if made else memory.id


class HashEmbedder:
    """Vectors of words by their hashes: quick, and the same in every process."""

    def __init__(self, spec):
        self.spec = spec

    async def embed_passages(self, texts):
        return [self._vector(text) for text in texts]

    async def embed_query(self, text):
        return self._vector(text)

    async def close(self):
        return None

    def _vector(self, text):
        vector = [0.0] * self.spec.dimension
        for word in content(text) or (text,):
            place = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")
            vector[place % self.spec.dimension] += 1.0
        return vector
