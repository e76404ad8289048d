"""What every text goes through before a model sees it. Pure functions, no model."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import takewhile

from ecphoria.errors import TextEmpty

# Unicode normalisation sorts a run of combining marks in quadratic time while holding the
# interpreter lock (measured: 1.5 s for 40,000 marks). No script stacks more than a few; UAX #15
# calls 30 safe, so longer runs are broken by a blank.
MAX_MARKS = 30

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LONE = re.compile("[\ud800-\udfff]")
_LINE_BREAK = "\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029"
_BLANKS = re.compile(r"\s+")
# Zero-width joiners shape Persian and Indic words and join emoji; every other format character
# (direction marks, zero-width spaces, soft hyphens) only hides that two texts are the same.
_KEPT_FORMAT = frozenset("\u200c\u200d")
_INVISIBLE = frozenset("\u034f\u115f\u1160\u2800\u3164\uffa0") | _KEPT_FORMAT

_CLOSERS = "\"'”’)\\]）】」』》〉"
_SENTENCE_END = re.compile(f"[。！？；][{_CLOSERS}]*|[.!?]+[{_CLOSERS}]*(?=\\s)|\n")
_BLANK = re.compile(r"\s")
_WORD = re.compile(r"\S+")


def clean(text: str) -> str:
    """Return a text in the form models get: NFC, printable, single blanks.

    Surrogate pairs become their character; lone surrogates, NUL and other control characters
    become blanks, invisible format characters go. A run of blanks becomes one blank, or one
    newline if it holds a line break. Cleaning twice is the same as cleaning once.

    Args:
        text: Any string.

    Raises:
        TextEmpty: When nothing visible is left.
    """
    if not text.isascii():
        text = _PAIR.sub(_join_pair, text)
        text = _LONE.sub(" ", text)
    if not text.isprintable():
        text = "".join(map(_printable, text))
    if not text.isascii():
        # Canonical composition can shorten a run of marks but never makes one longer than its
        # decomposed form, so breaking the runs first also bounds the work of normalising.
        text = unicodedata.normalize("NFC", _break_marks(text))
    text = _BLANKS.sub(_one_blank, text).strip()
    if not any(map(_is_visible, text)):
        msg = "the text is empty or holds nothing but blanks and control characters"
        raise TextEmpty(msg)
    return text


def windows(text: str, max_chars: int, overlap: int = 0) -> list[str]:
    """Cut a text into windows that together cover all of it.

    Cuts are made, by preference, after the last sentence end (or line) that fits, at the last
    blank, or in the middle of a word; the first half of a window is never cut, so windows are
    not tiny.

    Args:
        text: A clean text.
        max_chars: Longest window, in characters.
        overlap: About how many characters a window repeats of the one before, so that a
            sentence cut in two is whole in one of them; less than a quarter of `max_chars`.

    Returns:
        The windows in order, stripped; the text itself when it fits.

    Raises:
        ValueError: When `max_chars` or `overlap` is out of range.
    """
    if max_chars < 1 or overlap < 0 or (overlap and overlap * 4 >= max_chars):
        msg = f"windows of {max_chars} characters with an overlap of {overlap}"
        raise ValueError(msg)
    found: list[str] = []
    start, size = 0, len(text)
    while size - start > max_chars:
        end = _cut(text, start + (max_chars + 1) // 2, start + max_chars)
        found.append(text[start:end].strip())
        start = _overlap_start(text, end - overlap, end) if overlap else end
    found.append(text[start:].strip())
    return [window for window in found if window]


def break_words(text: str, max_chars: int) -> str:
    """Put blanks into words longer than `max_chars` characters, counted when decomposed.

    Some tokenizers replace a longer word by a single unknown token, which loses all of it; they
    count after decomposing, where a Korean syllable is three characters.
    """
    return _WORD.sub(lambda word: _halved(word[0], max_chars), text)


def _join_pair(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16", "surrogatepass").decode("utf-16")


@lru_cache(maxsize=4096)
def _printable(char: str) -> str:
    category = unicodedata.category(char)
    if category == "Cc":
        return char if char in _LINE_BREAK else " "
    if category == "Cf" and char not in _KEPT_FORMAT:
        return ""
    return char


def _one_blank(blanks: re.Match[str]) -> str:
    return "\n" if any(char in _LINE_BREAK for char in blanks[0]) else " "


@lru_cache(maxsize=4096)
def _marks(char: str) -> int:
    """Return how many combining marks a character ends with when decomposed; all of it, or 0."""
    decomposed = unicodedata.normalize("NFD", char)
    marks = sum(1 for _ in takewhile(unicodedata.combining, reversed(decomposed)))
    return marks if marks < len(decomposed) else -marks


def _break_marks(text: str) -> str:
    parts: list[str] = []
    run = 0
    for char in text:
        marks = 0 if char.isascii() else _marks(char)
        if marks >= 0:  # a base, maybe with marks of its own
            run = marks
        else:
            run -= marks
            if run > MAX_MARKS:
                parts.append(" ")
                run = -marks
        parts.append(char)
    return "".join(parts)


@lru_cache(maxsize=4096)
def _is_visible(char: str) -> bool:
    return not (
        char.isspace()
        or char in _INVISIBLE
        or "\ufe00" <= char <= "\ufe0f"  # variation selectors
        or "\U000e0100" <= char <= "\U000e01ef"
        or unicodedata.category(char) in {"Cc", "Cf", "Zs", "Zl", "Zp"}
    )


def _halved(word: str, max_chars: int) -> str:
    if len(word) == 1 or len(unicodedata.normalize("NFKD", word)) <= max_chars:
        return word
    middle = len(word) // 2
    return f"{_halved(word[:middle], max_chars)} {_halved(word[middle:], max_chars)}"


def _cut(text: str, low: int, high: int) -> int:
    """Return where to end a window, in ``low..high``."""
    for pattern in (_SENTENCE_END, _BLANK):
        last = None
        # One character more, since an English sentence end is one only before a blank.
        for match in pattern.finditer(text, low - 1, high + 1):
            if low <= match.end() <= high:
                last = match.end()
        if last is not None:
            return last
    # Not between a letter and its marks, nor inside a joined emoji; but progress comes first.
    for end in range(high, low, -1):
        if not (_joins(text[end]) or text[end - 1] == "\u200d"):
            return end
    return high


def _joins(char: str) -> bool:
    return char == "\u200d" or unicodedata.category(char) in {"Mn", "Mc", "Me"}


def _overlap_start(text: str, low: int, end: int) -> int:
    """Return where the next window starts: after the first blank in the overlap, or at `low`."""
    blank = _BLANK.search(text, low, end - 1)
    if blank is not None:
        return blank.end()
    while low < end and _joins(text[low]):
        low += 1
    return low
