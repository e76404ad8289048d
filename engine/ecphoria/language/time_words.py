"""What a text says about when: dates, days, weeks, months, as windows of time.

Libraries were measured first: dateparser takes 1 to 6 ms a question, gives moments and not
windows, and reads little Chinese. A question must be understood in 5 ms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo

from ecphoria.language.folding import is_han
from ecphoria.language.periods import Period
from ecphoria.language.time_patterns import tables
from ecphoria.language.time_readers import Reader
from ecphoria.language.words import flattened

# What stands in the place of a time word that was read; no letter of any language.
TAKEN: Final = "\x00"

_KEPT_TEXTS, _KEPT_CHARS = 128, 2_000
# What opens an end of a window stands within so many characters of the time word.
_NEAR = 24
_L = r"(?<![a-z0-9])"


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """From when to when, in UTC; the end is not part of it.

    Attributes:
        start: None = from ever.
        end: None = with no end.
        text: The words that say so, folded; empty where the caller fixed it.
    """

    start: datetime | None
    end: datetime | None
    text: str = ""

    def __str__(self) -> str:
        """Return it as a person would write it down."""
        start, end = (
            "" if moment is None else f"{moment:%Y-%m-%dT%H:%MZ}"
            for moment in (self.start, self.end)
        )
        return f"{start}..{end}" + (f" ({self.text})" if self.text else "")


@dataclass(frozen=True, slots=True)
class TimeWord:
    """Where a time word stands in a flattened text, and what it means at a moment."""

    start: int
    end: int
    match: re.Match[str]
    read: Reader

    def period(self, now: datetime) -> Period | None:
        """Return what it means at a local moment; None for no day of the past or none at all."""
        try:
            return self.read(self.match, now)
        except (ValueError, OverflowError):
            # 31 February, or before the year 1
            return None


_MAY_BE_TIME: Final = re.compile(
    r"[\d年月日天周号前晚早夜晨]|星期|礼拜|季度|小时|分钟|钟头|[a-z]{3}|q[1-4]"
)

# What stands right before or after a time word and opens one of its ends.
_SINCE = re.compile(rf"(?:{_L}(?:ever )?since|自从|自) ?$")
_FROM = re.compile(rf"(?:{_L}(?:starting )?from|从|打) ?$")
_ON = re.compile(r"^ ?(?:onwards?(?![a-z])|on(?= |$)|起(?![床火来初])|开始|就|一直|以来)")
_UP_TO_NOW = re.compile(
    r"^ ?(?:以来|至今|(?:一直)?[到至] ?(?:现在|今|目前)"
    r"|(?:to|until|till|up to) (?:now|today|date)(?![a-z]))"
)
_BEFORE = re.compile(rf"{_L}(?:before|prior to|earlier than) $")
_IS_BEFORE = re.compile(r"^ ?(?:之前|以前|前(?![台面置摄门往后天几两]))")
_UNTIL = re.compile(rf"(?:{_L}(?:until|till?|up to|by|through)|截至|截止到?|直到) ?$")
_IS_UNTIL = re.compile(r"^ ?(?:为止|截止)")
_AFTER = re.compile(rf"{_L}(?:after|later than) $")
_IS_AFTER = re.compile(r"^ ?(?:之后|以后|后(?!来|[盖置壳背台面摄门天续半]))")
_BETWEEN = re.compile(rf"{_L}between $")
_THROUGH = re.compile(r" ?(?:到|至|~|-|–|—|to|until|till?|through) ?(?:the )?")
_AND = re.compile(r" ?(?:and|和|与) ?(?:the )?")


def time_words(flat: str) -> tuple[TimeWord, ...]:
    """Return the time words of a flattened text, in its order; no two overlap."""
    return _lately_read(flat) if len(flat) <= _KEPT_CHARS else _found(flat)


def blanked(flat: str) -> str:
    """Return a flattened text with its time words blanked out, every character in its place."""
    return _without(flat, time_words(flat))


def _without(text: str, words: Iterable[TimeWord]) -> str:
    chars = list(text)
    for word in words:
        chars[word.start : word.end] = TAKEN * (word.end - word.start)
    return "".join(chars)


def _found(flat: str) -> tuple[TimeWord, ...]:
    if not _MAY_BE_TIME.search(flat):
        return ()
    of_any, chinese, english = tables()
    rows = [*of_any]
    if is_han(flat):
        rows += chinese
    if re.search(r"[a-z]", flat):
        rows += english
    left = flat
    words: list[TimeWord] = []
    for pattern, read in rows:
        if taken := list(_matches(pattern, read, left)):
            left = _without(left, taken)
            words += taken
    return tuple(sorted(words, key=lambda word: word.start))


def _matches(pattern: re.Pattern[str], read: Reader, text: str) -> Iterator[TimeWord]:
    for match in pattern.finditer(text):
        group = "core" if "core" in pattern.groupindex else 0
        start, end = match.span(group)
        if end > start:
            yield TimeWord(start, end, match, read)


_lately_read = lru_cache(maxsize=_KEPT_TEXTS)(_found)


def time_windows(text: str, now: datetime, time_zone: ZoneInfo) -> tuple[TimeWindow, ...]:
    """Return the windows that a text speaks of, in its order.

    A month or day without a year is the latest one that is not in the future: questions are about
    the past. Durations (within 30 days), times of day alone (after 18:00) and what is to come
    (tomorrow) are no windows.

    Args:
        text: In Chinese or English, or both.
        now: When it is said, with a zone.
        time_zone: Of whoever says it: where his days begin.
    """
    flat = flattened(text)
    words = time_words(flat)
    if not words:
        return ()
    try:
        local = now.astimezone(time_zone).replace(tzinfo=None)
    except OverflowError:
        # at the ends of the calendar
        return ()
    known = [(word, period) for word in words if (period := word.period(local)) is not None]
    windows: dict[tuple[datetime | None, datetime | None], TimeWindow] = {}
    place = 0
    while place < len(known):
        word, period = known[place]
        window = None
        if place + 1 < len(known):
            window = _range(flat, known[place], known[place + 1], time_zone)
        place += 1 if window is None else 2
        window = window or _window(flat, word, period, time_zone)
        if window is not None:
            windows.setdefault((window.start, window.end), window)
    return tuple(windows.values())


_Known: TypeAlias = tuple[TimeWord, Period]


def _range(flat: str, first: _Known, last: _Known, time_zone: ZoneInfo) -> TimeWindow | None:
    """Return the window from one time word to the other where the text says so."""
    between = flat[first[0].end : last[0].start]
    listed = _AND.fullmatch(between) and _BETWEEN.search(_before(flat, first[0]))
    if not listed and not _THROUGH.fullmatch(between):
        return None
    begin, end = first[1], last[1]
    try:
        if begin.year_said and not end.year_said:
            end = end.in_year(begin.start.year)
        elif end.year_said and not begin.year_said:
            begin = begin.in_year(end.start.year)
        if end.start < begin.start and not (begin.year_said and end.year_said):
            # from November to February
            begin = begin.in_year(begin.start.year - 1)
    except ValueError:
        return None
    if end.start < begin.start:
        return None
    return _made(begin.start, end.end, flat[first[0].start : last[0].end], time_zone)


def _window(flat: str, word: TimeWord, period: Period, time_zone: ZoneInfo) -> TimeWindow | None:
    before, after = _before(flat, word), flat[word.end : word.end + _NEAR]
    opened: tuple[tuple[re.Match[str] | None, datetime | None, datetime | None], ...] = (
        (_SINCE.search(before) or _UP_TO_NOW.match(after), period.start, None),
        (_FROM.search(before) and _ON.match(after), period.start, None),
        (_BEFORE.search(before) or _IS_BEFORE.match(after), None, period.start),
        (_UNTIL.search(before) or _IS_UNTIL.match(after), None, period.end),
        (_AFTER.search(before) or _IS_AFTER.match(after), period.end, None),
    )
    for sign, start, end in opened:
        if sign:
            said = (
                before[sign.start() :] + flat[word.start : word.end]
                if sign.string is before
                else (flat[word.start : word.end + sign.end()])
            )
            return _made(start, end, said, time_zone)
    return _made(period.start, period.end, flat[word.start : word.end], time_zone)


def _before(flat: str, word: TimeWord) -> str:
    return flat[max(word.start - _NEAR, 0) : word.start]


def _made(
    start: datetime | None, end: datetime | None, text: str, time_zone: ZoneInfo
) -> TimeWindow | None:
    try:
        return TimeWindow(_utc(start, time_zone), _utc(end, time_zone), text.strip())
    except OverflowError:
        return None


def _utc(moment: datetime | None, time_zone: ZoneInfo) -> datetime | None:
    return None if moment is None else moment.replace(tzinfo=time_zone).astimezone(UTC)
