"""The port through which a model reads a question and memories together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Reranker(Protocol):
    """Tells how well texts answer a question, better than two vectors can, and slower."""

    @property
    def name(self) -> str:
        """Name of the model, for people."""
        ...

    async def scores(self, question: str, texts: Sequence[str]) -> tuple[float, ...]:
        """Return how well each text answers, 0..1, in order; the higher the better.

        Whoever stops waiting (a timeout, a cancelled task) frees the model after the batch that
        runs.

        Raises:
            RerankingFailed: When the model fails, or returns what is no score.
        """
        ...

    async def close(self) -> None:
        """Free the model."""
        ...
