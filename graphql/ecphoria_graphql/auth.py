"""Authentication and admission: an API key or a token becomes a scope, within its limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ecphoria.errors import Unauthenticated
from ecphoria.governance.keys import authenticate
from ecphoria.governance.rates import InFlight, RateLimit
from ecphoria.governance.tokens import Tokens, looks_like_token, open_tokens

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


@dataclass(frozen=True, slots=True)
class Gate:
    """Who may come in, how often, and with how much at once; one an application.

    Attributes:
        tokens: Checks tokens; None when only keys are taken.
        rate: How often a key may ask.
        operations: Queries and mutations under way.
        subscriptions: Subscriptions under way.
    """

    engine: Engine
    tokens: Tokens | None
    rate: RateLimit
    operations: InFlight
    subscriptions: InFlight

    @classmethod
    def of(cls, engine: Engine) -> Gate:
        """Return the gate that the settings ask for.

        Raises:
            ConfigurationInvalid: When the file of public keys cannot be read.
        """
        settings = engine.settings
        return cls(
            engine,
            open_tokens(settings, engine.clock),
            RateLimit(settings.rate_per_minute, engine.clock),
            InFlight(settings.max_operations_per_key, "operations"),
            InFlight(settings.max_subscriptions_per_key, "subscriptions"),
        )

    async def scope(self, given: Iterable[tuple[str, object]]) -> Scope:
        """Return the scope of the key or token that a request carries.

        A key is looked up every time, so that a revoked one is refused at its next request,
        whichever process it asks.

        Raises:
            Unauthenticated: When it is missing, malformed, unknown, expired or revoked.
            StoreUnavailable: When the keys cannot be looked up.
        """
        presented = presented_key(given)
        if self.tokens is not None and presented is not None and looks_like_token(presented):
            return self.tokens.scope(presented)
        return await authenticate(self.engine.graph, self.engine.clock, presented)

    async def admit(self, given: Iterable[tuple[str, object]]) -> Scope:
        """Do the same for one operation, which counts.

        Raises:
            RateLimited: When the key has asked too often. Otherwise as for `scope`.
        """
        scope = await self.scope(given)
        self.rate.take(scope)
        return scope
