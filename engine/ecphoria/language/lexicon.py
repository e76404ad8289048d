"""The domain's words, compiled once: topics, cues and id patterns found in a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ecphoria.language.folding import Compact, fold, is_han
from ecphoria.model import EntityRef, NamedEntity
from ecphoria_schema.domain import Domain, Vocabulary

_WORD_EDGE = r"(?<![0-9a-z]){}(?![0-9a-z])"
# A name of one character stands in too many texts by chance.
_MIN_NAME_CHARS = 2


@dataclass(frozen=True, slots=True)
class IdMention:
    """An id in a text, with the forms under which the entity may be stored."""

    text: str
    candidates: tuple[EntityRef, ...]


@dataclass(frozen=True, slots=True)
class NameMention:
    """A name in a text, and the entities it may mean."""

    text: str
    property: str
    refs: tuple[EntityRef, ...]


def _pattern(words: Iterable[str]) -> re.Pattern[str] | None:
    parts: list[str] = []
    for word in words:
        folded = " ".join(fold(word).split())
        stem = folded.rstrip("*").rstrip()
        # a line may break within a phrase
        text = r"\s+".join(re.escape(part) for part in stem.split(" "))
        if is_han(folded):
            parts.append(text)
        elif folded.endswith("*"):
            parts.append(_WORD_EDGE.format(text + r"[0-9a-z]*"))
        else:
            parts.append(_WORD_EDGE.format(text))
    return re.compile("|".join(parts)) if parts else None


def _all_words(vocabulary: Vocabulary) -> tuple[str, ...]:
    return (*vocabulary.en, *vocabulary.zh)


def _hits(pattern: re.Pattern[str] | None, folded: str) -> int:
    return len(set(pattern.findall(folded))) if pattern else 0


class Lexicon:
    """What a domain's words say about a text. Built once, used by writing and reading alike."""

    def __init__(self, domain: Domain) -> None:
        """Compile the words of a domain."""
        self._domain = domain
        self._topics = {
            name: _pattern(_all_words(topic.keywords)) for name, topic in domain.topics.items()
        }
        self._rules = [
            (rule.topic, _pattern(rule.any), _pattern(rule.none)) for rule in domain.topic_rules
        ]
        cues = domain.cues
        self._smalltalk = _pattern(sorted(_all_words(cues.smalltalk), key=len, reverse=True))
        self._history = _pattern(_all_words(cues.history))
        self._procedure = _pattern(_all_words(cues.procedure))
        # ASCII edges: an id that is part of a longer token is another id
        self._ids = [
            (label, re.compile(rf"(?<![0-9A-Za-z])(?:{item.regex})(?![0-9A-Za-z])"), item.forms)
            for label, entity in domain.entities.items()
            for item in entity.id_patterns
        ]

    def topics(self, text: str) -> tuple[str, ...]:
        """Return the topics of a text, the likeliest first: rules, then number of words met."""
        folded = fold(text)
        ruled = [
            topic
            for topic, wanted, unwanted in self._rules
            if _hits(wanted, folded) and not _hits(unwanted, folded)
        ]
        counted = {
            name: count
            for name, pattern in self._topics.items()
            if (count := _hits(pattern, folded))
        }
        order = {name: place for place, name in enumerate(self._domain.topics)}
        by_count = sorted(counted, key=lambda name: (-counted[name], order[name]))
        return tuple(dict.fromkeys((*ruled, *by_count)))

    def is_smalltalk(self, text: str) -> bool:
        """Whether a text is nothing but small talk."""
        folded = fold(text)
        if self._smalltalk is None or not self._smalltalk.search(folded):
            return False
        rest = self._smalltalk.sub(" ", folded)
        return not any(char.isalnum() for char in rest)

    def wants_history(self, text: str) -> bool:
        """Whether a question asks for what used to be."""
        return bool(_hits(self._history, fold(text)))

    def wants_procedure(self, text: str) -> bool:
        """Whether a question asks how something is done or what the rule is."""
        return bool(_hits(self._procedure, fold(text)))

    def id_mentions(self, text: str) -> tuple[IdMention, ...]:
        """Return the ids in a text. They may belong to nothing."""
        narrow = _narrow(text)
        found: dict[str, dict[EntityRef, None]] = {}
        for label, pattern, forms in self._ids:
            for match in pattern.finditer(narrow):
                groups = match.groups() or (match.group(),)
                refs = found.setdefault(match.group(), {})
                for form in forms:
                    refs[EntityRef(label, form.format(*groups))] = None
        return tuple(IdMention(item, tuple(refs)) for item, refs in found.items())

    def name_mentions(self, text: str, names: Sequence[NamedEntity]) -> tuple[NameMention, ...]:
        """Return which of the names stand in a text; a longer name hides a shorter one in it."""
        compact = Compact(text)
        spans: list[tuple[int, int, NamedEntity]] = [
            (start, end, name)
            for name in names
            if len(Compact(name.name).text) >= _MIN_NAME_CHARS
            for start, end in compact.find(name.name)
        ]
        kept: dict[tuple[str, str], dict[EntityRef, None]] = {}
        hidden = _within_others({(start, end) for start, end, _ in spans})
        for start, end, name in spans:
            if (start, end) not in hidden:
                refs = kept.setdefault((name.name, name.property), {})
                refs.update(dict.fromkeys(name.refs))
        return tuple(NameMention(text_, prop, tuple(refs)) for (text_, prop), refs in kept.items())


def _within_others(spans: set[tuple[int, int]]) -> set[tuple[int, int]]:
    # longest first at each start: a span that ends no later than one before lies within it
    hidden: set[tuple[int, int]] = set()
    far = -1
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if end <= far:
            hidden.add((start, end))
        far = max(far, end)
    return hidden


def _narrow(text: str) -> str:
    # full-width digits, letters and ＃ become ASCII; case stays, ids are case-sensitive
    return "".join(
        chr(ord(char) - 0xFEE0) if "\uff01" <= char <= "\uff5e" else char for char in text
    )
