"""Stable error codes: every error that leaves the API has ``extensions.code``."""

from __future__ import annotations

import contextlib
import enum
import json
import math
import re
import uuid
from typing import TYPE_CHECKING, Any

import structlog
from graphql import GraphQLError, GraphQLSyntaxError
from starlette.responses import Response
from strawberry.extensions import SchemaExtension
from strawberry.types import ExecutionResult
from strawberry.utils.str_converters import to_camel_case

from ecphoria.errors import (
    EcphoriaError,
    Forbidden,
    InternalError,
    InvalidInput,
    InvalidScope,
    NotFound,
    OperationTimeout,
    RateLimited,
    RequestTooLarge,
    StoreUnavailable,
    TooManyOperations,
    Unauthenticated,
    UnknownRelation,
    UnknownType,
    error_classes,
)
from ecphoria_graphql.negotiation import JSON, RESPONSE_JSON

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from strawberry.types.execution import StreamExecutionResult

_log = structlog.get_logger(__name__)

ENTITY_TYPE_ENUM = "EntityType"
RELATION_TYPE_ENUM = "RelationType"

_INPUT_PATH = re.compile(r"(?:Variable '\$|Argument ')(\w+)'.*? has invalid value(?: at (\S+))?:")
_PATH_PART = re.compile(r"\.(\w+)|\[(\d+)\]")
METHOD_NOT_ALLOWED = 405
SEVERAL_OPERATIONS = "the document has several operations: `operationName` must say which"

_NO_SUCH_VALUE = re.compile(r"does not exist in '(\w+)' enum|cannot represent non-\w+ value")


class GraphQLCode(enum.StrEnum):
    """Codes of faults in the GraphQL request itself; all others are those of `ecphoria.errors`.

    A value of the wrong type is BAD_USER_INPUT in the variables and GRAPHQL_VALIDATION_FAILED in
    the query's own text. Where the fault has a name in the engine, it keeps that: INVALID_TIME,
    UNKNOWN_ENTITY_TYPE, UNKNOWN_RELATION.
    """

    BAD_REQUEST = "BAD_REQUEST"
    GRAPHQL_PARSE_FAILED = "GRAPHQL_PARSE_FAILED"
    GRAPHQL_VALIDATION_FAILED = "GRAPHQL_VALIDATION_FAILED"
    BAD_USER_INPUT = "BAD_USER_INPUT"
    QUERY_TOO_COMPLEX = "QUERY_TOO_COMPLEX"
    PERSISTED_QUERY_NOT_FOUND = "PERSISTED_QUERY_NOT_FOUND"
    UNTRUSTED_DOCUMENT = "UNTRUSTED_DOCUMENT"


MEANINGS: dict[GraphQLCode, str] = {
    GraphQLCode.BAD_REQUEST: "The HTTP request is no GraphQL request.",
    GraphQLCode.GRAPHQL_PARSE_FAILED: "The query cannot be read.",
    GraphQLCode.GRAPHQL_VALIDATION_FAILED: "The query does not fit the schema.",
    GraphQLCode.BAD_USER_INPUT: "A variable does not have the type that the schema asks for.",
    GraphQLCode.QUERY_TOO_COMPLEX: "The operation goes over the limit that the message names.",
    GraphQLCode.PERSISTED_QUERY_NOT_FOUND: "This process does not have the document of that hash.",
    GraphQLCode.UNTRUSTED_DOCUMENT: "The document is none of those that are trusted here.",
}

REMEDIES: dict[GraphQLCode, str] = {
    GraphQLCode.BAD_REQUEST: (
        "POST JSON with `query` and, if need be, `variables`; Content-Type: application/json."
    ),
    GraphQLCode.GRAPHQL_PARSE_FAILED: "Correct the query's syntax at the place named.",
    GraphQLCode.GRAPHQL_VALIDATION_FAILED: (
        "Use the fields, arguments and types of the schema; GraphiQL at /graphql shows them."
    ),
    GraphQLCode.BAD_USER_INPUT: "Give the variable the type that the schema asks for.",
    GraphQLCode.QUERY_TOO_COMPLEX: (
        "Ask for less at once: fewer levels, aliases, fields, items or subscriptions."
    ),
    GraphQLCode.PERSISTED_QUERY_NOT_FOUND: (
        "Send it again with `query` beside the hash; Apollo's clients do so by themselves."
    ),
    GraphQLCode.UNTRUSTED_DOCUMENT: (
        "Send the `documentId` of a trusted document; graphql/operations has the shipped ones."
    ),
}


class DocumentFault(Exception):
    """A request names a document that there is not, or brings one that is not trusted."""

    def __init__(self, code: GraphQLCode, message: str) -> None:
        """Keep the code and the sentence."""
        super().__init__(message)
        self.code = code
        self.message = message


