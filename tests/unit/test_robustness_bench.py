"""What the robustness benchmark asks, and what it says of two reports."""

from __future__ import annotations

import json

import pytest
from benchmarks.after_sales import Question, sampled
from benchmarks.answering import BadData
from benchmarks.robustness import figures, reworded, vary, write_questions
from benchmarks.scoring import choose_lines, score, solved


def question(number, text="Is the warranty of my laptop still valid?"):
    return Question(f"q-{number}", text, "u", "2025-06-01T00:00:00Z")


def report(solve, *, zh=None, questions=4):
    all_ = {"all": {"n": questions, "solve": solve}}
    return {
        "groups": {
            "single": all_,
            "policy": {},
            "all": all_ | ({"zh": {"solve": zh}} if zh else {}),
        }
    }


def test_a_sample_keeps_the_order_and_is_the_same_for_a_seed():
    questions = [question(number) for number in range(50)]

    chosen = sampled(questions, 10, 3)

    assert chosen == sampled(questions, 10, 3)
    assert chosen != sampled(questions, 10, 4)
    assert list(chosen) == [item for item in questions if item in chosen]
    assert sampled(questions, None, 3) == sampled(questions, 99, 3) == tuple(questions)


def test_only_questions_that_vary_are_asked_again():
    questions = [question(1), question(2, "Oh?")]

    assert [item.id for item in vary(questions, "typo", 1)] == ["q-1"]
    assert [item.id for item in reworded(questions, [question(1), question(2, "Ah?")])] == ["q-2"]


def test_a_written_question_has_the_varied_text_and_what_the_scorer_knows(tmp_path):
    source, out = tmp_path / "questions.jsonl", tmp_path / "out.jsonl"
    rows = [{"id": f"q-{number}", "text": "old", "gold": {"memories": []}} for number in (1, 2)]
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")

    write_questions(source, [question(2, "新")], out)

    assert json.loads(out.read_text("utf-8")) == {
        "id": "q-2",
        "text": "新",
        "gold": rows[1]["gold"],
    }


def test_points_lost_are_told_in_all_and_by_language():
    found = figures(report(0.75, zh=0.5), report(0.5, zh=0.75))

    assert found["questions"] == 4
    assert found["all"] == {"before": 0.75, "solved": 0.5, "lost": 25.0}
    assert found["zh"]["lost"] == -25.0
    assert found["en"] == {"before": None, "solved": None, "lost": None}
    assert found["types"] == {"single": {"before": 0.75, "solved": 0.5}}


def test_lines_are_chosen_by_id(tmp_path):
    source, out = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    source.write_text('{"id": "a"}\n{"id": "b"}\n', encoding="utf-8")

    choose_lines(source, {"b"}, out)

    assert out.read_text("utf-8") == '{"id": "b"}\n'


def test_what_the_scorer_says_is_read_and_its_refusal_is_told(tmp_path):
    scorer = tmp_path / "score.py"
    scorer.write_text(
        "import sys\n"
        "assert sys.argv[3] == '--json'\n"
        "sys.exit('no such question') if 'bad' in sys.argv[2] else None\n"
        """print('{"groups": {"all": {"all": {"solve": 0.5}}}}')\n""",
        encoding="utf-8",
    )

    assert solved(score(scorer, tmp_path / "q", tmp_path / "answers")) == 0.5
    with pytest.raises(BadData, match="no such question"):
        score(scorer, tmp_path / "q", tmp_path / "bad")
