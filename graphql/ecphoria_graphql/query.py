"""Queries. Each names exactly one user, but for those that are about no user's data."""

import enum
from datetime import datetime
from typing import Annotated, Any

import strawberry

from ecphoria.errors import InvalidNodeId
from ecphoria.model import EntityRef, MemoryFilter
from ecphoria.reading.entity_graph import DEFAULT_DEPTH, MAX_DEPTH
from ecphoria.reading.paging import DEFAULT_FIRST
from ecphoria_graphql.audit_types import AUDIT_CONNECTION, AuditArgument, AuditEntryNode
from ecphoria_graphql.connection_types import After, First, Listed, connected
from ecphoria_graphql.context import Info
from ecphoria_graphql.entity_types import EntityTypes
from ecphoria_graphql.error_codes import argument_path, input_path
from ecphoria_graphql.feedback_fields import feedback_queries
from ecphoria_graphql.fields import typed_field
from ecphoria_graphql.history_types import HistoryTypes
from ecphoria_graphql.inputs import InputTypes, RecallData, RefData, attributes_of
from ecphoria_graphql.listing_types import (
    CallerNode,
    FilterData,
    ListingTypes,
    SourceNode,
    build_listing_types,
)
from ecphoria_graphql.memory_types import MemoryTypes
from ecphoria_graphql.node_ids import MEMORY_TYPE, node_ref
from ecphoria_graphql.node_types import Node
from ecphoria_graphql.recall_types import RecallTypes
from ecphoria_graphql.session_types import SessionNode
from ecphoria_graphql.user_forget_types import ForgottenCheckNode

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
NodeId = Annotated[
    strawberry.ID, strawberry.argument(description="A `nodeId` as it was handed out.")
]
Topic = Annotated[
    str | None,
    strawberry.argument(description="Only where one of the memories has this main topic."),
]
Depth = Annotated[
    int | None,
    strawberry.argument(
        description=(
            f"How many steps, 1 to {MAX_DEPTH}; {DEFAULT_DEPTH} if not given, or the whole `path`."
        )
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
    listings = build_listing_types(entities, memories, inputs)
    made = type(
        "Query",
        (),
        {
            "__annotations__": {},
            **_list_fields(entities, memories, listings),
            **_other_fields(entities, memories, listings),
            **_governance_fields(),
            **feedback_queries(),
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


def _list_fields(
    entities: EntityTypes, memories: MemoryTypes, listings: ListingTypes
) -> dict[str, Any]:
    """Return the fields that are lists, page by page."""

    async def listed(
        info: Info,
        user_id: UserId,
        filter: FilterData | None = None,  # noqa: A002 - GraphQL's name
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> Any:  # noqa: ANN401 - typed by the domain
        engine, scope = info.context.engine, info.context.scope
        wanted = MemoryFilter() if filter is None else filter.filter()
        page = await engine.list_memories(scope, user_id, wanted, first=first, after=after)
        info.context.loaders.count(len(page.items))
        nodes = [memories.node(memory, user_id) for memory in page.items]
        return connected(
            listings.memories,
            Listed(page, nodes, after, lambda: engine.count_memories(scope, user_id, wanted)),
        )

    async def of_type(
        info: Info,
        user_id: UserId,
        type: enum.Enum,  # noqa: A002 - as above
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> Any:  # noqa: ANN401 - as above
        engine, scope = info.context.engine, info.context.scope
        page = await engine.list_entities(scope, user_id, type.value, first=first, after=after)
        info.context.loaders.count(len(page.items))
        nodes = entities.nodes(page.items, user_id)
        return connected(
            listings.entities,
            Listed(page, nodes, after, lambda: engine.count_entities(scope, user_id, type.value)),
        )

    async def conflicts(
        info: Info,
        user_id: UserId,
        topic: Topic = None,
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> Any:  # noqa: ANN401 - as above
        page = await info.context.engine.conflicts(
            info.context.scope, user_id, topic=topic, first=first, after=after
        )
        info.context.loaders.count(sum(len(found.memories) for found in page.items))
        nodes = listings.conflict_nodes(page.items, user_id)
        return connected(listings.conflicts, Listed(page, nodes, after))

    listed.__annotations__["filter"] = Annotated[
        listings.filter | None,
        strawberry.argument(description="Which of them; the active ones when not given."),
    ]
    of_type.__annotations__["type"] = Annotated[
        entities.entity_type, strawberry.argument(description="Of this type.")
    ]
    return {
        "memories": typed_field(
            listed,
            listings.memories,
            (
                "A user's memories, newest first, page by page. Pages stay whole while others"
                " write: none comes twice, and none that was there from the start is left out."
            ),
        ),
        "entities": typed_field(
            of_type,
            listings.entities,
            "The user's own entities of a type, or the shared ones, page by page, by id.",
        ),
        "conflicts": typed_field(
            conflicts,
            listings.conflicts,
            "What contradicts itself now in what is known about a user.",
        ),
    }


def _other_fields(
    entities: EntityTypes, memories: MemoryTypes, listings: ListingTypes
) -> dict[str, Any]:
    """Return the other fields for looking around."""

    async def node(info: Info, node_id: NodeId) -> Any:  # noqa: ANN401 - as above
        ref = node_ref(node_id)
        loaders = info.context.loaders
        if ref.type == MEMORY_TYPE:
            memory = await loaders.memory(ref.user_id, ref.id)
            return None if memory is None else memories.node(memory, ref.user_id)
        if ref.type not in entities.objects:
            msg = f"the domain has no entity type {ref.type!r} any more"
            raise InvalidNodeId(msg, path=("node_id",))
        entity = await loaders.entity(ref.user_id, EntityRef(ref.type, ref.id))
        return None if entity is None else entities.node(entity, ref.user_id)

    async def entity_graph(
        info: Info,
        user_id: UserId,
        type: enum.Enum,  # noqa: A002 - as above
        id: EntityId,  # noqa: A002 - as above
        path: enum.Enum | None = None,
        depth: Depth = None,
    ) -> Any:  # noqa: ANN401 - as above
        found = await info.context.engine.entity_graph(
            info.context.scope,
            user_id,
            EntityRef(type.value, id),
            path=None if path is None else path.value,
            depth=depth,
        )
        info.context.loaders.count(len(found.entities))
        return listings.graph_node(found, user_id)

    async def sources(info: Info) -> list[SourceNode]:
        found = await info.context.engine.sources(info.context.scope)
        return [SourceNode.of(source) for source in found]

    async def stats(info: Info, user_id: UserId) -> Any:  # noqa: ANN401 - as above
        found = await info.context.engine.stats(info.context.scope, user_id)
        return listings.stats_node(found)

    async def tenant_stats(info: Info) -> Any:  # noqa: ANN401 - as above
        return listings.stats_node(await info.context.engine.tenant_stats(info.context.scope))

    async def me(info: Info) -> CallerNode:
        return CallerNode.of(await info.context.engine.me(info.context.scope))

    entity_graph.__annotations__["type"] = Annotated[
        entities.entity_type, strawberry.argument(description="Type of the entity to begin with.")
    ]
    entity_graph.__annotations__["path"] = Annotated[
        listings.path | None,
        strawberry.argument(
            description="Down this path, with its own caps; every way when not given."
        ),
    ]
    return {
        "node": typed_field(
            node,
            Node | None,
            (
                "A memory or an entity by its global id; null when there is none, or it may not be"
                " seen."
            ),
        ),
        "entity_graph": typed_field(
            entity_graph,
            listings.graph,
            "What is connected to an entity, down a path of the domain or every way.",
        ),
        "sources": strawberry.field(
            resolver=sources, description="Where memories come from, and how far it is trusted."
        ),
        "stats": typed_field(stats, listings.stats, "What there is of a user, in numbers."),
        "tenant_stats": typed_field(
            tenant_stats,
            listings.stats,
            "What there is of all users, in numbers; for operators and admins.",
        ),
        "me": strawberry.field(
            resolver=me, description="Who asks: what the key is for, and what it may do."
        ),
    }


def _governance_fields() -> dict[str, Any]:
    """Return the fields about what was done to whose data."""

    async def audit_log(
        info: Info,
        filter: AuditArgument = None,  # noqa: A002 - GraphQL's name
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> Any:  # noqa: ANN401 - made at run time
        page = await info.context.engine.audit_log(
            info.context.scope,
            None if filter is None else filter.filter(),
            first=first,
            after=after,
        )
        nodes = [AuditEntryNode.of(entry) for entry in page.items]
        return connected(AUDIT_CONNECTION, Listed(page, nodes, after))

    async def verify_forgotten(info: Info, user_id: UserId) -> ForgottenCheckNode:
        return ForgottenCheckNode.of(
            await info.context.engine.verify_forgotten(info.context.scope, user_id)
        )

    return {
        "audit_log": typed_field(
            audit_log,
            AUDIT_CONNECTION,
            "Who did what to whose data, the newest first, page by page; never what they say.",
        ),
        "verify_forgotten": strawberry.field(
            resolver=verify_forgotten,
            description=(
                "Search every store for what is left of a user, rows of the index that are marked"
                " as deleted included where the store still finds them."
            ),
        ),
    }
