"""Typed entities, generated from the domain: an interface and one object type an entity type.

Nothing here is kept between two schemas: every call of `build_entity_types` makes its own types.
"""

import asyncio
import enum
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from itertools import chain
from typing import Annotated, Any

import strawberry
from strawberry.schema_directive import Location
from strawberry.types.field import StrawberryField
from strawberry.utils.str_converters import to_camel_case

from ecphoria.errors import DomainFileInvalid, InvalidInput
from ecphoria.governance.access import MASK
from ecphoria.model import Confidence, Entity, EntityRef
from ecphoria.reading.paging import DEFAULT_FIRST
from ecphoria_graphql.confidence_types import ConfidenceNode
from ecphoria_graphql.connection_types import (
    After,
    ConnectionNode,
    First,
    Listed,
    connected,
    connection_type,
)
from ecphoria_graphql.context import Info
from ecphoria_graphql.enums import PrivacyLevel
from ecphoria_graphql.error_codes import ENTITY_TYPE_ENUM, RELATION_TYPE_ENUM
from ecphoria_graphql.fields import list_of, typed_field
from ecphoria_graphql.loaders import PageFrom, RelatedFrom
from ecphoria_graphql.node_ids import NodeRef
from ecphoria_graphql.node_types import Node
from ecphoria_graphql.scalars import Long
from ecphoria_schema.domain import Domain, EntityType, Property, Relation

DEFAULT_LIMIT = 20
MAX_LIMIT = 200

INTERFACE = "Entity"
# What the names of connections and their types end with.
CONNECTION, EDGE = "Connection", "Edge"

# Names of the API's own types; the domain's may not be among them.
OWN_TYPES = frozenset(
    {
        "AccessRole", "Action", "AttributeHistory", "AuditConnection", "AuditEdge", "AuditEntry",
        "AuditFilter", "AuditOutcome", "Because", "Boolean", "Caller", "ChangeKind",
        "Confidence", "ConfidencePart", "ConsideredMemory", "Date", "DateTime", "Dropped", "Entity",
        "EntityConnection", "EntityCount", "EntityEdge", "EntityGraph", "EntityGraphRelation",
        "EntityInput", "EntityRef", "EntityRefInput", "EntityType", "ExpansionPath", "FactInput",
        "FeatureShare", "Float", "ForgetReport", "ForgetRuleInput", "Forgettable", "ForgottenCheck",
        "ID", "Int",
        "JSON", "Language", "Lineage", "LineageMethod", "LinkMethod", "Long", "Memory",
        "MemoryChange", "MemoryConflict", "MemoryConflictConnection", "MemoryConflictEdge",
        "MemoryConnection", "MemoryCount", "MemoryDetail", "MemoryEdge", "MemoryFilterInput",
        "MemoryInput", "MemoryKind", "MemoryLink", "MemorySource", "MemoryStats", "MemoryStatus",
        "Mutation", "Node", "PageInfo", "Privacy", "Query",
        "Recall", "RecallInput", "RecalledEntity", "RecalledMemory", "RecalledRelation", "Receipt",
        "ReceiptStatus", "RelationInput", "RelationType", "RememberBatchInput", "SessionContext",
        "SessionFlush", "SessionTurn", "Speaker", "String", "Subscription", "Tier", "Timeliness",
        "TimelinessLevel", "TraceStep", "UpsertEntitiesInput", "UpsertReceipts", "Urgency",
        "RemovedCount", "UserForgetReceipt",
        "CompleteTaskPayload", "CompletionTask", "CompletionTaskConnection", "CompletionTaskEdge",
        "CompletionTaskStatus", "Feedback", "FeedbackBefore", "FeedbackConnection", "FeedbackEdge",
        "FeedbackFilter", "FeedbackInput", "FeedbackPayload", "FeedbackStatus", "FeedbackVerdict",
        "AllowForgottenPayload", "ConflictFault", "ErrorCode", "ForgetUserPayload",
        "InvalidInputFault", "NotFoundFault", "RefusedFault", "RememberBatchPayload",
        "RememberTurnPayload", "WriteFault",
    }
)  # fmt: skip

_TYPES: dict[str, object] = {
    "string": str | None,
    "integer": Long | None,
    "float": float | None,
    "boolean": bool | None,
    "datetime": datetime | None,
    "date": date | None,
    "string_list": list[str] | None,
}


class EntityNode:
    """An entity in an answer, together with the user it was asked for.

    Attributes:
        record: The entity as stored.
        user_id: Whatever is reached from here is looked up for this user.
        trust: How far the recall that brought it trusts it.
    """

    record: Entity
    user_id: str
    trust: Confidence | None

    def node_ref(self) -> NodeRef:
        """Return what its global id stands for."""
        return NodeRef(self.record.type, self.user_id, self.record.id)


