"""The schema of a domain: typed from its file, without anything kept between two."""

from collections.abc import AsyncGenerator
from typing import Any

import strawberry
from cross_web import HTTPException as GraphQLHTTPException
from graphql import GraphQLError
from strawberry.extensions import AddValidationRules, MaxTokensLimiter
from strawberry.schema.config import StrawberryConfig
from strawberry.schema.exceptions import InvalidOperationTypeError
from strawberry.subscriptions import GRAPHQL_TRANSPORT_WS_PROTOCOL
from strawberry.types import ExecutionResult
from strawberry.types.execution import ExecutionContext, PreExecutionError
from strawberry.types.graphql import OperationType

from ecphoria.errors import EcphoriaError
from ecphoria_graphql.context import Socket
from ecphoria_graphql.entity_types import build_entity_types
from ecphoria_graphql.error_codes import ErrorCodes, translate_all
from ecphoria_graphql.history_types import build_history_types
from ecphoria_graphql.inputs import build_input_types
from ecphoria_graphql.limits import MAX_TOKENS, OperationLimits
from ecphoria_graphql.memory_types import build_memory_types
from ecphoria_graphql.mutation import build_mutation
from ecphoria_graphql.query import build_query
from ecphoria_graphql.recall_types import build_recall_types
from ecphoria_graphql.scalars import SCALARS
from ecphoria_graphql.subscription import build_subscription
from ecphoria_schema.domain import Domain


class Schema(strawberry.Schema):
    """A schema that leaves logging to `ErrorCodes`: a caller's mistake is no log entry."""

    def process_errors(
        self, errors: list[GraphQLError], execution_context: ExecutionContext | None = None
    ) -> None:
        """Do nothing here."""

    async def execute(self, *args: Any, **options: Any) -> ExecutionResult:  # noqa: ANN401 - Strawberry's signature
        """Run an operation of an HTTP request; only a websocket can follow something."""
        allowed = options.get("allowed_operation_types") or OperationType
        options["allowed_operation_types"] = set(allowed) - {OperationType.SUBSCRIPTION}
        try:
            return await super().execute(*args, **options)
        except InvalidOperationTypeError as error:
            if error.operation_type is not OperationType.SUBSCRIPTION:
                raise
            msg = f"a subscription needs a websocket: {GRAPHQL_TRANSPORT_WS_PROTOCOL}, same address"
            raise GraphQLHTTPException(400, msg) from error

    async def stream(
        self,
        query: str | None,
        variable_values: dict[str, Any] | None = None,
        context_value: Any | None = None,  # noqa: ANN401 - Strawberry's signature
        *args: Any,  # noqa: ANN401 - as above
        **options: Any,  # noqa: ANN401 - as above
    ) -> AsyncGenerator[Any, None]:
        """Run an operation of a websocket: with a key that counts now, and loaders of its own."""
        context = context_value
        if isinstance(context_value, Socket):
            try:
                context = await context_value.context()
            except EcphoriaError as error:
                return _refused(error)
        return await super().stream(query, variable_values, context, *args, **options)


async def _refused(error: EcphoriaError) -> AsyncGenerator[Any, None]:
    caused = GraphQLError(error.message, original_error=error)
    yield PreExecutionError(data=None, errors=translate_all([caused]))


def build_schema(domain: Domain) -> strawberry.Schema:
    """Return the typed schema of a domain; several in one process do not clash.

    Raises:
        DomainFileInvalid: When two of its names come out as the same GraphQL name.
    """
    entities = build_entity_types(domain)
    memories = build_memory_types(entities)
    recalls = build_recall_types(entities, memories)
    inputs = build_input_types(entities)
    return Schema(
        query=build_query(entities, memories, recalls, build_history_types(memories), inputs),
        mutation=build_mutation(entities, inputs),
        subscription=build_subscription(memories),
        types=list(entities.objects.values()),
        config=StrawberryConfig(scalar_map=SCALARS),
        extensions=[
            ErrorCodes,
            lambda: MaxTokensLimiter(max_token_count=MAX_TOKENS),
            lambda: AddValidationRules([OperationLimits]),
        ],
    )
