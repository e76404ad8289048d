"""Queries. Each names exactly one user."""

import enum
from datetime import datetime
from typing import Annotated, Any

import strawberry

from ecphoria.model import EntityRef
from ecphoria_graphql.context import Info
from ecphoria_graphql.entity_types import EntityTypes
from ecphoria_graphql.error_codes import argument_path, input_path
from ecphoria_graphql.fields import typed_field
from ecphoria_graphql.history_types import HistoryTypes
from ecphoria_graphql.inputs import InputTypes, RecallData, RefData, attributes_of
from ecphoria_graphql.memory_types import MemoryTypes
from ecphoria_graphql.recall_types import RecallTypes
from ecphoria_graphql.session_types import SessionNode

UserId = Annotated[
    strawberry.ID,
    strawberry.argument(description="For whom to look it up: exactly one user."),
]
RecallArgument = Annotated[RecallData, strawberry.argument(description="The question.")]
MemoryId = Annotated[strawberry.ID, strawberry.argument(description="Id of the memory.")]
EntityId = Annotated[
    strawberry.ID, strawberry.argument(description="The caller's own id of the entity.")
]
SessionId = Annotated[
    strawberry.ID, strawberry.argument(description="The caller's own id of the conversation.")
]
Subject = Annotated[
    str | None,
    strawberry.argument(
        description="Of an attribute that is kept by subject, e.g. the thing liked."
    ),
]
AsOf = Annotated[
    datetime | None,
    strawberry.argument(description="The moment the value must hold at; now when not given."),
]
KnownAt = Annotated[
    datetime | None,
    strawberry.argument(
        description="Only what was known then, as it stood then; what is known now when not given."
    ),
]


def build_query(
    entities: EntityTypes,
    memories: MemoryTypes,
    recalls: RecallTypes,
    histories: HistoryTypes,
    inputs: InputTypes,
) -> type:
    """Make the query type of a domain."""

    async def recall(info: Info, input: RecallArgument) -> Any:  # noqa: A002, ANN401 - GraphQL's name; typed by the domain
        with info.context.metrics.recall() as asked, input_path("input"):
            result = await info.context.engine.recall(info.context.scope, input.request())
            asked.action = result.action.value
        return recalls.node(result, input.user_id)

    async def memory(info: Info, user_id: UserId, id: MemoryId) -> Any:  # noqa: A002, ANN401 - GraphQL's name; typed by the domain
        found = await info.context.engine.memory(info.context.scope, user_id, id)
        return memories.node(found, user_id)

    async def entity(info: Info, user_id: UserId, type: enum.Enum, id: EntityId) -> Any:  # noqa: A002, ANN401 - GraphQL's name; typed by the domain
        ref = EntityRef(type.value, id)
        found = await info.context.engine.entity(info.context.scope, user_id, ref)
        return entities.node(found, user_id)

    async def attribute_history(
        info: Info,
        user_id: UserId,
        entity: RefData,
        attribute: str,
        subject: Subject = None,
        as_of: AsOf = None,
        known_at: KnownAt = None,
    ) -> Any:  # noqa: ANN401 - typed by the domain
        with argument_path("entity", "entity", "attribute"):
            found = await info.context.engine.attribute_history(
                info.context.scope,
                user_id,
                entity.ref(),
                attribute,
                subject=subject,
                as_of=as_of,
                known_at=known_at,
            )
        return histories.node(found, user_id)

    async def session(info: Info, user_id: UserId, session_id: SessionId) -> SessionNode:
        return SessionNode.of(
            await info.context.engine.session(info.context.scope, user_id, session_id)
        )

    attribute_history.__annotations__["entity"] = Annotated[
        inputs.ref,
        strawberry.argument(description="Whose attribute; it need not be in the graph."),
    ]
    attribute_history.__annotations__["attribute"] = Annotated[
        str, strawberry.argument(description=f"The attribute. {attributes_of(entities)}")
    ]
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
            "attribute_history": typed_field(
                attribute_history,
                histories.history,
                (
                    "What the value of an attribute is, was, and was thought to be: `asOf` moves"
                    " the moment that counts, `knownAt` what is known about it."
                ),
            ),
            "session": strawberry.field(
                resolver=session,
                description=(
                    "What is kept of a conversation that is under way; one that is unknown or over"
                    " is empty."
                ),
            ),
        },
    )
    return strawberry.type(made, name="Query", description="What can be asked.")
