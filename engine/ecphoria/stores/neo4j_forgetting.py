"""Users who were forgotten, and the audit log, in the graph."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

from neo4j import AsyncManagedTransaction

from ecphoria.errors import UserForgotten
from ecphoria.model import AuditEntry, AuditOutcome
from ecphoria.stores.graph_rows import native_props
from ecphoria.stores.neo4j_connection import Neo4jConnection, Row, records, run
from ecphoria.stores.neo4j_feedback_removal import FEEDBACK, TASK, drop_feedback, feedback_owner
from ecphoria.stores.neo4j_keyed_calls import count_calls_of_user, drop_calls_of_user
from ecphoria.stores.ports import AuditQuery, ForgottenUser, RemovedNodes
from ecphoria_schema.queries import query

_PREFIX = "|Audit|"
# After every key that begins with what stands before it.
_LAST = "~"


async def refuse_forgotten(tx: AsyncManagedTransaction, keys: Sequence[str]) -> None:
    """Return when none of the tombstones is in force.

    Raises:
        UserForgotten: When one is.
    """
    if not keys:
        return
    rows = await run(tx, query("forgotten_users"), keys=sorted(keys))
    if any(row["props"].get("lifted_at") is None for row in rows):
        msg = "a user whom this is about was forgotten, and is not kept again"
        raise UserForgotten(msg)


async def _add_counts(
    tx: AsyncManagedTransaction, key: str, counts: Mapping[str, int], now: datetime
) -> None:
    found = await run(tx, query("touch_forgotten"), key=key, token="")
    before = json.loads((found[0]["counts"] if found else None) or "{}")
    after = before | {name: before.get(name, 0) + n for name, n in counts.items()}
    await run(tx, query("count_forgotten"), key=key, counts=json.dumps(after), now=now)


class Neo4jForgetting(Neo4jConnection):
    """The part of `GraphStore` that forgets users, and keeps who did what."""

    async def forgotten_users(self, keys: Sequence[str]) -> Mapping[str, ForgottenUser]:
        """See `GraphStore.forgotten_users`."""
        if not keys:
            return {}
        rows = await self._read(
            "looking for forgotten users", records(query("forgotten_users"), keys=list(keys))
        )
        return {user.key: user for user in map(_forgotten, rows)}

    async def hide_user(self, user: ForgottenUser, token: str) -> int:
        """See `GraphStore.hide_user`."""
        tenant, user_id = user.tenant, user.user_id or ""
        owner = self._owner(tenant, user_id)

        async def work(tx: AsyncManagedTransaction) -> int:
            await run(
                tx,
                query("mark_forgotten"),
                key=user.key,
                token=token,
                tenant=tenant,
                user=user_id,
                props={
                    "receipt": user.receipt,
                    "at": user.at,
                    "by": user.by,
                    "reason": user.reason,
                },
            )
            names = {"user": user_id, "tenant": tenant, "hidden": user.key, "owner": owner}
            hidden = (await run(tx, query("hide_memories"), **names))[0]["count"]
            for label in self._owned():
                text = query("hide_entities", label=label)
                hidden += (await run(tx, text, **names))[0]["count"]
            await run(tx, query("hide_root", label=self._domain.root), **names)
            await run(tx, query("remove_mentions_of_owner"), **names)
            # after his memories: whoever gives feedback on one meanwhile waits, or finds it gone
            said = await drop_feedback(tx, "owner", [feedback_owner(tenant, user_id)])
            if said:
                await _add_counts(tx, user.key, {"feedback": said}, user.at)
            calls = await drop_calls_of_user(tx, tenant, user_id)
            if calls:
                await _add_counts(tx, user.key, {"keyed calls": calls}, user.at)
            return int(hidden)

        async with self._locked([user.key]):
            return await self._write("hiding a user", work)

    async def remove_hidden(self, key: str, limit: int, token: str, now: datetime) -> RemovedNodes:
        """See `GraphStore.remove_hidden`."""

        async def work(tx: AsyncManagedTransaction) -> RemovedNodes:
            # first, so that no two count what they remove at the same time
            found = await run(tx, query("touch_forgotten"), key=key, token=token)
            rows = await run(tx, query("hidden_memories"), hidden=key, limit=limit)
            keys = [row["key"] for row in rows]
            if keys:
                await run(tx, query("delete_mentions"), keys=keys)
                await run(tx, query("remove_nodes", label="Pending"), keys=keys)
                await run(tx, query("remove_nodes", label="Memory"), keys=keys)
                claims = sorted({row["claim"] for row in rows if row["claim"] is not None})
                await run(tx, query("remove_claims"), keys=claims)
            entities = 0 if keys else await self._remove_entities(tx, key, limit)
            counts = json.loads((found[0]["counts"] if found else None) or "{}")
            for name, number in (("memories", len(keys)), ("entities", entities)):
                counts[name] = counts.get(name, 0) + number
            await run(tx, query("count_forgotten"), key=key, counts=json.dumps(counts), now=now)
            return RemovedNodes(tuple(row["id"] for row in rows), entities)

        async with self._locked([key]):
            return await self._write("removing what is hidden", work)

    async def _remove_entities(self, tx: AsyncManagedTransaction, key: str, limit: int) -> int:
        for label in self._owned():
            text = query("hidden_entities", label=label)
            rows = await run(tx, text, hidden=key, limit=limit)
            if rows:
                keys = [row["key"] for row in rows]
                await run(tx, query("remove_mentions_of_entities"), keys=keys)
                await run(tx, query("remove_nodes", label=label), keys=keys)
                return len(keys)
        return 0

    async def count_removed(self, key: str, counts: Mapping[str, int], now: datetime) -> None:
        """See `GraphStore.count_removed`."""

        async def work(tx: AsyncManagedTransaction) -> None:
            await _add_counts(tx, key, counts, now)

        async with self._locked([key]):
            await self._write("counting what was removed", work)

    async def finish_forgetting(self, key: str, now: datetime) -> ForgottenUser:
        """See `GraphStore.finish_forgetting`."""
        async with self._locked([key]):
            await self._write(
                "finishing to forget a user", records(query("finish_forgotten"), key=key, now=now)
            )
        return (await self.forgotten_users([key]))[key]

    async def unfinished_forgetting(
        self, before: datetime, limit: int
    ) -> tuple[ForgottenUser, ...]:
        """See `GraphStore.unfinished_forgetting`."""
        rows = await self._read(
            "looking for users to forget",
            records(query("unfinished_forgotten"), before=before, limit=limit),
        )
        return tuple(_forgotten(row) for row in rows)

    async def allow_forgotten(self, keys: Sequence[str], now: datetime, by: str) -> bool:
        """See `GraphStore.allow_forgotten`."""
        rows = await self._write(
            "allowing a user again",
            records(query("allow_forgotten"), keys=list(keys), now=now, by=by),
        )
        return bool(rows)

    async def traces_of_user(
        self, tenant: str, user_id: str, keys: Sequence[str], data_key: str
    ) -> Mapping[str, int]:
        """See `GraphStore.traces_of_user`."""
        owner = self._owner(tenant, user_id)

        async def work(tx: AsyncManagedTransaction) -> dict[str, int]:
            users = [user_id, *keys]
            found = await run(tx, query("count_own_memories"), users=users, tenant=tenant)
            counts = {"memories": found[0]["count"], "entities": 0}
            for label in self._owned():
                for owned_by in (owner, *keys):
                    rows = await run(tx, query("count_owned", label=label), owner=owned_by)
                    counts["entities"] += rows[0]["count"]
            root = await run(tx, query("count_by_key", label=self._domain.root), keys=[owner])
            counts["entities"] += root[0]["count"] if not counts["entities"] else 0
            rows = await run(tx, query("count_mentions_of_owner"), owner=owner)
            counts["mentions"] = rows[0]["count"]
            said = feedback_owner(tenant, user_id)
            for name, label in (("feedback", FEEDBACK), ("completion tasks", TASK)):
                rows = await run(tx, query("count_of", label=label, of="owner"), keys=[said])
                counts[name] = rows[0]["count"] if rows else 0
            counts["keyed calls"] = await count_calls_of_user(tx, tenant, user_id)
            rows = await run(tx, query("data_keys"), keys=[data_key])
            counts["data key"] = sum(row["props"].get("wrapped") is not None for row in rows)
            return counts

        return await self._read("looking for traces of a user", work)

    def _owned(self) -> list[str]:
        return sorted(self._domain.owned_types)

    # --- audit -----------------------------------------------------------------------------

    async def write_audit(self, entries: Sequence[AuditEntry]) -> None:
        """See `GraphStore.write_audit`."""
        await self._write(
            "writing the audit log",
            records(
                query("write_audit"),
                rows=[
                    {"key": _audit_key(entry), "props": _audit_props(entry)} for entry in entries
                ],
            ),
        )

    async def audit_entries(self, query_: AuditQuery) -> tuple[AuditEntry, ...]:
        """See `GraphStore.audit_entries`."""
        start = f"{query_.tenant}{_PREFIX}"
        low = start if query_.since is None else f"{start}{_moment(query_.since)}"
        high = f"{start}{_LAST}" if query_.until is None else f"{start}{_moment(query_.until)}"
        if query_.before:
            high = min(high, f"{start}{query_.before}")
        rows = await self._read(
            "reading the audit log",
            records(
                query("audit_entries"),
                p={
                    "low": low,
                    "high": high,
                    "users": list(query_.users or ()),
                    "any_user": query_.users is None,
                    "principal": query_.principal,
                    "any_principal": query_.principal is None,
                    "operation": query_.operation,
                    "any_operation": query_.operation is None,
                    "outcome": query_.outcome,
                    "any_outcome": query_.outcome is None,
                    "limit": query_.limit,
                },
            ),
        )
        return tuple(_audit_entry(row["props"]) for row in rows)


def _forgotten(row: Row) -> ForgottenUser:
    props = native_props(row["props"])
    return ForgottenUser(
        key=props["key"],
        tenant=props["tenant"],
        user_id=props.get("user_id"),
        receipt=props["receipt"],
        at=props["at"],
        by=props["by"],
        reason=props["reason"],
        counts=json.loads(props.get("counts") or "{}"),
        finished_at=props.get("finished_at"),
        lifted_at=props.get("lifted_at"),
    )


def _moment(at: datetime) -> str:
    # of one length, so that keys are in order of time
    return f"{int(at.timestamp() * 1000):015d}"


def _audit_key(entry: AuditEntry) -> str:
    return f"{entry.tenant}{_PREFIX}{entry.id}"


def _audit_props(entry: AuditEntry) -> Row:
    return {
        "tenant": entry.tenant,
        "id": entry.id,
        "at": entry.at,
        "principal": entry.principal,
        "roles": list(entry.roles),
        "operation": entry.operation,
        "user": entry.user,
        "count": entry.count,
        "outcome": entry.outcome,
        "code": entry.code,
        "name": entry.operation,
    }


def _audit_entry(found: Row) -> AuditEntry:
    props = native_props(found)
    return AuditEntry(
        id=props["id"],
        tenant=props["tenant"],
        at=props["at"],
        principal=props["principal"],
        roles=tuple(props["roles"]),
        operation=props["operation"],
        user=props.get("user"),
        count=props["count"],
        outcome=AuditOutcome(props["outcome"]),
        code=props.get("code"),
    )
