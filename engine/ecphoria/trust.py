"""How far feedback moves what is believed. Pure, bounded, and a function of what stands.

It moves only how far something is believed: which value of an attribute holds, and what took
whose place, goes by what sources are declared to be worth (`timeline`). So no number of voices can
put a lesser source's word in the place of a better one's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ecphoria.model import Memory, SourceInfo

# What a person reads, and what a sum of binary fractions must not blur.
_DECIMALS: Final = 6


@dataclass(frozen=True, slots=True)
class TrustBounds:
    """How much feedback takes, and takes at most; all 0..1.

    Attributes:
        step: One WRONG, from the memory's source.
        per_key: All of one key, from one source.
        most: All keys, from one source.
        doubt: Each key, from one memory.
        most_doubt: All keys, from one memory.
    """

    step: float
    per_key: float
    most: float
    doubt: float
    most_doubt: float


def lowered(declared: float, wrong_by_key: Iterable[int], bounds: TrustBounds) -> float:
    """Return the reliability of a source after feedback, 0..1.

    Args:
        declared: Without feedback.
        wrong_by_key: How many of its memories each key calls wrong.
        bounds: How much that takes.
    """
    taken = sum(min(bounds.per_key, bounds.step * count) for count in wrong_by_key)
    return round(max(0.0, declared - min(bounds.most, taken)), _DECIMALS)


def doubt_of(keys: int, bounds: TrustBounds) -> float:
    """Return the doubt about a memory that so many keys call wrong, 0..1."""
    return round(min(bounds.most_doubt, bounds.doubt * keys), _DECIMALS)


def doubted(reliability: float, doubt: float) -> float:
    """Return how far a source is believed for a memory that feedback has cast doubt on, 0..1."""
    return max(0.0, reliability - doubt)


def believed(memory: Memory, sources: Mapping[str, SourceInfo]) -> float:
    """Return how far a memory's source is believed for it now, 0..1."""
    source = sources.get(memory.source_id)
    reliability = memory.reliability if source is None else source.reliability
    return round(doubted(reliability, memory.doubt), _DECIMALS)