@contextlib.contextmanager
def input_path(*prefix: str | int) -> Iterator[None]:
    """Put the place in the GraphQL input before the path of any error that passes."""
    try:
        yield
    except EcphoriaError as error:
        raise error.at(*prefix) from error


@contextlib.contextmanager
def argument_path(argument: str, *others: str) -> Iterator[None]:
    """Put an argument before the path of any error that passes.

    Args:
        argument: Whose inner place the engine names.
        others: Arguments that the engine names by themselves.
    """
    try:
        yield
    except EcphoriaError as error:
        if not error.path or error.path[0] in others:
            raise
        raise error.at(argument) from error


def as_given(path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Return a place in the engine's input by the names that GraphQL has for it.

    A property keeps the name that the domain file has for it.
    """
    named: list[str | int] = []
    for part in path:
        if isinstance(part, int) or named[-1:] == ["properties"]:
            named.append(part)
        else:
            named.append("properties" if part == "props" else to_camel_case(part))
    return tuple(named)


def _extensions(
    code: str, remedy: str, *, retryable: bool = False, path: tuple[str | int, ...] = ()
) -> dict[str, Any]:
    found: dict[str, Any] = {"code": code, "retryable": retryable, "remedy": remedy}
    if path:
        found["path"] = list(path)
    return found


def too_complex(message: str, error: GraphQLError | None = None) -> GraphQLError:
    """Return the error of a query that goes over a limit; the message names the limit."""
    return _with_code(error or GraphQLError(message), GraphQLCode.QUERY_TOO_COMPLEX, message)


def document_fault(fault: DocumentFault) -> GraphQLError:
    """Return the error of a request whose document may not be run, or is not there."""
    return _with_code(GraphQLError(fault.message), fault.code, fault.message)


def _causes(error: BaseException) -> Iterator[BaseException]:
    # graphql-core wraps, and may wrap again
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.original_error if isinstance(cause, GraphQLError) else None


def _input_path(message: str) -> tuple[str | int, ...]:
    """Read the place in the input out of a coercion error: it is in its message only."""
    found = _INPUT_PATH.match(message)
    if found is None:
        return ()
    parts = _PATH_PART.findall(found[2] or "")
    return (found[1], *(name or int(index) for name, index in parts))


def _rebuilt(error: GraphQLError, message: str, extensions: dict[str, Any]) -> GraphQLError:
    # without the original error: nothing of it may reach the client
    return GraphQLError(
        message,
        nodes=error.nodes,
        source=error.source,
        positions=error.positions,
        path=error.path,
        extensions=extensions,
    )


def _with_code(
    error: GraphQLError, code: GraphQLCode, message: str, path: tuple[str | int, ...] = ()
) -> GraphQLError:
    return _rebuilt(error, message, _extensions(code, REMEDIES[code], path=path))


def _with_kind(
    error: GraphQLError, kind: type[EcphoriaError], message: str, path: tuple[str | int, ...]
) -> GraphQLError:
    return _rebuilt(
        error,
        message,
        _extensions(kind.code, kind.remedy, retryable=kind.retryable, path=path),
    )


def _of_request(error: GraphQLError, cause: BaseException) -> GraphQLError | None:
    """Translate a fault in the request itself; None when it is none."""
    if isinstance(cause, GraphQLSyntaxError):
        if "tokens" in cause.message or "too deeply" in cause.message:
            return too_complex(cause.message, error)
        return _with_code(error, GraphQLCode.GRAPHQL_PARSE_FAILED, cause.message)
    if isinstance(cause, RecursionError):
        return too_complex("the query is nested too deeply", error)
    return _of_coercion(error) if isinstance(cause, GraphQLError) else None


def _of_coercion(error: GraphQLError) -> GraphQLError | None:
    message = error.message
    path = _input_path(message)
    found = _NO_SUCH_VALUE.search(message)
    if found is not None and error.path is None:
        if found[1] == ENTITY_TYPE_ENUM:
            return _with_kind(error, UnknownType, message, path)
        if found[1] == RELATION_TYPE_ENUM:
            return _with_kind(error, UnknownRelation, message, path)
    if _INPUT_PATH.match(message) or message.startswith("Variable values "):
        return _with_code(error, GraphQLCode.BAD_USER_INPUT, message, path)
    if error.path is None:
        return _with_code(error, GraphQLCode.GRAPHQL_VALIDATION_FAILED, message)
    return None


def translate(error: GraphQLError, incidents: dict[int, str]) -> GraphQLError:
    """Return the error as the client may see it: with its code, without internals.

    Args:
        error: As graphql-core reports it; one that has a code already comes back unchanged.
        incidents: Ids of unexpected exceptions already logged in this response, by exception;
            the same failure in a hundred fields is one line in the log.
    """
    if error.extensions and "code" in error.extensions:
        return error
    *_, cause = _causes(error)
    if isinstance(cause, EcphoriaError):
        path = (*_input_path(error.message), *as_given(cause.path))
        return _with_kind(error, type(cause), cause.message, path)
    if (fault := _of_request(error, cause)) is not None:
        return fault
    incident = incidents.get(id(cause))
    if incident is None:
        incident = incidents[id(cause)] = uuid.uuid4().hex[:12]
        _log.error("internal error", incident=incident, field=error.path, exc_info=cause)
    message = f"an internal error happened; the log has it under {incident}"
    return _with_kind(error, InternalError, message, ())


def translate_all(errors: list[GraphQLError]) -> list[GraphQLError]:
    """Translate the errors of one response."""
    incidents: dict[int, str] = {}
    return [translate(error, incidents) for error in errors]


class ErrorCodes(SchemaExtension):
    """Gives every error of a result its code and masks what is not the client's business."""

    def on_operation(self) -> Iterator[None]:
        """Translate the errors once the operation has run."""
        yield
        result = self.execution_context.result
        if result is not None and result.errors:
            result.errors = translate_all(result.errors)

    def on_stream_result(self, result: StreamExecutionResult) -> Iterator[None]:
        """Translate the errors of one result of several."""
        if isinstance(result, ExecutionResult) and result.errors:
            result.errors = translate_all(result.errors)
        yield


_STATUS: tuple[tuple[type[EcphoriaError], int], ...] = (
    (Unauthenticated, 401),
    (Forbidden, 403),
    (NotFound, 404),
    (RequestTooLarge, 413),
    (InvalidInput, 400),
    (InvalidScope, 400),
    (StoreUnavailable, 503),
    (OperationTimeout, 503),
    (RateLimited, 429),
    (TooManyOperations, 429),
)


def status_of(error: EcphoriaError) -> int:
    """Return the HTTP status of an error that keeps GraphQL from answering at all."""
    return _status_of_kind(type(error))


def _status_of_kind(found: type[EcphoriaError]) -> int:
    return next((status for kind, status in _STATUS if issubclass(found, kind)), 500)


def status_of_answer(answer: Mapping[str, Any], media: str, code: GraphQLCode | None = None) -> int:
    """Return the HTTP status of a GraphQL answer, or of a request that brings no answer.

    By ``application/json`` every answer is 200. By the other media type one without data says by
    its status what the first error is; the hash that is not known keeps the 200 that its protocol
    has for it.
    """
    found = str(code) if code is not None else ""
    if code is None:
        if media != RESPONSE_JSON or "data" in answer:
            return 200
        errors = answer.get("errors") or [{}]
        found = str((errors[0].get("extensions") or {}).get("code"))
    if found == GraphQLCode.PERSISTED_QUERY_NOT_FOUND:
        return 200
    kinds = {kind.code: kind for kind in error_classes()}
    return _status_of_kind(kinds[found]) if found in kinds else 400


def error_body(error: EcphoriaError) -> dict[str, Any]:
    """Return an error as a GraphQL response body holds it."""
    extensions = _extensions(
        error.code, error.remedy, retryable=error.retryable, path=as_given(error.path)
    )
    return {"errors": [{"message": error.message, "extensions": extensions}]}


def json_response(
    body: object, status: int, headers: dict[str, str] | None = None, *, media: str = JSON
) -> Response:
    """Return a JSON response in plain ASCII: a lone surrogate in a message must not break it."""
    content_type = media if media == JSON else f"{media}; charset=utf-8"
    return Response(json.dumps(body), status, headers, media_type=content_type)


def error_response(error: EcphoriaError, media: str = JSON) -> Response:
    """Return the response to a request that GraphQL does not answer."""
    headers = {}
    if isinstance(error, Unauthenticated):
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, RateLimited):
        headers["Retry-After"] = f"{math.ceil(error.retry_after_s)}"
    elif isinstance(error, TooManyOperations):
        headers["Retry-After"] = "1"
    return json_response(error_body(error), status_of(error), headers, media=media)


def request_fault(
    message: str, status: int, code: GraphQLCode = GraphQLCode.BAD_REQUEST, media: str = JSON
) -> Response:
    """Return the response to an HTTP request that is no GraphQL request."""
    body = {"errors": [{"message": message, "extensions": _extensions(code, REMEDIES[code])}]}
    headers = {"Allow": "POST"} if status == METHOD_NOT_ALLOWED else None
    return json_response(body, status, headers, media=media)
