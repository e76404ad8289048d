"""The schema of a domain: typed from its file, without anything kept between two."""

import strawberry
from graphql import GraphQLError
from strawberry.extensions import AddValidationRules, MaxTokensLimiter
from strawberry.schema.config import StrawberryConfig
from strawberry.types.execution import ExecutionContext

from ecphoria_graphql.entity_types import build_entity_types
from ecphoria_graphql.error_codes import ErrorCodes
from ecphoria_graphql.inputs import build_input_types
from ecphoria_graphql.limits import MAX_TOKENS, OperationLimits
from ecphoria_graphql.memory_types import build_memory_types
from ecphoria_graphql.mutation import build_mutation
from ecphoria_graphql.query import build_query
from ecphoria_graphql.recall_types import build_recall_types
from ecphoria_graphql.scalars import SCALARS
from ecphoria_schema.domain import Domain


class Schema(strawberry.Schema):
    """A schema that leaves logging to `ErrorCodes`: a caller's mistake is no log entry."""

    def process_errors(
        self, errors: list[GraphQLError], execution_context: ExecutionContext | None = None
    ) -> None:
        """Do nothing here."""


def build_schema(domain: Domain) -> strawberry.Schema:
    """Return the typed schema of a domain; several in one process do not clash.

    Raises:
        DomainFileInvalid: When two of its names come out as the same GraphQL name.
    """
    entities = build_entity_types(domain)
    memories = build_memory_types(entities)
    recalls = build_recall_types(entities, memories)
    return Schema(
        query=build_query(entities, memories, recalls),
        mutation=build_mutation(entities, build_input_types(entities)),
        types=list(entities.objects.values()),
        config=StrawberryConfig(scalar_map=SCALARS),
        extensions=[
            ErrorCodes,
            lambda: MaxTokensLimiter(max_token_count=MAX_TOKENS),
            lambda: AddValidationRules([OperationLimits]),
        ],
    )
