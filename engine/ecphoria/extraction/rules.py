"""Facts by the domain's rules: no model, no I/O, the same facts for the same text."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from ecphoria.errors import ConfigurationInvalid
from ecphoria.extraction.chunks import Span, chunks
from ecphoria.extraction.dialogue import MIN_TURNS, Exchange, Said, exchanges, turns
from ecphoria.extraction.port import Extraction, Fact, SourceText
from ecphoria.extraction.statements import (
    Statement,
    answered_value,
    compiled,
    statements,
)
from ecphoria.language.lexicon import Classification, Lexicon, narrowed
from ecphoria.model import EntityRef
from ecphoria_schema.domain import Domain, Language
from ecphoria_schema.fact_rules import ExchangeRule, FactRule

# Whoever says more in one go is not read by rules, but kept as it is.
MAX_SAID_CHARS: Final = 2_000
# Reading a longer text takes more than some milliseconds.
_LONG_CHARS: Final = 5_000

_OPTIONAL: Final = re.compile(r"\[([^\[\]]*)\]")
_NAME: Final = re.compile(r"\{([^{}]*)\}")


class RuleExtractor:
    """Cuts texts into facts by the rules of the domain file."""

    def __init__(
        self, domain: Domain, lexicon: Lexicon, chunk_chars: int, chunk_overlap: int
    ) -> None:
        """Take the rules of a domain.

        Args:
            domain: The domain whose rules are used.
            lexicon: Its words.
            chunk_chars: Longest text of a fact, in characters.
            chunk_overlap: Characters that a chunk repeats of the one before.

        Raises:
            ConfigurationInvalid: When chunks would overlap by a quarter of their length or more.
        """
        if chunk_overlap * 4 >= chunk_chars:
            msg = (
                f"ECPHORIA_CHUNK_OVERLAP ({chunk_overlap}) must be less than a quarter of "
                f"ECPHORIA_CHUNK_CHARS ({chunk_chars})"
            )
            raise ConfigurationInvalid(msg)
        self._domain = domain
        self._lexicon = lexicon
        self._chunk_chars = chunk_chars
        self._chunk_overlap = chunk_overlap

    async def extract(self, source: SourceText) -> Extraction:
        """Return the facts of a text, in its order."""
        read = partial(
            extract_facts,
            source,
            self._domain,
            self._lexicon,
            chunk_chars=self._chunk_chars,
            chunk_overlap=self._chunk_overlap,
        )
        # a long text must not keep the event loop from others
        is_long = len(source.text) > _LONG_CHARS
        return Extraction(await asyncio.to_thread(read) if is_long else read(), "rules")

    async def close(self) -> None:
        """Hold nothing, so free nothing."""


def extract_facts(
    source: SourceText,
    domain: Domain,
    lexicon: Lexicon,
    *,
    chunk_chars: int,
    chunk_overlap: int,
) -> tuple[Fact, ...]:
    """Return the facts of a text in its order, at least one.

    Every word of the text is in a fact's text or evidence. Procedures are never cut into facts,
    since their steps belong together; like any longer text they are cut into chunks.

    Args:
        source: A clean text and what is known about it.
        domain: The domain whose rules are used.
        lexicon: Its words.
        chunk_chars: Longest text of a fact, in characters.
        chunk_overlap: Characters that a chunk repeats of the one before; less than a quarter.
    """
    reading = _Reading(source, domain, lexicon, chunk_chars, chunk_overlap)
    said = turns(source.text, domain)
    if source.kind == "procedural":
        facts = _kept(reading, source.text, lexicon.classify(source.text))
    elif len(said) >= MIN_TURNS:
        facts = _dialogue(reading, said)
    else:
        facts = _prose(reading, said)
    # who repeats himself says one thing
    once: dict[tuple[str, str | None], Fact] = {}
    for fact in facts:
        once.setdefault((fact.text, fact.evidence), fact)
    return tuple(once.values())


@dataclass(frozen=True, slots=True)
class _Reading:
    """A text that is being read, and by what."""

    source: SourceText
    domain: Domain
    lexicon: Lexicon
    chunk_chars: int
    chunk_overlap: int

    @property
    def text(self) -> str:
        return self.source.text

    @property
    def details(self) -> dict[str, str]:
        return {"said_at": self.source.said_at.isoformat()}


def _kept(reading: _Reading, text: str, about: Classification) -> list[Fact]:
    """Return a text as it is, in chunks where it is long, each with the same metadata."""
    return [
        Fact(chunk, topics=about.topics, intent=about.intent, urgency=about.urgency)
        for chunk in chunks(text, reading.chunk_chars, reading.chunk_overlap)
    ]


def _with_rule(about: Classification, rule: FactRule) -> Classification:
    topics = (rule.topic, *about.topics) if rule.topic else about.topics
    return Classification(
        tuple(dict.fromkeys(topics)),
        rule.intent or about.intent,
        rule.urgency or about.urgency,
    )


def _of_statement(reading: _Reading, text: str, statement: Statement) -> list[Fact]:
    about = _with_rule(reading.lexicon.classify(text), statement.rule)
    if len(text) > reading.chunk_chars:
        return _kept(reading, text, about)
    return [
        Fact(
            text,
            fact_type=statement.name,
            topics=about.topics,
            intent=about.intent,
            urgency=about.urgency,
            attribute=statement.attribute,
            value=statement.value,
            subject=statement.subject,
            details={**reading.details, **statement.details},
        )
    ]


# --- prose ---------------------------------------------------------------------------------


def _prose(reading: _Reading, said: Sequence[Said]) -> list[Fact]:
    """Return the facts of a text that is no dialogue."""
    text, lexicon = reading.text, reading.lexicon
    start = said[0].words[0] if said and not text[: said[0].whole[0]].strip() else 0
    if start and said[0].speaker == "service":
        # the service says nothing about itself
        return _kept(reading, text, lexicon.classify(text[start:]))
    pieces = _pieces(reading, text[start:])
    if len(pieces) == 1:
        statement = pieces[0][1]
        if statement is None:
            return _kept(reading, text, lexicon.classify(text))
        return _of_statement(reading, text, statement)
    facts: list[Fact] = []
    for (first, last), statement in pieces:
        # what marks the speaker stays with the first piece
        piece = text[first + start if first else 0 : last + start].strip()
        if statement is None:
            facts += _kept(reading, piece, lexicon.classify(piece))
        else:
            facts += _of_statement(reading, piece, statement)
    return facts


def _pieces(reading: _Reading, text: str) -> list[tuple[Span, Statement | None]]:
    """Cut a text so that no piece states two things; sentences without a fact stay with one.

    With the one before, the first ones with the one after. A sentence that is clearly about
    something else stays apart: when the fact is replaced, it must not go with it.
    """
    found = _consistent(statements(text, reading.domain, reading.lexicon))
    made = [(span, statement) for span, statement in found if statement is not None]
    if not made:
        return [((0, len(text)), None)]
    # of a long text each fact stands alone; the rest is cut into chunks
    is_long = len(text) > reading.chunk_chars
    topics = {
        topic
        for span, statement in made
        for topic in _with_rule(reading.lexicon.classify(text[slice(*span)]), statement.rule).topics
    }
    pieces: list[_Piece] = []
    for span, statement in found:
        apart = statement is None and (is_long or _is_apart(reading, text[slice(*span)], topics))
        piece = _Piece(span, statement, apart)
        if pieces and _joins(pieces[-1], piece, reading.chunk_chars):
            before = pieces[-1]
            piece = _Piece((before.span[0], span[1]), before.statement or statement, before.apart)
            pieces.pop()
        pieces.append(piece)
    return [(piece.span, piece.statement) for piece in pieces]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Consecutive sentences of which at most one thing is stated.

    Attributes:
        apart: Whether they are about something else than what is stated around them.
    """

    span: Span
    statement: Statement | None
    apart: bool


