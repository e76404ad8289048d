"""A reranker between ranking and answer: on real stores, with the real library."""

from __future__ import annotations

import contextlib
import importlib.util
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from ecphoria.engine import Engine
from ecphoria.errors import RerankingFailed
from ecphoria.model import EntityInput, MemoryInput, RecallRequest
from ecphoria.reranking.open import open_reranker
from tiny_cross_encoder import make

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
TEXTS = {
    "m1": "The phone's battery is dead after an hour.",
    "m2": "手机电池一小时就没电了，已更换。",
    "m3": "The battery was replaced under warranty in April.",
    "m4": "The customer asked what a new battery costs.",
}
QUESTION = "What about the battery 电池?"


@pytest.fixture
async def shop(engine, admin):
    await engine.upsert_entities(admin, [EntityInput("User", "u1", {"name": "Ann"})])
    await engine.remember(
        admin,
        [
            MemoryInput(text=text, user_id="u1", id=id_, occurred_at=NOW - DAY)
            for id_, text in TEXTS.items()
        ],
    )
    return engine


class Prefers:
    """A reranker that takes to one text."""

    name = "prefers"

    def __init__(self, text=None, failure=None):
        self._text = text
        self._failure = failure

    async def scores(self, question, texts):
        assert question == QUESTION
        if self._failure is not None:
            raise self._failure
        return tuple(float(text == self._text) for text in texts)

    async def close(self):
        return None


def with_reranker(engine, reranker, **settings):
    return replace(engine, reranker=reranker, settings=engine.settings.model_copy(update=settings))


async def ask(engine, scope):
    return await engine.recall(scope, RecallRequest(QUESTION, "u1", as_of=NOW, limit=10))


def ids(found):
    return [item.memory.id for item in found.memories]


def steps(found):
    return {step.stage: step for step in found.trace}


async def test_it_orders_and_leaves_relevance_alone(shop, admin):
    before = await ask(shop, admin)
    assert set(ids(before)) == set(TEXTS)
    last = ids(before)[-1]
    asked = with_reranker(shop, Prefers(TEXTS[last]), reranker_weight=1.0)

    after = await ask(asked, admin)
    assert ids(after) == [last, *ids(before)[:-1]]
    relevance = {item.memory.id: item.relevance for item in before.memories}
    assert {item.memory.id: item.relevance for item in after.memories} == pytest.approx(relevance)
    assert (after.action, after.confidence is None) == (before.action, False)
    assert "reads like an answer (1.00)" in after.memories[0].because
    assert list(steps(after)).index("rerank") == list(steps(after)).index("rank") + 1
    assert steps(after)["rerank"].note == "4 read by prefers"
    assert "rerank" not in steps(before)


async def test_one_that_fails_is_said_and_the_answer_comes(shop, admin):
    before = await ask(shop, admin)
    after = await ask(
        with_reranker(shop, Prefers(failure=RerankingFailed("it is out of memory"))), admin
    )
    assert after.degradations == ("reranker failed: it is out of memory",)
    assert (after.action, ids(after)) == (before.action, ids(before))
    assert steps(after)["rerank"].note == "0 read by prefers"


@pytest.mark.usefixtures("shop")
async def test_an_engine_opens_with_a_cross_encoder(stores, admin, tmp_path):
    if importlib.util.find_spec("sentence_transformers") is None:
        pytest.skip("sentence-transformers is not installed (pip install -e '.[dev]')")
    model = make(tmp_path / "tiny-reranker")
    settings = stores.settings(
        "shared",
        tmp_path / "data",
        reranker=f"sentence-transformers:{model}",
        reranker_device="cpu",
        reranker_weight=1.0,
        reranker_timeout_s=60,
    )
    async with contextlib.AsyncExitStack() as stack:
        asked = await stack.enter_async_context(Engine.open(settings))
        await asked.warm_up()
        found = await ask(asked, admin)
        alone = await open_reranker(settings)
        stack.push_async_callback(alone.close)
        texts = list(TEXTS.values())
        scores = dict(zip(TEXTS, await alone.scores(QUESTION, texts), strict=True))
    assert found.degradations == ()
    assert ids(found) == sorted(TEXTS, key=lambda id_: -scores[id_])
    assert steps(found)["rerank"].note == "4 read by tiny-reranker"


# --- the command line --------------------------------------------------------------------------


def doctor(ecphoria, **env):
    """Return what doctor finds, by check; a domain that there is not spares it the stores."""
    done = ecphoria("doctor", "--json", ECPHORIA_DOMAIN="none.yaml", **env)
    return {check["check"]: check for check in done.json}


def test_doctor_tries_the_reranker(bare_ecphoria, tmp_path):
    if importlib.util.find_spec("sentence_transformers") is None:
        pytest.skip("sentence-transformers is not installed (pip install -e '.[dev]')")
    model = make(tmp_path / "tiny-reranker")
    found = doctor(bare_ecphoria, ECPHORIA_RERANKER=f"sentence-transformers:{model}")
    assert found["reranker"]["status"] == "OK"
    assert found["reranker"]["detail"].startswith("tiny-reranker: reads 30 short texts in ")
    slow = doctor(
        bare_ecphoria,
        ECPHORIA_RERANKER=f"sentence-transformers:{model}",
        ECPHORIA_RERANKER_TIMEOUT_S="0.000001",
    )
    assert slow["reranker"]["status"] == "WARN"

    away = doctor(bare_ecphoria, ECPHORIA_RERANKER=f"sentence-transformers:{tmp_path / 'none'}")
    assert away["reranker"]["status"] == "FAIL"
    assert "MODEL_UNAVAILABLE" in away["reranker"]["detail"]


def test_doctor_tells_of_the_query_cache(bare_ecphoria):
    found = doctor(bare_ecphoria)
    assert "reranker" not in found
    assert found["query cache"]["status"] == "OK"
    assert found["query cache"]["detail"].startswith("up to 4,096 vectors")
    off = doctor(bare_ecphoria, ECPHORIA_QUERY_CACHE_SIZE="0")
    assert off["query cache"]["detail"] == "off"
