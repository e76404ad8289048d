"""Writing memories to the graph, and putting those of one attribute in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from neo4j import AsyncManagedTransaction

from ecphoria.decay import archive_at, refreshed
from ecphoria.model import IndexState, Link, Memory, Standing, Status, entity_key, memory_key
from ecphoria.stores.graph_rows import (
    memory_from,
    memory_row,
    milliseconds,
    moment,
    native,
    past_text,
    source_key,
)
from ecphoria.stores.neo4j_connection import Neo4jConnection, Row, grouped, records, run
from ecphoria.stores.neo4j_feedback_removal import drop_feedback
from ecphoria.stores.neo4j_forgetting import refuse_forgotten
from ecphoria.stores.ports import (
    CONTEXT_MEMORIES,
    Changed,
    MemoriesWritten,
    MemoryWrite,
    NewMemory,
    PendingMemory,
    Reinforcement,
    Uses,
)
from ecphoria.timeline import Claimant, Place, Replacement, alone, may_replace, places, said_value
from ecphoria_schema.domain import Kind, KindPolicy
from ecphoria_schema.queries import query

_BY_RULE = "attribute"
_KEPT = [Status.ACTIVE, Status.SUPERSEDED, Status.DISABLED]


@dataclass(frozen=True, slots=True)
class _Stood:
    """A memory as it stands in the graph, with its relations to others of its claim."""

    memory: Memory
    replaced_by: tuple[Row, ...]
    against: tuple[Row, ...]

    @classmethod
    def of(cls, row: Row) -> _Stood:
        return cls(
            memory_from(row["props"], row["about"]),
            tuple(row["replaced_by"]),
            tuple(row["against"]),
        )

    @property
    def claimant(self) -> Claimant:
        memory = self.memory
        return Claimant(
            key=memory.key,
            value=said_value(memory),
            valid_from=memory.valid_from,
            stated_until=min(
                (end for end in (memory.stated_until, memory.ended_at) if end is not None),
                default=None,
            ),
            fixed_until=memory.fixed_until,
            reliability=memory.reliability,
            number=memory.claim_number,
            replaced_by=tuple(
                Replacement(by["key"], native(by["from"]))
                for by in self.replaced_by
                if by["how"] != _BY_RULE and by["status"] in {Status.ACTIVE, Status.SUPERSEDED}
            ),
        )


@dataclass(slots=True)
class _Standings:
    """What putting memories in order brought: their places, and the rows that changed."""

    places: dict[str, Place] = field(default_factory=dict)
    changed: dict[str, Memory] = field(default_factory=dict)


class Neo4jMemories(Neo4jConnection):
    """The part of `GraphStore` that writes memories."""

    async def write_memories(
        self,
        new: Sequence[NewMemory],
        token: str,
        now: datetime,
        reinforced: Sequence[Reinforcement] = (),
        unless: Sequence[str] = (),
    ) -> MemoriesWritten:
        """See `GraphStore.write_memories`."""
        # one order of keys for all writers, so that two batches cannot wait for each other
        ordered = sorted(new, key=lambda item: item.memory.key)

        async def work(tx: AsyncManagedTransaction) -> MemoriesWritten:
            await refuse_forgotten(tx, unless)
            return await self._write_all(tx, ordered, new, reinforced, token, now)

        keys = {item.memory.key for item in ordered} | {item.key for item in reinforced}
        claims = {item.memory.claim for item in ordered if item.memory.claim is not None}
        async with self._locked(keys | claims):
            written = await self._write("writing memories", work)
        by_key = {write.key: write for write in written.writes}
        return replace(written, writes=tuple(by_key[item.memory.key] for item in new))

    async def _write_all(
        self,
        tx: AsyncManagedTransaction,
        ordered: Sequence[NewMemory],
        given: Sequence[NewMemory],
        reinforced: Sequence[Reinforcement],
        token: str,
        now: datetime,
    ) -> MemoriesWritten:
        replaced = sorted({key for item in ordered for key in _replaced_keys(item)})
        counts, now = await self._lock_claims(
            tx,
            {item.memory.claim for item in ordered if item.memory.claim is not None}
            | await self._claims_of(tx, replaced),
            token,
            now,
        )
        await self._lock_memories(tx, replaced)
        writes = await self._merge(tx, ordered, token, now)
        said = [
            {"key": item.memory.key, "times": 1 + item.memory.reinforced, "statuses": _KEPT}
            for item in ordered
            if writes[item.memory.key].outcome == "DUPLICATE"
        ]
        said += [
            {"key": item.key, "times": item.times, "statuses": [Status.ACTIVE]}
            for item in reinforced
        ]
        again: set[str] = set()
        if said:
            said.sort(key=lambda row: str(row["key"]))
            again = {row["key"] for row in await run(tx, query("reinforce"), rows=said)}
        better = [
            {"key": item.key, "text": item.text}
            for item in reinforced
            if item.text is not None and item.key in again
        ]
        if better:
            await run(tx, query("improve_texts"), rows=better)
        # in the order given: what was said later is the later one, in bulk as one by one
        created = [item for item in given if writes[item.memory.key].outcome == "CREATED"]
        standings = _Standings()
        if created:
            await self._number(tx, created, counts)
            await self._connect(tx, created, now)
            standings = await self._replace_stated(tx, created, now)
        pending = {item.memory.key: item.memory for item in created}
        pending |= standings.changed
        reread = {row["key"] for row in better}
        reread |= await self._said_after(tx, [item.memory for item in created])
        reread -= pending.keys()
        if reread:
            rows = await run(tx, query("memories"), keys=sorted(reread))
            pending |= {
                memory.key: memory
                for memory in (memory_from(row["props"], row["about"]) for row in rows)
            }
        await self._mark_pending(tx, pending, token)
        self._told(writes, standings, created)
        return MemoriesWritten(
            tuple(writes.values()),
            tuple(PendingMemory(key, token, pending[key]) for key in sorted(pending)),
            tuple(item.key for item in reinforced if item.key not in again),
        )

    async def _merge(
        self,
        tx: AsyncManagedTransaction,
        ordered: Sequence[NewMemory],
        token: str,
        now: datetime,
    ) -> dict[str, MemoryWrite]:
        """Create what is not there; the later parts of a text only where its first one is kept."""
        writes: dict[str, MemoryWrite] = {}
        for parts in (False, True):
            rows: list[Row] = []
            for item in ordered:
                if (item.first is not None) is not parts:
                    continue
                first = None if item.first is None else writes.get(item.first)
                if first is not None and first.outcome in {"CONFLICT", "FORGOTTEN"}:
                    writes[item.memory.key] = replace(first, key=item.memory.key)
                else:
                    memory = replace(item.memory, recorded_at=now)
                    rows.append(memory_row(memory))
            if not rows:
                continue
            found = await run(tx, query("merge_memories"), rows=rows, token=token)
            stored = {row["key"]: row for row in found}
            writes |= {
                item.memory.key: _outcome(item.memory, stored[item.memory.key])
                for item in ordered
                if item.memory.key in stored
            }
        return writes

    def _told(
        self,
        writes: dict[str, MemoryWrite],
        standings: _Standings,
        created: Sequence[NewMemory],
    ) -> None:
        ended: dict[str, list[str]] = {}
        new = {item.memory.key for item in created}
        for key, memory in standings.changed.items():
            place = standings.places[key]
            if place.superseded_by in new and key not in new:
                ended.setdefault(place.superseded_by, []).append(memory.key)
        for item in created:
            stands = standings.places.get(item.memory.key)
            stated = [key for key in _replaced_keys(item) if key in standings.changed]
            writes[item.memory.key] = replace(
                writes[item.memory.key],
                supersedes=tuple(sorted({*ended.get(item.memory.key, ()), *stated})),
                superseded_by=None if stands is None else stands.superseded_by,
                conflicts_with=() if stands is None else stands.conflicts_with,
            )

    async def _mark_pending(
        self, tx: AsyncManagedTransaction, keys: Iterable[str], token: str
    ) -> None:
        await run(tx, query("mark_pending"), keys=sorted(keys), token=token)

    async def _said_after(
        self, tx: AsyncManagedTransaction, memories: Sequence[Memory]
    ) -> set[str]:
        """Return the keys of memories whose context holds one of these."""
        keys = sorted(memory.key for memory in memories if memory.session_id is not None)
        if not keys:
            return set()
        rows = await run(tx, query("said_after"), keys=keys, limit=CONTEXT_MEMORIES)
        return {row["key"] for row in rows}

    # --- claims ----------------------------------------------------------------------------

    async def _claims_of(self, tx: AsyncManagedTransaction, keys: Sequence[str]) -> set[str]:
        if not keys:
            return set()
        rows = await run(tx, query("claims_of"), keys=list(keys))
        return {row["claim"] for row in rows}

    async def _lock_claims(
        self, tx: AsyncManagedTransaction, claims: set[str], token: str, now: datetime
    ) -> tuple[dict[str, int], datetime]:
        """Keep every other writer of the claims out until this one is done.

        Returns:
            How many memories each claim had, and when what is written now is recorded: not before
            the last one was, whoever wrote it.
        """
        if not claims:
            return {}, now
        rows = await run(tx, query("lock_claims"), keys=sorted(claims), token=token, now=now)
        return {row["key"]: row["count"] for row in rows}, native(rows[0]["at"])

    async def _lock_memories(self, tx: AsyncManagedTransaction, keys: Sequence[str]) -> None:
        # what is read of them from here on stays so until this transaction is done
        if keys:
            await run(tx, query("lock_memories"), keys=sorted(keys))

    async def _number(
        self, tx: AsyncManagedTransaction, created: Sequence[NewMemory], counts: dict[str, int]
    ) -> None:
        rows: list[Row] = []
        for item in created:
            claim = item.memory.claim
            if claim is not None:
                counts[claim] += 1
                rows.append({"memory": item.memory.key, "claim": claim, "number": counts[claim]})
        if rows:
            await run(tx, query("number_claimants"), rows=rows)

    async def _put_in_order(
        self, tx: AsyncManagedTransaction, keys: Iterable[str], fresh: set[str], now: datetime
    ) -> _Standings:
        """Find the places of memories and of all that compete with them; write what changed."""
        first = await run(tx, query("standings"), keys=sorted(set(keys)))
        stood = {row["key"]: _Stood.of(row) for row in first}
        claims = sorted({item.memory.claim for item in stood.values() if item.memory.claim})
        if claims:
            for row in await run(tx, query("claimants"), claims=claims):
                stood[row["key"]] = _Stood.of(row)
        found = _Standings()
        groups: dict[str, list[Claimant]] = {}
        for item in stood.values():
            if item.memory.claim is None:
                found.places[item.memory.key] = alone(item.claimant)
            else:
                groups.setdefault(item.memory.claim, []).append(item.claimant)
        for members in groups.values():
            found.places |= places(members)
        await self._write_standings(tx, stood, found, fresh, now)
        await self._write_relations(tx, stood, found.places, now)
        return found

    async def _write_standings(
        self,
        tx: AsyncManagedTransaction,
        stood: Mapping[str, _Stood],
        found: _Standings,
        fresh: set[str],
        now: datetime,
    ) -> None:
        rows: list[Row] = []
        for key, item in stood.items():
            place, memory = found.places[key], item.memory
            if (memory.status, memory.valid_until) == (place.status, place.valid_until):
                continue
            past = memory.past
            if key not in fresh:
                past = (*past, Standing(now, memory.status, memory.valid_until))
            ended = now if place.status is Status.SUPERSEDED else None
            found.changed[key] = replace(
                memory,
                status=place.status,
                valid_until=place.valid_until,
                invalidated_at=ended,
                past=past,
                index_state=IndexState.STALE,
            )
            rows.append(
                {
                    "key": key,
                    "status": place.status,
                    "valid_until": place.valid_until,
                    "invalidated_at": ended,
                    "past": past_text(past) if past else None,
                }
            )
        if rows:
            await run(tx, query("set_standings"), rows=rows)

    async def _write_relations(
        self,
        tx: AsyncManagedTransaction,
        stood: Mapping[str, _Stood],
        found: Mapping[str, Place],
        now: datetime,
    ) -> None:
        superseding: list[Row] = []
        no_superseding: list[Row] = []
        conflicts: list[Row] = []
        no_conflicts: list[Row] = []
        for key, item in stood.items():
            place = found[key]
            by_rule = {by["key"] for by in item.replaced_by if by["how"] == _BY_RULE}
            by_name = {by["key"] for by in item.replaced_by} - by_rule
            wanted = {place.superseded_by} - {None} - by_name
            superseding += [{"newer": by, "older": key} for by in wanted - by_rule]
            no_superseding += [{"newer": by, "older": key} for by in by_rule - wanted]
            against = {other["key"] for other in item.against if other["how"] == _BY_RULE}
            by_name = {other["key"] for other in item.against} - against
            opposed = set(place.conflicts_with) - by_name
            conflicts += [{"newer": key, "older": other} for other in opposed - against]
            no_conflicts += [{"newer": key, "older": other} for other in against - opposed]
        reason = "a newer value of the same attribute, from a source at least as reliable"
        rule = {"how": _BY_RULE, "reason": reason, "by": None}
        for name, rows in (
            ("merge_superseding", [row | rule for row in superseding]),
            ("delete_superseding", no_superseding),
            ("merge_conflicts", [row | rule for row in conflicts]),
            ("delete_conflicts", no_conflicts),
        ):
            if rows:
                times = {"now": now} if name.startswith("merge") else {}
                await run(tx, query(name), rows=rows, **times)

    # --- connections -----------------------------------------------------------------------

    async def _connect(
        self, tx: AsyncManagedTransaction, created: Sequence[NewMemory], now: datetime
    ) -> None:
        about = grouped(
            (link.entity.type, _about_row(item, link)) for item in created for link in item.links
        )
        for label in sorted(about):
            await run(tx, query("link_about", label=label), rows=about[label])
        sources = self._domain.sources
        tenant = created[0].memory.tenant
        await run(
            tx,
            query("link_source"),
            tenant=tenant,
            now=now,
            rows=[
                {
                    "memory": memory.key,
                    "source_key": source_key(memory.tenant, memory.source_id),
                    "source_id": memory.source_id,
                    "source_name": sources[memory.source_id].title.en,
                    "reliability": sources[memory.source_id].reliability,
                }
                for memory in (item.memory for item in created)
            ],
        )
        mentions = [row for item in created for row in self._mention_rows(item)]
        if mentions:
            await run(tx, query("merge_mentions"), rows=mentions, tenant=tenant)
        resembling = [
            {"newer": item.memory.key, "older": key} for item in created for key in item.resembles
        ]
        if resembling:
            await run(tx, query("merge_resembling"), rows=resembling, now=now)

    def _mention_rows(self, item: NewMemory) -> list[Row]:
        memory = item.memory
        owner = None if memory.user_id is None else self._owner(memory.tenant, memory.user_id)
        return [
            {
                "key": f"{memory.key}>{entity_key(memory.tenant, mention.entity)}",
                "memory": memory.key,
                "entity": entity_key(memory.tenant, mention.entity),
                "owner": owner,
                "certainty": mention.certainty,
                "text": mention.text,
            }
            for mention in item.mentions
        ]

    async def _replace_stated(
        self, tx: AsyncManagedTransaction, created: Sequence[NewMemory], now: datetime
    ) -> _Standings:
        """Relate what is said to replace another by name, then put all of it in order."""
        fresh = {item.memory.key for item in created}
        said = {item.memory.key: item for item in created}
        pairs = [
            {"newer": item.memory.key, "older": key}
            for item in created
            for key in _replaced_keys(item)
        ]
        pairs += await run(tx, query("late_supersessions"), keys=sorted(fresh))
        known = await run(tx, query("replace_stated"), rows=pairs) if pairs else []
        superseding: list[Row] = []
        conflicts: list[Row] = []
        for row in known:
            item = said.get(row["newer"])
            how = "stated" if item is None else item.how
            pair = {"newer": row["newer"], "older": row["older"], "how": how}
            by_hand = how == "hand"
            if may_replace(row["newer_reliability"], row["older_reliability"], by_hand=by_hand):
                superseding.append(
                    pair
                    | {
                        "reason": None if item is None else item.reason,
                        "by": None if item is None else item.by,
                    }
                )
            else:
                conflicts.append(pair)
        if superseding:
            await run(tx, query("merge_superseding"), rows=superseding, now=now)
        if conflicts:
            await run(tx, query("merge_conflicts"), rows=conflicts, now=now)
        touched = {row["older"] for row in known} | {
            item.memory.key for item in created if item.memory.claim is not None
        }
        if not touched:
            return _Standings()
        found = await self._put_in_order(tx, touched, fresh, now)
        for row in conflicts:
            place = found.places.get(row["newer"], Place(Status.ACTIVE, None))
            found.places[row["newer"]] = replace(
                place, conflicts_with=tuple(sorted({*place.conflicts_with, row["older"]}))
            )
        return found

    # --- by hand ---------------------------------------------------------------------------

    async def retract(
        self, tenant: str, memory_id: str, token: str, now: datetime, *, reason: str, by: str
    ) -> tuple[PendingMemory, ...]:
        """See `GraphStore.retract`."""
        key = memory_key(tenant, memory_id)

        async def work(tx: AsyncManagedTransaction) -> tuple[PendingMemory, ...]:
            touched = {row["key"] for row in await run(tx, query("replaced_by_these"), keys=[key])}
            claims = await self._claims_of(tx, [key, *touched])
            _, at = await self._lock_claims(tx, claims, token, now)
            await self._lock_memories(tx, [key, *touched])
            rows = await run(tx, query("standings"), keys=[key])
            if not rows:
                return ()
            memory = _Stood.of(rows[0]).memory
            past = (*memory.past, Standing(at, memory.status, memory.valid_until))
            await run(
                tx,
                query("set_disabled"),
                now=at,
                rows=[{"key": key, "past": past_text(past), "by": by, "reason": reason}],
            )
            if memory.claim is not None:
                touched |= {
                    row["key"] for row in await run(tx, query("claimants"), claims=[memory.claim])
                }
            found = await self._put_in_order(tx, touched, set(), at)
            changed = found.changed | {
                key: replace(
                    memory, status=Status.DISABLED, past=past, index_state=IndexState.STALE
                )
            }
            await self._mark_pending(tx, changed, token)
            return tuple(PendingMemory(each, token, changed[each]) for each in sorted(changed))

        async with self._locked([key]):
            return await self._write("taking a memory back", work)

    async def forget(
        self, keys: Sequence[str], token: str, now: datetime, reason: str
    ) -> tuple[Changed, ...]:
        """See `GraphStore.forget`."""
        ordered = sorted(set(keys))

        async def work(tx: AsyncManagedTransaction) -> tuple[Changed, ...]:
            _, at = await self._lock_claims(tx, await self._claims_of(tx, ordered), token, now)
            await self._lock_memories(tx, ordered)
            rows = await run(tx, query("not_forgotten"), keys=ordered)
            if not rows:
                return ()
            there = [row["key"] for row in rows]
            # what it had ended must not begin again only because nobody may know why
            await run(tx, query("fix_ends"), keys=there)
            # its words must not live on in the rows of what was said after it
            after = await run(tx, query("said_after"), keys=there, limit=CONTEXT_MEMORIES)
            await run(tx, query("delete_mentions"), keys=there)
            await drop_feedback(tx, "memory", there)
            await run(tx, query("detach_memories"), keys=there)
            await run(
                tx,
                query("leave_tombstones"),
                rows=[
                    {
                        "key": row["key"],
                        "props": {
                            "key": row["key"],
                            "tenant": row["tenant"],
                            "id": row["id"],
                            "name": "forgotten",
                            "kind": row["kind"],
                            "status": Status.FORGOTTEN,
                            "index_state": IndexState.DELETING,
                            "recorded_at": row["recorded_at"],
                            "invalidated_at": at,
                            "reason": reason,
                        },
                    }
                    for row in rows
                ],
            )
            claims = sorted({row["claim"] for row in rows if row["claim"] is not None})
            left = await run(tx, query("claimants"), claims=claims) if claims else []
            found = await self._put_in_order(tx, [row["key"] for row in left], set(), at)
            behind = {row["key"] for row in after}
            await self._mark_pending(tx, {*there, *found.changed, *behind}, token)
            return tuple(
                Changed(row["key"], row["tenant"], row["id"], row["user_id"]) for row in rows
            )

        async with self._locked(ordered):
            return await self._write("forgetting memories", work)

    # --- ageing ----------------------------------------------------------------------------

    async def expired(self, now: datetime, limit: int) -> tuple[str, ...]:
        """See `GraphStore.expired`."""
        rows = await self._read(
            "looking for expired memories", records(query("expired"), now=now, limit=limit)
        )
        return tuple(row["key"] for row in rows)

    async def archive(self, now: datetime, limit: int, token: str) -> tuple[Changed, ...]:
        """See `GraphStore.archive`."""

        async def work(tx: AsyncManagedTransaction) -> tuple[Changed, ...]:
            rows = await run(tx, query("archive"), now=now, limit=limit)
            await self._mark_pending(tx, [row["key"] for row in rows], token)
            return tuple(
                Changed(row["key"], row["tenant"], row["id"], row["user_id"]) for row in rows
            )

        return await self._write("archiving memories", work)

    async def record_access(
        self, uses: Mapping[str, Uses], token: str, policies: Mapping[Kind, KindPolicy]
    ) -> None:
        """See `GraphStore.record_access`."""
        ordered = sorted(uses)

        async def work(tx: AsyncManagedTransaction) -> None:
            await self._lock_memories(tx, ordered)
            rows = await run(tx, query("access_states"), keys=ordered)
            await run(
                tx,
                query("record_access"),
                rows=[_used(row, uses[row["key"]], policies) for row in rows],
            )
            back = [row["key"] for row in rows if row["tier"] != "hot"]
            if back:
                await self._mark_pending(tx, back, token)

        if ordered:
            async with self._locked(ordered):
                await self._write("counting uses", work)


def _replaced_keys(item: NewMemory) -> tuple[str, ...]:
    memory = item.memory
    return () if memory.supersedes is None else (memory_key(memory.tenant, memory.supersedes),)


def _about_row(item: NewMemory, link: Link) -> Row:
    memory = item.memory
    return {
        "memory": memory.key,
        "entity": entity_key(memory.tenant, link.entity),
        "certainty": link.certainty,
        "how": link.how,
        "attribute": memory.attribute,
        "value": memory.value,
    }


def _outcome(memory: Memory, stored: Row) -> MemoryWrite:
    if stored["created"]:
        return MemoryWrite(memory.key, "CREATED")
    if stored["status"] == Status.FORGOTTEN:
        return MemoryWrite(memory.key, "FORGOTTEN")
    if native(stored["user_id"]) != memory.user_id:
        return MemoryWrite(memory.key, "CONFLICT", "the id belongs to a memory of another user")
    if stored["content_hash"] != memory.content_hash:
        return MemoryWrite(memory.key, "CONFLICT", "the id belongs to a memory with other content")
    return MemoryWrite(memory.key, "DUPLICATE", index_state=IndexState(stored["index_state"]))


def _used(row: Row, uses: Uses, policies: Mapping[Kind, KindPolicy]) -> Row:
    decay = policies[row["kind"]].decay
    since = moment(row["freshness_at"] or row["recorded_at"])
    freshness = float(1.0 if row["freshness"] is None else row["freshness"])
    fresh = 1.0 if decay is None else refreshed(freshness, since, uses.last, decay, uses.count)
    last = max(since, uses.last)
    return {
        "key": row["key"],
        "access_count": (row["access_count"] or 0) + uses.count,
        "last_accessed_at": milliseconds(uses.last),
        "freshness": fresh,
        "freshness_at": milliseconds(last),
        "archive_at": None if decay is None else milliseconds(archive_at(fresh, last, decay)),
    }
