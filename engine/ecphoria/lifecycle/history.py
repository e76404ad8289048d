"""What the value of an attribute is, was, and was thought to be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from ecphoria.errors import InvalidInput, UnknownProperty
from ecphoria.governance.access import readable_privacy
from ecphoria.language.folding import fold
from ecphoria.model import EntityRef, Memory, Scope, parse_time, utc
from ecphoria.parts import EngineParts
from ecphoria.recall.as_known import HELD, as_known, holds
from ecphoria.remember.claims import canonical, claim_key
from ecphoria.remember.normalise import check_ref


@dataclass(frozen=True, slots=True)
class AttributeHistory:
    """The values of one attribute of one entity.

    Attributes:
        current: Memories that give the value which holds at the moment asked for; several when
            it was said again.
        conflicting: Memories that give another value then, from a less reliable source.
        entries: All that was known, the oldest value first.
    """

    current: tuple[Memory, ...]
    conflicting: tuple[Memory, ...]
    entries: tuple[Memory, ...]


def values_at(memories: Iterable[Memory], as_of: datetime) -> AttributeHistory:
    """Return which values hold at a moment. Of several, the most reliable, then the newest."""
    entries = sorted(
        (memory for memory in memories if memory.status in HELD),
        key=lambda memory: (memory.valid_from, memory.claim_number, memory.key),
    )
    valid = [memory for memory in entries if holds(memory, as_of)]
    if not valid:
        return AttributeHistory((), (), tuple(entries))
    best = max(valid, key=lambda one: (one.reliability, one.valid_from, one.claim_number, one.key))
    value = fold(best.value or "")
    return AttributeHistory(
        tuple(memory for memory in valid if fold(memory.value or "") == value),
        tuple(memory for memory in valid if fold(memory.value or "") != value),
        tuple(entries),
    )


async def attribute_history(
    parts: EngineParts,
    scope: Scope,
    user_id: str,
    entity: EntityRef,
    attribute: str,
    *,
    subject: str | None,
    as_of: datetime | None,
    known_at: datetime | None,
) -> AttributeHistory:
    """Return the values of an attribute; see `Engine.attribute_history`."""
    user = scope.user(user_id)
    check_ref(entity, parts.domain)
    declared = parts.domain.attributes.get(attribute)
    if declared is None:
        msg = f"the domain {parts.domain.name} has no attribute {attribute!r}"
        raise UnknownProperty(msg, path=("attribute",))
    if declared.entity != entity.type:
        msg = f"{attribute} is of {declared.entity}, not of {entity.type}"
        raise InvalidInput(msg, path=("entity",))
    known = None if known_at is None else parse_time(known_at, "known_at")
    moment = utc(parts.clock.now()) if as_of is None else parse_time(as_of, "as_of")
    allowed = readable_privacy(scope)
    ref = canonical(entity, parts.domain)
    found = await parts.graph.claimed(claim_key(scope.tenant, user, attribute, ref, subject))
    seen = [memory for memory in found if memory.privacy in allowed]
    if known is not None:
        seen = [then for memory in seen if (then := as_known(memory, known)) is not None]
    return values_at(seen, moment)
