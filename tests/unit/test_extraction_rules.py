"""Facts by rules: what becomes one, what stays text, and that no word is lost."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from builders import AFTER_SALES, AFTER_SALES_WORDS, CLINIC, CLINIC_WORDS
from ecphoria.errors import ConfigurationInvalid
from ecphoria.extraction.port import SourceText
from ecphoria.extraction.rules import RuleExtractor, extract_facts, filled
from ecphoria.language.folding import language_of

SAID_AT = datetime(2026, 3, 1, 12, tzinfo=UTC)

DIALOGUE_ZH = (
    "用户：我的订单#882301怎么还没发货？客服：已发出，物流单号SF112233。"
    "用户：物流官网查不到啊。客服：我帮您联系仓库核查"
)
DIALOGUE_EN = (
    "User: Why hasn't my order #882301 shipped yet? "
    "Agent: It has been shipped, tracking number SF112233. "
    "User: I can't find it on the carrier's website. "
    "Agent: I will contact the warehouse and check."
)


def facts(text, *, kind="semantic", chars=1_200, overlap=150, domain=AFTER_SALES):
    words = {"after_sales": AFTER_SALES_WORDS, "clinic": CLINIC_WORDS}[domain.name]
    source = SourceText(text, language_of(text), kind, SAID_AT)
    return extract_facts(source, domain, words, chunk_chars=chars, chunk_overlap=overlap)


def values(text, domain=AFTER_SALES):
    return [
        (fact.attribute, fact.value, fact.subject)
        for fact in facts(text, domain=domain)
        if fact.attribute or fact.value or fact.subject
    ]


def kept_words(source, found):
    """Return the words of the source that stand in no fact's text or evidence."""
    covered = set()
    for fact in found:
        for words in filter(None, (fact.text, fact.evidence)):
            start = source.find(words)
            while start != -1:
                covered |= set(range(start, start + len(words)))
                start = source.find(words, start + 1)
    return "".join(
        char for at, char in enumerate(source) if at not in covered and not char.isspace()
    )


# --- dialogues -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [(DIALOGUE_ZH, ("已发货", "我帮您联系仓库核查")), (DIALOGUE_EN, ("shipped", "I will contact"))],
    ids=["zh", "en"],
)
def test_a_dialogue_becomes_two_facts_each_whole_on_its_own(text, words):
    status, resolution = facts(text)
    assert (status.fact_type, resolution.fact_type) == ("order_status", "service_resolution")
    assert (status.attribute, status.value) == ("order.status", "shipped")
    assert (resolution.attribute, resolution.value) == (None, None)
    assert (status.intent, resolution.intent) == ("ask_status", "promise")
    assert (status.topics[0], resolution.topics[0]) == ("order_status", "logistics")
    for fact, word in zip((status, resolution), words, strict=True):
        assert "#882301" in fact.text
        assert word in fact.text
        assert "SF112233" in fact.text
        assert fact.details["tracking_number"] == "SF112233"
        assert datetime.fromisoformat(fact.details["said_at"]) == SAID_AT
        assert fact.urgency == "normal"
        assert fact.evidence in text
    # each rests on its own exchange, and both together on all that was said
    assert "SF112233" in status.evidence
    assert "SF112233" not in resolution.evidence
    assert status.evidence + resolution.evidence == text.replace(". User: I", ".User: I")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("用户：订单#882301到哪了？客服：正在派送", [("order.status", "in_transit")]),
        (
            "用户：订单#882301发了吗？客服：还没发货，明天安排",
            [("order.status", "awaiting_shipment")],
        ),
        (
            "User: Where is #882301?\nAgent: It was shipped and will be delivered tomorrow.",
            [("order.status", "shipped")],
        ),
        (
            "User: Where is #882301?\nAgent: Cancelled, as you asked.",
            [("order.status", "cancelled")],
        ),
        (
            "User: Where is it?\nAgent: Which order?\nUser: #882301\nAgent: Delivered yesterday.",
            [("order.status", "delivered")],
        ),
        ("用户：维修rep-7f31好了吗？客服：已修好", [("repair.status", "completed")]),
    ],
)
def test_an_answer_gives_a_value(text, found):
    assert [value[:2] for value in values(text)] == found


