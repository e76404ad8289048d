"""The domain's words: topics, cues, ids and names in a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import AFTER_SALES, AFTER_SALES_WORDS, CLINIC_WORDS, ref
from ecphoria.language.lexicon import Lexicon
from ecphoria.model import NamedEntity
from ecphoria_schema.domain import Vocabulary


def with_topic(**words):
    """Return a lexicon whose topic `payment` has these keywords only."""
    topic = AFTER_SALES.topics["payment"].model_copy(update={"keywords": Vocabulary(**words)})
    domain = AFTER_SALES.model_copy(
        update={"topics": AFTER_SALES.topics | {"payment": topic}, "topic_rules": ()}
    )
    return Lexicon(domain)


# --- topics --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Is it still under warranty?", "warranty"),
        ("WARRANTIES", "warranty"),
        ("还在保修期内吗", "warranty"),
        ("张伟买的iPhone15维修后还能享受延保吗", "warranty"),
        ("The screen was repaired twice", "repair"),
        ("换屏多少钱", "repair"),
        ("我的快递没收到", "logistics_complaint"),
        ("the parcel has not arrived", "logistics_complaint"),
        ("the parcel has not\narrived", "logistics_complaint"),
        ("it won’t turn on", "fault"),
        ("Ｒｅｆｕｎｄ please", "refund"),
    ],
)
def test_the_likeliest_topic_comes_first(text, first):
    assert AFTER_SALES_WORDS.topics(text)[0] == first


def test_a_rule_does_not_apply_when_an_excluded_word_is_there():
    assert AFTER_SALES_WORDS.topics("货没到") == ("logistics_complaint",)
    assert AFTER_SALES_WORDS.topics("参数没到") == ("product_info",)
    assert CLINIC_WORDS.topics("转诊") == ("referral",)
    assert CLINIC_WORDS.topics("转诊后的药")[0] == "medicine"


@pytest.mark.parametrize("text", ["", "完全无关", "the weather is fine", "prefix", "buyer"])
def test_no_topic(text):
    assert AFTER_SALES_WORDS.topics(text) == ()


@pytest.mark.parametrize(
    ("word", "text", "found"),
    [
        ("pay*", "payments", True),
        ("pay*", "repay", False),
        ("pay", "payments", False),
        ("pay", "请pay一下", True),
        ("money back", "money  back", True),
        ("c++ (new)", "the c++ (new) one", True),
        ("a.c", "abc", False),
    ],
)
def test_english_words_are_whole_and_a_star_is_any_ending(word, text, found):
    assert ("payment" in with_topic(en=(word,)).topics(text)) is found


def test_a_star_after_a_chinese_word_is_no_letter():
    assert with_topic(zh=("月付*",)).topics("我选月付方式") == ("payment",)


def test_more_words_met_come_first_and_ties_go_by_the_file():
    assert AFTER_SALES_WORDS.topics("order, refund, money back")[:2] == ("refund", "order_status")
    assert AFTER_SALES_WORDS.topics("coverage of repairs")[:2] == ("warranty", "repair")


# --- cues ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "smalltalk"),
    [
        ("Hello!", True),
        ("hi, good morning :)", True),
        ("你好，谢谢！", True),
        ("好的好的", True),
        ("ＨＥＬＬＯ", True),
        ("Hello, where is my order?", False),
        ("你好，我的订单呢", False),
        ("hi 123456", False),
        ("high", False),
        ("...", False),
        ("", False),
    ],
)
def test_smalltalk_is_nothing_but_smalltalk(text, smalltalk):
    assert AFTER_SALES_WORDS.is_smalltalk(text) is smalltalk


def test_a_domain_without_cues_has_no_smalltalk():
    assert not CLINIC_WORDS.is_smalltalk("hello")
    assert not CLINIC_WORDS.wants_history("以前")


@pytest.mark.parametrize(
    ("text", "wants"),
    [
        ("What was my previous address?", True),
        ("我以前的地址", True),
        ("What is my address?", False),
        ("我的地址", False),
    ],
)
def test_history(text, wants):
    assert AFTER_SALES_WORDS.wants_history(text) is wants


@pytest.mark.parametrize(
    ("text", "wants"), [("How do I return it?", True), ("怎么退货", True), ("退货了", False)]
)
def test_procedure(text, wants):
    assert AFTER_SALES_WORDS.wants_procedure(text) is wants


# --- classification ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "topic", "intent", "urgency"),
    [
        ("我的订单#882301怎么还没发货？", "logistics_complaint", "ask_status", "normal"),
        ("Where is my order #882301?", "logistics_complaint", "ask_status", "normal"),
        ("物流官网查不到啊", "logistics", "complain", "normal"),
        ("能不能七天无理由退货？", "return_exchange", "ask_policy", "normal"),
        ("Can I return it within seven days?", "return_exchange", "ask_policy", "normal"),
        ("我帮您安排维修", "repair", "promise", "normal"),
        ("We'll repair it free of charge.", "repair", "promise", "normal"),
        ("麻烦帮我改一下收货地址，很急", "address", "request_service", "high"),
        ("Please send the invoice as soon as possible", "invoice", "request_service", "high"),
        ("不急，开票就行", "invoice", None, "low"),
        ("No rush with the refund", "refund", None, "low"),
        ("谢谢", None, "thank", "normal"),
        ("完全无关", None, None, "normal"),
        ("", None, None, "normal"),
    ],
)
def test_a_text_is_classified(text, topic, intent, urgency):
    found = AFTER_SALES_WORDS.classify(text)
    assert (found.topics[0] if found.topics else None) == topic
    assert (found.intent, found.urgency) == (intent, urgency)
    assert found.topics == AFTER_SALES_WORDS.topics(text)


def test_an_intent_rule_wants_one_word_of_each_list():
    assert CLINIC_WORDS.classify("取消预约").intent == "call_off"
    assert CLINIC_WORDS.classify("取消").intent is None
    assert CLINIC_WORDS.classify("取消，重新预约").intent == "book"


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("bleeding, come at once", "high"),
        ("not at once", "low"),
        ("not at once, but at once", "high"),
        ("不用马上", "low"),
        ("马上", "high"),
        ("tomorrow", "normal"),
    ],
)
def test_a_word_of_low_urgency_hides_the_one_within_it(text, level):
    assert CLINIC_WORDS.classify(text).urgency == level


def test_a_word_within_small_talk_or_within_a_word_of_another_topic_is_not_met():
    assert AFTER_SALES_WORDS.topics("Have a nice weekend!") == ()
    assert AFTER_SALES_WORDS.topics("订单号") == ("order_status",)
    assert AFTER_SALES_WORDS.topics("单号") == ("logistics",)


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("It hums again", ("Device",)),
        ("那台又响了", ("Device",)),
        ("这单什么时候到", ("Order",)),
        ("that order, and that one", ("Order", "Device")),
        ("其它问题", ()),
        ("iterate, unit", ()),
        ("", ()),
    ],
)
def test_pronouns_tell_which_type_is_meant(text, types):
    assert AFTER_SALES_WORDS.pronouns(text) == types


@pytest.mark.parametrize(
    ("cue", "text", "found"),
    [
        ("negation", "订单没有发货", True),
        ("negation", "不客气", False),
        ("negation", "不客气，没有", True),
        ("third_person", "他的地址", True),
        ("third_person", "其他地址", False),
        ("hypothetical", "If I moved", True),
        ("hypothetical", "wife", False),
        ("question", "Really?", True),
        ("question", "真的吗", True),
    ],
)
def test_cues(cue, text, found):
    assert AFTER_SALES_WORDS.has_cue(cue, text) is found


def test_the_negation_of_a_value_s_name_is_no_negation():
    assert AFTER_SALES_WORDS.has_cue("negation", "尚未发货")
    assert not AFTER_SALES_WORDS.has_cue("negation", "尚未发货", "order.status")


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("Your order was shipped and then delivered", ("shipped", "delivered")),
        ("it is not shipped yet", ("awaiting_shipment",)),
        ("已发货", ("shipped",)),
        ("nothing", ()),
    ],
)
def test_values_are_met_by_their_longest_words(text, met):
    assert AFTER_SALES_WORDS.values_met("order.status", text) == met


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("e-mail", "email"),
        ("Ｅ－ｍａｉｌ", "email"),
        ("短信", "sms"),
        ("短信通知", None),
        ("text  message", "sms"),
        ("blue", None),
        ("", None),
    ],
)
def test_a_value_is_named_by_a_word_of_its_and_nothing_more(words, value):
    assert AFTER_SALES_WORDS.value_named("user.contact_preference", words) == value


@given(st.text(), st.sampled_from(["refund", "退款", "it", "急", "不急", "你好", "order 882301"]))
def test_classification_is_total_and_repeats_itself(text, word):
    text = text + word
    again = Lexicon(AFTER_SALES).classify(text)
    assert AFTER_SALES_WORDS.classify(text) == again
    assert set(again.topics) <= set(AFTER_SALES.topics)
    assert again.intent is None or again.intent in AFTER_SALES.intents


def test_words_that_overlap_all_along_a_text_are_read_to_its_end():
    # there is no time limit: what compares each with each does not come back
    for unit in ("不急", "急", "退款", "it ", "其它", "have a nice weekend ", "a"):
        text = unit * (100_000 // len(unit))
        AFTER_SALES_WORDS.classify(text)
        AFTER_SALES_WORDS.pronouns(text)
        AFTER_SALES_WORDS.has_cue("third_person", text)


# --- ids -----------------------------------------------------------------------------------


def ids(text, words=AFTER_SALES_WORDS):
    return {mention.text: mention.candidates for mention in words.id_mentions(text)}


ORDER = (ref("Order", "882301"), ref("Order", "#882301"))


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("order #882301 is late", "#882301"),
        ("order 882301 is late", "882301"),
        ("订单882301还没到", "882301"),
        ("订单号882301", "882301"),
        ("订单＃８８２３０１还没到", "#882301"),
        ("(882301)", "882301"),
    ],
)
def test_an_id_is_found_with_all_forms_it_may_be_stored_under(text, written):
    assert ids(text) == {written: ORDER}


@pytest.mark.parametrize(
    "text",
    [
        "12345",
        "物流单号SF112233",
        "快递单号：SF112233",
        "tracking number SF112233",
        "Tracking number is SF112233",
        "abcd882301",
        "882301abc",
        "x1y882301",
        "repairs",
        "it was repaired, replaced and reported",
        "a replacement representative",
        "rep-1a",
        "",
    ],
)
def test_no_id(text):
    assert ids(text) == {}


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("repair rep-7f31 is done", ref("Repair", "rep-7f31")),
        ("REP7f31", ref("Repair", "rep-7f31")),
        ("rep-abcd", ref("Repair", "rep-abcd")),
        ("工单TKT-a101", ref("Ticket", "tkt-a101")),
    ],
)
def test_ids_of_other_types(text, first):
    (candidates,) = ids(text).values()
    assert candidates[0] == first


def test_the_second_domain_has_ids_of_its_own():
    assert ids("visit VIS-0042", CLINIC_WORDS) == {
        "VIS-0042": (ref("Visit", "vis-0042"), ref("Visit", "VIS0042"))
    }
    assert ids("order 882301", CLINIC_WORDS) == {}


@given(st.integers(100_000, 10**9), st.integers(0, 8), st.integers(1, 9), st.sampled_from("# 单,"))
def test_ids_one_digit_apart_never_meet(number, place, step, before):
    digits = str(number)
    place %= len(digits)
    changed = str((int(digits[place]) + step) % 10)
    other = digits[:place] + changed + digits[place + 1 :]
    one, two = ids(f"{before}{digits}。"), ids(f"{before}{other}。")
    assert one
    assert two
    assert not {ref for refs in one.values() for ref in refs} & {
        ref for refs in two.values() for ref in refs
    }


# --- names ---------------------------------------------------------------------------------

PHONE_1 = NamedEntity("iPhone 1", "name", (ref("Device", "d-1"),))
PHONE_15 = NamedEntity("iPhone 15", "name", (ref("Device", "d-15"), ref("Device", "d-16")))
PRO = NamedEntity("iPhone 15 Pro", "name", (ref("Device", "d-pro"),))
ZHANG = NamedEntity("张伟", "name_zh", (ref("User", "u-1"),))
ZHANG_MING = NamedEntity("张伟明", "name_zh", (ref("User", "u-2"),))
ALL = (PHONE_1, PHONE_15, PRO, ZHANG, ZHANG_MING)


def names(text, known=ALL):
    return {mention.text for mention in AFTER_SALES_WORDS.name_mentions(text, known)}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("张伟买的iPhone15维修后还能享受延保吗", {"张伟", "iPhone 15"}),
        ("ｉＰｈｏｎｅ　１５ 坏了", {"iPhone 15"}),
        ("the iPhone-15 pro", {"iPhone 15 Pro"}),
        ("an iPhone 15 and an iPhone 15 Pro", {"iPhone 15", "iPhone 15 Pro"}),
        ("iPhone 1", {"iPhone 1"}),
        ("iPhone 12", set()),
        ("张伟明来电", {"张伟明"}),
        ("张伟和张伟明", {"张伟", "张伟明"}),
        ("", set()),
    ],
)
def test_the_longest_name_wins(text, found):
    assert names(text) == found


def test_a_shorter_name_is_hidden_wherever_it_stands_in_the_longer_one():
    parts = [
        NamedEntity(name, "name", (ref("Device", name),))
        for name in ("iPhone 15 Pro", "iPhone", "15", "15 Pro", "Pro")
    ]
    assert names("the iPhone 15 Pro", parts) == {"iPhone 15 Pro"}
    assert names("the 15 Pro and a Pro", parts) == {"15 Pro", "Pro"}


def test_a_name_brings_all_that_it_may_mean_once():
    same = NamedEntity("iPhone 15", "name", (ref("Device", "d-16"), ref("Device", "d-17")))
    (mention,) = AFTER_SALES_WORDS.name_mentions("iPhone 15, iphone15", (PHONE_15, same))
    assert mention.refs == (ref("Device", "d-15"), ref("Device", "d-16"), ref("Device", "d-17"))


@pytest.mark.parametrize("name", ["", " ", "A", "李", "--", "A-", "·伟"])
def test_a_name_of_less_than_two_characters_is_not_looked_for(name):
    known = (NamedEntity(name, "name", (ref("User", "u"),)),)
    assert names("A 李 -- A- ·伟", known) == set()


def test_many_names_in_a_long_text_are_found_in_one_go():
    known = [NamedEntity(f"ab {number}", "name", (ref("Device", "d"),)) for number in range(100)]
    known.append(NamedEntity("ab", "name", (ref("Device", "d-ab"),)))
    found = names("ab 7 " * 20_000, known)
    assert found == {"ab 7"}
