"""The shorter ways in which people call what a record calls by its whole name.

In English the last words ("toaster" for a four-slice toaster), in Chinese the last characters, the
first half where it is a noun, or the name without a part in the middle. And one for many.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from ecphoria.language.folding import Compact, is_han
from ecphoria.language.words import flattened

_KEPT_NAMES = 4_096
_DIGIT = re.compile(r"\d")
_HAN_END = re.compile(r"[\u3400-\u9fff]+$")
_BREAK = re.compile(r"[\s\-_·•]+")
# What follows says of which kind, size or colour a thing is, not what it is.
_DETAIL = re.compile(r" ?[(\[,/|、，]| - | (?:with|for|by|in|of|from) ")
_MIN_NAME, _MIN_HAN, _MAX_HAN = 2, 4, 10
# The last word of a name that does not tell what the thing is.
_NO_HEAD: Final = frozenset(
    {
        "set",
        "kit",
        "pack",
        "pro",
        "max",
        "air",
        "plus",
        "mini",
        "lite",
        "ultra",
        "one",
        "unit",
        "box",
        "piece",
        "pieces",
        "edition",
        "series",
        "system",
        "bundle",
        "version",
        "model",
        "item",
        "device",
        "product",
        "case",
        "cover",
        "black",
        "white",
        "blue",
        "red",
        "green",
        "small",
        "medium",
        "large",
        "slim",
        "fold",
        "new",
        "time",
        "day",
        "service",
    }
)
# With these before it a thing stays of its kind, though both are one word.
_FORE: Final = ("smart", "mini", "ultra", "e")
_MIN_REST = 4
# Chinese words that say of which kind a thing is, and are no short name of it.
_KINDS: Final = re.compile(
    "(?:无线|有线|智能|电动|手动|自动|全自动|半自动|机械|电子|数码|数字|蓝牙|便携|便携式|折叠|可折叠|迷你|微型|小型"
    "|大型|家用|商用|商务|办公|户外|室内|车载|运动|游戏|电竞|学生|儿童|婴儿|男士|女士|男式|女式|专业|高清|超清|超薄"
    "|轻薄|防水|防摔|降噪|静音|太阳能|充电|可充电|快充|多功能|不锈钢|陶瓷|玻璃|塑料|木质|金属|真皮|纯棉|保温|加热"
    "|节能|变频|立式|台式|壁挂|挂式|手持|手持式|头戴|头戴式|入耳|入耳式|移动|外接|内置|固态|双层|大号|中号|小号|新款"
    "|新型|旗舰|标准|经典|豪华|普通|高级|电|新|大|小)+"
)
# Single characters that make a noun of what stands before them: with one more it is no word.
_BOUND: Final = "器仪"


@lru_cache(maxsize=_KEPT_NAMES)
def in_number(name: str) -> tuple[Compact, ...]:
    """Return a name in the singular and the plural, itself left out; empty for a Chinese one."""
    words = [word for word in _BREAK.split(flattened(name)) if word]
    if not words or _DIGIT.search(words[-1]):
        return ()
    return tuple(Compact(" ".join((*words[:-1], other))) for other in _numbers(words[-1]))


@lru_cache(maxsize=_KEPT_NAMES)
def short_names(name: str) -> tuple[Compact, ...]:
    """Return the shorter ways to say a name, the longest first, each in both numbers.

    A number is left out only before what a thing is: the "projector" may be the X5 projector, but
    a Phone 15 Pro is no "Pro".
    """
    flat = flattened(name)
    whole = Compact(flat).text
    found: dict[str, Compact] = {}
    for short in sorted(_shorter(flat), key=len, reverse=True):
        for form in (Compact(short), *in_number(short)):
            if len(form.text) >= _MIN_NAME and form.text != whole:
                found.setdefault(form.text, form)
    return tuple(found.values())


def _shorter(flat: str) -> Iterator[str]:
    base = _DETAIL.split(flat, maxsplit=1)[0].strip()
    if base != flat:
        yield base
    if not is_han(base):
        yield from _last_words(base)
        return
    end = _HAN_END.search(base)
    if end is None:
        return
    run, numbered = end.group(), _DIGIT.search(base) is not None
    if run != base and len(run) >= _MIN_NAME:
        yield run
    if _MIN_HAN <= len(run) <= _MAX_HAN:
        yield from _heads(run)
        if not numbered:
            yield from _shortened(run)


def _last_words(base: str) -> Iterator[str]:
    words = [word for word in _BREAK.split(base) if word]
    last = len(words) - 1
    if not words or words[-1] in _NO_HEAD or not words[-1].isalpha():
        # of "Acme Phone 15 Pro" the short name is "Phone 15 Pro", and never "15 Pro"
        numbers = [place for place, word in enumerate(words) if _DIGIT.search(word)]
        last = numbers[0] - 1 if numbers else -1
    yield from (" ".join(words[place:]) for place in range(1, last + 1))
    if last == 0:
        yield from (
            words[0].removeprefix(fore)
            for fore in _FORE
            if words[0].startswith(fore) and len(words[0]) - len(fore) >= _MIN_REST
        )


def _heads(run: str) -> Iterator[str]:
    for start in range(1, len(run) - 1):
        if len(run) - start > _MIN_NAME or run[-1] not in _BOUND:
            yield run[start:]


def _shortened(run: str) -> Iterator[str]:
    size = len(run)
    half = (size + 1) // 2
    for end in range(half, size - 1):
        if not _KINDS.fullmatch(run[:end]):
            yield run[:end]
    # without a part in the middle
    for start in range(1, size - 1):
        for end in range(start + 1, size):
            if start + size - end >= max(3, half):
                yield run[:start] + run[end:]


# Ending -> what may stand in its place in the other number; the first that fits counts.
_NUMBERS: Final = (
    (re.compile(r"ies$"), ("y", "ie")),
    (re.compile(r"ves$"), ("f", "fe", "ve")),
    (re.compile(r"(?<=ch|sh|ss)es$|(?<=[xz])es$"), ("", "e")),
    (re.compile(r"(?<![sui])s$"), ("",)),
    (re.compile(r"(?<=ch|sh)$|(?<=[sxz])$"), ("es",)),
    (re.compile(r"(?<=[^aeiou])y$"), ("ies",)),
    (re.compile(r"fe?$"), ("ves", "fs", "fes")),
    (re.compile(r"$"), ("s",)),
)


def _numbers(word: str) -> tuple[str, ...]:
    if len(word) <= _MIN_NAME or not (word.isascii() and word.isalpha()):
        return ()
    ending, others = next(row for row in _NUMBERS if row[0].search(word))
    return tuple(ending.sub(other, word, count=1) for other in others)