@pytest.mark.parametrize(
    "text",
    [
        # not so, not yet, or only perhaps
        "用户：订单#882301发了吗？客服：没有发出",
        "用户：订单#882301发了吗？客服：如果已付款，已发货",
        "用户：订单#882301发了吗？客服：应该已发货",
        "User: Was #882301 shipped?\nAgent: It has not been shipped.",
        "User: Was #882301 shipped?\nAgent: It will be shipped tomorrow.",
        "User: Was #882301 shipped?\nAgent: If it was paid, it was shipped.",
        "User: Was #882301 shipped?\nAgent: Was it not delivered?",
        # two values, two orders, another order, none
        "用户：订单#882301发了吗？客服：已发货，已取消",
        "用户：订单#882301和#882302发了吗？客服：已发货",
        "用户：发了吗？客服：已发货",
        # what was sent is something else
        "用户：订单#882301的发票呢？客服：已发出",
        "用户：订单#882301的退货到了吗？客服：已签收",
        "User: The refund for #882301?\nAgent: It has been paid and dispatched.",
        "用户：订单#882301？客服：短信已发出",
        # a rule, not a state
        "用户：订单#882301能改吗？客服：已发货的订单可以拒收",
        # nobody answered
        "用户：订单#882301已发货？用户：在吗",
        "客服：订单#882301已发货。客服：请查收",
    ],
)
def test_an_answer_that_is_not_clear_gives_no_value(text):
    assert values(text) == []


def test_what_was_named_before_is_carried_on_while_it_is_spoken_of():
    text = (
        "用户：订单#882301到哪了？客服：已发出，物流单号SF112233。"
        "用户：我的手机坏了怎么办？客服：我帮您安排维修。"
        "用户：那订单什么时候到？客服：正在派送"
    )
    first, second, third = facts(text)
    assert "882301" not in second.text
    assert "tracking_number" not in second.details
    assert "#882301" in third.text
    assert (first.value, third.value) == ("shipped", "in_transit")


@pytest.mark.parametrize("question", ["#882302呢？", "另一个订单呢？", "#882301和#882302呢？"])
def test_nothing_is_carried_on_to_another_order(question):
    text = f"用户：订单#882301到哪了？客服：已发出，物流单号SF112233。用户：{question}客服：已签收"
    second = facts(text)[1]
    assert "tracking_number" not in second.details
    assert "SF112233" not in second.text
    assert (second.value == "delivered") is (question == "#882302呢？")


def test_the_same_order_may_be_written_in_two_ways():
    text = "用户：#882301到哪了？客服：已发出，物流单号SF112233。用户：882301几时到？客服：正在派送"
    assert facts(text)[1].details["tracking_number"] == "SF112233"


def test_an_exchange_that_no_rule_understands_is_kept_whole():
    text = "用户：你们几点关门？客服：晚上九点。\n用户：周末呢？客服：也是。"
    first, second = facts(text)
    assert (first.text, second.text) == (
        "用户：你们几点关门？客服：晚上九点。",
        "用户：周末呢？客服：也是。",
    )
    assert (first.fact_type, first.evidence, first.attribute) == (None, None, None)


def test_turns_without_a_partner_are_kept():
    text = "客服：系统维护中。用户：我的手机发烫！客服：我帮您登记。用户：还有划痕。"
    found = [fact.text for fact in facts(text)]
    assert found[0] == "客服：系统维护中。"
    assert found[-1] == "用户：还有划痕。"
    assert len(found) == 3


