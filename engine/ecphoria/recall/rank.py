"""Stage 4: order the candidates by what speaks for them (design §6)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from ecphoria.decay import heat
from ecphoria.language.contradiction import disagree
from ecphoria.language.folding import Compact, fold
from ecphoria.language.overlap import overlaps
from ecphoria.language.speaker import is_said_by, speaker_of
from ecphoria.model import EmbeddingSpec, Memory, SourceInfo, Status
from ecphoria.recall.age import age_in_days, freshness
from ecphoria.recall.calibration import shipped_calibration
from ecphoria.recall.features import Features
from ecphoria.recall.neighbourhood import Neighbourhood
from ecphoria.recall.seed import Seed
from ecphoria.recall.understand import Understanding
from ecphoria.settings import RankWeights
from ecphoria.trust import doubted
from ecphoria_schema.domain import Domain

_DIGITS = re.compile(r"\d+")
# Two memories that share this many of their character pairs say the same (Jaccard).
NEAR_EQUAL = 0.9
# Where rules have a place among the first; how near to the question the best one must be to have
# one unasked; how many compete.
_PLACES = (1, 3)
_TO_THE_POINT, _MAX_RULES = 0.5, 20
# How its topic counts among rules, next to its words and its sense.
_TOPIC_OF_RULES = 0.3
# A share of the question's words that is worth telling.
_WORDS_TOLD = 0.3
# How much better a source is that is believed whatever else ranks; how near its memory must be.
_FAR_BETTER, _ABOUT_AS_NEAR = 0.3, 0.6
# How a memory about a product fits a question about somebody's own piece of it.
_ABOUT_THE_KIND = 0.6
# A question about none of the topics has neither a match nor a mismatch.
_NO_TOPIC = 0.5
# When the question means what the user does not have, nothing may take its place.
_LOST = 0.1


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory and how well it fits.

    Attributes:
        relevance: 0..1; what the quality gate looks at.
        score: What the order is by.
        similarity: Cosine to the question; None when it was found by walking.
        because: Which rules spoke for it.
        features: What all of it is made from.
    """

    memory: Memory
    relevance: float
    score: float
    similarity: float | None
    because: tuple[str, ...]
    features: Features = field(default_factory=Features)

    @property
    def is_rule(self) -> bool:
        """Whether it is a rule for everybody."""
        return self.memory.kind == "procedural" and self.memory.user_id is None

    @property
    def content(self) -> float:
        """How near its words and its sense are to the question, 0..1."""
        return 1 - (1 - self.features.similarity) * (1 - self.features.words)

    @property
    def to_the_point(self) -> float:
        """How near it is to the question, by its topic, too."""
        return self.content + _TOPIC_OF_RULES * self.features.topic


def scaled(similarity: float | None, spec: EmbeddingSpec) -> float:
    """Return a cosine as relevance 0..1, linear between the model's two anchors."""
    if similarity is None:
        return 0.0
    share = (similarity - spec.unrelated) / (spec.related - spec.unrelated)
    return min(1.0, max(0.0, share))


def recency(memory: Memory, moment: datetime, domain: Domain) -> float:
    """Return 1 for what just happened, half after the kind's half-life."""
    age = age_in_days(memory.occurred_at, moment)
    return freshness(age, domain.kinds[memory.kind].half_life_days)


@dataclass(frozen=True, slots=True)
class Asked:
    """What memories are compared with.

    Attributes:
        question: The question's text.
        wanted: What was understood of it.
        near: What lies around the things that it means.
        sources: Sources by id.
        spec: Of the model that the cosines come from.
        as_of: The question's moment.
    """

    question: str
    wanted: Understanding
    near: Neighbourhood
    sources: Mapping[str, SourceInfo]
    domain: Domain
    spec: EmbeddingSpec
    as_of: datetime


def candidates(
    memories: Sequence[Memory],
    seeds: Mapping[str, Seed],
    asked: Asked,
    weights: RankWeights,
) -> tuple[Candidate, ...]:
    """Return the memories as candidates, the best first; ties by time, then id.

    Args:
        memories: What was found.
        seeds: How those were found that a search has found, by key.
        asked: What they are compared with.
        weights: How what speaks for them weighs.
    """
    shares = overlaps(asked.question, [memory.text for memory in memories])
    question = Compact(asked.question)
    best = max((seed.lexical or 0.0 for seed in seeds.values()), default=0.0)
    scored = [
        _candidate(
            memory,
            seeds.get(memory.key),
            features(memory, seeds.get(memory.key), words, best, asked, question),
            asked,
            weights,
        )
        for memory, words in zip(memories, shares, strict=True)
    ]
    return tuple(
        sorted(
            scored,
            key=lambda item: (-item.score, -item.memory.occurred_at.timestamp(), item.memory.id),
        )
    )


def for_everybody(memory: Memory) -> bool:
    """Whether a memory is nobody's own and about nobody's thing."""
    return memory.user_id is None and not memory.about


