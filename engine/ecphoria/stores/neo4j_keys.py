"""API keys, sources and counts in the graph."""

from __future__ import annotations

from collections.abc import Mapping

from neo4j import AsyncManagedTransaction

from ecphoria.model import ApiKey, SourceInfo
from ecphoria.stores.graph_rows import key_from, key_props, source_from
from ecphoria.stores.neo4j_connection import Neo4jConnection, records, run
from ecphoria_schema.queries import query

# What rotation writes: not who the key is for, nor whether it was revoked meanwhile.
ROTATED = ("secret_hash", "previous_hash", "previous_until", "expires_at")


class Neo4jKeys(Neo4jConnection):
    """The part of `GraphStore` that is about keys, sources and counts."""

    async def sources(self, tenant: str) -> tuple[SourceInfo, ...]:
        """See `GraphStore.sources`."""
        rows = await self._read("reading sources", records(query("sources"), tenant=tenant))
        return tuple(source_from(row["props"]) for row in rows)

    # --- keys and counts -------------------------------------------------------------------

    async def save_api_key(self, key: ApiKey) -> None:
        """See `GraphStore.save_api_key`."""
        await self._write(
            "saving an API key", records(query("save_api_key"), id=key.id, props=key_props(key))
        )

    async def rotate_api_key(self, key: ApiKey, expected_hash: str) -> bool:
        """See `GraphStore.rotate_api_key`."""
        given = key_props(key)
        props = {name: given[name] for name in ROTATED}
        rows = await self._write(
            "rotating an API key",
            records(query("rotate_api_key"), id=key.id, expected=expected_hash, props=props),
        )
        return bool(rows)

    async def api_key(self, key_id: str) -> ApiKey | None:
        """See `GraphStore.api_key`."""
        rows = await self._read("reading an API key", records(query("api_key"), id=key_id))
        return key_from(rows[0]["props"]) if rows else None

    async def api_keys(self, tenant: str) -> tuple[ApiKey, ...]:
        """See `GraphStore.api_keys`."""
        rows = await self._read("reading API keys", records(query("api_keys"), tenant=tenant))
        return tuple(key_from(row["props"]) for row in rows)

    async def counts(self, tenant: str) -> Mapping[str, int]:
        """See `GraphStore.counts`."""

        async def work(tx: AsyncManagedTransaction) -> dict[str, int]:
            result: dict[str, int] = {}
            for label in (*sorted(self._domain.entities), "Memory"):
                rows = await run(tx, query("count_label", label=label), tenant=tenant)
                result[label] = rows[0]["count"]
            rows = await run(tx, query("count_pending"), prefix=f"{tenant}|")
            result["pending"] = rows[0]["count"]
            return result

        return await self._read("counting", work)
