"""Tagging: deterministic ids, the kind's policy, topics and language."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import (
    AFTER_SALES,
    CLINIC,
    NOW,
    SPEC,
    TENANT,
    day,
    ref,
    scope,
)
from ecphoria.extraction.port import Fact
from ecphoria.model import FactInput, IndexState, MemoryInput, Status
from ecphoria.remember.normalise import clean_memory
from ecphoria.remember.tag import given_facts, memory_id, part_id, tagged

ITEM = MemoryInput(text="延保到五月", user_id="u-1", occurred_at=day(-3), session_id="s-1")
WHOLE = Fact(ITEM.text, topics=("warranty", "promotion"))
FOUND = Fact(
    "订单#882301：已发货，物流单号SF112233。",
    fact_type="order_status",
    topics=("logistics",),
    intent="ask_status",
    urgency="high",
    attribute="order.status",
    value="shipped",
    evidence="客服：已发出",
    details={"tracking_number": "SF112233"},
)
ORDER = ref("Order", "#882301")


def cleaned(item=ITEM, now=NOW, domain=AFTER_SALES, **changes):
    return clean_memory(
        replace(item, **changes), scope=scope(), domain=domain, now=now, max_chars=1000
    )


def made(item=ITEM, now=NOW, domain=AFTER_SALES, fact=WHOLE, number=0, **changes):
    return tagged(
        cleaned(item, now, domain, **changes),
        fact,
        number,
        scope=scope(),
        domain=domain,
        spec=SPEC,
        now=now,
    )


def test_the_same_input_has_the_same_id_at_any_time():
    assert made().id == made(now=day(1)).id == made(text=" 延保到五月\n").id


@pytest.mark.parametrize(
    "changes",
    [
        {"text": "延保到六月"},
        {"user_id": "u-2"},
        {"user_id": None},
        {"kind": "semantic"},
        {"session_id": "s-2"},
        {"session_id": None},
        {"occurred_at": day(-4)},
        {"occurred_at": None},
    ],
)
def test_any_part_that_differs_makes_another_id(changes):
    assert made(**changes).id != made().id


def test_a_tenant_has_ids_of_its_own():
    assert memory_id(cleaned(), TENANT) != memory_id(cleaned(), "other")


@given(st.text("ab:1", min_size=1, max_size=4), st.text("ab:1", min_size=1, max_size=4))
def test_parts_cannot_run_into_each_other(user, session):
    one = memory_id(cleaned(user_id=user, session_id=session), TENANT)
    other = memory_id(cleaned(user_id=session, session_id=user), TENANT)
    assert (one == other) is (user == session)


def test_the_callers_own_id_is_kept():
    memory = made(id="mine|1")
    assert (memory.id, memory.key) == ("mine|1", f"{TENANT}|Memory|mine|1")


@pytest.mark.parametrize(
    ("kind", "importance", "days"),
    [("episodic", 0.5, 60), ("semantic", 0.6, None), ("procedural", 0.8, None)],
)
def test_the_kinds_policy_fills_what_the_caller_leaves_open(kind, importance, days):
    memory = made(kind=kind)
    assert memory.importance == importance
    assert memory.expires_at == (None if days is None else day(days))


@pytest.mark.parametrize(("importance", "days"), [(0.0, 30), (0.25, 45), (1.0, 90)])
def test_what_happened_lives_the_longer_the_more_important_it_is(importance, days):
    assert made(importance=importance).expires_at == day(days)


def test_no_procedure_is_less_important_than_the_floor():
    assert made(kind="procedural", importance=0.1).importance == 0.8
    assert made(kind="procedural", importance=0.9).importance == 0.9


def test_only_what_fades_is_archived():
    assert made().archive_at == day(30)
    assert made(kind="semantic").archive_at is made(kind="procedural").archive_at is None


def test_the_caller_wins_over_the_policy():
    memory = made(importance=0.0, expires_at=day(5), lang="en", topic="chat", source="ugc")
    assert (memory.importance, memory.expires_at) == (0.0, day(5))
    assert (memory.lang, memory.topic, memory.source_id) == ("en", "chat", "ugc")
    assert memory.tags == ("warranty", "promotion")


def test_a_fact_brings_what_was_found_in_it():
    memory = made(fact=FOUND)
    assert memory.text == FOUND.text
    assert (memory.topic, memory.tags) == ("order_status", ("logistics",))
    assert (memory.fact_type, memory.intent, memory.urgency) == (
        "order_status",
        "ask_status",
        "high",
    )
    assert (memory.attribute, memory.value, memory.subject) == ("order.status", "shipped", None)
    assert (memory.evidence, memory.details) == (FOUND.evidence, FOUND.details)


def test_a_whole_text_has_its_likeliest_topic():
    memory = made()
    assert (memory.lang, memory.topic, memory.source_id) == ("zh", "warranty", "dialogue")
    rain = made(fact=Fact("It rained."))
    assert (rain.topic, rain.lang, rain.fact_type) == (None, "en", None)


def test_how_reliable_its_source_was_stays_with_it():
    assert made().reliability == 0.7
    assert made(source="ugc").reliability == 0.4


def test_the_parts_of_a_text_have_ids_of_its_own_and_one_fingerprint():
    first, second = made(id="m"), made(id="m", fact=FOUND, number=1)
    assert (first.id, second.id) == ("m", "m~2") == (part_id("m", 0), part_id("m", 1))
    assert first.content_hash == second.content_hash
    assert made(number=1, fact=FOUND).id == f"{made().id}~2"


def test_only_the_first_part_takes_the_place_of_another_memory():
    assert made(supersedes="old").supersedes == "old"
    assert made(supersedes="old", number=1).supersedes is None


def test_what_a_new_memory_is_like():
    memory = made(supersedes="old", agent_id="a-1")
    assert (memory.status, memory.tier) == (Status.ACTIVE, "hot")
    assert (memory.index_state, memory.embedding_model) == (IndexState.PENDING, SPEC.model)
    assert (memory.recorded_at, memory.occurred_at) == (NOW, day(-3))
    assert (memory.supersedes, memory.agent_id, memory.about) == ("old", "a-1", ())


def test_the_second_domain_has_its_own_policy():
    item = MemoryInput("转诊到专科", "p-1")
    memory = made(item, domain=CLINIC, fact=Fact(item.text, topics=("referral",)))
    assert (memory.topic, memory.source_id, memory.expires_at) == ("referral", "chart", None)


def test_a_policy_that_ends_after_the_calendar_never_ends():
    policy = AFTER_SALES.kinds["episodic"].model_copy(update={"expires_after_days": 1e7})
    domain = AFTER_SALES.model_copy(update={"kinds": AFTER_SALES.kinds | {"episodic": policy}})
    assert made(domain=domain).expires_at is None


# --- facts that the caller hands over ------------------------------------------------------


def handed(text="", lang=None, *, fact_text=None, attribute="order.status", **more):
    values = {"value": "shipped", "text": fact_text} | more
    entity = ORDER if attribute == "order.status" else ref("User", "u-1")
    fact = FactInput(entity, attribute, **values)
    return given_facts(cleaned(text=text, lang=lang, facts=(fact,)), AFTER_SALES).facts[0]


def test_a_sentence_is_made_where_there_is_none():
    assert handed().text == "Order #882301: order status is shipped"
    assert handed(lang="zh").text == "Order #882301：订单状态是shipped"
    liked = handed(attribute="user.preference", value="like", subject="coffee")
    assert liked.text == "User u-1: preference (coffee) is like"
    assert liked.subject == "coffee"


def test_the_facts_own_words_come_first_then_the_texts():
    assert handed("发货了", fact_text="订单已发货").text == "订单已发货"
    assert handed("发货了").text == "发货了"
    assert handed("发货了").evidence == "发货了"
    assert handed().evidence is None


def test_a_text_of_several_facts_is_evidence_of_each_and_words_of_none():
    facts = (
        FactInput(ORDER, "order.status", "shipped"),
        FactInput(ORDER, "order.tracking_number", "SF112233"),
    )
    found = given_facts(cleaned(text="已发货，单号SF112233", facts=facts), AFTER_SALES)
    assert found.by == "caller"
    assert [fact.value for fact in found.facts] == ["shipped", "SF112233"]
    assert [fact.text for fact in found.facts] == [
        "Order #882301：订单状态是shipped",
        "Order #882301：物流单号是SF112233",
    ]
    assert {fact.evidence for fact in found.facts} == {"已发货，单号SF112233"}


def test_facts_are_part_of_the_identity():
    one, other = (
        memory_id(cleaned(facts=(FactInput(ORDER, "order.status", value),)), TENANT)
        for value in ("shipped", "delivered")
    )
    assert len({one, other, memory_id(cleaned(), TENANT)}) == 3
