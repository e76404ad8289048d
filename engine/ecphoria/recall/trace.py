"""What each stage did, and how long it took."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from ecphoria.model import TraceStep


def told(**counts: int) -> str:
    """Return counts for people, e.g. ``38 memories, 1 entity``; of nothing, ``nothing``.

    Args:
        counts: How many, by the word for several; ``_`` stands for a blank. Zeros are left out.
    """
    return (
        ", ".join(
            f"{count:,} {_word(name.replace('_', ' '), count)}"
            for name, count in counts.items()
            if count
        )
        or "nothing"
    )


def _word(several: str, count: int) -> str:
    if count != 1 or not several.endswith("s"):
        return several
    return f"{several.removesuffix('ies')}y" if several.endswith("ies") else several[:-1]


@dataclass(slots=True)
class Trace:
    """Steps of one recall, in order; the time of a step is since the one before."""

    steps: list[TraceStep] = field(default_factory=list)
    _since: float = field(default_factory=time.perf_counter)

    def step(
        self,
        stage: str,
        candidates: int,
        dropped: Mapping[str, int] | None = None,
        note: str = "",
        *,
        came: str = "",
        went: str = "",
    ) -> None:
        """Record a stage.

        Args:
            stage: Its name.
            candidates: How many it handed on.
            dropped: How many each rule dropped; zeros are left out.
            note: What else is worth knowing.
            came: What came in, for people.
            went: What it handed on, for people.
        """
        now = time.perf_counter()
        kept = {rule: count for rule, count in (dropped or {}).items() if count}
        self.steps.append(
            TraceStep(stage, (now - self._since) * 1000, candidates, kept, note, came, went)
        )
        self._since = now
