"""What a question wants, and what it names."""

from __future__ import annotations

import pytest

from builders import AFTER_SALES, AFTER_SALES_WORDS, CLINIC, CLINIC_WORDS, ref, request
from ecphoria.model import NamedEntity
from ecphoria.recall.understand import Named, lost_ids, named_entities, understand

NAMES = (
    NamedEntity("张伟", "name_zh", (ref("User", "u-1"),)),
    NamedEntity("iPhone 15", "name", (ref("Device", "d-1"), ref("Product", "p-1"))),
    NamedEntity("SN1234567", "serial", (ref("Device", "d-1"),)),
)


def wanted(question, **more):
    return understand(request(question, **more), AFTER_SALES, AFTER_SALES_WORDS)


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
    found = understand(request("转诊给哪位专科医生"), CLINIC, CLINIC_WORDS)
    assert (found.topics, found.path) == (("referral",), "referrals")
    assert found.answer_types == ("Doctor",)


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
