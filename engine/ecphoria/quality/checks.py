"""The checks: what is measured of the checklist, and what the figures mean."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

import numpy as np

from ecphoria.embedding.port import Embedder
from ecphoria.errors import InvalidInput
from ecphoria.extraction.port import Fact, FactExtractor, SourceText
from ecphoria.language.folding import language_of
from ecphoria.language.lexicon import Lexicon
from ecphoria.model import Vector
from ecphoria.quality.checklist import Checklist, Dialogue, ExpectedFact
from ecphoria.quality.shelf import ask, shelf_parts
from ecphoria.settings import Settings
from ecphoria_schema.domain import Domain, Language


class Verdict(enum.StrEnum):
    """What a figure means."""

    PASS = "PASS"  # noqa: S105 - no password
    WARN = "WARN"
    FAIL = "FAIL"
    SKIP = "SKIP"


@dataclass(frozen=True, slots=True)
class Limits:
    """From where on a figure is good, and from where on it will do; below it fails.

    Where the two are set is measured: docs/how-to/check-quality.md has the figures.

    Attributes:
        fair: None = it never fails.
    """

    good: float
    fair: float | None

    def verdict(self, value: float) -> Verdict:
        """Return what a figure means."""
        if value >= self.good:
            return Verdict.PASS
        return Verdict.WARN if self.fair is None or value >= self.fair else Verdict.FAIL


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure of the checklist.

    Attributes:
        value: The figure; None when it was not taken.
        detail: What it is made from.
        advice: What to do, unless it is good.
        misses: What went wrong, each in one line.
    """

    name: str
    value: float | None
    limits: Limits
    verdict: Verdict
    detail: str
    advice: str = ""
    misses: tuple[str, ...] = ()


SEPARATION: Final = Limits(0.3, 0.25)
# Between languages a model may be weaker: what is asked in one is mostly written in the same.
ACROSS: Final = Limits(0.3, None)
FACTS: Final = Limits(0.9, 0.75)
KEPT: Final = Limits(0.85, 0.7)
DROPPED: Final = Limits(0.9, 0.75)
TAGS: Final = Limits(0.9, 0.75)

LANGUAGES: Final[Mapping[Language, str]] = {"en": "English", "zh": "Chinese"}

_MODEL: Final = (
    "The model takes different wishes for one another: choose one for this language "
    "(ECPHORIA_EMBEDDING_MODEL), then `ecphoria reembed`."
)
_WORDS: Final = "Add the words of the misses to {} in the domain file."


def _measured(
    name: str,
    value: float,
    limits: Limits,
    detail: str,
    advice: str,
    misses: Iterable[str] = (),
) -> Measure:
    verdict = limits.verdict(value)
    said = "" if verdict is Verdict.PASS else advice
    return Measure(name, value, limits, verdict, detail, said, tuple(misses))


async def examine(
    checklist: Checklist,
    embedder: Embedder,
    domain: Domain,
    settings: Settings,
    extractor: FactExtractor,
    languages: tuple[Language, ...] = ("en", "zh"),
) -> tuple[Measure, ...]:
    """Return all figures of a checklist. No store is needed.

    Args:
        checklist: What is asked.
        embedder: The model.
        domain: The business; without one of the checklist's name only the model is measured.
        settings: Weights and limits.
        extractor: What cuts facts.
        languages: Of the phrasings.

    Raises:
        EmbeddingFailed: When the model fails.
        InvalidInput: When the checklist names an entity type that the domain has not.
    """
    measures = await _synonyms(checklist, embedder, languages)
    if checklist.domain != domain.name:
        return (*measures, *_skipped(checklist, domain))
    lexicon = Lexicon(domain)
    return (
        *measures,
        await _facts(checklist, lexicon, extractor),
        *await _rules(checklist, embedder, domain, lexicon, settings, extractor),
        *_tags(checklist, lexicon, languages),
    )


def _skipped(checklist: Checklist, domain: Domain) -> list[Measure]:
    detail = f"the checklist is for the domain {checklist.domain}, this one is {domain.name}"
    advice = "Write a checklist for your domain and name it with --checklist."
    return [
        Measure(name, None, limits, Verdict.SKIP, detail, advice)
        for name, limits in (
            ("facts cut right", FACTS),
            ("right memories kept", KEPT),
            ("wrong memories dropped", DROPPED),
            ("topics right", TAGS),
            ("intents right", TAGS),
            ("urgency right", TAGS),
        )
    ]


