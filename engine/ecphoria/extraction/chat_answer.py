"""Whether a chat model's facts hold against the text they were read from. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ecphoria.chat.grounding import Source
from ecphoria.embedding.text import clean
from ecphoria.errors import ChatFailed, TextEmpty
from ecphoria.extraction.chat_prompt import ChatFact
from ecphoria.extraction.chunks import sentences
from ecphoria.extraction.port import Fact
from ecphoria.language.folding import fold, is_han
from ecphoria.language.lexicon import Lexicon
from ecphoria.model import Urgency
from ecphoria_schema.domain import Domain

# A statement may name what the sentence leaves out; it does not tell a story.
_MORE_CHARS = 400
_LEAST_EVIDENCE = 2
# A clause of less says nothing by itself: "Hello,", "好的，"; Han characters count twice.
_TELLING_CLAUSE = 10
_MAX_DETAILS = 20

_CLOSERS = "\"'”’)\\]）】」』》〉"
_CLAUSE_END = re.compile(r"[，、,]|(?<=\s)[-–—]+(?=\s)|——")
_STATE_NOTHING = ("question", "hypothetical", "hearsay", "third_person")
_QUESTION_END = re.compile(f"[?？][{_CLOSERS}]*\\s*$")
_SPEAKER = re.compile(r"^[^\s：:，。！？,.!?]{1,20}\s?[：:]\s*")
_DETAIL_NAME = re.compile(r"[a-z][a-z0-9_]{0,49}")

_Span = tuple[int, int]


@dataclass(slots=True)
class _Found:
    """A fact, and the whole sentences that it rests on."""

    fact: Fact
    span: _Span


@dataclass(slots=True)
class _Sentence:
    """A sentence, and which of its clauses no evidence touches."""

    span: _Span
    touched: bool = False
    untouched: list[_Span] = field(default_factory=list)


def checked_facts(
    text: str, before: str, answer: Sequence[ChatFact], domain: Domain, lexicon: Lexicon
) -> tuple[Fact, ...]:
    """Return the facts of a text in its order, checked; nothing when the model found none.

    What a fact may only choose from the domain and chose badly is left out of it. Sentences that
    no fact rests on are kept as plain facts, so that no word of the text is lost.

    Args:
        text: What the model was asked about.
        before: What it was told to stand before the text.
        answer: Its facts.
        domain: The domain whose names it chose from.
        lexicon: The domain's words.

    Raises:
        ChatFailed: When a fact rests on words or names an id that the text does not have, or is
            no statement in the text's language: then nothing of the answer can be trusted.
    """
    check = _Check(text, before, domain, lexicon)
    whole = [span for span in (_stripped(text, span) for span in sentences(text)) if span]
    found: list[_Found] = []
    quoted: list[_Span] = []
    told: set[str] = set()
    for item in answer:
        spans = check.evidence(item.evidence)
        # of words that stand there twice, those that are not taken yet
        span = next((span for span in spans if span not in quoted), spans[0])
        rests_on = [sentence for sentence in whole if _meet(sentence, span)]
        fact = check.fact(item, [text[slice(*sentence)] for sentence in rests_on])
        if fold(fact.text) not in told:
            told.add(fold(fact.text))
            quoted.append(span)
            found.append(_Found(fact, (rests_on[0][0], rests_on[-1][1])))
    if not found:
        return ()
    looked_at = [_looked_at(text, sentence, quoted) for sentence in whole]
    return _with_the_rest(text, found, looked_at, lexicon)


class _Check:
    """Checks the facts of one text."""

    def __init__(self, text: str, before: str, domain: Domain, lexicon: Lexicon) -> None:
        self._source = Source(text)
        # a thing may be named before and meant here
        self._known = Source(f"{before}\n{text}") if before else self._source
        self._domain = domain
        self._lexicon = lexicon
        self._ids = {
            ref for item in lexicon.id_mentions(self._known.text) for ref in item.candidates
        }

    def evidence(self, quote: str) -> tuple[_Span, ...]:
        if sum(char.isalnum() for char in quote) < _LEAST_EVIDENCE:
            msg = "the chat model gave a fact without evidence"
            raise ChatFailed(msg)
        spans = self._source.find(quote)
        if not spans:
            msg = "the chat model gave evidence that does not stand in the text"
            raise ChatFailed(msg)
        return spans

    def fact(self, item: ChatFact, evidence: Sequence[str]) -> Fact:
        text = self._statement(item.text, "".join(evidence))
        attribute, value, subject = self._value(item, evidence)
        return Fact(
            text=text,
            fact_type=item.fact_type if item.fact_type in self._domain.facts else None,
            topics=tuple(
                dict.fromkeys(name for name in item.topics if name in self._domain.topics)
            ),
            intent=item.intent if item.intent in self._domain.intents else None,
            urgency=_urgency(item.urgency),
            attribute=attribute,
            value=value,
            subject=subject,
            details=self._details(item),
        )

    def _statement(self, text: str, evidence: str) -> str:
        try:
            text = " ".join(clean(text).split())
        except TextEmpty:
            msg = "the chat model gave a fact without text"
            raise ChatFailed(msg) from None
        if len(text) > len(self._source.text) + _MORE_CHARS:
            msg = "the chat model gave a fact that is longer than the text"
            raise ChatFailed(msg)
        if is_han(text) != is_han(evidence) and is_han(text) != is_han(self._source.text):
            msg = "the chat model gave a fact in another language than the text's"
            raise ChatFailed(msg)
        self._refuse_strangers(text)
        return text

    def _refuse_strangers(self, text: str) -> None:
        # one digit makes another order
        unknown = any(
            not self._ids.intersection(mention.candidates)
            for mention in self._lexicon.id_mentions(text)
        )
        if unknown or self._known.strangers(text):
            msg = "the chat model gave an id or number that does not stand in the text"
            raise ChatFailed(msg)

    def _value(
        self, item: ChatFact, evidence: Sequence[str]
    ) -> tuple[str | None, str | None, str | None]:
        """Return attribute, value and subject; nothing of them unless all are as declared."""
        nothing = (None, None, None)
        name = item.attribute or ""
        declared = self._domain.attributes.get(name)
        if declared is None or not item.value or not any(map(self._states, evidence)):
            return nothing
        self._refuse_strangers(f"{item.value} {item.subject or ''}")
        value = (
            self._listed(name, item.value, " ".join(evidence))
            if declared.values
            else self._known.words_of(item.value)
        )
        subject = self._known.words_of(item.subject or "") if declared.keyed else None
        if value is None or (declared.keyed and subject is None):
            return nothing
        return name, value, subject

    def _states(self, sentence: str) -> bool:
        # the words by which the rules, too, tell that nothing is stated of the customer
        return not (
            _QUESTION_END.search(sentence)
            or any(self._lexicon.has_cue(cue, sentence) for cue in _STATE_NOTHING)
        )

    def _listed(self, attribute: str, words: str, evidence: str) -> str | None:
        values = self._domain.attributes[attribute].values
        value = words if words in values else self._lexicon.value_named(attribute, words)
        met = self._lexicon.values_met(attribute, evidence)
        # the evidence names another value: a wrong one would end a true memory
        return None if met and value not in met else value

    def _details(self, item: ChatFact) -> dict[str, str]:
        details: dict[str, str] = {}
        for detail in item.details[:_MAX_DETAILS]:
            self._refuse_strangers(detail.value)
            words = self._known.words_of(detail.value)
            if words is not None and _DETAIL_NAME.fullmatch(detail.name):
                details.setdefault(detail.name, words)
        return details


def _urgency(given: str | None) -> Urgency:
    if given == "high":
        return "high"
    return "low" if given == "low" else "normal"


# --- nothing is dropped ----------------------------------------------------------------------


def _with_the_rest(
    text: str, found: list[_Found], looked_at: Sequence[_Sentence], lexicon: Lexicon
) -> tuple[Fact, ...]:
    """Return the facts in order, with what none of them rests on as plain facts between them."""
    rest: list[_Span] = []
    for run in _untouched_runs(looked_at):
        neighbour = _neighbour(run, found) if _is_smalltalk(text[slice(*run)], lexicon) else None
        if neighbour is None:
            rest.append(run)
        else:
            start, end = neighbour.span
            neighbour.span = (min(start, run[0]), max(end, run[1]))
    rest.extend(
        sentence.span
        for sentence in looked_at
        if sentence.touched and any(_tells(text[slice(*span)]) for span in sentence.untouched)
    )
    placed = [
        (item.span[0], 0, _with_evidence(item.fact, text[slice(*item.span)])) for item in found
    ]
    placed += [(span[0], 1, _plain(text[slice(*span)], lexicon)) for span in rest]
    return tuple(fact for _, _, fact in sorted(placed, key=lambda item: item[:2]))


def _stripped(text: str, span: _Span) -> _Span | None:
    """Return a span without the blanks around it; None when nothing is left."""
    piece = text[slice(*span)]
    start = span[0] + len(piece) - len(piece.lstrip())
    end = span[0] + len(piece.rstrip())
    return (start, end) if start < end else None


def _clauses(text: str, span: _Span) -> Iterator[_Span]:
    start, end = span
    cuts = [match.end() for match in _CLAUSE_END.finditer(text, start, end)]
    for cut in (*cuts, end):
        if clause := _stripped(text, (start, cut)):
            yield clause
        start = cut


def _looked_at(text: str, span: _Span, quoted: Sequence[_Span]) -> _Sentence:
    clauses = list(_clauses(text, span))
    untouched = [clause for clause in clauses if not any(_meet(clause, item) for item in quoted)]
    return _Sentence(span, len(untouched) < len(clauses), untouched)


def _meet(left: _Span, right: _Span) -> bool:
    return left[0] < right[1] and right[0] < left[1]


def _untouched_runs(looked_at: Sequence[_Sentence]) -> Iterator[_Span]:
    run: _Span | None = None
    for sentence in looked_at:
        if not sentence.touched:
            run = (run[0] if run else sentence.span[0], sentence.span[1])
        elif run:
            yield run
            run = None
    if run:
        yield run


def _is_smalltalk(text: str, lexicon: Lexicon) -> bool:
    return all(
        lexicon.is_smalltalk(_SPEAKER.sub("", text[slice(*span)])) for span in sentences(text)
    )


def _neighbour(run: _Span, found: Sequence[_Found]) -> _Found | None:
    before = [item for item in found if item.span[1] <= run[0]]
    after = [item for item in found if item.span[0] >= run[1]]
    if before:
        return max(before, key=lambda item: item.span[1])
    return min(after, key=lambda item: item.span[0]) if after else None


def _tells(clause: str) -> bool:
    return sum(2 if is_han(char) else char.isalnum() for char in clause) >= _TELLING_CLAUSE


def _with_evidence(fact: Fact, evidence: str) -> Fact:
    return fact if fact.text == evidence else replace(fact, evidence=evidence)


def _plain(text: str, lexicon: Lexicon) -> Fact:
    told = lexicon.classify(text)
    return Fact(text, topics=told.topics, intent=told.intent, urgency=told.urgency)
