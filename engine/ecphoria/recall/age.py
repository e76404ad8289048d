"""How old things are, and what age leaves of them."""

from __future__ import annotations

from datetime import datetime, timedelta

_DAY = timedelta(days=1)


def days_from(earlier: datetime, later: datetime) -> float:
    """Return the days from one moment to another, negative when they are the other way round."""
    return (later - earlier) / _DAY


def age_in_days(since: datetime, moment: datetime) -> float:
    """Return the age in days; what lies ahead is of age 0."""
    return max(0.0, days_from(since, moment))


def freshness(age_days: float, half_life_days: float) -> float:
    """Return 0.5 ^ (age / half-life): 1 for new, half after one half-life."""
    return float(0.5 ** (age_days / half_life_days))
