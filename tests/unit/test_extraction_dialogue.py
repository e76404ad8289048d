"""Recognising a dialogue, and which answer belongs to which question."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import AFTER_SALES, AFTER_SALES_WORDS, CLINIC
from ecphoria.extraction.dialogue import exchanges, only_asks, turns


def spoken(text, domain=AFTER_SALES):
    return [(turn.speaker, text[slice(*turn.words)].strip()) for turn in turns(text, domain)]


def paired(text):
    found = exchanges(text, turns(text, AFTER_SALES), AFTER_SALES_WORDS)
    return [
        tuple(
            [text[slice(*span)].strip() for span in spans]
            for spans in (exchange.asked, exchange.answered)
        )
        for exchange in found
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("用户：甲。客服：乙", [("customer", "甲。"), ("service", "乙")]),
        ("用户:甲!客服:乙", [("customer", "甲!"), ("service", "乙")]),
        ("顾客：甲\n店家：乙", [("customer", "甲"), ("service", "乙")]),
        ("User: a? Agent: b", [("customer", "a?"), ("service", "b")]),
        ("CUSTOMER: a.\nsupport : b", [("customer", "a."), ("service", "b")]),
        ("Customer service: a. Customer: b", [("service", "a."), ("customer", "b")]),
        ("Ｕｓｅｒ：a。Ａｇｅｎｔ：b", [("customer", "a。"), ("service", "b")]),
        ("记录。用户：甲”客服：乙", [("customer", "甲”"), ("service", "乙")]),
        (
            "[2026-03-01 10:00:01] 用户：甲\n(10:02) 客服：乙",
            [("customer", "甲"), ("service", "乙")],
        ),
        ("用户：第一行\n第二行\n客服：乙", [("customer", "第一行\n第二行"), ("service", "乙")]),
        # no mark: within a sentence, part of a word, or of an address
        ("请告诉用户：甲，客服：乙", []),
        ("I told the user: a, the agent: b", []),
        ("superuser: a. reagent: b", []),
        ("see shop.example.service:8080", []),
        ("", []),
    ],
)
def test_marks_of_speakers(text, found):
    assert spoken(text) == found


def test_the_marks_are_the_domain_s():
    assert spoken("患者：甲。护士：乙", CLINIC) == [("customer", "甲。"), ("service", "乙")]
    assert spoken("用户：甲。客服：乙", CLINIC) == []
    assert spoken("患者：甲。护士：乙", AFTER_SALES) == []


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("用户：甲？客服：乙。用户：丙？客服：丁。", [(["甲？"], ["乙。"]), (["丙？"], ["丁。"])]),
        ("用户：甲\n用户：乙\n客服：丙\n客服：丁", [(["甲", "乙"], ["丙", "丁"])]),
        # the service speaks first, the customer last
        ("客服：通知\n用户：甲\n客服：乙\n用户：丙", [([], []), (["甲"], ["乙"]), (["丙"], [])]),
        # who asks back has not answered
        (
            "用户：我要退货\n客服：请问订单号？\n用户：882301\n客服：已登记",
            [(["我要退货", "882301"], ["请问订单号？", "已登记"])],
        ),
        (
            "User: I want to return it.\nAgent: Sure, which order?\nUser: 882301\nAgent: Noted.",
            [(["I want to return it.", "882301"], ["Sure, which order?", "Noted."])],
        ),
        # small talk is no question and no answer
        (
            "用户：你好\n客服：您好，请问有什么可以帮您？\n用户：甲\n客服：稍等\n客服：乙\n用户：谢谢\n客服：不客气",
            [(["甲"], ["乙"])],
        ),
        (
            (
                "User: hi\nAgent: Hello, how can I help you?\nUser: a\nAgent: One moment.\n"
                "User: ok\nAgent: b\nUser: Thanks!"
            ),
            [(["a"], ["b"])],
        ),
        ("用户：你好\n客服：您好", [([], [])]),
    ],
)
def test_questions_go_with_their_answers(text, pairs):
    assert paired(text) == pairs


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("请问订单号是多少？", True),
        ("好的，请问订单号是多少？", True),
        ("Sure. Which order?", True),
        ("已发出，请问还有其他问题吗？", False),
        ("It was shipped. Anything else?", False),
        ("还有其他问题吗？", False),
        ("好的", False),
        ("请提供订单号", False),
        ("", False),
    ],
)
def test_whether_a_service_only_asks(text, asks):
    assert only_asks(text, AFTER_SALES_WORDS) is asks


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["用户：", "客服：", "User: ", "Agent: ", "\n我：", "\n"]),
            st.text(alphabet="甲乙a 1。？?.!\n：:")
            | st.sampled_from(["好的。", "订单号？", "ok. "]),
        )
    )
)
def test_exchanges_cover_all_turns_in_order(parts):
    text = "".join(mark + words for mark, words in parts)
    said = turns(text, AFTER_SALES)
    found = exchanges(text, said, AFTER_SALES_WORDS) if said else ()
    assert [turn.whole for turn in said] == sorted(turn.whole for turn in said)
    place = said[0].whole[0] if said else 0
    for exchange in found:
        assert exchange.span[0] == place
        place = exchange.span[1]
        for spans in (exchange.opened, exchange.asked, exchange.answered):
            assert all(exchange.span[0] <= start <= end <= place for start, end in spans)
    assert not said or place == len(text)
