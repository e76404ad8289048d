"""Receipts of writes, and the references and links that they are made of."""

import strawberry

from ecphoria.model import EntityReceipts, EntityRef, Link, Receipt, ReceiptStatus
from ecphoria_graphql.enums import LinkedBy, WriteStatus
from ecphoria_graphql.write_faults import WriteFaultNode, fault_of_item


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
    error: WriteFaultNode | None = strawberry.field(
        description="What is wrong with it when REJECTED; null when it is kept."
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
    def of(cls, receipt: Receipt, *place: str | int) -> "ReceiptNode":
        """Return a receipt as its GraphQL type.

        Args:
            receipt: What became of an item.
            place: Where in the arguments the item is.
        """
        return cls(
            index=receipt.index,
            status=WriteStatus(receipt.status.value),
            id=None if receipt.id is None else strawberry.ID(receipt.id),
            links=[LinkNode.of(link) for link in receipt.links],
            indexed=receipt.indexed,
            error=fault_of_item(receipt, place),
            supersedes=_ids(receipt.supersedes),
            superseded_by=(
                None if receipt.superseded_by is None else strawberry.ID(receipt.superseded_by)
            ),
            conflicts_with=_ids(receipt.conflicts_with),
            possible_update_of=_ids(receipt.possible_update_of),
            waiting_for=list(receipt.waiting_for),
            notes=list(receipt.notes),
            facts=[cls.of(fact, *place) for fact in receipt.facts],
        )

    @classmethod
    def refused(cls, fault: WriteFaultNode) -> "ReceiptNode":
        """Return the receipt of a write that did nothing."""
        made = cls.of(Receipt(0, ReceiptStatus.REJECTED))
        made.error = fault
        return made


def _ids(ids: tuple[str, ...]) -> list[strawberry.ID]:
    return [strawberry.ID(id_) for id_ in ids]


@strawberry.type(name="RememberBatchPayload", description="What became of several memories.")
class BatchReceiptsNode:
    """The receipts of a batch."""

    receipts: list[ReceiptNode] = strawberry.field(
        description="One an item, in order; empty when the batch itself is no good."
    )
    error: WriteFaultNode | None = strawberry.field(
        description="What is wrong with the batch; null when each item has its receipt."
    )

    @classmethod
    def refused(cls, fault: WriteFaultNode) -> "BatchReceiptsNode":
        """Return the payload of a batch that did nothing."""
        return cls(receipts=[], error=fault)


@strawberry.type(name="UpsertReceipts", description="What became of an entity upsert.")
class UpsertReceiptsNode:
    """The receipts of an entity upsert."""

    entities: list[ReceiptNode] = strawberry.field(description="One an entity, in order.")
    relations_created: int = strawberry.field(description="How many relations were new.")
    relations_unchanged: int = strawberry.field(description="How many were there already.")
    error: WriteFaultNode | None = strawberry.field(
        description="The first fault; then nothing was written. Null when all was."
    )

    @classmethod
    def of(cls, receipts: EntityReceipts) -> "UpsertReceiptsNode":
        """Return the receipts as their GraphQL type."""
        return cls(
            entities=[ReceiptNode.of(receipt) for receipt in receipts.entities],
            relations_created=receipts.relations_created,
            relations_unchanged=receipts.relations_unchanged,
            error=None,
        )

    @classmethod
    def refused(cls, fault: WriteFaultNode) -> "UpsertReceiptsNode":
        """Return the receipts of an upsert that did nothing."""
        return cls(entities=[], relations_created=0, relations_unchanged=0, error=fault)
