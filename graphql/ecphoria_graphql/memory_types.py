"""Memories, what they are about, and how they follow on one another."""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import strawberry
from strawberry.types.field import StrawberryField

from ecphoria.decay import faded
from ecphoria.model import EntityRef, Memory
from ecphoria.stores.ports import Lineage
from ecphoria_graphql.context import Info
from ecphoria_graphql.entity_types import EntityTypes
from ecphoria_graphql.enums import (
    MemoryKind,
    MemoryStatus,
    PrivacyLevel,
    RelatedBy,
    StorageTier,
    TextLanguage,
    UrgencyLevel,
)
from ecphoria_graphql.fields import described, list_of, typed_field
from ecphoria_graphql.node_ids import MEMORY_TYPE, NodeRef
from ecphoria_graphql.node_types import Node
from ecphoria_graphql.receipt_types import LinkNode


@strawberry.type(name="MemoryDetail", description="Something that a rule found in a text.")
class DetailNode:
    """A detail."""

    name: str = strawberry.field(description="What it is, e.g. `tracking_number`.")
    value: str = strawberry.field(description="As it stands in the text.")


class MemoryNode:
    """A memory in an answer, together with the user it was asked for.

    Attributes:
        record: The memory as stored.
        asked_for: What it is about is looked up for this user.
    """

    record: Memory
    asked_for: str


@strawberry.type
class _MemoryFields(MemoryNode, Node):
    """The fields of a memory that are the same in every domain."""

    def node_ref(self) -> NodeRef:
        """Return what its global id stands for."""
        return NodeRef(MEMORY_TYPE, self.asked_for, self.record.id)

    @described("The id the caller gave, or the one ecphoria made.")
    def id(self) -> strawberry.ID:
        return strawberry.ID(self.record.id)

    @described("What is remembered.")
    def text(self) -> str:
        return self.record.text

    @described("What kind of memory it is.")
    def kind(self) -> MemoryKind:
        return MemoryKind(self.record.kind)

    @described("Its main topic, as the domain names it.")
    def topic(self) -> str | None:
        return self.record.topic

    @described("Topics found in the text, the strongest first.")
    def tags(self) -> list[str]:
        return list(self.record.tags)

    @described("Whose it is; null = shared by every user of the tenant.")
    def user_id(self) -> strawberry.ID | None:
        return None if self.record.user_id is None else strawberry.ID(self.record.user_id)

    @described("Its source, as the domain names it, e.g. `crm`.")
    def source(self) -> str:
        return self.record.source_id

    @described("The language of the text.")
    def lang(self) -> TextLanguage:
        return TextLanguage(self.record.lang)

    @described("0 to 1.")
    def importance(self) -> float:
        return self.record.importance

    @described("Who may read it.")
    def privacy(self) -> PrivacyLevel:
        return PrivacyLevel(self.record.privacy)

    @described("Where it stands in its life.")
    def status(self) -> MemoryStatus:
        return MemoryStatus(self.record.status.value)

    @described("Where it is kept.")
    def tier(self) -> StorageTier:
        return StorageTier(self.record.tier)

    @described("When it happened.")
    def occurred_at(self) -> datetime:
        return self.record.occurred_at

    @described("From when on it is true.")
    def valid_from(self) -> datetime:
        return self.record.valid_from

    @described("Until when it is true; null = open.")
    def valid_until(self) -> datetime | None:
        return self.record.valid_until

    @described("When it is dropped; null = never.")
    def expires_at(self) -> datetime | None:
        return self.record.expires_at

    @described("When ecphoria learned it.")
    def recorded_at(self) -> datetime:
        return self.record.recorded_at

    @described("When ecphoria learned that it no longer holds.")
    def invalidated_at(self) -> datetime | None:
        return self.record.invalidated_at

    @described("The session it comes from.")
    def session_id(self) -> strawberry.ID | None:
        return None if self.record.session_id is None else strawberry.ID(self.record.session_id)

    @described("The agent that wrote it.")
    def agent_id(self) -> strawberry.ID | None:
        return None if self.record.agent_id is None else strawberry.ID(self.record.agent_id)

    @described("The domain's fact rule that it was cut out by; null when no rule was needed.")
    def fact_type(self) -> str | None:
        return self.record.fact_type

    @described("What was wanted, as the domain names it, e.g. `ask_status`.")
    def intent(self) -> str | None:
        return self.record.intent

    @described("How urgent it is.")
    def urgency(self) -> UrgencyLevel:
        return UrgencyLevel(self.record.urgency)

    @described("The words of the source that it rests on.")
    def evidence(self) -> str | None:
        return self.record.evidence

    @described("What a rule found in the text, by name.")
    def details(self) -> list[DetailNode]:
        return [DetailNode(name=name, value=value) for name, value in self.record.details.items()]

    @described("The attribute that it gives the `value` of, e.g. `order.status`.")
    def attribute(self) -> str | None:
        return self.record.attribute

    @described("The value of the attribute.")
    def value(self) -> str | None:
        return self.record.value

    @described("What an attribute that is kept by subject is about, e.g. the thing liked.")
    def subject(self) -> str | None:
        return self.record.subject

    @described("How fresh it is now, 0 to 1: it fades with time and grows with use.")
    def freshness(self, info: Info) -> float:
        engine, record = info.context.engine, self.record
        decay = engine.domain.kinds[record.kind].decay
        if decay is None or record.freshness_at is None:
            return record.freshness
        return faded(record.freshness, record.freshness_at, engine.clock.now(), decay)

    @described("How often it was used in an answer.")
    def access_count(self) -> int:
        return self.record.access_count

    @described("When it was last used in an answer; null = never.")
    def last_accessed_at(self) -> datetime | None:
        return self.record.last_accessed_at

    @described("What feedback takes from how far its source is believed for it, 0 to 1.")
    def doubt(self) -> float:
        return self.record.doubt

    @described("How often it was said again, or called helpful.")
    def reinforced(self) -> int:
        return self.record.reinforced


