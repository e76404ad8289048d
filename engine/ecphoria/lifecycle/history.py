"""What the value of an attribute is, was, and was thought to be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from ecphoria.errors import InvalidInput, UnknownProperty
from ecphoria.governance.access import readable_privacy
from ecphoria.governance.data_keys import KeyOwner
from ecphoria.governance.redaction import PLACEHOLDERS, redactor
from ecphoria.governance.reveal import reads_sensitive, shown_memories
from ecphoria.model import EntityRef, Memory, Scope, parse_time, utc
from ecphoria.parts import EngineParts
from ecphoria.recall.as_known import HELD, as_known, holds
from ecphoria.remember.claims import canonical, claim_key
from ecphoria.remember.normalise import MAX_QUOTED, check_ref, checked_subject
from ecphoria.remember.protect import hidden_subject
from ecphoria.timeline import said_value


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
    value = said_value(best)
    return AttributeHistory(
        tuple(memory for memory in valid if said_value(memory) == value),
        tuple(memory for memory in valid if said_value(memory) != value),
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
        msg = f"the domain {parts.domain.name} has no attribute {attribute[:MAX_QUOTED]!r}"
        raise UnknownProperty(msg, path=("attribute",))
    if declared.entity != entity.type:
        msg = f"{attribute} is of {declared.entity}, not of {entity.type}"
        raise InvalidInput(msg, path=("entity",))
    known = None if known_at is None else parse_time(known_at, "known_at")
    moment = utc(parts.clock.now()) if as_of is None else parse_time(as_of, "as_of")
    allowed = readable_privacy(scope)
    ref = canonical(entity, parts.domain)
    subject = None if subject is None else checked_subject(subject)
    subjects = [subject, *await _hidden_subjects(parts, scope, subject)]
    found = [
        memory
        for each in subjects
        for memory in await parts.graph.claimed(claim_key(scope.tenant, user, attribute, ref, each))
    ]
    seen = [memory for memory in found if memory.privacy in allowed]
    if known is not None:
        seen = [then for memory in seen if (then := as_known(memory, known)) is not None]
    history = values_at(seen, moment)
    shown = {
        memory.key: memory for memory in await shown_memories(parts.vault, scope, history.entries)
    }
    return AttributeHistory(
        tuple(shown[memory.key] for memory in history.current),
        tuple(shown[memory.key] for memory in history.conflicting),
        tuple(shown.values()),
    )


async def _hidden_subjects(
    parts: EngineParts, scope: Scope, subject: str | None
) -> tuple[str, ...]:
    """Return what stands for a subject where it is hidden."""
    if subject is None:
        return ()
    shown = [redactor(parts.domain).redacted(subject, lang=lang) for lang in ("en", "zh")]
    forms = dict.fromkeys(one for one in shown if one != subject)
    if reads_sensitive(scope):
        forms |= dict.fromkeys(PLACEHOLDERS["sensitive"].values())
    if not forms:
        return ()
    owner = KeyOwner(scope.tenant, compares=True)
    key = (await parts.vault.to_read([owner])).get(owner)
    return () if key is None else tuple(hidden_subject(one, subject, key) for one in forms)
