"""That a user was forgotten, and what is left of him."""

from collections.abc import Mapping
from datetime import datetime

import strawberry

from ecphoria.lifecycle.forget_user import ForgetCheck, ForgetReceipt
from ecphoria_graphql.write_faults import WriteFaultNode


@strawberry.type(name="RemovedCount", description="How many of one thing.")
class RemovedCountNode:
    """A count."""

    what: str = strawberry.field(description="Of what, e.g. `memories`, `vectors`, `turns`.")
    count: int = strawberry.field(description="How many.")


def counts_of(counts: Mapping[str, int]) -> list[RemovedCountNode]:
    """Return counts by what they are of, as their GraphQL type, by name."""
    return [RemovedCountNode(what=name, count=number) for name, number in sorted(counts.items())]


@strawberry.type(
    name="UserForgetReceipt",
    description="That a user was forgotten. It is kept without the user's id.",
)
class UserForgetReceiptNode:
    """A receipt."""

    id: strawberry.ID = strawberry.field(description="Of the receipt.")
    at: datetime = strawberry.field(description="From when on nobody sees anything of him.")
    by: strawberry.ID = strawberry.field(description="Id of the key that asked for it.")
    reason: str = strawberry.field(description="Why.")
    removed: list[RemovedCountNode] = strawberry.field(description="What was removed.")
    finished_at: datetime | None = strawberry.field(
        description="When all was removed; null while background work still removes it."
    )
    allowed_again_at: datetime | None = strawberry.field(
        description="When he was allowed again; null = nothing about him is taken."
    )

    @classmethod
    def of(cls, receipt: ForgetReceipt) -> "UserForgetReceiptNode":
        """Return it as its GraphQL type."""
        return cls(
            id=strawberry.ID(receipt.id),
            at=receipt.at,
            by=strawberry.ID(receipt.by),
            reason=receipt.reason,
            removed=counts_of(receipt.counts),
            finished_at=receipt.finished_at,
            allowed_again_at=receipt.allowed_again_at,
        )


@strawberry.type(name="ForgetUserPayload", description="That a user was forgotten, or why not.")
class ForgetUserNode:
    """What became of forgetting a user."""

    receipt: UserForgetReceiptNode | None = strawberry.field(
        description="That he was forgotten; null when he was not."
    )
    error: WriteFaultNode | None = strawberry.field(
        default=None, description="Why he was not forgotten; null when he was."
    )

    @classmethod
    def refused(cls, fault: WriteFaultNode) -> "ForgetUserNode":
        """Return the payload of a call that did nothing."""
        return cls(receipt=None, error=fault)


@strawberry.type(
    name="AllowForgottenPayload", description="Whether a forgotten user may come back now."
)
class AllowForgottenNode:
    """What became of letting a user come back."""

    allowed: bool = strawberry.field(
        description="Whether he was forgotten, and may come back now; false when he was not."
    )
    error: WriteFaultNode | None = strawberry.field(
        default=None, description="Why nothing was done; null when the call was good."
    )

    @classmethod
    def refused(cls, fault: WriteFaultNode) -> "AllowForgottenNode":
        """Return the payload of a call that did nothing."""
        return cls(allowed=False, error=fault)


@strawberry.type(
    name="ForgottenCheck", description="What a search of every store for a user has found."
)
class ForgottenCheckNode:
    """What was found."""

    clean: bool = strawberry.field(description="Whether nothing is left.")
    left: list[RemovedCountNode] = strawberry.field(description="What is left; empty when clean.")
    receipt: UserForgetReceiptNode | None = strawberry.field(
        description="Of his having been forgotten; null when he was not."
    )

    @classmethod
    def of(cls, check: ForgetCheck) -> "ForgottenCheckNode":
        """Return it as its GraphQL type."""
        return cls(
            clean=check.clean,
            left=counts_of(check.left),
            receipt=None if check.receipt is None else UserForgetReceiptNode.of(check.receipt),
        )