@strawberry.schema_directive(
    locations=[Location.FIELD_DEFINITION],
    name="privacy",
    description=(
        "The property is not public: a role that may not read this level gets a mask in the place"
        " of a string, and null in the place of anything else."
    ),
)
class PrivacyDirective:
    """Says in the schema who may read a property."""

    level: PrivacyLevel


@dataclass(frozen=True, slots=True)
class EntityTypes:
    """The types made from one domain.

    Attributes:
        interface: ``Entity``.
        objects: Entity type -> its object type.
        entity_type: Enum of the entity types.
        relation_type: Enum of the relation types.
        fields: Entity type -> GraphQL field -> property.
    """

    domain: Domain
    interface: type[EntityNode]
    objects: Mapping[str, type[EntityNode]]
    entity_type: type[enum.Enum]
    relation_type: type[enum.Enum]
    fields: Mapping[str, Mapping[str, str]]

    def node(
        self, record: Entity, user_id: str, trust: Confidence | None = None
    ) -> EntityNode | None:
        """Return an entity as its object type.

        None when the domain no longer has its type: the graph may be older than the domain.
        """
        kind = self.objects.get(record.type)
        return None if kind is None else _filled(kind, record, user_id, trust)

    def nodes(self, records: Iterable[Entity], user_id: str) -> list[EntityNode]:
        """Return entities as their object types."""
        found = (self.node(record, user_id) for record in records)
        return [node for node in found if node is not None]


def _filled(
    kind: type[EntityNode], record: Entity, user_id: str, trust: Confidence | None = None
) -> EntityNode:
    node = kind()
    node.record, node.user_id, node.trust = record, user_id, trust
    return node


# --- fields that every entity has ----------------------------------------------------------


def _id(root: EntityNode) -> strawberry.ID:
    return strawberry.ID(root.record.id)


def _name(root: EntityNode) -> str:
    return root.record.name


def _observed_at(root: EntityNode) -> datetime | None:
    return root.record.observed_at


def _confidence(root: EntityNode) -> ConfidenceNode | None:
    return None if root.trust is None else ConfidenceNode.of(root.trust)


def _common(entity_type: type[enum.Enum]) -> dict[str, StrawberryField]:
    def type_(root: EntityNode) -> enum.Enum:
        return entity_type(root.record.type)

    return {
        "common_id": typed_field(
            _id, strawberry.ID, "The caller's own id; unique in its type.", "id"
        ),
        "common_type": typed_field(type_, entity_type, "Its type, as the domain names it.", "type"),
        "common_name": typed_field(_name, str, "A name for people to read.", "name"),
        "common_observed_at": typed_field(
            _observed_at, datetime | None, "When its newest property was observed.", "observedAt"
        ),
        "common_confidence": typed_field(
            _confidence,
            ConfidenceNode | None,
            "How far to trust it in the recall that brought it; null elsewhere.",
            "confidence",
        ),
    }


# --- properties ----------------------------------------------------------------------------


def _shown(value: object, prop: Property, *, readable: bool) -> object:
    if value is None:
        return None
    if not readable:
        return MASK if prop.type == "string" else None
    if prop.type == "date":
        if isinstance(value, str):
            return date.fromisoformat(value)
        return value.date() if isinstance(value, datetime) else value
    return list(value) if isinstance(value, tuple) else value


def _property_field(type_: EntityType, name: str, prop: Property) -> StrawberryField:
    def resolve(root: EntityNode, info: Info) -> Any:  # noqa: ANN401 - as the domain types it
        readable = prop.privacy in info.context.readable
        return _shown(root.record.props.get(name), prop, readable=readable)

    about = f"`{name}` of the {type_.title.en} ({type_.title.zh})."
    if prop.values:
        about += f" One of: {', '.join(prop.values)}."
    if prop.privacy != "public":
        hidden = f"`{MASK}`" if prop.type == "string" else "null"
        about += f" {prop.privacy.capitalize()}: {hidden} for a role that may not read it."
    directives: tuple[PrivacyDirective, ...] = ()
    if prop.privacy != "public":
        directives = (PrivacyDirective(level=PrivacyLevel(prop.privacy)),)
    return typed_field(resolve, _TYPES[prop.type], about, to_camel_case(name), directives)


# --- relations -----------------------------------------------------------------------------

Limit = Annotated[
    int,
    strawberry.argument(description=f"How many at most, 1 to {MAX_LIMIT}."),
]


def _checked_limit(limit: int) -> int:
    if not 1 <= limit <= MAX_LIMIT:
        msg = f"limit must be 1 to {MAX_LIMIT}, not {limit}"
        raise InvalidInput(msg, path=("limit",))
    return limit