def _entity_fit(hops: int | None, *, specific: bool) -> float:
    """Return how well a memory's entities fit the named ones: half at two hops, 0 apart."""
    if hops is None:
        return 0.0
    near = 1 / (1 + hops / 2)
    return near if specific else near * _ABOUT_THE_KIND


def _topic_match(wanted: Sequence[str], memory: Memory) -> float:
    """Return which share of the question's topics is met, the likelier ones counting more."""
    weights = {topic: 1 / (1 + place) for place, topic in enumerate(wanted)}
    held = _topics(memory)
    met = sum(weight for topic, weight in weights.items() if topic in held)
    return met / sum(weights.values()) if weights else _NO_TOPIC


def topic_chance(understanding: Understanding, memory: Memory) -> float:
    """Return how likely the question is on a topic of the memory; by words alone without odds."""
    odds = understanding.topic_odds
    if not odds:
        return _topic_match(understanding.topics, memory)
    return math.fsum(odds.get(topic, 0.0) for topic in _topics(memory))


def _has_likeliest(wanted: Sequence[str], memory: Memory) -> float:
    return float(wanted[0] in _topics(memory)) if wanted else _NO_TOPIC


def features(
    memory: Memory, seed: Seed | None, words: float, best: float, asked: Asked, question: Compact
) -> Features:
    """Return what speaks for a memory.

    Args:
        memory: The memory.
        seed: How it was found; None when it was found by walking.
        words: Share of the question's words that it has, 0..1.
        best: How well the words of the best seed fit the question.
        asked: What it is compared with.
        question: The question's text, in which names can be found.
    """
    near, understanding, as_of = asked.near, asked.wanted, asked.as_of
    source = asked.sources.get(memory.source_id)
    hops = near.distance(memory.about)
    specific = bool(near.specific(memory.about))
    general = for_everybody(memory)
    rule = memory.kind == "procedural"
    over = memory.status is Status.SUPERSEDED or (
        memory.valid_until is not None and memory.valid_until <= as_of
    )
    told = asked.domain.sources.get(memory.source_id)
    return Features(
        similarity=scaled(seed.similarity if seed else None, asked.spec),
        words=words,
        lexical=(seed.lexical or 0.0) / best if seed and best else 0.0,
        topic=_topic_match(understanding.topics, memory),
        likeliest=_has_likeliest(understanding.topics, memory),
        sense=topic_chance(understanding, memory),
        open=float(not understanding.topics),
        speaker=float(is_said_by(speaker_of(memory.text), question)),
        attribute=float(memory.attribute in understanding.attributes),
        # a rule for everybody is about no one's thing: that speaks neither for nor against it
        entity=0.0 if general else _entity_fit(hops, specific=specific),
        apart=float(near.has_mentions and hops is None and specific),
        lost=float(near.lost),
        rule=float(rule),
        rule_asked=float(rule and understanding.wants_procedure),
        # what he said before is asked for, not what used to be
        over=float(
            over
            and understanding.wants_history
            and not understanding.wants_own_words
            and not general
        ),
        other_language=float(general and memory.lang != understanding.language),
        own_words=float(understanding.wants_own_words and told is not None and told.customer_says),
        # what he said is asked for, not what is so
        source=(
            0.0
            if source is None or understanding.wants_own_words
            else doubted(source.reliability, memory.doubt)
        ),
        graph=0.0 if hops is None else 1 / (1 + hops),
        recency=recency(memory, as_of, asked.domain),
        importance=memory.importance,
        heat=min(1.0, heat(memory.access_count, memory.last_accessed_at, as_of)),
    )


def _because(
    memory: Memory, found: Features, similarity: float | None, asked: Asked
) -> tuple[str, ...]:
    because: list[str] = []
    if similarity is not None:
        because.append(f"similar to the question ({similarity:.2f})")
    if found.words >= _WORDS_TOLD:
        because.append(f"has {found.words:.0%} of the question's words, by weight")
    if found.topic and asked.wanted.topics:
        held = _topics(memory)
        shared = [topic for topic in asked.wanted.topics if topic in held]
        because.append(f"same topic ({', '.join(shared)})")
    if found.attribute:
        because.append(f"gives the {memory.attribute} asked for")
    if found.entity and asked.near.has_mentions:
        because.append(asked.near.path_of(memory.about))
    if found.rule_asked:
        because.append("tells how it is done")
    if found.over:
        because.append("what used to be")
    if found.own_words:
        because.append("the customer's own words")
    if found.speaker:
        because.append(f"said by {speaker_of(memory.text)}")
    return tuple(because)


def score(found: Features, weights: RankWeights) -> float:
    """Return what the order is by: the weighted sum of the features, at most 1.

    The business rules together weigh three times what similarity does.
    """
    chosen, whole = named_weights(weights)
    total = math.fsum(weight * getattr(found, name) for name, weight in chosen) / whole
    return total * _LOST if found.lost else total


