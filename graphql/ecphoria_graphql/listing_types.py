"""Looking around: connections, conflicts, what is connected, counts, sources, who asks."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import strawberry

from ecphoria.model import (
    Conflict,
    EntityGraph,
    EntityRef,
    MemoryCount,
    MemoryFilter,
    Principal,
    SourceInfo,
    Stats,
    Status,
)
from ecphoria_graphql.connection_types import ConnectionNode, connection_type
from ecphoria_graphql.entity_types import EntityTypes
from ecphoria_graphql.enums import MemoryKind, MemoryStatus, PrivacyLevel, StorageTier, plain
from ecphoria_graphql.fields import list_of, typed_field
from ecphoria_graphql.inputs import InputTypes, RefData
from ecphoria_graphql.memory_types import MemoryTypes
from ecphoria_graphql.receipt_types import EntityRefNode

# --- the same in every domain --------------------------------------------------------------


@strawberry.type(
    name="MemorySource", description="Where memories come from, and how far it is trusted."
)
class SourceNode:
    """A source."""

    id: strawberry.ID = strawberry.field(description="As the domain names it, e.g. `crm`.")
    name: str = strawberry.field(description="A name for people to read.")
    reliability: float = strawberry.field(
        description="How far to trust it, 0 to 1; what feedback has taken from it is taken."
    )
    declared_reliability: float = strawberry.field(
        description="How far to trust it without feedback, 0 to 1."
    )
    disabled: bool = strawberry.field(
        description="Whether recall leaves out all that comes from it."
    )

    @classmethod
    def of(cls, source: SourceInfo) -> "SourceNode":
        """Return a source as its GraphQL type."""
        return cls(
            id=strawberry.ID(source.id),
            name=source.name,
            reliability=source.reliability,
            declared_reliability=(
                source.reliability if source.declared is None else source.declared
            ),
            disabled=source.disabled,
        )


@strawberry.enum(name="AccessRole", description="What a key may do.")
class AccessRole(enum.Enum):
    """Roles; the values are the engine's."""

    AGENT = strawberry.enum_value("agent", description="Asks and remembers for users.")
    ANALYST = strawberry.enum_value("analyst", description="Asks and looks around.")
    OPERATOR = strawberry.enum_value("operator", description="Writes, forgets and maintains.")
    ADMIN = strawberry.enum_value("admin", description="Everything.")


@strawberry.type(name="Caller", description="Who asks, and what he may do.")
class CallerNode:
    """Who asks."""

    tenant: strawberry.ID = strawberry.field(description="The tenant that the key is for.")
    principal: strawberry.ID = strawberry.field(description="Id of the key; never its secret.")
    roles: list[AccessRole] = strawberry.field(description="What it may do.")
    users: list[strawberry.ID] = strawberry.field(
        description="The users whose data it may name; empty with `everyUser`."
    )
    every_user: bool = strawberry.field(
        description="Whether it may name every user of the tenant, one at a time."
    )
    readable_privacy: list[PrivacyLevel] = strawberry.field(
        description="Privacy levels that it may read, from open to strict."
    )
    expires_at: datetime | None = strawberry.field(
        description="When the key ends; null = never, or not known."
    )

    @classmethod
    def of(cls, principal: Principal) -> "CallerNode":
        """Return who asks as its GraphQL type."""
        return cls(
            tenant=strawberry.ID(principal.tenant),
            principal=strawberry.ID(principal.id),
            roles=[AccessRole(role.value) for role in principal.roles],
            users=[strawberry.ID(user) for user in principal.users or ()],
            every_user=principal.users is None,
            readable_privacy=[PrivacyLevel(level) for level in principal.readable],
            expires_at=principal.expires_at,
        )


@strawberry.type(
    name="MemoryCount", description="How many memories there are of a kind, a status and a tier."
)
class MemoryCountNode:
    """A count of memories."""

    kind: MemoryKind = strawberry.field(description="Of this kind.")
    status: MemoryStatus = strawberry.field(description="Of this status.")
    tier: StorageTier = strawberry.field(description="Kept here.")
    count: int = strawberry.field(description="How many.")

    @classmethod
    def of(cls, found: MemoryCount) -> "MemoryCountNode":
        """Return a count as its GraphQL type."""
        return cls(
            kind=MemoryKind(found.kind),
            status=MemoryStatus(found.status.value),
            tier=StorageTier(found.tier),
            count=found.count,
        )


# --- filters -------------------------------------------------------------------------------