@dataclass(frozen=True, slots=True)
class _Frame:
    """What the fields of one schema refer to.

    Attributes:
        connections: Entity type -> its connection type.
    """

    domain: Domain
    interface: type[EntityNode]
    objects: Mapping[str, type[EntityNode]]
    connections: Mapping[str, type[ConnectionNode]]


class _Follow:
    """Follows one relation in one direction; several end types are asked one by one."""

    def __init__(self, frame: _Frame, relation: Relation, *, forward: bool) -> None:
        self.objects = frame.objects
        self.relation = relation
        self.others = relation.to if forward else (relation.from_,)
        self.forward = forward

    async def __call__(self, root: EntityNode, info: Info, limit: int) -> list[EntityNode]:
        ref = EntityRef(root.record.type, root.record.id)
        # asked for all at once, so that the loaders of all end types fill in the same turn
        found = await asyncio.gather(
            *(
                info.context.loaders.related(
                    RelatedFrom(
                        root.user_id, ref.type, self.relation.type, other, self.forward, limit
                    ),
                    ref,
                )
                for other in self.others
            )
        )
        nodes = [
            _filled(self.objects[other], record, root.user_id)
            for other, records in zip(self.others, found, strict=True)
            for record in records
        ]
        return nodes[:limit]


class _FollowPage:
    """Reads pages of one relation in one direction."""

    def __init__(
        self, frame: _Frame, relation: Relation, kind: type[ConnectionNode], *, forward: bool
    ) -> None:
        self.objects = frame.objects
        self.relation = relation
        self.others = relation.to if forward else (relation.from_,)
        self.kind = kind
        self.forward = forward

    async def __call__(
        self, root: EntityNode, info: Info, first: int, after: str | None
    ) -> ConnectionNode:
        ref = EntityRef(root.record.type, root.record.id)
        asked = PageFrom(
            root.user_id, ref.type, self.relation.type, self.others, self.forward, first, after
        )
        page = await info.context.loaders.page(asked, ref)
        nodes = [_filled(self.objects[each.type], each, root.user_id) for each in page.items]
        return connected(self.kind, Listed(page, nodes, after))


def _relation_fields(
    frame: _Frame, type_name: str, relation: Relation, *, forward: bool
) -> dict[str, StrawberryField]:
    """Return the field of a relation, and the connection where it may lead to many."""
    fields = {"": _relation_field(frame, type_name, relation, forward=forward)}
    if relation.start_has_one_end if forward else relation.end_has_one_start:
        return fields
    others = relation.to if forward else (relation.from_,)
    name = to_camel_case(relation.forward if forward else relation.backward)
    if len(others) == 1:
        kind = frame.connections[others[0]]
    else:
        kind = connection_type(
            f"{type_name}{name[0].upper()}{name[1:]}", frame.interface, f"`{name}` of {type_name}"
        )
    follow = _FollowPage(frame, relation, kind, forward=forward)

    async def page(
        root: EntityNode, info: Info, first: First = DEFAULT_FIRST, after: After = None
    ) -> Any:  # noqa: ANN401 - typed by the domain
        return await follow(root, info, first, after)

    about = f"`{name}` page by page, in order of type and id; none is left out."
    return fields | {"_connection": typed_field(page, kind, about, f"{name}{CONNECTION}")}


def _relation_field(
    frame: _Frame, type_name: str, relation: Relation, *, forward: bool
) -> StrawberryField:
    follow = _Follow(frame, relation, forward=forward)
    others = follow.others
    single = relation.start_has_one_end if forward else relation.end_has_one_start

    async def one(root: EntityNode, info: Info) -> Any:  # noqa: ANN401 - typed by the domain
        return next(iter(await follow(root, info, 1)), None)

    async def many(root: EntityNode, info: Info, limit: Limit = DEFAULT_LIMIT) -> Any:  # noqa: ANN401 - typed by the domain
        return await follow(root, info, _checked_limit(limit))

    end: Any = frame.objects[others[0]] if len(others) == 1 else frame.interface
    name = to_camel_case(relation.forward if forward else relation.backward)
    titles = " or ".join(frame.domain.entities[other].title.en for other in others)
    arrow = (
        f"{type_name}-{relation.type}->{'|'.join(relation.to)}"
        if forward
        else f"{relation.from_}-{relation.type}->{type_name}"
    )
    if single:
        return typed_field(one, end | None, f"The {titles} by `{arrow}`, if any.", name)
    return typed_field(many, list_of(end), f"Each {titles} by `{arrow}`.", name)


# --- the whole -----------------------------------------------------------------------------


def _made_enum(name: str, values: Mapping[str, str], description: str) -> type[enum.Enum]:
    members = {key: strawberry.enum_value(key, description=about) for key, about in values.items()}
    made: type[enum.Enum] = enum.Enum(name, members)  # type: ignore[misc]  # known at run time only
    return strawberry.enum(made, name=name, description=description)