def _joins(before: _Piece, piece: _Piece, max_chars: int) -> bool:
    """Whether a sentence goes with the piece before it."""
    if piece.statement is None:
        return before.apart or not piece.apart
    if before.statement is None:
        return not before.apart
    fits = piece.span[1] - before.span[0] <= max_chars
    return fits and before.statement.key == piece.statement.key


def _consistent(
    found: Sequence[tuple[Span, Statement | None]],
) -> list[tuple[Span, Statement | None]]:
    """Take statements for none when they give one thing two values."""
    values: dict[tuple[str, str], set[str | None]] = {}
    for _, statement in found:
        if statement is not None:
            values.setdefault(statement.key, set()).add(statement.value)
    return [
        (span, None if statement and len(values[statement.key]) > 1 else statement)
        for span, statement in found
    ]


def _is_apart(reading: _Reading, sentence: str, topics: set[str]) -> bool:
    lexicon = reading.lexicon
    own = lexicon.topics(sentence)
    foreign = bool(own) and not topics.intersection(own)
    return (foreign or bool(lexicon.id_mentions(sentence))) and not lexicon.pronouns(sentence)


# --- dialogues -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Id:
    """An id as written; it equals another spelling of the same."""

    text: str = field(compare=False)
    refs: tuple[EntityRef, ...]