# --- synonyms ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Separation:
    """Mean cosines of pairs that mean the same, and of pairs that do not."""

    within: float
    between: float
    misses: tuple[tuple[int, int], ...] = field(default=())

    @property
    def value(self) -> float:
        """How far apart the two means are."""
        return self.within - self.between


def separation(
    rows: Sequence[Vector],
    row_groups: Sequence[str],
    columns: Sequence[Vector],
    column_groups: Sequence[str],
    *,
    same: bool,
) -> Separation:
    """Return how far what means the same is apart from what does not.

    Args:
        rows: Vectors of unit length.
        row_groups: The group of each.
        columns: What they are compared with.
        column_groups: The group of each.
        same: Whether rows and columns are the same texts: none is compared with itself.

    Returns:
        The mean cosines, and the pairs (row, nearest column) of different groups.
    """
    cosines = np.asarray(rows, dtype=np.float64) @ np.asarray(columns, dtype=np.float64).T
    alike = np.asarray(row_groups)[:, None] == np.asarray(column_groups)[None, :]
    counted = ~np.eye(len(rows), dtype=bool) if same else np.ones_like(alike)
    nearest = np.where(counted, cosines, -np.inf).argmax(axis=1)
    return Separation(
        float(cosines[alike & counted].mean()),
        float(cosines[~alike & counted].mean()),
        tuple((row, int(column)) for row, column in enumerate(nearest) if not alike[row, column]),
    )


async def _synonyms(
    checklist: Checklist, embedder: Embedder, languages: tuple[Language, ...]
) -> list[Measure]:
    texts: dict[Language, list[tuple[str, str]]] = {
        language: [(group.name, text) for group, text in checklist.said((language,))]
        for language in languages
    }
    vectors = {
        language: [await embedder.embed_query(text) for _, text in said]
        for language, said in texts.items()
    }
    measures = []
    pairs = [*((each, each) for each in languages), *combinations(languages, 2)]
    for rows, columns in pairs:
        found = separation(
            vectors[rows],
            [group for group, _ in texts[rows]],
            vectors[columns],
            [group for group, _ in texts[columns]],
            same=rows == columns,
        )
        near = 1 - len(found.misses) / len(texts[rows])
        detail = (
            f"mean cosine {found.within:.2f} of what means the same, {found.between:.2f} of what "
            f"does not; the nearest means the same for {near:.0%}"
        )
        name = LANGUAGES[rows] if rows == columns else "between the languages"
        measures.append(
            _measured(
                f"synonyms, {name}",
                found.value,
                SEPARATION if rows == columns else ACROSS,
                detail,
                _MODEL
                if rows == columns
                else "Questions in one language find memories in the other by words and ids alone.",
                (
                    f"{texts[rows][row][1]} ~ {texts[columns][column][1]}"
                    for row, column in found.misses
                ),
            )
        )
    return measures


# --- facts ---------------------------------------------------------------------------------


def facts_right(
    expected: Sequence[ExpectedFact], found: Sequence[Fact], ids_of: Callable[[str], frozenset[str]]
) -> int:
    """Return how many of the facts found are expected ones, each counted once.

    Args:
        expected: What must be found.
        found: What was.
        ids_of: Returns the ids that a text names.
    """
    waiting: list[ExpectedFact] = list(expected)
    right = 0
    for fact in found:
        named = ids_of(fact.text)
        met = next((each for each in waiting if _is(fact, each, named)), None)
        if met is not None:
            waiting.remove(met)
            right += 1
    return right


def _is(fact: Fact, expected: ExpectedFact, named: frozenset[str]) -> bool:
    return (
        fact.fact_type == expected.rule
        and fact.attribute == expected.attribute
        and (fact.value == expected.value or (expected.value is None and fact.value is not None))
        if expected.attribute is not None
        else fact.fact_type == expected.rule and fact.attribute is None
    ) and named.issuperset(expected.ids)


