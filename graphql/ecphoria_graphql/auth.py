"""Authentication: an API key becomes a scope."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ecphoria.errors import Unauthenticated
from ecphoria.governance.keys import authenticate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ecphoria.engine import Engine
    from ecphoria.model import Scope


def presented_key(given: Iterable[tuple[str, object]]) -> str | None:
    """Return the key of ``Authorization: Bearer <key>`` or ``X-API-Key: <key>``.

    Args:
        given: Headers, or what a websocket begins with; names in any case.

    Raises:
        Unauthenticated: When there are several: which one was meant would be a guess.
    """
    keys: list[str] = []
    for name, value in given:
        text = value if isinstance(value, str) else ""
        if name.lower() == "x-api-key":
            keys.append(text)
        elif name.lower() == "authorization":
            scheme, _, key = text.partition(" ")
            keys.append(key.strip() if scheme.lower() == "bearer" else "")
    if len(set(keys)) > 1:
        msg = "the request carries several API keys"
        raise Unauthenticated(msg)
    return keys[0] if keys else None


async def scope_of(given: Iterable[tuple[str, object]], engine: Engine) -> Scope:
    """Return the scope of the key that a request carries.

    Raises:
        Unauthenticated: When it is missing, malformed, unknown, expired or revoked.
        StoreUnavailable: When the keys cannot be looked up.
    """
    return await authenticate(engine.graph, engine.clock, presented_key(given))
