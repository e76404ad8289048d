"""Disagreement: numbers, dates and polarity of the same claim, in both languages."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecphoria.language.contradiction import disagree

DISAGREE = [
    ("The warranty ends on 1 March 2026", "The warranty ends on 1 May 2026"),
    ("The warranty ends on March 1, 2026", "The warranty ends on 2nd March 2026"),
    ("The warranty ends in May 2026", "The warranty ends in May 2027"),
    ("Coverage ends 2026-03-01", "Coverage ends 2026-03-02"),
    ("保修到2026年3月1日", "保修到2026年5月1日"),
    ("保修到3月1日结束", "保修到3月2日结束"),
    ("保修到2026-03-01", "保修到2026年3月2日"),
    ("延保两年", "延保一年"),
    ("The plan covers two years", "The plan covers three years"),
    ("The repair cost 260 yuan", "The repair cost 620 yuan"),
    ("维修费用260元", "维修费用620元"),
    ("The parcel was delivered", "The parcel was not delivered"),
    ("The parcel wasn’t delivered", "The parcel was delivered"),
    ("They couldn't open the door", "They could open the door"),
    ("订单已发货", "订单未发货"),
    ("客户同意退款", "客户不同意退款"),
    ("The warranty is void", "The warranty is valid"),
]

AGREE = [
    ("The warranty ends on 1 March 2026", "the warranty ends on 2026-03-01"),
    ("The warranty ends on 1 March", "The warranty ends on 1 March 2026"),
    ("The warranty ends in March 2026", "The warranty ends on 3 March 2026"),
    ("保修到2026-03-01", "保修到2026年3月1日"),
    ("保修到２０２６年３月１日", "保修到2026年3月1日"),
    ("延保2年", "延保两年"),
    ("The repair cost 1,000.00 yuan", "The repair cost 1000 yuan"),
    ("The order was shipped", "The order was shipped on 2026-03-01"),
    ("Order 882301 was shipped", "Order 882301 was shipped on 2026-03-01"),
    ("Order no. 882301 was shipped", "Order 882301 was shipped"),
    ("The coverage is not expired", "The coverage is valid"),
    ("服务非常满意", "服务满意"),
    ("买了无线耳机", "买了耳机"),
    ("维修后保修没过期", "维修后保修有效"),
    # unrelated, whatever their numbers and polarity
    ("The parcel was not delivered", "Prefers calls in the evening"),
    ("订单882301已发货", "客户不喜欢电话"),
    ("3 orders", "4 repairs"),
    ("2026-03-01", "2026-03-02"),
    ("", "not"),
    ("！", "?"),
]


@pytest.mark.parametrize(("one", "other"), DISAGREE)
def test_the_same_claim_with_another_value_disagrees(one, other):
    assert disagree(one, other)
    assert disagree(other, one)


@pytest.mark.parametrize(("one", "other"), AGREE)
def test_what_is_said_otherwise_or_of_something_else_does_not(one, other):
    assert not disagree(one, other)
    assert not disagree(other, one)


SAYINGS = st.lists(
    st.sampled_from(
        (
            "the warranty",
            "ends",
            "not",
            "no",
            "1 march",
            "2026-03-01",
            "two years",
            "1,000",
            "5.0",
            "保修",
            "没",
            "非常",
            "两年",
            "3月1日",
            "2026年3月",
            "882301",
            "’",
            "ｆｒｅｅ",
        )
    ),
    max_size=6,
).map(" ".join)


@given(SAYINGS | st.text(), SAYINGS | st.text())
def test_disagreement_is_symmetric(one, other):
    assert disagree(one, other) == disagree(other, one)


@given(SAYINGS | st.text())
def test_nothing_disagrees_with_itself(text):
    assert not disagree(text, text)
    assert not disagree(text, f"  {text.upper()} ")


@given(st.integers(1, 10**9), st.integers(1, 10**9))
def test_two_numbers_disagree_when_they_differ(one, other):
    assert disagree(f"the total was {one} yuan", f"the total was {other} yuan") == (one != other)


def test_long_texts_take_no_time():
    one = "The warranty ends on 1 March, and no repair is left out. " * 2_000
    begin = time.perf_counter()
    assert disagree(one, one.replace("1 March", "1 May"))
    for number in range(200):
        disagree(one, f"short text {number}")
    assert time.perf_counter() - begin < 10
