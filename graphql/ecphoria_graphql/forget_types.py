"""What was forgotten, or would be."""

from typing import Annotated

import strawberry

from ecphoria.governance.access import MASK
from ecphoria.lifecycle.forget import ForgetReport, Forgettable
from ecphoria_graphql.context import Info
from ecphoria_graphql.enums import MemoryKind
from ecphoria_graphql.fields import described
from ecphoria_graphql.write_faults import WriteFaultNode

DEFAULT_LIMIT = 100
MAX_LIMIT = 1_000

Limit = Annotated[
    int,
    strawberry.argument(description=f"How many at most; never more than {MAX_LIMIT}."),
]


@strawberry.type(name="Forgettable", description="A memory that is to go, and why.")
class ForgettableNode:
    """A memory that is to go."""

    id: strawberry.ID = strawberry.field(description="Its id.")
    user_id: strawberry.ID | None = strawberry.field(
        description="Whose it is; null = shared by every user of the tenant."
    )
    kind: MemoryKind = strawberry.field(description="What kind of memory it is.")
    text: str = strawberry.field(
        description=f"What is remembered; `{MASK}` for a role that may not read memories."
    )
    reason: str = strawberry.field(description="Why it goes, e.g. `412 days old; importance 0.20`.")

    @classmethod
    def of(cls, item: Forgettable, *, readable: bool) -> "ForgettableNode":
        """Return it as its GraphQL type."""
        return cls(
            id=strawberry.ID(item.id),
            user_id=None if item.user_id is None else strawberry.ID(item.user_id),
            kind=MemoryKind(item.kind),
            text=item.text if readable else MASK,
            reason=item.reason,
        )


@strawberry.type(name="ForgetReport", description="What was forgotten, or would be.")
class ForgetReportNode:
    """A report."""

    record: strawberry.Private[ForgetReport]
    error: WriteFaultNode | None = strawberry.field(
        default=None, description="Why nothing was looked at or erased; null when it was."
    )

    @classmethod
    def refused(cls, fault: WriteFaultNode) -> "ForgetReportNode":
        """Return the report of a call that did nothing."""
        return cls(record=ForgetReport((), 0), error=fault)

    @described("How many were erased for good; 0 for a dry run.")
    def forgotten(self) -> int:
        """Return how many went."""
        return self.record.forgotten

    @described("How many were found: those that went, or would go.")
    def found(self) -> int:
        """Return how many there are."""
        return len(self.record.items)

    @described("The first of them, each with the reason.")
    def items(self, info: Info, limit: Limit = DEFAULT_LIMIT) -> list[ForgettableNode]:
        """Return some of them."""
        # no error for a bad limit: it would come after the deed, and hide the report
        # an operator may erase what he may not read
        readable = "internal" in info.context.readable
        shown = self.record.items[: max(0, min(limit, MAX_LIMIT))]
        return [ForgettableNode.of(item, readable=readable) for item in shown]

    @described("Ids that are not there, or not this user's own: nothing was done about them.")
    def unknown(self) -> list[strawberry.ID]:
        """Return the ids that were not found."""
        return [strawberry.ID(id_) for id_ in self.record.unknown]
