"""Cut a text into the terms that lexical search compares: Chinese and English, no model.

Question and memory are cut by the same rules here, and not by a store: what one store calls a word
another does not, and a name must not be cut one way in a question and another way in a memory.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ecphoria.language.folding import fold

# Han characters stand without blanks; letters and digits of all other scripts come in words.
_RUN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+|[^\W_\u3400-\u4dbf\u4e00-\u9fff]+")
# Words and numbers that marks hold together, one of them with a digit: RMA-2025/0042, v1.2.
_CODE = re.compile(r"[a-z\d]+(?:[-_./:][a-z\d]+)+", re.ASCII)
_DIGIT = re.compile(r"\d")
_POSSESSIVE = re.compile(r"(?<=[a-z])'s\b")
_ENGLISH = re.compile(r"[a-z]{3,}", re.ASCII)
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")

# A closed class of the language each, which says nothing about what a sentence is about. No word
# of a trade belongs here.
_EMPTY_ENGLISH = frozenset(
    [
        "a",
        "about",
        "also",
        "am",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "been",
        "being",
        "but",
        "by",
        "can",
        "could",
        "d",
        "did",
        "do",
        "does",
        "doing",
        "for",
        "from",
        "had",
        "has",
        "have",
        "having",
        "he",
        "her",
        "here",
        "him",
        "his",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "just",
        "ll",
        "m",
        "may",
        "me",
        "might",
        "must",
        "my",
        "no",
        "nor",
        "not",
        "of",
        "on",
        "or",
        "our",
        "re",
        "s",
        "shall",
        "she",
        "should",
        "so",
        "t",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "to",
        "too",
        "us",
        "ve",
        "very",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "who",
        "whom",
        "whose",
        "why",
        "will",
        "with",
        "would",
        "you",
        "your",
    ]
)
_EMPTY_HAN = re.compile("[的了呢吗啊吧呀哦嗯]")

_CACHED_WORDS = 65_536


def terms(text: str) -> tuple[str, ...]:
    """Return the terms of a text, as often as they stand in it; words without content are left out.

    A term holds letters and digits alone. Chinese goes into its characters and its pairs of
    characters (measured against the words of a dictionary: it finds more, and names too). English
    words lose their endings. A code is a term as a whole and by its parts: the whole tells it
    from another that is one digit off, a part finds it where only a part is said.
    """
    folded = _POSSESSIVE.sub("", fold(text))
    found = [
        "".join(char for char in match[0] if char.isalnum())
        for match in _CODE.finditer(folded)
        if _DIGIT.search(match[0])
    ]
    for match in _RUN.finditer(folded):
        run = match[0]
        if _HAN.match(run):
            found += _han_terms(run)
        elif run not in _EMPTY_ENGLISH:
            found.append(_stem(run) if _ENGLISH.fullmatch(run) else run)
    return tuple(found)


def _han_terms(run: str) -> list[str]:
    found: list[str] = []
    for part in _EMPTY_HAN.split(run):
        found += part
        found += (part[place : place + 2] for place in range(len(part) - 1))
    return found


@lru_cache(maxsize=_CACHED_WORDS)
def _stem(word: str) -> str:
    # loading its 30 languages takes a while, and one stemmer serves one thread
    from snowballstemmer.english_stemmer import EnglishStemmer  # noqa: PLC0415

    stemmed: str = EnglishStemmer().stemWord(word)
    return stemmed
