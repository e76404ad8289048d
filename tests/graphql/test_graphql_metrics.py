"""What Prometheus is told: how recalls end and how long they take, how the cache does."""

from __future__ import annotations

import re
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ecphoria.errors import StoreUnavailable

pytestmark = pytest.mark.asyncio(loop_scope="session")

ASK = 'query ($q: String!) { recall(input: {question: $q, userId: "u1"}) { action } }'


async def _samples(api: Any) -> dict[tuple[str, str | None], float]:
    response = await api.http.get("/metrics")
    assert response.status_code == 200
    assert re.match(r"text/plain; version=[\d.]+; charset=utf-8", response.headers["content-type"])
    return {
        (sample.name, sample.labels.get("action")): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
        if not sample.name.endswith(("_bucket", "_created"))
    }


async def test_recalls_are_counted_by_what_came_of_them(shop: Any, api_over: Any) -> None:
    async with api_over(shop) as api:
        before = await _samples(api)
        for action in ("ANSWER", "FALLBACK", "SKIP", "ERROR"):
            assert before["ecphoria_recall_seconds_count", action] == 0
        for question in ("Is it repaired?", "修好了吗？"):
            await api.data(ASK, q=question)
        shop.failures["recall"] = StoreUnavailable("the graph does not answer")
        await api.error(ASK, q="And now?")
        found = await _samples(api)
    assert found["ecphoria_recall_seconds_count", "ANSWER"] == 2
    assert found["ecphoria_recall_seconds_count", "ERROR"] == 1
    assert found["ecphoria_recall_seconds_count", "SKIP"] == 0
    assert found["ecphoria_recall_seconds_sum", "ANSWER"] > 0


async def test_the_cache_tells_hits_misses_and_size(shop: Any, api_over: Any) -> None:
    async with api_over(shop, anonymous=True) as api:
        cached = shop.queries.embedder(_Model(), "acme", "zhang-wei")
        for _ in range(3):
            await cached.embed_query("a question of his own")
        found = await _samples(api)
        assert found["ecphoria_query_cache_hits_total", None] == 2
        assert found["ecphoria_query_cache_misses_total", None] == 1
        assert found["ecphoria_query_cache_entries", None] == 1
        assert found["ecphoria_query_cache_capacity", None] == shop.settings.query_cache_size
        page = (await api.http.get("/metrics")).text
    for told in ("acme", "zhang-wei", "question of his own"):
        assert told not in page


async def test_two_applications_count_apart(shop: Any, api_over: Any) -> None:
    async with api_over(shop) as one, api_over(shop) as other:
        await one.data(ASK, q="Is it repaired?")
        assert (await _samples(one))["ecphoria_recall_seconds_count", "ANSWER"] == 1
        assert (await _samples(other))["ecphoria_recall_seconds_count", "ANSWER"] == 0


class _Model:
    spec = type("Spec", (), {"model": "m", "version": "1"})

    async def embed_query(self, text: str) -> list[float]:
        return [float(len(text))]
