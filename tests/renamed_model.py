"""The embedded model under another name: another model, as far as the index can tell."""

from __future__ import annotations

from ecphoria.embedding import open as embedding
from ecphoria.errors import EmbeddingFailed
from ecphoria.model import EmbeddingSpec

NAME = "another-model"


class Renamed:
    """The embedded model, calling itself otherwise; it fails on texts that hold a word."""

    def __init__(self, inner, name=NAME, fails_on=None):
        self._inner = inner
        self._fails_on = fails_on
        spec = inner.spec
        self.spec = EmbeddingSpec(name, spec.version, spec.dimension, spec.unrelated, spec.related)

    async def embed_passages(self, texts):
        if self._fails_on is not None and any(self._fails_on in text for text in texts):
            msg = f"the model does not like {self._fails_on!r}"
            raise EmbeddingFailed(msg)
        return await self._inner.embed_passages(texts)

    def __getattr__(self, name):
        return getattr(self._inner, name)


def opener(name=NAME, fails_on=None):
    """Return what opens it in place of `open_embedder`."""

    async def opened(settings):
        return Renamed(await embedding.open_embedder(settings), name, fails_on)

    return opened
