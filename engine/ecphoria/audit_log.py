"""Who did what to whose data, append-only and without content.

Changes are on record before they are acknowledged. Reads of what is sensitive, and what was
refused, are noted in this process and written together, every second: nobody waits for it. A
process that is killed loses the last second of those, at worst.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

import structlog

from ecphoria.clock import Clock
from ecphoria.errors import (
    EcphoriaError,
    Forbidden,
    InvalidInput,
    InvalidScope,
    NotFound,
    StoreError,
)
from ecphoria.flushing import flushed
from ecphoria.governance.pseudonyms import Pseudonyms, no_pseudonyms
from ecphoria.model import AuditEntry, AuditOutcome, Role, Scope, checked_user, utc
from ecphoria.stores.ports import GraphStore

log = structlog.get_logger(__name__)

# More different things than this within one second, or while the graph is away, are not kept.
MAX_NOTED: Final = 10_000
READ_SENSITIVE: Final = "readSensitive"
_BATCH = 500


class _Noted(NamedTuple):
    tenant: str
    principal: str
    roles: frozenset[Role]
    operation: str
    user_id: str | None
    outcome: AuditOutcome
    code: str | None


@dataclass(slots=True)
class Deed:
    """What an operation did so far: to how many things."""

    count: int = 1


class AuditLog:
    """Entries that were noted but not written yet. It belongs to one event loop."""

    def __init__(self, graph: GraphStore | None, pseudonyms: Pseudonyms, clock: Clock) -> None:
        """Begin empty; without a graph nothing is kept."""
        self._graph = graph
        self._pseudonyms = pseudonyms
        self._clock = clock
        self._noted: dict[_Noted, tuple[int, datetime]] = {}
        self._lost = 0

    def note(
        self,
        scope: Scope,
        operation: str,
        user_id: str | None = None,
        *,
        count: int = 1,
        outcome: AuditOutcome = AuditOutcome.DONE,
        code: str | None = None,
    ) -> None:
        """Note something to be written soon; never waits.

        Equal things within one second become one entry, with the sum of their counts.
        """
        if self._graph is None:
            return
        user = _user(user_id)
        noted = _Noted(scope.tenant, scope.principal, scope.roles, operation, user, outcome, code)
        before = self._noted.get(noted)
        if before is None and len(self._noted) >= MAX_NOTED:
            self._lost += 1
            return
        so_far, since = before or (0, utc(self._clock.now()))
        self._noted[noted] = (so_far + count, since)

    def note_read(self, scope: Scope, user_id: str | None, count: int) -> None:
        """Note that so many sensitive values of a user, or shared ones, were shown in clear."""
        self.note(scope, READ_SENSITIVE, user_id, count=count)

    async def record(
        self,
        scope: Scope,
        operation: str,
        user_id: str | None = None,
        *,
        count: int = 1,
        outcome: AuditOutcome = AuditOutcome.DONE,
        code: str | None = None,
    ) -> None:
        """Write an entry now.

        Raises:
            StoreUnavailable: When the graph does not answer; it stays noted, and is written later.
        """
        if self._graph is None:
            return
        noted = _Noted(
            scope.tenant, scope.principal, scope.roles, operation, user_id, outcome, code
        )
        at = utc(self._clock.now())
        try:
            await self._write({noted: (count, at)})
        except StoreError:
            self.note(scope, operation, user_id, count=count, outcome=outcome, code=code)
            raise

    @contextlib.asynccontextmanager
    async def doing(
        self, scope: Scope, operation: str, user_id: str | None = None
    ) -> AsyncIterator[Deed]:
        """Put on record what the block does: when it is done, refused, or failed half way.

        What the input forbade is not recorded: nothing was done, and nobody was kept from it.

        Raises:
            StoreUnavailable: When it was done, and cannot be put on record now.
        """
        deed = Deed()
        try:
            yield deed
        except Forbidden as error:
            self.note(scope, operation, user_id, outcome=AuditOutcome.REFUSED, code=error.code)
            raise
        except (InvalidInput, NotFound):
            raise
        except EcphoriaError as error:
            self.note(scope, operation, user_id, outcome=AuditOutcome.FAILED, code=error.code)
            raise
        await self.record(scope, operation, user_id, count=deed.count)

    async def flush(self) -> int:
        """Write what was noted; return how many entries.

        Raises:
            StoreUnavailable: When the graph does not answer; what was not written stays noted.
        """
        written = 0
        if self._lost:
            log.error("the audit log could not keep up", lost=self._lost)
            self._lost = 0
        while self._noted:
            batch = {noted: self._noted.pop(noted) for noted in list(self._noted)[:_BATCH]}
            try:
                await self._write(batch)
            except BaseException:
                for noted, (count, since) in batch.items():
                    more, _ = self._noted.get(noted, (0, since))
                    self._noted[noted] = (count + more, since)
                raise
            written += len(batch)
        return written

    async def _write(self, batch: dict[_Noted, tuple[int, datetime]]) -> None:
        if self._graph is None:
            return
        names: dict[tuple[str, str], str] = {}
        for tenant in {noted.tenant for noted in batch}:
            users = {
                noted.user_id
                for noted in batch
                if noted.tenant == tenant and noted.user_id is not None
            }
            found = await self._pseudonyms.of(tenant, sorted(users))
            names |= {(tenant, user): its[0] for user, its in found.items()}
        await self._graph.write_audit(
            [
                AuditEntry(
                    id=f"{int(at.timestamp() * 1000):015d}-{self._clock.token()}",
                    tenant=noted.tenant,
                    at=at,
                    principal=noted.principal,
                    roles=tuple(sorted(noted.roles)),
                    operation=noted.operation,
                    user=None if noted.user_id is None else names[noted.tenant, noted.user_id],
                    count=count,
                    outcome=noted.outcome,
                    code=noted.code,
                )
                for noted, (count, at) in batch.items()
            ]
        )

    def running(self) -> AbstractAsyncContextManager[None]:
        """Write every second in the background, and once more on leaving."""
        return flushed(self.flush, "audit entries")


def _user(user_id: object) -> str | None:
    # a refused request may bring anything in the place of an id
    try:
        return checked_user(user_id)
    except InvalidScope:
        return None


def no_audit() -> AuditLog:
    """Return the audit log of an engine that keeps none."""
    return AuditLog(None, no_pseudonyms(), Clock())
