"""Stage 4: order the candidates. Business rules weigh three times similarity (design §6)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ecphoria.decay import heat
from ecphoria.language.contradiction import disagree
from ecphoria.language.folding import Compact, fold
from ecphoria.model import EmbeddingSpec, Memory
from ecphoria.recall.age import age_in_days, freshness
from ecphoria.recall.neighbourhood import Neighbourhood
from ecphoria.recall.understand import Understanding
from ecphoria.settings import RankWeights
from ecphoria_schema.domain import Domain

_DIGITS = re.compile(r"\d+")
# Two memories that share this many of their character pairs say the same (Jaccard).
NEAR_EQUAL = 0.9
# What a rule that matches takes away from the doubt that a memory is relevant.
_RULE_EVIDENCE = 0.6
# How a rule fits where none is asked for, and a fact where a rule is: what is allowed still
# depends on the case.
_RULE_UNASKED, _FACT_BESIDE_RULE = 0.4, 0.7
# How a memory about a product fits a question about somebody's own piece of it.
_ABOUT_THE_KIND = 0.6
# A memory about another thing than the one asked for keeps this share of its relevance.
_OTHER_THING = 0.4


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory and how well it fits.

    Attributes:
        relevance: 0..1; what the quality gate looks at.
        score: What the order is by.
        similarity: Cosine to the question; None when it was found by walking.
        because: Which rules spoke for it.
    """

    memory: Memory
    relevance: float
    score: float
    similarity: float | None
    because: tuple[str, ...]


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


def candidates(
    memories: Sequence[Memory],
    similarities: Mapping[str, float],
    understanding: Understanding,
    near: Neighbourhood,
    *,
    domain: Domain,
    spec: EmbeddingSpec,
    weights: RankWeights,
    as_of: datetime,
) -> tuple[Candidate, ...]:
    """Return the memories as candidates, the best first; ties by time, then id."""
    scored = [
        _candidate(
            memory,
            similarities.get(memory.key),
            understanding,
            near,
            domain=domain,
            spec=spec,
            weights=weights,
            as_of=as_of,
        )
        for memory in memories
    ]
    return tuple(
        sorted(
            scored,
            key=lambda item: (-item.score, -item.memory.occurred_at.timestamp(), item.memory.id),
        )
    )


def _entity_fit(hops: int | None, *, specific: bool) -> float:
    """Return how well a memory's entities fit the named ones: half at two hops, 0 apart."""
    if hops is None:
        return 0.0
    near = 1 / (1 + hops / 2)
    return near if specific else near * _ABOUT_THE_KIND


def _kind_fit(*, procedural: bool, wanted: bool) -> float:
    if procedural:
        return 1.0 if wanted else _RULE_UNASKED
    return _FACT_BESIDE_RULE if wanted else 1.0


def _topic_match(wanted: Sequence[str], shared: Sequence[str]) -> float:
    """Return which share of the question's topics is met, the likelier ones counting more."""
    weights = {topic: 1 / (1 + place) for place, topic in enumerate(wanted)}
    return sum(weights[topic] for topic in shared) / sum(weights.values())


def _candidate(
    memory: Memory,
    similarity: float | None,
    understanding: Understanding,
    near: Neighbourhood,
    *,
    domain: Domain,
    spec: EmbeddingSpec,
    weights: RankWeights,
    as_of: datetime,
) -> Candidate:
    like = scaled(similarity, spec)
    because: list[str] = []
    rules: list[float] = []
    doubt = 1.0 - like
    if similarity is not None:
        because.append(f"similar to the question ({similarity:.2f})")
    if understanding.topics:
        shared = [
            topic for topic in understanding.topics if topic == memory.topic or topic in memory.tags
        ]
        match = _topic_match(understanding.topics, shared)
        rules.append(match)
        if shared:
            doubt *= 1 - _RULE_EVIDENCE * max(match, 0.5)
            because.append(f"same topic ({', '.join(shared)})")
    hops = near.distance(memory.about)
    specific = bool(near.specific(memory.about))
    other_thing = False
    # a rule for everybody is about no one's thing: that speaks neither for nor against it
    general = memory.user_id is None and not memory.about
    if near.has_mentions and not general:
        fit = _entity_fit(hops, specific=specific)
        rules.append(fit)
        if hops is not None:
            doubt *= 1 - _RULE_EVIDENCE * fit
            because.append(near.path_of(memory.about))
        other_thing = hops is None and specific
    procedural = memory.kind == "procedural"
    rules.append(_kind_fit(procedural=procedural, wanted=understanding.wants_procedure))
    if procedural and understanding.wants_procedure:
        doubt *= 1 - _RULE_EVIDENCE / 2
        because.append("tells how it is done")
    relevance = 1 - doubt
    if other_thing or near.lost:
        relevance *= _OTHER_THING
    parts = [
        (weights.rules, sum(rules) / len(rules)),
        (weights.similarity, like),
        (weights.graph, 0.0 if hops is None else 1 / (1 + hops)),
        (weights.recency, recency(memory, as_of, domain)),
        (weights.importance, memory.importance),
        (weights.heat, min(1.0, heat(memory.access_count, memory.last_accessed_at, as_of))),
    ]
    total = sum(weight for weight, _ in parts) or 1.0
    score = sum(weight * value for weight, value in parts) / total
    if other_thing or near.lost:
        score *= _OTHER_THING
    return Candidate(memory, relevance, score, similarity, tuple(because))


def _pairs(text: str) -> frozenset[str]:
    compact = Compact(text).text
    return frozenset(compact[place : place + 2] for place in range(len(compact) - 1)) or frozenset(
        {compact}
    )


def diversified(ranked: Sequence[Candidate], limit: int) -> tuple[Candidate, ...]:
    """Return the best candidates, each near-equal one once (the better-placed stays)."""
    kept: list[Candidate] = []
    seen: list[tuple[frozenset[str], str | None]] = []
    for candidate in ranked:
        if len(kept) == limit:
            break
        pairs = _pairs(candidate.memory.text)
        owner = candidate.memory.user_id
        # same words, other digits: not the same statement; the digits are among the pairs
        twin = any(
            other_owner == owner
            and len(pairs & other) / len(pairs | other) >= NEAR_EQUAL
            and _digits(candidate.memory.text) == _digits(kept[place].memory.text)
            and not disagree(candidate.memory.text, kept[place].memory.text)
            for place, (other, other_owner) in enumerate(seen)
        )
        if not twin:
            kept.append(candidate)
            seen.append((pairs, owner))
    return tuple(kept)


def _digits(text: str) -> list[str]:
    # runs, not one string: "12 pieces of 3" is not "1 piece of 23"
    return _DIGITS.findall(fold(text))
