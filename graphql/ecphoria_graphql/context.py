"""The context of one operation: who asks, whom to ask, and the operation's own loaders."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeAlias

import strawberry
from starlette.datastructures import Headers
from strawberry.fastapi import BaseContext

from ecphoria.governance.access import readable_privacy
from ecphoria.model import Scope
from ecphoria_graphql.auth import Gate
from ecphoria_graphql.documents import Documents
from ecphoria_graphql.loaders import Loaders
from ecphoria_graphql.metrics import Metrics

RECHECK_S = 2.0


class Context(BaseContext):
    """What resolvers get; made by the authentication layer, one an operation.

    Attributes:
        readable: Privacy levels that the scope may read.
    """

    def __init__(
        self, gate: Gate, scope: Scope, metrics: Metrics, renew: Callable[[], Awaitable[Scope]]
    ) -> None:
        """Begin an operation of an authenticated scope.

        Args:
            gate: What let it in; has the engine to ask.
            scope: For whom.
            metrics: Where recalls are counted.
            renew: Looks the key up again, for an operation that lasts.
        """
        super().__init__()
        self.gate = gate
        self.engine = gate.engine
        self.metrics = metrics
        self._renew = renew
        self._set(scope)

    def _set(self, scope: Scope) -> None:
        self.scope = scope
        self.loaders = Loaders(self.engine, scope)
        self.readable = readable_privacy(scope)
        self._checked_at = self.engine.clock.now()

    async def again(self) -> None:
        """Begin anew within an operation that lasts: nothing loaded, and a key that still counts.

        The key is looked up every `RECHECK_S` seconds at most.

        Raises:
            Unauthenticated: When it was revoked or has expired since.
            StoreUnavailable: When it cannot be looked up.
        """
        waited = self.engine.clock.now() - self._checked_at
        if waited >= timedelta(seconds=RECHECK_S):
            self._set(await self._renew())
        else:
            self.loaders = Loaders(self.engine, self.scope)


class Socket(BaseContext):
    """What a websocket has in the place of a context, since its key may come later."""

    def __init__(
        self, gate: Gate, headers: Headers, metrics: Metrics, documents: Documents
    ) -> None:
        """Begin without knowing who is there."""
        super().__init__()
        self.gate = gate
        self.metrics = metrics
        self.documents = documents
        self._headers = headers

    def _given(self) -> list[tuple[str, object]]:
        given: list[tuple[str, object]] = list(self._headers.items())
        params = self.connection_params
        if isinstance(params, dict):
            given += params.items()
        return given

    async def scope(self) -> Scope:
        """Return the scope of the key in the headers or in what the connection began with.

        Raises:
            Unauthenticated: When it is missing, malformed, unknown, expired or revoked.
            StoreUnavailable: When the keys cannot be looked up.
        """
        return await self.gate.scope(self._given())

    async def context(self) -> Context:
        """Return the context of one operation, which counts.

        Raises:
            RateLimited: When the key has asked too often. Otherwise as for `scope`.
        """
        scope = await self.gate.admit(self._given())
        return Context(self.gate, scope, self.metrics, self.scope)


Info: TypeAlias = strawberry.Info[Context, None]
