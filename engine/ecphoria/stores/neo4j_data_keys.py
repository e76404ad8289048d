"""Data keys in the graph: always wrapped, never in clear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from neo4j import AsyncManagedTransaction

from ecphoria.stores.graph_rows import native_props
from ecphoria.stores.neo4j_connection import Neo4jConnection, Row, records, run
from ecphoria.stores.ports import DataKeyRow
from ecphoria_schema.queries import query


class Neo4jDataKeys(Neo4jConnection):
    """The part of `GraphStore` that is about data keys."""

    async def data_keys(self, keys: Sequence[str]) -> tuple[DataKeyRow, ...]:
        """See `GraphStore.data_keys`."""
        rows = await self._read("reading data keys", records(query("data_keys"), keys=list(keys)))
        return _data_keys(rows)

    async def make_data_keys(
        self, rows: Sequence[DataKeyRow], master_id: str, check: str
    ) -> tuple[DataKeyRow, ...]:
        """See `GraphStore.make_data_keys`."""
        # one order of keys for all writers, so that two batches cannot wait for each other
        ordered = sorted(rows, key=lambda row: row.key)
        async with self._locked(row.key for row in ordered):
            found = await self._write(
                "making data keys",
                records(
                    query("make_data_keys"),
                    rows=[{"key": row.key, "props": _props(row)} for row in ordered],
                    master=master_id,
                    check=check,
                ),
            )
        return _data_keys(found)

    async def master_keys(self) -> Mapping[str, str]:
        """See `GraphStore.master_keys`."""
        rows = await self._read(
            "reading which master keys are in use", records(query("master_keys"))
        )
        return {row["key"]: row["check"] for row in rows}

    async def count_data_keys(self) -> Mapping[str, int]:
        """See `GraphStore.count_data_keys`."""
        rows = await self._read("counting data keys", records(query("count_data_keys")))
        return {row["master"] or "": int(row["count"]) for row in rows}

    async def data_keys_not_under(
        self, master_id: str, after: str, limit: int
    ) -> tuple[DataKeyRow, ...]:
        """See `GraphStore.data_keys_not_under`."""
        rows = await self._read(
            "reading data keys",
            records(query("data_keys_not_under"), master=master_id, after=after, limit=limit),
        )
        return _data_keys(rows)

    async def rewrap_data_keys(
        self, rows: Sequence[tuple[DataKeyRow, str]], master_id: str, check: str
    ) -> int:
        """See `GraphStore.rewrap_data_keys`."""
        if not rows:
            return 0
        changed = await self._write(
            "wrapping data keys anew",
            records(
                query("rewrap_data_keys"),
                rows=[
                    {"key": row.key, "before": row.wrapped, "wrapped": wrapped}
                    for row, wrapped in rows
                ],
                master=master_id,
                check=check,
            ),
        )
        return len(changed)

    async def drop_unused_master_keys(self, current: str) -> None:
        """See `GraphStore.drop_unused_master_keys`."""
        await self._write(
            "forgetting unused master keys",
            records(query("drop_unused_master_keys"), current=current),
        )

    async def destroy_data_key(self, row: DataKeyRow) -> bool:
        """See `GraphStore.destroy_data_key`."""

        async def work(tx: AsyncManagedTransaction) -> list[Row]:
            return await run(
                tx,
                query("destroy_data_key"),
                key=row.key,
                tenant=row.tenant,
                now=row.created_at,
            )

        async with self._locked([row.key]):
            rows = await self._write("destroying a data key", work)
        return bool(rows[0]["there"])

    async def drop_destroyed_key(self, key: str) -> None:
        """See `GraphStore.drop_destroyed_key`."""
        await self._write(
            "allowing a data key again", records(query("drop_destroyed_key"), key=key)
        )


def _props(row: DataKeyRow) -> Row:
    return {
        "tenant": row.tenant,
        "user_id": row.user_id,
        "wrapped": row.wrapped,
        "master_id": row.master_id,
        "created_at": row.created_at,
        "name": "data key",
    }


def _data_keys(rows: Sequence[Row]) -> tuple[DataKeyRow, ...]:
    found = (native_props(row["props"]) for row in rows)
    return tuple(
        DataKeyRow(
            key=props["key"],
            tenant=props["tenant"],
            user_id=props.get("user_id"),
            wrapped=props.get("wrapped"),
            master_id=props.get("master_id"),
            created_at=props["created_at"],
        )
        for props in found
    )
