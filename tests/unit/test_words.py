"""Many words found in one pass: the same as looking for each by itself."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecphoria.language.folding import is_han
from ecphoria.language.words import WordIndex, flattened

WORDS = ("a", "ab", "ab*", "b c", "c++", "1", "退", "退款", "款", "退 款", "b退", "'s")


def index(**uses):
    made = WordIndex()
    for use, words in uses.items():
        made.add(words, use)
    return made


def spans(word, text):
    """Return where one word stands, by a pattern for it alone."""
    flat, stem = flattened(text), re.escape(flattened(word).rstrip("*"))
    before = r"(?<![0-9a-z])" if re.match("[0-9a-z]", word) and not is_han(word) else ""
    after = r"(?![0-9a-z])" if re.search("[0-9a-z]$", word) and not is_han(word) else ""
    if word.endswith("*"):
        after = "[0-9a-z]*"
    return [
        match.span(1) for match in re.finditer(rf"(?={before}({stem}{after}))", flat) if match[1]
    ]


@given(st.text(alphabet="abc +1退款*'\n\u3000ＡＢ"))
def test_each_word_is_found_where_it_stands_alone(text):
    found = WordIndex()
    for word in WORDS:
        found.add([word], word)
    met = found.find(text)
    for word in WORDS:
        stands = spans(word, text)
        assert bool(stands) is (word in met), (word, stands, met)
        assert {span for hits in met.get(word, {}).values() for span in hits} <= set(stands)


@given(st.text(alphabet="ab退款 "))
def test_of_one_use_no_word_lies_within_another(text):
    met = index(use=("a", "ab", "ab*", "退", "退款", "款退款")).find(text)
    hits = [span for spans_ in met.get("use", {}).values() for span in spans_]
    for start, end in hits:
        assert not any(
            first <= start and end <= last for first, last in hits if (first, last) != (start, end)
        )
        assert flattened(text)[start:end]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("refunds and refund", {"money": {"refund": [(0, 7), (12, 18)]}}),
        ("订单号", {"order": {"订单号": [(0, 3)]}, "parcel": {"单号": [(1, 3)]}}),
        ("ＲＥＦＵＮＤ", {"money": {"refund": [(0, 6)]}}),
        ("", {}),
    ],
)
def test_what_is_found(text, found):
    words = index(money=("refund", "refund*"), order=("订单号", "订单"), parcel=("单号",))
    assert words.find(text) == found
