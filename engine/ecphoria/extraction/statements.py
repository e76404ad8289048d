"""Read what single sentences state, by the domain's rules. Pure functions.

A false value of an attribute would end the validity of a true memory. So a sentence states a fact
only as a whole, in the speaker's own name, without a condition or a doubt; anything else stays
text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from ecphoria.extraction.chunks import Span, sentences
from ecphoria.language.folding import fold
from ecphoria.language.lexicon import Lexicon, narrowed
from ecphoria_schema.domain import Domain
from ecphoria_schema.fact_rules import GUARDS, FactRule, StatementRule

# Longer sentences say more than one thing.
MAX_STATEMENT_CHARS: Final = 300

_ENDS: Final = " \t\n.。!！,，;；~～…"
_FIRST_CLAUSE: Final = re.compile(r"([^,，。!！;；~…]{1,40})[,，。!！;；~…\s]+")
_LAST_CLAUSE: Final = re.compile(r"[,，。!！;；~…]\s?([^,，。!！;；~…]{1,40})$")
_CLAUSE: Final = re.compile(r"[^,，、;；。.!！?？…\n]+[?？]?")
_JOINED: Final = re.compile(r"\b(?:and|but)\b|但是?|并且?|而且", re.IGNORECASE)
_OPEN_QUOTES: Final = {"“": "”", "「": "」", "『": "』", "《": "》"}


@dataclass(frozen=True, slots=True)
class Statement:
    """What a sentence states.

    Attributes:
        name: Of the rule.
        details: Slots of the rule beside value and subject, by name.
    """

    name: str
    rule: FactRule
    attribute: str | None = None
    value: str | None = None
    subject: str | None = None
    details: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        """What it is about: statements with the same key and other values exclude each other."""
        return (self.attribute or self.name, " ".join(fold(self.subject or "").split()))


@lru_cache(maxsize=2_000)
def compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern of the domain file, whatever the case of the text."""
    return re.compile(pattern, re.IGNORECASE)


def statements(
    text: str, domain: Domain, lexicon: Lexicon
) -> tuple[tuple[Span, Statement | None], ...]:
    """Return the sentences of a text, each with what it states.

    What is quoted, or announced by a colon, is somebody else's statement.
    """
    quoted = _quoted(text)
    found: list[tuple[Span, Statement | None]] = []
    announced = False
    for span in sentences(text):
        sentence = text[slice(*span)]
        own = not announced and not any(start < span[1] and span[0] < end for start, end in quoted)
        found.append((span, stated(sentence, domain, lexicon) if own else None))
        announced = sentence.rstrip().endswith((":", "："))
    return tuple(found)


def _quoted(text: str) -> list[Span]:
    spans: list[Span] = []
    close, start = "", 0
    for place, char in enumerate(text):
        if close:
            if char == close:
                spans.append((start, place + 1))
                close = ""
        elif char == '"' or char in _OPEN_QUOTES:
            close, start = _OPEN_QUOTES.get(char, char), place
    if close:
        # a quote that does not end may be all the rest
        spans.append((start, len(text)))
    return spans


def stated(sentence: str, domain: Domain, lexicon: Lexicon) -> Statement | None:
    """Return what a sentence states by the first rule that fits, or None."""
    if len(sentence) > MAX_STATEMENT_CHARS:
        return None
    bare = _bare(narrowed(sentence), lexicon)
    for name, rule in domain.facts.items():
        if not isinstance(rule, StatementRule):
            continue
        for pattern in rule.says.all:
            match = compiled(pattern).fullmatch(bare)
            if match is None:
                continue
            statement = _filled(name, rule, match, bare, domain, lexicon)
            if statement is not None and _is_meant(bare, name, rule, lexicon):
                return statement
    return None


def _bare(sentence: str, lexicon: Lexicon) -> str:
    """Return a sentence without its end, and without small talk before and after."""
    bare = sentence.strip(_ENDS)
    while (first := _FIRST_CLAUSE.match(bare)) and lexicon.is_smalltalk(first[1]):
        bare = bare[first.end() :]
    while (last := _LAST_CLAUSE.search(bare)) and lexicon.is_smalltalk(last[1]):
        bare = bare[: last.start()].strip(_ENDS)
    return bare


def _is_meant(sentence: str, name: str, rule: StatementRule, lexicon: Lexicon) -> bool:
    return lexicon.fits(name, "statement", sentence) and not any(
        lexicon.has_cue(guard, sentence, rule.attribute)
        for guard in GUARDS
        if guard not in rule.despite
    )


def _filled(
    name: str,
    rule: StatementRule,
    match: re.Match[str],
    sentence: str,
    domain: Domain,
    lexicon: Lexicon,
) -> Statement | None:
    slots = {
        slot: " ".join(text.split()).strip(_ENDS)
        for slot, text in match.groupdict().items()
        if text is not None
    }
    details = {
        slot: text
        for slot, text in slots.items()
        if text and slot not in {rule.value, rule.subject}
    }
    if rule.attribute is None:
        return Statement(name, rule, details=details)
    attribute = domain.attributes[rule.attribute]
    if rule.value is None:
        met = lexicon.values_met(rule.attribute, sentence)
        value = met[0] if len(met) == 1 else None
    else:
        value = slots.get(rule.value)
        if value and attribute.values:
            value = lexicon.value_named(rule.attribute, value)
        elif value and rule.value in domain.slots:
            # what has a name of its own is kept under it
            details[rule.value] = value
    subject = slots.get(rule.subject) if rule.subject else None
    if not value or (attribute.keyed and not subject):
        return None
    if attribute.entity != domain.root and not _one_id(attribute.entity, sentence, lexicon):
        return None
    return Statement(name, rule, rule.attribute, value, subject, details)


def _one_id(type_: str, text: str, lexicon: Lexicon) -> str | None:
    """Return the only id of that entity type in a text, as written; None if there is no one."""
    found = {
        refs: mention.text
        for mention in lexicon.id_mentions(text)
        if (refs := tuple(ref for ref in mention.candidates if ref.type == type_))
    }
    return next(iter(found.values())) if len(found) == 1 else None


def answered_value(attribute: str, answer: str, lexicon: Lexicon) -> str | None:
    """Return the one value of an attribute that an answer says to be so; None if it is not clear.

    A value that is denied, asked about or yet to come does not count; nothing does where all
    depends on a condition.
    """
    if lexicon.has_cue("conditional", answer, attribute):
        return None
    values = {
        value
        for clause in _clauses(answer)
        if not any(
            lexicon.has_cue(cue, clause, attribute)
            for cue in ("question", "hypothetical", "negation", "hearsay")
        )
        for value in lexicon.values_met(attribute, clause)
    }
    return values.pop() if len(values) == 1 else None


def _clauses(text: str) -> Iterator[str]:
    for clause in _CLAUSE.findall(text):
        yield from _JOINED.split(clause)
