"""Recognise a dialogue, and put each question together with its answer. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ecphoria.extraction.chunks import Span, sentences
from ecphoria.language.lexicon import Lexicon, narrowed
from ecphoria.model import Speaker
from ecphoria_schema.domain import Domain

# Fewer marked turns are no dialogue: "Customer service: they never answered."
MIN_TURNS: Final = 2

# A mark stands at the start of a line, after the time if there is one, or after a sentence.
_BEFORE: Final = (
    r"(?:(?:^|(?<=\n))\s{0,8}(?:[\[(]?\d[\d:/.\- ]{3,24}[\])]?\s)?"
    r"|(?<=[。!?…;~”\"』」)])\s{0,8}|(?<=\.)\s{1,8})"
)
_CLAUSE_END: Final = re.compile(r"[,，、;；。.!！?？…\n]")


@dataclass(frozen=True, slots=True)
class Said:
    """One turn of a dialogue.

    Attributes:
        whole: Where it stands, with what marks the speaker.
        words: Where what was said stands.
    """

    speaker: Speaker
    whole: Span
    words: Span


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question with its answer: consecutive turns of a dialogue.

    Attributes:
        span: Where it stands, small talk around it included.
        asked: What the customer says.
        answered: What the service says after it.
        opened: What the service says before it.
    """

    span: Span
    asked: tuple[Span, ...] = ()
    answered: tuple[Span, ...] = ()
    opened: tuple[Span, ...] = ()


@lru_cache(maxsize=16)
def _marks(customer: tuple[str, ...], service: tuple[str, ...]) -> re.Pattern[str] | None:
    names = [("customer", word) for word in customer] + [("service", word) for word in service]
    if not names:
        return None
    # the longest first: "customer service" is no customer
    names.sort(key=lambda item: -len(item[1]))
    marks = "|".join(f"(?P<{speaker}_{n}>{_word(word)})" for n, (speaker, word) in enumerate(names))
    return re.compile(rf"{_BEFORE}(?:{marks})\s?:\s?", re.IGNORECASE)


def _word(word: str) -> str:
    stem = r"\s".join(re.escape(part) for part in narrowed(word).rstrip("*").split())
    return stem + (r"\w{0,20}" if word.endswith("*") else "")


def turns(text: str, domain: Domain) -> tuple[Said, ...]:
    """Return the marked turns of a text; a single one, too."""
    marks = _marks(domain.speakers.customer.all, domain.speakers.service.all)
    found = list(marks.finditer(narrowed(text))) if marks else []
    ends = [*(match.start() for match in found[1:]), len(text)][: len(found)]
    return tuple(
        Said(
            "customer" if str(match.lastgroup).startswith("customer") else "service",
            (match.start(), end),
            (match.end(), end),
        )
        for match, end in zip(found, ends, strict=True)
    )


def exchanges(text: str, said: Sequence[Said], lexicon: Lexicon) -> tuple[Exchange, ...]:
    """Put each question of a customer together with the answers that follow.

    A service that only asks back has not answered yet. Turns without a partner stay alone;
    small talk goes with what stands before it, or else after.

    Returns:
        Exchanges whose spans together cover all turns.
    """
    groups: list[list[Said]] = []
    answered = False
    for turn in said:
        words = text[slice(*turn.words)]
        if not groups or (turn.speaker == "customer" and answered):
            groups.append([])
            answered = False
        groups[-1].append(turn)
        if turn.speaker == "service" and not answered:
            answered = not (_says_nothing(words, lexicon) or only_asks(words, lexicon))
    return tuple(
        _exchange(text, group, lexicon) for group in _without_smalltalk(text, groups, lexicon)
    )


def only_asks(text: str, lexicon: Lexicon) -> bool:
    """Whether a text is a question and nothing else but small talk."""
    if lexicon.is_smalltalk(text):
        return False
    asks = False
    for start, end in sentences(text):
        sentence = narrowed(text[start:end]).strip()
        is_question = sentence.rstrip("\"'”’)」』").endswith("?")
        clauses = [clause for clause in _CLAUSE_END.split(sentence) if clause.strip()]
        beside = clauses[:-1] if is_question else clauses
        if not all(lexicon.is_smalltalk(clause) for clause in beside):
            return False
        asks = asks or is_question
    return asks


def _without_smalltalk(
    text: str, groups: Iterable[list[Said]], lexicon: Lexicon
) -> list[list[Said]]:
    kept: list[list[Said]] = []
    waiting: list[Said] = []
    for group in groups:
        idle = all(_says_nothing(text[slice(*turn.words)], lexicon) for turn in group)
        if idle and not kept:
            waiting += group
        elif idle:
            kept[-1] += group
        else:
            kept.append([*waiting, *group])
            waiting = []
    return kept or [waiting]


def _says_nothing(text: str, lexicon: Lexicon) -> bool:
    return lexicon.is_smalltalk(text) or not any(char.isalnum() for char in text)


def _exchange(text: str, group: Sequence[Said], lexicon: Lexicon) -> Exchange:
    telling = [turn for turn in group if not _says_nothing(text[slice(*turn.words)], lexicon)]
    speakers = [turn.speaker for turn in telling]
    first = speakers.index("customer") if "customer" in speakers else len(telling)
    return Exchange(
        span=(group[0].whole[0], group[-1].whole[1]),
        asked=tuple(turn.words for turn in telling if turn.speaker == "customer"),
        answered=tuple(turn.words for turn in telling[first:] if turn.speaker == "service"),
        opened=tuple(turn.words for turn in telling[:first]),
    )