async def _facts(checklist: Checklist, lexicon: Lexicon, extractor: FactExtractor) -> Measure:
    right = expected = found = 0
    by: Counter[str] = Counter()
    misses = []
    for dialogue in checklist.dialogues:
        extraction = await extractor.extract(_source(dialogue, checklist))
        hits = facts_right(dialogue.facts, extraction.facts, _ids(lexicon))
        right += hits
        expected += len(dialogue.facts)
        found += len(extraction.facts)
        by[extraction.by] += 1
        if hits < max(len(dialogue.facts), len(extraction.facts)):
            told = "; ".join(_told(fact) for fact in extraction.facts)
            misses.append(f"{dialogue.name}: {told}")
    how = ", ".join(f"{count} by {name}" for name, count in by.items())
    return _measured(
        "facts cut right",
        # what is missing and what is too much count alike
        2 * right / (expected + found),
        FACTS,
        f"{right} of {expected} expected facts right, {found} found; dialogues: {how}",
        _WORDS.format("`facts` and `attributes`"),
        misses,
    )


def _source(dialogue: Dialogue, checklist: Checklist) -> SourceText:
    text = dialogue.text
    return SourceText(text, language_of(text), "semantic", checklist.shelf.as_of)


def _ids(lexicon: Lexicon) -> Callable[[str], frozenset[str]]:
    def named(text: str) -> frozenset[str]:
        return frozenset(mention.text for mention in lexicon.id_mentions(text))

    return named


def _told(fact: Fact) -> str:
    value = f" {fact.attribute}={fact.value}" if fact.attribute else ""
    return f"{fact.fact_type or 'as it is'}{value}"


# --- rules ---------------------------------------------------------------------------------


async def _rules(
    checklist: Checklist,
    embedder: Embedder,
    domain: Domain,
    lexicon: Lexicon,
    settings: Settings,
    extractor: FactExtractor,
) -> tuple[Measure, Measure]:
    shelf = checklist.shelf
    for each in shelf.entities:
        if each.type not in domain.entities:
            msg = f"the checklist names the entity type {each.type}, which the domain has not"
            raise InvalidInput(msg)
    parts = await shelf_parts(shelf, embedder, domain, lexicon, settings, extractor)
    rules: Counter[str] = Counter()
    kept = wanted = gone = unwanted = back = 0
    lost, slipped = [], []
    for question in shelf.questions:
        result = await ask(parts, shelf, question.ask)
        came = {item.memory.id for item in result.memories}
        back += len(came)
        for step in result.trace:
            rules.update(step.dropped if step.stage in {"expand", "rank", "judge"} else {})
        wanted += len(question.keep)
        kept += len(came.intersection(question.keep))
        unwanted += len(question.drop)
        gone += len(set(question.drop) - came)
        lost += [f"{question.ask} lacks {id_}" for id_ in question.keep if id_ not in came]
        slipped += [f"{question.ask} brings {id_}" for id_ in question.drop if id_ in came]
    seen = len(shelf.memories) * len(shelf.questions)
    told = ", ".join(f"{count} {rule}" for rule, count in rules.most_common())
    return (
        _measured(
            "right memories kept",
            kept / wanted if wanted else 1.0,
            KEPT,
            f"{kept} of {wanted} memories that answer came back",
            "See why with `ecphoria recall --explain`: often the domain file lacks a topic's words "
            "or a name.",
            lost,
        ),
        _measured(
            "wrong memories dropped",
            gone / unwanted if unwanted else 1.0,
            DROPPED,
            f"{gone} of {unwanted} memories that must not come back did not; the rules filter "
            f"{1 - back / seen:.0%} of all {seen} candidates: {told}",
            "Name the things that are confused in the domain file (`recognise`, `id_patterns`, "
            "`topics`).",
            slipped,
        ),
    )


# --- tags ----------------------------------------------------------------------------------


def _tags(
    checklist: Checklist, lexicon: Lexicon, languages: tuple[Language, ...]
) -> tuple[Measure, ...]:
    wrong: dict[str, list[str]] = {"topics": [], "intents": [], "urgency": []}
    count = 0
    for group, text in checklist.said(languages):
        count += 1
        about = lexicon.classify(text)
        topic = about.topics[0] if about.topics else None
        if topic not in group.topics:
            wrong["topics"].append(f"{text} -> {topic or 'none'}")
        if about.intent not in group.intents:
            wrong["intents"].append(f"{text} -> {about.intent or 'none'}")
        if about.urgency != group.urgency:
            wrong["urgency"].append(f"{text} -> {about.urgency}")
    return tuple(
        _measured(
            f"{name} right",
            1 - len(misses) / count,
            TAGS,
            f"{count - len(misses)} of {count} phrasings",
            _WORDS.format(f"`{name}`"),
            misses,
        )
        for name, misses in wrong.items()
    )
