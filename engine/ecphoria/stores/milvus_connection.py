"""The connection to Milvus: calls with time-outs, retries and translated errors."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

import stamina
from pymilvus import AsyncMilvusClient, MilvusException
from pymilvus.client.connection_manager import AsyncConnectionManager

from ecphoria.errors import ConfigurationInvalid, StoreError
from ecphoria.stores.milvus_errors import NOT_LOADED, error_code, first_line, is_passing, translated

_ATTEMPTS = 3
_NUMBER = re.compile(r"v?(\d+)\.(\d+)")
_BM25_SINCE = (2, 5)
# One attempt and one more on a new channel when the old one broke; the rest is up to `call`.
_CLIENT_RETRIES = 1

# Channels to one address share a connection, and with it the pause before it is tried again, which
# grows to two minutes: without these a server that has come back would stay out of reach so long.
_CHANNEL = {"grpc.use_local_subchannel_pool": 1, "grpc.max_reconnect_backoff_ms": 1_000}


class MilvusConnection:
    """A pymilvus client. It belongs to the event loop that first uses it."""

    def __init__(self, uri: str, *, token: str | None, timeout_s: float) -> None:
        """Keep where to connect to; nothing is sent before the first call.

        Args:
            uri: Where the server listens, `http://` or `https://`.
            token: `user:password` or an API key; None for a server without authentication.
            timeout_s: Seconds that one operation may take, attempts included.

        Raises:
            ConfigurationInvalid: When the URI is none.
        """
        # anything else, such as a file name, would make pymilvus start a server of its own
        if not uri.startswith(("http://", "https://")):
            msg = "ECPHORIA_MILVUS_URI must begin with http:// or https://"
            raise ConfigurationInvalid(msg)
        # pymilvus logs every error with its traceback before it raises it, expected ones too; what
        # it raises is translated, and the cause is chained
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL)
        try:
            self._client = AsyncMilvusClient(
                uri=uri,
                token=token or "",
                timeout=timeout_s,
                dedicated=True,
                grpc_options=_CHANNEL,
            )
        except (MilvusException, ValueError) as error:
            msg = f"ECPHORIA_MILVUS_URI is no URI of a Milvus server: {first_line(error)}"
            raise ConfigurationInvalid(msg) from error
        self._timeout_s = timeout_s
        self._connecting = asyncio.Lock()
        self._version: str | None = None
        self._closed = False

    async def close(self) -> None:
        """Close the connection; closing twice is harmless."""
        self._closed = True
        with translated("closing"):
            await self._client.close()

    async def version(self) -> str:
        """Return what the server calls itself, as it was when the connection was made."""
        return str(self._version or await self.call("pinging", "get_server_version"))

    async def is_lite(self) -> bool:
        """Tell whether this is Milvus Lite."""
        # "milvus_lite-3.2.2"; the server 2.3.5 from PyPI calls itself "v2.3.5-lite", but is none
        return (await self.version()).startswith("milvus_lite")

    async def has_bm25(self) -> bool:
        """Tell whether it may have BM25: every version but those known to be older."""
        # an older one takes a collection with the function, and forgets the function
        number = _NUMBER.match(await self.version())
        return number is None or (int(number[1]), int(number[2])) >= _BM25_SINCE

    async def _connected(self) -> str:
        # Of several first calls one connects: pymilvus would open a channel for each of them.
        async with self._connecting:
            if self._version is None:
                # pymilvus keeps a manager a loop for ever, filed under the loop's address. A later
                # loop at the same address would get it, with locks of the dead one. Holding on to
                # the loop keeps its address taken.
                manager = AsyncConnectionManager.get_instance()
                vars(manager).setdefault("held_loop", asyncio.get_running_loop())
                self._version = await self._client.get_server_version(retry_times=_CLIENT_RETRIES)
            return self._version

    async def call(self, doing: str, method: str, *args: object, **options: object) -> Any:  # noqa: ANN401 - pymilvus has no types
        """Call a method of the client, again when it fails with what passes.

        Everything called through here may be called twice: reads, upserts and deletes by primary
        key, and what `settled` looks at afterwards.

        Raises:
            StoreUnavailable: When the server does not answer.
            StoreError: When it answers with an error.
        """
        if self._closed:
            msg = f"the vector index was closed before {doing}"
            raise StoreError(msg)
        result: Any = None
        with translated(doing):
            async with asyncio.timeout(self._timeout_s):
                async for attempt in stamina.retry_context(
                    on=is_passing,
                    attempts=_ATTEMPTS,
                    timeout=None,
                    wait_initial=0.05,
                    wait_max=1.0,
                    wait_jitter=0.05,
                ):
                    with attempt:
                        await self._connected()
                        result = await getattr(self._client, method)(
                            *args, retry_times=_CLIENT_RETRIES, **options
                        )
        return result

    async def read(self, doing: str, method: str, collection: str, **options: object) -> Any:  # noqa: ANN401 - pymilvus has no types
        """Do the same with a method that reads a collection, which is loaded if it is not."""
        # Milvus Lite forgets at every start what was loaded, and others may release it.
        try:
            return await self.call(doing, method, collection, **options)
        except StoreError as error:
            if error_code(error) != NOT_LOADED:
                raise
        await self.call(f"loading {collection}", "load_collection", collection)
        return await self.call(doing, method, collection, **options)
