"""Expansion paths: the notation ``User-PLACED[5]->Order-CONTAINS->Device, Device-…`` parsed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

DEFAULT_CAP = 5
MAX_CAP = 100

_STEP = re.compile(
    r"\s*-\s*([A-Z][A-Z0-9_]*)\s*(?:\[\s*([0-9]+)\s*\])?\s*->\s*([A-Z][A-Za-z0-9]*)\s*"
)
_START = re.compile(r"\s*([A-Z][A-Za-z0-9]*)\s*")


class WalkError(ValueError):
    """A walk that cannot be read or does not hang together."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One step of a walk.

    Attributes:
        start: Type it starts at.
        relation: Relation type, followed in its own direction.
        end: Type it ends at.
        cap: How many ends are kept for one start.
        start_step: Name of the step it continues, e.g. ``Device``.
        end_step: Name of the step it makes; the second visit of a type is ``Order_2``.

    """

    start: str
    relation: str
    end: str
    cap: int
    start_step: str
    end_step: str


@dataclass(frozen=True, slots=True)
class Walk:
    """A tree of hops from a root type, parents before children."""

    root: str
    hops: tuple[Hop, ...]

    @property
    def steps(self) -> tuple[str, ...]:
        """Names of all steps, the root first."""
        return (self.root, *(hop.end_step for hop in self.hops))

    @property
    def types(self) -> tuple[str, ...]:
        """Types visited, each once, the root first."""
        return tuple(dict.fromkeys((self.root, *(hop.end for hop in self.hops))))


@dataclass(slots=True)
class _Reader:
    """Reads chains one after the other and keeps what the walk has visited so far."""

    root: str = ""
    hops: list[Hop] = field(default_factory=list)
    visits: dict[str, int] = field(default_factory=dict)

    def chain(self, text: str) -> None:
        match = _START.match(text)
        if match is None:
            msg = f"expected an entity type at {text.strip()!r}"
            raise WalkError(msg)
        start = match[1]
        if not self.root:
            self.root = start
            self.visits[start] = 1
        elif start not in self.visits:
            msg = f"{start} is not reached before it is left again in {text.strip()!r}"
            raise WalkError(msg)
        position = match.end()
        if position == len(text):
            msg = f"nothing follows {start} in {text.strip()!r}"
            raise WalkError(msg)
        step = start
        while position < len(text):
            match = _STEP.match(text, position)
            if match is None:
                msg = f"expected -RELATION->Type at {text[position:].strip()!r}"
                raise WalkError(msg)
            relation, cap, end = match.groups()
            position = match.end()
            start, step = end, self._hop(start, step, relation, end, _cap(relation, cap))

    def _hop(self, start: str, start_step: str, relation: str, end: str, cap: int | None) -> str:
        for hop in self.hops:
            if (hop.start_step, hop.relation, hop.end) == (start_step, relation, end):
                if cap not in {None, hop.cap}:
                    msg = f"{relation} has two caps, {hop.cap} and {cap}"
                    raise WalkError(msg)
                return hop.end_step
        if end in self.visits and cap is None:
            msg = f"{end} is visited again by {relation}: give the hop a cap, {relation}[n]"
            raise WalkError(msg)
        visit = self.visits[end] = self.visits.get(end, 0) + 1
        end_step = end if visit == 1 else f"{end}_{visit}"
        self.hops.append(
            Hop(start, relation, end, DEFAULT_CAP if cap is None else cap, start_step, end_step)
        )
        return end_step


def _cap(relation: str, digits: str | None) -> int | None:
    if digits is None:
        return None
    # no int() of digits without end: Python refuses more than 4300
    significant = digits.lstrip("0") or "0"
    if len(significant) > len(str(MAX_CAP)) or not 1 <= int(significant) <= MAX_CAP:
        msg = f"the cap of {relation} is {significant[:12]}; it must be 1 to {MAX_CAP}"
        raise WalkError(msg)
    return int(significant)


def parse_walk(text: str) -> Walk:
    """Parse a walk.

    Chains are separated by commas; a later chain continues the first visit of its start type.
    ``[n]`` after a relation caps the hop. A hop to a type already visited (a cycle or a second
    way) must have a cap of its own.

    Raises:
        WalkError: For a syntax error, a chain that starts nowhere, a second visit without cap,
            or one hop with two caps.

    """
    reader = _Reader()
    for chain in text.split(","):
        reader.chain(chain)
    return Walk(reader.root, tuple(reader.hops))
