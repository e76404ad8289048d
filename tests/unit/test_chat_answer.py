"""A chat model's facts are held against the text: nothing invented, nothing dropped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_domain import EN, PARCEL_WORDS, PARCELS, ZH
from ecphoria.errors import ChatFailed
from ecphoria.extraction.chat_answer import checked_facts
from ecphoria.extraction.chat_prompt import ChatDetail, ChatFact
from ecphoria.extraction.port import Fact

ZH_FIRST = "用户：我的订单#882301怎么还没发货？客服：已发出，物流单号SF112233。"
ZH_SECOND = "用户：物流官网查不到啊。客服：我帮您联系仓库核查"


def fact(text="客户的订单#882301已发出。", evidence="客服：已发出", **more):
    return ChatFact(text=text, evidence=evidence, **more)


def checked(text, *facts, before=""):
    return checked_facts(text, before, facts, PARCELS, PARCEL_WORDS)


# --- what is kept ----------------------------------------------------------------------------


def test_a_chinese_dialogue_becomes_two_facts():
    order = fact(
        "客户询问订单#882301为何未发货，客服称已发出，物流单号SF112233。",
        "我的订单#882301怎么还没发货？客服：已发出，物流单号SF112233",
        fact_type="order_status",
        topics=("delivery",),
        intent="ask",
        urgency="high",
        attribute="order.status",
        value="shipped",
        details=(ChatDetail(name="tracking_number", value="SF112233"),),
    )
    service = fact(
        "客户称物流官网查不到订单#882301（SF112233），客服承诺联系仓库核查。",
        "物流官网查不到啊。客服：我帮您联系仓库核查",
        intent="promise",
    )
    assert checked(ZH, order, service) == (
        Fact(
            "客户询问订单#882301为何未发货，客服称已发出，物流单号SF112233。",
            fact_type="order_status",
            topics=("delivery",),
            intent="ask",
            urgency="high",
            attribute="order.status",
            value="shipped",
            evidence=ZH_FIRST,
            details={"tracking_number": "SF112233"},
        ),
        Fact(
            "客户称物流官网查不到订单#882301（SF112233），客服承诺联系仓库核查。",
            intent="promise",
            evidence=ZH_SECOND,
        ),
    )


def test_an_english_dialogue_becomes_two_facts():
    order = fact(
        "The customer asked where order #882301 is; it was shipped, tracking number SF112233.",
        "Where is my order #882301? Agent: It was shipped, tracking number SF112233.",
        attribute="order.status",
        value="shipped",
    )
    service = fact(
        "The carrier's site does not find order #882301; the service will ask the warehouse.",
        "The carrier's site does not find it. Agent: I will ask the warehouse to check",
    )
    found = checked(EN, order, service)
    assert [(item.value, item.evidence) for item in found] == [
        (
            "shipped",
            "User: Where is my order #882301? Agent: It was shipped, tracking number SF112233.",
        ),
        (
            None,
            "User: The carrier's site does not find it. Agent: I will ask the warehouse to check.",
        ),
    ]


def test_facts_stand_in_the_order_of_the_text():
    late = fact("Order 882302 is late.", "882302 is late")
    early = fact("Order 882301 is here.", "882301 is here")
    found = checked("882301 is here. 882302 is late.", late, early)
    assert [item.text for item in found] == ["Order 882301 is here.", "Order 882302 is late."]


def test_the_same_fact_twice_is_one():
    found = checked("My order 882301 is late.", *[fact("Order 882301 is late.", "is late")] * 3)
    assert len(found) == 1


def test_the_same_fact_about_other_sentences_drops_none_of_them():
    text = "It is late. The blue one is late."
    same = [fact("A parcel is late.", "It is late"), fact("A parcel is late.", "blue one is late")]
    found = checked(text, *same)
    assert [(item.text, item.evidence) for item in found] == [
        ("A parcel is late.", "It is late."),
        ("The blue one is late.", None),
    ]


def test_a_quote_that_stands_in_two_sentences_covers_one_of_them():
    text = "订单882301没到。订单882302退了款。"
    found = checked(text, fact("客户有一个订单。", "订单"))
    assert [item.evidence or item.text for item in found] == [
        "订单882301没到。",
        "订单882302退了款。",
    ]
    both = checked(text, fact("客户有一个订单。", "订单"), fact("还有一个订单。", "订单"))
    assert [item.evidence for item in both] == ["订单882301没到。", "订单882302退了款。"]


def test_a_fact_in_the_texts_own_words_needs_no_evidence():
    (found,) = checked("我喜欢蓝色。", fact("我喜欢蓝色。", "我喜欢蓝色"))
    assert found == Fact("我喜欢蓝色。")


def test_a_fact_is_one_clean_line():
    (found,) = checked("我喜欢蓝色。", fact(" 客户\n喜欢\x00 蓝色。\u200b", "喜欢蓝色"))
    assert found.text == "客户 喜欢 蓝色。"


def test_no_facts_are_no_facts():
    assert checked("你好") == ()


# --- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        fact(evidence="客服：已签收"),
        fact(evidence="订单#88230"),
        fact(evidence="我的订单#882302怎么还没发货"),
        fact(evidence="用户：我的订单…物流单号SF112233"),
    ],
)
def test_evidence_that_is_no_quote_spoils_the_answer(bad):
    with pytest.raises(ChatFailed, match="evidence that does not stand in the text"):
        checked(ZH, fact(), bad)


@pytest.mark.parametrize("evidence", ["", " ", "。", "用", "…？！"])
def test_evidence_of_nothing_spoils_the_answer(evidence):
    with pytest.raises(ChatFailed, match="without evidence"):
        checked(ZH, fact(evidence=evidence))


@pytest.mark.parametrize(
    "bad",
    [
        fact("客户的订单#882302已发出。"),
        fact("客户的订单#88230已发出。"),
        fact("客户的订单#8823011已发出。"),
        fact("客户的订单已发出，单号SF112234。"),
        fact("客户的订单于3月5日发出。"),
        fact("客户的订单＃８８２３０２已发出。"),
        fact(details=(ChatDetail(name="tracking_number", value="SF112234"),)),
        fact(attribute="client.address", value="人民路5号"),
        fact(attribute="client.taste", value="like", subject="iPhone 15"),
    ],
)
def test_an_id_or_number_of_its_own_spoils_the_answer(bad):
    with pytest.raises(ChatFailed, match="id or number that does not stand in the text"):
        checked(ZH, bad)


@given(st.integers(0, 5), st.sampled_from("0123456789"), st.sampled_from([ZH, EN]))
def test_an_id_that_differs_in_one_digit_spoils_the_answer(place, digit, text):
    real = "882301"
    other = real[:place] + digit + real[place + 1 :]
    # without Han characters, so that it is in neither text's language wrongly
    evidence = f"#{real}"
    said = f"订单#{other}" if text is ZH else f"order #{other}"
    if other == real:
        assert checked(text, fact(said, evidence))
    else:
        with pytest.raises(ChatFailed, match="id or number"):
            checked(text, fact(said, evidence))


@pytest.mark.parametrize(
    ("text", "bad", "what"),
    [
        (ZH, fact("The order was shipped."), "another language"),
        (EN, fact("订单已发出。", "It was shipped"), "another language"),
        (ZH, fact(" \u200b\n"), "without text"),
        (ZH, fact("订单已发出。" * 200), "longer than the text"),
    ],
)
def test_what_is_no_statement_spoils_the_answer(text, bad, what):
    with pytest.raises(ChatFailed, match=what):
        checked(text, bad)


def test_no_message_holds_the_texts_words():
    for bad in (fact("秘密#999999"), fact(evidence="秘密的话"), fact("secret words")):
        with pytest.raises(ChatFailed) as caught:
            checked(ZH, bad)
        assert "秘密" not in caught.value.message
        assert "secret" not in caught.value.message


# --- what is left out ------------------------------------------------------------------------


def test_names_that_the_domain_does_not_have_are_left_out():
    (first,) = checked(
        "客服：已发出，物流单号SF112233。",
        fact(
            "客服称已发出。",
            "已发出，物流单号SF112233",
            fact_type="made_up",
            topics=("made_up", "delivery", "delivery"),
            intent="made_up",
            urgency="extreme",
            attribute="order.made_up",
            value="x",
            details=(
                ChatDetail(name="Bad Name", value="SF112233"),
                ChatDetail(name="state", value="不在文中"),
            ),
        ),
    )
    assert (first.fact_type, first.topics, first.intent) == (None, ("delivery",), None)
    assert (first.urgency, first.attribute, first.value, first.details) == (
        "normal",
        None,
        None,
        {},
    )


@pytest.mark.parametrize(
    ("text", "evidence", "attribute", "value", "subject", "kept"),
    [
        # a listed value, by name or by one of its words
        ("已发出", "已发出", "order.status", "shipped", None, ("shipped", None)),
        ("已发出", "已发出", "order.status", "已发货", None, ("shipped", None)),
        ("It was sent", "It was sent", "order.status", "Shipped", None, ("shipped", None)),
        ("已发出", "已发出", "order.status", "lost", None, (None, None)),
        ("已发出", "已发出", "order.status", None, None, (None, None)),
        ("已发出", "已发出", "order.status", "", None, (None, None)),
        # the evidence says another one
        ("还没发货", "还没发货", "order.status", "shipped", None, (None, None)),
        ("not shipped", "not shipped", "order.status", "shipped", None, (None, None)),
        # a question states nothing
        ("已签收了吗？", "已签收了吗？", "order.status", "delivered", None, (None, None)),
        ('"Has it arrived?"', "Has it arrived", "order.status", "delivered", None, (None, None)),
        ("好吗？已签收", "好吗？已签收", "order.status", "delivered", None, ("delivered", None)),
        # nor does a condition, what others say, or what is true of others
        ("如果已签收就好", "如果已签收就好", "order.status", "delivered", None, (None, None)),
        ("I was told it arrived", "it arrived", "order.status", "delivered", None, (None, None)),
        ("我哥喜欢蓝色", "我哥喜欢蓝色", "client.taste", "like", "蓝色", (None, None)),
        ("My brother's love is red", "love is red", "client.taste", "like", "red", (None, None)),
        # a free value is copied as the text has it
        (
            "我住 人民路５号",
            "我住人民路5号",
            "client.address",
            "人民路5号",
            None,
            ("人民路５号", None),
        ),
        ("I live at 5 Elm St", "I live", "client.address", "5 elm st", None, ("5 Elm St", None)),
        ("I moved to Elm St", "I moved", "client.address", "Oak St", None, (None, None)),
        # a keyed one needs its subject, the others have none
        ("我喜欢蓝色", "我喜欢蓝色", "client.taste", "like", "蓝色", ("like", "蓝色")),
        ("I hate red", "I hate red", "client.taste", "dislike", "Red", ("dislike", "red")),
        ("我喜欢蓝色", "我喜欢蓝色", "client.taste", "like", None, (None, None)),
        ("我喜欢蓝色", "我喜欢蓝色", "client.taste", "like", "绿色", (None, None)),
        ("已发出", "已发出", "order.status", "shipped", "蓝色", ("shipped", None)),
    ],
)
def test_a_value_is_as_declared_or_not_given(text, evidence, attribute, value, subject, kept):
    said = "客户" if any(char >= "\u4e00" for char in text) else "customer"
    (found, *_) = checked(
        text, fact(said, evidence, attribute=attribute, value=value, subject=subject)
    )
    assert (found.value, found.subject) == kept
    assert found.attribute == (attribute if kept[0] else None)


# --- nothing is dropped ----------------------------------------------------------------------


def test_sentences_without_a_fact_are_kept_as_plain_facts_in_order():
    text = "我在等包裹。订单882301已发出。颜色是蓝色的。请问什么时候到？"
    found = checked(text, fact("客户的订单882301已发出。", "订单882301已发出"))
    assert [(item.text, item.topics, item.intent) for item in found] == [
        ("我在等包裹。", ("delivery",), None),
        ("客户的订单882301已发出。", (), None),
        ("颜色是蓝色的。请问什么时候到？", ("colour",), "ask"),
    ]
    assert [item.evidence for item in found] == [None, "订单882301已发出。", None]


def test_a_sentence_of_which_only_a_part_became_a_fact_is_kept_whole_too():
    text = "My order 882301 has not arrived, and the screen of my phone is cracked."
    found = checked(text, fact("Order 882301 has not arrived.", "order 882301 has not arrived"))
    assert [(item.text, item.evidence) for item in found] == [
        ("Order 882301 has not arrived.", text),
        (text, None),
    ]


@pytest.mark.parametrize(
    ("text", "evidence", "said"),
    [
        (
            "用户：你好！用户：订单882301没到。客服：谢谢，再见。",
            "订单882301没到",
            "订单882301没到。",
        ),
        ("Hello! My order 882301 is late. Thank you, bye!", "order 882301 is late", "It is late."),
    ],
)
def test_small_talk_goes_with_the_fact_beside_it(text, evidence, said):
    assert checked(text, fact(said, evidence)) == (Fact(said, evidence=text),)


def test_small_talk_between_other_sentences_stays_with_them():
    text = "红色的不要。谢谢。订单882301没到。"
    found = checked(text, fact("客户的订单882301没到。", "订单882301没到"))
    assert [item.text for item in found] == ["红色的不要。谢谢。", "客户的订单882301没到。"]


def test_a_thing_named_before_may_be_named_in_a_fact():
    late = fact("订单882301还没到。", "它还没到")
    found = checked("它还没到。", late, before="我的订单882301")
    assert found[0].text == "订单882301还没到。"
    with pytest.raises(ChatFailed, match="id or number"):
        checked("它还没到。", late)
    with pytest.raises(ChatFailed, match="evidence"):
        checked("它还没到。", fact("订单882301", "我的订单882301"), before="我的订单882301")


SENTENCES = st.lists(
    st.sampled_from(
        [
            "订单882301还没到",
            "你好",
            "用户：谢谢",
            "客服：我帮您查，请稍等，颜色是蓝色",
            "Thanks",
            "My parcel, the blue one, is late",
            "Agent: It was sent on 5.3. to Elm St",
            "\u3000",
            "①②",
            "📦",
            "“好的。”",
        ]
    ).flatmap(lambda text: st.sampled_from("。？！.!?;；\n ，").map(lambda end: text + end)),
    min_size=1,
    max_size=8,
).map(lambda parts: " ".join(parts).strip())


@given(SENTENCES, st.data())
def test_every_sign_of_the_text_stands_in_a_fact(text, data):
    quotes = data.draw(
        st.lists(
            st.tuples(st.integers(0, len(text)), st.integers(2, 20)).map(
                lambda it: text[it[0] : it[0] + it[1]]
            ),
            min_size=1,
            max_size=4,
        )
    )
    try:
        found = checked(text, *(fact(quote, quote) for quote in quotes))
    except ChatFailed:
        return
    # the words of the facts, one after the other, hold the text
    words = "".join(item.evidence or item.text for item in found)
    left = iter("".join(words.split()))
    signs = "".join(text.split())
    for sign in signs:
        assert sign in left, (text, [item.evidence or item.text for item in found])


@given(SENTENCES, st.text(max_size=30), st.text(max_size=30), st.text(max_size=10))
def test_no_answer_breaks_the_check(text, said, evidence, value):
    item = fact(
        said,
        evidence,
        attribute="client.address",
        value=value,
        details=(ChatDetail(name="x", value=value),),
    )
    reason = ""
    try:
        assert checked(text, item)
    except ChatFailed as failed:
        reason = failed.message
    assert not reason or reason.startswith("the chat model gave ")
