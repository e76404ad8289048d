"""Forget a user: all that is his, in every store, so that nothing of him comes back.

First one transaction leaves a tombstone and hides all of it from every reader. Then it is removed
batch by batch; what a crash leaves, the worker finishes. What others say about him stays theirs,
and no longer leads to him.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import structlog

from ecphoria.errors import EcphoriaError, StoreError
from ecphoria.governance.data_keys import KeyOwner
from ecphoria.governance.pseudonyms import tombstone_keys
from ecphoria.governance.redaction import redactor
from ecphoria.model import ChangeKind, MemoryChange, Scope, memory_key, utc
from ecphoria.parts import EngineParts
from ecphoria.remember.normalise import checked_reason
from ecphoria.stores.ports import ForgottenUser

log = structlog.get_logger(__name__)

BATCH: Final = 500
# Whoever began to write before the tombstone was there is done by then, or is found once more.
_SWEEPS: Final = 5
_USERS_A_ROUND: Final = 20


@dataclass(frozen=True, slots=True)
class ForgetReceipt:
    """That a user was forgotten; kept without his id.

    Attributes:
        id: Of the receipt.
        by: Who asked for it: the id of a key, or the command line.
        counts: What was removed, by what it was, e.g. ``memories``.
        finished_at: None while the rest is still being removed, where nobody sees it.
        allowed_again_at: When he was allowed again; None = nothing of him is taken.
    """

    id: str
    at: datetime
    by: str
    reason: str
    counts: Mapping[str, int]
    finished_at: datetime | None
    allowed_again_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ForgetProgress:
    """How far it is.

    Attributes:
        removed: Memories and entities that were removed.
        total: How many there were to remove.
        receipt: Once all is removed.
    """

    removed: int
    total: int
    receipt: ForgetReceipt | None = None


@dataclass(frozen=True, slots=True)
class ForgetCheck:
    """What a search of every store for a user found.

    Attributes:
        left: What is there, by what it is and how many; empty when nothing is.
        receipt: Of his having been forgotten; None when he was not.
    """

    left: Mapping[str, int] = field(default_factory=dict)
    receipt: ForgetReceipt | None = None

    @property
    def clean(self) -> bool:
        """Whether nothing is left."""
        return not self.left


async def forget_user(
    parts: EngineParts, scope: Scope, user_id: str, reason: str
) -> AsyncIterator[ForgetProgress]:
    """Forget a user, reporting after each batch; see `Engine.forget_user_in_batches`."""
    user = scope.user(user_id)
    reason = redactor(parts.domain).redacted(checked_reason(reason)).replace(user, "…")
    keys = (await tombstone_keys(parts.pseudonyms, scope.tenant, [user]))[user]
    known = await parts.graph.forgotten_users(keys)
    in_force = [known[key] for key in keys if key in known and known[key].lifted_at is None]
    stone = ForgottenUser(
        key=in_force[0].key if in_force else keys[0],
        tenant=scope.tenant,
        user_id=user,
        receipt=parts.clock.token(),
        at=utc(parts.clock.now()),
        by=scope.principal,
        reason=reason,
    )
    # before the tombstone, so that no conversation is seen after it; again after it, for what was
    # said in between
    sessions = await parts.sessions.drop_user(scope.tenant, user)
    total = await parts.graph.hide_user(stone, parts.clock.token())
    parts.queries.drop(scope.tenant, user)
    counts = Counter(sessions=sessions.sessions, turns=sessions.turns)
    async for progress in _removed(parts, stone, user, total, counts):
        yield progress


async def _removed(
    parts: EngineParts,
    stone: ForgottenUser,
    user: str,
    total: int,
    counts: Counter[str],
) -> AsyncIterator[ForgetProgress]:
    """Remove what is hidden of a user, and what else is kept of him; report after each batch."""
    yield ForgetProgress(0, total)
    removed = 0
    counts["data keys"] = int(await parts.vault.destroy(stone.tenant, user))
    for _ in range(_SWEEPS):
        async for number in _removed_nodes(parts, stone, user, counts):
            removed += number
            yield ForgetProgress(removed, max(total, removed))
        counts["vectors"] += await parts.index.delete_user(stone.tenant, user)
        sessions = await parts.sessions.drop_user(stone.tenant, user)
        counts.update(sessions=sessions.sessions, turns=sessions.turns)
        # what was on its way when the tombstone came
        if not await parts.graph.hide_user(stone, parts.clock.token()):
            break
    now = utc(parts.clock.now())
    await parts.graph.count_removed(stone.key, counts, now)
    finished = await parts.graph.finish_forgetting(stone.key, now)
    yield ForgetProgress(removed, removed, _receipt(finished))


async def _removed_nodes(
    parts: EngineParts, stone: ForgottenUser, user: str, counts: Counter[str]
) -> AsyncIterator[int]:
    # by the user first: a row by row deletion of so many takes longer
    counts["vectors"] += await parts.index.delete_user(stone.tenant, user)
    while True:
        now = utc(parts.clock.now())
        gone = await parts.graph.remove_hidden(stone.key, BATCH, parts.clock.token(), now)
        number = len(gone.memories) + gone.entities
        if not number:
            return
        if gone.memories:
            keys = [memory_key(stone.tenant, id_) for id_ in gone.memories]
            await parts.index.delete(keys)
            parts.changes.publish(
                MemoryChange(ChangeKind.FORGOTTEN, stone.tenant, user, id_, now)
                for id_ in gone.memories
            )
        yield number


async def verify_forgotten(parts: EngineParts, scope: Scope, user_id: str) -> ForgetCheck:
    """Search every store for a user; see `Engine.verify_forgotten`."""
    user = scope.user(user_id)
    keys = (await tombstone_keys(parts.pseudonyms, scope.tenant, [user]))[user]
    left = dict(
        await parts.graph.traces_of_user(scope.tenant, user, keys, KeyOwner(scope.tenant, user).key)
    )
    left["vectors"] = await parts.index.count_user(scope.tenant, user)
    sessions = await parts.sessions.of_user(scope.tenant, user)
    left["sessions"], left["turns"] = sessions.sessions, sessions.turns
    stones = await parts.graph.forgotten_users(keys)
    if any(stone.lifted_at is None for stone in stones.values()):
        # what was asked about him since finds nothing, and need not be remembered either
        parts.queries.drop(scope.tenant, user)
    left["cached questions"] = parts.queries.count(scope.tenant, user)
    found = sorted(stones.values(), key=lambda stone: (stone.lifted_at is None, stone.at))
    return ForgetCheck(
        {name: number for name, number in left.items() if number},
        _receipt(found[-1]) if found else None,
    )


async def allow_forgotten(parts: EngineParts, scope: Scope, user_id: str) -> bool:
    """Let a forgotten user come back; see `Engine.allow_forgotten`."""
    user = scope.user(user_id)
    keys = (await tombstone_keys(parts.pseudonyms, scope.tenant, [user]))[user]
    stones = (await parts.graph.forgotten_users(keys)).values()
    for stone in stones:
        if stone.lifted_at is None and stone.finished_at is None:
            async for _ in _removed(parts, stone, user, 0, Counter()):
                pass
    # the key first: with the tombstone gone he may be written about at once
    if not any(stone.lifted_at is None for stone in stones):
        return False
    await parts.vault.allow_again(scope.tenant, user)
    return await parts.graph.allow_forgotten(keys, utc(parts.clock.now()), scope.principal)


async def finish_forgetting(parts: EngineParts) -> int:
    """Finish what was interrupted, for the worker; return how many users.

    Raises:
        StoreUnavailable: When a store does not answer; what was removed stays removed.
    """
    before = utc(parts.clock.now()) - timedelta(seconds=parts.settings.lease_s)
    finished = 0
    for stone in await parts.graph.unfinished_forgetting(before, _USERS_A_ROUND):
        if stone.user_id is None:
            continue
        try:
            async for _ in _removed(parts, stone, stone.user_id, 0, Counter()):
                pass
        except EcphoriaError as error:
            if error.retryable or not isinstance(error, StoreError):
                raise
            log.exception("a user is not removed", receipt=stone.receipt, code=error.code)
            continue
        finished += 1
    return finished


def _receipt(stone: ForgottenUser) -> ForgetReceipt:
    return ForgetReceipt(
        id=stone.receipt,
        at=stone.at,
        by=stone.by,
        reason=stone.reason,
        counts={name: number for name, number in stone.counts.items() if number},
        finished_at=stone.finished_at,
        allowed_again_at=stone.lifted_at,
    )
