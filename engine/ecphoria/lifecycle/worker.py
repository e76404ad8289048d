"""What goes on in the background: finish pending rows, drop, archive, flush, rebuild.

Any number of workers may run. Pending rows are leased batch by batch; the rest is done by the one
that holds its lease.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta

import structlog

from ecphoria.errors import EcphoriaError
from ecphoria.lifecycle.ageing import AgeingReport, age
from ecphoria.lifecycle.forget_user import finish_forgetting
from ecphoria.lifecycle.keyed_calls import drop_old_calls
from ecphoria.lifecycle.reconcile import ReconcileReport, reconcile
from ecphoria.parts import EngineParts
from ecphoria.session.flush import flush_idle_sessions

log = structlog.get_logger(__name__)

# Idle sessions a round.
SESSIONS = 200
AGEING_LEASE, INDEX_LEASE = "ageing", "index"


@dataclass(frozen=True, slots=True)
class RoundReport:
    """What one round did.

    Attributes:
        ageing: None when another worker has the lease.
        sessions: Idle conversations that were brought to long-term memory.
        refreshed: Collections whose index was built anew.
        forgotten: Users whose removal was interrupted, and is finished now.
    """

    reconciled: ReconcileReport
    ageing: AgeingReport | None
    sessions: int = 0
    refreshed: tuple[str, ...] = ()
    forgotten: int = 0


async def work_once(parts: EngineParts, worker: str) -> RoundReport:
    """Do one round of everything.

    Raises:
        EcphoriaError: When a store does not answer; what was finished stays finished.
    """
    # first: what is asked to go must not wait for anything
    forgotten = await finish_forgetting(parts)
    ageing = None
    if await _has_lease(parts, AGEING_LEASE, worker):
        ageing = await age(parts)
        await drop_old_calls(parts)
    reconciled = await reconcile(parts, worker)
    refreshed: tuple[str, ...] = ()
    # under a name of its own each time: counting rows is needed once a lease, not every round
    if await _has_lease(parts, INDEX_LEASE, parts.clock.token()):
        refreshed = await parts.index.refresh()
    # last: a session store that is away must not keep the other tasks waiting
    sessions = await flush_idle_sessions(parts, SESSIONS)
    return RoundReport(reconciled, ageing, sessions, refreshed, forgotten)


async def _has_lease(parts: EngineParts, name: str, worker: str) -> bool:
    now = parts.clock.now()
    until = now + timedelta(seconds=parts.settings.lease_s)
    return await parts.graph.take_lease(name, worker, now, until)


async def work_for_ever(parts: EngineParts, worker: str) -> None:
    """Do round after round until cancelled; a round that fails is logged, and the next one tries.

    Args:
        parts: What to work with.
        worker: Name of this worker, unique among all.
    """
    while True:
        try:
            report = await work_once(parts, worker)
            log.debug("worked", report=report)
        except EcphoriaError as error:
            log.warning("background work failed", code=error.code, reason=error.message)
        except Exception:
            # a bug in one round must not end all later ones
            log.exception("background work failed")
        await asyncio.sleep(parts.settings.reconcile_every_s)
