"""Receipts of writes, and the references and links that they are made of."""

import strawberry

from ecphoria.model import EntityReceipts, EntityRef, Link, Receipt
from ecphoria_graphql.enums import LinkedBy, WriteStatus
from ecphoria_graphql.error_codes import as_given


@strawberry.type(name="EntityRef", description="An entity by type and the caller's own id.")
class EntityRefNode:
    """A reference to an entity."""

    type: str = strawberry.field(description="Its type, as the domain names it.")
    id: strawberry.ID = strawberry.field(description="The caller's own id.")

    @classmethod
    def of(cls, ref: EntityRef) -> "EntityRefNode":
        """Return a reference as its GraphQL type."""
        return cls(type=ref.type, id=strawberry.ID(ref.id))


@strawberry.type(name="MemoryLink", description="That a memory is about an entity.")
class LinkNode:
    """A link."""

    entity: EntityRefNode = strawberry.field(description="The entity.")
    certainty: float = strawberry.field(
        description="How certain that is, 0 to 1; a name that several share is less certain."
    )
    how: LinkedBy = strawberry.field(description="How it was found.")

    @classmethod
    def of(cls, link: Link) -> "LinkNode":
        """Return a link as its GraphQL type."""
        return cls(
            entity=EntityRefNode.of(link.entity),
            certainty=link.certainty,
            how=LinkedBy(link.how.value),
        )


@strawberry.type(name="Receipt", description="What became of one item of a write.")
class ReceiptNode:
    """A receipt."""

    index: int = strawberry.field(description="Position in the batch, from 0.")
    status: WriteStatus = strawberry.field(description="What became of it.")
    id: strawberry.ID | None = strawberry.field(
        description=(
            "Under which it is found from now on; that of what is kept when DUPLICATE. Null when an"
            " item without an id of its own was rejected."
        )
    )
    links: list[LinkNode] = strawberry.field(description="Entities that it was linked to.")
    indexed: bool = strawberry.field(
        description=(
            "Whether vector search finds it already; if not, background work sees to it soon."
        )
    )
    code: str | None = strawberry.field(description="Stable error code when REJECTED.")
    reason: str | None = strawberry.field(description="What is wrong with it when REJECTED.")
    path: list[str] = strawberry.field(
        description="Where in the item the fault is, outermost first, when REJECTED."
    )
    supersedes: list[strawberry.ID] = strawberry.field(
        description="Ids of the memories that it ended; they are history now."
    )
    superseded_by: strawberry.ID | None = strawberry.field(
        description="Id of the memory that holds in its place when HISTORICAL."
    )
    conflicts_with: list[strawberry.ID] = strawberry.field(
        description=(
            "Ids of memories from a more reliable source that say otherwise. Find out which is"
            " right, then `correct` or `retract` the other."
        )
    )
    possible_update_of: list[strawberry.ID] = strawberry.field(
        description=(
            "Ids of memories that say nearly the same with other numbers, names or dates. If it"
            " replaces one, say so with `supersede`; if not, nothing is left to do."
        )
    )
    waiting_for: list[str] = strawberry.field(
        description=(
            "Ids in its text that belong to no known entity. It is linked by itself when"
            " `upsertEntities` brings one; check them for slips."
        )
    )
    notes: list[str] = strawberry.field(
        description="What else is worth knowing, e.g. that a model did not answer."
    )
    facts: list["ReceiptNode"] = strawberry.field(
        description=(
            "One receipt a memory where the item was cut into several; empty otherwise. The item's"
            " own status is then the least good of theirs."
        )
    )

    @classmethod
    def of(cls, receipt: Receipt) -> "ReceiptNode":
        """Return a receipt as its GraphQL type."""
        return cls(
            index=receipt.index,
            status=WriteStatus(receipt.status.value),
            id=None if receipt.id is None else strawberry.ID(receipt.id),
            links=[LinkNode.of(link) for link in receipt.links],
            indexed=receipt.indexed,
            code=receipt.code,
            reason=receipt.reason,
            path=[str(part) for part in as_given(receipt.path)],
            supersedes=_ids(receipt.supersedes),
            superseded_by=(
                None if receipt.superseded_by is None else strawberry.ID(receipt.superseded_by)
            ),
            conflicts_with=_ids(receipt.conflicts_with),
            possible_update_of=_ids(receipt.possible_update_of),
            waiting_for=list(receipt.waiting_for),
            notes=list(receipt.notes),
            facts=[cls.of(fact) for fact in receipt.facts],
        )


def _ids(ids: tuple[str, ...]) -> list[strawberry.ID]:
    return [strawberry.ID(id_) for id_ in ids]


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
