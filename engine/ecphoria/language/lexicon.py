"""The domain's words, compiled once: topics, cues and id patterns found in a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from ecphoria.language.event_words import WORDS as ORDER_WORDS
from ecphoria.language.event_words import event_words
from ecphoria.language.folding import Compact, is_han
from ecphoria.language.short_names import in_number, short_names
from ecphoria.language.spelling import Spelling
from ecphoria.language.terms import terms
from ecphoria.language.time_words import time_words
from ecphoria.language.typos import typo_spans
from ecphoria.language.words import Met, WordIndex, flattened
from ecphoria.model import EntityRef, NamedEntity, Urgency
from ecphoria_schema.domain import Domain, IntentRule, TopicRule
from ecphoria_schema.fact_rules import Cue, FactRule, StatementRule

# Full-width forms, the blank of Chinese type, and the curly apostrophe of phones.
_NARROW = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {
    0x3000: 0x20,
    0x2019: 0x27,
    0x2018: 0x27,
}
# What was found in so many short texts is kept.
_KEPT_TEXTS, _KEPT_CHARS = 128, 2_000
_KEPT_NAMES = 4_096
# A name of one character stands in too many texts by chance.
_MIN_NAME_CHARS = 2


@dataclass(frozen=True, slots=True)
class IdMention:
    """An id in a text, with the forms under which the entity may be stored."""

    text: str
    candidates: tuple[EntityRef, ...]


@dataclass(frozen=True, slots=True)
class NameMention:
    """A name in a text, and the entities it may mean.

    Attributes:
        text: The name as it is recorded, or what the domain calls the same.
        partial: Only a part of it was said; others may be meant as well.
        said: What stands in the text, folded.
    """

    text: str
    property: str
    refs: tuple[EntityRef, ...]
    partial: bool = False
    said: str = ""


@dataclass(frozen=True, slots=True)
class Classification:
    """What a text is about, what it wants, how pressing it is.

    Attributes:
        topics: The domain's topics, the likeliest first.
        intent: One of the domain's intents; None where nothing tells.
    """

    topics: tuple[str, ...]
    intent: str | None
    urgency: Urgency


FactPart: TypeAlias = Literal["statement", "question", "answer"]


def _cues(fact: FactRule) -> tuple[tuple[FactPart, Cue], ...]:
    if isinstance(fact, StatementRule):
        return (("statement", Cue(any=fact.any, none=fact.none)),)
    return (("question", fact.question), ("answer", fact.answer))


# Where words of a domain are used: ("topic", "refund"), ("value", "order.status", "paid") …
_Use: TypeAlias = tuple[str, ...]
_Span: TypeAlias = tuple[int, int]
_RULE_PARTS: Final = ("any", "also", "none")

# Names that are as good as ids: one letter makes another one.
_EXACT_PROPERTIES: Final = frozenset({"serial", "model"})
_DIGIT = re.compile(r"\d")
# A short name with more letters may have a typo, too.
_MIN_SHORT_LETTERS = 6
# Beside these a short name is no thing: "by phone", "phone call", "please phone me", 手机壳.
_NO_THING_AFTER = re.compile(
    r" ?(?:numbers?|no\.|calls?|lines?|bills?|plans?|contracts?|cases?|covers?|conversations?"
    r"|support|me|you|him|her|us|them|out|tv)(?![a-z0-9])| ?(?:号|壳|套|膜|支架|卡|店|费)"
)
_NO_THING_BEFORE = re.compile(
    r"(?<![a-z])(?:by|via|over the|on the|to|please|will|can|cannot|can't|don't|i|we|they|you) $"
)


# What things are called.
_THING: Final = ("thing",)


class Lexicon:
    """What a domain's words say about a text. Built once, used by writing and reading alike."""

    def __init__(self, domain: Domain) -> None:
        """Compile the words of a domain."""
        self._domain = domain
        self._words: WordIndex[_Use] = WordIndex()
        for topic, declared in domain.topics.items():
            self._words.add(declared.keywords.all, ("topic", topic))
        for intent, wanted in domain.intents.items():
            self._words.add(wanted.keywords.all, ("intent", intent))
        for label, entity in domain.entities.items():
            self._words.add(entity.pronouns.all, ("pronoun", label))
        for cue_name, vocabulary in domain.cues:
            self._words.add(vocabulary.all, ("cue", cue_name))
        for level, vocabulary in domain.urgency:
            self._words.add(vocabulary.all, ("urgency", level))
        self._words.add([word for group in domain.synonyms for word in group.all], _THING)
        for name, attribute in domain.attributes.items():
            for value, vocabulary in attribute.values.items():
                self._words.add(vocabulary.all, ("value", name, value))
        for name, fact in domain.facts.items():
            for part, cue in _cues(fact):
                self._words.add(cue.any.all, ("fact", name, part, "any"))
                self._words.add(cue.none.all, ("fact", name, part, "none"))
        self._topic_rules = self._rules("topic_rule", domain.topic_rules)
        self._intent_rules = self._rules("intent_rule", domain.intent_rules)
        # ASCII edges: an id that is part of a longer token is another id
        self._ids = [
            (label, re.compile(rf"(?<![0-9A-Za-z])(?:{item.regex})(?![0-9A-Za-z])"), item.forms)
            for label, entity in domain.entities.items()
            for item in entity.id_patterns
        ]
        self._titles = {
            # Chinese puts other words between: 订单现在是什么状态
            name: [
                frozenset(term for term in terms(title) if not (is_han(term) and len(term) > 1))
                for title in (declared.title.en, declared.title.zh)
            ]
            for name, declared in domain.attributes.items()
        }
        self._synonyms = {_compact(word): group for group in domain.synonyms for word in group.all}
        self.spelling = Spelling((*self._words, *ORDER_WORDS))
        self._also_called = lru_cache(maxsize=_KEPT_NAMES)(self._find_also_called)
        self._lately_met = lru_cache(maxsize=_KEPT_TEXTS)(self._words.find)

    def _met(self, text: str) -> Met[_Use]:
        # one text is asked about many times in a row
        return self._lately_met(text) if len(text) <= _KEPT_CHARS else self._words.find(text)

    def _rules(
        self, name: str, rules: Sequence[TopicRule | IntentRule]
    ) -> list[tuple[_Use, _Use | None, _Use]]:
        compiled: list[tuple[_Use, _Use | None, _Use]] = []
        for number, rule in enumerate(rules):
            any_, also, none = ((name, str(number), part) for part in _RULE_PARTS)
            self._words.add(rule.any, any_)
            self._words.add(rule.also, also)
            self._words.add(rule.none, none)
            compiled.append((any_, also if rule.also else None, none))
        return compiled

    def classify(self, text: str) -> Classification:
        """Return topics, intent and urgency of a text, all of them read at once."""
        met = self._met(text)
        intents = self._ranked("intent", self._domain.intents, self._met_rules("intent", met), met)
        return Classification(
            self._topics(met), intents[0] if intents else None, self._urgency(met)
        )

    def topics(self, text: str) -> tuple[str, ...]:
        """Return the topics of a text, the likeliest first: rules, then number of words met."""
        return self._topics(self._met(text))

    def topics_near(self, text: str, place: tuple[int, int]) -> tuple[str, ...]:
        """Return the topics of a text, those first that are spoken of nearest to a place.

        Args:
            text: The text.
            place: Start and end, in the flattened text.
        """
        met = self._met(text)

        def away(topic: str) -> int:
            return min(
                (
                    max(place[0] - end, start - place[1], 0)
                    for start, end in _spans(("topic", topic), met)
                ),
                default=len(text),
            )

        return tuple(sorted(self._topics(met), key=away))

    def _topics(self, met: Met[_Use]) -> tuple[str, ...]:
        return self._ranked("topic", self._domain.topics, self._met_rules("topic", met), met)

    def _met_rules(self, what: str, met: Met[_Use]) -> Iterator[str]:
        if what == "topic":
            names = [rule.topic for rule in self._domain.topic_rules]
            rules = self._topic_rules
        else:
            names = [rule.intent for rule in self._domain.intent_rules]
            rules = self._intent_rules
        for name, (any_, also, none) in zip(names, rules, strict=True):
            if any_ in met and (also is None or also in met) and none not in met:
                yield name

    @staticmethod
    def _ranked(
        what: str, declared: Iterable[str], ruled: Iterable[str], met: Met[_Use]
    ) -> tuple[str, ...]:
        words = {name: met[what, name] for name in declared if (what, name) in met}
        # a word within a longer one of another name, of small talk, or of what a thing is called,
        # is not met: "have a nice weekend" speaks of no weekend, "portable charger" of no charger
        hiding = [*((what, name) for name in words), ("cue", "smalltalk"), _THING]
        hidden = _within_others(set().union(*(_spans(use, met) for use in hiding)))
        counts = {
            name: sum(not hidden.issuperset(spans) for spans in found.values())
            for name, found in words.items()
        }
        # a stable sort: of those with as many words, the first of the file
        counted = sorted((name for name in counts if counts[name]), key=lambda name: -counts[name])
        return tuple(dict.fromkeys((*ruled, *counted)))

    @staticmethod
    def _urgency(met: Met[_Use]) -> Urgency:
        # "no hurry" holds "hurry"
        if _free(("urgency", "high"), [("urgency", "low")], met):
            return "high"
        return "low" if ("urgency", "low") in met else "normal"

    def has_cue(self, cue: str, text: str, values_of: str | None = None) -> bool:
        """Whether a text holds a word of one of the domain's cues, e.g. ``negation``.

        Small talk that holds such a word ("no problem") says nothing, nor does a word within
        one for another thing (the 它 of 其它).

        Args:
            cue: Name of the cue.
            text: Where to look.
            values_of: An attribute; the cue's words within those for its values ("not shipped
                yet") do not count either.
        """
        values = self._domain.attributes[values_of].values if values_of else ()
        return self._stands(
            ("cue", cue),
            self._met(text),
            *(("value", str(values_of), value) for value in values),
        )

    def fits(self, fact: str, part: FactPart, text: str) -> bool:
        """Whether a part of what was said has the words that a fact rule wants, and no other."""
        any_, none = (("fact", fact, part, which) for which in ("any", "none"))
        met = self._met(text)
        wanted = dict(_cues(self._domain.facts[fact]))[part].any.all
        return (not wanted or self._stands(any_, met)) and not self._stands(none, met)

    @staticmethod
    def _stands(use: _Use, met: Met[_Use], *hiding: _Use) -> bool:
        return bool(_free(use, (("cue", "smalltalk"), ("cue", "another"), *hiding), met))

    def values_met(self, attribute: str, text: str) -> tuple[str, ...]:
        """Return the values of an attribute whose words stand in a text, in order of the file."""
        met = self._met(text)
        uses = [("value", attribute, value) for value in self._domain.attributes[attribute].values]
        # a value's word within a longer one of another value ("paid" in "not paid") is not it
        return tuple(use[-1] for use in uses if _free(use, uses, met))

    def value_named(self, attribute: str, words: str) -> str | None:
        """Return the value of an attribute that words are a name of, and of nothing more."""
        flat = flattened(words)
        met = self._met(words)
        for value in self._domain.attributes[attribute].values:
            for spans in met.get(("value", attribute, value), {}).values():
                if (0, len(flat)) in spans:
                    return value
        return None

    def attributes_named(self, text: str) -> tuple[str, ...]:
        """Return the attributes whose title's words all stand in a text."""
        held = frozenset(terms(text))
        return tuple(
            name
            for name, titles in self._titles.items()
            if any(title and title <= held for title in titles)
        )

    def pronouns(self, text: str) -> tuple[str, ...]:
        """Return the entity types of which a text means the one named last, e.g. by "it"."""
        met = self._met(text)
        return tuple(
            label
            for label in self._domain.entities
            if _free(("pronoun", label), [("cue", "another")], met)
        )

    def is_smalltalk(self, text: str) -> bool:
        """Whether a text is nothing but small talk."""
        flat = flattened(text)
        spans = self._smalltalk(text)
        if not spans:
            return False
        covered = {place for start, end in spans for place in range(start, end)}
        return not any(char.isalnum() and place not in covered for place, char in enumerate(flat))

    def _smalltalk(self, text: str) -> list[_Span]:
        found = self._met(text).get(("cue", "smalltalk"), {})
        return [span for spans in found.values() for span in spans]

    def wants_history(self, text: str) -> bool:
        """Whether a question asks for what used to be.

        "Before the repair" does not; "before I moved" does, since the address is another one now.
        A word within one for a time (三天以前) does not, either.
        """
        if not self._domain.cues.history.all:
            return False
        spans = _spans(("cue", "history"), self._met(text))
        events = event_words(text)
        times = [(word.start, word.end) for word in time_words(flattened(text))]
        return events.before_change or bool(spans - _inside(spans, (*events.before_at, *times)))

    def wants_procedure(self, text: str) -> bool:
        """Whether a question asks how something is done or what the rule is."""
        return ("cue", "procedure") in self._met(text)

    def id_mentions(self, text: str) -> tuple[IdMention, ...]:
        """Return the ids in a text. They may belong to nothing."""
        narrow = narrowed(text)
        found: dict[str, dict[EntityRef, None]] = {}
        for label, pattern, forms in self._ids:
            for match in pattern.finditer(narrow):
                groups = match.groups() or (match.group(),)
                refs = found.setdefault(match.group(), {})
                for form in forms:
                    refs[EntityRef(label, form.format(*groups))] = None
        return tuple(IdMention(item, tuple(refs)) for item, refs in found.items())

    def name_mentions(
        self, text: str, names: Sequence[NamedEntity], *, near: bool = False
    ) -> tuple[NameMention, ...]:
        """Return which of the names stand in a text; a longer name hides a shorter one in it.

        A name within a longer word of a topic (手机 in 手机号) is not met. In place of a name, what
        the domain calls the same thing is met.

        Args:
            text: Where to look.
            names: What to look for.
            near: Also find names in the other number ("watches"), with one typo, and said more
                shortly ("keyboard"); never serial numbers and models. A typo that makes two names
                equally near is none.
        """
        flat = flattened(text)
        compact, met = Compact(flat), self._met(text)
        found = list(_standing(names, compact))
        same = list(_standing(self._synonymous(names), compact))
        if near:
            words = frozenset(span for uses in met.values() for at in uses.values() for span in at)
            may = list(filter(self._may_be_near, names))
            found = _with_near(found, same, may, compact, flat, words)
        else:
            found = _by_rank(found, same)
        topics = {span for use in met if use[0] == "topic" for span in _spans(use, met)}
        found = [
            item
            for item in found
            if item.partial or not _within_longer(compact.place(*item.span), topics)
        ]
        hidden = _within_others({item.span for item in found})
        kept: dict[tuple[str, str], NameMention] = {}
        for item in found:
            if item.span not in hidden:
                name = item.name
                first, last = compact.place(*item.span)
                mention = NameMention(
                    name.name, name.property, name.refs, item.partial, flat[first:last]
                )
                before = kept.get((name.name, name.property), mention)
                kept[name.name, name.property] = replace(
                    before,
                    refs=tuple(dict.fromkeys((*before.refs, *name.refs))),
                    partial=before.partial and item.partial,
                )
        return tuple(kept.values())

    def _synonymous(self, names: Iterable[NamedEntity]) -> Iterator[NamedEntity]:
        for name in names:
            if self._may_be_near(name):
                for other in self._also_called(name.name):
                    yield replace(name, name=other)

    def _find_also_called(self, name: str) -> tuple[str, ...]:
        """Return what else a name's thing is called: all of it, or the longest end of it."""
        flat = flattened(name)
        for start in range(len(flat)):
            if start and not (is_han(flat[start]) or flat[start - 1] in " -"):
                continue
            own = _compact(flat[start:])
            group = self._synonyms.get(own)
            if group is not None:
                # what stands before the end of a name is in its language
                words = group.all if not start else group.zh if is_han(flat[start]) else group.en
                forms = (
                    form
                    for word in words
                    if _compact(word) != own
                    for form in _in_both_numbers(word)
                )
                return tuple(dict.fromkeys(flat[:start] + form for form in forms))
        return ()

    def _may_be_near(self, name: NamedEntity) -> bool:
        return name.property not in _EXACT_PROPERTIES and not all(
            ref.type == self._domain.root for ref in name.refs
        )


