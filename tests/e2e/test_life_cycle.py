"""Kinds of memory live differently: they fade, are used, are archived, expire, are cleaned up."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from datetime import UTC, datetime, timedelta

import pytest

from ecphoria.decay import heat
from ecphoria.engine import Engine
from ecphoria.errors import Forbidden, InvalidInput, NotFound
from ecphoria.lifecycle.forget import ForgetRule
from ecphoria.model import (
    ChangeKind,
    EntityInput,
    EntityRef,
    FactInput,
    MemoryInput,
    RecallRequest,
    Role,
    Scope,
    Status,
    memory_key,
)
from ecphoria.testing import ManualClock
from engines import all_memories, all_rows, check_index_equals_graph, settle, with_clock

# Long ago: what expires by this clock is nobody else's.
START = datetime(2001, 3, 1, 9, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
USER = "u1"
DOOR = "The courier rang at the wrong door."
AT_WHICH_DOOR = "At which door did the courier ring?"
BEFORE = "At which door did the courier ring before?"


@pytest.fixture
def clock(tenant):
    return ManualClock(START, name=tenant)


@pytest.fixture
async def shop(engine, admin, clock):
    own = with_clock(engine, clock)
    await own.upsert_entities(admin, [EntityInput("User", USER, {"name": "Ann"})])
    return own


async def kept(engine, admin, **item):
    values = {"text": DOOR, "user_id": USER} | item
    (receipt,) = await engine.remember(admin, [MemoryInput(**values)])
    assert receipt.code is None, receipt
    return receipt.id


async def found(engine, admin, question=AT_WHICH_DOOR):
    result = await engine.recall(admin, RecallRequest(question, USER))
    return [item.memory.id for item in result.memories]


# --- kinds ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("importance", "days"), [(0.0, 30), (None, 60), (0.5, 60), (1.0, 90)])
async def test_what_happened_is_kept_for_one_to_three_months(
    shop, admin, clock, tenant, importance, days
):
    id_ = await kept(shop, admin, importance=importance)
    assert (await shop.memory(admin, USER, id_)).expires_at == START + days * DAY
    clock.set(START + days * DAY - HOUR)
    await shop.age()
    assert (await shop.memory(admin, USER, id_)).text == DOOR
    clock.advance(HOUR)
    assert (await shop.age()).expired >= 1
    with pytest.raises(NotFound):
        await shop.memory(admin, USER, id_)
    await settle(shop, tenant)
    assert await check_index_equals_graph(shop, tenant) == []


@pytest.mark.parametrize("importance", [None, 0.1, 0.8, 1.0])
async def test_how_something_is_done_stays_and_stays_important(shop, admin, clock, importance):
    text = "退货流程：先申请，再寄回，最后退款。"
    id_ = await kept(shop, admin, text=text, kind="procedural", importance=importance)
    clock.set(START + 3_650 * DAY)
    await shop.age()
    memory = await shop.memory(admin, USER, id_)
    assert memory.importance == max(0.8, importance or 0.8)
    assert (memory.expires_at, memory.tier) == (None, "hot")
    assert id_ in await found(shop, admin, "退货流程是怎样的？")


async def test_what_is_true_stays_until_it_is_corrected(shop, admin, clock):
    old = await kept(shop, admin, text="The spare key is kept in the blue drawer.", kind="semantic")
    question = "Where is the spare key kept?"
    clock.set(START + 3_650 * DAY)
    await shop.age()
    assert await found(shop, admin, question) == [old]
    new = MemoryInput(text="The spare key is kept in the green box.", user_id=USER, id="new")
    receipt = await shop.correct(admin, old, new, "somebody looked")
    assert receipt.supersedes == (old,)
    assert await found(shop, admin, question) == ["new"]
    corrected = await shop.memory(admin, USER, old)
    # wrong all along: it never held
    assert corrected.valid_until == corrected.valid_from == START
    assert (await shop.memory(admin, USER, "new")).valid_from == START
    (by,) = (await shop.lineage(admin, USER, [old]))[old]
    assert (by.other, by.how, by.reason, by.by) == ("new", "hand", "somebody looked", "test")


async def test_what_expired_leaves_no_word_in_either_store(shop, admin, clock, tenant):
    id_ = await kept(
        shop,
        admin,
        text="The gift card code is 4711.",
        expires_at=START + DAY,
        session_id="s1",
        facts=(FactInput(EntityRef("User", USER), "user.level", "gold", text="gold, code 4711"),),
    )
    key = memory_key(tenant, id_)
    assert await shop.index.existing([key]) == {key}
    clock.advance(DAY)
    await shop.age()
    await settle(shop, tenant)
    assert await shop.index.existing([key]) == frozenset()

    async def everything(tx):
        result = await tx.run("MATCH (n) WHERE n.tenant = $t RETURN properties(n) AS p", t=tenant)
        return [dict(record)["p"] async for record in result]

    left = await shop.graph._read("looking", everything)  # what no verb shows
    assert any(props.get("id") == id_ for props in left)
    assert "4711" not in str(left)
    assert "gold" not in str(left)
    told = await shop.attribute_history(admin, USER, EntityRef("User", USER), "user.level")
    assert told.entries == ()
    ever = await shop.recall(admin, RecallRequest(BEFORE, USER, known_at=START))
    assert ever.memories == ()


# --- the archive ---------------------------------------------------------------------------


async def test_a_month_unused_is_enough_for_the_archive(shop, admin, clock, tenant):
    id_ = await kept(shop, admin, importance=1.0)
    clock.set(START + 30 * DAY - HOUR)
    await shop.age()
    assert (await shop.memory(admin, USER, id_)).tier == "hot"
    clock.advance(HOUR)
    await shop.age()
    await settle(shop, tenant)
    assert (await shop.memory(admin, USER, id_)).tier == "archive"
    assert [row.tier for row in await all_rows(shop, tenant)] == ["archive"]
    assert await found(shop, admin) == []
    assert await found(shop, admin, BEFORE) == [id_]


async def test_a_use_brings_it_back(shop, admin, clock, tenant):
    id_ = await kept(shop, admin, importance=1.0)
    clock.set(START + 31 * DAY)
    await shop.age()
    await settle(shop, tenant)
    assert await found(shop, admin, BEFORE) == [id_]
    await shop.access.flush()
    await settle(shop, tenant)
    assert await found(shop, admin) == [id_]
    memory = await shop.memory(admin, USER, id_)
    assert (memory.tier, memory.access_count) == ("hot", 1)
    assert memory.freshness == pytest.approx(0.95**31 + 0.2)
    assert [row.tier for row in await all_rows(shop, tenant)] == ["hot"]
    # it was hardly fresh: this time it fades before a month is over
    assert START + 31 * DAY < memory.archive_at < START + 61 * DAY
    clock.set(memory.archive_at + HOUR)
    await shop.age()
    assert (await shop.memory(admin, USER, id_)).tier == "archive"


# --- uses ----------------------------------------------------------------------------------


class _Watched:
    """A store that names each of its methods that is called."""

    def __init__(self, inner):
        self._inner = inner
        self.called = []

    def __getattr__(self, name):
        self.called.append(name)
        return getattr(self._inner, name)


READS = {"names", "expand", "search", "search_terms", "memories", "links", "sources"}


async def test_to_ask_writes_nothing(shop, admin, clock):
    id_ = await kept(shop, admin)
    graph, index = _Watched(shop.graph), _Watched(shop.index)
    asked = with_clock(shop, clock, graph=graph, index=index)
    for _ in range(3):
        clock.advance(HOUR)
        assert await found(asked, admin) == [id_]
    assert {*graph.called, *index.called} <= READS
    assert (await shop.memory(admin, USER, id_)).access_count == 0
    assert await asked.access.flush() == 1
    memory = await shop.memory(admin, USER, id_)
    assert (memory.access_count, memory.last_accessed_at) == (3, clock.now())
    assert heat(memory.access_count, memory.last_accessed_at, clock.now()) == 3
    assert memory.freshness == 1.0
    # nothing is left to write: what is noted is counted once
    assert await asked.access.flush() == 0


async def test_what_is_not_written_yet_is_all_that_a_crash_loses(shop, admin, clock):
    id_ = await kept(shop, admin)
    await found(shop, admin)
    await shop.access.flush()
    await found(shop, admin)
    # this process is gone; another one goes on
    other = with_clock(shop, clock)
    await found(other, admin)
    await other.access.flush()
    assert (await other.memory(admin, USER, id_)).access_count == 2


async def test_an_engine_that_ends_has_written_its_uses(stores, prefix, admin, tmp_path, clock):
    settings = stores.settings(prefix, tmp_path)
    async with Engine.open(settings, clock=clock) as engine:
        id_ = await kept(engine, admin)
        assert await found(engine, admin) == [id_]
    async with Engine.open(settings, clock=clock) as engine:
        assert (await engine.memory(admin, USER, id_)).access_count == 1
        await engine.index.drop()


async def test_a_question_about_what_was_known_is_no_use(shop, admin, clock):
    id_ = await kept(shop, admin)
    clock.advance(DAY)
    result = await shop.recall(admin, RecallRequest(AT_WHICH_DOOR, USER, known_at=START))
    assert [item.memory.id for item in result.memories] == [id_]
    assert await shop.access.flush() == 0


# --- forgetting by rule --------------------------------------------------------------------


@pytest.fixture
async def many(shop, admin):
    """A shop with memories of two users, two ages, several importances and sources."""
    cases = itertools.product(("u1", "u2"), (100, 10), (0.2, 0.9), ("crm", "ugc"))
    items = [
        MemoryInput(
            text=f"Locker {number} of {user} is free.",
            user_id=user,
            id=f"{user}-{days}d-{importance}-{source}",
            kind="semantic",
            importance=importance,
            source=source,
            occurred_at=START - days * DAY,
        )
        for number, (user, days, importance, source) in enumerate(cases)
    ]
    items.append(
        MemoryInput(
            text="退货要在七天之内。",
            user_id=None,
            id="shared",
            kind="procedural",
            occurred_at=START - 100 * DAY,
        )
    )
    receipts = await shop.remember(admin, items)
    assert {receipt.code for receipt in receipts} == {None}
    return {item.id for item in items}


def of(ids, *parts):
    return {id_ for id_ in ids if all(part in id_ for part in parts)}


RULES = [
    (ForgetRule(older_than_days=50), lambda ids: of(ids, "-100d-") | {"shared"}),
    (ForgetRule(older_than_days=50, user_id="u1"), lambda ids: of(ids, "u1-100d-")),
    (ForgetRule(importance_below=0.5), lambda ids: of(ids, "-0.2-")),
    (
        ForgetRule(older_than_days=50, importance_below=0.5),
        lambda ids: of(ids, "-100d-", "-0.2-"),
    ),
    (ForgetRule(older_than_days=50, kinds=("procedural",)), lambda _: {"shared"}),
    (ForgetRule(older_than_days=100), lambda _: set()),
    # of so old a review the overall confidence is 0.4 · 0.5^(100/365) + 0.35 · 0.4 + 0.25
    (
        ForgetRule(confidence_below=0.8),
        lambda ids: of(ids, "-ugc"),
    ),
    (ForgetRule(confidence_below=0.73, user_id="u2"), lambda ids: of(ids, "u2-100d-", "-ugc")),
]


@pytest.mark.parametrize(("rule", "expected"), RULES)
async def test_a_dry_run_names_exactly_what_then_goes(shop, admin, tenant, many, rule, expected):
    told = await shop.forget_by_rule(admin, rule)
    assert {item.id for item in told.items} == expected(many)
    assert told.forgotten == 0
    assert all(item.reason and item.text for item in told.items)
    assert {memory.id for memory in await all_memories(shop, tenant)} == many
    done = await shop.forget_by_rule(admin, rule, dry_run=False)
    assert (done.items, done.forgotten) == (told.items, len(told.items))
    await settle(shop, tenant)
    left = await check_index_equals_graph(shop, tenant)
    assert {memory.id for memory in left} == many - expected(many)
    assert (await shop.forget_by_rule(admin, rule)).items == ()


@pytest.mark.parametrize(
    "rule",
    [
        ForgetRule(),
        ForgetRule(user_id="u1"),
        ForgetRule(older_than_days=-1),
        ForgetRule(importance_below=1.1),
        ForgetRule(confidence_below=float("nan")),
        ForgetRule(older_than_days=True),
        ForgetRule(older_than_days=1, kinds=("dream",)),
    ],
)
async def test_a_rule_that_means_everything_or_nothing_is_refused(shop, admin, rule):
    with pytest.raises(InvalidInput):
        await shop.forget_by_rule(admin, rule, dry_run=False)


async def test_a_key_for_some_users_has_no_rule_for_all(shop, tenant):
    some = Scope(tenant, "clerk", frozenset({Role.OPERATOR}), frozenset({"u1"}))
    with pytest.raises(Forbidden):
        await shop.forget_by_rule(some, ForgetRule(older_than_days=1))
    with pytest.raises(Forbidden):
        await shop.forget_by_rule(some, ForgetRule(older_than_days=1, user_id="u2"))
    assert (
        await shop.forget_by_rule(some, ForgetRule(older_than_days=1, user_id="u1"))
    ).items == ()


# --- who listens ---------------------------------------------------------------------------


async def test_who_listens_is_told_what_happened(shop, admin, clock):
    heard = []

    async def listen():
        async for change in shop.listen(admin, USER):
            heard.append((change.kind, change.memory_id))  # noqa: PERF401 - it never ends

    listening = asyncio.create_task(listen())
    await asyncio.sleep(0)
    await kept(shop, admin, id="short", expires_at=START + 40 * DAY)
    await kept(shop, admin, id="old", text="The key is in the drawer.", importance=1.0)
    await shop.supersede(
        admin, "old", MemoryInput(text="The key is in the box.", user_id=USER, id="new"), "moved"
    )
    await shop.retract(admin, USER, "new", "no, it was not")
    clock.set(START + 40 * DAY)
    await shop.age()
    await shop.forget(admin, USER, ["old"], "asked for")
    await asyncio.sleep(0)
    listening.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await listening
    assert heard[:4] == [
        (ChangeKind.CREATED, "short"),
        (ChangeKind.CREATED, "old"),
        (ChangeKind.CREATED, "new"),
        (ChangeKind.SUPERSEDED, "old"),
    ]
    assert heard[4:6] == [(ChangeKind.RETRACTED, "new"), (ChangeKind.EXPIRED, "short")]
    assert sorted(heard[6:8]) == [(ChangeKind.ARCHIVED, "new"), (ChangeKind.ARCHIVED, "old")]
    assert heard[8:] == [(ChangeKind.FORGOTTEN, "old")]
    assert (await shop.memory(admin, USER, "new")).status is Status.DISABLED
