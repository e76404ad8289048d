"""Conversations from the first turn to long-term memory, on real stores."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest_asyncio

from ecphoria.clock import Clock
from ecphoria.engine import Engine
from ecphoria.model import (
    EntityInput,
    EntityRef,
    EveryUser,
    RecallRequest,
    ReceiptStatus,
    RelationInput,
    Role,
    Scope,
    SessionKey,
)
from ecphoria.session.flush import end_session, flush_idle_sessions
from ecphoria.session.turns import remember_turn, session_context
from ecphoria.settings import load_settings
from ecphoria.stores.session_memory import InProcessSessions
from ecphoria.stores.session_redis import RedisSessions

WORKER = Path(__file__).with_name("flushing_worker.py")
ORDER = EntityRef("Order", "#882301")
PHONE = EntityRef("Device", "d1")
DIALOGUE = (
    ("customer", "我的订单#882301怎么还没发货？"),
    ("service", "已发出，物流单号SF112233。"),
    ("customer", "物流官网查不到啊。"),
    ("service", "我帮您联系仓库核查"),
)


@pytest_asyncio.fixture(loop_scope="session", params=["in process", "redis"])
async def shop(request, engine, prefix, admin):
    """Return the engine with sessions of its own, and a user with an order and a phone."""
    if request.param == "redis":
        url = request.getfixturevalue("redis_server").url
        sessions = redis_sessions(url, prefix)
    else:
        sessions = InProcessSessions(engine.settings.session_ttl_s)
    await engine.upsert_entities(
        admin,
        [
            EntityInput("User", "u1", {"name": "Zhang Wei", "name_zh": "张伟"}),
            EntityInput("Order", "#882301", {"status": "paid"}),
            EntityInput("Device", "d1", {"name": "iPhone 15"}),
        ],
        [
            RelationInput("PLACED", EntityRef("User", "u1"), ORDER),
            RelationInput("CONTAINS", ORDER, PHONE),
        ],
    )
    yield replace(engine, sessions=sessions)
    await sessions.close()


def redis_sessions(url, prefix):
    return RedisSessions(url, prefix=prefix, ttl_s=1_800, timeout_s=20)


def later(engine, **time):
    moment = engine.clock.now() + timedelta(**time)
    return replace(engine, clock=Clock(now=lambda: moment))


async def talk(engine, scope, turns=DIALOGUE, session="s1", user="u1"):
    for speaker, text in turns:
        context = await remember_turn(engine, scope, user, session, speaker, text)
    return context


async def kept(engine, scope, receipts, user="u1"):
    ids = [part.id for receipt in receipts for part in (receipt.facts or (receipt,))]
    return list((await engine.memories(scope, user, ids)).values())


def words(memories):
    return "\n".join(f"{memory.text}\n{memory.evidence or ''}" for memory in memories)


async def test_a_conversation_is_remembered_when_it_ends(shop, admin):
    context = await talk(shop, admin)
    assert [(turn.speaker, turn.text) for turn in context.turns] == list(DIALOGUE)
    assert context.entities == (ORDER,)
    assert await session_context(shop, admin, "u1", "s1") == context
    done = await end_session(shop, admin, "u1", "s1")
    assert (done.turns, done.set_aside) == (4, 0)
    assert (await session_context(shop, admin, "u1", "s1")).turn_count == 0
    memories = await kept(shop, admin, done.receipts)
    assert {memory.session_id for memory in memories} == {"s1"}
    assert all(item in words(memories) for item in ("#882301", "SF112233", "联系仓库核查"))
    found = await shop.recall(admin, RecallRequest("订单#882301的物流单号是多少？", "u1"))
    assert "SF112233" in "".join(item.memory.text for item in found.memories)


async def test_an_english_conversation_names_its_things(shop, admin):
    context = await talk(
        shop,
        admin,
        [
            ("customer", "The screen of my iPhone 15 flickers."),
            ("service", "Please bring it in. The repair takes 3 days."),
        ],
    )
    assert context.turns[0].entities == (PHONE,)
    assert context.entities == (PHONE,)
    done = await end_session(shop, admin, "u1", "s1")
    memories = await kept(shop, admin, done.receipts)
    assert "iPhone 15 flickers" in words(memories)
    assert any(link.entity == PHONE for receipt in done.receipts for link in receipt.links)


async def test_an_idle_conversation_is_flushed_by_the_worker(shop, admin, tenant):
    await talk(shop, admin)
    assert await flush_idle_sessions(later(shop, minutes=29), 10) == 0
    over = later(shop, minutes=31)
    assert (await session_context(over, admin, "u1", "s1")).turn_count == 0
    assert await flush_idle_sessions(over, 10) == 1
    assert await flush_idle_sessions(over, 10) == 0
    found = await shop.recall(admin, RecallRequest("订单#882301的物流单号是多少？", "u1"))
    assert "SF112233" in "".join(item.memory.text for item in found.memories)
    assert await shop.sessions.read(SessionKey(tenant, "u1", "s1"), shop.clock.now()) is None


async def test_the_same_ids_of_two_tenants_are_two_conversations(shop, admin, tenant):
    other = Scope(f"{tenant}-b", "test", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)
    await talk(shop, admin)
    context = await talk(shop, other, [("customer", "牙疼，订单#882301")])
    assert (context.turn_count, context.entities) == (1, ())
    done = await end_session(shop, other, "u1", "s1")
    assert done.turns == 1
    (memory,) = await kept(shop, other, done.receipts)
    assert "牙疼" in memory.text
    assert (await session_context(shop, admin, "u1", "s1")).turn_count == 4


async def test_ending_it_twice_at_once_writes_everything_once(shop, admin, tenant):
    await talk(shop, admin)
    done = await asyncio.gather(*(end_session(shop, admin, "u1", "s1") for _ in range(4)))
    assert sum(one.turns for one in done) == 4
    receipts = [receipt for one in done for receipt in one.receipts]
    assert {receipt.status for receipt in receipts} == {ReceiptStatus.CREATED}
    assert (await shop.graph.counts(tenant))["Memory"] == len(await kept(shop, admin, receipts))


async def test_eight_replicas_write_one_conversation(engine, admin, redis_server, prefix):
    replicas = [
        replace(engine, sessions=redis_sessions(redis_server.url, prefix)) for _ in range(8)
    ]

    async def write(number):
        for turn in range(5):
            text = f"第{number}-{turn}句，请记下。"
            # sent again, as after a lost answer
            for _ in range(2):
                await remember_turn(
                    replicas[number], admin, "u1", "s1", "customer", text, turn_id=text
                )

    await asyncio.gather(*(write(number) for number in range(8)))
    context = await session_context(replicas[0], admin, "u1", "s1")
    assert context.turn_count == 40
    assert context.turns[-1].number == 40
    assert context.summary
    done = await end_session(replicas[7], admin, "u1", "s1")
    assert done.turns == 40
    text = words(await kept(engine, admin, done.receipts))
    assert all(f"第{number}-{turn}句" in text for number in range(8) for turn in range(5))
    for replica in replicas:
        await replica.sessions.close()


def kill_while_flushing(env, tenant, session):
    done = subprocess.run(
        [sys.executable, str(WORKER), tenant, session],
        env=env,
        capture_output=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == -9, done.stderr.decode()


async def test_a_killed_flush_loses_and_doubles_nothing(
    engine, admin, tenant, cli_env, redis_server
):
    sessions = redis_sessions(redis_server.url, cli_env["ECPHORIA_COLLECTION_PREFIX"])
    shop = replace(engine, sessions=sessions)
    await talk(shop, admin)
    kill_while_flushing({**cli_env, "ECPHORIA_REDIS_URL": redis_server.url}, tenant, "s1")
    before = (await engine.graph.counts(tenant))["Memory"]
    assert before > 0
    # nothing was dropped, and more is said before somebody goes on
    context = await talk(shop, admin, [("customer", "好的，谢谢。什么时候有消息？")])
    assert context.turn_count == 5
    assert (await end_session(shop, admin, "u1", "s1")).under_way
    over = later(shop, minutes=31)
    assert await flush_idle_sessions(over, 10) >= 1
    assert await sessions.idle(over.clock.now(), 10) == ()
    assert (await engine.graph.counts(tenant))["Memory"] == before + 1
    assert (await engine.index.count(tenant)) == before + 1
    found = await engine.recall(admin, RecallRequest("我的物流单号是多少？", "u1"))
    texts = [item.memory.text for item in found.memories]
    assert any("SF112233" in text for text in texts)
    assert len(texts) == len(set(texts))
    await sessions.close()


async def test_a_process_that_ends_in_good_order_loses_no_conversation(embedded_env, tenant):
    settings = load_settings(data_dir=embedded_env["ECPHORIA_DATA_DIR"])
    scope = Scope(tenant, "test", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)
    async with Engine.open(settings) as engine:
        await talk(engine, scope)
    async with Engine.open(settings) as engine:
        assert (await session_context(engine, scope, "u1", "s1")).turn_count == 0
        found = await engine.recall(scope, RecallRequest("我的物流单号是多少？", "u1"))
        assert "SF112233" in "".join(item.memory.text for item in found.memories)