def test_small_talk_is_evidence_and_no_fact_of_its_own():
    text = f"客服：您好，请问有什么可以帮您？{DIALOGUE_ZH}。用户：谢谢！客服：不客气。"
    found = facts(text)
    assert [fact.fact_type for fact in found] == ["order_status", "service_resolution"]
    assert not kept_words(text, found)
    assert "谢谢" not in found[1].text
    assert len(facts("用户：你好。客服：您好。")) == 1


def test_what_stands_before_a_dialogue_is_read_as_prose():
    text = f"我喜欢蓝色。\n{DIALOGUE_ZH}"
    found = facts(text)
    assert [fact.fact_type for fact in found] == [
        "preference",
        "order_status",
        "service_resolution",
    ]
    # a heading goes with what follows
    assert len(facts(f"客服记录：\n{DIALOGUE_ZH}")) == 2


def test_what_a_customer_states_in_passing_is_a_fact_of_its_own():
    text = "用户：我的地址改成和平里37号。订单#882301发了吗？客服：已发货"
    status, address = facts(text)
    assert (status.value, address.value) == ("shipped", "和平里37号")
    assert address.text == "我的地址改成和平里37号。"


def test_what_has_nothing_to_do_with_a_value_does_not_go_when_it_is_replaced():
    text = "用户：我的手机屏幕碎了。订单#882301到哪了？客服：已发货"
    assert [(fact.value, fact.text) for fact in facts(text)][1:] == [(None, "我的手机屏幕碎了。")]


def test_a_statement_that_is_only_acknowledged_is_the_fact():
    (fact,) = facts("用户：我喜欢蓝色。客服：好的！")
    assert (fact.text, fact.fact_type) == ("我喜欢蓝色。", "preference")
    assert fact.evidence == "用户：我喜欢蓝色。客服：好的！"


def test_the_service_states_nothing_about_the_customer():
    assert values("客服：我喜欢蓝色。") == []
    assert values("用户：颜色？客服：我喜欢蓝色。") == []
    assert values("用户：我喜欢蓝色。") == [("user.preference", "like", "蓝色")]


def test_a_long_exchange_is_cut_into_chunks_that_give_no_value():
    text = f"用户：订单#882301到哪了？{'真的很久了。' * 60}客服：已发货"
    found = facts(text, chars=200, overlap=20)
    assert len(found) > 2
    assert all(len(fact.text) <= 200 for fact in found)
    assert {(fact.fact_type, fact.attribute, fact.value) for fact in found} == {
        ("order_status", None, None)
    }
    assert len({(fact.topics, fact.intent, fact.urgency) for fact in found}) == 1


def test_the_rules_of_another_business_need_a_file_only():
    (fact,) = facts("Patient: is visit VIS-0042 on?\nNurse: Confirmed, room 7.", domain=CLINIC)
    assert (
        fact.text
        == 'Visit VIS-0042 is confirmed in room 7: "is visit VIS-0042 on?" "Confirmed, room 7."'
    )
    assert (fact.attribute, fact.value, fact.details["room"]) == ("visit.state", "confirmed", "7")
    assert facts("患者：VIS-0042还在吗？护士：已改期。", domain=CLINIC)[0].text == (
        "就诊VIS-0042已改期：“VIS-0042还在吗？”“已改期。”"
    )
    assert values("I am allergic to penicillin.", CLINIC) == [
        ("patient.tolerance", "bad", "penicillin")
    ]
    assert values("我对青霉素耐受良好", CLINIC) == [("patient.tolerance", "good", "青霉素")]


