"""Choose which of a user's things a question means, when it tells them apart without names.

A name may fit several devices. The question then tells by a time ("bought in March"), by an order
("my latest repair") or by a description ("the one that leaked").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from ecphoria.language.time_words import TimeWindow
from ecphoria.model import Entity
from ecphoria.recall.neighbourhood import Neighbourhood
from ecphoria.recall.understand import Understanding
from ecphoria_schema.domain import Domain

# A description fits from here on, and others fit as well when they are nearly as near.
DESCRIBED = 0.45
_AS_NEAR = 0.05
# What is recorded a day ahead has happened somewhere.
_NOW = timedelta(days=1)


def described(entities: Iterable[Entity], domain: Domain) -> dict[str, str]:
    """Return, by key, the text that describes each entity that can be described."""
    found: dict[str, str] = {}
    for entity in entities:
        parts = [
            value
            for name in domain.entities[entity.type].described_by
            if isinstance(value := entity.props.get(name), str) and value
        ]
        if parts:
            found[entity.key] = " ".join(parts)
    return found


def may_describe(entity: Entity, wanted: Understanding, near: Neighbourhood) -> bool:
    """Whether what describes an entity can be what a question tells things apart by.

    Who names nothing can only describe it. The fault of a repair tells which of two laptops is
    meant where repairs or faults are spoken of, not where the question is what was in the box.
    """
    named = bool(near.specific(near.mentions))
    return not named or not wanted.topics or entity.type in wanted.answer_types


def may_be_described(near: Neighbourhood) -> bool:
    """Whether a description can tell more: not when exactly one thing is named."""
    return len(near.specific(near.mentions)) != 1


def focus(
    near: Neighbourhood,
    wanted: Understanding,
    fits: Mapping[str, float],
    *,
    domain: Domain,
    as_of: datetime,
) -> tuple[frozenset[str], str]:
    """Return keys of the things that a question means, and by what it tells; none = as named.

    Args:
        near: The neighbourhood of what the question names.
        wanted: What was understood of it.
        fits: How well each described entity fits the question, 0..1, by key.
        domain: Says which property tells an entity's time.
        as_of: The question's moment.
    """
    named = frozenset(near.specific(near.mentions))
    # what can be told apart at all: what is named, and what hangs below it
    pool = near.below(named) if named else frozenset(near.entities)
    chosen, how = _in_windows(near, wanted.windows, named, wanted.answer_types, domain)
    if chosen:
        pool = near.below(chosen)
    if wanted.order is not None:
        ordered = _in_order(near, pool, wanted, domain, as_of)
        if ordered:
            return ordered, f"{wanted.order} of its kind"
    if chosen:
        return chosen, how
    if not may_be_described(near):
        return frozenset(), ""
    return _as_described(pool, fits), "as described"


def _time(entity: Entity, domain: Domain) -> datetime | None:
    by = domain.newest_by.get(entity.type)
    value = entity.props.get(by) if by else None
    return value if isinstance(value, datetime) else None


def _within(moment: datetime | None, windows: Sequence[TimeWindow]) -> bool:
    return moment is not None and any(
        (window.start is None or window.start <= moment)
        and (window.end is None or moment < window.end)
        for window in windows
    )


def _in_windows(
    near: Neighbourhood,
    windows: Sequence[TimeWindow],
    named: frozenset[str],
    answer_types: Sequence[str],
    domain: Domain,
) -> tuple[frozenset[str], str]:
    if not windows:
        return frozenset(), ""
    how = "in the time asked for"
    timed = {
        key for key, entity in near.entities.items() if _within(_time(entity, domain), windows)
    }
    if named:
        # bought then, or else: something happened to it then
        bought = {key for key in named if near.above(key) & timed}
        return frozenset(bought or {key for key in named if near.below({key}) & timed}), how
    asked = {key for key in timed if near.entities[key].type in answer_types}
    return frozenset(asked), how


def _in_order(
    near: Neighbourhood,
    pool: frozenset[str],
    wanted: Understanding,
    domain: Domain,
    as_of: datetime,
) -> frozenset[str]:
    for type_ in dict.fromkeys((*wanted.order_types, *wanted.answer_types)):
        times = {
            key: moment
            for key in pool
            if near.entities[key].type == type_
            and (moment := _time(near.entities[key], domain)) is not None
        }
        # what may lie ahead (the end of a warranty) is no event that one counts
        if not times or max(times.values()) > as_of + _NOW:
            continue
        best = max(times.values()) if wanted.order == "latest" else min(times.values())
        return frozenset(key for key, moment in times.items() if moment == best)
    return frozenset()


def _as_described(pool: frozenset[str], fits: Mapping[str, float]) -> frozenset[str]:
    near = {key: fit for key, fit in fits.items() if key in pool and fit >= DESCRIBED}
    best = max(near.values(), default=0.0)
    return frozenset(key for key, fit in near.items() if fit >= best - _AS_NEAR)
