"""Memories as they stood when less was known: transaction time of bi-temporal data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from ecphoria.model import Memory, Status
from ecphoria.stores.ports import Expansion

HELD = frozenset({Status.ACTIVE, Status.SUPERSEDED})


def as_known(memory: Memory, moment: datetime) -> Memory | None:
    """Return a memory as it stood when only what was recorded by `moment` was known."""
    if memory.recorded_at > moment:
        return None
    for standing in memory.past:
        if moment < standing.until:
            return replace(memory, status=standing.status, valid_until=standing.valid_until)
    return memory


def as_then(
    expansion: Expansion, known_at: datetime | None, as_of: datetime, *, history: bool
) -> Expansion:
    """Return an expansion with memories as they stood at a moment; unchanged without one.

    Args:
        expansion: With what is no longer current, and what was taken back.
        known_at: Only what was known then.
        as_of: The moment they must hold at.
        history: Keep what no longer held then, too.
    """
    if known_at is None:
        return expansion

    def then(memories: Iterable[Memory]) -> tuple[Memory, ...]:
        stood = (as_known(memory, known_at) for memory in memories)
        return tuple(
            memory
            for memory in stood
            if memory is not None
            and memory.status in HELD
            and (holds(memory, as_of) or (history and memory.valid_from <= as_of))
        )

    return replace(expansion, seeds=then(expansion.seeds), others=then(expansion.others))


def holds(memory: Memory, moment: datetime) -> bool:
    """Whether a memory is true at a moment, as far as it says."""
    return memory.valid_from <= moment and (
        memory.valid_until is None or memory.valid_until > moment
    )
