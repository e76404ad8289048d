"""What people see of a recall that explains itself: 100 columns, and no id cut."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from builders import NOW, memory
from ecphoria.cli.answer import answer_of, show_answer
from ecphoria.model import Action, ConsideredMemory, FeatureShare, RecallResult, TraceStep

FEATURES = (FeatureShare("similarity", 0.5, 4.6, 0.08), FeatureShare("heat", 0.01, 0.1, 0.0001))


def considered(number, id_=None, **more):
    text = "客户说屏幕触控失灵，希望尽快送修，下班后可以去门店。" * 4
    return ConsideredMemory(
        memory(id_ or f"mem-{number:04d}", text),
        **({"place": number, "relevance": 0.5, "score": 0.25, "features": FEATURES} | more),
    )


def result(*looked, **more):
    steps = (
        TraceStep("seed", 12.3, 4, {}, "", "1 question, 3 kinds", "4 seeds"),
        TraceStep("rank", 1.5, 1, {"relevance below 0.05": 3}, "a note", "4 memories", "1 memory",
                  looked),
    )  # fmt: skip
    return RecallResult(Action.ANSWER, NOW, "zh", (), (), (), (), None, None, "", (), steps, **more)


def shown(found, width=100):
    console = Console(file=io.StringIO(), width=width, highlight=False)
    show_answer(console, answer_of(found), explain=True)
    return console.file.getvalue()


def test_stages_have_what_came_what_went_and_what_was_dropped():
    said = shown(result(considered(1)))
    for part in ("1 question, 3 kinds", "4 seeds", "12.3", "- 3 relevance below 0.05", "a note"):
        assert part in said
    # all stages together
    assert "13.8" in said


@pytest.mark.parametrize("width", [100, 80])
@pytest.mark.parametrize("length", [9, 28, 60, 256])
def test_no_id_is_cut(width, length):
    id_ = "m" + "".join(chr(ord("a") + place % 26) for place in range(length - 1))
    said = shown(result(considered(1, id_), considered(2, dropped="a rule")), width)
    assert max(len(line.rstrip()) for line in said.splitlines()) <= width
    _, _, table = said.partition("memories looked at")
    header = next(line for line in table.splitlines() if "relevance " in line and " id " in line)
    column = slice(header.index(" id ") + 1, header.index("relevance"))
    # one that is too long for its column is broken, so it can be put together again
    assert id_ in "".join(line[column].strip() for line in table.splitlines())
    if length <= 32:
        assert id_ in table


def test_a_memory_has_its_fate_and_what_its_score_is_made_from():
    said = shown(result(considered(1), considered(2, dropped="over the limit of 1")))
    assert "in the answer" in said
    assert "over the limit of 1" in said
    assert "similarity(0.50×4.6)=+0.08" in said
    # what rounds to nothing is left to --json
    assert "heat(" not in said


def test_people_see_ten_of_those_that_are_out_and_scripts_all():
    looked = [considered(1), *(considered(number, dropped="a rule") for number in range(2, 31))]
    said = shown(result(*looked))
    assert "mem-0011" in said
    assert "mem-0012" not in said
    assert "… and 19 more that are not in the answer; --json has all." in said
    told = answer_of(result(*looked))["trace"][1]
    assert [each["memoryId"] for each in told["considered"]] == [
        f"mem-{number:04d}" for number in range(1, 31)
    ]
    assert told["considered"][1]["dropped"] == "a rule"
    assert told["considered"][0]["features"][0] == {
        "name": "similarity",
        "value": 0.5,
        "weight": 4.6,
        "share": 0.08,
    }


def test_what_was_dropped_before_it_was_ranked_has_no_figures():
    before = considered(1, place=None, relevance=None, score=None, features=(), dropped="expired")
    said = shown(result(before))
    (line,) = (line for line in said.splitlines() if "mem-0001" in line)
    assert line.split() == ["mem-0001", "expired"]
