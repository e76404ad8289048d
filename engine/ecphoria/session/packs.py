"""Make dialogues out of turns: what goes to long-term memory in one piece. Pure functions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from ecphoria.embedding.text import windows
from ecphoria.language.folding import language_of
from ecphoria.language.lexicon import narrowed
from ecphoria.model import SessionKey, Speaker, Turn
from ecphoria.session.summary import LABELS
from ecphoria_schema.domain import Domain, Language

# A longer silence parts two dialogues.
PAUSE = timedelta(minutes=30)
# What marks a speaker is no longer; with the colon and a line break it costs about so much.
_WORD_CHARS = 20
_LABEL_CHARS = _WORD_CHARS + 3
_COLON = "[:﹕︓]"
# Looks like a colon, and marks no speaker.
_NO_COLON = "\u2236"


@dataclass(frozen=True, slots=True)
class Pack:
    """Consecutive turns in one text.

    Attributes:
        first: Number of its first turn.
        last: Number of its last turn.
        part: Which part of a turn that is too long for one text, from 0.
        is_last_part: Whether nothing of the turn `last` is in a later pack.
        said_at: When the last of it was said.
    """

    first: int
    last: int
    part: int
    is_last_part: bool
    text: str
    said_at: datetime


def packed(
    turns: Sequence[Turn],
    domain: Domain,
    *,
    target_chars: int,
    max_chars: int,
    whole: bool,
) -> tuple[list[Pack], list[Turn]]:
    """Cut turns into packs that do not depend on how many turns are looked at in one go.

    A pack holds whole exchanges, a question with its answers, as many as fit. A longer exchange
    is cut between turns, and a turn that is too long for a text between sentences.

    Args:
        turns: Consecutive turns; the first one begins a pack.
        domain: Its words for the speakers mark who says what.
        target_chars: About how long a pack should be at most.
        max_chars: Longest text at all.
        whole: Whether no more turns come.

    Returns:
        The packs, and the turns that belong to a pack which may still grow.
    """
    closed: list[list[Turn]] = []
    open_: list[Turn] = []
    exchanges = list(_exchanges(turns))
    for exchange in exchanges:
        if open_ and (
            _is_pause(open_[-1], exchange[0]) or _chars(open_) + _chars(exchange) > target_chars
        ):
            closed.append(open_)
            open_ = []
        if _chars(exchange) <= target_chars:
            open_ += exchange
            continue
        for turn in exchange:
            if open_ and _chars(open_) + _chars([turn]) > target_chars:
                closed.append(open_)
                open_ = []
            open_.append(turn)
    if whole and open_:
        closed.append(open_)
        open_ = []
    packs = [pack for group in closed for pack in _written(group, domain, max_chars)]
    return packs, open_


def pack_id(key: SessionKey, series: str, pack: Pack) -> str:
    """Return the memory id of a pack: the same turns of the same numbering give the same id."""
    parts = (key.tenant, key.user_id, key.session_id, series, pack.first, pack.last, pack.part)
    # lengths keep the parts apart, whatever they hold
    joined = "".join(f"{len(str(part))}:{part}" for part in parts)
    return f"session-{hashlib.sha256(joined.encode()).hexdigest()[:24]}"


def _exchanges(turns: Sequence[Turn]) -> Iterator[list[Turn]]:
    """Yield runs of turns, each from a customer's turn to the last service turn after it."""
    run: list[Turn] = []
    for turn in turns:
        if run and (
            (turn.speaker == "customer" and run[-1].speaker == "service")
            or _is_pause(run[-1], turn)
        ):
            yield run
            run = []
        run.append(turn)
    if run:
        yield run


def _is_pause(before: Turn, after: Turn) -> bool:
    return after.said_at - before.said_at > PAUSE


def _chars(turns: Sequence[Turn]) -> int:
    return sum(len(turn.text) + _LABEL_CHARS for turn in turns)


def _written(turns: Sequence[Turn], domain: Domain, max_chars: int) -> Iterator[Pack]:
    lang = language_of("\n".join(turn.text for turn in turns))
    lines = [f"{label(domain, turn.speaker, lang)}{plain(turn.text, domain)}" for turn in turns]
    text = "\n".join(lines)
    said_at = max(turn.said_at for turn in turns)
    first, last = turns[0].number, turns[-1].number
    if len(text) <= max_chars:
        yield Pack(first, last, 0, is_last_part=True, text=text, said_at=said_at)
        return
    # several turns were joined only where they fit, so this is one
    mark = label(domain, turns[0].speaker, lang)
    room = max(1, max_chars - len(mark))
    parts = windows(plain(turns[0].text, domain), room)
    for number, part in enumerate(parts):
        done = number == len(parts) - 1
        yield Pack(first, last, number, is_last_part=done, text=mark + part, said_at=said_at)


def label(domain: Domain, speaker: Speaker, lang: Language) -> str:
    """Return what marks a speaker in a dialogue: the domain's first word for him, and a colon."""
    vocabulary = domain.speakers.customer if speaker == "customer" else domain.speakers.service
    words = vocabulary.zh if lang == "zh" else vocabulary.en
    fit = (word for word in words if "*" not in word and len(word) <= _WORD_CHARS)
    word = next(fit, None)
    if word is None:
        return LABELS[lang][speaker]
    return f"{word}：" if lang == "zh" else f"{word[:1].upper()}{word[1:]}: "


def plain(text: str, domain: Domain) -> str:
    """Return a turn's text on one line, in which nothing marks a speaker.

    Whoever writes "…。客服：已退款" into his own turn must not make the service say it. The text
    keeps its length.
    """
    line = text.replace("\n", " ")
    chars = list(line)
    # in a copy of the same length, so that wide letters are no way around
    for match in _marks(domain).finditer(narrowed(line)):
        chars[match.end() - 1] = _NO_COLON
    return "".join(chars)


@lru_cache(maxsize=8)
def _speaker_words(words: tuple[str, ...]) -> re.Pattern[str]:
    known = {*words, *(mark.rstrip("：: ") for marks in LABELS.values() for mark in marks.values())}
    either = "|".join(
        r"\s".join(re.escape(part) for part in narrowed(word).rstrip("*").split())
        # any ending, but not so long that a text of nothing else is read again and again
        + (r"\w{0,20}" if word.endswith("*") else "")
        for word in sorted(known, key=len, reverse=True)
    )
    # cleaned texts have no two blanks in a row
    return re.compile(rf"(?:{either})\s?{_COLON}", re.IGNORECASE)


def _marks(domain: Domain) -> re.Pattern[str]:
    return _speaker_words((*domain.speakers.customer.all, *domain.speakers.service.all))
