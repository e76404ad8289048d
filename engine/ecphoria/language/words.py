"""Many words of many uses, found in a text in one pass."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from ecphoria.language.folding import fold, is_han

Use = TypeVar("Use", bound=Hashable)
# Use -> word -> where it stands in the flattened text.
Met: TypeAlias = dict[Use, dict[str, list[tuple[int, int]]]]

# Words are looked up by so many first characters.
_KEY_CHARS = 2


@dataclass(frozen=True, slots=True)
class _Word(Generic[Use]):
    text: str
    whole: bool  # a letter or digit right before or after makes it another word
    open: bool  # any ending will do
    use: Use


def flattened(text: str) -> str:
    """Return a text folded, its blanks and line breaks made single blanks."""
    return " ".join(fold(text).split())


def _is_letter(char: str) -> bool:
    return "a" <= char <= "z" or "0" <= char <= "9"


class WordIndex(Generic[Use]):
    """Words by their first characters, each with what it is used for.

    A word that holds a Han character is found anywhere, any other only whole; a trailing ``*``
    stands for any ending.
    """

    def __init__(self) -> None:
        """Start without words."""
        self._by_start: dict[str, list[_Word[Use]]] = defaultdict(list)
        # of these, what may begin within a Latin word
        self._inside: dict[str, list[_Word[Use]]] = defaultdict(list)

    def __iter__(self) -> Iterator[str]:
        """Yield the words, folded, each as often as it has uses."""
        for words in self._by_start.values():
            for word in words:
                yield f"{word.text}*" if word.open else word.text

    def add(self, words: Iterable[str], use: Use) -> None:
        """Add words for a use."""
        for word in words:
            flat = flattened(word)
            stem = flat.rstrip("*").rstrip()
            han = is_han(flat)
            entry = _Word(stem, not han, flat.endswith("*") and not han, use)
            self._by_start[stem[:_KEY_CHARS]].append(entry)
            if not entry.whole or not _is_letter(stem[:1]):
                self._inside[stem[:_KEY_CHARS]].append(entry)

    def find(self, text: str) -> Met[Use]:
        """Return the words that stand in a text; of one use, the longest wherever two overlap."""
        flat = flattened(text)
        found: Met[Use] = {}
        ends: dict[Use, int] = {}
        last = len(flat) - 1
        after_letter = False
        for start, char in enumerate(flat):
            is_letter = _is_letter(char)
            words = self._inside if is_letter and after_letter else self._by_start
            after_letter = is_letter
            here = words.get(flat[start : start + _KEY_CHARS], ())
            short = words.get(char, ()) if start < last else ()
            if not here and not short:
                continue
            # the longest first: a shorter one of the same use within it is not counted
            best: dict[Use, tuple[int, str]] = {}
            for word in (*here, *short):
                end = self._end(word, flat, start)
                if end > best.get(word.use, (0, ""))[0]:
                    best[word.use] = (end, word.text)
            for use, (end, word) in best.items():
                if end > ends.get(use, 0):
                    ends[use] = end
                    found.setdefault(use, {}).setdefault(word, []).append((start, end))
        return found

    @staticmethod
    def _end(word: _Word[Use], flat: str, start: int) -> int:
        """Return where the word that begins there ends; 0 when it does not stand there."""
        stem = word.text
        if not flat.startswith(stem, start):
            return 0
        end = start + len(stem)
        if not word.whole:
            return end
        if start and _is_letter(stem[0]) and _is_letter(flat[start - 1]):
            return 0
        if word.open:
            while end < len(flat) and _is_letter(flat[end]):
                end += 1
        elif end < len(flat) and _is_letter(stem[-1]) and _is_letter(flat[end]):
            return 0
        return end
