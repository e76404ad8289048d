"""Drop what has expired, and move what nobody uses to the archive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ecphoria.model import ChangeKind, MemoryChange, utc
from ecphoria.parts import EngineParts
from ecphoria.stores.ports import Changed

BATCH = 500
EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class AgeingReport:
    """How many memories were dropped for good and moved to the archive."""

    expired: int
    archived: int


async def age(parts: EngineParts) -> AgeingReport:
    """Do now what time asks for. Safe to run twice and in several processes.

    The index follows: the rows are queued for it in the same transaction.

    Raises:
        StoreUnavailable: When the graph does not answer; what was finished stays finished.
    """
    now = utc(parts.clock.now())
    expired = archived = 0
    while keys := await parts.graph.expired(now, BATCH):
        gone = await parts.graph.forget(keys, parts.clock.token(), now, EXPIRED)
        publish(parts, ChangeKind.EXPIRED, gone)
        expired += len(gone)
    while moved := await parts.graph.archive(now, BATCH, parts.clock.token()):
        publish(parts, ChangeKind.ARCHIVED, moved)
        archived += len(moved)
    return AgeingReport(expired, archived)


def publish(parts: EngineParts, kind: ChangeKind, changed: Sequence[Changed]) -> None:
    """Tell those who listen what happened."""
    now = parts.clock.now()
    parts.changes.publish(
        MemoryChange(kind, item.tenant, item.user_id, item.id, now) for item in changed
    )
