"""The endpoint: GraphQL over HTTP as its specification says, and streams of events.

https://graphql.github.io/graphql-over-http/draft/
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cross_web import AsyncHTTPRequestAdapter
from cross_web import HTTPException as GraphQLHTTPException
from graphql import OperationType
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from strawberry import UNSET
from strawberry.fastapi import GraphQLRouter
from strawberry.http import GraphQLRequestData, process_result
from strawberry.types.execution import PreExecutionError

from ecphoria_graphql.context import Context, Socket
from ecphoria_graphql.documents import Documents, ParsedDocuments
from ecphoria_graphql.error_codes import (
    SEVERAL_OPERATIONS,
    DocumentFault,
    json_response,
    request_fault,
    status_of_answer,
    translate_all,
)
from ecphoria_graphql.negotiation import EVENTS, JSON, Accepted, accepted, is_utf8, media_type
from ecphoria_graphql.sockets import SocketAdapter, SocketHandler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from strawberry.http import GraphQLHTTPResponse
    from strawberry.http.streaming import HTTPStreamTransport
    from strawberry.types import ExecutionResult

NO_SUBSCRIPTION = (
    f"a subscription needs Accept: {EVENTS}, or a websocket (graphql-transport-ws) at this address"
)


class _Wanted(Response):
    """Carries what the client takes to where the answer is made."""

    def __init__(self, accepted_: Accepted) -> None:
        super().__init__()
        self.accepted = accepted_


class Endpoint(GraphQLRouter[Context | Socket, None]):
    """Strawberry's endpoint, with typed errors also where the request is no GraphQL."""

    websocket_adapter_class = SocketAdapter
    graphql_transport_ws_handler_class = SocketHandler
    documents: Documents
    parsed: ParsedDocuments

    def should_render_graphql_ide(self, request: object) -> bool:  # noqa: ARG002 - Strawberry's signature
        """Leave the page to `graphiql`."""
        return False

    # --- what is asked ---------------------------------------------------------------------

    def decode_json(self, data: str | bytes) -> object:
        """Read JSON; whatever is wrong with it is the client's fault."""
        try:
            found: object = json.loads(data)
        except (ValueError, RecursionError) as error:
            # also bytes that are no UTF-8, numbers of 5000 digits, ten thousand brackets
            raise GraphQLHTTPException(400, "the request body is no JSON") from error
        if not isinstance(found, dict | list):
            raise GraphQLHTTPException(400, "the request body is no JSON object")
        return found

    async def parse_http_body(self, request: AsyncHTTPRequestAdapter) -> GraphQLRequestData:
        """Return the operation that a request brings or names.

        Raises:
            GraphQLHTTPException: When the request is no GraphQL request.
            DocumentFault: When it names a document that may not be run, or that there is not.
        """
        wanted = accepted(_header(request, "accept"))
        if wanted.json is None and not wanted.events:
            raise GraphQLHTTPException(406, f"the answer is {JSON}; Accept must allow it")
        data = self._query_data(request) if request.method == "GET" else await self._body(request)
        for parameter, type_, told in _PARAMETERS:
            if not isinstance(data.get(parameter), type_ | None):
                raise GraphQLHTTPException(400, f"`{parameter}` must be {told}, or null")
        query = self.documents.text(
            data.get("query"), data.get("documentId"), data.get("extensions")
        )
        name = data.get("operationName")
        kind = self.parsed.kind(query, name)
        if self.parsed.is_ambiguous(query, name):
            raise GraphQLHTTPException(400, SEVERAL_OPERATIONS)
        if request.method == "GET" and kind is OperationType.MUTATION:
            raise GraphQLHTTPException(405, "a mutation must be sent by POST")
        streamed = wanted.events and (wanted.events_first or kind is OperationType.SUBSCRIPTION)
        if kind is OperationType.SUBSCRIPTION and not wanted.events:
            raise GraphQLHTTPException(400, NO_SUBSCRIPTION)
        if not query:
            raise GraphQLHTTPException(400, "the request has no `query`")
        return GraphQLRequestData(
            query=query,
            variables=data.get("variables"),
            operation_name=name,
            extensions=data.get("extensions"),
            protocol="sse" if streamed else "http",
        )

    async def _body(self, request: AsyncHTTPRequestAdapter) -> dict[str, Any]:
        name, parameters = media_type(_header(request, "content-type") or "")
        if name != JSON or not is_utf8(parameters):
            raise GraphQLHTTPException(415, f"the Content-Type must be {JSON}, in UTF-8")
        found = self.decode_json(await request.get_body())
        if not isinstance(found, dict):
            raise GraphQLHTTPException(400, "batching is off: send one operation a request")
        return found

    def _query_data(self, request: AsyncHTTPRequestAdapter) -> dict[str, Any]:
        found: dict[str, Any] = dict(request.query_params)
        for name in ("variables", "extensions"):
            text = found.get(name)
            if text in {None, "", "null"}:
                found[name] = None
            elif isinstance(text, str):
                found[name] = self.decode_json(text)
        return found

    def _get_stream_transport_from_headers(
        self,
        headers: Mapping[str, str],  # noqa: ARG002 - Strawberry's signature
    ) -> HTTPStreamTransport | None:
        """Leave the choice to `parse_http_body`, which knows what kind of operation it is."""
        return None

    # --- the answer ------------------------------------------------------------------------

    async def process_result(
        self,
        request: Request,  # noqa: ARG002 - Strawberry's signature
        result: ExecutionResult,
    ) -> GraphQLHTTPResponse:
        """Translate also the errors that end an operation before extensions see them."""
        if result.errors:
            result.errors = translate_all(result.errors)
        answer = process_result(result)
        if isinstance(result, PreExecutionError) or (
            result.data is None and all(error.path is None for error in result.errors or ())
        ):
            # nothing was run: then there is no `data`, not even null
            del answer["data"]
        return answer

    async def get_sub_response(self, request: Request) -> Response:
        """Return what tells `create_response` what the client takes."""
        return _Wanted(accepted(request.headers.get("accept")))

    def create_response(
        self,
        response_data: GraphQLHTTPResponse | list[GraphQLHTTPResponse],
        sub_response: Response,
    ) -> Response:
        """Return a single answer, in the media type that the client takes."""
        wanted = sub_response.accepted.json if isinstance(sub_response, _Wanted) else None
        media = wanted or JSON
        answer = response_data if isinstance(response_data, dict) else {}
        return json_response(answer, status_of_answer(answer, media), media=media)

    async def create_streaming_response(
        self,
        request: Request,  # noqa: ARG002 - Strawberry's signature
        stream: Callable[[], AsyncIterator[str]],
        sub_response: Response,  # noqa: ARG002 - as above
        headers: Mapping[str, str],
    ) -> Response:
        """Return a stream of events."""
        return StreamingResponse(stream(), headers=dict(headers))

    # --- the whole -------------------------------------------------------------------------

    async def run(
        self,
        request: Any,  # noqa: ANN401 - Strawberry's overloads
        context: Any = UNSET,  # noqa: ANN401 - as above
        root_value: Any = UNSET,  # noqa: ANN401 - as above
    ) -> Any:  # noqa: ANN401 - as above
        """Answer a request."""
        try:
            return await super().run(request, context, root_value)
        except GraphQLHTTPException as error:
            return request_fault(error.reason, error.status_code, media=_media(request))
        except DocumentFault as error:
            media = _media(request)
            return request_fault(
                error.message, status_of_answer({}, media, error.code), error.code, media
            )

    async def on_ws_connect(self, context: Context | Socket) -> Any:  # noqa: ANN401 - Strawberry's signature
        """Refuse a websocket without a key that counts."""
        if isinstance(context, Socket):
            await context.scope()
        return UNSET


_PARAMETERS: tuple[tuple[str, type, str], ...] = (
    ("query", str, "a text"),
    ("documentId", str, "a text"),
    ("operationName", str, "a text"),
    ("variables", dict, "an object"),
    ("extensions", dict, "an object"),
)


def _header(request: AsyncHTTPRequestAdapter, name: str) -> str | None:
    found = [value for key, value in request.headers.items() if key.lower() == name]
    return ",".join(found) if found else None


def _media(request: Request) -> str:
    return accepted(request.headers.get("accept")).json or JSON