# --- statements ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("I love the blue one.", ("user.preference", "like", "blue one")),
        ("I really hate coriander!", ("user.preference", "dislike", "coriander")),
        ("My favourite colour is blue", ("user.preference", "like", "blue")),
        ("我很喜欢蓝色的", ("user.preference", "like", "蓝色")),
        ("我讨厌香菜。", ("user.preference", "dislike", "香菜")),
        (
            "Hello, my address is 12 Hill Lane, Denver. Thanks!",
            ("user.shipping_address", "12 Hill Lane, Denver", None),
        ),
        ("I've moved to 12 Hill Lane.", ("user.shipping_address", "12 Hill Lane", None)),
        ("你好，我的新地址是和平里３７号", ("user.shipping_address", "和平里37号", None)),
        ("我搬到和平里37号了", ("user.shipping_address", "和平里37号", None)),
        ("客户的收货地址改为和平里37号3单元", ("user.shipping_address", "和平里37号3单元", None)),
        ("My new phone number is +49 170 1234567", ("user.phone", "+49 170 1234567", None)),
        ("我的手机号改成13912345678了", ("user.phone", "13912345678", None)),
        ("The customer's membership level is gold.", ("user.level", "gold", None)),
        ("会员等级：金卡", ("user.level", "gold", None)),
        ("Please contact me by e-mail only", ("user.contact_preference", "email", None)),
        ("我希望用短信联系我", ("user.contact_preference", "sms", None)),
        ("Order #882301 has been shipped.", ("order.status", "shipped", None)),
        ("Order 882301 was delivered on 3 May", ("order.status", "delivered", None)),
        ("订单#882301已签收", ("order.status", "delivered", None)),
        ("订单#882301的物流单号是SF112233", ("order.tracking_number", "SF112233", None)),
        ("维修rep-7f31已完成", ("repair.status", "completed", None)),
    ],
)
def test_a_statement_gives_a_value(text, value):
    (fact,) = facts(text)
    assert (fact.attribute, fact.value, fact.subject) == value
    assert fact.text == text
    assert fact.evidence is None
    assert AFTER_SALES.facts[fact.fact_type].topic == fact.topics[0]
    assert fact.intent == "inform"


@pytest.mark.parametrize(
    "text",
    [
        # of somebody else
        "my brother's favourite is blue",
        "My brother loves blue",
        "我哥哥喜欢蓝色",
        "我爱人喜欢蓝色",
        "他的地址是和平里37号",
        "刘娜的收货地址是和平里37号。",
        "The phone number of Mason Brown is 13803067403.",
        # denied
        "I don't love blue",
        "I never hate blue",
        "我不喜欢蓝色",
        "我的地址不是和平里37号",
        "Order #882301 has not been shipped.",
        # asked
        "do I like blue?",
        "I love blue?",
        "我喜欢蓝色吗",
        "我的地址是和平里37号吗",
        "订单#882301已发货了吗",
        "订单#882301是不是已发货",
        # only perhaps, or not yet
        "if I moved to 12 Hill Lane",
        "如果我喜欢蓝色",
        "I would love blue",
        "My address is 12 Hill Lane until May",
        "Order #882301 will be shipped.",
        "订单#882301可能已发货",
        # said by somebody
        'He said: "I love blue."',
        "她说：“我喜欢蓝色。我讨厌红色。”",
        '"I love blue. I hate red.',
        "My brother wrote:\nI love blue.",
        "My brother says I love blue",
        "听说订单#882301已发货",
        # says more, or something else
        "I love it when you call",
        "I love blue but hate the price",
        "我喜欢的颜色是蓝色",
        "我的地址写错了，不是和平里37号",
        "my old address is 12 Hill Lane",
        "我以前的地址是和平里37号",
        "Order #882301 was delivered damaged",
        "Order #882301: 14.90 refunded to the customer.",
        "Order #882301 of 2023-03-02: vacuum cleaner delivered, warranty until 2024-03-03.",
        "Order #882301 was placed",
        "订单#882301已付款",
        "订单20250615已签收",
        "My membership level is unfair",
        "I prefer blue",
        # takes itself back
        "I love tea. I hate tea.",
    ],
)
def test_what_is_not_plainly_stated_gives_no_value(text):
    found = facts(text)
    assert values(text) == []
    assert not kept_words(text, found)


