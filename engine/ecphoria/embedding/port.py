"""The port through which texts become vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ecphoria.model import EmbeddingSpec, Vector


class Embedder(Protocol):
    """Turns texts into vectors of unit length.

    Texts are cleaned before the model sees them (`embedding.text`), long ones are embedded in
    windows and averaged, so nothing is cut off silently.
    """

    @property
    def spec(self) -> EmbeddingSpec:
        """What the vectors are like."""
        ...

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """Embed memories; one vector a text, in order.

        Raises:
            EmbeddingFailed: When the model fails.
            InvalidVector: When it returns something that is no usable vector.
        """
        ...

    async def embed_query(self, text: str) -> Vector:
        """Embed one question; errors as for `embed_passages`."""
        ...

    async def close(self) -> None:
        """Free the model."""
        ...
