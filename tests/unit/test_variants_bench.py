"""Questions as people also write them: what has a digit in it stays, whatever else changes."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from benchmarks.variants import VARIANTS, exact_parts, mixed, order, typo, varied
from hypothesis import given
from hypothesis import strategies as st

QUESTIONS = (
    "How long is the warranty of my laptop, and was order #W1234567 refunded?",
    "What did I say was wrong with my kettle after the repair of SN12345678?",
    "Emma Clark here. Which courier brings order 20000042-3?",
    "订单#W1234567退了多少钱?",
    "我2025年6月买的笔记本电脑修得怎么样了，还在保修期吗？",
    "序列号SN12345678的设备换过什么零件",
)
texts = st.one_of(
    st.sampled_from(QUESTIONS),
    st.text(max_size=80),
    st.lists(
        st.sampled_from(
            [
                "#W1234567",
                "SN-0042",
                "iPhone15",
                "warranty",
                "保修",
                "王芳",
                "Liam",
                "，",
                ", ",
                "? ",
                "my",
            ]
        ),
        max_size=8,
    ).map(" ".join),
)


def dice(seed):
    return random.Random(seed)  # noqa: S311 - sameness is the point


kinds = st.sampled_from(sorted(VARIANTS))


@given(kinds, texts, st.integers(0, 1_000))
def test_ids_serials_and_dates_are_never_changed(kind, text, seed):
    variant = varied(kind, text, seed=seed, key="q")

    assert Counter(exact_parts(variant)) == Counter(exact_parts(text))


@given(kinds, texts, st.integers(0, 1_000))
def test_the_same_seed_and_question_make_the_same_variant(kind, text, seed):
    first, again = (varied(kind, text, seed=seed, key="q") for _ in range(2))

    assert first == again


@pytest.mark.parametrize("kind", sorted(VARIANTS))
def test_other_seeds_and_other_questions_make_other_variants(kind):
    text = "Emma Clark here. How long is the warranty of my laptop, and was the order refunded?"

    by_seed = {varied(kind, text, seed=seed, key="q") for seed in range(20)}
    by_key = {varied(kind, text, seed=1, key=f"q-{number}") for number in range(20)}

    assert len(by_seed) > 1
    assert len(by_key) > 1


@given(st.sampled_from(QUESTIONS), st.integers(0, 1_000))
def test_a_slip_is_one_character_more_less_or_other(text, seed):
    slipped = typo(text, dice(seed))

    assert slipped != text
    assert abs(len(slipped) - len(text)) <= 1
    if len(slipped) == len(text):
        assert sum(a != b for a, b in zip(slipped, text, strict=True)) == 1


@pytest.mark.parametrize("text", ["订单没到", "Was it June?", "#W1234567", "Did it go?"])
def test_a_slip_spares_negations_months_ids_and_short_words(text):
    slipped = {typo(text, dice(seed)) for seed in range(50)}

    assert all("没" in one for one in slipped) or "没" not in text
    assert slipped == {text} or "没" in text


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("Liam Moore here. What did I say?", "What did I say? Liam Moore here."),
        (
            "Was the kettle repaired, and is it covered?",
            "Is it covered, was the kettle repaired?",
        ),
        ("What is wrong with my old kettle?", "With my old kettle, what is wrong?"),
        ("我的手机修了几次，可以换新吗？", "可以换新吗，我的手机修了几次？"),
        ("我送修的电脑还在保修期吗?", "还在保修期吗，我送修的电脑?"),
    ],
)
def test_parts_of_a_question_change_places(text, moved):
    assert order(text, dice(1)) == moved


@pytest.mark.parametrize("text", ["Why is it late?", "为什么晚到?"])
def test_a_question_of_one_part_gets_a_greeting_or_thanks(text):
    found = order(text, dice(1))

    assert found != text
    assert found.lower().strip().find(text.lower().rstrip("?")) >= 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Is the extended warranty valid?", "Is the 延保 valid?"),
        ("还在延保期吗?", "还在 extended warranty 期吗?"),
        ("快递", "courier"),
        ("Anything new?", "Anything new?"),
    ],
)
def test_words_of_the_trade_are_said_in_the_other_language(text, said):
    assert mixed(text, dice(1)) == said