@dataclass(frozen=True, slots=True)
class _Found:
    """Where a name stands in a compact text."""

    start: int
    end: int
    name: NamedEntity
    form: str
    partial: bool = False

    @property
    def span(self) -> _Span:
        return self.start, self.end

    def overlaps(self, other: _Found) -> bool:
        return self.start < other.end and other.start < self.end

    def is_longer(self, other: _Found) -> bool:
        return (
            self.start <= other.start
            and other.end <= self.end
            and self.end - self.start > other.end - other.start
        )


def _standing(names: Iterable[NamedEntity], text: Compact) -> Iterator[_Found]:
    """Return where names stand in a text as they are."""
    for name in names:
        wanted = _compact(name.name)
        if len(wanted) >= _MIN_NAME_CHARS and wanted in text.text:
            for start, end in text.find(name.name):
                yield _Found(start, end, name, wanted)


def _with_near(
    exact: Sequence[_Found],
    same: Sequence[_Found],
    names: Sequence[NamedEntity],
    text: Compact,
    flat: str,
    words: frozenset[_Span],
) -> list[_Found]:
    """Return the names found with those that are nearly said.

    Args:
        exact: Names found as they are.
        same: What is said in their place.
        names: Those that may be nearly said.
        text: Where to look.
        flat: The same, flattened.
        words: Where in it the domain's words stand.
    """
    number, shorter, typable = _other_forms(tuple(name.name for name in names))
    short = list(_said(shorter, names, text, partial=True))
    mistyped = [
        item
        for item in _typos_of_short(typable, names, text)
        if text.place(*item.span) not in words
    ]
    spans = {item.span for item in (*short, *mistyped)}
    things = {span for span in spans if _is_thing(text.place(*span), flat, words)}
    return _by_rank(
        exact,
        list(_said(number, names, text, partial=False)),
        same,
        # a word of the trade is no typo
        _clear([item for item in _typos(names, text) if text.place(*item.span) not in words]),
        [item for item in short if item.span in things],
        _clear([item for item in mistyped if item.span in things]),
    )


