"""Put right what was mistyped, where what was meant is one of the domain's words.

Only a Latin word that no dictionary has is taken for a slip, and only when one letter away from it
there is a word that the domain knows. Names and ids are no words: those with a digit, and those
with a capital letter within a sentence, stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from typing import Final

from spellchecker import SpellChecker

# A shorter word has too many neighbours to tell which one was meant.
MIN_LETTERS: Final = 5

_WORD: Final = re.compile(r"(?<![\w'’#@/.-])[A-Za-z]{5,40}(?![\w'’@/-]|\.\w)")
_SENTENCE_START: Final = re.compile(r"(?:^|[.!?:;。！？：；\n])[\s\"'“‘(]*$")
_KEPT: Final = 4_096
_KEYS: Final = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_BESIDE: Final = frozenset(
    pair for row in _KEYS for one, other in pairwise(row) for pair in (one + other, other + one)
)


class Spelling:
    """The words of a domain, and what is near to each. Built once; the dictionary on first need."""

    def __init__(self, words: Iterable[str]) -> None:
        """Take in words and phrases; a trailing ``*`` stands for any ending."""
        parts = {part for word in words for part in word.lower().split()}
        self._whole = frozenset(part for part in parts if not part.endswith("*"))
        self._open = tuple(sorted(part.rstrip("*") for part in parts if part.endswith("*")))
        self._meant = lru_cache(maxsize=_KEPT)(self._find_meant)
        self._read: SpellChecker | None = None

    def corrected(self, text: str) -> str:
        """Return a text with its slips put right; the same text when there are none."""
        return _WORD.sub(lambda found: self._put_right(found, text), text)

    def warm_up(self) -> None:
        """Read the dictionary now (about 0.2 s, 40 MB), and not at the first slip."""
        self._dictionary()

    def _put_right(self, found: re.Match[str], text: str) -> str:
        said = found[0]
        if not said.islower() and not (
            said.istitle() and _SENTENCE_START.search(text[: found.start()])
        ):
            return said
        meant = self._meant(said.lower())
        return said if meant is None else meant.title() if said.istitle() else meant

    def _find_meant(self, said: str) -> str | None:
        """Return what a word of small letters was to be; None when it is a word, or unclear."""
        if self._knows(said):
            return None
        dictionary = self._dictionary()
        if said in dictionary:
            return None
        # a first letter is seldom mistyped, and what differs there is another word
        near = [
            word
            for word in dictionary.candidates(said) or ()
            if word[0] == said[0] and self._knows(word)
        ]
        return min(
            near,
            key=lambda word: (not _is_misstruck(word, said), -dictionary[word], word),
            default=None,
        )

    def _knows(self, word: str) -> bool:
        return word in self._whole or word.startswith(self._open)

    def _dictionary(self) -> SpellChecker:
        if self._read is None:
            self._read = SpellChecker(language="en", distance=1)
        return self._read


def _is_misstruck(word: str, said: str) -> bool:
    """Whether all that differs is a key struck in place of the one beside it."""
    return len(word) == len(said) and all(
        one == other or one + other in _BESIDE for one, other in zip(word, said, strict=True)
    )
