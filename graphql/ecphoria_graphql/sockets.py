"""Operations over a websocket, by the protocol ``graphql-transport-ws``.

The key comes in a header or in the payload of ``connection_init``, and is looked up anew for every
operation. What is wrong comes as an error with its code, or closes the connection with a code and
a reason that begins with one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cross_web import HTTPException as GraphQLHTTPException
from graphql import GraphQLError
from strawberry.asgi import ASGIWebSocketAdapter
from strawberry.http.exceptions import NonJsonMessageReceived
from strawberry.subscriptions.protocols.graphql_transport_ws.handlers import (
    BaseGraphQLTransportWSHandler,
)

from ecphoria.errors import EcphoriaError, Unauthenticated
from ecphoria_graphql.context import Context, Socket
from ecphoria_graphql.error_codes import DocumentFault, document_fault, too_complex

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

MAX_OPERATIONS = 20
"""Operations that one connection may have at once."""

UNAUTHORIZED, TRY_AGAIN, FAILED = 4401, 1013, 1011
_REASON_BYTES = 123


class SocketAdapter(ASGIWebSocketAdapter):
    """Strawberry's adapter, for a router that reads JSON in its own way."""

    async def iter_json(
        self, *, ignore_parsing_errors: bool = False
    ) -> AsyncGenerator[object, None]:
        """Yield what the client sends."""
        try:
            async for message in super().iter_json(ignore_parsing_errors=ignore_parsing_errors):
                yield message
        except GraphQLHTTPException as error:
            raise NonJsonMessageReceived from error


class SocketHandler(BaseGraphQLTransportWSHandler[Context | Socket, None]):
    """Strawberry's handler, with typed errors."""

    async def handle_message(self, message: Any) -> None:  # noqa: ANN401 - whatever a client sends
        """Answer one message; one that is none closes the connection."""
        fault = message_fault(message)
        if fault is not None:
            await self.handle_invalid_message(fault)
            return
        await super().handle_message(message)

    async def handle_connection_init(self, message: Any) -> None:  # noqa: ANN401 - a dictionary
        """Look at the key before anything is acknowledged."""
        try:
            await super().handle_connection_init(message)
        except EcphoriaError as error:
            code = TRY_AGAIN if error.retryable else FAILED
            if isinstance(error, Unauthenticated):
                code = UNAUTHORIZED
            reason = f"{error.code}: {error.message}".encode()[:_REASON_BYTES]
            await self.websocket.close(code=code, reason=reason.decode(errors="ignore"))

    async def handle_subscribe(self, message: Any) -> None:  # noqa: ANN401 - a dictionary
        """Begin an operation, unless it may not be run or there are too many under way."""
        payload = message["payload"]
        # who is not let in yet is told nothing, not even whether there is such a document
        if self.connection_acknowledged and isinstance(self.context, Socket):
            try:
                payload["query"] = self.context.documents.text(
                    payload.get("query"), payload.get("documentId"), payload.get("extensions")
                )
            except DocumentFault as fault:
                await self._refuse(message["id"], document_fault(fault))
                return
        if self.connection_acknowledged and len(self.operations) >= MAX_OPERATIONS:
            error = too_complex(
                f"{MAX_OPERATIONS} operations at once are allowed on one connection"
            )
            await self._refuse(message["id"], error)
            return
        await super().handle_subscribe(message)

    async def _refuse(self, id_: str, error: GraphQLError) -> None:
        await self.send_message({"id": id_, "type": "error", "payload": [error.formatted]})


def message_fault(message: object) -> str | None:
    """Return what is wrong with the form of a message; None when nothing is."""
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        return "a message is an object with a type"
    type_, id_, payload = message["type"], message.get("id"), message.get("payload")
    rules: list[tuple[bool, str]] = []
    if type_ in {"subscribe", "complete"}:
        rules.append((isinstance(id_, str) and id_ != "", f"{type_} needs an id, a string"))
    if type_ == "subscribe":
        given = payload if isinstance(payload, dict) else {}
        rules += [
            (_names_a_document(given), "the payload needs a query, a string"),
            (isinstance(given.get("query"), str | None), "query must be a string"),
            (isinstance(given.get("documentId"), str | None), "documentId must be a string"),
            (isinstance(given.get("extensions"), dict | None), "extensions must be an object"),
            (isinstance(given.get("variables"), dict | None), "variables must be an object"),
            (isinstance(given.get("operationName"), str | None), "operationName must be a string"),
        ]
    return next((fault for holds, fault in rules if not holds), None)


def _names_a_document(payload: Mapping[str, Any]) -> bool:
    extensions = payload.get("extensions")
    return (
        isinstance(payload.get("query"), str)
        or isinstance(payload.get("documentId"), str)
        or (isinstance(extensions, dict) and "persistedQuery" in extensions)
    )