def _is_thing(span: _Span, flat: str, words: Iterable[_Span]) -> bool:
    """Whether what is said shortly stands for a thing there, and for nothing else."""
    return not (
        _within_longer(span, words)
        or _NO_THING_AFTER.match(flat, span[1])
        or _NO_THING_BEFORE.search(flat[: span[0]])
    )


@dataclass(frozen=True, slots=True)
class _Form:
    """Another way to say some names, given by their places among all."""

    form: Compact
    of: tuple[int, ...]

    @property
    def may_have_typo(self) -> bool:
        return len(self.form.text) >= _MIN_SHORT_LETTERS and self.form.text.isascii()


def _in_both_numbers(word: str) -> tuple[str, ...]:
    return (word, *(form.text for form in in_number(word)))


@lru_cache(maxsize=_KEPT_TEXTS)
def _other_forms(names: tuple[str, ...]) -> tuple[tuple[_Form, ...], ...]:
    """Return names in the other number, short names, and those of the short that may have a typo.

    A user's things share many of them, and are asked about again and again.
    """
    number, short = (_formed(names, forms) for forms in (in_number, short_names))
    return number, short, tuple(form for form in short if form.may_have_typo)


def _formed(names: Sequence[str], forms: Callable[[str], tuple[Compact, ...]]) -> tuple[_Form, ...]:
    found: dict[str, tuple[Compact, list[int]]] = {}
    for place, name in enumerate(names):
        for form in forms(name):
            found.setdefault(form.text, (form, []))[1].append(place)
    return tuple(_Form(form, tuple(places)) for form, places in found.values())


