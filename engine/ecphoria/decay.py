"""How memories fade when nobody uses them. Pure formulas (source: the project's brief).

Freshness begins at 1, is multiplied by `per_day` (0.95) every day and grows by `on_use` (0.2) with
each use; under `archive_below` (0.1), or unused for `archive_unused_days` (30), a memory moves to
the archive, which is searched only when history is asked for.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from ecphoria_schema.domain import Decay

SECONDS_A_DAY = 86_400.0
HEAT_PER_DAY = 0.1


def days_between(earlier: datetime, later: datetime) -> float:
    """Return the days from one moment to another, 0 when it is not later."""
    return max(0.0, (later - earlier).total_seconds() / SECONDS_A_DAY)


def faded(freshness: float, since: datetime, now: datetime, decay: Decay) -> float:
    """Return the freshness now of what had `freshness` at `since`, 0..1."""
    return float(freshness * decay.per_day ** days_between(since, now))


def refreshed(freshness: float, since: datetime, now: datetime, decay: Decay, uses: int) -> float:
    """Return the freshness after so many uses at `now`, 1 at most."""
    return min(1.0, faded(freshness, since, now, decay) + decay.on_use * uses)


def archive_at(freshness: float, since: datetime, decay: Decay) -> datetime:
    """Return when a memory that is not used after `since` moves to the archive."""
    if freshness <= decay.archive_below:
        return since
    fading = math.log(decay.archive_below / freshness) / math.log(decay.per_day)
    return since + timedelta(days=min(fading, decay.archive_unused_days))


def heat(access_count: int, last_accessed_at: datetime | None, now: datetime) -> float:
    """Return access_count · e^(-0.1 · days since the last access)."""
    if last_accessed_at is None:
        return 0.0
    return access_count * math.exp(-HEAT_PER_DAY * days_between(last_accessed_at, now))
