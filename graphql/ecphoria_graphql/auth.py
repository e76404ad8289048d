"""Authentication: an API key in a header becomes a scope."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ecphoria.errors import Unauthenticated
from ecphoria.governance.keys import authenticate

if TYPE_CHECKING:
    from starlette.datastructures import Headers

    from ecphoria.engine import Engine
    from ecphoria.model import Scope


def presented_key(headers: Headers) -> str | None:
    """Return the key of ``Authorization: Bearer <key>`` or ``X-API-Key: <key>``.

    Raises:
        Unauthenticated: When there are several: which one was meant would be a guess.
    """
    keys = headers.getlist("x-api-key")
    for value in headers.getlist("authorization"):
        scheme, _, key = value.partition(" ")
        keys.append(key.strip() if scheme.lower() == "bearer" else "")
    if len(set(keys)) > 1:
        msg = "the request carries several API keys"
        raise Unauthenticated(msg)
    return keys[0] if keys else None


async def scope_of(headers: Headers, engine: Engine) -> Scope:
    """Return the scope of the key that a request carries.

    Raises:
        Unauthenticated: When it is missing, malformed, unknown, expired or revoked.
        StoreUnavailable: When the keys cannot be looked up.
    """
    return await authenticate(engine.graph, engine.clock, presented_key(headers))
