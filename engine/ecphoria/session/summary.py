"""Rolling summaries of a conversation: whole sentences, chosen by rules, in their order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from ecphoria.embedding.text import windows
from ecphoria.extraction.chunks import sentences as spans
from ecphoria.language.folding import fold
from ecphoria.language.lexicon import Lexicon
from ecphoria.language.tokens import estimated_tokens
from ecphoria.model import Speaker, Turn
from ecphoria_schema.domain import Language

LABELS: Final[dict[Language, dict[Speaker, str]]] = {
    "en": {"customer": "User: ", "service": "Agent: "},
    "zh": {"customer": "用户：", "service": "客服："},
}
_LABEL = re.compile("|".join(label for words in LABELS.values() for label in words.values()))


# Words of the two languages, not of a trade: what a reader would miss most comes first.
_QUESTION = re.compile(
    r"[?？]|吗|呢|什么|怎么|怎样|为何|为什么|多少|几时|哪|是否|能不能|可不可以|有没有"
    r"|^(?:what|when|where|who|whose|which|why|how|is|are|was|were|do|does|did|can|could|will"
    r"|would|should|may|have|has)\b"
)
_PROMISE = re.compile(
    r"保证|承诺|答应|帮您|为您|给您|我会|我们会|将会|将在|马上|稍后|尽快|之内|以内|(?:天|日|小时|分钟)内"
    r"|\b(?:will|shall|promised?|guaranteed?|going to|as soon as possible|within|by tomorrow)\b"
    r"|'ll\b"
)
_NUMBER = re.compile(
    r"\d|[一二三四五六七八九十百千万两几](?:天|个|元|块|点|号|日|月|年|次|台|件|折|小时)"
)
# Letters and digits in one word, or a capital within a sentence.
_NAME = re.compile(
    r"[A-Za-z]+[-#]?\d|\d[A-Za-z]|(?<=[^\s.!?:] )[A-Z][a-z]|[\u4e00-\u9fff][A-Z]|[《「“]"
)
_HOLDS_ID, _NAMES, _COUNTS, _PROMISES, _ASKS = 4.0, 3.0, 2.0, 2.0, 2.0
_SMALLTALK = -10.0

_LEFT_OUT: Final[dict[Language, str]] = {
    "en": "({} more sentences are left out.)",
    "zh": "（另有{}句未列出。）",
}
_WAS_LEFT_OUT = re.compile(r"\((\d+) more sentences are left out\.\)|（另有(\d+)句未列出。）")


class Summarizer(Protocol):
    """Makes the summary of a conversation from the one before and what was said since."""

    async def summarize(
        self, previous: str, turns: Sequence[Turn], *, lang: Language, max_tokens: int
    ) -> str:
        """Return the new summary.

        Args:
            previous: The summary so far; empty at first.
            turns: What was said since, oldest first.
            lang: Language to write in.
            max_tokens: Estimated tokens that it may have.

        Raises:
            ChatFailed: When it is made by a chat model, and that failed.
        """
        ...


class ExtractiveSummarizer:
    """Keeps the sentences that tell most: ids and names, numbers, promises, questions."""

    def __init__(self, lexicon: Lexicon) -> None:
        """Take the words of a domain, which know its ids and its small talk."""
        self._lexicon = lexicon

    async def summarize(
        self, previous: str, turns: Sequence[Turn], *, lang: Language, max_tokens: int
    ) -> str:
        """See `Summarizer.summarize`. It never fails, and says how much it leaves out."""
        return extract(previous, turns, self._lexicon, lang=lang, max_tokens=max_tokens)


@dataclass(frozen=True, slots=True)
class _Line:
    place: int
    text: str
    tokens: int
    weight: float


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, stripped; together they hold every visible character."""
    for start, end in spans(text):
        if sentence := text[start:end].strip():
            yield sentence


def extract(
    previous: str, turns: Sequence[Turn], lexicon: Lexicon, *, lang: Language, max_tokens: int
) -> str:
    """Return the sentences that tell most, one a line, within a budget of estimated tokens.

    Lines of the summary before compete with the new ones, so that what was important stays.
    Where something is left out, the last line says how many sentences that are, all in all.
    """
    kept, left_out = _lines_of(previous)
    said = [
        f"{LABELS[lang][turn.speaker]}{sentence}"
        for turn in turns
        for sentence in sentences(turn.text)
    ]
    # said twice is said once, where it was said last
    last = {line: place for place, line in enumerate((*kept, *said))}
    lines = [
        _Line(place, text, estimated_tokens(text), _weight(text, lexicon))
        for text, place in last.items()
    ]
    budget = max_tokens
    if left_out or sum(line.tokens for line in lines) > budget:
        budget -= estimated_tokens(_LEFT_OUT[lang].format(left_out + len(lines)))
    chosen: list[_Line] = []
    for line in sorted(lines, key=lambda line: (-line.weight, -line.place)):
        if line.tokens <= budget:
            budget -= line.tokens
            chosen.append(line)
    if not chosen and lines:
        chosen = _beginning(max(lines, key=lambda line: (line.weight, line.place)), budget)
    left_out += len(lines) - len(chosen)
    shown = [line.text for line in sorted(chosen, key=lambda line: line.place)]
    if left_out:
        shown.append(_LEFT_OUT[lang].format(left_out))
    return "\n".join(shown)


def _lines_of(previous: str) -> tuple[list[str], int]:
    lines: list[str] = []
    left_out = 0
    for line in previous.splitlines():
        match = _WAS_LEFT_OUT.fullmatch(line)
        if match:
            left_out += int(match[1] or match[2])
        elif line.strip():
            lines.append(line.strip())
    return lines, left_out


def _weight(line: str, lexicon: Lexicon) -> float:
    text = _LABEL.sub("", line, count=1)
    if lexicon.is_smalltalk(text):
        return _SMALLTALK
    folded = fold(text)
    return (
        _HOLDS_ID * bool(lexicon.id_mentions(text))
        + _NAMES * bool(_NAME.search(text))
        + _COUNTS * bool(_NUMBER.search(folded))
        + _PROMISES * bool(_PROMISE.search(folded))
        + _ASKS * bool(_QUESTION.search(folded))
    )


def _beginning(line: _Line, max_tokens: int) -> list[_Line]:
    """Return as much of a line as fits, marked as cut; nothing where nothing fits."""
    mark = "…"
    room = max_tokens - estimated_tokens(mark)
    if room < 1:
        return []
    # a token is at least a character
    text = windows(line.text, room)[0] + mark
    return [_Line(line.place, text, estimated_tokens(text), line.weight)]