@dataclass(frozen=True, slots=True)
class _Known:
    """What a dialogue has named so far.

    Attributes:
        ids: Entity type -> the id named last.
        slots: Slot -> what was found last.
        topics: What was spoken of since.
    """

    ids: Mapping[str, _Id] = field(default_factory=dict)
    slots: Mapping[str, str] = field(default_factory=dict)
    topics: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Spoken:
    """An exchange as it is read.

    Attributes:
        raw: Its own words, with what marks the speakers.
        unclear: Entity types of which it names more than one.
    """

    raw: str
    question: str
    answer: str
    about: Classification
    ids: Mapping[str, _Id]
    unclear: frozenset[str]
    slots: Mapping[str, str]


def _dialogue(reading: _Reading, said: Sequence[Said]) -> list[Fact]:
    """Return the facts of a dialogue: one for each question with its answer."""
    text, lexicon = reading.text, reading.lexicon
    found = list(exchanges(text, said, lexicon))
    facts: list[Fact] = []
    before = text[: said[0].whole[0]].strip()
    if _is_heading(before, lexicon):
        found[0] = replace(found[0], span=(0, found[0].span[1]))
    else:
        source = replace(reading.source, text=before)
        facts += _prose(replace(reading, source=source), ())
    known = _Known()
    for exchange in found:
        spoken = _spoken(reading, exchange)
        here, known = _carried(reading, spoken, known)
        facts += _of_exchange(reading, exchange, spoken, here)
    return facts


def _is_heading(text: str, lexicon: Lexicon) -> bool:
    return (
        not any(char.isalnum() for char in text)
        or narrowed(text).endswith(":")
        or lexicon.is_smalltalk(text)
    )


def _spoken(reading: _Reading, exchange: Exchange) -> _Spoken:
    text, lexicon = reading.text, reading.lexicon
    question = _joined(text, exchange.asked)
    answer = _joined(text, exchange.answered)
    told = "\n".join((_joined(text, exchange.opened), question, answer)).strip()
    about = lexicon.classify(told)
    # the question tells what it is about, the answer adds to it
    wish = lexicon.classify(question or told)
    slots = _slots(reading.domain, answer, question)
    ids: dict[str, _Id] = {}
    unclear: set[str] = set()
    taken = set(slots.values())
    mentioned = [mention for mention in lexicon.id_mentions(told) if mention.text not in taken]
    for type_ in reading.domain.entities:
        named = {
            _Id(mention.text, refs)
            for mention in mentioned
            if (refs := tuple(ref for ref in mention.candidates if ref.type == type_))
        }
        if len(named) == 1:
            ids[type_] = named.pop()
        elif named:
            unclear.add(type_)
    return _Spoken(
        raw=text[slice(*exchange.span)].strip(),
        question=question,
        answer=answer,
        about=Classification(
            tuple(dict.fromkeys((*wish.topics, *about.topics))), wish.intent, wish.urgency
        ),
        ids=ids,
        unclear=frozenset(unclear),
        slots=slots,
    )


