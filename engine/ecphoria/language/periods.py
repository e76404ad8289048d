"""Local stretches of time: days, weeks, months and years around a moment."""

from __future__ import annotations

import calendar
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import Literal, TypeAlias

Unit: TypeAlias = Literal["minute", "hour", "day", "week", "month", "quarter", "year"]

# From when to when a part of the day is, in hours from midnight; a night ends on the next day.
DAY_PARTS = {
    "凌晨": (0, 6),
    "清晨": (4, 9),
    "早晨": (5, 11),
    "早上": (5, 11),
    "上午": (5, 12),
    "中午": (11, 14),
    "下午": (12, 18),
    "傍晚": (16, 20),
    "晚上": (18, 30),
    "夜里": (18, 30),
    "morning": (5, 12),
    "noon": (11, 14),
    "afternoon": (12, 18),
    "evening": (17, 24),
    "night": (18, 30),
}
# "two weeks ago" is some day around then: so many days before and after it count
_LEEWAY_DAYS = {"week": 3, "month": 15, "quarter": 45, "year": 183}
_MONTHS_IN = {"month": 1, "quarter": 3, "year": 12}
# "a few" is from two to so many
_FEW = 9


@dataclass(frozen=True, slots=True)
class Period:
    """From when to when, in local time without a zone; the end is not part of it.

    Attributes:
        year_said: Whether the text says of which year it is.
    """

    start: datetime
    end: datetime
    year_said: bool = True

    def in_year(self, year: int) -> Period:
        """Return the same days of another year.

        Raises:
            ValueError: When that year has no such day.
        """
        years = year - self.start.year
        return replace(
            self,
            start=self.start.replace(year=year),
            end=self.end.replace(year=self.end.year + years),
        )

    def part(self, name: str | None) -> Period:
        """Return a part of the day, e.g. ``afternoon``; the whole day without a name."""
        if name is None:
            return self
        first, last = DAY_PARTS[name]
        return replace(
            self, start=self.start + timedelta(hours=first), end=self.start + timedelta(hours=last)
        )


def days(first: date, count: int = 1) -> Period:
    """Return so many whole days."""
    start = datetime.combine(first, time())
    return Period(start, start + timedelta(days=count))


def week(day: date, weeks: int = 0) -> Period:
    """Return the week of a day, from Monday on, or one so many weeks later."""
    return days(day - timedelta(days=day.weekday()) + timedelta(weeks=weeks), 7)


def shifted(day: date, months: int) -> date:
    """Return the day so many months later, the last of the month where it has no such day."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    last = calendar.monthrange(year, month + 1)[1]
    return date(year, month + 1, min(day.day, last))


def months(year: int, month: int, count: int = 1) -> Period:
    """Return so many whole months."""
    first = date(year, month, 1)
    return Period(datetime.combine(first, time()), datetime.combine(shifted(first, count), time()))


def years(year: int) -> Period:
    """Return a whole year."""
    return months(year, 1, 12)


def third_of(month: Period, name: str) -> Period:
    """Return the first (``early``), second or last (``late``) ten days of a month."""
    first = month.start + timedelta(days={"early": 0, "mid": 10, "late": 20}[name])
    return replace(month, start=first, end=month.end if name == "late" else first + timedelta(10))


def latest_month(today: date, month: int, *, past: bool = False) -> Period:
    """Return the latest such month that is not in the future, nor this one if it must be past."""
    later = month > today.month or (past and month == today.month)
    return replace(months(today.year - later, month), year_said=False)


def latest_day(today: date, month: int, day: int) -> Period | None:
    """Return the latest such day that is not in the future; None if there is no such day."""
    # 29 February may be up to eight years back
    for year in range(today.year, max(today.year - 9, 0), -1):
        if 1 <= day <= calendar.monthrange(year, month)[1] and date(year, month, day) <= today:
            return replace(days(date(year, month, day)), year_said=False)
    return None


def latest_weekday(today: date, weekday: int, *, past: bool = False) -> Period:
    """Return the latest such day of the week (0 = Monday), before today if it must be past."""
    back = (today.weekday() - weekday) % 7
    return days(today - timedelta(days=back or 7 * past))


def _back(now: datetime, count: float, unit: Unit) -> date:
    if unit in {"day", "week"}:
        return now.date() - timedelta(days=count * (7 if unit == "week" else 1))
    whole = int(count * _MONTHS_IN[unit])
    rest = count * _MONTHS_IN[unit] - whole
    return shifted(now.date(), -whole) - timedelta(days=30 * rest)


def ago(now: datetime, count: float | None, unit: Unit) -> Period:
    """Return when "so many units ago" is.

    Args:
        now: The moment it is said.
        count: How many; None = a few.
        unit: Of what.
    """
    if unit in {"minute", "hour"}:
        size = timedelta(hours=1) if unit == "hour" else timedelta(minutes=1)
        if count is None:
            return Period(now - _FEW * size, now - size)
        leeway = size / 2 if unit == "hour" else 5 * size
        return Period(now - count * size - leeway, now - count * size + leeway)
    if count is None:
        return Period(days(_back(now, _FEW, unit)).start, days(_back(now, 1, unit)).end)
    middle, leeway_days = _back(now, count, unit), _LEEWAY_DAYS.get(unit, 0)
    return days(middle - timedelta(days=leeway_days), 2 * leeway_days + 1)


def recent(now: datetime, count: float | None, unit: Unit) -> Period:
    """Return the last so many units up to now, today included; None = a few."""
    end = days(now.date()).end
    if unit in {"minute", "hour"}:
        size = timedelta(hours=1) if unit == "hour" else timedelta(minutes=1)
        return Period(now - (_FEW if count is None else count) * size, end)
    return Period(days(_back(now, _FEW if count is None else count, unit)).start, end)
