"""Stage 4b: let a reranker, where there is one, order the best candidates anew.

It orders, and does no more: a candidate's relevance, which the gate and the confidence look at, is
calibrated without it. A cross-encoder's scores mean something else for each model, so none ships
with a calibration.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ecphoria.errors import RerankingFailed
from ecphoria.recall.rank import Candidate
from ecphoria.reranking.port import Reranker
from ecphoria.settings import Settings

# A score that is worth telling.
_TOLD: Final = 0.5


@dataclass(frozen=True, slots=True)
class Reranked:
    """Candidates in their new order, the best first.

    Attributes:
        read: How many the reranker has read.
        degradations: Why it has not.
    """

    candidates: tuple[Candidate, ...]
    read: int
    degradations: tuple[str, ...] = ()


async def reranked(
    reranker: Reranker,
    question: str,
    ranked: Sequence[Candidate],
    settings: Settings,
    *,
    least: float,
) -> Reranked:
    """Let a reranker order the best candidates; one that fails changes nothing, and it is said.

    Args:
        reranker: Reads the question and each memory together.
        question: The question's text.
        ranked: The candidates, the best first.
        settings: How many are read, for how long, and what that counts.
        least: Candidates less relevant than this are noise, and are not read.
    """
    head = [item for item in ranked if item.relevance >= least][: settings.reranker_top]
    if len(head) < 2:  # noqa: PLR2004 - an order needs two
        return Reranked(tuple(ranked), 0)
    try:
        async with asyncio.timeout(settings.reranker_timeout_s):
            scores = await reranker.scores(question, [item.memory.text for item in head])
    except TimeoutError:
        said = f"no answer within {settings.reranker_timeout_s:g} seconds"
        return Reranked(tuple(ranked), 0, (f"reranker failed: {said}",))
    except RerankingFailed as error:
        return Reranked(tuple(ranked), 0, (f"reranker failed: {error.message}",))
    return Reranked(reordered(ranked, head, scores, settings.reranker_weight), len(head))


def reordered(
    ranked: Sequence[Candidate], head: Sequence[Candidate], scores: Sequence[float], weight: float
) -> tuple[Candidate, ...]:
    """Return all candidates with those of the head in the order of a weighted sum.

    The head stays within the rank scores that it had, so that nothing falls behind what was not
    read. Ties keep their order.

    Args:
        ranked: All candidates, the best first.
        head: Those that were read, in the same order.
        scores: What the reranker says of each, 0..1.
        weight: What that counts, 0..1; the place between the best and the worst rank score of the
            head counts the rest.
    """
    low = min((item.score for item in head), default=0.0)
    width = max((item.score for item in head), default=0.0) - low
    mixed = [
        (
            weight * score + (1 - weight) * ((item.score - low) / width if width else 0.0),
            item,
            score,
        )
        for item, score in zip(head, scores, strict=True)
    ]
    mixed.sort(key=lambda each: -each[0])
    read = [
        replace(
            item,
            score=low + width * mix,
            because=(*item.because, f"reads like an answer ({score:.2f})")
            if score >= _TOLD
            else item.because,
        )
        for mix, item, score in mixed
    ]
    known = {item.memory.key for item in head}
    rest = [item for item in ranked if item.memory.key not in known]
    return tuple(sorted((*read, *rest), key=lambda item: -item.score))
