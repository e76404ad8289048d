"""Queries. Each names exactly one user."""

import enum
from typing import Annotated, Any

import strawberry

from ecphoria.model import EntityRef
from ecphoria_graphql.context import Info
from ecphoria_graphql.entity_types import EntityTypes
from ecphoria_graphql.error_codes import input_path
from ecphoria_graphql.fields import typed_field
from ecphoria_graphql.inputs import RecallData
from ecphoria_graphql.memory_types import MemoryTypes
from ecphoria_graphql.recall_types import RecallTypes

UserId = Annotated[
    strawberry.ID,
    strawberry.argument(description="For whom to look it up: exactly one user."),
]
RecallArgument = Annotated[RecallData, strawberry.argument(description="The question.")]
MemoryId = Annotated[strawberry.ID, strawberry.argument(description="Id of the memory.")]
EntityId = Annotated[
    strawberry.ID, strawberry.argument(description="The caller's own id of the entity.")
]


def build_query(entities: EntityTypes, memories: MemoryTypes, recalls: RecallTypes) -> type:
    """Make the query type of a domain."""

    async def recall(info: Info, input: RecallArgument) -> Any:  # noqa: A002, ANN401 - GraphQL's name; typed by the domain
        with input_path("input"):
            result = await info.context.engine.recall(info.context.scope, input.request())
        return recalls.node(result, input.user_id)

    async def memory(info: Info, user_id: UserId, id: MemoryId) -> Any:  # noqa: A002, ANN401 - GraphQL's name; typed by the domain
        found = await info.context.engine.memory(info.context.scope, user_id, id)
        return memories.node(found, user_id)

    async def entity(info: Info, user_id: UserId, type: enum.Enum, id: EntityId) -> Any:  # noqa: A002, ANN401 - GraphQL's name; typed by the domain
        ref = EntityRef(type.value, id)
        found = await info.context.engine.entity(info.context.scope, user_id, ref)
        return entities.node(found, user_id)

    entity.__annotations__["type"] = Annotated[
        entities.entity_type,
        strawberry.argument(description="Its type."),
    ]
    made = type(
        "Query",
        (),
        {
            "__annotations__": {},
            "recall": typed_field(
                recall,
                recalls.recall,
                "Answer a question about one user with a joined, structured context.",
            ),
            "memory": typed_field(
                memory,
                memories.memory,
                "One memory of a user, or a shared one; NOT_FOUND otherwise.",
            ),
            "entity": typed_field(
                entity,
                entities.interface,
                "One entity of a user, or a shared one; NOT_FOUND otherwise.",
            ),
        },
    )
    return strawberry.type(made, name="Query", description="What can be asked.")
