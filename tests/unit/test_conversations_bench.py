"""The conversation benchmark: what goes in, and how memories become turns again."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from benchmarks.conversations import (
    BadData,
    kept_as,
    memory_input,
    ranked,
    read_questions,
    read_turns,
)

from ecphoria.model import Receipt, ReceiptStatus


def line(number, **changes):
    return {
        "id": f"c/{number}",
        "conversation": "c",
        "speaker": "Ann",
        "session": "s1",
        "occurred_at": "2023-05-08T13:56:00Z",
        "text": f"text {number}",
        "lang": "en",
    } | changes


def written(directory, name, rows):
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    (directory / name).write_text(text, encoding="utf-8")
    return directory


def receipt(index, id_, status=ReceiptStatus.CREATED, facts=()):
    return Receipt(index, status, id_, reason="no", facts=facts)


def test_turns_of_a_session_are_a_second_apart(tmp_path):
    rows = [line(1), line(2), line(3, session="s2"), line(4)]

    turns = read_turns(written(tmp_path, "memories.jsonl", rows))

    begin = turns[0].occurred_at
    assert [(turn.occurred_at - begin) / timedelta(seconds=1) for turn in turns] == [0, 1, 0, 2]


def test_a_turn_is_a_line_of_a_dialogue_in_its_session(tmp_path):
    (turn,) = read_turns(written(tmp_path, "memories.jsonl", [line(1)]))

    given = memory_input(turn)

    assert (given.text, given.user_id, given.session_id) == ("Ann: text 1", "c", "s1")


def test_of_a_question_only_text_and_conversation_are_read(tmp_path):
    row = {"id": "q", "conversation": "c", "text": "Who?", "category": "x", "evidence": ["c/1"]}

    (question,) = read_questions(written(tmp_path, "questions.jsonl", [row]))

    assert (question.id, question.conversation, question.text) == ("q", "c", "Who?")
    assert not hasattr(question, "evidence")


@pytest.mark.parametrize("rows", [["no object"], [{"id": "c/1"}]])
def test_what_is_no_turn_is_named(tmp_path, rows):
    with pytest.raises(BadData, match="line 1"):
        read_turns(written(tmp_path, "memories.jsonl", rows))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(BadData, match="is missing"):
        read_questions(tmp_path)


def test_what_is_kept_once_stands_for_all_its_turns(tmp_path):
    turns = read_turns(written(tmp_path, "memories.jsonl", [line(n) for n in range(3)]))
    parts = (receipt(1, "c/1"), receipt(1, "c/1~2"))
    receipts = [
        receipt(0, "c/0"),
        receipt(1, "c/1", facts=parts),
        receipt(2, "c/0", ReceiptStatus.DUPLICATE),
    ]

    stands_for = kept_as(turns, receipts)

    assert stands_for == {"c/0": ("c/0", "c/2"), "c/1": ("c/1",), "c/1~2": ("c/1",)}
    assert ranked(["c/1~2", "c/0", "c/1", "unknown"], stands_for) == ["c/1", "c/0", "c/2"]


def test_a_refused_turn_ends_it(tmp_path):
    turns = read_turns(written(tmp_path, "memories.jsonl", [line(1)]))

    with pytest.raises(BadData, match="c/1 was refused"):
        kept_as(turns, [receipt(0, None, ReceiptStatus.REJECTED)])
