"""Limits: how large a request may be and how much one operation may ask for."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
    ValidationContext,
    ValidationRule,
)

from ecphoria.errors import RequestTooLarge
from ecphoria_graphql.error_codes import error_response, request_fault, too_complex

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_TOKENS = 4_000
MAX_DEPTH = 12
MAX_ALIASES = 30
MAX_FIELDS = 2_000
MAX_ROOT_FIELDS = 20
MAX_ENTITIES = 10_000
"""Entities, memories and relations among them that one operation may load by following fields."""

MESSAGE_TOO_BIG = 1009
REQUEST_TIMEOUT = 408

_DRAIN_FACTOR = 8
_DRAIN_SECONDS = 10.0


# --- size of the body ----------------------------------------------------------------------


class BodyLimit:
    """ASGI middleware: a body over the limit is answered with 413, a slow one with 408.

    A message of a websocket that is over it closes the connection.

    The body is read here, whole, and handed on: GraphQL needs all of it anyway, and so a
    chunked body without a declared length is counted like any other.
    """

    def __init__(self, app: ASGIApp, max_bytes: int, seconds: float) -> None:
        """Wrap an application.

        Args:
            app: What answers.
            max_bytes: Largest body.
            seconds: How long a client may take to send it.
        """
        self.app = app
        self.max_bytes = max_bytes
        self.seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection."""
        if scope["type"] == "websocket":
            await self.app(scope, self._limited(receive, send), send)
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self.seconds):
                body = b"" if self._declared(scope) > self.max_bytes else await self._read(receive)
        except TimeoutError:
            msg = f"the request body did not arrive within {self.seconds:g} seconds"
            answer = request_fault(msg, REQUEST_TIMEOUT)
            # what may still come belongs to no request
            answer.headers["Connection"] = "close"
            await answer(scope, receive, send)
            return
        if body is None:
            return
        if len(body) > self.max_bytes or self._declared(scope) > self.max_bytes:
            await self._drain(receive)
            msg = f"the request body is larger than {self.max_bytes} bytes"
            await error_response(RequestTooLarge(msg))(scope, receive, send)
            return
        await self.app(scope, _replay(body, receive), send)

    def _limited(self, receive: Receive, send: Send) -> Receive:
        """Return what receives from a websocket, until a message is over the limit."""

        async def limited() -> Message:
            message = await receive()
            size = len((message.get("text") or "").encode()) + len(message.get("bytes") or b"")
            if size <= self.max_bytes:
                return message
            reason = f"{RequestTooLarge.code}: {self.max_bytes} bytes a message are allowed"
            await send({"type": "websocket.close", "code": MESSAGE_TOO_BIG, "reason": reason})
            return {"type": "websocket.disconnect", "code": MESSAGE_TOO_BIG}

        return limited

    @staticmethod
    def _declared(scope: Scope) -> int:
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit():
                return int(value[:20])
        return 0

    async def _read(self, receive: Receive) -> bytes | None:
        """Read the body, or a little more than allowed of it; None when the client left."""
        parts: list[bytes] = []
        size = 0
        while size <= self.max_bytes:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            part = message.get("body", b"")
            parts.append(part)
            size += len(part)
            if not message.get("more_body", False):
                break
        return b"".join(parts)

    async def _drain(self, receive: Receive) -> None:
        """Take in what still comes, within bounds.

        A client that is still sending when the connection closes sees a reset, not the answer.
        """
        left = self.max_bytes * _DRAIN_FACTOR
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                while left > 0:
                    message = await receive()
                    left -= len(message.get("body", b""))
                    if message["type"] == "http.disconnect" or not message.get("more_body", False):
                        return
        except TimeoutError:
            return


def _replay(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


# --- size of the operation -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Size:
    depth: int = 0
    aliases: int = 0
    fields: int = 0
    roots: int = 0


class OperationLimits(ValidationRule):
    """Limits depth, aliases and fields of each operation, fragments counted where they are spread.

    Strawberry's own limiters walk a fragment anew at every spread, which takes exponential time
    for fragments that spread each other twice, and fail on unknown ones; here each fragment is
    measured once.
    """

    def __init__(self, context: ValidationContext) -> None:
        """Measure the document's operations and report those over a limit."""
        super().__init__(context)
        self._fragments = {
            node.name.value: node
            for node in context.document.definitions
            if isinstance(node, FragmentDefinitionNode)
        }
        self._measured: dict[str, _Size | None] = {}
        for node in context.document.definitions:
            if isinstance(node, OperationDefinitionNode):
                self._check(node)

    def _check(self, operation: OperationDefinitionNode) -> None:
        size = self._measure(operation.selection_set)
        for what, found, allowed in (
            ("levels deep", size.depth, MAX_DEPTH),
            ("aliases", size.aliases, MAX_ALIASES),
            ("fields", size.fields, MAX_FIELDS),
            ("top-level fields", size.roots, MAX_ROOT_FIELDS),
        ):
            if found > allowed:
                self.report_error(
                    too_complex(f"the operation is too large: {allowed} {what} are allowed")
                )

    def _measure(self, selections: SelectionSetNode | None) -> _Size:
        depth = aliases = fields = roots = 0
        for node in selections.selections if selections is not None else ():
            if isinstance(node, FieldNode):
                if node.name.value.startswith("__"):
                    # introspection is as deep as tools write it, and costs no store
                    continue
                below = self._measure(node.selection_set)
                depth = max(depth, 1 + below.depth)
                aliases += below.aliases + (node.alias is not None)
                fields += 1 + below.fields
                roots += 1
            elif isinstance(node, InlineFragmentNode | FragmentSpreadNode):
                below = (
                    self._measure(node.selection_set)
                    if isinstance(node, InlineFragmentNode)
                    else self._fragment(node.name.value)
                )
                depth = max(depth, below.depth)
                aliases += below.aliases
                fields += below.fields
                roots += below.roots
        return _Size(depth, aliases, fields, roots)

    def _fragment(self, name: str) -> _Size:
        if name in self._measured:
            # None while it is being measured: a cycle, which GraphQL's own rules report
            return self._measured[name] or _Size()
        self._measured[name] = None
        node = self._fragments.get(name)
        size = self._measure(node.selection_set) if node is not None else _Size()
        self._measured[name] = size
        return size
