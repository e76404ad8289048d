"""The vector index is derived: it can be dropped and made anew, for another model, too."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ecphoria.embedding import open as embedding
from ecphoria.engine import Engine
from ecphoria.errors import EmbeddingMismatch
from ecphoria.model import EmbeddingSpec, MemoryInput, RecallRequest


class Renamed:
    """The embedded model under another name: another model, as far as the lock can tell."""

    def __init__(self, inner):
        self._inner = inner
        spec = inner.spec
        self.spec = EmbeddingSpec(
            "another-model", spec.version, spec.dimension, spec.unrelated, spec.related
        )

    def __getattr__(self, name):
        return getattr(self._inner, name)


@pytest.fixture
def another_model(monkeypatch):
    async def opened(settings):
        return Renamed(await embedding.open_embedder(settings))

    monkeypatch.setattr(sys.modules["ecphoria.engine"], "open_embedder", opened)


async def test_another_model_is_refused_until_the_index_is_rebuilt(
    stores, prefix, tenant, admin, tmp_path: Path, request
):
    settings = stores.settings(prefix, tmp_path)
    memories = [
        MemoryInput(text=f"The courier of parcel {number} is Courier{number}.", user_id="u1")
        for number in range(5)
    ]
    async with Engine.open(settings) as engine:
        await engine.remember(admin, memories)
    request.getfixturevalue("another_model")
    with pytest.raises(EmbeddingMismatch, match="ecphoria reindex"):
        async with Engine.open(settings):
            pass
    async with Engine.open(settings, rebuild_index=True) as engine:
        assert (await engine.graph.counts(tenant))["pending"] == 5
        while (await engine.graph.counts(tenant))["pending"]:
            await engine.reconcile()
        assert await engine.index.count(tenant) == 5
        assert {info.spec.model for info in (await engine.index.info()).values()} == {
            "another-model"
        }
        found = await engine.recall(admin, RecallRequest("Who is the courier of parcel 3?", "u1"))
        assert found.memories[0].memory.embedding_model == "another-model"
        await engine.index.drop()
