"""What a question is about, by its sense: the domain's topics, weighed by words and by vectors.

The words of a topic find it where they are said. Who says it otherwise is understood by what lies
near: a topic is as near as those of its words and phrases that are nearest to the question.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ecphoria.embedding.port import Embedder
from ecphoria.model import EmbeddingSpec, Vector
from ecphoria_schema.domain import Domain

# How many of its phrases tell how near a topic is: one may be near by chance.
NEAREST = 5
# Weights of a multinomial logistic regression: of a topic's cosine, scaled by the model's anchors;
# of having its words said; of being the likeliest by them. Fitted on the sentences of
# `benchmarks/phrasings.py`, of which the words alone put the right topic first in 67 %, the sense
# alone in 75 %, both in 82 % (`benchmarks/everyday_phrasings.py`, held out: 78, 79, 86 %).
BY_SENSE, BY_WORDS, BY_MOST_WORDS = 11.5, 1.3, 1.1
# A question is on none of the topics as likely as on one whose cosine lies here between the model's
# anchors. Of questions on a topic nine in ten are nearer to it, of questions of conversations
# (LoCoMo), of which most are on none, one in twenty is.
ON_NONE = 0.3


@dataclass(frozen=True, slots=True)
class _Phrases:
    """The phrases of all topics as vectors of one model: one row a phrase, topic by topic."""

    spec: EmbeddingSpec
    vectors: NDArray[np.float32]


class TopicSense:
    """How likely a question is on each topic. The topics' phrases are embedded once, when asked."""

    def __init__(self, domain: Domain) -> None:
        """Take the phrases of a domain's topics."""
        self._phrases = {topic: _phrases(domain, topic) for topic in domain.topics}
        self._known: _Phrases | None = None
        self._one_at_a_time = asyncio.Lock()

    async def load(self, embedder: Embedder) -> None:
        """Embed the phrases, unless it was done with this model.

        Raises:
            EmbeddingFailed: When the model fails.
            InvalidVector: When it returns no vectors.
        """
        await self._vectors(embedder)

    async def odds(
        self, embedder: Embedder, question: Vector, topics: Sequence[str]
    ) -> Mapping[str, float]:
        """Return the probability of each topic, 0..1; what is left is that it is on none.

        Args:
            embedder: The model that made the question's vector.
            question: That vector.
            topics: Topics whose words are in the question, the likeliest first.

        Raises:
            EmbeddingFailed: When the model fails.
            InvalidVector: When it returns no vectors.
        """
        if not self._phrases:
            return {}
        known = await self._vectors(embedder)
        cosines = known.vectors @ np.asarray(question, dtype=np.float32)
        return topic_odds(self._near(cosines), topics, known.spec)

    def _near(self, cosines: NDArray[np.float32]) -> Mapping[str, float]:
        found: dict[str, float] = {}
        start = 0
        for topic, phrases in self._phrases.items():
            own = np.sort(cosines[start : start + len(phrases)])
            found[topic] = float(own[-NEAREST:].mean())
            start += len(phrases)
        return found

    async def _vectors(self, embedder: Embedder) -> _Phrases:
        async with self._one_at_a_time:
            known = self._known
            if known is None or known.spec != embedder.spec:
                texts = [text for phrases in self._phrases.values() for text in phrases]
                vectors = await embedder.embed_passages(texts)
                known = _Phrases(embedder.spec, np.asarray(vectors, dtype=np.float32))
                self._known = known
        return known


def topic_odds(
    cosines: Mapping[str, float], topics: Sequence[str], spec: EmbeddingSpec
) -> Mapping[str, float]:
    """Return the probability of each topic, 0..1; what is left is that the question is on none.

    Args:
        cosines: How near each is to the question.
        topics: Those whose words are in the question, the likeliest first.
        spec: Of the model that the cosines come from.
    """
    width = spec.related - spec.unrelated
    scores = np.asarray(
        [
            BY_SENSE * cosine / width
            + BY_WORDS * (topic in topics)
            + BY_MOST_WORDS * (topic in topics[:1])
            for topic, cosine in cosines.items()
        ]
        + [BY_SENSE * (spec.unrelated / width + ON_NONE)]
    )
    chances = np.exp(scores - scores.max())
    chances = chances[:-1] / chances.sum()
    return dict(zip(cosines, chances.tolist(), strict=True))


def _phrases(domain: Domain, topic: str) -> tuple[str, ...]:
    told = domain.topics[topic]
    found = (told.title.en, told.title.zh, *told.keywords.en, *told.keywords.zh)
    return tuple(dict.fromkeys(text.rstrip("*") for text in found))
