"""Conversations become long-term memories: in batches, once, and nothing goes before it is safe."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from types import SimpleNamespace

import pytest

from builders import AFTER_SALES, AFTER_SALES_WORDS, NOW, scope
from ecphoria.audit_log import no_audit
from ecphoria.clock import Clock
from ecphoria.errors import Forbidden, InvalidScope, MemoryForgotten, StoreError, StoreUnavailable
from ecphoria.governance.pseudonyms import no_pseudonyms
from ecphoria.model import EveryUser, Receipt, ReceiptStatus, Role, SessionKey
from ecphoria.session import flush
from ecphoria.session.flush import (
    SessionFlush,
    end_session,
    flush_before_end,
    flush_idle_sessions,
)
from ecphoria.session.summary import ExtractiveSummarizer
from ecphoria.session.turns import remember_turn, session_context
from ecphoria.settings import load_settings
from ecphoria.stores.session_memory import InProcessSessions

KEY = SessionKey("shop", "u-1", "s-1")


class Graph:
    async def forgotten_users(self, _keys):
        return {}

    async def names(self, *_):
        return ()

    async def visible_entities(self, *_):
        return ()


class LongTerm:
    """Stands in for the write path: keeps items by id, or does what a test wants."""

    def __init__(self):
        self.items = {}
        self.calls = []
        self.refuse = {}
        self.before = None

    async def remember(self, _parts, scope_, items):
        self.calls.append((scope_, len(items)))
        if self.before is not None:
            await self.before()
        return tuple(self._one(place, item) for place, item in enumerate(items))

    def _one(self, place, item):
        for text, code in self.refuse.items():
            if text in item.text:
                return Receipt(place, ReceiptStatus.REJECTED, item.id, code=code, reason="no")
        known = item.id in self.items
        self.items.setdefault(item.id, item)
        return Receipt(place, ReceiptStatus.DUPLICATE if known else ReceiptStatus.CREATED, item.id)

    @property
    def text(self):
        return "\n".join(item.text for item in self.items.values())


@pytest.fixture
def long_term(monkeypatch):
    made = LongTerm()
    monkeypatch.setattr(flush, "remember", made.remember)
    return made


@pytest.fixture
def parts(long_term):
    del long_term  # nothing here may reach the real one
    return parts_of()


def parts_of(**settings):
    made = load_settings(**settings)
    tokens = iter(range(1_000_000))
    found = SimpleNamespace(
        graph=Graph(),
        sessions=InProcessSessions(made.session_ttl_s),
        summarizer=ExtractiveSummarizer(AFTER_SALES_WORDS),
        domain=AFTER_SALES,
        lexicon=AFTER_SALES_WORDS,
        pseudonyms=no_pseudonyms(),
        audit=no_audit(),
        settings=made,
        now=NOW,
    )
    found.clock = Clock(now=lambda: found.now, token=lambda: f"token-{next(tokens)}")
    return found


async def say(parts, *texts, session="s-1", user="u-1", tenant="shop"):
    for place, text in enumerate(texts):
        speaker = "service" if place % 2 else "customer"
        await remember_turn(parts, scope(tenant=tenant), user, session, speaker, text)


async def end(parts, session="s-1", user="u-1"):
    return await end_session(parts, scope(), user, session)


async def numbers(parts, key=KEY):
    state = await parts.sessions.read(key, parts.now)
    return [] if state is None else [turn.number for turn in state.turns]


async def test_the_end_of_a_conversation_makes_it_long_term(parts, long_term):
    await say(parts, "我的订单#882301怎么还没发货？", "已发出，物流单号SF112233。")
    parts.now += timedelta(minutes=1)
    await say(parts, "谢谢")
    done = await end(parts)
    (item,) = long_term.items.values()
    assert item.text == (
        "用户：我的订单#882301怎么还没发货？\n客服：已发出，物流单号SF112233。\n用户：谢谢"
    )
    assert (item.user_id, item.session_id, item.kind) == ("u-1", "s-1", "episodic")
    assert item.occurred_at == NOW + timedelta(minutes=1)
    assert done == SessionFlush((Receipt(0, ReceiptStatus.CREATED, item.id),), 3)
    assert (await session_context(parts, scope(), "u-1", "s-1")).turn_count == 0
    assert await end(parts) == SessionFlush((), 0)
    assert len(long_term.calls) == 1


async def test_a_new_conversation_under_the_same_id_has_memories_of_its_own(parts, long_term):
    await say(parts, "hello")
    await end(parts)
    await say(parts, "hello")
    await end(parts)
    assert len(long_term.items) == 2


async def test_long_conversations_go_in_batches_of_at_most_200(parts, long_term):
    text = "很长的一句话。" * 100
    await say(parts, *(f"{number} {text}" for number in range(901)))
    done = await end(parts)
    sizes = [size for _, size in long_term.calls]
    assert max(sizes) == 200
    assert sum(sizes) == len(long_term.items) == len(done.receipts)
    assert [receipt.index for receipt in done.receipts] == list(range(len(done.receipts)))
    assert done.turns == 901
    assert all(f"：{number} 很长" in long_term.text for number in range(901))
    assert await numbers(parts) == []


async def test_a_smaller_batch_limit_holds(long_term):
    parts = parts_of(max_batch=2, chunk_chars=200, chunk_overlap=0)
    await say(parts, *(f"{number} {'话' * 150}" for number in range(7)))
    assert (await end(parts)).turns == 7
    assert [size for _, size in long_term.calls] == [2, 2, 2, 1]


async def test_what_is_said_meanwhile_is_kept(parts, long_term):
    await say(parts, "one")

    async def say_more():
        long_term.before = None
        await say(parts, "two")

    long_term.before = say_more
    assert (await end(parts)).turns == 1
    assert await numbers(parts) == [2]
    assert (await end(parts)).turns == 1
    assert sorted(item.text for item in long_term.items.values()) == ["User: one", "User: two"]


async def test_a_crash_before_dropping_repeats_the_same_memories(parts, long_term, monkeypatch):
    await say(parts, "one", "two")

    async def die(*_, **__):
        msg = "killed"
        raise KeyboardInterrupt(msg)

    with monkeypatch.context() as patch:
        patch.setattr(parts.sessions, "drop_turns", die)
        patch.setattr(parts.sessions, "end_flush", die)
        with pytest.raises(KeyboardInterrupt):
            await end(parts)
    written = dict(long_term.items)
    # more is said, and the lease of the dead one ends
    await say(parts, "three")
    assert await end(parts) == SessionFlush((), 0, under_way=True)
    parts.now += timedelta(seconds=parts.settings.lease_s)
    done = await end(parts)
    assert [receipt.status for receipt in done.receipts] == [
        ReceiptStatus.DUPLICATE,
        ReceiptStatus.CREATED,
    ]
    assert done.turns == 3
    assert written.items() <= long_term.items.items()
    assert long_term.text.split("\n") == ["User: one", "Agent: two", "User: three"]


async def test_a_store_that_is_away_loses_nothing(parts, long_term):
    await say(parts, "one", "two")

    async def away():
        msg = "the graph store is unavailable"
        raise StoreUnavailable(msg)

    long_term.before = away
    with pytest.raises(StoreUnavailable):
        await end(parts)
    assert await numbers(parts) == [1, 2]
    long_term.before = None
    assert (await end(parts)).turns == 2


async def test_refused_turns_are_set_aside_and_hold_nothing_up(parts, long_term):
    long_term.refuse = {"坏": "ID_CONFLICT"}
    await say(parts, "好")
    parts.now += timedelta(minutes=31)
    await say(parts, "坏", "嗯")
    parts.now += timedelta(minutes=31)
    await say(parts, "也好")
    done = await end(parts)
    assert [receipt.status for receipt in done.receipts] == [
        ReceiptStatus.CREATED,
        ReceiptStatus.REJECTED,
        ReceiptStatus.CREATED,
    ]
    assert (done.turns, done.set_aside) == (2, 2)
    assert done.receipts[1].code == "ID_CONFLICT"
    assert await numbers(parts) == []
    assert [turn.text for turn in await parts.sessions.set_aside(KEY)] == ["坏", "嗯"]
    assert (await end(parts)).receipts == ()


async def test_what_was_forgotten_stays_nowhere(parts, long_term):
    long_term.refuse = {"secret": MemoryForgotten.code}
    await say(parts, "my secret")
    done = await end(parts)
    assert (done.turns, done.set_aside) == (0, 0)
    assert await parts.sessions.set_aside(KEY) == ()
    assert await numbers(parts) == []


async def test_a_passing_refusal_is_tried_again(long_term):
    parts = parts_of(chunk_chars=200, chunk_overlap=0)
    long_term.refuse = {"later": "STORE_UNAVAILABLE"}
    await say(parts, *(f"{text} {'话' * 150}" for text in ("one", "later", "three")))
    with pytest.raises(StoreUnavailable, match="no"):
        await end(parts)
    # what was acknowledged is gone; all from the refused one on is still there
    assert await numbers(parts) == [2, 3]
    long_term.refuse = {}
    done = await end(parts)
    assert [receipt.status for receipt in done.receipts] == [
        ReceiptStatus.CREATED,
        ReceiptStatus.DUPLICATE,
    ]
    assert done.turns == 2
    assert len(long_term.items) == 3


async def test_two_at_once_flush_a_session_once(parts, long_term):
    await say(parts, "one", "two")
    inside = asyncio.Event()
    go_on = asyncio.Event()

    async def hold():
        inside.set()
        await go_on.wait()

    long_term.before = hold
    first = asyncio.create_task(end(parts))
    await inside.wait()
    assert await end(parts) == SessionFlush((), 0, under_way=True)
    assert await flush_idle_sessions(parts, 10, idle_s=0) == 0
    go_on.set()
    assert (await first).turns == 2
    assert len(long_term.calls) == 1


async def test_a_lease_lost_stops_the_loser(long_term):
    parts = parts_of(max_batch=1, chunk_chars=200, chunk_overlap=0)
    await say(parts, *(f"{number} {'话' * 150}" for number in range(4)))

    async def lose():
        long_term.before = None
        parts.now += timedelta(seconds=parts.settings.lease_s)
        assert (await end(parts)).turns == 4

    long_term.before = lose
    done = await end(parts)
    assert len(done.receipts) == 1
    assert len(long_term.items) == 4


# --- the worker ----------------------------------------------------------------------------


async def test_idle_sessions_are_flushed_each_for_its_own_user(parts, long_term):
    await say(parts, "a", session="s-1", user="u-1")
    await say(parts, "b", session="s-1", user="u-2")
    await say(parts, "c", session="s-1", user="u-1", tenant="clinic")
    assert await flush_idle_sessions(parts, 10) == 0
    parts.now += timedelta(minutes=29)
    await say(parts, "d", session="s-2", user="u-1")
    parts.now += timedelta(minutes=1)
    assert await flush_idle_sessions(parts, 2) == 2
    assert await flush_idle_sessions(parts, 2) == 1
    assert await flush_idle_sessions(parts, 2) == 0
    assert {(one.tenant, one.users, one.roles) for one, _ in long_term.calls} == {
        ("shop", frozenset({"u-1"}), frozenset({Role.AGENT})),
        ("shop", frozenset({"u-2"}), frozenset({Role.AGENT})),
        ("clinic", frozenset({"u-1"}), frozenset({Role.AGENT})),
    }
    assert sorted(item.text for item in long_term.items.values()) == [
        "User: a",
        "User: b",
        "User: c",
    ]
    assert await numbers(parts, SessionKey("shop", "u-1", "s-2")) == [1]


async def test_an_older_conversation_is_flushed_while_the_present_one_goes_on(parts, long_term):
    await say(parts, "old")
    parts.now += timedelta(minutes=30)
    await say(parts, "new")
    assert await flush_idle_sessions(parts, 10) == 1
    assert long_term.text == "User: old"
    assert await numbers(parts) == [2]
    assert (await session_context(parts, scope(), "u-1", "s-1")).turn_count == 1
    assert await flush_idle_sessions(parts, 10) == 0


async def test_one_bad_session_does_not_hold_up_the_others(parts, long_term, monkeypatch):
    for number in range(5):
        await say(parts, f"{number}", session=f"s-{number}")
    read = parts.sessions.turns

    async def broken(key, *args):
        if key.session_id in {"s-0", "s-2"}:
            msg = "turn 1 of a session cannot be read"
            raise StoreError(msg)
        return await read(key, *args)

    monkeypatch.setattr(parts.sessions, "turns", broken)
    parts.now += timedelta(minutes=30)
    assert await flush_idle_sessions(parts, 2) == 2
    assert await flush_idle_sessions(parts, 2) == 1
    assert len(long_term.items) == 3
    assert len(await parts.sessions.idle(parts.now, 10)) == 2


async def test_the_worker_waits_while_a_store_is_away(parts, long_term):
    await say(parts, "one")
    parts.now += timedelta(minutes=30)

    async def away():
        msg = "the graph store is unavailable"
        raise StoreUnavailable(msg)

    long_term.before = away
    with pytest.raises(StoreUnavailable):
        await flush_idle_sessions(parts, 10)
    long_term.before = None
    assert await flush_idle_sessions(parts, 10) == 1


async def test_sessions_without_end_are_never_idle(long_term):
    parts = parts_of(session_ttl_s=1e13)
    await say(parts, "one")
    assert await flush_idle_sessions(parts, 10) == 0
    assert long_term.calls == []


async def test_a_process_that_ends_flushes_what_only_it_has(parts, long_term):
    await say(parts, "one")
    await say(parts, "two", session="s-2")
    await flush_before_end(parts)
    assert len(long_term.items) == 2
    assert await parts.sessions.idle(parts.now, 10) == ()

    async def away():
        msg = "the graph store is unavailable"
        raise StoreUnavailable(msg)

    long_term.before = away
    await say(parts, "three")
    await flush_before_end(parts)  # says so, and lets the process end
    assert await numbers(parts) == [1]


async def test_a_process_that_ends_leaves_shared_sessions_alone(parts, long_term, monkeypatch):
    monkeypatch.setattr(parts.sessions, "outlives_process", True, raising=False)
    await say(parts, "one")
    await flush_before_end(parts)
    assert long_term.calls == []


# --- who may -------------------------------------------------------------------------------


async def test_only_who_may_ends_a_conversation(parts):
    await say(parts, "one")
    for role in (Role.ANALYST, Role.OPERATOR):
        with pytest.raises(Forbidden):
            await end_session(parts, scope(role), "u-1", "s-1")
    with pytest.raises(Forbidden):
        await end_session(parts, scope(Role.AGENT, users=frozenset({"u-2"})), "u-1", "s-1")
    with pytest.raises(InvalidScope):
        await end_session(parts, scope(users=EveryUser.OF_TENANT), "*", "s-1")
    assert await numbers(parts) == [1]
