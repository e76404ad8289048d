"""Stage 5: how far to trust each part, and whether there is an answer at all.

``overall = 0.40 · timeliness + 0.35 · source + 0.25 · consistency`` (source: the project's brief).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from ecphoria.language.contradiction import disagree
from ecphoria.model import Confidence, ConfidencePart, Entity, Memory, SourceInfo, TimelinessLevel
from ecphoria.recall.age import age_in_days, days_from, freshness
from ecphoria.timeline import said_value
from ecphoria.trust import doubted
from ecphoria_schema.domain import Domain, Language

TIMELINESS_WEIGHT = 0.40
SOURCE_WEIGHT = 0.35
CONSISTENCY_WEIGHT = 0.25

HIGH_RISK_DAYS = 7
STABLE_DAYS = 90
_STABLE_SCORE = 0.75
_RISKY_SCORE = 0.25
_DECIMALS = 12


def overall(timeliness: float, source: float, consistency: float) -> float:
    """Return the weighted sum of the three parts, each 0..1."""
    total = (
        TIMELINESS_WEIGHT * timeliness + SOURCE_WEIGHT * source + CONSISTENCY_WEIGHT * consistency
    )
    # what is exactly at a threshold must not fall below it by a binary rounding error
    return round(total, _DECIMALS)


def confidence(
    timeliness: ConfidencePart, source: ConfidencePart, consistency: ConfidencePart
) -> Confidence:
    """Return the three parts with their weighted sum."""
    return Confidence(
        overall(timeliness.score, source.score, consistency.score), timeliness, source, consistency
    )


def timeliness(
    valid_until: datetime | None, since: datetime, half_life_days: float, as_of: datetime
) -> ConfidencePart:
    """Return how timely a fact is.

    With an end: from the remaining days r: r <= 0: 0 (EXPIRED); r < 7: HIGH_RISK; r > 90: 1
    (STABLE); otherwise linear, r / 90. Without: 0.5 ^ (age / half-life).
    """
    if valid_until is not None:
        remaining = days_from(as_of, valid_until)
        if remaining <= 0:
            return ConfidencePart(0.0, f"ended on {valid_until:%Y-%m-%d}", "EXPIRED")
        level: TimelinessLevel = (
            "HIGH_RISK"
            if remaining < HIGH_RISK_DAYS
            else "STABLE"
            if remaining > STABLE_DAYS
            else "NORMAL"
        )
        reason = f"valid until {valid_until:%Y-%m-%d}, {remaining:.0f} days left"
        return ConfidencePart(min(1.0, remaining / STABLE_DAYS), reason, level)
    age = age_in_days(since, as_of)
    score = freshness(age, half_life_days)
    level = (
        "STABLE" if score >= _STABLE_SCORE else "HIGH_RISK" if score < _RISKY_SCORE else "NORMAL"
    )
    return ConfidencePart(score, f"{age:.0f} days old, half-life {half_life_days:g} days", level)


def source_reliability(
    source: SourceInfo | None, source_id: str, doubt: float = 0.0
) -> ConfidencePart:
    """Return how reliable a source is; an unknown one is not trusted.

    Args:
        source: The source.
        source_id: Its id.
        doubt: What feedback on the very memory takes from it, 0..1.
    """
    if source is None:
        return ConfidencePart(0.0, f"unknown source {source_id}")
    told = f"from {source.name}"
    if doubt:
        told += ", but feedback says that it is wrong"
    return ConfidencePart(doubted(source.reliability, doubt), told)


def conflicts(memories: Sequence[Memory]) -> dict[str, tuple[str, ...]]:
    """Return, for each memory id, the ids of those on the same topic and entity that disagree."""
    found: dict[str, list[str]] = {memory.id: [] for memory in memories}
    for place, first in enumerate(memories):
        for second in memories[place + 1 :]:
            if _disagree(first, second):
                found[first.id].append(second.id)
                found[second.id].append(first.id)
    return {id_: tuple(sorted(others)) for id_, others in found.items()}


def _disagree(first: Memory, second: Memory) -> bool:
    if not _comparable(first, second):
        return False
    if first.claim is not None and first.claim == second.claim:
        return said_value(first) != said_value(second)
    return disagree(first.text, second.text)


def _comparable(first: Memory, second: Memory) -> bool:
    if first.claim is not None and second.claim is not None:
        # values of one attribute compete with one another, and with nothing else
        same = first.claim == second.claim
    else:
        same = first.topic == second.topic and bool(set(first.about) & set(second.about))
    return (
        same
        and first.user_id == second.user_id
        # what was replaced does not disagree, it is over
        and first.status == second.status
        and (first.valid_until is None or first.valid_until > second.valid_from)
        and (second.valid_until is None or second.valid_until > first.valid_from)
    )


def disagreeing(memories: Sequence[Memory], known: Sequence[Memory]) -> dict[str, tuple[str, ...]]:
    """Return, for each memory id, the ids of all that is known and disagrees with it."""
    return {
        memory.id: tuple(
            other.id for other in known if other.key != memory.key and _disagree(memory, other)
        )
        for memory in memories
    }


def consistency(
    memory: Memory, memories: Sequence[Memory], against: Collection[str]
) -> ConfidencePart:
    """Return 1 − the share of memories on the same topic and entity that disagree.

    Of the others those from the most reliable source count: so the many copies of a lesser source
    neither speak for one another against a better one, nor outvote it. Where that is less
    reliable than the memory's own, the share counts as far as the one is worth next to the other.

    Args:
        memory: Whose.
        memories: All that is known.
        against: Ids of those that disagree with it.
    """
    others = [other for other in memories if other.key != memory.key and _comparable(memory, other)]
    if not others:
        return ConfidencePart(1.0, "nothing else is known on it")
    best = max(other.reliability for other in others)
    counted = [other for other in others if other.reliability == best]
    worth = best / memory.reliability if best < memory.reliability else 1.0
    disagree = sum(other.id in against for other in counted)
    score = 1 - worth * disagree / len(counted)
    reason = (
        f"{disagree} of {len(counted)} on the same topic disagree"
        if disagree
        else f"{len(counted)} on the same topic, none disagrees"
    )
    return ConfidencePart(score, reason)


def memory_confidence(
    memory: Memory,
    memories: Sequence[Memory],
    disagreeing: Mapping[str, tuple[str, ...]],
    sources: Mapping[str, SourceInfo],
    domain: Domain,
    as_of: datetime,
) -> Confidence:
    """Return how far to trust a memory."""
    return confidence(
        timeliness(
            memory.valid_until,
            memory.occurred_at,
            domain.kinds[memory.kind].half_life_days,
            as_of,
        ),
        source_reliability(sources.get(memory.source_id), memory.source_id, memory.doubt),
        consistency(memory, memories, disagreeing.get(memory.id, ())),
    )


def entity_confidence(entity: Entity, domain: Domain, as_of: datetime) -> Confidence:
    """Return how far to trust an entity: the business's own record, as old as its last news."""
    best = max(domain.sources.values(), key=lambda source: source.reliability)
    since = entity.observed_at or entity.recorded_at or as_of
    return confidence(
        timeliness(None, since, domain.kinds["semantic"].half_life_days, as_of),
        ConfidencePart(best.reliability, "from the business's own records"),
        ConfidencePart(1.0, "one record per entity"),
    )


