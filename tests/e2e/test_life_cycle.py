"""Kinds live differently: importance, expiry, freshness, the archive, and what is forgotten."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ecphoria.errors import Forbidden, InvalidInput, NotFound
from ecphoria.lifecycle.forget import ForgetRule
from ecphoria.model import MemoryInput, RecallRequest, Role, Scope
from ecphoria.testing import ManualClock
from engines import all_rows, check_index_equals_graph, settle, with_clock

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
QUESTION = "What did the customer say about the doorbell?"
BEFORE = "What did the customer say about the doorbell before?"


@pytest.fixture
def clock():
    return ManualClock(NOW)


@pytest.fixture
def shop(engine, clock):
    return with_clock(engine, clock)


async def keep(shop, scope, text="The customer says the doorbell is too loud.", **more):
    (receipt,) = await shop.remember(scope, [MemoryInput(text, "u1", **more)])
    assert receipt.code is None, receipt
    return await shop.memory(scope, "u1", receipt.id)


async def recalled(shop, scope, question=QUESTION):
    found = await shop.recall(scope, RecallRequest(question, "u1"))
    return [item.memory.id for item in found.memories]


@pytest.mark.parametrize(("importance", "days"), [(0.0, 30), (0.5, 60), (1.0, 90)])
async def test_episodes_end_by_their_importance(shop, admin, importance, days):
    memory = await keep(shop, admin, importance=importance)
    assert memory.expires_at == NOW + timedelta(days=days)


async def test_procedures_are_important_and_neither_end_nor_fade(shop, admin):
    memory = await keep(shop, admin, kind="procedural", importance=0.1)
    assert (memory.importance, memory.expires_at, memory.archive_at) == (0.8, None, None)


async def test_knowledge_stays_until_it_is_corrected(shop, admin, clock):
    memory = await keep(shop, admin, kind="semantic")
    assert (memory.expires_at, memory.archive_at) == (None, None)
    clock.advance(timedelta(days=4_000))
    await shop.age()
    assert (await shop.memory(admin, "u1", memory.id)).tier == "hot"


async def test_what_has_expired_is_gone_from_both_stores(shop, admin, clock, tenant):
    memory = await keep(shop, admin, expires_at=NOW + timedelta(days=1))
    other = await keep(shop, admin, "another doorbell")
    clock.advance(timedelta(days=1))
    assert memory.id not in await recalled(shop, admin)
    assert (await shop.age()).expired >= 1
    with pytest.raises(NotFound):
        await shop.memory(admin, "u1", memory.id)
    await settle(shop, tenant)
    assert [row.key for row in await all_rows(shop, tenant)] == [other.key]
    assert (await shop.age()).expired == 0


async def test_the_unused_goes_to_the_archive_and_comes_back_with_a_use(shop, admin, clock, tenant):
    memory = await keep(shop, admin)
    clock.advance(timedelta(days=30))
    await shop.age()
    await settle(shop, tenant)
    assert (await shop.memory(admin, "u1", memory.id)).tier == "archive"
    assert await recalled(shop, admin) == []
    assert await recalled(shop, admin, BEFORE) == [memory.id]
    await shop.access.flush()
    await settle(shop, tenant)
    back = await shop.memory(admin, "u1", memory.id)
    assert (back.tier, back.access_count, back.last_accessed_at) == ("hot", 1, clock.now())
    assert await recalled(shop, admin) == [memory.id]
    await check_index_equals_graph(shop, tenant)


async def test_uses_are_noted_and_not_written_while_somebody_waits(shop, admin):
    memory = await keep(shop, admin)
    for _ in range(3):
        assert await recalled(shop, admin) == [memory.id]
    assert (await shop.memory(admin, "u1", memory.id)).access_count == 0
    assert await shop.access.flush() == 1
    assert (await shop.memory(admin, "u1", memory.id)).access_count == 3
    assert await shop.access.flush() == 0


async def test_a_rule_shows_what_would_go_and_then_exactly_that_goes(shop, admin, clock):
    old = await keep(shop, admin, "old and idle", importance=0.2, id="old")
    await keep(shop, admin, "old but important", importance=0.9, id="important")
    clock.advance(timedelta(days=20))
    await keep(shop, admin, "young", importance=0.2, id="young")
    rule = ForgetRule(older_than_days=10, importance_below=0.5)
    tried = await shop.forget_by_rule(admin, rule)
    assert [(item.id, item.reason) for item in tried.items] == [
        (old.id, "20 days old; importance 0.20")
    ]
    assert tried.forgotten == 0
    assert (await shop.memory(admin, "u1", "old")).text == "old and idle"
    done = await shop.forget_by_rule(admin, rule, dry_run=False)
    assert (done.items, done.forgotten) == (tried.items, 1)
    kept = await shop.memories(admin, "u1", ["old", "important", "young"])
    assert sorted(kept) == ["important", "young"]


async def test_a_rule_by_confidence(shop, admin, clock):
    await keep(shop, admin, "from a review", source="ugc", id="ugc")
    await keep(shop, admin, "from the CRM", source="crm", id="crm")
    clock.advance(timedelta(days=20))
    tried = await shop.forget_by_rule(admin, ForgetRule(confidence_below=0.75))
    assert [item.id for item in tried.items] == ["ugc"]
    assert tried.items[0].reason.startswith("confidence 0.")


async def test_a_rule_without_a_criterion_never_means_everything(shop, admin, tenant):
    with pytest.raises(InvalidInput):
        await shop.forget_by_rule(admin, ForgetRule(), dry_run=False)
    one = Scope(tenant, "op", frozenset({Role.OPERATOR}), frozenset({"u1"}))
    with pytest.raises(Forbidden):
        await shop.forget_by_rule(one, ForgetRule(older_than_days=1), dry_run=False)
    agent = Scope(tenant, "agent", frozenset({Role.AGENT}), frozenset({"u1"}))
    with pytest.raises(Forbidden):
        await shop.forget(agent, "u1", ["x"], "asked for")


async def test_what_was_forgotten_does_not_come_back_by_a_replay(shop, admin, tenant):
    memory = await keep(shop, admin, id="m")
    report = await shop.forget(admin, "u1", ["m", "unknown"], "客户要求删除")
    assert ([item.id for item in report.items], report.unknown) == (["m"], ("unknown",))
    (again,) = await shop.remember(admin, [MemoryInput(memory.text, "u1", id="m")])
    assert again.code == "MEMORY_FORGOTTEN"
    assert await recalled(shop, admin, BEFORE) == []
    await settle(shop, tenant)
    assert await all_rows(shop, tenant) == []
