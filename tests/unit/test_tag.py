"""Tagging: deterministic ids, the kind's policy, topics and language."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import (
    AFTER_SALES,
    AFTER_SALES_WORDS,
    CLINIC,
    CLINIC_WORDS,
    NOW,
    SPEC,
    TENANT,
    day,
    scope,
)
from ecphoria.model import IndexState, MemoryInput, Status
from ecphoria.remember.normalise import clean_memory
from ecphoria.remember.tag import memory_id, tagged

ITEM = MemoryInput(text="延保到五月", user_id="u-1", occurred_at=day(-3), session_id="s-1")


def cleaned(item=ITEM, now=NOW, domain=AFTER_SALES, **changes):
    return clean_memory(
        replace(item, **changes), scope=scope(), domain=domain, now=now, max_chars=1000
    )


def made(item=ITEM, now=NOW, domain=AFTER_SALES, words=AFTER_SALES_WORDS, **changes):
    return tagged(
        cleaned(item, now, domain, **changes),
        scope=scope(),
        domain=domain,
        lexicon=words,
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
    [("episodic", 0.5, 730), ("semantic", 0.6, None), ("procedural", 0.8, None)],
)
def test_the_kinds_policy_fills_what_the_caller_leaves_open(kind, importance, days):
    memory = made(kind=kind)
    assert memory.importance == importance
    assert memory.expires_at == (None if days is None else day(days))


def test_the_caller_wins_over_the_policy():
    memory = made(importance=0.0, expires_at=day(5), lang="en", topic="chat", source="ugc")
    assert (memory.importance, memory.expires_at) == (0.0, day(5))
    assert (memory.lang, memory.topic, memory.source_id) == ("en", "chat", "ugc")
    assert memory.tags[0] == "warranty"


def test_what_is_read_off_the_text():
    memory = made()
    assert (memory.lang, memory.topic, memory.source_id) == ("zh", "warranty", "dialogue")
    assert made(text="It rained.").topic is None
    assert made(text="It rained.").lang == "en"


def test_what_a_new_memory_is_like():
    memory = made(supersedes="old", agent_id="a-1")
    assert (memory.status, memory.tier) == (Status.ACTIVE, "hot")
    assert (memory.index_state, memory.embedding_model) == (IndexState.PENDING, SPEC.model)
    assert (memory.recorded_at, memory.occurred_at) == (NOW, day(-3))
    assert (memory.supersedes, memory.agent_id, memory.about) == ("old", "a-1", ())


def test_the_second_domain_has_its_own_policy():
    memory = made(MemoryInput("转诊到专科", "p-1"), domain=CLINIC, words=CLINIC_WORDS)
    assert (memory.topic, memory.source_id, memory.expires_at) == ("referral", "chart", None)


def test_a_policy_that_ends_after_the_calendar_never_ends():
    policy = AFTER_SALES.kinds["episodic"].model_copy(update={"expires_after_days": 1e7})
    domain = AFTER_SALES.model_copy(update={"kinds": AFTER_SALES.kinds | {"episodic": policy}})
    assert made(domain=domain).expires_at is None
