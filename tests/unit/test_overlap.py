"""Shares of a question's words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecphoria.language.overlap import overlaps

TEXTS = st.lists(st.text("订单退款 order refund12", max_size=20), max_size=6)


def test_a_rare_word_counts_more_than_a_common_one():
    texts = ["the parcel is late", "the parcel is at the locker", "the firmware is new"]
    late, parcel, none = overlaps("Is the firmware of the parcel new?", [texts[2], *texts[:2]])
    assert late > parcel == none > 0


@pytest.mark.parametrize("text", ["退款已经批准", "The refund was approved."])
def test_both_languages_are_cut_into_words(text):
    assert overlaps(text, [text, "…"]) == pytest.approx((1.0, 0.0))


def test_a_question_without_words_shares_nothing():
    assert overlaps("???", ["anything"]) == (0.0,)
    assert overlaps("refund", []) == ()


@given(st.text("订单退款 order refund12", max_size=20), TEXTS)
def test_shares_are_bounded_and_do_not_depend_on_the_order(question, texts):
    found = overlaps(question, texts)
    assert len(found) == len(texts)
    assert all(0 <= share <= 1 for share in found)
    assert overlaps(question, texts[::-1]) == found[::-1]
