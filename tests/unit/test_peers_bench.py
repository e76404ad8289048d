"""What the peers of the benchmark share, and the one that needs nothing but numpy."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from benchmarks.peers.exchange import (
    EVERYBODY,
    OPEN_END,
    Found,
    Memory,
    Order,
    Question,
    answer,
    in_order,
    milliseconds,
    read_memories,
    read_order,
)
from benchmarks.peers.vector_only import nearest

DAY = 86_400_000
ORDER = Order(
    data=Path("data"),
    questions=Path("questions.jsonl"),
    vectors=Path("vectors"),
    answers=Path("answers.jsonl"),
    memory_limit=2,
    entity_limit=1,
    gate=None,
    neo4j=("bolt://x", "user", "password", "neo4j"),
)
QUESTION = Question("q", "u", "?", 10 * DAY)


def memory(id_, **changes):
    return replace(
        Memory(id_, "u", "text", 0, OPEN_END, ({"type": "Device", "id": id_},)), **changes
    )


def line(id_, **changes):
    return {
        "id": id_,
        "user_id": "u",
        "text": "text",
        "valid_from": "2025-01-01T00:00:00Z",
        "valid_until": None,
        "about": [],
        "supersedes": None,
    } | changes


def written(directory, rows):
    file = directory / "memories.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return file


def test_an_order_arrives_as_it_was_given(monkeypatch):
    monkeypatch.setattr("sys.stdin", StringIO(ORDER.line()))

    assert read_order() == ORDER


def test_a_replaced_memory_ends_when_the_other_begins(tmp_path):
    rows = [
        line("old"),
        line("early", valid_until="2025-01-05T00:00:00Z"),
        line("new", valid_from="2025-02-01T00:00:00Z", supersedes="old"),
        line("late", valid_from="2025-02-01T00:00:00Z", supersedes="early"),
        line("shared", user_id=None),
    ]

    found = {item.id: item for item in read_memories(written(tmp_path, rows))}

    assert found["old"].valid_until == milliseconds("2025-02-01T00:00:00Z")
    assert found["early"].valid_until == milliseconds("2025-01-05T00:00:00Z")
    assert found["new"].valid_until == OPEN_END
    assert found["shared"].user_id == EVERYBODY


def test_only_what_the_user_may_see_and_what_is_valid_is_found():
    memories = [
        memory("other", user_id="somebody"),
        memory("future", valid_from=10 * DAY + 1),
        memory("past", valid_until=10 * DAY),
        memory("far"),
        memory("near", user_id=EVERYBODY),
        memory("nearer"),
    ]
    vectors = np.array([[1, 0], [1, 0], [1, 0], [0, 1], [0.6, 0.8], [0.8, 0.6]], dtype=np.float32)

    found = nearest(memories, vectors, QUESTION, np.array([1, 0], dtype=np.float32), 2)

    assert found.memories == ["nearer", "near"]
    assert [ref["id"] for ref in found.entities] == ["nearer", "near"]
    assert found.similarity == pytest.approx(0.8)


def test_nothing_to_find_is_a_fallback():
    vectors = np.zeros((1, 2), dtype=np.float32)
    found = nearest([memory("x", user_id="y")], vectors, QUESTION, vectors[0], 2)

    assert answer(QUESTION, found, ORDER)["action"] == "FALLBACK"


@pytest.mark.parametrize(
    ("gate", "action"), [(None, "ANSWER"), (0.5, "ANSWER"), (0.51, "FALLBACK")]
)
def test_a_gate_refuses_what_is_less_similar(gate, action):
    found = Found(["a"], [], 0.5)

    assert answer(QUESTION, found, replace(ORDER, gate=gate))["action"] == action


def test_an_answer_is_cut_to_what_the_scorer_looks_at():
    refs = [{"type": "Device", "id": "a"}, {"type": "Device", "id": "b"}]
    line_ = answer(QUESTION, Found(["1", "2", "3"], refs, 1.0), ORDER)

    assert (line_["memories"], line_["entities"]) == (["1", "2"], refs[:1])


def test_nearer_things_come_first_and_each_but_once():
    def thing(id_, steps):
        return {"type": "Device", "id": id_, "steps": steps}

    nothing = {"type": None, "id": None, "steps": None}
    found = in_order([[thing("a", 0), thing("b", 1)], [nothing], [thing("c", 0), thing("a", 2)]])

    assert [ref["id"] for ref in found] == ["a", "c", "b"]
