"""Where sentences end, and how long texts are cut. Pure functions."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from ecphoria.embedding.text import windows

Span: TypeAlias = tuple[int, int]

_CLOSERS: Final = "\"'”’)\\]）】」』》〉"
_HAN: Final = "\u3400-\u9fff"
# A full stop ends a sentence only before a blank; 3.5 and example.com go on.
_END: Final = re.compile(
    # possessive, and never begun within a run of marks: a long run must not cost its square
    f"[。！？；…]++[{_CLOSERS}]*+|(?<![!?;])[!?;]++[{_CLOSERS}]*+(?=[\\s{_HAN}]|$)"
    f"|(?<!\\.)\\.++[{_CLOSERS}]*+(?=\\s|$)|\n+"
)
# After these, and after a single letter, a full stop shortens a word.
_SHORT: Final = re.compile(
    r"(?:^|[^A-Za-z])(?:[A-Za-z]|no|nos|nr|st|ave|rd|apt|mr|mrs|ms|dr|prof|inc|ltd|co|vs|e\.g|i\.e"
    r"|approx|dept|tel|ext)\.$",
    re.IGNORECASE,
)
_SHORT_CHARS: Final = 8


def sentences(text: str) -> tuple[Span, ...]:
    """Return the sentences of a text as spans that together cover all of it.

    Blanks after a sentence belong to it. A text without any end is one sentence.
    """
    spans: list[Span] = []
    start = 0
    for match in _END.finditer(text):
        end = match.end()
        if match[0][0] == "." and _goes_on(text, match):
            continue
        while end < len(text) and text[end].isspace():
            end += 1
        if end > start:
            spans.append((start, end))
            start = end
    if start < len(text):
        spans.append((start, len(text)))
    return tuple(spans)


def _goes_on(text: str, stop: re.Match[str]) -> bool:
    if len(stop[0]) > 1:
        return False
    before = text[max(0, stop.end() - _SHORT_CHARS) : stop.end()]
    return _SHORT.search(before) is not None


def chunks(text: str, max_chars: int, overlap: int) -> tuple[str, ...]:
    """Return a text in pieces of at most `max_chars`, cut at sentence ends where there are any.

    Args:
        text: A clean text.
        max_chars: Longest piece, in characters.
        overlap: About how many characters a piece repeats of the one before.

    Returns:
        The pieces in order; the text itself when it fits.
    """
    if len(text) <= max_chars:
        return (text,)
    return tuple(windows(text, max_chars, overlap)) or (text,)
