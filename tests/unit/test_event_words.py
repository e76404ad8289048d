"""Before and after an event, the last and the first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecphoria.language.event_words import event_words
from ecphoria.language.words import flattened


@pytest.mark.parametrize(
    "text",
    [
        "before the repair",
        "what was wrong before it was repaired?",
        "before the new phone arrived",
        "prior to sending it in",
        "维修之前",
        "在维修以前有什么故障",
        "送修前",
        "repair之前",
        "before换屏",
    ],
)
def test_before_an_event(text):
    found = event_words(text)
    assert (found.before_event, found.before_change) == (True, False)


@pytest.mark.parametrize(
    "text",
    [
        "did I live there before?",
        "the address before the present one",
        "the address before that",
        "before the current address?",
        "before 18:00",
        "before May",
        "before last week",
        "beforehand",
        "我之前的地址",
        "以前",
        "现在这个之前的地址",
        "三天之前",
        "3月5日之前",
        "目前",
        "提前",
        "前台",
        "",
    ],
)
def test_no_event_comes_after(text):
    assert not event_words(text).before_event


@pytest.mark.parametrize(
    "text",
    ["before I moved", "before changing the number", "搬家之前的地址", "换手机前", "更换以前"],
)
def test_before_a_change_is_history(text):
    found = event_words(text)
    assert (found.before_event, found.before_change) == (True, True)


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("after the repair", True),
        ("before and after the repair", True),
        ("since I got it back", True),
        ("following the exchange", True),
        ("修好之后", True),
        ("维修后还能享受保修吗", True),
        ("after-sales service", False),
        ("after that", False),
        ("after 18:00", False),
        ("after March", False),
        ("since the screen is broken, can I return it?", False),
        ("售后服务", False),
        ("最后", False),
        ("然后呢", False),
        ("手机后盖", False),
        ("昨天之后", False),
        ("后天", False),
    ],
)
def test_after_an_event(text, after):
    assert event_words(text).after_event is after


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("my last repair", "latest"),
        ("the most recent order", "latest"),
        ("最近一次维修", "latest"),
        ("上一次维修", "latest"),
        ("最新的订单", "latest"),
        ("the first repair", "first"),
        ("the earliest order", "first"),
        ("第一次维修", "first"),
        ("最早的订单", "first"),
        ("the first and the last order", None),
        ("last week", None),
        ("the last 30 days", None),
        ("how long does it last", None),
        ("my last name", None),
        ("the last one", None),
        ("first name", None),
        ("第一时间", None),
        ("最近的门店", None),
        ("最近两周", None),
        ("", None),
    ],
)
def test_order(text, order):
    assert event_words(text).order == order


@given(
    st.one_of(
        st.text(),
        st.lists(
            st.sampled_from(
                ["before ", "之前", "换", "the ", "last ", "后", "前", "5", "\x00", "İ"]
            )
        ).map("".join),
    )
)
def test_any_text_is_read_the_same_again(text):
    found = event_words(text)
    assert found == event_words(text)
    flat = flattened(text)
    assert all(
        flat[start:end] in {"before", "prior to", "之前", "以前"} for start, end in found.before_at
    )
    assert not found.before_change or found.before_event


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Which of my devices was repaired last?", "repaired last"),
        ("What is my latest order?", "latest"),
        ("我最近一次维修", "最近一次"),
    ],
)
def test_it_is_told_where_the_word_for_the_order_stands(text, word):
    found = event_words(text)
    assert found.order == "latest"
    start, end = found.order_at
    assert flattened(text)[start:end] == word


def test_without_an_order_there_is_no_place():
    assert event_words("What was first, what was last week?").order_at is None
    assert event_words("Where is my parcel?").order_at is None