@strawberry.input
class FilterData:
    """What a filter of memories asks for, but for the entity."""

    kinds: list[MemoryKind] | None = strawberry.field(
        default=None, description="Of one of these kinds."
    )
    topics: list[str] | None = strawberry.field(
        default=None,
        description="Whose main topic is one of these, or whose text has one, e.g. `warranty`.",
    )
    sources: list[strawberry.ID] | None = strawberry.field(
        default=None, description="From one of these sources, e.g. `crm`."
    )
    statuses: list[MemoryStatus] = strawberry.field(
        default_factory=lambda: [MemoryStatus.ACTIVE],
        description="Of one of these statuses; not FORGOTTEN, of which nothing is left.",
    )
    occurred_since: datetime | None = strawberry.field(
        default=None, description="That happened then or later."
    )
    occurred_until: datetime | None = strawberry.field(
        default=None, description="That happened before then."
    )
    valid_at: datetime | None = strawberry.field(
        default=None, description="That are true at this moment."
    )
    include_shared: bool = strawberry.field(
        default=False, description="Also what every user of the tenant shares, e.g. policies."
    )

    def filter(self) -> MemoryFilter:
        """Return it as the engine takes it."""
        ref: RefData | None = getattr(self, "entity", None)
        return MemoryFilter(
            kinds=tuple(plain(kind) for kind in self.kinds or ()),
            topics=tuple(self.topics or ()),
            entity=None if ref is None else ref.ref(),
            sources=tuple(self.sources or ()),
            statuses=tuple(Status(plain(status)) for status in self.statuses),
            occurred_since=self.occurred_since,
            occurred_until=self.occurred_until,
            valid_at=self.valid_at,
            include_shared=self.include_shared,
        )


# --- a domain's own ------------------------------------------------------------------------


class ConflictNode:
    """A conflict, together with the user it was asked for."""

    record: Conflict
    user_id: str


class GraphNode:
    """What is connected to an entity, together with the user it was asked for."""

    record: EntityGraph
    user_id: str


class EdgeNode:
    """A relation between two entities of a graph."""

    type_: str
    start: EntityRef
    end: EntityRef


class StatsNode:
    """Counts."""

    record: Stats


class EntityCountNode:
    """A count of entities."""

    type_: str
    number: int


@dataclass(frozen=True, slots=True)
class ListingTypes:
    """The types of one domain for looking around.

    Attributes:
        path: Enum of the expansion paths.
    """

    filter: type[FilterData]
    memories: type[ConnectionNode]
    entities: type[ConnectionNode]
    conflict: type[ConflictNode]
    conflicts: type[ConnectionNode]
    graph: type[GraphNode]
    stats: type[StatsNode]
    path: type[enum.Enum]

    def conflict_nodes(self, found: Iterable[Conflict], user_id: str) -> list[ConflictNode]:
        """Return conflicts as their GraphQL type."""
        nodes = []
        for record in found:
            node = self.conflict()
            node.record, node.user_id = record, user_id
            nodes.append(node)
        return nodes

    def graph_node(self, record: EntityGraph, user_id: str) -> GraphNode:
        """Return what is connected to an entity as its GraphQL type."""
        node = self.graph()
        node.record, node.user_id = record, user_id
        return node

    def stats_node(self, record: Stats) -> StatsNode:
        """Return counts as their GraphQL type."""
        node = self.stats()
        node.record = record
        return node


def _object(name: str, base: type, description: str, **fields: Any) -> Any:  # noqa: ANN401 - a type
    made = type(name, (base,), {"__annotations__": {}, **fields})
    return strawberry.type(made, name=name, description=description)


def _ref(key: str) -> EntityRef:
    # a graph key is `tenant|Type|id`; an id may hold bars, tenant and type may not
    _, type_, id_ = key.split("|", 2)
    return EntityRef(type_, id_)


def build_listing_types(
    entities: EntityTypes, memories: MemoryTypes, inputs: InputTypes
) -> ListingTypes:
    """Make the types of a domain for looking around."""
    conflict = _conflict_type(memories)
    paths = {
        name: strawberry.enum_value(name, description=f"`{' '.join(path.walk.split())}`")
        for name, path in entities.domain.paths.items()
    }
    made_paths: Any = enum.Enum("ExpansionPath", paths)  # type: ignore[misc]  # known at run time only
    return ListingTypes(
        filter=_filter_type(inputs),
        memories=connection_type("Memory", memories.memory, "memories, newest first", counted=True),
        entities=connection_type(
            "Entity", entities.interface, "entities, in order of their ids", counted=True
        ),
        conflict=conflict,
        conflicts=connection_type("MemoryConflict", conflict, "conflicts"),
        graph=_graph_type(entities),
        stats=_stats_type(entities),
        path=strawberry.enum(
            made_paths,
            name="ExpansionPath",
            description=f"The expansion paths of the domain `{entities.domain.name}`.",
        ),
    )


