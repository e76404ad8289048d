"""The audit log: who did what to whose data."""

import enum
from datetime import datetime
from typing import Annotated

import strawberry

from ecphoria.model import AuditEntry, AuditFilter, AuditOutcome
from ecphoria_graphql.connection_types import connection_type
from ecphoria_graphql.enums import plain


@strawberry.enum(name="AuditOutcome", description="How an operation ended.")
class AuditOutcomeValue(enum.Enum):
    """Outcomes; the values are the engine's."""

    DONE = strawberry.enum_value("done", description="It was done.")
    REFUSED = strawberry.enum_value("refused", description="The key may not do it.")
    FAILED = strawberry.enum_value(
        "failed", description="It ended with an error; part of it may have been done."
    )


@strawberry.type(
    name="AuditEntry",
    description="Who did what to whose data, and when; never what the data say.",
)
class AuditEntryNode:
    """An entry."""

    id: strawberry.ID = strawberry.field(description="Its id, in order of time.")
    at: datetime = strawberry.field(description="When.")
    principal: strawberry.ID = strawberry.field(description="Id of the key, or the command line.")
    roles: list[str] = strawberry.field(description="The roles that it had.")
    operation: str = strawberry.field(
        description="What was done, e.g. `forgetUser`, `correct`, `readSensitive`."
    )
    user: str | None = strawberry.field(
        description=(
            "Keyed hash of the user's id; null when it is about no single user. To find a user's"
            " entries, filter by his id."
        )
    )
    count: int = strawberry.field(description="How many memories, entities or keys.")
    outcome: AuditOutcomeValue = strawberry.field(description="How it ended.")
    code: str | None = strawberry.field(
        description="Code of the error, when it was refused or failed."
    )

    @classmethod
    def of(cls, entry: AuditEntry) -> "AuditEntryNode":
        """Return it as its GraphQL type."""
        return cls(
            id=strawberry.ID(entry.id),
            at=entry.at,
            principal=strawberry.ID(entry.principal),
            roles=list(entry.roles),
            operation=entry.operation,
            user=entry.user,
            count=entry.count,
            outcome=AuditOutcomeValue(entry.outcome.value),
            code=entry.code,
        )


@strawberry.input(
    name="AuditFilter", description="Which entries; those that meet all that is given."
)
class AuditFilterData:
    """A filter."""

    user_id: strawberry.ID | None = strawberry.field(
        default=None, description="About this user's data; he may have been forgotten."
    )
    principal: strawberry.ID | None = strawberry.field(
        default=None, description="By this key; id of the key."
    )
    operation: str | None = strawberry.field(
        default=None, description="Of this operation, e.g. `forgetUser`."
    )
    outcome: AuditOutcomeValue | None = strawberry.field(
        default=None, description="That ended like this."
    )
    since: datetime | None = strawberry.field(default=None, description="From then on.")
    until: datetime | None = strawberry.field(default=None, description="Before then.")

    def filter(self) -> AuditFilter:
        """Return it as the engine's type."""
        return AuditFilter(
            user_id=self.user_id,
            principal=self.principal,
            operation=self.operation,
            outcome=None if self.outcome is None else AuditOutcome(plain(self.outcome)),
            since=self.since,
            until=self.until,
        )


AuditArgument = Annotated[
    AuditFilterData | None,
    strawberry.argument(description="Which entries; all of the tenant when not given."),
]
AUDIT_CONNECTION = connection_type("Audit", AuditEntryNode, "entries of the audit log")