def _joined(text: str, spans: Iterable[Span]) -> str:
    return " ".join(" ".join(text[slice(*span)].split()) for span in spans)


def _slots(domain: Domain, *texts: str) -> dict[str, str]:
    """Return what the domain's slots find, in the first text that has it."""
    found: dict[str, str] = {}
    for name, slot in domain.slots.items():
        matches = (
            compiled(pattern).search(narrowed(text))
            for text in texts
            if len(text) <= MAX_SAID_CHARS
            for pattern in slot.all
        )
        match = next((match for match in matches if match), None)
        if match is not None:
            found[name] = match[1] if match.re.groups else match[0]
    return found


def _carried(reading: _Reading, spoken: _Spoken, known: _Known) -> tuple[_Known, _Known]:
    """Return what is known in an exchange, and what the next one may go on about."""
    lexicon = reading.lexicon
    told = f"{spoken.question}\n{spoken.answer}"
    topics = frozenset(spoken.about.topics)
    own = _Known(spoken.ids, spoken.slots, topics)
    same = all(known.ids.get(type_, id_) == id_ for type_, id_ in spoken.ids.items())
    if not same or spoken.unclear or lexicon.has_cue("another", told):
        return own, own
    goes_on = (
        not topics
        or bool(topics & known.topics)
        or any(type_ in known.ids for type_ in (*spoken.ids, *lexicon.pronouns(told)))
    )
    if goes_on:
        both = _Known(
            {**known.ids, **spoken.ids}, {**known.slots, **spoken.slots}, known.topics | topics
        )
        return both, both
    # what was spoken of before may come back
    return own, own if spoken.ids else known


def _of_exchange(
    reading: _Reading, exchange: Exchange, spoken: _Spoken, known: _Known
) -> list[Fact]:
    """Return the fact that question and answer give, and what the customer states in passing."""
    answered = _answered(reading, spoken, known)
    stated: list[Fact] = []
    # beside what is asked and stated
    rest: list[str] = []
    for start, end in exchange.asked:
        turn = reading.text[start:end]
        found = statements(turn, reading.domain, reading.lexicon)
        for span, statement in _consistent(found):
            sentence = turn[slice(*span)].strip()
            if statement is None:
                rest.append(sentence)
            else:
                stated += _of_statement(reading, sentence, statement)
    if answered:
        # when the value is replaced, nothing else that was said may go with it
        beside = [
            fact
            for sentence in rest
            if answered[0].attribute and _is_beside(reading, sentence, answered[0], spoken)
            for fact in _kept(reading, sentence, reading.lexicon.classify(sentence))
        ]
        return answered + beside + stated
    spoken_else = (*rest, spoken.answer, _joined(reading.text, exchange.opened))
    if stated and all(_is_idle(words, reading.lexicon) for words in spoken_else):
        return [replace(stated[0], evidence=spoken.raw), *stated[1:]]
    return _kept(reading, spoken.raw, spoken.about) + stated


def _is_beside(reading: _Reading, sentence: str, fact: Fact, spoken: _Spoken) -> bool:
    """Whether a sentence tells something that has nothing to do with the fact of its exchange."""
    lexicon = reading.lexicon
    own = set(lexicon.topics(sentence))
    return (
        bool(own)
        and not own.intersection((*fact.topics[:1], *lexicon.topics(spoken.answer)))
        and not lexicon.has_cue("question", sentence)
        and not lexicon.pronouns(sentence)
    )


def _is_idle(text: str, lexicon: Lexicon) -> bool:
    return not any(char.isalnum() for char in text) or lexicon.is_smalltalk(text)