def test_love_and_hate_are_two_values_of_one_thing():
    (love,), (hate,) = facts("I love coriander."), facts("I hate coriander.")
    assert (love.attribute, love.subject) == (hate.attribute, hate.subject)
    assert love.value != hate.value


def test_a_text_is_cut_only_where_it_states_two_things():
    first, second = facts("My address is 12 Hill Lane. It is red. My phone number is 13912345678.")
    assert first.text == "My address is 12 Hill Lane. It is red."
    assert second.text == "My phone number is 13912345678."
    # the first ones go with the one after
    assert [f.text for f in facts("真的。我喜欢蓝色。真的。我讨厌红色。")] == [
        "真的。我喜欢蓝色。真的。",
        "我讨厌红色。",
    ]
    whole = "I love tea. I do. I love tea!"
    assert [fact.text for fact in facts(whole)] == [whole]
    plain = "The phone is broken. The screen is black. Please repair it."
    assert [fact.text for fact in facts(plain)] == [plain]


def test_what_is_about_something_else_does_not_go_with_a_fact():
    found = facts("我的地址是和平里37号。手机屏幕碎了。它还在保修期内。")
    assert [fact.text for fact in found] == [
        "我的地址是和平里37号。",
        "手机屏幕碎了。它还在保修期内。",
    ]
    assert found[1].topics[:2] == ("warranty", "fault")


# --- long texts, procedures ----------------------------------------------------------------


@pytest.mark.parametrize("text", ["句子很长。" * 100, "A sentence. " * 50, "x" * 500])
def test_a_long_text_is_cut_into_chunks_with_the_same_metadata(text):
    text = f"退款，急！{text}"
    found = facts(text, chars=120, overlap=20)
    assert len(found) > 2
    assert all(len(fact.text) <= 120 for fact in found)
    assert {(fact.topics, fact.intent, fact.urgency) for fact in found} == {
        (("refund",), None, "high")
    }
    assert not kept_words(text, found)


def test_a_fact_in_a_long_text_stands_alone():
    text = "句子很长。" * 40 + "我喜欢蓝色。" + "句子很长。" * 40
    found = facts(text, chars=100, overlap=10)
    assert [fact.text for fact in found if fact.attribute] == ["我喜欢蓝色。"]
    assert not kept_words(text, found)


def test_a_procedure_is_never_cut_into_facts():
    for text in (DIALOGUE_ZH, "I love tea. My phone number is 13912345678."):
        (fact,) = facts(text, kind="procedural")
        assert (fact.text, fact.fact_type, fact.attribute) == (text, None, None)
    steps = "".join(f"第{number}步。" for number in range(100))
    assert len(facts(steps, kind="procedural", chars=100, overlap=10)) > 4


def test_who_repeats_himself_says_one_thing():
    assert len(facts("用户：几点关门？客服：九点。" * 5)) == 1


# --- whatever the text ---------------------------------------------------------------------

PARTS = (
    "用户：",
    "客服：",
    "User: ",
    "\nAgent: ",
    "我喜欢蓝色。",
    "I hate tea. ",
    "订单#882301已发货",
    "怎么还没发货？",
    "我帮您处理。",
    "退款",
    "王小明",
    "欧阳娜娜",
    "SF112233",
    "物流单号",
    "“",
    '"',
    "。",
    ". ",
    "\n",
    ":",
    "谢谢！",
    "如果",
    "[a]{b}",
)
ANY_TEXT = (
    st.text() | st.lists(st.sampled_from(PARTS)).map("".join) | st.text(alphabet="用户客服：。a \n")
)


