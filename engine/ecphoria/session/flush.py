"""Bring conversations to long-term memory: at their end, or when nobody says anything any more.

Turns go as dialogues, which the write path cuts into facts. Their ids come from the session and
the numbers of the turns: whoever does it again after a crash writes the same memories, and nothing
is there twice. Turns are dropped only when long-term memory has acknowledged them. Those that it
refuses for good would be refused for ever: they are set aside in the session store, where a person
finds them, are reported and logged, and do not hold up the others.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

import structlog

from ecphoria.errors import (
    EcphoriaError,
    MemoryForgotten,
    StoreError,
    UserForgotten,
    error_classes,
)
from ecphoria.governance.access import Operation, check_access
from ecphoria.model import MemoryInput, Receipt, ReceiptStatus, Role, Scope, SessionKey, Turn
from ecphoria.parts import EngineParts
from ecphoria.remember.pipeline import remember
from ecphoria.session.packs import Pack, pack_id, packed
from ecphoria.session.turns import session_key
from ecphoria.stores.session_port import FlushLease

log = structlog.get_logger(__name__)

BATCH: Final = 200
# Turns read in one go; a pack may span two reads.
_PAGE = 500
# Sessions flushed in one go when the process ends.
_MANY = 1_000_000
WORKER: Final = "session-worker"


@dataclass(frozen=True, slots=True)
class SessionFlush:
    """What became of a conversation.

    Attributes:
        receipts: One for each dialogue that was written, in order.
        turns: How many turns are in long-term memory now.
        set_aside: How many turns it refused; the receipts say why.
        under_way: Whether somebody else is flushing the conversation at this moment.
    """

    receipts: tuple[Receipt, ...]
    turns: int
    set_aside: int = 0
    under_way: bool = False


@dataclass(slots=True)
class _Flush:
    """One run over one session."""

    parts: EngineParts
    scope: Scope
    key: SessionKey
    token: str
    idle_before: datetime | None
    receipts: list[Receipt] = field(default_factory=list)
    refused: set[int] = field(default_factory=set)
    forgotten: set[int] = field(default_factory=set)
    turns: int = 0
    set_aside: int = 0

    async def lease(self) -> FlushLease | None:
        """Take or prolong the lease."""
        return await self.parts.sessions.begin_flush(
            self.key,
            token=self.token,
            now=self.parts.clock.now(),
            lease_s=self.parts.settings.lease_s,
            idle_before=self.idle_before,
        )


async def end_session(
    parts: EngineParts, scope: Scope, user_id: str, session_id: str
) -> SessionFlush:
    """End a conversation: its turns become long-term memories, and its short-term context goes.

    Turns that are said meanwhile are kept; they begin another conversation.

    Raises:
        InvalidInput: When the session id is none.
        InvalidScope: When the user is missing, empty or ``*``.
        Forbidden: When the scope's roles or users do not allow it.
        StoreUnavailable: When a store does not answer; what is not acknowledged is still kept,
            and the same call, or the worker, goes on from there.
    """
    check_access(scope, Operation.SESSION)
    key = session_key(scope, user_id, session_id)
    done = await _flushed(parts, scope, key, None)
    if not done.receipts and await parts.sessions.read(key, parts.clock.now()) is not None:
        return replace(done, under_way=True)
    return done


async def flush_idle_sessions(
    parts: EngineParts, limit: int, *, idle_s: float | None = None
) -> int:
    """Bring conversations that are over to long-term memory; for the worker.

    Each is written for its own user only, by a scope of the role ``agent`` with that one user and
    the principal `WORKER`. A session that fails on its own is logged and left for the next run.

    Args:
        parts: The engine's parts.
        limit: How many sessions at most.
        idle_s: Seconds without a turn; as long as a session lives if None.

    Returns:
        How many sessions were flushed.

    Raises:
        EcphoriaError: When a store or a model is away for the moment; what was done stays done.
    """
    silence = parts.settings.session_ttl_s if idle_s is None else idle_s
    try:
        before = parts.clock.now() - timedelta(seconds=silence)
    except OverflowError:
        return 0  # sessions that live longer than the calendar are never idle
    flushed = skip = 0
    while flushed < limit:
        keys = await parts.sessions.idle(before, min(_PAGE, limit - flushed), skip)
        if not keys:
            break
        for key in keys:
            if await _flushed_by_worker(parts, key, before):
                flushed += 1
            else:
                skip += 1
    return flushed


async def flush_before_end(parts: EngineParts) -> None:
    """Flush every session that would be lost with this process; failures are logged."""
    if parts.sessions.outlives_process:
        return
    try:
        await flush_idle_sessions(parts, _MANY, idle_s=0)
    except EcphoriaError as error:
        log.warning("sessions not flushed", code=error.code, reason=error.message)


async def _flushed_by_worker(parts: EngineParts, key: SessionKey, before: datetime) -> bool:
    try:
        scope = Scope(key.tenant, WORKER, frozenset({Role.AGENT}), frozenset({key.user_id}))
        done = await _flushed(parts, scope, key, before)
    except EcphoriaError as error:
        if error.retryable:
            raise
        log.warning("session not flushed", tenant=key.tenant, code=error.code, reason=error.message)
        return False
    return bool(done.receipts)


async def _flushed(
    parts: EngineParts, scope: Scope, key: SessionKey, idle_before: datetime | None
) -> SessionFlush:
    flush = _Flush(parts, scope, key, parts.clock.token(), idle_before)
    lease = await flush.lease()
    if lease is not None:
        series, target = lease.series, lease.last
        try:
            while lease is not None:
                await _flush_conversations(flush, lease)
                if lease.upto >= target:
                    break
                before, lease = lease, await flush.lease()
                # another numbering, or no progress: somebody else was here
                if lease and (lease.series != series or lease.first <= before.first):
                    break
        finally:
            await _give_back(flush)
    return SessionFlush(tuple(flush.receipts), flush.turns, flush.set_aside)


async def _give_back(flush: _Flush) -> None:
    try:
        await flush.parts.sessions.end_flush(flush.key, flush.token)
    except StoreError as error:
        # it ends by itself; what went wrong before is told, not this
        log.warning("lease not given back", code=error.code, reason=error.message)


async def _flush_conversations(flush: _Flush, lease: FlushLease) -> None:
    """Flush the turns of a lease, page by page, batch by batch."""
    settings = flush.parts.settings
    size = min(BATCH, settings.max_batch)
    rest: list[Turn] = []
    after = lease.first - 1
    while after < lease.upto:
        page = await flush.parts.sessions.turns(
            flush.key, lease.series, after, min(_PAGE, lease.upto - after)
        )
        if not page:
            return  # somebody else has dropped them
        after = page[-1].number
        packs, rest = packed(
            [*rest, *page],
            flush.parts.domain,
            target_chars=min(settings.chunk_chars, settings.max_text_chars),
            max_chars=settings.max_text_chars,
            whole=after >= lease.upto,
        )
        for start in range(0, len(packs), size):
            if not await _flush_batch(flush, lease, packs[start : start + size]):
                return


async def _flush_batch(flush: _Flush, lease: FlushLease, packs: Sequence[Pack]) -> bool:
    """Write packs and drop their turns; False when somebody else has the lease by now."""
    held = await flush.lease()
    if held is None or (held.series, held.upto) != (lease.series, lease.upto):
        log.warning("another worker flushes this session", tenant=flush.key.tenant)
        return False
    async with _prolonging(flush):
        receipts = await remember(
            flush.parts, flush.scope, [_memory(flush.key, lease.series, pack) for pack in packs]
        )
    done, later = _acknowledged(receipts)
    for pack, receipt in zip(packs[:done], receipts, strict=False):
        flush.receipts.append(replace(receipt, index=len(flush.receipts)))
        _note_refusal(flush, pack, receipt)
    whole = [pack.last for pack in packs[:done] if pack.is_last_part]
    if whole:
        await _drop(flush, held, max(whole))
    if later is not None:
        raise later
    return True


def _memory(key: SessionKey, series: str, pack: Pack) -> MemoryInput:
    return MemoryInput(
        text=pack.text,
        user_id=key.user_id,
        id=pack_id(key, series, pack),
        occurred_at=pack.said_at,
        session_id=key.session_id,
    )


def _acknowledged(receipts: Sequence[Receipt]) -> tuple[int, EcphoriaError | None]:
    """Return how many receipts, from the first, are final, and the passing failure after them."""
    passing = {kind.code: kind for kind in error_classes() if kind.retryable}
    for place, receipt in enumerate(receipts):
        kind = passing.get(receipt.code or "")
        if receipt.status is ReceiptStatus.REJECTED and kind is not None:
            return place, kind(receipt.reason or "not written")
    return len(receipts), None


def _note_refusal(flush: _Flush, pack: Pack, receipt: Receipt) -> None:
    if receipt.status is not ReceiptStatus.REJECTED:
        return
    numbers = range(pack.first, pack.last + 1)
    log.error(
        "turns refused by long-term memory",
        tenant=flush.key.tenant,
        session=flush.key.session_id,
        turns=f"{pack.first}-{pack.last}",
        code=receipt.code,
        reason=receipt.reason,
    )
    if receipt.code in {MemoryForgotten.code, UserForgotten.code}:
        # written before, and forgotten since: nothing of it may stay anywhere
        flush.forgotten.update(numbers)
    else:
        flush.refused.update(numbers)


async def _drop(flush: _Flush, held: FlushLease, upto: int) -> None:
    dropped = set(range(held.first, upto + 1))
    refused = flush.refused & dropped
    await flush.parts.sessions.drop_turns(
        flush.key, held.series, upto, now=flush.parts.clock.now(), set_aside=refused
    )
    flush.set_aside += len(refused)
    flush.turns += len(dropped - refused - flush.forgotten)


@contextlib.asynccontextmanager
async def _prolonging(flush: _Flush) -> AsyncIterator[None]:
    """Prolong the lease again and again during the block, which may take long with a chat model."""

    async def prolong() -> None:
        while True:
            await asyncio.sleep(flush.parts.settings.lease_s / 3)
            try:
                await flush.lease()
            except StoreError as error:
                log.warning("lease not prolonged", code=error.code, reason=error.message)

    task = asyncio.create_task(prolong())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