def _answered(reading: _Reading, spoken: _Spoken, known: _Known) -> list[Fact]:
    """Return the fact of the first rule that an exchange fits; nothing when there is none."""
    if not (spoken.question and spoken.answer):
        return []
    if max(len(spoken.question), len(spoken.answer)) > MAX_SAID_CHARS:
        return []
    for name, rule in reading.domain.facts.items():
        if (
            isinstance(rule, ExchangeRule)
            and reading.lexicon.fits(name, "question", spoken.question)
            and reading.lexicon.fits(name, "answer", spoken.answer)
        ):
            fact = _by_rule(reading, name, rule, spoken, known)
            if fact is not None:
                return _shortened(reading, fact, spoken)
    return []


def _by_rule(
    reading: _Reading, name: str, rule: ExchangeRule, spoken: _Spoken, known: _Known
) -> Fact | None:
    domain, source = reading.domain, reading.source
    value = _value(reading, rule, spoken, known)
    subject = known.slots.get(rule.subject) if rule.subject else None
    facts = {**{type_: id_.text for type_, id_ in known.ids.items()}, **known.slots}
    if any(not (value if need == "value" else facts.get(need)) for need in rule.needs):
        return None
    attribute = domain.attributes[rule.attribute] if rule.attribute and value else None
    if attribute is not None and attribute.keyed and not subject:
        attribute = None
    shown = {
        **facts,
        **reading.details,
        "question": spoken.question,
        "answer": spoken.answer,
        "value": _named(domain, rule, value, source.lang),
        "subject": subject or "",
        "said_on": f"{source.said_at:%Y-%m-%d}",
    }
    about = _with_rule(spoken.about, rule)
    return Fact(
        text=filled(rule.text.zh if source.lang == "zh" else rule.text.en, shown),
        fact_type=name,
        topics=about.topics,
        intent=about.intent,
        urgency=about.urgency,
        attribute=rule.attribute if attribute else None,
        value=value if attribute else None,
        subject=subject if attribute else None,
        evidence=spoken.raw,
        details={**reading.details, **known.slots},
    )


def _value(reading: _Reading, rule: ExchangeRule, spoken: _Spoken, known: _Known) -> str | None:
    if rule.attribute is None:
        return None
    attribute = reading.domain.attributes[rule.attribute]
    if attribute.entity != reading.domain.root and attribute.entity not in known.ids:
        return None
    if rule.value is None:
        return answered_value(rule.attribute, spoken.answer, reading.lexicon)
    words = spoken.slots.get(rule.value)
    if words and attribute.values:
        return reading.lexicon.value_named(rule.attribute, words)
    return words


def _named(domain: Domain, rule: ExchangeRule, value: str | None, lang: Language) -> str:
    """Return a value's name for people."""
    if not value or not rule.attribute:
        return ""
    words = domain.attributes[rule.attribute].values.get(value)
    if words is None:
        return value
    return (words.zh if lang == "zh" else words.en)[0].rstrip("*")


def _shortened(reading: _Reading, fact: Fact, spoken: _Spoken) -> list[Fact]:
    """Return a fact; where its text is too long, the words themselves in chunks.

    Those give no value: several memories must not give the same one.
    """
    if len(fact.text) <= reading.chunk_chars:
        return [fact]
    return [
        replace(fact, text=chunk, attribute=None, value=None, subject=None, evidence=None)
        for chunk in chunks(spoken.raw, reading.chunk_chars, reading.chunk_overlap)
    ]


def filled(template: str, known: Mapping[str, str]) -> str:
    """Return a template of the domain file filled; parts without anything known are left out."""

    def part(match: re.Match[str]) -> str:
        return match[1] if all(known.get(name) for name in _NAME.findall(match[1])) else ""

    names = _NAME.findall(template)
    return _OPTIONAL.sub(part, template).format_map({**dict.fromkeys(names, ""), **known})