def joint(parts: Sequence[tuple[float, Confidence]]) -> Confidence | None:
    """Return the confidence of an answer: its parts' average, weighted by relevance.

    Args:
        parts: Relevance and confidence of what the answer rests on.
    """
    total = sum(weight for weight, _ in parts)
    if total <= 0:
        return None

    def mean(name: str) -> ConfidencePart:
        scored = [(weight, getattr(item, name)) for weight, item in parts]
        score = sum(weight * part.score for weight, part in scored) / total
        # the weakest part is what a reader must know about
        weakest = min(scored, key=lambda item: item[1].score)[1]
        return ConfidencePart(score, f"weakest: {weakest.reason}", weakest.level)

    return confidence(mean("timeliness"), mean("source"), mean("consistency"))


def advisory(
    found: Confidence | None, language: Language, below: float, *, fallback: bool
) -> str | None:
    """Return a warning in the question's language; None when there is nothing to warn of."""
    if fallback:
        return (
            "没有可靠的记录可以回答这个问题，请勿猜测，请转人工或向客户核实。"
            if language == "zh"
            else "Nothing reliable is known about this. Do not guess: ask, or hand over."
        )
    if found is None or found.overall >= below:
        return None
    parts = {
        "timeliness": found.timeliness,
        "source": found.source,
        "consistency": found.consistency,
    }
    name, weakest = min(parts.items(), key=lambda item: item[1].score)
    if language == "zh":
        chinese = {"timeliness": "时效性", "source": "来源可靠性", "consistency": "一致性"}[name]
        return (
            f"置信度较低（{found.overall:.2f}），主要因为{chinese}不足"
            f"（{weakest.score:.2f}）；请先核实再答复。"
        )
    return (
        f"Low confidence ({found.overall:.2f}), mainly because of {name} "
        f"({weakest.score:.2f}: {weakest.reason}). Verify before you answer."
    )
