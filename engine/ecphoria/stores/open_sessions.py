"""Open the session store that the settings name: Redis by URL, or this process's memory."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from ecphoria.errors import ConfigurationInvalid
from ecphoria.stores.session_memory import InProcessSessions

if TYPE_CHECKING:
    from ecphoria.settings import Settings
    from ecphoria.stores.session_port import SessionStore


@contextlib.asynccontextmanager
async def open_sessions(settings: Settings) -> AsyncIterator[SessionStore]:
    """Yield the store and close it in the end; a Redis must answer at once.

    Raises:
        ConfigurationInvalid: When the URL is none, or the package `redis` is not installed.
        StoreUnavailable: When Redis does not answer.
        StoreAuthenticationFailed: When it refuses the credentials.
    """
    store = _store(settings)
    try:
        await store.ping()
        yield store
    finally:
        await store.close()


def _store(settings: Settings) -> SessionStore:
    if settings.redis_url is None:
        return InProcessSessions(settings.session_ttl_s)
    try:
        from ecphoria.stores.session_redis import RedisSessions  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "redis":
            raise
        msg = (
            "ECPHORIA_REDIS_URL is set, but the package redis is missing: "
            "install it with `pip install 'ecphoria[redis]'`"
        )
        raise ConfigurationInvalid(msg) from error
    return RedisSessions(
        settings.redis_url.get_secret_value(),
        prefix=settings.collection_prefix,
        ttl_s=settings.session_ttl_s,
        timeout_s=settings.store_timeout_s,
    )
