"""The vector index on Milvus: the same code on Milvus Lite and on servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ecphoria.errors import EmbeddingMismatch, StoreError, StoreUnavailable
from ecphoria.model import EmbeddingSpec
from ecphoria.stores.milvus_collections import Collections
from ecphoria.stores.milvus_connection import MilvusConnection
from ecphoria.stores.milvus_errors import all_done
from ecphoria.stores.milvus_filter import user_expression
from ecphoria.stores.milvus_rows import MilvusRows
from ecphoria.stores.ports import Generation, IndexInfo, ServerInfo, VectorRows
from ecphoria_schema.domain import KINDS, Kind

# Fewer rows are searched one by one as quickly as by an index.
REFRESH_FROM = 10_000


class MilvusIndex(MilvusRows):
    """`VectorIndex` over pymilvus. It belongs to the event loop that first uses it.

    Rows are reached by the aliases alone, in both directions: what Session consistency waits for
    is kept for each name.
    """

    def __init__(
        self,
        uri: str,
        *,
        token: str | None,
        prefix: str,
        timeout_s: float,
        refresh_from: int = REFRESH_FROM,
    ) -> None:
        """Keep where to connect to; nothing is sent before the first call.

        Args:
            uri: Where the server listens, `http://` or `https://`.
            token: `user:password` or an API key; None for a server without authentication.
            prefix: Beginning of the names of all collections and aliases.
            timeout_s: Seconds that one operation may take, attempts included.
            refresh_from: Rows of a kind from which `refresh` has its search index rebuilt.

        Raises:
            ConfigurationInvalid: When the URI is none.
        """
        connection = MilvusConnection(uri, token=token, timeout_s=timeout_s)
        self._collections = Collections(connection, prefix)
        self._refresh_from = refresh_from
        super().__init__(connection, self._collections.alias)

    async def ping(self) -> ServerInfo:
        """See `VectorIndex.ping`."""
        version: str = await self._connection.call("pinging", "get_server_version")
        if await self._connection.is_lite():
            return ServerInfo("Milvus Lite", version.partition("-")[2])
        return ServerInfo("Milvus", version.removeprefix("v"))

    async def close(self) -> None:
        """See `VectorIndex.close`; closing twice is harmless."""
        await self._connection.close()

    async def delete(self, keys: Sequence[str]) -> None:
        """See `VectorRows.delete`; also from generations that do not serve."""
        await super().delete(keys)
        # what is forgotten must not live on in what is kept to go back to, or being filled
        for name in await self._collections.idle() if keys else ():
            await self._delete(name, keys)

    async def count_user(self, tenant: str, user_id: str) -> int:
        """See `VectorRows.count_user`; also in generations that do not serve."""
        count = await super().count_user(tenant, user_id)
        filter_ = user_expression(tenant, user_id)
        for name in await self._collections.idle():
            await self._collections.load(name)
            count += await self._count_in(name, filter_)
        return count

    async def delete_user(self, tenant: str, user_id: str) -> int:
        """See `VectorRows.delete_user`; also from generations that do not serve."""
        count = await super().delete_user(tenant, user_id)
        for name in await self._collections.idle():
            await self._collections.load(name)
            count += await self._delete_user(name, tenant, user_id)
        return count

    async def prepare(self, spec: EmbeddingSpec) -> None:
        """See `VectorIndex.prepare`."""
        await all_done(self._collections.prepare(kind, spec) for kind in KINDS)
        self._spec = spec
        self._terms.clear()

    async def drop(self) -> None:
        """See `VectorIndex.drop`."""
        await all_done(self._collections.drop(kind) for kind in KINDS)
        self._spec = None
        self._written.clear()
        self._terms.clear()

    async def info(self) -> Mapping[Kind, IndexInfo]:
        """See `VectorIndex.info`; a kind that has no collection is left out."""
        found: dict[Kind, IndexInfo] = {}
        for kind in KINDS:
            target = await self._collections.target(kind)
            if target is not None:
                spec = await self._collections.locked_spec(target)
                lexical = await self._collections.has_terms(target)
                found[kind] = IndexInfo(target, spec, await self.count_of(kind), lexical)
        return found

    async def refresh(self) -> tuple[str, ...]:
        """See `VectorIndex.refresh`; Milvus Lite has no such index."""
        if await self._connection.is_lite():
            return ()
        found = []
        for kind in KINDS:
            rows = await self.count_of(kind)
            found.append(await self._collections.refresh(kind, rows, self._refresh_from))
        return tuple(name for name in found if name is not None)

    async def generations(self) -> tuple[Generation, ...]:
        """See `VectorIndex.generations`."""
        return await self._collections.generations()

    async def make_generation(self, spec: EmbeddingSpec, number: int) -> Generation:
        """See `VectorIndex.make_generation`."""
        return await self._collections.make_generation(spec, number)

    async def at(self, generation: Generation) -> VectorRows:
        """See `VectorIndex.at`."""
        if generation.spec is None:
            msg = (
                f"the collections {generation.name} were made by another version of ecphoria, "
                "whose rows have other fields"
            )
            raise EmbeddingMismatch(msg)
        await all_done(
            self._collections.load(self._collections.name(kind, generation.name))
            for kind in generation.kinds
        )
        return MilvusRows(
            self._connection,
            lambda kind: self._collections.name(kind, generation.name),
            generation.spec,
        )

    async def serve(self, generation: Generation) -> None:
        """See `VectorIndex.serve`."""
        await self._collections.serve(generation)

    async def finish(self, generation: Generation) -> None:
        """See `VectorIndex.finish`."""
        await self._collections.finish(generation)

    async def drop_generation(self, generation: Generation) -> None:
        """See `VectorIndex.drop_generation`."""
        await self._collections.drop_generation(generation)

    async def _explain(self, kind: Kind, error: StoreError) -> None:
        # Such an error is the server's answer to a field that its collection does not have.
        if self._spec is None or isinstance(error, StoreUnavailable):
            return
        mismatch = await self._collections.taken_over(kind, self._spec)
        if mismatch is not None:
            raise mismatch from error