def _said(
    forms: Iterable[_Form], names: Sequence[NamedEntity], text: Compact, *, partial: bool
) -> Iterator[_Found]:
    for item in forms:
        if item.form.text in text.text:
            for span in text.find(item.form):
                yield from (
                    _Found(*span, names[place], item.form.text, partial) for place in item.of
                )


def _typos(names: Iterable[NamedEntity], text: Compact) -> Iterator[_Found]:
    for name in names:
        for span in typo_spans(text, name.name):
            yield _Found(*span, name, _compact(name.name))


def _typos_of_short(
    forms: Iterable[_Form], names: Sequence[NamedEntity], text: Compact
) -> Iterator[_Found]:
    for item in forms:
        for span in typo_spans(text, item.form.text):
            yield from (
                _Found(*span, names[place], item.form.text, partial=True) for place in item.of
            )


def _by_rank(*ranks: Sequence[_Found]) -> list[_Found]:
    """Return what is found, the surest first; what is less sure only where nothing surer stands.

    A longer one counts all the same: "wirless charger" is no "charger".
    """
    kept: list[_Found] = []
    for rank in ranks:
        kept += [
            item
            for item in rank
            if not any(item.overlaps(other) and not item.is_longer(other) for other in kept)
        ]
    return kept


def _clear(found: Sequence[_Found]) -> list[_Found]:
    """Return the typos that make one name only: what is as near to another name is neither."""
    return [
        item
        for item in found
        if not any(
            item.overlaps(other)
            and not item.is_longer(other)
            and not other.is_longer(item)
            and item.form != other.form
            and set(item.name.refs) != set(other.name.refs)
            for other in found
        )
    ]


