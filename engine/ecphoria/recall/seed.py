"""Stage 2: seed memories by meaning and by words, every kind at once, filtered inside the search.

The two are fused by their scores, each scaled to what it found, and not by ranks: where the model
is weak, equal ranks pull what the words have found down to it. On conversations reciprocal rank
fusion lost a third of what the words alone had found; scaled scores lost next to nothing there, and
found more than either search on after-sales questions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ecphoria.embedding.port import Embedder
from ecphoria.errors import EmbeddingFailed, InvalidVector, StoreError
from ecphoria.language.terms import terms
from ecphoria.model import Status, Vector
from ecphoria.recall.lexical import lexical_fit
from ecphoria.recall.understand import Understanding
from ecphoria.settings import SeedWeights
from ecphoria.stores.ports import TermHit, VectorFilter, VectorHit, VectorIndex
from ecphoria_schema.domain import Kind, Privacy

SHOWN = (Status.ACTIVE, Status.SUPERSEDED)
# What a question has more of is a text that somebody pasted in: its beginning tells enough.
MAX_TERMS: Final = 200


@dataclass(frozen=True, slots=True)
class Seed:
    """A seed memory: its graph key, and how it was found.

    Attributes:
        similarity: Cosine to the question; None when it was found by its words alone.
        lexical: How well its words fit the question, 0..1; None when it was found by meaning
            alone.
        fused: What the order is by.
    """

    key: str
    similarity: float | None
    lexical: float | None
    fused: float


@dataclass(frozen=True, slots=True)
class Seeds:
    """Seed memories, the best first, and what was not available.

    Attributes:
        degradations: What failed, and may be well again for the next question.
        note: What this index never has; empty = nothing.
        vector: The question's; None when the model failed.
    """

    found: tuple[Seed, ...]
    degradations: tuple[str, ...] = ()
    note: str = ""
    vector: Vector | None = None


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


def fuse(
    similarities: Mapping[str, float],
    fits: Mapping[str, float],
    weights: SeedWeights,
    limit: int,
) -> tuple[Seed, ...]:
    """Return one ranking of two, the best first; ties by similarity, then key.

    Cosines of one model are comparable across kinds, and so are fits, which are told over all that
    was found. Between the two only their places in what each has found are: a cosine counts from
    the worst to the best one, a fit from 0 to the best one, for it has a true 0.

    Args:
        similarities: Cosines by key.
        fits: How well the words fit, by key.
        weights: How much each counts.
        limit: How many at most.
    """
    low = min(similarities.values(), default=0.0)
    width = max(similarities.values(), default=0.0) - low
    best = max(fits.values(), default=0.0)
    seeds = []
    for key in similarities.keys() | fits.keys():
        similarity, fit = similarities.get(key), fits.get(key)
        fused = 0.0
        if similarity is not None:
            fused += weights.similarity * ((similarity - low) / width if width else 1.0)
        if fit is not None:
            fused += weights.lexical * (fit / best if best else 1.0)
        seeds.append(Seed(key, similarity, fit, fused))
    return tuple(sorted(seeds, key=_place)[:limit])


def _place(seed: Seed) -> tuple[float, float, str]:
    return (-seed.fused, 0.0 if seed.similarity is None else -seed.similarity, seed.key)


async def find_seeds(
    index: VectorIndex,
    embedder: Embedder,
    question: str,
    kinds: Sequence[Kind],
    filter_: VectorFilter,
    limit: int,
    weights: SeedWeights,
) -> Seeds:
    """Search every kind by meaning and by words at once.

    An index or a model that fails is a degradation, not an error: what else was found, and the
    graph, can still answer.
    """
    asked = tuple(dict.fromkeys(terms(question)))[:MAX_TERMS]
    (vector, similarities, far), (fits, dumb, note) = await asyncio.gather(
        _by_meaning(index, embedder, question, kinds, filter_, limit),
        _by_words(index, asked, kinds, filter_, limit),
    )
    degradations: tuple[str, ...] = ()
    if isinstance(far, StoreError):
        # the same store has both: that it is down is said once
        degradations = (f"vector index unavailable: {far.message}",)
    elif far is not None:
        degradations = (f"embedding model failed: {far.message}",)
    if dumb is not None and not isinstance(far, StoreError):
        degradations += (f"lexical search unavailable: {dumb.message}",)
    return Seeds(fuse(similarities, fits, weights, limit), degradations, note, vector)


async def _by_meaning(
    index: VectorIndex,
    embedder: Embedder,
    question: str,
    kinds: Sequence[Kind],
    filter_: VectorFilter,
    limit: int,
) -> tuple[Vector | None, Mapping[str, float], EmbeddingFailed | InvalidVector | StoreError | None]:
    """Return the question's vector, cosines by key, and what failed."""
    vector = None
    try:
        vector = await embedder.embed_query(question)
        rankings = await asyncio.gather(
            *(index.search(kind, vector, filter_, limit) for kind in kinds)
        )
    except (EmbeddingFailed, InvalidVector, StoreError) as error:
        return vector, {}, error
    return vector, _best(rankings), None


def _best(rankings: Iterable[Sequence[VectorHit]]) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for ranking in rankings:
        for hit in ranking:
            found[hit.key] = max(found.get(hit.key, -1.0), hit.similarity)
    return found


async def _by_words(
    index: VectorIndex,
    asked: Sequence[str],
    kinds: Sequence[Kind],
    filter_: VectorFilter,
    limit: int,
) -> tuple[Mapping[str, float], StoreError | None, str]:
    """Return fits by key, what failed, and what there is not."""
    if not asked:
        return {}, None, ""
    try:
        rankings = await asyncio.gather(
            *(index.search_terms(kind, asked, filter_, limit) for kind in kinds)
        )
    except StoreError as error:
        return {}, error, ""
    lacking = [kind for kind, ranking in zip(kinds, rankings, strict=True) if ranking is None]
    hits: dict[str, TermHit] = {
        hit.key: hit for ranking in rankings if ranking is not None for hit in ranking
    }
    note = f"no lexical search of {', '.join(lacking)}" if lacking else ""
    return lexical_fit(asked, tuple(hits.values())), None, note
