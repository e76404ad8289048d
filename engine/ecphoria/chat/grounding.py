"""Whether what a chat model says stands in the text it was given. Pure functions."""

from __future__ import annotations

import re
from functools import lru_cache

from ecphoria.language.folding import Compact, fold

_DIGITS = re.compile(r"\d+")
# Whatever holds a digit: an id, an amount, a date's part, a model's name.
_WITH_DIGIT = re.compile(r"[a-z]*\d[0-9a-z]*")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
# Models write other quotation marks and dashes than they read.
_ALIKE = str.maketrans(dict.fromkeys("“”„‟«»「」『』", '"') | dict.fromkeys("‐‑‒–—―−", "-"))


class Source:
    """A text in which quotes are found, whatever their blanks, width and case."""

    def __init__(self, text: str) -> None:
        """Fold a text."""
        self.text = text
        kept = [(char, place) for place, signs in enumerate(map(_folded, text)) for char in signs]
        self._folded = "".join(char for char, _ in kept)
        self._places = [place for _, place in kept]
        folded = _numbers(text)
        self._runs = {*_WITH_DIGIT.findall(folded), *_DIGITS.findall(folded)}
        self._compact: Compact | None = None

    def find(self, quote: str) -> tuple[tuple[int, int], ...]:
        """Return where a quote stands, as spans of `text`; nothing when it is none.

        Signs around the quote do not count. It may neither begin nor end within a word or number
        of Latin letters and digits: "#88230" is no quote of "#882301".
        """
        wanted = _stripped("".join(map(_folded, quote)))
        spans: list[tuple[int, int]] = []
        start = self._folded.find(wanted) if wanted else -1
        while start != -1:
            end = start + len(wanted)
            if not (self._within_word(start) or self._within_word(end)):
                spans.append((self._places[start], self._places[end - 1] + 1))
                start = self._folded.find(wanted, end)
            else:
                start = self._folded.find(wanted, start + 1)
        return tuple(spans)

    def words_of(self, quote: str) -> str | None:
        """Return a quote as the text has it; None when it is none."""
        spans = self.find(quote)
        return self.text[slice(*spans[0])] if spans else None

    def strangers(self, text: str) -> tuple[str, ...]:
        """Return what holds a digit in another text and does not stand in this one as a whole."""
        found = dict.fromkeys(_WITH_DIGIT.findall(_numbers(text)))
        return tuple(run for run in found if run not in self._runs and not self._spaced(run))

    def _spaced(self, run: str) -> bool:
        # "iPhone15" of "iPhone 15"
        if self._compact is None:
            self._compact = Compact(self.text)
        return bool(self._compact.find(run))

    def _within_word(self, place: int) -> bool:
        if place <= 0 or place >= len(self._folded):
            return False
        left, right = self._folded[place - 1], self._folded[place]
        return (
            (left + right).isascii()
            and left.isalnum()
            and right.isalnum()
            and self._places[place] - self._places[place - 1] <= 1
        )


@lru_cache(maxsize=4096)
def _folded(char: str) -> str:
    return "".join(fold(char).translate(_ALIKE).split())


def _stripped(folded: str) -> str:
    places = [place for place, char in enumerate(folded) if char.isalnum()]
    return folded[places[0] : places[-1] + 1] if places else ""


def _numbers(text: str) -> str:
    return _THOUSANDS.sub("", fold(text))
