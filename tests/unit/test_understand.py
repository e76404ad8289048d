"""What a question wants, and what it names."""

from __future__ import annotations

import pytest

from builders import AFTER_SALES, AFTER_SALES_WORDS, CLINIC, CLINIC_WORDS, NOW, day, ref, request
from ecphoria.language.time_words import TimeWindow
from ecphoria.model import NamedEntity
from ecphoria.recall.understand import (
    Named,
    lost_ids,
    named_entities,
    owned_types_by_digits,
    understand,
    with_prefixes,
)

NAMES = (
    NamedEntity("张伟", "name_zh", (ref("User", "u-1"),)),
    NamedEntity("iPhone 15", "name", (ref("Device", "d-1"), ref("Product", "p-1"))),
    NamedEntity("SN1234567", "serial", (ref("Device", "d-1"),)),
)


def wanted(question, **more):
    return understand(request(question, **more), AFTER_SALES, AFTER_SALES_WORDS, NOW)


def named(question):
    return named_entities(question, wanted(question), NAMES, AFTER_SALES, AFTER_SALES_WORDS)


def test_the_sample_question():
    found = wanted("张伟买的iPhone15维修后还能享受延保吗")
    assert (found.language, found.path, found.is_smalltalk) == ("zh", "after_sales", False)
    assert found.topics[0] == "warranty"
    assert {"Warranty", "Repair"} <= set(found.answer_types)
    assert found.kinds == ("episodic", "semantic", "procedural")
    assert named("张伟买的iPhone15维修后还能享受延保吗").refs == NAMES[1].refs


@pytest.mark.parametrize(
    ("question", "path"),
    [("Where is my refund?", "payments"), ("投诉", "tickets"), ("Anything new?", "after_sales")],
)
def test_the_topic_chooses_the_path(question, path):
    assert wanted(question).path == path


def test_what_the_caller_fixes_wins():
    found = wanted("hello", topics=("refund",), kinds=("episodic",))
    assert (found.topics, found.kinds, found.path) == (("refund",), ("episodic",), "payments")
    assert not found.is_smalltalk
    assert wanted("Is it under warranty?", topics=()).topics == ()


def test_smalltalk_history_and_procedure():
    assert wanted("谢谢！").is_smalltalk
    assert wanted("我以前的地址").wants_history
    assert wanted("How do I return it?").wants_procedure


def test_the_second_domain():
    found = understand(request("转诊给哪位专科医生"), CLINIC, CLINIC_WORDS, NOW)
    assert (found.topics, found.path) == (("referral",), "referrals")
    assert found.answer_types == ("Doctor",)


@pytest.mark.parametrize("question", ["what did I say yesterday", "我昨天说了什么"])
def test_times_are_read_in_the_time_zone_at_the_questions_own_time(question):
    (window,) = wanted(question, time_zone="Asia/Shanghai").windows
    # `NOW` is 20:00 there
    assert window.start == day(-2).replace(hour=16)
    assert window.end == day(-1).replace(hour=16)
    (window,) = wanted(question).windows
    assert window.start == day(-1).replace(hour=0)


@pytest.mark.parametrize("question", ["what did I say yesterday", "我昨天说了什么"])
def test_a_window_of_the_callers_wins(question):
    found = wanted(question, since=day(-9))
    assert found.windows == (TimeWindow(day(-9), None),)
    assert wanted(question, since=day(-9), until=day(-5)).windows == (TimeWindow(day(-9), day(-5)),)


@pytest.mark.parametrize(
    ("question", "order", "before", "after", "history"),
    [
        ("my last repair", "latest", False, False, False),
        ("第一次维修", "first", False, False, False),
        ("what was wrong before the repair", None, True, False, False),
        ("维修以前有什么故障", None, True, False, False),
        ("is it covered after the repair", None, False, True, False),
        ("修好后还保修吗", None, False, True, False),
        ("my address before I moved", None, True, False, True),
        ("搬家之前的地址", None, True, False, True),
        ("the number before the present one", None, False, False, True),
        ("上一个地址", None, False, False, True),
        ("三天以前买的", None, False, False, False),
    ],
)
def test_events_and_order(question, order, before, after, history):
    found = wanted(question)
    assert (found.order, found.before_event, found.after_event) == (order, before, after)
    assert found.wants_history is history