def _filter_type(inputs: InputTypes) -> type[FilterData]:
    made = type(
        "MemoryFilterInput",
        (FilterData,),
        {
            "__annotations__": {"entity": inputs.ref | None},
            "entity": strawberry.field(default=None, description="About this entity."),
        },
    )
    return strawberry.input(
        made,
        name="MemoryFilterInput",
        description=(
            "Which memories to list: those that meet all that is given. What is left out asks for"
            ' nothing, e.g. `{kinds: [SEMANTIC], topics: ["warranty"]}`.'
        ),
    )


def _conflict_type(memories: MemoryTypes) -> type[ConflictNode]:
    def attribute(root: ConflictNode) -> str | None:
        return root.record.attribute

    def subject(root: ConflictNode) -> str | None:
        return root.record.subject

    def members(root: ConflictNode) -> Any:  # noqa: ANN401 - typed by the domain
        return [memories.node(memory, root.user_id) for memory in root.record.memories]

    found: type[ConflictNode] = _object(
        "MemoryConflict",
        ConflictNode,
        "Memories that hold now and cannot all be true.",
        attribute=typed_field(
            attribute,
            str | None,
            (
                "The attribute that they give different values of, e.g. `order.status`; null where"
                " one was said to replace another that is more reliable."
            ),
        ),
        subject=typed_field(
            subject, str | None, "Of an attribute that is kept by subject, e.g. the thing liked."
        ),
        memories=typed_field(
            members,
            list_of(memories.memory),
            (
                "The more reliable first, then the newer. Find out which is right, then `correct`"
                " or `retract` the others."
            ),
        ),
    )
    return found


def _graph_type(entities: EntityTypes) -> type[GraphNode]:
    def relation_type(root: EdgeNode) -> enum.Enum:
        return entities.relation_type(root.type_)

    def start(root: EdgeNode) -> EntityRefNode:
        return EntityRefNode.of(root.start)

    def end(root: EdgeNode) -> EntityRefNode:
        return EntityRefNode.of(root.end)

    edge = _object(
        "EntityGraphRelation",
        EdgeNode,
        "A relation between two entities of the graph, in its own direction.",
        type=typed_field(
            relation_type, entities.relation_type, "Its type, as the domain names it."
        ),
        from_=typed_field(start, EntityRefNode, "Where it starts.", "from"),
        to=typed_field(end, EntityRefNode, "Where it ends."),
    )

    def found(root: GraphNode) -> Any:  # noqa: ANN401 - typed by the domain
        return entities.nodes(root.record.entities, root.user_id)

    def relations(root: GraphNode) -> Any:  # noqa: ANN401 - as above
        nodes = []
        for each in root.record.edges:
            node = edge()
            node.type_, node.start, node.end = each.type, _ref(each.from_key), _ref(each.to_key)
            nodes.append(node)
        return nodes

    def truncated(root: GraphNode) -> bool:
        return root.record.truncated

    made: type[GraphNode] = _object(
        "EntityGraph",
        GraphNode,
        "What is connected to an entity, of what the user may see.",
        entities=typed_field(
            found,
            list_of(entities.interface),
            "The entity itself, then what was reached from it, the nearest first.",
        ),
        relations=typed_field(relations, list_of(edge), "The relations that were walked."),
        truncated=typed_field(truncated, bool, "Whether a cap has left something out."),
    )
    return made


def _stats_type(entities: EntityTypes) -> type[StatsNode]:
    def entity_type(root: EntityCountNode) -> enum.Enum:
        return entities.entity_type(root.type_)

    def number(root: EntityCountNode) -> int:
        return root.number

    entity_count = _object(
        "EntityCount",
        EntityCountNode,
        "How many entities there are of a type.",
        type=typed_field(entity_type, entities.entity_type, "Of this type."),
        count=typed_field(number, int, "How many."),
    )

    def memories(root: StatsNode) -> list[MemoryCountNode]:
        return [MemoryCountNode.of(found) for found in root.record.memories]

    def memory_count(root: StatsNode) -> int:
        return sum(found.count for found in root.record.memories)

    def pending(root: StatsNode) -> int:
        return root.record.pending

    def by_type(root: StatsNode) -> Any:  # noqa: ANN401 - typed by the domain
        nodes = []
        for type_, count in root.record.entities.items():
            if type_ in entities.objects:
                node = entity_count()
                node.type_, node.number = type_, count
                nodes.append(node)
        return nodes

    made: type[StatsNode] = _object(
        "MemoryStats",
        StatsNode,
        "What there is; forgotten memories do not count.",
        memories=typed_field(
            memories, list[MemoryCountNode], "Memories by kind, status and tier; no zeros."
        ),
        memory_count=typed_field(memory_count, int, "All of them together."),
        pending_index_rows=typed_field(
            pending, int, "Memories that vector search has yet to catch up with."
        ),
        entities=typed_field(
            by_type,
            list_of(entity_count),
            "Entities by type; of a user only the types that belong to users.",
        ),
    )
    return made
