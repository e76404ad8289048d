"""Replace, correct and take back memories by hand, with a reason and an author."""

from __future__ import annotations

from dataclasses import replace

from ecphoria.errors import InvalidInput, LessReliable, NotCurrent, NotFound, StoreError
from ecphoria.governance.access import Operation, check_access, overrules_sources
from ecphoria.governance.redaction import redactor
from ecphoria.model import (
    ChangeKind,
    Memory,
    MemoryChange,
    MemoryInput,
    Receipt,
    ReceiptStatus,
    Scope,
    Status,
    checked_id,
    utc,
)
from ecphoria.parts import EngineParts
from ecphoria.remember.indexing import index_pending
from ecphoria.remember.normalise import checked_reason
from ecphoria.remember.pipeline import ByHand, log, remember


async def supersede(
    parts: EngineParts, scope: Scope, memory_id: str, new: MemoryInput, reason: str
) -> Receipt:
    """Put a memory in another's place from its own time on; see `Engine.supersede`."""
    old = await _current(parts, scope, new.user_id, memory_id)
    check_source(parts, scope, old, new.source)
    return await _replace(parts, scope, old, new, reason)


async def correct(
    parts: EngineParts, scope: Scope, memory_id: str, new: MemoryInput, reason: str
) -> Receipt:
    """Put a memory in the place of one that was wrong all along; see `Engine.correct`."""
    old = await _current(parts, scope, new.user_id, memory_id)
    check_source(parts, scope, old, new.source)
    right = replace(
        new,
        valid_from=old.valid_from,
        occurred_at=new.occurred_at or old.occurred_at,
        valid_until=new.valid_until or old.stated_until,
    )
    return await _replace(parts, scope, old, right, reason)


async def retract(
    parts: EngineParts, scope: Scope, user_id: str | None, memory_id: str, reason: str
) -> Receipt:
    """Take a memory back; see `Engine.retract`."""
    reason = _shown(parts, reason)
    old = await _current(parts, scope, user_id, memory_id)
    check_source(parts, scope, old, None, place="memory_id")
    now = utc(parts.clock.now())
    pending = await parts.graph.retract(
        scope.tenant, old.id, parts.clock.token(), now, reason=reason, by=scope.principal
    )
    indexed: frozenset[str] = frozenset()
    try:
        indexed = await index_pending(parts, pending)
    except StoreError as error:
        # the graph has it: recall asks the graph, and the reconciler finishes the index
        log.warning("memory taken back, index not yet", code=error.code, reason=error.message)
    parts.changes.publish(
        [MemoryChange(ChangeKind.RETRACTED, scope.tenant, old.user_id, old.id, now)]
    )
    return Receipt(0, ReceiptStatus.RETRACTED, old.id, indexed=old.key in indexed)


async def _replace(
    parts: EngineParts, scope: Scope, old: Memory, new: MemoryInput, reason: str
) -> Receipt:
    item = replace(new, supersedes=old.id, kind=old.kind)
    by_hand = ByHand(_shown(parts, reason), scope.principal)
    (receipt,) = await remember(parts, scope, [item], by_hand=by_hand)
    return receipt


async def _current(parts: EngineParts, scope: Scope, user_id: str | None, memory_id: str) -> Memory:
    if user_id is None:
        check_access(scope, Operation.REMEMBER_SHARED)
    user = None if user_id is None else scope.user(user_id)
    try:
        id_ = checked_id(memory_id, "memory id")
    except InvalidInput as error:
        raise error.at("memory_id") from error
    return await current_memory(parts, scope, user, id_)


async def current_memory(parts: EngineParts, scope: Scope, user: str | None, id_: str) -> Memory:
    """Return a memory that neither was replaced nor taken back.

    Args:
        parts: What to work with.
        scope: Of which tenant; `user` was checked against it.
        user: Whose it is; None = shared.
        id_: Its id.

    Raises:
        NotFound: When there is none.
        NotCurrent: When it was replaced or taken back before.
    """
    found = await parts.graph.memories(scope.tenant, [id_])
    old = next((memory for memory in found if memory.user_id == user), None)
    if old is None:
        msg = f"there is no memory {id_!r} in this scope"
        raise NotFound(msg, path=("memory_id",))
    if old.status is not Status.ACTIVE:
        lineage = (await parts.graph.lineage(scope.tenant, [id_])).get(id_, ())
        after = next((x.other for x in lineage if x.type == "SUPERSEDES" and not x.outgoing), None)
        what = "taken back" if old.status is Status.DISABLED else "replaced"
        msg = f"the memory {id_!r} was {what} already" + (f" by {after!r}" if after else "")
        raise NotCurrent(msg, path=("memory_id",))
    return old


def _shown(parts: EngineParts, reason: str) -> str:
    # kept in clear beside the memories, for everybody who may read them
    return redactor(parts.domain).redacted(checked_reason(reason))


def check_source(
    parts: EngineParts, scope: Scope, old: Memory, source: str | None, *, place: str = "source"
) -> None:
    """Return when the scope may overrule sources, or its source is as reliable as the old one.

    Raises:
        LessReliable: Otherwise; `place` is where in the input that is said.
    """
    if overrules_sources(scope):
        return
    id_ = source or parts.domain.default_source
    declared = parts.domain.sources.get(id_)
    if declared is not None and declared.reliability < old.reliability:
        msg = (
            f"{id_} ({declared.reliability:g}) is less reliable than the source of "
            f"{old.id!r} ({old.source_id}, {old.reliability:g})"
        )
        raise LessReliable(msg, path=(place,))
