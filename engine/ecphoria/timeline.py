"""Which of several values of one attribute holds when. Pure, and blind to the order of arrival.

All memories that give a value of the same attribute of the same entity for the same user compete.
What follows is a function of the set of them: however they came in, alone or in bulk, late or
twice, the same ones are current, history or in conflict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ecphoria.language.folding import fold
from ecphoria.model import Memory, Status


def said_value(memory: Memory) -> str:
    """Return what the value that a memory gives is compared by; a hidden one by its hash."""
    return memory.value_hash or fold(memory.value or "")


@dataclass(frozen=True, slots=True)
class Replacement:
    """A memory that was said, by a writer or by hand, to take another one's place."""

    key: str
    valid_from: datetime


@dataclass(frozen=True, slots=True)
class Claimant:
    """A memory that gives the value of an attribute, or one that was replaced by name.

    Attributes:
        value: Folded; equal values do not compete.
        stated_until: End of validity as its writer gave it.
        fixed_until: An end that no other memory can move.
        number: Order of recording; settles what time and reliability leave open.
        replaced_by: Memories that were said to take its place.
    """

    key: str
    value: str
    valid_from: datetime
    stated_until: datetime | None
    fixed_until: datetime | None
    reliability: float
    number: int
    replaced_by: tuple[Replacement, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a memory stands among the others.

    Attributes:
        valid_until: When it stops, or stopped, to be true; None = open.
        superseded_by: Key of the memory that ended it by giving another value.
        conflicts_with: Keys of more reliable memories that it contradicts while they hold.
    """

    status: Status
    valid_until: datetime | None
    superseded_by: str | None = None
    conflicts_with: tuple[str, ...] = ()


def _earliest(*ends: datetime | None) -> datetime | None:
    return min((end for end in ends if end is not None), default=None)


def _order(item: Claimant) -> tuple[datetime, float, int, str]:
    return item.valid_from, item.reliability, item.number, item.key


def _end_by_name(item: Claimant) -> datetime | None:
    """Return when what was said to replace it ends it; a correction leaves nothing of it."""
    return min((max(item.valid_from, by.valid_from) for by in item.replaced_by), default=None)


def _is_void(item: Claimant) -> bool:
    end = _earliest(item.fixed_until, _end_by_name(item))
    return end is not None and end <= item.valid_from


def places(claimants: Iterable[Claimant]) -> Mapping[str, Place]:
    """Return where each memory of one attribute stands.

    A value ends where the first newer, at least as reliable memory gives another one. A newer but
    less reliable one does not end it: both stay, in conflict for as long as both hold.
    """
    ordered = sorted(claimants, key=_order)
    # what never held ends nothing
    alive = [item for item in ordered if not _is_void(item)]
    ends: dict[str, tuple[datetime | None, str | None]] = {}
    for place, item in enumerate(alive):
        by = next(
            (
                newer
                for newer in alive[place + 1 :]
                if newer.value != item.value and newer.reliability >= item.reliability
            ),
            None,
        )
        end = _earliest(
            item.stated_until,
            item.fixed_until,
            _end_by_name(item),
            None if by is None else by.valid_from,
        )
        ends[item.key] = end, None if by is None else by.key
    found: dict[str, Place] = {}
    for item in ordered:
        if item.key not in ends:
            found[item.key] = alone(item)
            continue
        end, by_key = ends[item.key]
        replaced = by_key is not None or bool(item.replaced_by) or item.fixed_until is not None
        found[item.key] = Place(
            Status.SUPERSEDED if replaced else Status.ACTIVE,
            end,
            by_key,
            _contradicted(item, alive, ends),
        )
    return found


def _contradicted(
    item: Claimant,
    alive: Sequence[Claimant],
    ends: Mapping[str, tuple[datetime | None, str | None]],
) -> tuple[str, ...]:
    end = ends[item.key][0]
    if end is not None and end <= item.valid_from:
        return ()
    return tuple(
        older.key
        for older in alive
        if _order(older) < _order(item)
        and older.value != item.value
        and older.reliability > item.reliability
        and _holds_after(ends[older.key][0], item.valid_from)
    )


def _holds_after(end: datetime | None, moment: datetime) -> bool:
    return end is None or end > moment


def alone(item: Claimant) -> Place:
    """Return where a memory stands that competes with none, or that never held."""
    end = _earliest(item.stated_until, item.fixed_until, _end_by_name(item))
    replaced = bool(item.replaced_by) or item.fixed_until is not None
    return Place(Status.SUPERSEDED if replaced else Status.ACTIVE, end)


def may_replace(newer: float, older: float, *, by_hand: bool) -> bool:
    """Whether a memory may take another's place by name: not on the word of a lesser source.

    Args:
        newer: Reliability of the source of the one, 0..1.
        older: Reliability of the source of the other, 0..1.
        by_hand: Said by somebody who may overrule sources.
    """
    return by_hand or newer >= older
