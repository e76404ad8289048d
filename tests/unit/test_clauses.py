"""A question cut into clauses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecphoria.language.clauses import MAX_CLAUSES, clauses


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Is it covered?", ("Is it covered?",)),
        (
            "Which one was mended because it leaked, and is it still covered?",
            ("one was mended", "it leaked", "is it still covered"),
        ),
        ("因为漏水送修的是哪台，还在保吗？", ("漏水送修", "哪台", "还在保吗")),
        ("a, b", ("a, b",)),
        ("", ("",)),
    ],
)
def test_a_question_is_cut_where_it_turns_to_something_else(text, parts):
    assert clauses(text) == parts


@given(st.text())
def test_any_text_has_at_least_one_clause_and_a_few_at_most(text):
    assert 1 <= len(clauses(text)) <= MAX_CLAUSES
