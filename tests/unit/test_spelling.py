"""Slips put right where one of the domain's words was meant; all else stays as it is."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import AFTER_SALES_WORDS
from ecphoria.language.spelling import Spelling

SPELLING = AFTER_SALES_WORDS.spelling


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("Is my waranty still valid?", "Is my warranty still valid?"),
        ("How do I prefer to be cobtacted?", "How do I prefer to be contacted?"),
        ("Where did you ship things befor I moved?", "Where did you ship things before I moved?"),
        ("Waranty of my phone?", "Warranty of my phone?"),
        ("我的 waranty 还在吗？", "我的 warranty 还在吗？"),
        ("Is the pracel late? (my pracel)", "Is the parcel late? (my parcel)"),
    ],
)
def test_a_slip_is_put_right(said, meant):
    assert SPELLING.corrected(said) == meant


@pytest.mark.parametrize(
    "text",
    [
        "Was my order #W2401849x shipped?",
        "Is serial waranty-15 known?",
        "Mail me at waranty@example.com",
        "Does Waranty Ltd. pay? It is called Waranty here",
        "WARANTY",
        "Has Lia Coupan called?",
        "The iphone and the airpods",
        "I charted a course and mounted a horse",
        "保修还有多久？",
        "",
    ],
)
def test_ids_names_and_real_words_stay(text):
    # the one at the start of a sentence aside
    assert SPELLING.corrected(text).replace("warranty", "waranty") == text


def test_of_several_words_the_one_a_key_away_is_meant():
    spelling = Spelling(["order", "other"])
    assert spelling.corrected("my otder") == "my order"
    assert Spelling(["other"]).corrected("my otder") == "my other"


def test_a_word_that_the_domain_knows_with_any_ending_is_no_slip():
    assert Spelling(["refund*", "refined"]).corrected("refunde") == "refunde"


@given(st.text(max_size=80))
def test_any_text_comes_back_and_nothing_is_put_right_twice(text):
    once = SPELLING.corrected(text)
    assert SPELLING.corrected(once) == once
    assert len(once.split()) == len(text.split())


@given(st.text(alphabet=string.ascii_letters + string.digits + " #-", max_size=60))
def test_whatever_has_a_digit_stays(text):
    def exact(given_text):
        return [word for word in given_text.split() if any(char.isdigit() for char in word)]

    assert exact(SPELLING.corrected(text)) == exact(text)