def _from(domain: Domain, name: str) -> list[Relation]:
    return [relation for relation in domain.relations if relation.from_ == name]


def _to(domain: Domain, name: str) -> list[Relation]:
    return [relation for relation in domain.relations if name in relation.to]


def connection_types(domain: Domain) -> list[str]:
    """Return the names of the connection types that a domain brings, and of their edges."""
    of_relations = [
        f"{relation.from_}{name[0].upper()}{name[1:]}"
        for relation in domain.relations
        if len(relation.to) > 1 and not relation.start_has_one_end
        for name in (to_camel_case(relation.forward),)
    ]
    return [
        f"{name}{ending}"
        for name in (*domain.entities, *of_relations)
        for ending in (CONNECTION, EDGE)
    ]


def _check_names(domain: Domain) -> None:
    made = Counter(connection_types(domain))
    faults = [
        f"entity type {name!r} is a type of the GraphQL API itself"
        for name in domain.entities
        if name in OWN_TYPES or name in made
    ]
    faults += [
        f"two relations would have the GraphQL type {name!r}"
        for name, count in made.items()
        if count > 1 or name in OWN_TYPES
    ]
    for name, type_ in domain.entities.items():
        relations = [
            *((item.forward, item.start_has_one_end) for item in _from(domain, name)),
            *((item.backward, item.end_has_one_start) for item in _to(domain, name)),
        ]
        taken = Counter(
            chain(
                map(
                    to_camel_case,
                    (
                        *("id", "node_id", "type", "name", "observed_at", "confidence"),
                        *(prop for prop in type_.properties if prop != "name"),
                        *(field for field, _ in relations),
                    ),
                ),
                (
                    f"{to_camel_case(field)}{CONNECTION}"
                    for field, single in relations
                    if not single
                ),
            )
        )
        faults.extend(
            f"{name} would have the GraphQL field {field!r} twice"
            for field, count in taken.items()
            if count > 1
        )
    if faults:
        raise DomainFileInvalid("; ".join(faults))


def build_entity_types(domain: Domain) -> EntityTypes:
    """Make the types of a domain's entities.

    Raises:
        DomainFileInvalid: When two of its names come out as the same GraphQL name.
    """
    _check_names(domain)
    entity_type = _made_enum(
        ENTITY_TYPE_ENUM,
        {name: f"{type_.title.en} ({type_.title.zh})" for name, type_ in domain.entities.items()},
        f"The entity types of the domain `{domain.name}`.",
    )
    relations: dict[str, list[str]] = {}
    for relation in domain.relations:
        arrow = f"{relation.from_}-{relation.type}->{'|'.join(relation.to)}"
        relations.setdefault(relation.type, []).append(arrow)
    relation_type = _made_enum(
        RELATION_TYPE_ENUM,
        {name: ", ".join(arrows) for name, arrows in relations.items()} or {"NONE": "No relation."},
        f"The relation types of the domain `{domain.name}`.",
    )
    common = _common(entity_type)
    interface = strawberry.interface(
        type(INTERFACE, (EntityNode, Node), {"__annotations__": {}, **common}),
        name=INTERFACE,
        description="A thing that memories are about; what it is, its object type says.",
    )
    # first the bare classes, then their fields: relations may point anywhere, also back
    objects: dict[str, type[EntityNode]] = {
        name: type(name, (interface,), {"__annotations__": {}}) for name in domain.entities
    }
    connections = {
        name: connection_type(name, objects[name], f"the entities of the type {name}")
        for name in domain.entities
    }
    frame = _Frame(domain, interface, objects, connections)
    for name, type_ in domain.entities.items():
        for attribute, field in _fields(frame, name).items():
            setattr(objects[name], attribute, field)
        strawberry.type(
            objects[name], name=name, description=f"{type_.title.en} ({type_.title.zh})"
        )
    return EntityTypes(
        domain=domain,
        interface=interface,
        objects=objects,
        entity_type=entity_type,
        relation_type=relation_type,
        fields={
            name: {to_camel_case(prop): prop for prop in type_.properties}
            for name, type_ in domain.entities.items()
        },
    )


def _fields(frame: _Frame, name: str) -> dict[str, StrawberryField]:
    type_ = frame.domain.entities[name]
    fields = {
        f"property_{prop}": _property_field(type_, prop, declared)
        for prop, declared in type_.properties.items()
        if prop != "name"  # the caption, which every entity has
    }
    for relation in frame.domain.relations:
        if relation.from_ == name:
            made = _relation_fields(frame, name, relation, forward=True)
            fields |= {f"forward_{relation.forward}{end}": field for end, field in made.items()}
        if name in relation.to:
            made = _relation_fields(frame, name, relation, forward=False)
            fields |= {f"backward_{relation.backward}{end}": field for end, field in made.items()}
    return fields
