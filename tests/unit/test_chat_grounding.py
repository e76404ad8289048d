"""Quotes are found whatever their blanks and width; a number that is nowhere is noticed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecphoria.chat.grounding import Source

ZH = "用户：我的订单#882301怎么还没发货？\n客服：已发出，物流单号SF112233。"
EN = 'The agent said: "Your order #882301 was shipped – tracking number SF 112233."'


@pytest.mark.parametrize(
    ("text", "quote", "words"),
    [
        (ZH, "我的订单#882301怎么还没发货", "我的订单#882301怎么还没发货"),
        (ZH, "我的订单 ＃８８２３０１ 怎么还没发货?", "我的订单#882301怎么还没发货"),
        (ZH, "怎么还没发货？客服：已发出", "怎么还没发货？\n客服：已发出"),
        (ZH, "“已发出，物流单号 sf112233”", "已发出，物流单号SF112233"),
        (EN, "your order #882301 was shipped", "Your order #882301 was shipped"),
        (EN, "shipped - tracking", "shipped – tracking"),
        (EN, "said: “Your", 'said: "Your'),
        (EN, "number  SF\n112233", "number SF 112233"),
        ("It won’t turn on", "won't turn on", "won’t turn on"),
        ("ｉＰｈｏｎｅ　１５ 屏幕碎了", "iPhone 15屏幕", "ｉＰｈｏｎｅ　１５ 屏幕"),
    ],
)
def test_a_quote_is_found_and_given_in_the_texts_own_words(text, quote, words):
    assert Source(text).words_of(quote) == words


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        (ZH, "我的订单#882302"),
        (ZH, "我的订单#88230"),
        (ZH, "82301怎么还没发货"),
        (ZH, "我的订单怎么还没发货"),
        (ZH, "已发出…SF112233"),
        (ZH, "已发货"),
        (EN, "our order"),
        (EN, "order #882301 ship"),
        (EN, "SF 11223"),
        (EN, ""),
        (EN, "…"),
        (EN, '" "'),
        ("", "anything"),
    ],
)
def test_what_differs_is_no_quote(text, quote):
    assert Source(text).find(quote) == ()


def test_every_place_of_a_quote_is_found():
    assert Source("好的。好的。OK").find("好的") == ((0, 2), (3, 5))


@pytest.mark.parametrize(
    ("text", "said", "strange"),
    [
        (ZH, "订单882301已发货，单号SF112233", ()),
        (ZH, "订单882302已发货", ("882302",)),
        (ZH, "订单88230已发货", ("88230",)),
        (ZH, "单号sf112233", ()),
        (ZH, "单号112233", ()),
        (ZH, "单号SF112234", ("sf112234",)),
        (ZH, "单号SE112233", ("se112233",)),
        (EN, "tracking number SF112233", ()),
        (EN, "2 parcels", ("2",)),
        ("It cost 1,299 yuan", "1299元", ()),
        ("价格1299元", "It cost 1,299", ()),
        ("价格1299元", "It cost 1,298", ("1298",)),
        ("买了iPhone15", "iPhone 15", ()),
        ("买了iPhone 15", "iPhone15", ()),
        ("买了iPhone 15", "iPhone 16", ("16",)),
        ("保修２４个月", "24 months", ()),
        ("two parcels", "two parcels", ()),
        ("维修单REP-9841", "repair rep9841", ()),
        ("维修单REP-9841", "repair REP-9842", ("9842",)),
    ],
)
def test_numbers_that_stand_nowhere(text, said, strange):
    assert Source(text).strangers(said) == strange


TEXTS = st.text(
    st.sampled_from("订单发货 #-.,，。？：:“\"'’ＡＢab12９\n\u3000é李㎏ﬁ…"), max_size=40
)


@given(TEXTS, st.data())
def test_what_is_cut_out_at_word_edges_is_a_quote(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    piece = text[start:end]
    source = Source(text)
    for left, right in source.find(piece):
        assert 0 <= left < right <= len(text)
        assert Source(text[left:right]).find(piece)
    if any(char.isalnum() for char in piece) and not (text[:start] + text[end:]).strip():
        assert source.find(piece)


@given(TEXTS)
def test_nothing_in_a_text_is_strange_to_it(text):
    assert Source(text).strangers(text) == ()


@given(st.text("0123456789", min_size=5, max_size=12), st.data())
def test_one_other_digit_makes_another_number(number, data):
    place = data.draw(st.integers(0, len(number) - 1))
    digit = data.draw(st.sampled_from("0123456789").filter(lambda it: it != number[place]))
    other = number[:place] + digit + number[place + 1 :]
    source = Source(f"订单{number}的状态 of order #{number}")
    assert source.strangers(f"order {other}") == (other,)
    assert source.find(f"order #{other}") == ()
