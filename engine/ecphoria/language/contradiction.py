"""Tell whether two statements about the same thing disagree, without a model.

Similarity cannot: "ends on 1 March" and "ends on 1 May" are near-equal to every embedding model
(measured, see docs). What tells them apart are numbers, dates and negation in otherwise like
words.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from ecphoria.language.folding import fold

_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
# "expired" and "not void" are what they say together
_UNDONE = re.compile(
    r"(?:\bnot|\bnever|[a-z]n't)(?: yet| been)* (?:void|voided|expired|missing)\b|[没未无不]过期"
)
# "No. 123", "very", "wireless", "stainless", "future": no negation
_NO_NEGATION = re.compile(
    r"\bno\.? ?(?=[#\d])|\bnot only\b"
    r"|非常|无线|不锈钢|未来|不仅|不但|不同(?!意)|不错|不过|不管|无论|是否|能否|否则"
)
_NEGATION = re.compile(
    r"(?<![a-z])(?:no|not|never|none|without|cannot|[a-z]+n't|void|voided|expired|missing)(?![a-z])"
    r"|过期|[不没無无未非否]"
)
_WORD = re.compile(r"[a-z]+|[\u3400-\u9fff]")
# Share of words two statements must have in common to be about the same claim.
MIN_OVERLAP = 0.5

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = r"(?<!\d)(\d{1,2})(?:st|nd|rd|th)?(?!\d)"
# (pattern, which of its groups are year, month, day; 0 = none)
_DATES = (
    (re.compile(r"(?<!\d)(\d{4}) ?年 ?(\d{1,2}) ?月(?: ?(\d{1,2}) ?[日号])?"), (1, 2, 3)),
    (re.compile(r"(?<!\d)(\d{1,2}) ?月 ?(\d{1,2}) ?[日号]"), (0, 1, 2)),
    (re.compile(r"(?<![\d.,:/-])(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)"), (1, 2, 3)),
    (re.compile(rf"{_DAY} (?:of )?{_MONTH}(?:,? (\d{{4}})(?!\d))?"), (3, 2, 1)),
    (re.compile(rf"\b{_MONTH} {_DAY}(?:,? (\d{{4}})(?!\d))?"), (3, 1, 2)),
    (re.compile(rf"\b{_MONTH},? (\d{{4}})(?!\d)"), (2, 1, 0)),
)

_EN_NUMBERS = {
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
}
_EN_COUNT = re.compile(
    rf"\b({'|'.join(_EN_NUMBERS)})(?=[ -](?:year|month|week|day|hour|time|unit|piece|item)s?\b)"
)
_ZH_DIGITS = "零一二三四五六七八九"
_ZH_COUNT = re.compile(
    r"([一二两三四五六七八九]?十[一二三四五六七八九]?|[一二两三四五六七八九])"
    r"(?= ?(?:年|个|月|天|日|号|次|台|部|件|周|星期|小时|元|块))"
)


@dataclass(frozen=True, slots=True)
class _Date:
    """A date of which some parts may not have been said."""

    year: int | None
    month: int
    day: int | None

    def agrees(self, other: _Date) -> bool:
        return (
            self.month == other.month
            and (self.year is None or other.year is None or self.year == other.year)
            and (self.day is None or other.day is None or self.day == other.day)
        )


@dataclass(frozen=True, slots=True)
class _Statement:
    folded: str
    claim: frozenset[str]
    negative: bool
    numbers: frozenset[str]
    dates: frozenset[_Date]


@lru_cache(maxsize=512)
def _read(text: str) -> _Statement:
    folded = text = " ".join(fold(text).split())
    text = _EN_COUNT.sub(lambda match: str(_EN_NUMBERS[match[1]]), text)
    text = _ZH_COUNT.sub(lambda match: str(_chinese_number(match[1])), text)
    dates: set[_Date] = set()
    for pattern, groups in _DATES:
        text = pattern.sub(_collector(dates, groups), text)
    text = _NO_NEGATION.sub(" ", _UNDONE.sub(" ", text))
    numbers = frozenset(_plain(number) for number in _NUMBER.findall(text))
    words = _WORD.findall(_NEGATION.sub(" ", _NUMBER.sub(" ", text)))
    return _Statement(
        folded, frozenset(words), _NEGATION.search(text) is not None, numbers, frozenset(dates)
    )


def _collector(dates: set[_Date], groups: tuple[int, int, int]) -> Callable[[re.Match[str]], str]:
    def collect(match: re.Match[str]) -> str:
        year, month, day = (match[group] if group else None for group in groups)
        named = str(month)[:3]
        dates.add(
            _Date(
                int(year) if year else None,
                _MONTHS.index(named) + 1 if named in _MONTHS else int(named),
                int(day) if day else None,
            )
        )
        return " "

    return collect


def _plain(number: str) -> str:
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", number):
        number = number.replace(",", "")
    # 5.00 is 5; a leading zero stays: it may be an id
    return number.rstrip("0").removesuffix(".") if re.fullmatch(r"\d+\.\d+", number) else number


def _chinese_number(written: str) -> int:
    tens, ten, ones = written.replace("两", "二").rpartition("十")
    value = _ZH_DIGITS.index(ones) if ones else 0
    return value + 10 * (_ZH_DIGITS.index(tens) if tens else 1) if ten else value


def _differ(first: _Statement, second: _Statement) -> bool:
    # each says something that the other does not; one that only says less does not contradict
    numbers = bool(first.numbers - second.numbers) and bool(second.numbers - first.numbers)
    dates = _unmatched(first.dates, second.dates) and _unmatched(second.dates, first.dates)
    return numbers or dates


def _unmatched(dates: frozenset[_Date], others: frozenset[_Date]) -> bool:
    return any(not any(date.agrees(other) for other in others) for date in dates)


def disagree(first: str, second: str) -> bool:
    """Whether two statements make the same claim with other numbers, dates or polarity.

    Symmetric; a statement never disagrees with itself.
    """
    said, other = _read(first), _read(second)
    if said.folded == other.folded:
        return False
    union = said.claim | other.claim
    if not union or len(said.claim & other.claim) / len(union) < MIN_OVERLAP:
        return False
    return said.negative != other.negative or _differ(said, other)
