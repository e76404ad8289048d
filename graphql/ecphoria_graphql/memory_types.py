"""Memories, and the receipts of writes."""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import strawberry

from ecphoria.model import EntityReceipts, EntityRef, Memory, Receipt
from ecphoria_graphql.context import Info
from ecphoria_graphql.entity_types import EntityTypes
from ecphoria_graphql.enums import (
    MemoryKind,
    MemoryStatus,
    PrivacyLevel,
    StorageTier,
    TextLanguage,
    WriteStatus,
)
from ecphoria_graphql.error_codes import as_given
from ecphoria_graphql.fields import described, list_of, typed_field


class MemoryNode:
    """A memory in an answer, together with the user it was asked for.

    Attributes:
        record: The memory as stored.
        asked_for: What it is about is looked up for this user.
    """

    record: Memory
    asked_for: str


@strawberry.type
class _MemoryFields(MemoryNode):
    """The fields of a memory that are the same in every domain."""

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

    @described("Id of the memory whose place it took.")
    def supersedes(self) -> strawberry.ID | None:
        return None if self.record.supersedes is None else strawberry.ID(self.record.supersedes)

    @described("The session it comes from.")
    def session_id(self) -> strawberry.ID | None:
        return None if self.record.session_id is None else strawberry.ID(self.record.session_id)

    @described("The agent that wrote it.")
    def agent_id(self) -> strawberry.ID | None:
        return None if self.record.agent_id is None else strawberry.ID(self.record.agent_id)


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

    shown = typed_field(
        about,
        list_of(entities.interface),
        "The entities it is about; those that the user may not see are left out.",
    )
    description = "Something remembered, with its times, its source and what it is about."
    made = type("Memory", (_MemoryFields,), {"__annotations__": {}, "about": shown})
    return MemoryTypes(strawberry.type(made, name="Memory", description=description))


# --- receipts ------------------------------------------------------------------------------


@strawberry.type(name="EntityRef", description="An entity by type and the caller's own id.")
class EntityRefNode:
    """A reference to an entity."""

    type: str = strawberry.field(description="Its type, as the domain names it.")
    id: strawberry.ID = strawberry.field(description="The caller's own id.")

    @classmethod
    def of(cls, ref: EntityRef) -> "EntityRefNode":
        """Return a reference as its GraphQL type."""
        return cls(type=ref.type, id=strawberry.ID(ref.id))


@strawberry.type(name="Receipt", description="What became of one item of a write.")
class ReceiptNode:
    """A receipt."""

    index: int = strawberry.field(description="Position in the batch, from 0.")
    status: WriteStatus = strawberry.field(description="What became of it.")
    id: strawberry.ID | None = strawberry.field(description="Its id, unless it was rejected.")
    links: list[EntityRefNode] = strawberry.field(
        description="Entities that the memory was linked to."
    )
    indexed: bool = strawberry.field(
        description=(
            "Whether vector search finds it already; if not, the reconciler sees to it soon."
        )
    )
    code: str | None = strawberry.field(description="Stable error code when REJECTED.")
    reason: str | None = strawberry.field(description="What to do about it when REJECTED.")
    path: list[str] = strawberry.field(
        description="Where in the item the fault is, outermost first, when REJECTED."
    )

    @classmethod
    def of(cls, receipt: Receipt) -> "ReceiptNode":
        """Return a receipt as its GraphQL type."""
        return cls(
            index=receipt.index,
            status=WriteStatus(receipt.status.value),
            id=None if receipt.id is None else strawberry.ID(receipt.id),
            links=[EntityRefNode.of(link) for link in receipt.links],
            indexed=receipt.indexed,
            code=receipt.code,
            reason=receipt.reason,
            path=[str(part) for part in as_given(receipt.path)],
        )


@strawberry.type(name="UpsertReceipts", description="What became of an entity upsert.")
class UpsertReceiptsNode:
    """The receipts of an entity upsert."""

    entities: list[ReceiptNode] = strawberry.field(description="One an entity, in order.")
    relations_created: int = strawberry.field(description="How many relations were new.")
    relations_unchanged: int = strawberry.field(description="How many were there already.")

    @classmethod
    def of(cls, receipts: EntityReceipts) -> "UpsertReceiptsNode":
        """Return the receipts as their GraphQL type."""
        return cls(
            entities=[ReceiptNode.of(receipt) for receipt in receipts.entities],
            relations_created=receipts.relations_created,
            relations_unchanged=receipts.relations_unchanged,
        )