class LineageNode:
    """A relation to another memory, together with the user it was asked for."""

    record: Lineage
    asked_for: str


@strawberry.type
class _LineageFields(LineageNode):
    """The fields of a lineage that are the same in every domain."""

    @described("Id of the other memory.")
    def memory_id(self) -> strawberry.ID:
        return strawberry.ID(self.record.other)

    @described("What put the two into relation; null where nothing but their likeness did.")
    def how(self) -> RelatedBy | None:
        return None if self.record.how is None else RelatedBy(self.record.how)

    @described("Why, as given by who did it by hand.")
    def reason(self) -> str | None:
        return self.record.reason

    @described("Who did it by hand: the id of a key.")
    def by(self) -> str | None:
        return self.record.by

    @described("When it was done.")
    def at(self) -> datetime | None:
        return self.record.at


@dataclass(frozen=True, slots=True)
class MemoryTypes:
    """The memory type of one domain."""

    memory: type[MemoryNode]

    def node(self, record: Memory, user_id: str) -> MemoryNode:
        """Return a memory as its GraphQL type."""
        node = self.memory()
        node.record, node.asked_for = record, user_id
        return node


def _ref(key: str) -> EntityRef:
    # a graph key is `tenant|Type|id`; an id may hold bars, tenant and type may not
    _, type_, id_ = key.split("|", 2)
    return EntityRef(type_, id_)


def build_memory_types(entities: EntityTypes) -> MemoryTypes:
    """Make the memory type of a domain: it links to the domain's entities."""
    # first the bare classes, then their fields: the two point at each other
    memory: type[MemoryNode] = type("Memory", (_MemoryFields,), {"__annotations__": {}})
    lineage: type[LineageNode] = type("Lineage", (_LineageFields,), {"__annotations__": {}})
    types = MemoryTypes(memory)

    async def about(root: MemoryNode, info: Info) -> Any:  # noqa: ANN401 - typed by the domain
        refs = [_ref(key) for key in root.record.about]
        found = await asyncio.gather(
            *(
                info.context.loaders.entity(root.asked_for, ref)
                for ref in refs
                if ref.type in entities.objects
            )
        )
        return entities.nodes((item for item in found if item is not None), root.asked_for)

    async def links(root: MemoryNode, info: Info) -> list[LinkNode]:
        found = await info.context.loaders.links(root.asked_for, root.record.id)
        return [LinkNode.of(link) for link in found]

    async def other(root: LineageNode, info: Info) -> Any:  # noqa: ANN401 - typed by the domain
        found = await info.context.loaders.memory(root.asked_for, root.record.other)
        return None if found is None else types.node(found, root.asked_for)

    def related(type_: str, *, outgoing: bool | None, description: str) -> StrawberryField:
        async def resolve(root: MemoryNode, info: Info) -> Any:  # noqa: ANN401 - typed by the domain
            nodes = []
            for record in await info.context.loaders.lineage(root.asked_for, root.record.id):
                if record.type == type_ and outgoing in {None, record.outgoing}:
                    node = lineage()
                    node.record, node.asked_for = record, root.asked_for
                    nodes.append(node)
            return nodes

        return typed_field(resolve, list_of(lineage), description)

    for name, field in {
        "about": typed_field(
            about,
            list_of(entities.interface),
            "The entities it is about; those that the user may not see are left out.",
        ),
        "links": typed_field(
            links, list[LinkNode], "The same by reference: how each was found, and how surely."
        ),
        "supersedes": related(
            "SUPERSEDES", outgoing=True, description="The memories whose place it took."
        ),
        "superseded_by": related(
            "SUPERSEDES", outgoing=False, description="The memories that took its place."
        ),
        "conflicts_with": related(
            "CONFLICTS_WITH",
            outgoing=None,
            description="Memories that say otherwise about the same, from another source.",
        ),
        "possible_update_of": related(
            "POSSIBLE_UPDATE_OF",
            outgoing=True,
            description="Earlier memories that say nearly the same with other values.",
        ),
        "possibly_updated_by": related(
            "POSSIBLE_UPDATE_OF",
            outgoing=False,
            description="Later memories that say nearly the same with other values.",
        ),
    }.items():
        setattr(memory, name, field)
    lineage_memory = typed_field(
        other, memory | None, "The other memory; null when the user may not see it."
    )
    setattr(lineage, "memory", lineage_memory)  # noqa: B010 - the bare class does not declare it
    strawberry.type(
        memory,
        name="Memory",
        description="Something remembered, with its times, its source and what it is about.",
    )
    strawberry.type(
        lineage,
        name="Lineage",
        description="How two memories stand to each other, seen from one of them.",
    )
    return types
