"""Looking around in the graph: lists page by page, conflicts, neighbours, counts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from neo4j import AsyncDriver

from ecphoria.model import Entity, EntityRef, Memory, MemoryCount, Stats, Status, entity_key
from ecphoria.stores.graph_rows import entity_from, memory_from, moment, split_key
from ecphoria.stores.neo4j_connection import Neo4jConnection, records
from ecphoria.stores.neo4j_entities import Way, followed
from ecphoria.stores.ports import (
    ConflictQuery,
    InConflict,
    ListQuery,
    Neighbour,
    RelatedPageQuery,
    StepStarts,
)
from ecphoria_schema.domain import Domain
from ecphoria_schema.queries import query
from ecphoria_schema.reading import Step, counts_query, neighbours_query, steps

# So many ends of a relation between shared entities are looked at for each start.
MAX_SCANNED = 1_000
# After every key that begins with what stands before it: keys are parted by bars.
_AFTER_BAR = "}"
_END_OF_TIME = datetime(9999, 12, 31, tzinfo=UTC)


_PAGE: Final[Mapping[Way, str]] = {
    "owned": "page_owned",
    "forward": "page_forward",
    "backward": "page_backward",
}


class Neo4jListing(Neo4jConnection):
    """The part of `GraphStore` that is for looking around."""

    def __init__(
        self, driver: AsyncDriver, database: str, domain: Domain, timeout_s: float
    ) -> None:
        """Use a driver; `open` makes one."""
        super().__init__(driver, database, domain, timeout_s)
        self._steps = steps(domain)
        self._neighbours = neighbours_query(domain)
        self._counts = {of_user: counts_query(domain, of_user=of_user) for of_user in (True, False)}

    async def list_memories(
        self, query_: ListQuery, after: tuple[datetime, str] | None, limit: int
    ) -> tuple[Memory, ...]:
        """See `GraphStore.list_memories`."""
        at, key = after or (_END_OF_TIME, "")
        text = query("list_memories_and_shared" if query_.shared else "list_memories")
        rows = await self._read(
            "listing memories",
            records(text, p=_listed(query_) | {"at": at, "key": key, "limit": limit}),
        )
        return tuple(memory_from(row["props"], row["about"]) for row in rows)

    async def count_listed(self, query_: ListQuery) -> int:
        """See `GraphStore.count_listed`."""
        text = query("count_memories_and_shared" if query_.shared else "count_memories")
        rows = await self._read("counting memories", records(text, p=_listed(query_)))
        return int(rows[0]["count"])

    async def list_entities(
        self, tenant: str, user_id: str, type_: str, after: str, limit: int
    ) -> tuple[Entity, ...]:
        """See `GraphStore.list_entities`."""
        if type_ in self._domain.owned_types:
            work = records(
                query("list_owned", label=type_),
                owner=self._owner(tenant, user_id),
                after=after,
                limit=limit,
            )
        else:
            first = entity_key(tenant, EntityRef(type_, ""))
            work = records(
                query("list_shared", label=type_),
                after=max(after, first),
                before=first.removesuffix("|") + _AFTER_BAR,
                limit=limit,
            )
        rows = await self._read("listing entities", work)
        return tuple(entity_from(self._domain, row["props"]) for row in rows)

    async def count_entities(self, tenant: str, user_id: str, type_: str) -> int:
        """See `GraphStore.count_entities`."""
        if type_ in self._domain.owned_types:
            work = records(query("count_owned", label=type_), owner=self._owner(tenant, user_id))
        else:
            work = records(query("count_label", label=type_), tenant=tenant)
        rows = await self._read("counting entities", work)
        return int(rows[0]["count"])

    async def related_page(
        self, query_: RelatedPageQuery
    ) -> Mapping[EntityRef, tuple[Entity, ...]]:
        """See `GraphStore.related_page`."""
        start = query_.refs[0].type
        owned = self._domain.owned_types
        way, identifiers = followed(start, query_.other, owned, forward=query_.forward)
        rows = await self._read(
            "following a relation",
            records(
                query(_PAGE[way], type=query_.relation, **identifiers),
                keys=[entity_key(query_.tenant, ref) for ref in query_.refs],
                owner=self._owner(query_.tenant, query_.user_id),
                start_shared=start not in owned,
                shared=query_.other not in owned,
                after=query_.after,
                limit=query_.limit,
            ),
        )
        return {
            split_key(row["key"])[1]: tuple(
                entity_from(self._domain, props) for props in row["others"]
            )
            for row in rows
        }

    async def conflicts(self, query_: ConflictQuery) -> tuple[tuple[InConflict, InConflict], ...]:
        """See `GraphStore.conflicts`."""
        rows = await self._read(
            "reading conflicts",
            records(
                query("conflicts"),
                p={
                    "tenant": query_.tenant,
                    "user": query_.user_id,
                    "privacy": list(query_.privacy),
                    "t": query_.at,
                },
            ),
        )
        return tuple(
            (
                InConflict(row["one"], row["topic"], moment(row["at"])),
                InConflict(row["other"], row["other_topic"], moment(row["other_at"])),
            )
            for row in rows
        )

    async def neighbours(
        self, tenant: str, user_id: str, starts: Mapping[Step, StepStarts]
    ) -> tuple[Neighbour, ...]:
        """See `GraphStore.neighbours`."""
        nothing = StepStarts((), 0)
        p: dict[str, Any] = {"owner": self._owner(tenant, user_id), "scan": MAX_SCANNED}
        for number, step in enumerate(self._steps):
            given = starts.get(step, nothing)
            p |= {f"s{number}": list(given.keys), f"c{number}": given.cap}
        rows = await self._read("walking the graph", records(self._neighbours, p=p))
        return tuple(
            Neighbour(
                self._steps[row["step"]], row["start"], entity_from(self._domain, row["entity"])
            )
            for row in rows
        )

    async def stats(self, tenant: str, user_id: str | None) -> Stats:
        """See `GraphStore.stats`."""
        scope: dict[str, object] = {"prefix": f"{tenant}|"}
        if user_id is not None:
            scope = {"user": user_id, "owner": self._owner(tenant, user_id)}
        rows = await self._read(
            "counting", records(self._counts[user_id is not None], tenant=tenant, **scope)
        )
        memories: list[MemoryCount] = []
        counts: dict[str, int] = {}
        for row in rows:
            if row["what"] == "Memory":
                memories.append(
                    MemoryCount(row["kind"], Status(row["status"]), row["tier"], row["count"])
                )
            else:
                counts[row["what"]] = row["count"]
        pending = counts.pop("Pending", 0)
        order = list(self._domain.entities)
        return Stats(
            tuple(sorted(memories, key=lambda item: (item.kind, item.status, item.tier))),
            pending,
            dict(sorted(counts.items(), key=lambda item: order.index(item[0]))),
        )


def _listed(query_: ListQuery) -> dict[str, Any]:
    """Return the parameters of the fragment ``__LISTED__``."""
    return {
        "tenant": query_.tenant,
        "user": query_.user_id,
        "privacy": list(query_.privacy),
        "now": query_.now,
        "since": query_.since,
        "until": query_.until,
        "kinds": list(query_.kinds),
        "statuses": list(query_.statuses),
        "topics": list(query_.topics),
        "sources": list(query_.sources),
        "any_entity": query_.entity is None,
        "entity": query_.entity or "",
        "any_time": query_.valid_at is None,
        "valid_at": query_.valid_at or query_.now,
    }