@pytest.mark.parametrize("question", ["my iphone broke", "the toaster and the iphone 15"])
def test_a_part_of_a_name_is_told_from_a_whole_one(question):
    names = (
        NamedEntity("iPhone 15", "name", (ref("Device", "d-1"),)),
        NamedEntity("Acme iPhone", "name", (ref("Device", "d-2"),)),
        NamedEntity("Rotary Toaster", "name", (ref("Device", "d-3"),)),
    )
    found = named_entities(question, wanted(question), names, AFTER_SALES, AFTER_SALES_WORDS)
    assert found.partial == ({ref("Device", "d-2")} if "my" in question else {ref("Device", "d-3")})
    assert set(found.partial) < {*found.refs, None}
    whole = named_entities(
        question, wanted(question), names, AFTER_SALES, AFTER_SALES_WORDS, near=False
    )
    assert whole.partial == frozenset()


def test_ids_and_names_are_named_and_the_root_is_not_a_ref():
    found = named("张伟: iphone15, order #882301")
    assert found.root
    assert found.refs == (ref("Order", "882301"), ref("Order", "#882301"), *NAMES[1].refs)
    assert named("iPhone 16") == Named((), root=False)


@pytest.mark.parametrize(
    ("question", "mentioned", "lost"),
    [
        ("order 882301", {ref("Order", "#882301")}, ()),
        ("order 882301", {ref("Order", "#882302")}, ("882301",)),
        ("orders 882301 and 882302", {ref("Order", "882301")}, ("882302",)),
        ("no id at all", set(), ()),
        # looks like an order's number, but is the serial number of a device
        ("serial SN1234567", {ref("Device", "d-1")}, ()),
        ("serial SN1234568", set(), ("SN1234568",)),
    ],
)
def test_an_id_that_leads_to_nothing_is_lost(question, mentioned, lost):
    found = lost_ids(wanted(question), named(question), mentioned)
    assert tuple(mention.text for mention in found) == lost


@pytest.mark.parametrize(
    ("question", "recorded"),
    [
        ("Where is my parcel?", True),
        ("我的维修好了吗", True),
        # the state of an order is on record, but not what is asked
        ("Which order did I buy as a gift, as a present?", False),
        ("家里没人的话包裹放哪", False),
        ("Anything new?", False),
    ],
)
def test_it_is_told_whether_the_likeliest_topic_is_on_record(question, recorded):
    assert wanted(question).is_recorded is recorded


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("Which of my devices was repaired last, and which warranties does it have?", "Repair"),
        ("Does the warranty cover my latest order?", "Order"),
        ("我最近一次维修的那台还在延保期吗", "Repair"),
    ],
)
def test_the_last_of_several_is_of_the_type_spoken_of_beside_it(question, first):
    assert wanted(question).order_types[0] == first


def test_without_an_order_there_are_no_types_of_it():
    assert wanted("Is it under warranty?").order_types == ()


def test_digits_alone_may_be_an_id_without_what_stands_before_them():
    (mention,) = wanted("What was refunded on order number 4606123?").ids
    assert owned_types_by_digits(mention, AFTER_SALES) == ("Order",)
    full = with_prefixes(mention, {"Order": ("#W4606123", "W14606123", "4606123")})
    assert ref("Order", "#W4606123") in full.candidates
    # other digits before them: another order
    assert ref("Order", "W14606123") not in full.candidates
    assert len(full.candidates) == len(set(full.candidates))


def test_an_id_that_is_said_in_full_is_what_it_is():
    (mention,) = wanted("What was refunded on order #W4606123?").ids
    assert owned_types_by_digits(mention, AFTER_SALES) == ()


@pytest.mark.parametrize(
    ("question", "history"),
    [
        ("Who carried my parcels until I switched?", True),
        ("My card got changed. What did it say up to then?", True),
        ("升降级之前，我是什么等级？", True),
        ("上一回登记的住址是哪里？", True),
        ("刚送过去的那台还在保吗？", False),
        ("Can I use it until you have fixed it?", False),
    ],
)
def test_what_used_to_be_is_asked_for_in_many_ways(question, history):
    assert wanted(question).wants_history is history


def test_a_word_within_what_a_thing_is_called_is_no_topic():
    assert "packaging" not in wanted("What is wrong with my portable charger?").topics
    assert "packaging" in wanted("Was there a charger with my portable charger?").topics