@lru_cache(maxsize=_KEPT_NAMES)
def _compact(name: str) -> str:
    # a user's names are looked for in all of his texts
    return Compact(name).text


def _within_others(spans: set[tuple[int, int]]) -> set[tuple[int, int]]:
    # longest first at each start: a span that ends no later than one before lies within it
    hidden: set[tuple[int, int]] = set()
    far = -1
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if end <= far:
            hidden.add((start, end))
        far = max(far, end)
    return hidden


def _inside(spans: set[_Span], others: Sequence[_Span]) -> set[_Span]:
    return {
        (start, end)
        for start, end in spans
        if any(first <= start < last or start <= first < end for first, last in others)
    }


def _within_longer(span: _Span, others: Iterable[_Span]) -> bool:
    start, end = span
    return any(
        first <= start and end <= last and last - first > end - start for first, last in others
    )


def _spans(use: _Use, met: Met[_Use]) -> set[_Span]:
    return {span for spans in met.get(use, {}).values() for span in spans}


def _free(use: _Use, hiding: Iterable[_Use], met: Met[_Use]) -> set[_Span]:
    """Return where words of a use stand that do not lie within longer words of other uses."""
    spans = _spans(use, met)
    if not spans:
        return spans
    return spans - _within_others(spans.union(*(_spans(other, met) for other in hiding)))


def narrowed(text: str) -> str:
    """Return a text of the same length with full-width digits, letters and signs made ASCII.

    Case stays: ids are case-sensitive.
    """
    return text if text.isascii() else text.translate(_NARROW)
