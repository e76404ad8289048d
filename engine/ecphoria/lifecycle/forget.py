"""Forget memories for good: by id, or by a rule that can be tried out first."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import structlog

from ecphoria.decay import days_between
from ecphoria.errors import Forbidden, InvalidInput, StoreError
from ecphoria.governance.redaction import redactor
from ecphoria.governance.reveal import shown_memories
from ecphoria.lifecycle.ageing import publish
from ecphoria.model import (
    ChangeKind,
    EveryUser,
    Memory,
    Scope,
    SourceInfo,
    checked_id,
    memory_key,
    utc,
)
from ecphoria.parts import EngineParts
from ecphoria.recall.judge import disagreeing, memory_confidence
from ecphoria.remember.indexing import index_pending
from ecphoria.remember.normalise import checked_reason
from ecphoria.remember.tag import whole_of
from ecphoria.stores.ports import PendingMemory
from ecphoria_schema.domain import KINDS, Kind

log = structlog.get_logger(__name__)

PAGE = 500


@dataclass(frozen=True, slots=True)
class ForgetRule:
    """Which memories are to go: those that meet every criterion given; one at least.

    Attributes:
        user_id: Of this user only; None = of every user of the tenant, and shared knowledge.
        older_than_days: That happened longer ago than this (days).
        importance_below: Less important than this, 0..1.
        confidence_below: Whose overall confidence now is below this, 0..1.
        kinds: Of these kinds; None = of all.
    """

    user_id: str | None = None
    older_than_days: float | None = None
    importance_below: float | None = None
    confidence_below: float | None = None
    kinds: tuple[Kind, ...] | None = None


@dataclass(frozen=True, slots=True)
class Forgettable:
    """A memory that a rule meets, and why."""

    id: str
    user_id: str | None
    kind: Kind
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """What went, or would go.

    Attributes:
        items: Each with its reason; what was cut from a text goes with the text's own id.
        forgotten: How many were erased; 0 for a dry run.
        unknown: Ids that are not there, or not this user's.
    """

    items: tuple[Forgettable, ...]
    forgotten: int
    unknown: tuple[str, ...] = ()


async def forget(
    parts: EngineParts, scope: Scope, user_id: str, ids: Sequence[str], reason: str
) -> ForgetReport:
    """Erase a user's own memories; see `Engine.forget`."""
    user = scope.user(user_id)
    # kept in clear where the memories were
    reason = redactor(parts.domain).redacted(checked_reason(reason))
    wanted = list(dict.fromkeys(checked_id(id_, "memory id") for id_ in ids))
    found = {
        memory.id: memory
        for memory in await parts.graph.memories(scope.tenant, wanted)
        if memory.user_id == user
    }
    # who forgets a text by its id means all that was cut from it
    texts = await parts.graph.of_same_text(list(found.values())) if found else ()
    cut = sorted((one for one in texts if whole_of(one.id) in found), key=lambda one: one.id)
    named = {id_: found[id_] for id_ in wanted if id_ in found}
    gone = list((named | {one.id: one for one in cut}).values())
    shown = await shown_memories(parts.vault, scope, gone)
    await _erase(parts, gone, reason)
    return ForgetReport(
        tuple(_forgettable(memory, reason) for memory in shown),
        len(gone),
        tuple(id_ for id_ in wanted if id_ not in found),
    )


async def forget_by_rule(
    parts: EngineParts, scope: Scope, rule: ForgetRule, *, dry_run: bool
) -> ForgetReport:
    """Erase what a rule meets, or tell what it would; see `Engine.forget_by_rule`."""
    _check(rule, scope)
    now = parts.clock.now()
    items: list[Forgettable] = []
    async for page in _pages(parts, scope, rule):
        met = [
            (memory, reasons)
            for memory, reasons in [
                (memory, await _reasons(parts, memory, rule, now)) for memory in page
            ]
            if reasons
        ]
        shown = await shown_memories(parts.vault, scope, [memory for memory, _ in met])
        items += [
            _forgettable(memory, "; ".join(reasons))
            for memory, (_, reasons) in zip(shown, met, strict=True)
        ]
        if not dry_run:
            await _erase(parts, [memory for memory, _ in met], "met a rule")
    return ForgetReport(tuple(items), 0 if dry_run else len(items))


def _check(rule: ForgetRule, scope: Scope) -> None:
    if rule.user_id is not None:
        scope.user(rule.user_id)
    elif not isinstance(scope.users, EveryUser):
        msg = "a rule without a user needs a key for every user of the tenant"
        raise Forbidden(msg, path=("user_id",))
    limits = {
        "older_than_days": (rule.older_than_days, 36_500.0),
        "importance_below": (rule.importance_below, 1.0),
        "confidence_below": (rule.confidence_below, 1.0),
    }
    if all(value is None for value, _ in limits.values()):
        msg = f"a rule needs one of {', '.join(limits)}: without any it would mean everything"
        raise InvalidInput(msg)
    for name, (value, most) in limits.items():
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            msg = f"{name} must be a number from 0 to {most:g}"
            raise InvalidInput(msg, path=(name,))
    for kind in rule.kinds or ():
        if kind not in KINDS:
            msg = f"{kind!r} is none of {', '.join(KINDS)}"
            raise InvalidInput(msg, path=("kinds",))


async def _pages(parts: EngineParts, scope: Scope, rule: ForgetRule) -> AsyncIterator[list[Memory]]:
    after = ""
    while page := await parts.graph.scan_memories(after, PAGE, scope.tenant):
        after = page[-1].key
        yield [
            memory
            for memory in page
            if (rule.user_id is None or memory.user_id == rule.user_id)
            and (rule.kinds is None or memory.kind in rule.kinds)
        ]


async def _reasons(
    parts: EngineParts, memory: Memory, rule: ForgetRule, now: datetime
) -> list[str]:
    """Return why a memory meets a rule; nothing when one criterion is not met."""
    reasons: list[str] = []
    if rule.older_than_days is not None:
        days = days_between(memory.occurred_at, now)
        if days <= rule.older_than_days:
            return []
        reasons.append(f"{days:.0f} days old")
    if rule.importance_below is not None:
        if memory.importance >= rule.importance_below:
            return []
        reasons.append(f"importance {memory.importance:.2f}")
    if rule.confidence_below is not None:
        confidence = await _confidence(parts, memory, now)
        if confidence >= rule.confidence_below:
            return []
        reasons.append(f"confidence {confidence:.2f}")
    return reasons


async def _confidence(parts: EngineParts, memory: Memory, now: datetime) -> float:
    others = () if memory.claim is None else await parts.graph.claimed(memory.claim)
    sources: dict[str, SourceInfo] = {
        source.id: source for source in await parts.graph.sources(memory.tenant)
    }
    against = disagreeing([memory], others)
    return memory_confidence(memory, others, against, sources, parts.domain, now).overall


async def _erase(parts: EngineParts, memories: Sequence[Memory], reason: str) -> None:
    if not memories:
        return
    token, now = parts.clock.token(), utc(parts.clock.now())
    keys = [memory_key(memory.tenant, memory.id) for memory in memories]
    gone = await parts.graph.forget(keys, token, now, reason)
    publish(parts, ChangeKind.FORGOTTEN, gone)
    try:
        await index_pending(parts, [PendingMemory(item.key, token, None) for item in gone])
    except StoreError as error:
        # recall asks the graph, where it is gone; the reconciler finishes the index
        log.warning("forgotten, index not yet", code=error.code, reason=error.message)


def _forgettable(memory: Memory, reason: str) -> Forgettable:
    return Forgettable(memory.id, memory.user_id, memory.kind, memory.text, reason)
