"""Tell whether two texts say the same, without a model. In doubt they do not.

A model's similarity cannot: it puts "order 882301" next to "order 882302". Here two texts are the
same when the same words, numbers and names stand in the same order, whatever the width, case,
punctuation, plural endings and words without content.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ecphoria.language.folding import fold

# an id or a number with its marks is one token, so that no digit is ever compared alone
_TOKEN = re.compile(r"[a-z]*\d[\da-z]*(?:[.,:/_-]\d[\da-z]*)*|[a-z]+(?:'[a-z]+)?|[^\W\d_]|[%°€$£¥]")
_EMPTY = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "to",
        "at",
        "in",
        "on",
        "for",
        "and",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "am",
        "it",
        "its",
        "this",
        "that",
        "there",
        "please",
        "just",
        "so",
        "very",
        "really",
        "also",
        "too",
        "then",
        "now",
        "i",
        "my",
        "me",
        "we",
        "our",
        "you",
        "your",
    ]
) | frozenset("的了呢吗啊吧呀哦嗯请您你我就也很都把被这那是")
_PLURAL = re.compile(r"(?<=[a-z]{3})s$")
_CLITICS = {"i'm": "am", "it's": "is", "that's": "is"}


@lru_cache(maxsize=4096)
def content(text: str) -> tuple[str, ...]:
    """Return the words, numbers and names of a text in order, folded; without empty words."""
    words: list[str] = []
    for match in _TOKEN.finditer(fold(text)):
        word = _CLITICS.get(match[0], match[0])
        if word not in _EMPTY:
            words.append(_PLURAL.sub("", word))
    return tuple(words)


def says_the_same(first: str, second: str) -> bool:
    """Whether two texts say the same in other words at most without content.

    Texts of nothing but empty words are the same only when they are equal.
    """
    said, other = content(first), content(second)
    if not said or not other:
        return fold(first).split() == fold(second).split()
    return said == other
