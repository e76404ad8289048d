"""Stage 2: seed memories by vector search, every kind at once, filtered inside the search."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ecphoria.embedding.port import Embedder
from ecphoria.errors import EmbeddingFailed, InvalidVector, StoreError
from ecphoria.model import Status
from ecphoria.recall.understand import Understanding
from ecphoria.stores.ports import VectorFilter, VectorHit, VectorIndex
from ecphoria_schema.domain import Kind, Privacy

# Reciprocal rank fusion, Cormack et al. 2009: score = sum of 1 / (60 + rank).
RRF_K = 60
SHOWN = (Status.ACTIVE, Status.SUPERSEDED)


@dataclass(frozen=True, slots=True)
class Seed:
    """A seed memory: graph key, cosine to the question, fused score."""

    key: str
    similarity: float
    fused: float


@dataclass(frozen=True, slots=True)
class Seeds:
    """Seed memories, the best first, and what was not available."""

    found: tuple[Seed, ...]
    degradations: tuple[str, ...] = ()


def seed_filter(
    understanding: Understanding,
    *,
    tenant: str,
    user_id: str,
    as_of: datetime,
    privacy: frozenset[Privacy],
    min_importance: float,
    known_at: datetime | None = None,
) -> VectorFilter:
    """Return what may come back from the search at all.

    The index holds what is known now: for what was known earlier the graph has to tell.
    """
    everything = understanding.wants_history or known_at is not None
    return VectorFilter(
        tenant=tenant,
        user_id=user_id,
        as_of=None if everything else as_of,
        privacy=tuple(sorted(privacy)),
        tiers=("hot", "archive") if everything else ("hot",),
        statuses=SHOWN if known_at is None else (*SHOWN, Status.DISABLED),
        min_importance=min_importance,
    )


def fuse(rankings: Sequence[Sequence[VectorHit]], limit: int) -> tuple[Seed, ...]:
    """Return one ranking of several, by reciprocal rank fusion; ties by similarity, then key.

    Cosines of one model are comparable across kinds, so similarity breaks the many ties that
    disjoint rankings have.
    """
    shares: dict[str, list[float]] = {}
    similarity: dict[str, float] = {}
    for ranking in rankings:
        for rank, hit in enumerate(ranking, start=1):
            shares.setdefault(hit.key, []).append(1 / (RRF_K + rank))
            similarity[hit.key] = max(similarity.get(hit.key, -1.0), hit.similarity)
    # exact sums: the order of the rankings must not break a tie
    fused = {key: math.fsum(values) for key, values in shares.items()}
    order = sorted(fused, key=lambda key: (-fused[key], -similarity[key], key))
    return tuple(Seed(key, similarity[key], fused[key]) for key in order[:limit])


async def find_seeds(
    index: VectorIndex,
    embedder: Embedder,
    question: str,
    kinds: Sequence[Kind],
    filter_: VectorFilter,
    limit: int,
) -> Seeds:
    """Embed the question and search every kind.

    An index or a model that fails is a degradation, not an error: the graph can still answer.
    """
    try:
        vector = await embedder.embed_query(question)
        rankings = await asyncio.gather(
            *(index.search(kind, vector, filter_, limit) for kind in kinds)
        )
    except (EmbeddingFailed, InvalidVector) as error:
        return Seeds((), (f"embedding model failed: {error.message}",))
    except StoreError as error:
        return Seeds((), (f"vector index unavailable: {error.message}",))
    return Seeds(fuse(rankings, limit))
