"""Faults of the caller that a mutation finds: they come in its payload, with code and place.

What a mutation returns says what was done, and its `error` why nothing was. A request that is no
good, access, outages and limits are errors of the answer, as they are for queries.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import strawberry
from strawberry import enum_value

from ecphoria import errors
from ecphoria.errors import EcphoriaError, error_classes
from ecphoria.model import Receipt
from ecphoria_graphql.error_codes import as_given

if TYPE_CHECKING:
    ErrorCode: TypeAlias = enum.Enum
else:
    ErrorCode = strawberry.enum(
        enum.Enum(
            "ErrorCode",
            {
                kind.code: enum_value(kind.code, description=" ".join(kind.__doc__.split()))
                for kind in sorted(error_classes(), key=lambda kind: kind.code)
            },
        ),
        description="A stable error code; docs/reference/error-codes.md says what to do about it.",
    )

_T = TypeVar("_T")


@strawberry.interface(
    name="WriteFault", description="Why a mutation did nothing: a fault of what was sent."
)
class WriteFaultNode:
    """A fault of the caller."""

    code: ErrorCode = strawberry.field(description="A stable code.")
    message: str = strawberry.field(description="A sentence that a person can act on.")
    remedy: str = strawberry.field(description="What to do about it.")
    retryable: bool = strawberry.field(description="Whether the same call may succeed later.")
    path: list[str] = strawberry.field(
        description=(
            "Where in the arguments the fault is, outermost first; empty when it is in no single"
            " place."
        )
    )


@strawberry.type(
    name="InvalidInputFault", description="A value has the wrong form or breaks a rule: mend it."
)
class InvalidInputFaultNode(WriteFaultNode):
    """A value is no good."""


@strawberry.type(
    name="NotFoundFault",
    description="What is named is not there, or is another user's: check the id and whose it is.",
)
class NotFoundFaultNode(WriteFaultNode):
    """Something is not there."""


@strawberry.type(
    name="ConflictFault",
    description="What is there already stands against it: look at what is there, then decide.",
)
class ConflictFaultNode(WriteFaultNode):
    """What is there stands against it."""


@strawberry.type(
    name="RefusedFault",
    description="A rule stands against it; `retryable` tells whether it may be taken later.",
)
class RefusedFaultNode(WriteFaultNode):
    """A rule stands against it."""


# Every class of error is here or in TOP_LEVEL, and a test fails for one that is in neither.
FAULTS: Final[dict[type[EcphoriaError], type[WriteFaultNode]]] = {
    errors.InvalidInput: InvalidInputFaultNode,
    errors.InvalidScope: InvalidInputFaultNode,
    errors.TextEmpty: InvalidInputFaultNode,
    errors.TextTooLong: InvalidInputFaultNode,
    errors.InvalidTime: InvalidInputFaultNode,
    errors.UnknownType: InvalidInputFaultNode,
    errors.UnknownRelation: InvalidInputFaultNode,
    errors.UnknownProperty: InvalidInputFaultNode,
    errors.DuplicateId: InvalidInputFaultNode,
    errors.BatchTooLarge: InvalidInputFaultNode,
    errors.NotFound: NotFoundFaultNode,
    errors.MissingEntity: NotFoundFaultNode,
    errors.IdConflict: ConflictFaultNode,
    errors.NotCurrent: ConflictFaultNode,
    errors.CardinalityViolated: ConflictFaultNode,
    errors.IdempotencyKeyReused: ConflictFaultNode,
    errors.IdempotencyKeyInUse: ConflictFaultNode,
    errors.LessReliable: RefusedFaultNode,
    errors.UserForgotten: RefusedFaultNode,
    errors.MemoryForgotten: RefusedFaultNode,
    errors.DataKeyDestroyed: RefusedFaultNode,
    errors.FeedbackLimit: RefusedFaultNode,
}

# These stay errors of the answer: access, limits, outages, and what no mutation can raise.
TOP_LEVEL: Final[frozenset[type[EcphoriaError]]] = frozenset(
    {
        errors.EcphoriaError,
        errors.Unauthenticated,
        errors.Forbidden,
        errors.RateLimited,
        errors.TooManyOperations,
        errors.OperationTimeout,
        errors.RequestTooLarge,
        errors.InvalidCursor,
        errors.InvalidNodeId,
        errors.MalformedLine,
        errors.InvalidVector,
        errors.DomainFileInvalid,
        errors.EncryptionKeyMissing,
        errors.EncryptionKeyWrong,
        errors.StoreError,
        errors.StoreUnavailable,
        errors.StoreAuthenticationFailed,
        errors.StoreLocked,
        errors.DataDirectoryUnusable,
        errors.StoreStartFailed,
        errors.MigrationFailed,
        errors.EmbeddingMismatch,
        errors.ModelUnavailable,
        errors.EmbeddingFailed,
        errors.RerankingFailed,
        errors.ChatFailed,
        errors.ReembedInProgress,
        errors.ConfigurationInvalid,
        errors.PortInUse,
        errors.ServerUnreachable,
        errors.RequestRefused,
        errors.InternalError,
    }
)

# Every type of the interface: no field names them, so the schema must be told.
FAULT_TYPES: Final = (InvalidInputFaultNode, NotFoundFaultNode, ConflictFaultNode, RefusedFaultNode)


def _made(
    type_: type[WriteFaultNode],
    kind: type[EcphoriaError],
    message: str,
    path: tuple[str | int, ...],
) -> WriteFaultNode:
    return type_(
        code=ErrorCode(kind.code),
        message=message,
        remedy=kind.remedy,
        retryable=kind.retryable,
        path=[str(part) for part in as_given(path)],
    )


def fault_of(error: EcphoriaError) -> WriteFaultNode | None:
    """Return an error as the fault that a payload has; None when it stays an error."""
    type_ = FAULTS.get(type(error))
    return None if type_ is None else _made(type_, type(error), error.message, error.path)


def fault_of_item(receipt: Receipt, place: tuple[str | int, ...]) -> WriteFaultNode | None:
    """Return why one item was not kept; None when it was.

    Whatever it is, it comes with the item: one item of a batch does not harm the others.

    Args:
        receipt: What became of the item.
        place: Where in the arguments the item is.
    """
    if receipt.code is None:
        return None
    kinds = {kind.code: kind for kind in error_classes()}
    kind = kinds[receipt.code]
    type_ = FAULTS.get(kind, RefusedFaultNode)
    return _made(type_, kind, receipt.reason or kind.remedy, (*place, *receipt.path))


async def or_fault(work: Awaitable[_T], refused: Callable[[WriteFaultNode], _T]) -> _T:
    """Return what a mutation did, or the payload that says why it did nothing.

    Args:
        work: What it does; raises the errors of the engine, places as in the arguments.
        refused: Makes the payload out of a fault of the caller.

    Raises:
        EcphoriaError: When it is no fault of the caller.
    """
    try:
        return await work
    except EcphoriaError as error:
        fault = fault_of(error)
        if fault is None:
            raise
        return refused(fault)
