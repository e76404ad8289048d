"""Reading memories from the graph, and the queue of those the index must catch up with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import get_args

from neo4j import AsyncManagedTransaction

from ecphoria.model import EntityRef, Link, LinkMethod, Memory, memory_key
from ecphoria.stores.graph_rows import (
    memory_from,
    milliseconds,
    native,
    said_key,
    session_key,
    split_key,
    words_key,
)
from ecphoria.stores.neo4j_connection import Neo4jConnection, Row, records, run
from ecphoria.stores.ports import CONTEXT_MEMORIES, Lineage, MemoryState, PendingMemory
from ecphoria_schema.domain import Kind, Privacy
from ecphoria_schema.queries import query

# From open to strict.
_LEVELS: tuple[Privacy, ...] = get_args(Privacy)
PENDING_LEASE = "pending"


class Neo4jReading(Neo4jConnection):
    """The part of `GraphStore` that reads memories."""

    async def memories(self, tenant: str, ids: Sequence[str]) -> tuple[Memory, ...]:
        """See `GraphStore.memories`."""
        rows = await self._read(
            "reading memories",
            records(query("memories"), keys=[memory_key(tenant, id_) for id_ in ids]),
        )
        return _memories(rows)

    async def scan_memories(
        self, after: str, limit: int, tenant: str | None = None
    ) -> tuple[Memory, ...]:
        """See `GraphStore.scan_memories`."""
        text = query("scan_memories" if tenant is None else "scan_tenant")
        scope = {} if tenant is None else {"tenant": tenant}
        rows = await self._read(
            "reading memories", records(text, after=after, limit=limit, **scope)
        )
        return _memories(rows)

    async def said(self, memories: Sequence[Memory]) -> Mapping[str, tuple[Memory, ...]]:
        """See `GraphStore.said`."""
        said = {memory.key: words_key(memory) for memory in memories}
        rows = await self._read(
            "looking for duplicates", records(query("said"), keys=sorted(set(said.values())))
        )
        found: dict[str, list[Memory]] = defaultdict(list)
        for memory in _memories(rows):
            found[words_key(memory)].append(memory)
        return {key: tuple(found[said[key]]) for key in said if said[key] in found}

    async def of_same_text(self, memories: Sequence[Memory]) -> tuple[Memory, ...]:
        """See `GraphStore.of_same_text`."""
        keys = sorted({_said_key(memory) for memory in memories})
        rows = await self._read(
            "looking for parts of texts", records(query("of_same_text"), keys=keys)
        )
        return _memories(rows)

    async def claimed(self, claim: str) -> tuple[Memory, ...]:
        """See `GraphStore.claimed`."""
        rows = await self._read("reading a history", records(query("claimed"), claim=claim))
        return _memories(rows)

    async def links(self, tenant: str, ids: Sequence[str]) -> Mapping[str, tuple[Link, ...]]:
        """See `GraphStore.links`."""
        rows = await self._read(
            "reading links",
            records(query("memory_links"), keys=[memory_key(tenant, id_) for id_ in ids]),
        )
        found: dict[str, list[Link]] = defaultdict(list)
        for row in rows:
            found[_id(row["key"])].append(
                Link(
                    split_key(row["entity"])[1],
                    float(row["certainty"] if row["certainty"] is not None else 1.0),
                    LinkMethod(row["how"] or LinkMethod.GIVEN),
                )
            )
        return {id_: tuple(sorted(links, key=_by_entity)) for id_, links in found.items()}

    async def lineage(self, tenant: str, ids: Sequence[str]) -> Mapping[str, tuple[Lineage, ...]]:
        """See `GraphStore.lineage`."""
        rows = await self._read(
            "reading what memories replaced",
            records(query("lineage"), keys=[memory_key(tenant, id_) for id_ in ids]),
        )
        found: dict[str, list[Lineage]] = defaultdict(list)
        for row in rows:
            found[_id(row["key"])].append(
                Lineage(
                    type=row["type"],
                    outgoing=row["from"] == row["key"],
                    other=_id(row["other"]),
                    how=row["how"],
                    reason=row["reason"],
                    by=row["by"],
                    at=native(row["at"]),
                )
            )
        return {
            id_: tuple(sorted(items, key=lambda item: (item.type, not item.outgoing, item.other)))
            for id_, items in found.items()
        }

    async def said_before(self, memories: Sequence[Memory]) -> Mapping[str, tuple[str, ...]]:
        """See `GraphStore.said_before`."""
        asked = {
            memory.key: memory
            for memory in memories
            if memory.session_id is not None and memory.user_id is not None
        }
        if not asked:
            return {}
        rows = await self._read(
            "reading what was said before",
            records(
                query("said_before"),
                rows=[
                    {
                        "key": memory.key,
                        "session": session_key(
                            memory.tenant, memory.user_id or "", memory.session_id or ""
                        ),
                        "at": milliseconds(memory.occurred_at),
                    }
                    for memory in asked.values()
                ],
                limit=CONTEXT_MEMORIES,
            ),
        )
        found: dict[str, list[str]] = defaultdict(list)
        for row in rows:
            if _LEVELS.index(row["privacy"]) <= _LEVELS.index(asked[row["key"]].privacy):
                found[row["key"]].append(row["text"])
        return {key: tuple(texts) for key, texts in found.items()}

    async def session_entities(
        self, tenant: str, user_id: str, session_id: str, limit: int
    ) -> tuple[EntityRef, ...]:
        """See `GraphStore.session_entities`."""
        rows = await self._read(
            "reading a session",
            records(
                query("session_entities"),
                session=session_key(tenant, user_id, session_id),
                limit=limit,
            ),
        )
        refs = (split_key(key)[1] for row in rows for key in sorted(row["about"]))
        return tuple(dict.fromkeys(refs))

    # --- queue -----------------------------------------------------------------------------

    async def lease_pending(
        self, worker: str, limit: int, now: datetime, until: datetime, after: str = ""
    ) -> tuple[PendingMemory, ...]:
        """See `GraphStore.lease_pending`."""

        async def work(tx: AsyncManagedTransaction) -> list[Row]:
            # workers take rows one after the other, so that no two take the same
            await run(tx, query("lock_lease"), key=PENDING_LEASE, token=worker)
            # of what is marked as done meanwhile Neo4j knows no key any more; the query skips it
            return await run(
                tx,
                query("lease_pending"),
                worker=worker,
                limit=limit,
                now=now,
                until=until,
                after=after,
            )

        async with self._locked([PENDING_LEASE]):
            rows = await self._write("taking pending rows", work)
        return tuple(
            PendingMemory(
                row["key"],
                row["token"],
                memory_from(row["props"], row["about"]) if row["props"] else None,
            )
            for row in sorted(rows, key=lambda row: str(row["key"]))
        )

    async def take_lease(self, name: str, worker: str, now: datetime, until: datetime) -> bool:
        """See `GraphStore.take_lease`."""
        rows = await self._write(
            "taking a lease",
            records(
                query("take_lease"), key=name, worker=worker, token=worker, now=now, until=until
            ),
        )
        return bool(rows)

    async def mark_indexed(self, done: Mapping[str, str], model: str) -> frozenset[str]:
        """See `GraphStore.mark_indexed`."""
        rows = await self._write(
            "marking rows as indexed",
            records(
                query("mark_indexed"),
                rows=[{"key": key, "token": done[key]} for key in sorted(done)],
                model=model,
            ),
        )
        return frozenset(row["key"] for row in rows)

    async def requeue(self, keys: Sequence[str], token: str) -> None:
        """See `GraphStore.requeue`."""
        await self._write(
            "queueing rows again", records(query("mark_pending"), keys=list(keys), token=token)
        )

    async def states(self, keys: Sequence[str]) -> tuple[MemoryState, ...]:
        """See `GraphStore.states`."""
        rows = await self._read("reading memories", records(query("states"), keys=list(keys)))
        return tuple(
            MemoryState(
                row["key"],
                memory_from(row["props"], row["about"]) if row["props"] else None,
                row["pending"],
            )
            for row in rows
        )

    async def kinds(self, keys: Sequence[str]) -> Mapping[str, Kind]:
        """See `GraphStore.kinds`."""
        rows = await self._read("reading memories", records(query("kinds"), keys=list(keys)))
        return {row["key"]: row["kind"] for row in rows}

    async def count_pending(self) -> int:
        """See `GraphStore.count_pending`."""
        rows = await self._read("counting", records(query("count_pending"), prefix=""))
        return int(rows[0]["count"])


def _said_key(memory: Memory) -> str:
    return said_key(memory.tenant, memory.user_id, memory.kind, memory.content_hash)


def _memories(rows: Sequence[Row]) -> tuple[Memory, ...]:
    return tuple(memory_from(row["props"], row["about"]) for row in rows)


def _id(key: str) -> str:
    return split_key(key)[1].id


def _by_entity(link: Link) -> tuple[str, str]:
    return link.entity.type, link.entity.id