@given(ANY_TEXT, st.sampled_from(["episodic", "semantic", "procedural"]))
@example("{question}", "semantic")
@example("用户：{answer}[x]。客服：我帮您{Order}", "semantic")
@example("用户：a\ud800。客服：b", "semantic")
def test_every_text_has_facts_and_loses_no_word(text, kind):
    found = facts(text, kind=kind, chars=60, overlap=10)
    assert found
    assert found == facts(text, kind=kind, chars=60, overlap=10)
    assert not kept_words(text, found)
    for fact in found:
        assert len(fact.text) <= 60
        assert (fact.attribute is None) == (fact.value is None)
        assert fact.attribute is None or fact.attribute in AFTER_SALES.attributes
        assert fact.fact_type is None or fact.fact_type in AFTER_SALES.facts
        assert set(fact.topics) <= set(AFTER_SALES.topics)


@given(
    st.integers(100_000, 10**9),
    st.integers(0, 8),
    st.integers(1, 9),
    st.sampled_from([DIALOGUE_ZH, DIALOGUE_EN, "订单#882301已签收", "Order #882301 was shipped"]),
)
@example(29741101, 1, 1, DIALOGUE_ZH)  # #20741101 could be a day
def test_ids_one_digit_apart_stay_apart(number, place, step, text):
    digits = str(number)
    place %= len(digits)
    changed = str((int(digits[place]) + step) % 10)
    other = digits[:place] + changed + digits[place + 1 :]
    for one, two in zip(
        facts(text.replace("882301", digits)), facts(text.replace("882301", other)), strict=True
    ):
        assert one.text != two.text
        assert re.search(rf"(?<!\d){digits}(?!\d)", one.text)
        assert re.search(rf"(?<!\d){other}(?!\d)", two.text)


@given(st.text(alphabet=st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=1))
def test_chinese_names_never_vanish(name):
    text = f"用户：我是{name}，订单#882301到哪了？客服：{name}您好，已发出。"
    found = facts(text)
    assert any(name in fact.text for fact in found)
    assert not kept_words(text, found)
    assert any(name in fact.text for fact in facts(f"{name}的手机坏了。"))


@pytest.mark.parametrize(
    "unit",
    [
        "用户：",
        "用户：怎么还没发货？客服：已发出。",
        "用户：a\n客服：订单号？\n",
        "客服：好的\n用户：嗯\n",
        "我喜欢蓝色。",
        "I love ",
        "my address is 1",
        "单号",
        "订单#882301 ",
        '"I hate x. ',
        "“",
        "。",
        "!?",
        "a",
        "1",
    ],
)
def test_a_hostile_text_comes_to_an_end(unit):
    # there is no time limit: what runs away does not come back at all
    text = unit * (100_000 // len(unit))
    assert facts(text)


# --- the extractor -------------------------------------------------------------------------


@pytest.mark.parametrize("repeat", [1, 100])
async def test_the_extractor_says_that_rules_spoke(repeat):
    extractor = RuleExtractor(AFTER_SALES, AFTER_SALES_WORDS, 1_200, 150)
    text = "\n".join([DIALOGUE_ZH] * repeat)
    found = await extractor.extract(SourceText(text, "zh", "episodic", SAID_AT))
    assert (found.by, found.note, found.facts) == ("rules", "", facts(text, kind="episodic"))
    await extractor.close()


@pytest.mark.parametrize(("chars", "overlap"), [(400, 100), (400, 400), (200, 50)])
def test_chunks_that_overlap_too_much_are_refused(chars, overlap):
    with pytest.raises(ConfigurationInvalid, match="less than a quarter"):
        RuleExtractor(AFTER_SALES, AFTER_SALES_WORDS, chars, overlap)


@pytest.mark.parametrize(
    ("template", "known", "text"),
    [
        ("{a}", {"a": "1"}, "1"),
        ("{a}{b}", {"a": "1"}, "1"),
        ("x[ {a}]", {}, "x"),
        ("x[ {a}{b}]", {"a": "1"}, "x"),
        ("x[ {a}]", {"a": "{b}[c]", "b": "no"}, "x {b}[c]"),
        ("{{a}}", {"a": "1"}, "{a}"),
    ],
)
def test_templates(template, known, text):
    assert filled(template, known) == text
