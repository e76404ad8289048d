"""What each stage did, and how long it took."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from ecphoria.model import TraceStep


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
    ) -> None:
        """Record a stage: what it handed on, and how many each rule dropped (zeros left out)."""
        now = time.perf_counter()
        kept = {rule: count for rule, count in (dropped or {}).items() if count}
        self.steps.append(TraceStep(stage, (now - self._since) * 1000, candidates, kept, note))
        self._since = now
