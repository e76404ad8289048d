"""Finish what a crash or an outage left between the graph and the index."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta

import structlog

from ecphoria.errors import EmbeddingFailed, InvalidVector
from ecphoria.parts import EngineParts
from ecphoria.remember.indexing import index_pending

log = structlog.get_logger(__name__)

BATCH = 200


@dataclass(frozen=True, slots=True)
class ReconcileReport:
    """What a run did: rows brought up to date, and rows that could not be."""

    done: int
    failed: int


async def reconcile_in_batches(
    parts: EngineParts, worker: str | None = None
) -> AsyncIterator[ReconcileReport]:
    """Go once through all rows that are not up to date, reporting after each batch.

    Each batch is leased: no other worker does the same rows meanwhile. A row that the model fails
    on is counted and left; it is tried again when its lease has ended. A row that another process
    changes meanwhile stays pending under a new token.

    Args:
        parts: The stores and the model.
        worker: Name of this worker; a new one without it.

    Raises:
        StoreUnavailable: When a store does not answer; what was finished stays finished.
    """
    worker = worker or parts.clock.token()
    after = ""
    while True:
        now = parts.clock.now()
        until = now + timedelta(seconds=parts.settings.lease_s)
        batch = await parts.graph.lease_pending(worker, BATCH, now, until, after)
        if not batch:
            return
        after = batch[-1].key
        try:
            finished = await index_pending(parts, batch)
        except (EmbeddingFailed, InvalidVector) as error:
            log.warning("rows not indexed", code=error.code, reason=error.message, rows=len(batch))
            yield ReconcileReport(0, len(batch))
            continue
        yield ReconcileReport(len(finished), len(batch) - len(finished))


async def reconcile(parts: EngineParts, worker: str | None = None) -> ReconcileReport:
    """Go once through all rows that are not up to date; see `reconcile_in_batches`."""
    done = failed = 0
    async for report in reconcile_in_batches(parts, worker):
        done += report.done
        failed += report.failed
    return ReconcileReport(done, failed)
