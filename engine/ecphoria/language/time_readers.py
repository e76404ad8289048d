"""Read the parts of a time word into the days and hours it means at a moment."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Final, TypeAlias, cast

from ecphoria.language.counts import chinese_number, count_of
from ecphoria.language.periods import (
    Period,
    Unit,
    ago,
    days,
    latest_day,
    latest_month,
    latest_weekday,
    months,
    recent,
    shifted,
    third_of,
    week,
    years,
)

# What a pattern has matched, and the local moment it is said -> what it means; a ValueError or
# OverflowError where there is no such day.
Reader: TypeAlias = Callable[[re.Match[str], datetime], Period | None]

WEEKDAYS: Final = (
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CENTURY = 100
_UNITS: Final[dict[str, Unit]] = {
    "分钟": "minute",
    "小时": "hour",
    "钟头": "hour",
    "天": "day",
    "日": "day",
    "周": "week",
    "星期": "week",
    "礼拜": "week",
    "月": "month",
    "季度": "quarter",
    "年": "year",
    "min": "minute",
}
_RELATIVE_YEARS = {
    "大前年": -3,
    "前年": -2,
    "去年": -1,
    "last": -1,
    "今年": 0,
    "本年": 0,
    "this": 0,
}
_RELATIVE_DAYS = {
    "大前天": -3,
    "前天": -2,
    "前日": -2,
    "前晚": -2,
    "昨": -1,
    "yesterday": -1,
    "今": 0,
    "today": 0,
}
_THIRDS = {
    "初": "early",
    "上旬": "early",
    "early": "early",
    "start": "early",
    "beginning": "early",
    "中": "mid",
    "中旬": "mid",
    "mid": "mid",
    "middle": "mid",
    "底": "late",
    "末": "late",
    "下旬": "late",
    "late": "late",
    "end": "late",
}
_QUARTERS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": 4}


def _said(match: re.Match[str], group: str) -> str | None:
    return match.groupdict().get(group)


def _year(match: re.Match[str], now: datetime) -> int | None:
    """Return the year that is said; None when none is.

    Raises:
        ValueError: When it is one to come.
    """
    if year := _said(match, "y"):
        number = chinese_number(year)
        # "25年3月"
        return number if number >= _CENTURY else 2000 + number
    if (relative := _said(match, "ry")) is None:
        return None
    if relative not in _RELATIVE_YEARS:
        msg = f"{relative} is no year of the past"
        raise ValueError(msg)
    return now.year + _RELATIVE_YEARS[relative]


def _month_number(written: str) -> int:
    return (
        _MONTHS.index(written[:3]) + 1
        if written[0].isalpha() and written.isascii()
        else (chinese_number(written))
    )


def _third(match: re.Match[str], whole: Period) -> Period:
    words = _said(match, "third")
    if words is None:
        return whole
    name = next(third for word, third in _THIRDS.items() if word in words.split() or word == words)
    if whole.end - whole.start < timedelta(days=32):
        return third_of(whole, name)
    # of a year
    return months(whole.start.year, *{"early": (1, 3), "mid": (5, 4), "late": (10, 3)}[name])


def read_nothing(_match: re.Match[str], _now: datetime) -> None:
    """Read what is to come, or a habit: a question is about what was."""


def read_date(match: re.Match[str], now: datetime) -> Period | None:
    """Read a month, or a day of it, with or without its year."""
    year, month = _year(match, now), _month_number(match["m"])
    if (day := _said(match, "d")) is None:
        whole = latest_month(now.date(), month) if year is None else months(year, month)
        return _third(match, whole)
    number = chinese_number(day)
    if year is not None:
        return days(date(year, month, number)).part(_said(match, "part"))
    found = latest_day(now.date(), month, number)
    return found and found.part(_said(match, "part"))


def read_relative_month(match: re.Match[str], now: datetime) -> Period | None:
    """Read "last month", 上个月 and a day or third of it."""
    back = {"上上": 2, "上": 1, "last": 1, "previous": 1}.get(match["rel"].rstrip("一个"), 0)
    first = shifted(now.date().replace(day=1), -back)
    if day := _said(match, "d"):
        return days(first.replace(day=chinese_number(day))).part(_said(match, "part"))
    return _third(match, months(first.year, first.month))


def read_past_month(match: re.Match[str], now: datetime) -> Period:
    """Read "last March", "this March"."""
    month = _month_number(match["m"])
    if match["rel"] == "last":
        return replace(latest_month(now.date(), month, past=True), year_said=True)
    return months(now.year, month)


def read_whole_year(match: re.Match[str], now: datetime) -> Period | None:
    """Read a year, a half or a part of it."""
    year = _year(match, now)
    if year is None:
        return None
    half = _said(match, "half")
    if half is not None:
        return months(year, 7 if half in {"下", "second", "latter"} else 1, 6)
    return _third(match, years(year))


def read_quarter(match: re.Match[str], now: datetime) -> Period:
    """Read a quarter by its number."""
    year, written = _year(match, now), _said(match, "q") or match["q2"]
    number = _QUARTERS.get(written) or chinese_number(written)
    if year is not None:
        return months(year, 3 * number - 2, 3)
    later = 3 * number - 2 > now.month
    found = months(now.year - later, 3 * number - 2, 3)
    return replace(found, year_said=False)


def read_relative_quarter(match: re.Match[str], now: datetime) -> Period:
    """Read "last quarter", 本季度."""
    first = date(now.year, (now.month - 1) // 3 * 3 + 1, 1)
    start = shifted(first, -3 if match["rel"].rstrip("一个") in {"上", "last", "previous"} else 0)
    return months(start.year, start.month, 3)


def read_half_year(match: re.Match[str], now: datetime) -> Period:
    """Read 上半年, 下半年: the latest that has begun."""
    month = 7 if match["half"] == "下" else 1
    return replace(months(now.year - (month > now.month), month, 6), year_said=False)


def read_part_of_this_year(match: re.Match[str], now: datetime) -> Period:
    """Read 年初, 年底: the latest that has begun."""
    part = _third(match, years(now.year))
    return part if part.start <= now else _third(match, years(now.year - 1))


def read_week(match: re.Match[str], now: datetime) -> Period:
    """Read a week, or a day of it."""
    back = {"上上": -2, "上": -1, "last": -1, "previous": -1}.get(match["rel"], 0)
    weekday = _said(match, "wd")
    whole = week(now.date(), back)
    if weekday is None:
        return whole
    first = whole.start.date()
    if weekday in {"末", "weekend"}:
        return days(first + timedelta(days=5), 2)
    return days(first + timedelta(days=_weekday_number(weekday))).part(_said(match, "part"))


def read_weekend(match: re.Match[str], now: datetime) -> Period:
    """Read "last weekend"."""
    first = week(now.date(), -1 if match["rel"] in {"last", "previous"} else 0).start.date()
    return days(first + timedelta(days=5), 2)


def _weekday_number(written: str) -> int:
    if written.isascii() and written.isalpha():
        return next(place for place, name in enumerate(WEEKDAYS) if name.startswith(written[:3]))
    return 6 if written in {"日", "天", "7"} else chinese_number(written) - 1


def read_weekday(match: re.Match[str], now: datetime) -> Period:
    """Read a day of the week: the latest."""
    past = _said(match, "rel") in {"last", "past"}
    found = latest_weekday(now.date(), _weekday_number(match["wd"]), past=past)
    return found.part(_said(match, "part"))


def read_day(match: re.Match[str], now: datetime) -> Period:
    """Read "yesterday", 昨晚 and the like."""
    written = match["day"]
    shift = _RELATIVE_DAYS.get(written, _RELATIVE_DAYS.get(written[:1], 0))
    part = _said(match, "part") or {"晚": "晚上", "夜": "夜里", "早": "早上", "晨": "早上"}.get(
        written[-1]
    )
    return days(now.date() + timedelta(days=shift)).part(part)


def read_day_before_yesterday(match: re.Match[str], now: datetime) -> Period:
    """Read "the day before yesterday"."""
    return days(now.date() - timedelta(days=2)).part(_said(match, "part"))


def read_last_night(_match: re.Match[str], now: datetime) -> Period:
    """Read "last night"."""
    return days(now.date() - timedelta(days=1)).part("night")


def read_today_part(match: re.Match[str], now: datetime) -> Period:
    """Read "tonight", "this morning"."""
    return days(now.date()).part(_said(match, "part") or "night")


def read_day_of_month(match: re.Match[str], now: datetime) -> Period:
    """Read 25号, "the 25th": the latest."""
    number, first = chinese_number(match["d"]), now.date().replace(day=1)
    # up to two months back: the month before may have no such day
    for back in range(3):
        month = shifted(first, -back)
        try:
            found = month.replace(day=number)
        except ValueError:
            continue
        if found <= now.date():
            return days(found).part(_said(match, "part"))
    msg = f"no month has a day {number}"
    raise ValueError(msg)


def _amount(match: re.Match[str]) -> tuple[float | None, Unit]:
    written = match["u"]
    name = written.replace("个", "").replace("半", "")
    unit = _UNITS.get(name) or cast("Unit", name)
    count = count_of(_said(match, "n") or "a")
    if unit == "year" and count is not None and count < 1:
        return 6, "month"
    return count if count is None or "半" not in written else count + 0.5, unit


def read_ago(match: re.Match[str], now: datetime) -> Period:
    """Read "two weeks ago"."""
    return ago(now, *_amount(match))


def read_recent(match: re.Match[str], now: datetime) -> Period:
    """Read "the past two weeks"."""
    return recent(now, *_amount(match))


def read_week_before_last(_match: re.Match[str], now: datetime) -> Period:
    """Read "the week before last"."""
    return week(now.date(), -2)


def read_the_other_day(_match: re.Match[str], now: datetime) -> Period:
    """Read "the other day"."""
    return ago(now, None, "day")


def read_iso(match: re.Match[str], _now: datetime) -> Period:
    """Read 2025-03-05, 2025-03."""
    year, month, day = int(match["y"]), int(match["m"]), _said(match, "d")
    return months(year, month) if day is None else days(date(year, month, int(day)))
