"""The classification benchmark: its mapping, its counting, and that other words are understood."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

from builders import AFTER_SALES, AFTER_SALES_WORDS

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    yield importlib.import_module("benchmarks.classification")
    for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
        del sys.modules[name]


def test_the_mapping_names_topics_of_the_shipped_domain(bench):
    for topic, accepted in bench.ACCEPTED.items():
        assert set(accepted) <= set(AFTER_SALES.topics), topic
        assert bool(accepted) is (topic != bench.SMALLTALK)
        assert len(accepted) <= 4, topic


def test_every_topic_has_other_words_in_both_languages(bench):
    said = {(sentence.topic, sentence.lang) for sentence in bench.of_wordings()}
    assert said == {(topic, lang) for topic in bench.ACCEPTED for lang in ("en", "zh")}


def test_only_the_first_topic_counts(bench):
    assert bench.is_right("repair", ("fault", "refund"))
    assert not bench.is_right("repair", ("refund", "fault"))
    assert not bench.is_right("repair", ())
    assert bench.is_right("smalltalk", ())
    assert not bench.is_right("smalltalk", ("fault",))


def test_sentences_in_other_words_get_their_topic(bench):
    found = bench.measure(bench.of_wordings(), AFTER_SALES_WORDS)
    assert found["right_share"]["all"] >= 0.88
    assert min(found["right_share"]["en"], found["right_share"]["zh"]) >= 0.85
    assert found["smalltalk_share"] == 1.0


def test_the_figures_are_written(bench, tmp_path, capsys):
    memories = tmp_path / "seed-1" / "memories.jsonl"
    memories.parent.mkdir()
    memories.write_text(
        json.dumps({"text": "退款没到", "lang": "zh", "topic": "refund_to"}) + "\n"
        '{"text": "The weather is fine", "lang": "en", "topic": "gift"}\n',
        encoding="utf-8",
    )
    output = tmp_path / "figures.json"
    assert bench.main([str(memories), "--output", str(output), "--wrong"]) == 0
    figures = json.loads(output.read_text(encoding="utf-8"))["benchmark, seed-1"]
    assert figures["topics"]["gift"] == {"en": {"right": 0, "of": 1}}
    assert figures["topics"]["refund_to"] == {"zh": {"right": 1, "of": 1}}
    assert figures["smalltalk_share"] is None
    assert "The weather is fine -> none" in capsys.readouterr().out
