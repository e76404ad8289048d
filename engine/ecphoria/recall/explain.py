"""Why each memory that a recall looked at is, or is not, in the answer: for who asks for it.

What is told may all be read by the asker. What he may not see stands in counts alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from ecphoria.governance.access import readable_privacy
from ecphoria.model import (
    Action,
    ConsideredMemory,
    FeatureShare,
    Memory,
    RecallResult,
    Status,
    TraceStep,
)
from ecphoria.recall.answer import Question
from ecphoria.recall.as_known import HELD, as_known
from ecphoria.recall.rank import Candidate, diversified, named_weights
from ecphoria.recall.seed import Seed
from ecphoria.settings import RankWeights
from ecphoria.stores.ports import Expansion, GraphStore

NOT_SEEN = "not current or not visible"
ANOTHER_USERS = "named but another user's"
DISABLED = "source disabled"
KIND = "kind not asked for"
SAME = "says what a better one says"
SAME_OR_OVER = "near-equal or over the limit"
GATE = "below the relevance gate"
APART = "apart from what is meant, or over the limit of entities"
LOST = "what is named is nothing of this user's: all memories count far less"


def unfit(memory: Memory, question: Question, disabled: Collection[str]) -> str | None:
    """Return the rule by which a memory is not ranked at all; None when it is.

    Args:
        memory: As the graph has it.
        question: What is asked.
        disabled: Ids of sources that are not believed.
    """
    if memory.source_id in disabled:
        return DISABLED
    if memory.kind not in question.wanted.kinds:
        return KIND
    if memory.importance < question.request.min_importance:
        return f"importance below {question.request.min_importance:g}"
    return None


def irrelevant(least: float) -> str:
    """Return the name of the rule that drops what is below a relevance."""
    return f"relevance below {least:g}"


def shares(item: Candidate, weights: RankWeights) -> tuple[FeatureShare, ...]:
    """Return what each feature adds to a candidate's rank score, the largest share first.

    They sum to the score: what a reranker has added to it is a share of its own.
    """
    chosen, whole = named_weights(weights)
    found = [
        (name, value, weight, weight * value / whole)
        for name, weight in chosen
        if (value := getattr(item.features, name))
    ]
    total = math.fsum(share for *_, share in found)
    # what the question means is not there: all of it counts for less
    factor = item.score / total if item.features.lost and total else 1.0
    made = [
        FeatureShare(name, value, weight, share * factor) for name, value, weight, share in found
    ]
    rest = item.score - math.fsum(each.share for each in made)
    if not math.isclose(rest, 0.0, abs_tol=1e-9):
        made.append(FeatureShare("reranker", rest, 1.0, rest))
    return tuple(sorted(made, key=lambda each: (-abs(each.share), each.name)))


def why_left_out(
    item: Candidate, kept: Sequence[Candidate], least: float, limit: int
) -> str | None:
    """Return the rule by which a ranked memory did not get on; None when it did.

    Args:
        item: The candidate.
        kept: Those that did.
        least: What is below this relevance is noise.
        limit: How many may get on.
    """
    if any(other.memory.key == item.memory.key for other in kept):
        return None
    if item.relevance < least:
        return irrelevant(least)
    if any(len(diversified((other, item), 2)) == 1 for other in kept):
        return SAME
    return f"over the limit of {limit}"


async def not_expanded(
    graph: GraphStore, question: Question, seeds: Sequence[Seed], expansion: Expansion
) -> tuple[ConsideredMemory, ...]:
    """Return the seeds that the graph did not let pass, with the reason.

    Of these, only what is the asker's own or shared, and what he may read.

    Raises:
        StoreUnavailable: When the graph does not answer.
    """
    passed = {memory.key for memory in expansion.seeds}
    held = {seed.key: seed for seed in seeds if seed.key not in passed}
    if not held:
        return ()
    scope = question.scope
    readable = readable_privacy(scope)
    found = await graph.memories(scope.tenant, [key.split("|", 2)[2] for key in held])
    return tuple(
        ConsideredMemory(
            memory, similarity=held[memory.key].similarity, dropped=why_held(memory, question)
        )
        for memory in sorted(found, key=lambda memory: -held[memory.key].fused)
        if memory.key in held
        and memory.user_id in {None, question.user_id}
        and memory.privacy in readable
        and memory.status is not Status.FORGOTTEN
    )


def why_held(memory: Memory, question: Question) -> str:
    """Return why a memory is not current at the moment that is asked about."""
    known_at, as_of = question.request.known_at, question.as_of
    stood = memory if known_at is None else as_known(memory, known_at)
    if stood is None:
        return "not known yet then"
    if stood.status not in HELD:
        return "taken back"
    if stood.valid_from > as_of:
        return "not true yet"
    if stood.valid_until is not None and stood.valid_until <= as_of:
        return "no longer true"
    if stood.expires_at is not None and stood.expires_at <= as_of:
        return "expired"
    return "in the archive" if stood.tier == "archive" else "not current"


def looked_at(
    question: Question,
    expansion: Expansion,
    scored: Sequence[Candidate],
    kept: Sequence[Candidate],
    result: RecallResult,
    weights: RankWeights,
    least: float,
) -> tuple[ConsideredMemory, ...]:
    """Return what the rank stage looked at: in the answer's order, then what is not in it.

    Args:
        question: What is asked.
        expansion: What the graph let pass.
        scored: The candidates, the best first.
        kept: Those of them that got on.
        result: What became of these.
        weights: How features weigh.
        least: What is below this relevance is noise.
    """
    shown = {item.memory.key: place for place, item in enumerate(result.memories)}
    ranked = []
    for place, item in enumerate(scored, start=1):
        rule = why_left_out(item, kept, least, question.request.limit)
        ranked.append(
            ConsideredMemory(
                item.memory,
                place,
                item.relevance,
                item.score,
                item.similarity,
                shares(item, weights),
                GATE if rule is None and result.action is Action.FALLBACK else rule,
            )
        )
    ranked.sort(key=lambda each: shown.get(each.memory.key, len(shown)))
    disabled = {source.id for source in expansion.sources if source.disabled}
    rules = (
        (memory, unfit(memory, question, disabled))
        for memory in (*expansion.seeds, *expansion.others)
    )
    return (
        *ranked,
        *(ConsideredMemory(memory, dropped=rule) for memory, rule in rules if rule is not None),
    )


def explained(
    steps: Iterable[TraceStep],
    held: Sequence[ConsideredMemory],
    ranked: Sequence[ConsideredMemory],
) -> tuple[TraceStep, ...]:
    """Return the steps of a trace with the memories that each looked at, and the exact rules.

    Args:
        steps: The trace.
        held: Seeds that the graph did not let pass, as far as the asker may see them.
        ranked: What the rank stage looked at.
    """
    steps = tuple(steps)
    by_stage = {"expand": tuple(held), "rank": tuple(ranked)}
    if any(step.stage == "rerank" for step in steps):
        # what was ranked is dropped after it has been read again
        by_stage["rank"] = tuple(each for each in ranked if each.place is None)
        by_stage["rerank"] = tuple(each for each in ranked if each.place is not None)
    return tuple(
        replace(
            step,
            considered=by_stage[step.stage],
            dropped=_counted(step.dropped, by_stage[step.stage]),
        )
        if step.stage in by_stage
        else step
        for step in steps
    )


def _counted(
    dropped: Mapping[str, int], considered: Iterable[ConsideredMemory]
) -> Mapping[str, int]:
    """Return how many each rule dropped, with what is now told rule by rule in the rule's place."""
    told = Counter(each.dropped for each in considered if each.dropped not in {None, GATE})
    counts = {rule: count for rule, count in dropped.items() if rule not in {SAME_OR_OVER, *told}}
    if NOT_SEEN in counts:
        counts[NOT_SEEN] -= told.total()
    return {
        rule: count
        for rule, count in (counts | {str(rule): count for rule, count in told.items()}).items()
        if count
    }