@lru_cache(maxsize=8)
def named_weights(weights: RankWeights) -> tuple[tuple[tuple[str, float], ...], float]:
    """Return the weights by name, and the sum of those that speak for a memory."""
    chosen: dict[str, float] = weights.model_dump()
    whole = math.fsum(weight for weight in chosen.values() if weight > 0) or 1.0
    return tuple(chosen.items()), whole


def _candidate(
    memory: Memory, seed: Seed | None, found: Features, asked: Asked, weights: RankWeights
) -> Candidate:
    chance = shipped_calibration().probability(found)
    similarity = seed.similarity if seed else None
    return Candidate(
        memory,
        chance * _LOST if found.lost else chance,
        score(found, weights),
        similarity,
        _because(memory, found, similarity, asked),
        found,
    )


def _pairs(text: str) -> frozenset[str]:
    compact = Compact(text).text
    return frozenset(compact[place : place + 2] for place in range(len(compact) - 1)) or frozenset(
        {compact}
    )


def diversified(
    ranked: Sequence[Candidate], limit: int, *, wants_rule: bool = False
) -> tuple[Candidate, ...]:
    """Return the best candidates, each near-equal one once (the better-placed stays).

    A customer's own history is long and the rules are few: the best rule has a place near the top
    when it is to the point, and two have when a rule is asked for.
    """
    rules = _distinct(
        sorted(
            (item for item in ranked if item.is_rule),
            key=lambda item: (item.features.other_language, -item.to_the_point, item.memory.id),
        )[:_MAX_RULES],
        limit,
    )
    kept = _distinct([item for item in ranked if not item.is_rule], limit)
    placed = rules[: len(_PLACES)] if wants_rule else _to_the_point(rules[:1])
    for rule, place in zip(placed, _PLACES if wants_rule else _PLACES[1:], strict=False):
        kept.insert(place, rule)
    for rule in rules:
        if rule in placed:
            continue
        # the others stand where their score puts them, behind those that have a place
        after = next(
            (
                place
                for place, item in enumerate(kept)
                if place > _PLACES[-1] and item.score < rule.score
            ),
            len(kept),
        )
        kept.insert(after, rule)
    return tuple(kept[:limit])


def trusted_first(ranked: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return the candidates with hearsay behind what a far better source says on the same.

    Two memories are on the same when they are about the same thing, share a topic, and are about
    as near to the question. That they contradict one another need not be seen in their words.
    """
    order = list(ranked)
    for item in ranked:
        place = order.index(item)
        behind = [
            other
            for other in order[place + 1 :]
            if _far_better(other, item) and _on_same(other, item)
        ]
        for other in reversed(behind):
            order.remove(other)
            order.insert(place, other)
    return tuple(order)


def _far_better(one: Candidate, other: Candidate) -> bool:
    return one.features.source - other.features.source >= _FAR_BETTER


def _on_same(one: Candidate, other: Candidate) -> bool:
    return (
        bool(set(one.memory.about) & set(other.memory.about))
        and bool(_topics(one.memory) & _topics(other.memory))
        and one.content >= _ABOUT_AS_NEAR * other.content
    )


def _topics(memory: Memory) -> frozenset[str]:
    return frozenset(memory.tags) | ({memory.topic} if memory.topic else frozenset())


def _to_the_point(rules: Sequence[Candidate]) -> list[Candidate]:
    return [item for item in rules if item.content >= _TO_THE_POINT]


def _distinct(ranked: Sequence[Candidate], limit: int) -> list[Candidate]:
    kept: list[Candidate] = []
    pairs: list[frozenset[str]] = []
    for candidate in ranked:
        if len(kept) == limit:
            break
        own = _pairs(candidate.memory.text)
        if not any(
            _says_it(candidate.memory, own, other.memory, theirs)
            for other, theirs in zip(kept, pairs, strict=True)
        ):
            kept.append(candidate)
            pairs.append(own)
    return kept


def _says_it(
    memory: Memory, pairs: frozenset[str], other: Memory, other_pairs: frozenset[str]
) -> bool:
    """Whether one memory says what another one does."""
    # same words, other digits: not the same statement; the digits are among the pairs
    if memory.user_id != other.user_id or _digits(memory.text) != _digits(other.text):
        return False
    # what is hidden in them stands behind one placeholder
    if (memory.value_hash or memory.words_hash) != (other.value_hash or other.words_hash):
        return False
    if memory.lang != other.lang:
        # a rule in the other language
        return memory.user_id is None and memory.topic == other.topic is not None
    return len(pairs & other_pairs) / len(pairs | other_pairs) >= NEAR_EQUAL and not disagree(
        memory.text, other.text
    )


def _digits(text: str) -> list[str]:
    # runs, not one string: "12 pieces of 3" is not "1 piece of 23"
    return _DIGITS.findall(fold(text))
