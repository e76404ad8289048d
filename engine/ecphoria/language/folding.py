"""Fold texts so that width, case and spacing make no difference; tell the language."""

from __future__ import annotations

import re
import unicodedata

from ecphoria_schema.domain import Language

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_LATIN_WORD = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)?")
# Letters of scripts that set words apart by blanks (Latin, Greek, Cyrillic, Armenian), and digits.
_ALNUM = re.compile(r"[\da-z\u00df-\u00f6\u00f8-\u024f\u0370-\u058f\u1e00-\u1fff]")
_DIGIT = re.compile(r"\d")
_OTHER_DIGIT = re.compile(r"(?![0-9])\d")
# phones write a curly apostrophe in "won't"
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc", "'"))


def fold(text: str) -> str:
    """Return a text with full-width forms narrowed, case folded, Unicode compatible (NFKC)."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", text).translate(_APOSTROPHES).casefold()
    # folding may take a composed character apart; digits of any script are the same digits
    return _OTHER_DIGIT.sub(
        lambda match: str(unicodedata.decimal(match[0])), unicodedata.normalize("NFKC", folded)
    )


def language_of(text: str) -> Language:
    """Return ``zh`` when Han characters are at least as many as Latin words, else ``en``."""
    han = len(_HAN.findall(text))
    return "zh" if han and han >= len(_LATIN_WORD.findall(text)) else "en"


def is_han(text: str) -> bool:
    """Whether a text holds a Han character."""
    return _HAN.search(text) is not None


class Compact:
    """A folded text without blanks and hyphens, in which names can be found as written or not.

    "iPhone15", "iPhone 15" and "ｉＰｈｏｎｅ－15" are the same here, while "iPhone 1" is not found
    in "iPhone 15": what stood together must not be torn apart.
    """

    def __init__(self, text: str) -> None:
        """Fold and compact a text."""
        folded = fold(text)
        kept = [
            (char, index)
            for index, char in enumerate(folded)
            if not char.isspace() and char not in "-_·•"
        ]
        self.text = "".join(char for char, _ in kept)
        self._origin = [index for _, index in kept]

    def find(self, name: str | Compact) -> list[tuple[int, int]]:
        """Return where a name stands, as spans of `text`."""
        name_ = Compact(name) if isinstance(name, str) else name
        wanted = name_.text
        spans: list[tuple[int, int]] = []
        if not wanted:
            return spans
        start = self.text.find(wanted)
        while start != -1:
            end = start + len(wanted)
            if self.is_whole(start, end) and not self._glues_digits(start, name_):
                spans.append((start, end))
            start = self.text.find(wanted, start + 1)
        return spans

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Return where a span of `text` stands in the folded text."""
        return self._origin[start], self._origin[end - 1] + 1

    def _glues_digits(self, start: int, name: Compact) -> bool:
        # "iPhone 1 5" is not the iPhone 15
        return any(
            _DIGIT.match(name.text[place])
            and _DIGIT.match(name.text[place + 1])
            and name._together(place)
            and not self._together(start + place)
            for place in range(len(name.text) - 1)
        )

    def _together(self, place: int) -> bool:
        return self._origin[place + 1] == self._origin[place] + 1

    def is_whole(self, start: int, end: int) -> bool:
        """Whether a span of `text` neither starts nor ends within a word."""
        return not (self._joined(start - 1, start) or self._joined(end - 1, end))

    def _joined(self, left: int, right: int) -> bool:
        # two letters or digits that stood side by side belong to one word
        if left < 0 or right >= len(self.text):
            return False
        if not (_ALNUM.match(self.text[left]) and _ALNUM.match(self.text[right])):
            return False
        return self._together(left)
