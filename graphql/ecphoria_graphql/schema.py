"""The schema of a domain: typed from its file, without anything kept between two."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any

import strawberry
from graphql import GraphQLError, OperationType
from strawberry.extensions import AddValidationRules, MaxTokensLimiter, SchemaExtension
from strawberry.schema.config import StrawberryConfig
from strawberry.types import ExecutionResult
from strawberry.types.execution import ExecutionContext, PreExecutionError

from ecphoria.errors import EcphoriaError, OperationTimeout, TooManyOperations
from ecphoria_graphql.context import Context, Socket
from ecphoria_graphql.cost import CostLimit
from ecphoria_graphql.documents import ParsedDocuments
from ecphoria_graphql.entity_types import build_entity_types
from ecphoria_graphql.error_codes import (
    SEVERAL_OPERATIONS,
    DocumentFault,
    ErrorCodes,
    GraphQLCode,
    document_fault,
    translate_all,
)
from ecphoria_graphql.field_access import guard
from ecphoria_graphql.history_types import build_history_types
from ecphoria_graphql.inputs import build_input_types
from ecphoria_graphql.introspection import IntrospectionByRole
from ecphoria_graphql.limits import MAX_TOKENS, OperationLimits
from ecphoria_graphql.memory_types import build_memory_types
from ecphoria_graphql.mutation import build_mutation
from ecphoria_graphql.query import build_query
from ecphoria_graphql.recall_types import build_recall_types
from ecphoria_graphql.scalars import SCALARS
from ecphoria_graphql.subscription import build_subscription
from ecphoria_graphql.write_faults import FAULT_TYPES
from ecphoria_schema.domain import Domain


class Schema(strawberry.Schema):
    """A schema that leaves logging to `ErrorCodes`: a caller's mistake is no log entry.

    Attributes:
        parsed: Documents as they were parsed.
    """

    parsed: ParsedDocuments

    def process_errors(
        self, errors: list[GraphQLError], execution_context: ExecutionContext | None = None
    ) -> None:
        """Do nothing here."""

    async def execute(self, *args: Any, **options: Any) -> ExecutionResult:  # noqa: ANN401 - Strawberry's signature
        """Run an operation of an HTTP request, within the limits of its key and of time.

        Raises:
            TooManyOperations: When the key has as many under way as it may.
            OperationTimeout: When it took too long, and was stopped.
        """
        context = options["context_value"]
        if not isinstance(context, Context):
            return await super().execute(*args, **options)
        with context.gate.operations.one(context.scope):
            async with _in_time(context):
                return await super().execute(*args, **options)

    async def stream(
        self,
        query: str | None,
        variable_values: dict[str, Any] | None = None,
        context_value: Any | None = None,  # noqa: ANN401 - Strawberry's signature
        root_value: Any | None = None,  # noqa: ANN401 - as above
        operation_name: str | None = None,
        *args: Any,  # noqa: ANN401 - as above
        **options: Any,  # noqa: ANN401 - as above
    ) -> AsyncGenerator[Any, None]:
        """Run an operation whose results are streamed.

        One of a websocket gets a context of its own: with a key that counts now.
        """
        context = context_value
        if self.parsed.is_ambiguous(query, operation_name):
            fault = DocumentFault(GraphQLCode.BAD_REQUEST, SEVERAL_OPERATIONS)
            return _only(PreExecutionError(data=None, errors=[document_fault(fault)]))
        if isinstance(context_value, Socket):
            try:
                context = await context_value.context()
            except EcphoriaError as error:
                return _only(_pre_execution(error))
        source = await super().stream(
            query, variable_values, context, root_value, operation_name, *args, **options
        )
        if not isinstance(context, Context):
            return source
        if self.parsed.kind(query, operation_name) is OperationType.SUBSCRIPTION:
            return _following(source, context)
        return _answering(source, context)


@contextlib.asynccontextmanager
async def _in_time(context: Context) -> AsyncIterator[None]:
    seconds = context.engine.settings.operation_timeout_s
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield
    except TimeoutError as error:
        if not limit.expired():
            raise
        msg = f"an operation may take {seconds:g} seconds, and this one took longer"
        raise OperationTimeout(msg) from error


async def _following(
    source: AsyncGenerator[Any, None], context: Context
) -> AsyncGenerator[Any, None]:
    """Hand on what a subscription brings, for as long as anybody listens."""
    try:
        with context.gate.subscriptions.one(context.scope):
            async with contextlib.aclosing(source):
                async for result in source:
                    yield result
    except TooManyOperations as error:
        yield _pre_execution(error)


async def _answering(
    source: AsyncGenerator[Any, None], context: Context
) -> AsyncGenerator[Any, None]:
    """Hand on what a query or mutation brings, within the limits of its key and of time."""
    try:
        with context.gate.operations.one(context.scope):
            async with _in_time(context), contextlib.aclosing(source):
                results = [result async for result in source]
    except (TooManyOperations, OperationTimeout) as error:
        results = [_pre_execution(error)]
    for result in results:
        yield result


async def _only(result: PreExecutionError) -> AsyncGenerator[Any, None]:
    yield result


def _pre_execution(error: EcphoriaError) -> PreExecutionError:
    caused = GraphQLError(error.message, original_error=error)
    return PreExecutionError(data=None, errors=translate_all([caused]))


class _ParsedOnce(SchemaExtension):
    """Takes a document as it was parsed for an earlier request."""

    def __init__(self, parsed: ParsedDocuments) -> None:
        self._parsed = parsed

    def on_parse(self) -> Iterator[None]:
        execution = self.execution_context
        if execution.query and execution.graphql_document is None:
            execution.graphql_document = self._parsed.get(execution.query)
        yield


def build_schema(domain: Domain) -> Schema:
    """Return the typed schema of a domain; several in one process do not clash.

    Raises:
        DomainFileInvalid: When two of its names come out as the same GraphQL name.
    """
    entities = build_entity_types(domain)
    memories = build_memory_types(entities)
    recalls = build_recall_types(entities, memories)
    inputs = build_input_types(entities)
    parsed = ParsedDocuments()
    made = Schema(
        query=build_query(entities, memories, recalls, build_history_types(memories), inputs),
        mutation=build_mutation(entities, inputs),
        subscription=build_subscription(memories),
        types=[*entities.objects.values(), *FAULT_TYPES],
        config=StrawberryConfig(scalar_map=SCALARS),
        extensions=[
            ErrorCodes,
            lambda: MaxTokensLimiter(max_token_count=MAX_TOKENS),
            lambda: _ParsedOnce(parsed),
            lambda: AddValidationRules([OperationLimits]),
            IntrospectionByRole,
            CostLimit,
        ],
    )
    made.parsed = parsed
    guard(made._schema)  # noqa: SLF001 - Strawberry has no other way to it
    return made
