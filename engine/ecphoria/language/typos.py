"""Names with one typo.

A word that differs in one letter is often another word ("charged" is no charger, 硬盘 no 键盘), so
a typo is only taken for one where people make them: seldom at a word's edges, and in Chinese by
sound. Measured: rapidfuzz takes 3 ms for 200 names and 40 words, more than is left; a name with
one typo holds one of its halves whole, and looking for the halves takes a tenth of that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from ecphoria.language.folding import Compact, fold, is_han

MIN_LETTERS, MIN_HAN = 5, 4

_KEPT_NAMES = 4_096
_DIGIT = re.compile(r"\d")
_BREAK = re.compile(r"[\s\-_·•]+")
# Up to so many letters a name of one word with another first or last letter is another word.
_SHORT_LETTERS = 7
# A word of fewer letters has no typo that could be told from another word.
_MIN_WORD = 4
# The first level of GB 2312 is in the order of sound: characters of one sound stand together.
_LEVEL_ONE, _LEVEL_END, _ROW = 0xB0, 0xD8, 94
_SAME_SOUND = 50

_Kind: TypeAlias = Literal["replaced", "inserted", "deleted", "swapped"]


@dataclass(frozen=True, slots=True)
class Edit:
    """The one change that makes a name into what was said.

    Attributes:
        place: Of the first letter of the name that is changed; its length for one after the end.
    """

    kind: _Kind
    place: int


@dataclass(frozen=True, slots=True)
class _Name:
    text: str
    words: tuple[str, ...]
    han: bool
    fits: bool
    halves: tuple[str, str]
    swapped: str


def one_edit(name: str, said: str) -> Edit | None:
    """Return the one change between two texts; None when there is none, or more than one."""
    if name == said or abs(len(name) - len(said)) > 1:
        return None
    shorter = min(len(name), len(said))
    start = 0
    while start < shorter and name[start] == said[start]:
        start += 1
    end = 0
    while end < shorter - start and name[-1 - end] == said[-1 - end]:
        end += 1
    old, new = name[start : len(name) - end], said[start : len(said) - end]
    kinds: dict[tuple[int, int], _Kind] = {
        (1, 1): "replaced",
        (0, 1): "inserted",
        (1, 0): "deleted",
    }
    if (len(old), len(new)) == (2, 2) and old == new[::-1]:
        return Edit("swapped", start)
    kind = kinds.get((len(old), len(new)))
    return None if kind is None else Edit(kind, start)


def typo_spans(text: Compact, name: str) -> list[tuple[int, int]]:
    """Return where a name stands with one typo, as spans of the compact text; no two overlap.

    Names with a digit, of fewer than five letters, or of fewer than four Chinese characters have
    none.
    """
    wanted = _wanted(name)
    first, second = wanted.halves
    if not wanted.fits or not (
        first in text.text or second in text.text or wanted.swapped in text.text
    ):
        return []
    spans: list[tuple[int, int]] = []
    for start, end in sorted(set(_windows(text.text, wanted))):
        said = text.text[start:end]
        edit = one_edit(wanted.text, said)
        if edit is None or not said.isalpha() or not text.is_whole(start, end):
            continue
        if (not spans or start >= spans[-1][1]) and _is_likely(wanted, said, edit):
            spans.append((start, end))
    return spans


@lru_cache(maxsize=_KEPT_NAMES)
def _wanted(name: str) -> _Name:
    text, han = Compact(name).text, is_han(name)
    fits = len(text) >= (MIN_HAN if han else MIN_LETTERS) and not _DIGIT.search(text)
    words = tuple(word for word in _BREAK.split(fold(name)) if word)
    first, second = text[: len(text) // 2], text[len(text) // 2 :]
    # two letters swapped where the halves meet leave neither whole
    swapped = first[:-1] + second[:1] + first[-1:] + second[1:]
    return _Name(text, words, han, fits, (first, second), swapped)


def _windows(text: str, name: _Name) -> Iterator[tuple[int, int]]:
    size = len(name.text)
    first, second = name.halves
    other = (0,) if name.han else (0, -1, 1)
    for start in _places(first, text):
        yield from ((start, start + size + more) for more in other)
    for place in _places(second, text):
        end = place + len(second)
        yield from ((end - size - more, end) for more in other if end - size - more >= 0)
    if not name.han:
        yield from ((start, start + size) for start in _places(name.swapped, text))


def _places(wanted: str, text: str) -> Iterator[int]:
    place = text.find(wanted)
    while place != -1:
        yield place
        place = text.find(wanted, place + 1)


def _is_likely(name: _Name, said: str, edit: Edit) -> bool:
    if name.han:
        return edit.kind == "replaced" and _sounds_alike(name.text[edit.place], said[edit.place])
    word, place = _word_at(name, edit.place)
    if edit.kind == "swapped":
        return True
    if len(word) < _MIN_WORD or _is_inflected(word, place, edit, said):
        return False
    if len(name.words) > 1 or len(name.text) > _SHORT_LETTERS or 0 < place < len(word) - 1:
        return True
    # at an edge: only a letter typed twice
    return edit.kind == "inserted" and (
        place == len(word) - 1 or said[edit.place - 1 : edit.place] == said[edit.place]
    )


def _word_at(name: _Name, place: int) -> tuple[str, int]:
    """Return the word of a name that holds a place, and where in it."""
    for word in name.words:
        if place < len(word):
            return word, place
        place -= len(word)
    return name.words[-1], len(name.words[-1])


def _is_inflected(word: str, place: int, edit: Edit, said: str) -> bool:
    # a charger is not what was charged, or charges
    if edit.kind == "deleted":
        return word.endswith(("er", "ers")) and word[place] == "r" and word[place:] in {"r", "rs"}
    at_end = place >= len(word) - 1
    return at_end and word.endswith("er") and said[edit.place] in "dsn"


def _sounds_alike(one: str, other: str) -> bool:
    if not (is_han(one) and is_han(other)):
        return False
    first, second = _order(one), _order(other)
    # a rare character is hardly meant
    return first is None or second is None or abs(first - second) <= _SAME_SOUND


def _order(char: str) -> int | None:
    try:
        row, cell = char.encode("gb2312")
    except (UnicodeEncodeError, ValueError):
        return None
    return (row - _LEVEL_ONE) * _ROW + cell if _LEVEL_ONE <= row < _LEVEL_END else None
