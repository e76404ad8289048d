"""Calls with an idempotency key, in the graph: who acts, and what the answer was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from neo4j import AsyncManagedTransaction

from ecphoria.stores.graph_rows import native_props
from ecphoria.stores.neo4j_connection import Neo4jConnection, records, run
from ecphoria.stores.ports import KeyedCall
from ecphoria_schema.queries import query

CALL: Final = "KeyedCall"
# One a user whom a call is about.
USER: Final = "KeyedCallUser"


def call_user(tenant: str, user_id: str) -> str:
    """Return what all calls about one user are found by."""
    return f"{tenant}|={user_id}"


async def _drop(tx: AsyncManagedTransaction, keys: Sequence[str]) -> int:
    if keys:
        await run(tx, query("drop_of", label=USER, of="call"), keys=list(keys))
        await run(tx, query("remove_nodes", label=CALL), keys=list(keys))
    return len(keys)


async def drop_calls_of_user(tx: AsyncManagedTransaction, tenant: str, user_id: str) -> int:
    """Remove the calls about a user, whoever else they are about; return how many."""
    rows = await run(tx, query("calls_of_user"), user=call_user(tenant, user_id))
    return await _drop(tx, sorted({row["call"] for row in rows}))


async def count_calls_of_user(tx: AsyncManagedTransaction, tenant: str, user_id: str) -> int:
    """Return how many calls about a user are on record."""
    return len(await run(tx, query("calls_of_user"), user=call_user(tenant, user_id)))


class Neo4jKeyedCalls(Neo4jConnection):
    """The part of `GraphStore` that keeps calls with an idempotency key."""

    async def claim_call(
        self, call: KeyedCall, token: str, *, until: datetime, oldest: datetime
    ) -> KeyedCall:
        """See `GraphStore.claim_call`."""

        async def work(tx: AsyncManagedTransaction) -> KeyedCall:
            await run(tx, query("touch_call"), key=call.key, token=token, tenant=call.tenant)
            before = await run(tx, query("call"), key=call.key)
            props = native_props(before[0]["props"])
            if "begun_at" not in props or props["begun_at"] <= oldest:
                # never seen, or as good as never
                await run(tx, query("drop_of", label=USER, of="call"), keys=[call.key])
                users = [
                    {"key": f"{call.key}|{user}", "user": call_user(call.tenant, user)}
                    for user in call.users
                ]
                made = {
                    "tenant": call.tenant,
                    "request": call.request,
                    "begun_at": call.begun_at,
                    "attempts": 1,
                    "holder": token,
                    "until": until,
                    "answer": None,
                    "name": CALL,
                }
                await run(tx, query("make_call"), key=call.key, props=made)
                await run(tx, query("make_call_users"), call=call.key, rows=users)
                return replace(call, holder=token)
            found = replace(
                call,
                request=props["request"],
                begun_at=props["begun_at"],
                attempts=props["attempts"],
                answer=props.get("answer"),
                holder=props.get("holder"),
            )
            free = props.get("until") is None or props["until"] <= call.begun_at
            if found.request != call.request or found.answer is not None or not free:
                return found
            attempts = found.attempts + 1
            taken = {"attempts": attempts, "holder": token, "until": until}
            await run(tx, query("set_call"), key=call.key, holder=found.holder, props=taken)
            return replace(found, attempts=attempts, holder=token)

        async with self._locked([call.key]):
            return await self._write("putting a call on record", work)

    async def finish_call(self, key: str, token: str, answer: str) -> None:
        """See `GraphStore.finish_call`."""
        await self._set_call(key, token, {"answer": answer, "until": None})

    async def release_call(self, key: str, token: str) -> None:
        """See `GraphStore.release_call`."""
        await self._set_call(key, token, {"until": None})

    async def _set_call(self, key: str, token: str, props: dict[str, object]) -> None:
        async with self._locked([key]):
            await self._write(
                "putting an answer on record",
                records(query("set_call"), key=key, holder=token, props=props),
            )

    async def drop_call(self, key: str, token: str) -> None:
        """See `GraphStore.drop_call`."""

        async def work(tx: AsyncManagedTransaction) -> None:
            rows = await run(tx, query("call"), key=key)
            if rows and rows[0]["props"].get("holder") == token:
                await _drop(tx, [key])

        async with self._locked([key]):
            await self._write("dropping a call", work)

    async def drop_calls_before(self, oldest: datetime, limit: int) -> int:
        """See `GraphStore.drop_calls_before`."""

        async def work(tx: AsyncManagedTransaction) -> int:
            rows = await run(tx, query("old_calls"), oldest=oldest, limit=limit)
            return await _drop(tx, [row["key"] for row in rows])

        return await self._write("dropping old calls", work)
