"""What every session store promises, in this process and on a real Redis."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis

from ecphoria.errors import (
    ConfigurationInvalid,
    IdConflict,
    StoreAuthenticationFailed,
    StoreError,
    StoreUnavailable,
)
from ecphoria.model import EntityRef, SessionKey, Turn
from ecphoria.settings import load_settings
from ecphoria.stores.open_sessions import open_sessions
from ecphoria.stores.session_memory import InProcessSessions
from ecphoria.stores.session_port import (
    KEPT_DAYS,
    FlushLease,
    NewTurn,
    SessionState,
    SessionStore,
    Summary,
    UserSessions,
)
from ecphoria.stores.session_redis import RedisSessions
from servers.redis_server import RedisServer

if TYPE_CHECKING:
    from pathlib import Path

TTL_S = 1_800.0
T = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
MS = timedelta(milliseconds=1)
OVER = timedelta(seconds=TTL_S)
LEASE_S = 60.0
KEY = SessionKey("shop", "u-1", "s-1")
ORDER = EntityRef("Order", "#882301")
PHONE = EntityRef("Device", "d-1")
CASE = EntityRef("Device", "d-2")

STRANGE_IDS = [
    "*",
    "s:1",
    "s%3A1",
    "s-1:turns",
    "{s}",
    "s 1",
    "[a-z]?",
    "\\",
    '"',
    "会话一",
    "👩‍👧 Ünï",
    "𠮷" * 256,
]

Replica = Callable[[], SessionStore]

_RUNS = itertools.count()


def redis_sessions(url: str, prefix: str, timeout_s: float = 20.0) -> RedisSessions:
    return RedisSessions(url, prefix=prefix, ttl_s=TTL_S, timeout_s=timeout_s)


@pytest_asyncio.fixture(loop_scope="session", params=["in process", "redis"])
async def replica(request: pytest.FixtureRequest, prefix: str) -> AsyncIterator[Replica]:
    """Return a way to open the same store once more, as another replica would."""
    if request.param == "in process":
        store = InProcessSessions(TTL_S)
        yield lambda: store
        await store.close()
        return
    server: RedisServer = request.getfixturevalue("redis_server")
    async with contextlib.AsyncExitStack() as stack:

        def another() -> SessionStore:
            opened = redis_sessions(server.url, prefix)
            stack.push_async_callback(opened.close)
            return opened

        yield another


@pytest.fixture
def sessions(replica: Replica) -> SessionStore:
    return replica()


def said(text: str, id_: str | None = None, *entities: EntityRef, by: Any = "customer") -> NewTurn:
    return NewTurn(id_ or text, by, text, T, entities)


async def say(
    store: SessionStore, *texts: str, at: datetime = T, key: SessionKey = KEY, series: str = "A"
) -> list[int]:
    return [await store.append(key, said(text), series=series, now=at) for text in texts]


async def texts(store: SessionStore, at: datetime = T, key: SessionKey = KEY) -> list[str]:
    state = await store.read(key, at)
    return [] if state is None else [turn.text for turn in state.turns]


async def lease(
    store: SessionStore,
    worker: str = "w1",
    at: datetime = T,
    *,
    idle_before: datetime | None = None,
    key: SessionKey = KEY,
) -> Any:
    return await store.begin_flush(
        key, token=worker, now=at, lease_s=LEASE_S, idle_before=idle_before
    )


# --- turns ---------------------------------------------------------------------------------


async def test_turns_come_back_as_they_were_said(sessions: SessionStore) -> None:
    text = "用户的订单#882301，“怎么还没发货？” \N{FAMILY} 𠮷 \u200d é\n第二行 \ud7ff"
    moment = datetime(2026, 2, 28, 23, 59, 59, 123000, tzinfo=UTC)
    turn = NewTurn("t-1", "service", text, moment, (ORDER, PHONE))
    assert await sessions.append(KEY, turn, series="A", now=T) == 1
    state = await sessions.read(KEY, T)
    assert state is not None
    assert state.turns == (Turn(1, "service", text, moment, (ORDER, PHONE)),)
    assert (state.series, state.start, state.last, state.last_at) == ("A", 1, 1, T)
    assert state.summary == Summary("", 0, 0)
    assert state.entities == (PHONE, ORDER)


async def test_an_unknown_session_is_none(sessions: SessionStore) -> None:
    assert await sessions.read(KEY, T) is None
    assert await sessions.turns(KEY, "A", 0, 10) == ()
    assert await lease(sessions) is None
    await sessions.drop_turns(KEY, "A", 5, now=T)
    await sessions.end_flush(KEY, "w1")


async def test_concurrent_replicas_number_turns_without_gaps(replica: Replica) -> None:
    writers = [replica() for _ in range(8)]

    async def write(number: int) -> list[int]:
        return await say(writers[number], *(f"{number}-{turn}" for turn in range(25)))

    numbers = await asyncio.gather(*(write(number) for number in range(8)))
    assert sorted(number for some in numbers for number in some) == list(range(1, 201))
    assert all(some == sorted(some) for some in numbers)
    state = await replica().read(KEY, T)
    assert state is not None
    assert [turn.number for turn in state.turns] == list(range(1, 201))
    assert sorted(turn.text for turn in state.turns) == sorted(
        f"{number}-{turn}" for number in range(8) for turn in range(25)
    )


async def test_a_turn_sent_again_is_the_same_turn(replica: Replica) -> None:
    one, other = replica(), replica()
    assert await say(one, "hello", "anybody there?") == [1, 2]
    assert await other.append(KEY, said("hello"), series="B", now=T + MINUTE) == 1
    again = await asyncio.gather(
        *(store.append(KEY, said("third"), series="A", now=T) for store in (one, other) * 4)
    )
    assert again == [3] * 8
    assert await texts(one) == ["hello", "anybody there?", "third"]


@pytest.mark.parametrize("other", [said("goodbye", "hello"), said("hello", by="service")])
async def test_a_turn_id_of_another_turn_is_refused(sessions: SessionStore, other: NewTurn) -> None:
    await say(sessions, "hello")
    with pytest.raises(IdConflict, match="hello") as caught:
        await sessions.append(KEY, other, series="A", now=T)
    assert caught.value.path == ("turn_id",)
    assert await texts(sessions) == ["hello"]


async def test_the_last_entity_of_each_type_is_known(sessions: SessionStore) -> None:
    for turn in (said("a", None, PHONE, ORDER), said("b"), said("c", None, CASE)):
        await sessions.append(KEY, turn, series="A", now=T)
    state = await sessions.read(KEY, T)
    assert state is not None
    assert state.entities == (CASE, ORDER)


@pytest.mark.parametrize("strange", STRANGE_IDS)
async def test_ids_are_exact(sessions: SessionStore, strange: str) -> None:
    keys = [
        KEY,
        SessionKey("shop", "u-1", strange),
        SessionKey("shop", strange, "s-1"),
        SessionKey("shop", f"u-1:{strange}", "s"),
        SessionKey("shop", "u-1", f"{strange}:s"),
        SessionKey("shop2", "u-1", strange),
    ]
    for number, key in enumerate(keys):
        assert await say(sessions, f"{number}", key=key) == [1]
    assert sorted(await sessions.idle(T, 10), key=str) == sorted(keys, key=str)
    for number, key in enumerate(keys):
        assert await texts(sessions, key=key) == [f"{number}"]
    await sessions.drop_turns(keys[1], "A", 1, now=T)
    assert [await texts(sessions, key=key) for key in keys] == [
        ["0"],
        [],
        ["2"],
        ["3"],
        ["4"],
        ["5"],
    ]


@pytest.mark.parametrize("strange", ["*", "u-1:x", "[a-z]?", "\\", "会话一", "👩‍👧 Ünï"])
async def test_a_user_is_dropped_with_all_of_his_and_nobody_else(
    replica: Replica, strange: str
) -> None:
    one, other = replica(), replica()
    his = [SessionKey("shop", strange, "s-1"), SessionKey("shop", strange, strange)]
    others = [
        KEY,
        SessionKey("shop2", strange, "s-1"),
        SessionKey("shop", f"{strange}2", "s-1"),
        SessionKey("shop", "u-1", strange),
    ]
    for key in (*his, *others):
        await say(one, "first", "second", key=key)
    assert await other.of_user("shop", strange) == UserSessions(2, 4)

    assert await other.drop_user("shop", strange) == UserSessions(2, 4)

    assert await one.of_user("shop", strange) == UserSessions(0, 0)
    for key in his:
        assert await texts(one, key=key) == []
    for key in others:
        assert await texts(one, key=key) == ["first", "second"]
    assert sorted(await one.idle(T, 10), key=str) == sorted(others, key=str)
    assert await one.drop_user("shop", strange) == UserSessions(0, 0)


async def test_colliding_ids_of_two_tenants_stay_apart(sessions: SessionStore) -> None:
    ours, theirs = SessionKey("shop", "u", "s"), SessionKey("clinic", "u", "s")
    await say(sessions, "买了手机", key=ours)
    await say(sessions, "牙疼", "还是疼", key=theirs)
    assert await texts(sessions, key=ours) == ["买了手机"]
    assert await texts(sessions, key=theirs) == ["牙疼", "还是疼"]
    assert await lease(sessions, "w1", key=ours) is not None
    assert await lease(sessions, "w2", key=theirs) is not None
    await sessions.drop_turns(theirs, "A", 2, now=T)
    assert await texts(sessions, key=ours) == ["买了手机"]


# --- life ----------------------------------------------------------------------------------


async def test_a_conversation_is_over_after_its_life(sessions: SessionStore) -> None:
    await say(sessions, "hello")
    assert await texts(sessions, T + OVER - MS) == ["hello"]
    assert await sessions.read(KEY, T + OVER) is None
    await say(sessions, "still here", at=T + OVER - MS)
    assert await texts(sessions, T + OVER) == ["hello", "still here"]


async def test_a_clock_that_runs_behind_shortens_no_life(sessions: SessionStore) -> None:
    await say(sessions, "hello", at=T)
    await say(sessions, "from a slow replica", at=T - 20 * MINUTE)
    assert await texts(sessions, T + OVER - MS) == ["hello", "from a slow replica"]


async def test_numbers_go_on_until_the_old_turns_are_flushed(sessions: SessionStore) -> None:
    await sessions.append(KEY, said("old", None, PHONE), series="A", now=T)
    state = await sessions.read(KEY, T)
    assert state is not None
    assert await sessions.keep_summary(KEY, state, Summary("about a phone", 1, 1))
    later = T + OVER
    assert await say(sessions, "new", at=later, series="B") == [2]
    state = await sessions.read(KEY, later)
    assert state is not None
    assert [turn.text for turn in state.turns] == ["new"]
    assert (state.series, state.start, state.last) == ("A", 2, 2)
    assert state.summary == Summary("", 1, 1)
    assert state.entities == ()
    assert [turn.text for turn in await sessions.turns(KEY, "A", 0, 10)] == ["old", "new"]
    await sessions.drop_turns(KEY, "A", 2, now=later)
    assert await say(sessions, "newest", at=later, series="C") == [1]
    state = await sessions.read(KEY, later)
    assert state is not None
    assert (state.series, state.start, state.last) == ("C", 1, 1)


async def test_turn_ids_are_those_of_one_conversation(sessions: SessionStore) -> None:
    first = said("is my order shipped?", "1")
    await sessions.append(KEY, first, series="A", now=T)
    again = said("is it shipped now?", "1")
    assert await sessions.append(KEY, again, series="A", now=T + OVER) == 2
    assert await texts(sessions, T + OVER) == ["is it shipped now?"]


# --- summaries -----------------------------------------------------------------------------


async def test_a_summary_takes_the_place_of_its_turns(sessions: SessionStore) -> None:
    await say(sessions, "one", "two", "three")
    state = await sessions.read(KEY, T)
    assert state is not None
    summary = Summary("一句话总结 — “two”\nsecond line", 2, 3)
    assert await sessions.keep_summary(KEY, state, summary)
    state = await sessions.read(KEY, T)
    assert state is not None
    assert state.summary == summary
    assert [turn.text for turn in state.turns] == ["three"]
    # the turns are still there to be flushed
    assert len(await sessions.turns(KEY, "A", 0, 10)) == 3


async def test_an_older_summary_does_not_replace_a_newer_one(replica: Replica) -> None:
    one, other = replica(), replica()
    await say(one, *"abcdef")
    state = await one.read(KEY, T)
    assert state is not None
    assert await other.keep_summary(KEY, state, Summary("newer", 4, 6))
    assert not await one.keep_summary(KEY, state, Summary("older", 2, 6))
    now = await one.read(KEY, T)
    assert now is not None
    assert now.summary.text == "newer"
    assert await one.keep_summary(KEY, now, Summary("newest", 5, 6))


async def test_of_concurrent_summaries_one_is_kept(replica: Replica) -> None:
    await say(replica(), *"abcdef")
    writers = [replica() for _ in range(8)]
    state = await writers[0].read(KEY, T)
    assert state is not None
    kept = await asyncio.gather(
        *(
            store.keep_summary(KEY, state, Summary(f"by {number}", 3, 6))
            for number, store in enumerate(writers)
        )
    )
    assert sum(kept) == 1
    now = await writers[0].read(KEY, T)
    assert now is not None
    assert now.summary.text == f"by {kept.index(True)}"


async def test_a_summary_of_a_conversation_that_is_over_is_not_kept(sessions: SessionStore) -> None:
    await say(sessions, "old")
    state = await sessions.read(KEY, T)
    assert state is not None
    await say(sessions, "new", at=T + OVER)
    assert not await sessions.keep_summary(KEY, state, Summary("of the old one", 1, 1))
    await sessions.drop_turns(KEY, "A", 2, now=T)
    assert not await sessions.keep_summary(KEY, state, Summary("of what is gone", 1, 1))
    await say(sessions, "another numbering", series="B")
    assert not await sessions.keep_summary(KEY, state, Summary("of what is gone", 1, 1))
    assert await texts(sessions) == ["another numbering"]


# --- flushing ------------------------------------------------------------------------------


async def test_idle_sessions_are_listed_longest_silent_first(sessions: SessionStore) -> None:
    keys = [SessionKey("shop", "u", f"s-{number}") for number in range(5)]
    for number, key in enumerate(keys):
        await say(sessions, "hello", at=T - number * MINUTE, key=key)
    assert await sessions.idle(T - MINUTE, 10) == (keys[4], keys[3], keys[2], keys[1])
    assert await sessions.idle(T - MINUTE - MS, 10) == (keys[4], keys[3], keys[2])
    assert await sessions.idle(T, 2) == (keys[4], keys[3])
    assert await sessions.idle(T, 2, skip=1) == (keys[3], keys[2])
    await say(sessions, "still here", at=T + MINUTE, key=keys[4])
    assert await sessions.idle(T, 10) == (keys[3], keys[2], keys[1], keys[0])
    await sessions.drop_turns(keys[3], "A", 1, now=T)
    assert await sessions.idle(T, 10) == (keys[2], keys[1], keys[0])


async def test_a_new_conversation_does_not_hide_old_turns(sessions: SessionStore) -> None:
    await say(sessions, "old", at=T)
    await say(sessions, "new", at=T + OVER)
    assert await sessions.idle(T, 10) == (KEY,)
    held = await lease(sessions, at=T + OVER, idle_before=T)
    assert (held.series, held.first, held.upto, held.last) == ("A", 1, 1, 2)
    await sessions.drop_turns(KEY, "A", 1, now=T + OVER)
    assert await sessions.idle(T, 10) == ()
    assert await lease(sessions, at=T + OVER, idle_before=T) is None
    assert await texts(sessions, T + OVER) == ["new"]
    assert await sessions.idle(T + OVER, 10) == (KEY,)


async def test_two_workers_never_flush_the_same_session(replica: Replica) -> None:
    await say(replica(), "hello")
    workers = [replica() for _ in range(8)]
    held = await asyncio.gather(
        *(lease(store, f"w{number}") for number, store in enumerate(workers))
    )
    (winner,) = [number for number, one in enumerate(held) if one is not None]
    assert await lease(workers[0], f"w{winner}", T + MINUTE - MS) is not None  # prolonged
    loser = (winner + 1) % 8
    assert await lease(workers[loser], f"w{loser}", T + MINUTE) is None
    await workers[loser].end_flush(KEY, f"w{loser}")
    assert await lease(workers[loser], f"w{loser}", T + MINUTE) is None
    # who has died loses it in the end
    assert await lease(workers[loser], f"w{loser}", T + 2 * MINUTE) is not None


async def test_a_lease_given_back_is_free(sessions: SessionStore) -> None:
    await say(sessions, "hello")
    await lease(sessions, "w1")
    await sessions.end_flush(KEY, "w1")
    assert await lease(sessions, "w2") is not None


async def test_a_session_that_is_not_idle_is_not_leased(sessions: SessionStore) -> None:
    await say(sessions, "hello")
    assert await lease(sessions, idle_before=T - MS) is None
    assert await lease(sessions, idle_before=T) is not None


async def test_turns_said_during_a_flush_are_kept(sessions: SessionStore) -> None:
    for turn in (said("one", None, ORDER), said("two", None, PHONE)):
        await sessions.append(KEY, turn, series="A", now=T)
    held = await lease(sessions)
    assert (held.first, held.upto, held.last) == (1, 2, 2)
    late = said("three", None, CASE)
    assert await sessions.append(KEY, late, series="A", now=T) == 3
    # whoever tries again flushes the same turns
    held = await lease(sessions)
    assert (held.first, held.upto, held.last) == (1, 2, 3)
    await sessions.drop_turns(KEY, "A", 2, now=T)
    state = await sessions.read(KEY, T)
    assert state is not None
    assert [(turn.number, turn.text) for turn in state.turns] == [(3, "three")]
    assert (state.start, state.last, state.entities) == (3, 3, (CASE,))
    assert state.summary == Summary("", 2, 2)
    assert await sessions.append(KEY, late, series="A", now=T) == 3
    held = await lease(sessions)
    assert (held.first, held.upto, held.last) == (3, 3, 3)


async def test_turns_are_dropped_batch_by_batch(sessions: SessionStore) -> None:
    await say(sessions, *(f"turn {number}" for number in range(1, 8)))
    held = await lease(sessions)
    for upto in (3, 3, 2, 6):
        await sessions.drop_turns(KEY, held.series, upto, now=T)
        held = await lease(sessions)
        assert held.upto == 7
    assert held.first == 7
    page = await sessions.turns(KEY, held.series, 0, 10)
    assert [turn.number for turn in page] == [7]
    await sessions.drop_turns(KEY, held.series, 99, now=T)
    assert await sessions.read(KEY, T) is None
    assert await sessions.idle(T, 10) == ()
    assert await lease(sessions, "w2") is None


async def test_turns_are_read_in_pages(sessions: SessionStore) -> None:
    await say(sessions, *(f"turn {number}" for number in range(1, 8)))
    await sessions.drop_turns(KEY, "A", 2, now=T)
    pages = [await sessions.turns(KEY, "A", after, 2) for after in (0, 4, 6, 7)]
    assert [[turn.number for turn in page] for page in pages] == [[3, 4], [5, 6], [7], []]
    assert await sessions.turns(KEY, "B", 0, 10) == ()


async def test_turns_of_another_numbering_are_not_dropped(sessions: SessionStore) -> None:
    await say(sessions, "one", "two")
    held = await lease(sessions)
    await sessions.drop_turns(KEY, held.series, 2, now=T)
    await say(sessions, "a new one", series="B")
    await sessions.drop_turns(KEY, held.series, 2, now=T)  # a worker that was slow
    assert await texts(sessions) == ["a new one"]


async def test_refused_turns_are_set_aside(sessions: SessionStore) -> None:
    await say(sessions, "one", "二", "three", "four")
    await sessions.drop_turns(KEY, "A", 3, now=T, set_aside={2, 3, 4})
    await sessions.drop_turns(KEY, "A", 4, now=T, set_aside={2, 4})
    aside = await sessions.set_aside(KEY)
    assert [(turn.number, turn.text) for turn in aside] == [(2, "二"), (3, "three"), (4, "four")]
    assert await sessions.read(KEY, T) is None
    assert await sessions.set_aside(SessionKey("shop", "u-1", "s-2")) == ()


# --- both alike ----------------------------------------------------------------------------

KEYS = [KEY, SessionKey("shop", "u-1", "会话"), SessionKey("clinic", "u-1", "s-1")]
MANY = 1_000

which = st.integers(0, len(KEYS) - 1)
number = st.integers(0, 12)
step = st.one_of(
    st.tuples(st.just("wait"), st.sampled_from([1, 59, 60, 1_799, 1_800, 3_600])),
    st.tuples(st.just("append"), which, number, st.sampled_from("ab"), st.integers(0, 3)),
    st.tuples(st.just("read"), which),
    st.tuples(st.just("look"), which),
    st.tuples(st.just("summarise"), which, number),
    st.tuples(st.just("lease"), which, st.sampled_from(["w1", "w2"]), st.booleans()),
    st.tuples(st.just("give back"), which, st.sampled_from(["w1", "w2"])),
    st.tuples(st.just("turns"), which, number, st.integers(1, 4)),
    st.tuples(st.just("drop"), which, number, st.lists(number, max_size=3)),
    st.tuples(st.just("drop leased"), which),
    st.tuples(st.just("aside"), which),
    st.tuples(st.just("idle"), st.sampled_from([0, 60, 1_800])),
)


class Script:
    """Does steps on a store and notes what comes of them."""

    def __init__(self, store: SessionStore) -> None:
        self.store = store
        self.now = T
        self.seen: dict[int, SessionState | None] = {}
        self.leased: dict[int, FlushLease | None] = {}
        self.tokens = itertools.count()

    async def do(self, what: str, *args: Any) -> object:
        name = what.replace(" ", "_")
        try:
            return await getattr(self, name)(*args)
        except IdConflict as error:
            return error.message

    async def wait(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    async def append(self, key: int, id_: int, text: str, named: int) -> int:
        entities = (ORDER, PHONE, CASE)[:named]
        turn = NewTurn(str(id_), "customer", text, self.now, entities)
        series = f"series {next(self.tokens)}"
        return await self.store.append(KEYS[key], turn, series=series, now=self.now)

    async def read(self, key: int) -> SessionState | None:
        return await self.store.read(KEYS[key], self.now)

    async def look(self, key: int) -> None:
        self.seen[key] = await self.read(key)

    async def summarise(self, key: int, upto: int) -> bool | None:
        state = self.seen.get(key)
        if state is None:
            return None
        upto = min(max(upto, state.start), state.last)
        summary = Summary(f"upto {upto}", upto, state.last)
        return await self.store.keep_summary(KEYS[key], state, summary)

    async def lease(self, key: int, worker: str, idle: bool) -> FlushLease | None:  # noqa: FBT001
        before = self.now - OVER if idle else None
        self.leased[key] = await lease(
            self.store, worker, self.now, idle_before=before, key=KEYS[key]
        )
        return self.leased[key]

    async def give_back(self, key: int, worker: str) -> None:
        await self.store.end_flush(KEYS[key], worker)

    async def turns(self, key: int, after: int, limit: int) -> object:
        held = self.leased.get(key)
        series = held.series if held else "none"
        return await self.store.turns(KEYS[key], series, after, limit)

    async def drop(self, key: int, upto: int, aside: list[int]) -> None:
        held = self.leased.get(key)
        if held is not None:
            await self.store.drop_turns(KEYS[key], held.series, upto, now=self.now, set_aside=aside)

    async def drop_leased(self, key: int) -> None:
        held = self.leased.get(key)
        if held is not None:
            await self.drop(key, held.upto, [])

    async def aside(self, key: int) -> object:
        return await self.store.set_aside(KEYS[key])

    async def idle(self, seconds: int) -> object:
        found = await self.store.idle(self.now - timedelta(seconds=seconds), MANY)
        return set(found)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(step, max_size=40))
def test_both_stores_do_the_same(redis_server: RedisServer, prefix: str, steps: list[Any]) -> None:
    async def run() -> None:
        store = redis_sessions(redis_server.url, f"{prefix}_{next(_RUNS)}")
        both = Script(InProcessSessions(TTL_S)), Script(store)
        for one in steps:
            ours, theirs = [await script.do(*one) for script in both]
            assert ours == theirs, one
        for key in range(len(KEYS)):
            for what in ("read", "aside"):
                ours, theirs = [await script.do(what, key) for script in both]
                assert ours == theirs
        await store.close()

    asyncio.run(run())


# --- in this process -----------------------------------------------------------------------


async def test_what_nobody_flushes_is_given_up_in_the_end() -> None:
    store = InProcessSessions(TTL_S)
    await say(store, "one", "two")
    await store.drop_turns(KEY, "A", 1, now=T, set_aside={1})
    other = SessionKey("shop", "u-2", "s-1")
    await say(store, "hello", at=T + timedelta(days=KEPT_DAYS) - MS, key=other)
    assert await store.idle(T, 10) == (KEY,)
    assert len(await store.set_aside(KEY)) == 1
    await say(store, "hello again", at=T + timedelta(days=KEPT_DAYS), key=other)
    assert await store.idle(T, 10) == ()
    assert await store.set_aside(KEY) == ()


async def test_the_memory_of_this_process_is_the_default() -> None:
    async with open_sessions(load_settings(session_ttl_s=TTL_S)) as store:
        assert not store.outlives_process
        assert (await store.ping()).product == "in this process"


# --- Redis ---------------------------------------------------------------------------------


async def test_redis_is_opened_by_its_url(redis_server: RedisServer, prefix: str) -> None:
    chosen = load_settings(redis_url=redis_server.url, collection_prefix=prefix)
    async with open_sessions(chosen) as store:
        assert store.outlives_process
        info = await store.ping()
        assert info.product == "Redis"
        assert info.version.split(".")[0].isdigit()


async def test_two_installations_share_a_redis(redis_server: RedisServer, prefix: str) -> None:
    async with contextlib.AsyncExitStack() as stack:
        stores = [redis_sessions(redis_server.url, f"{prefix}_{name}") for name in "ab"]
        for store in stores:
            stack.push_async_callback(store.close)
        await say(stores[0], "hello")
        assert await texts(stores[1]) == []
        assert await stores[1].idle(T, 10) == ()


async def test_every_key_goes_by_itself_in_the_end(redis_server: RedisServer, prefix: str) -> None:
    store = redis_sessions(redis_server.url, prefix)
    await sessions_with_everything(store)
    async with Redis.from_url(redis_server.url) as redis:
        names = [name async for name in redis.scan_iter(f"{prefix}:session:*")]
        assert {name.rsplit(b":", 1)[1] for name in names} == {
            b"head", b"turns", b"ids", b"entities", b"aside",
        }  # fmt: skip
        longest = KEPT_DAYS * 24 * 3600
        for name in names:
            assert longest - 600 < await redis.ttl(name) <= longest
        # what went by itself is taken from the list of idle sessions, too
        await redis.delete(*names)
    assert await store.idle(T, 10) == (KEY,)
    assert await lease(store) is None
    assert await store.idle(T, 10) == ()
    await store.close()


async def sessions_with_everything(store: SessionStore) -> None:
    for turn in (said("one"), said("two", None, ORDER)):
        await store.append(KEY, turn, series="A", now=T)
    await store.drop_turns(KEY, "A", 1, now=T, set_aside={1})


async def test_a_wrong_password_is_told_apart(redis_server: RedisServer, prefix: str) -> None:
    for url in (
        redis_server.url.replace(redis_server.password, "wrong"),
        f"redis://127.0.0.1:{redis_server.port}/0",
    ):
        store = redis_sessions(url, prefix)
        with pytest.raises(StoreAuthenticationFailed, match="ECPHORIA_REDIS_URL") as caught:
            await store.ping()
        assert "wrong" not in str(caught.value)
        with pytest.raises(StoreAuthenticationFailed):
            await say(store, "hello")
        await store.close()


async def test_nobody_there_is_unavailable(prefix: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    store = redis_sessions(f"redis://127.0.0.1:{port}/0", prefix)
    with pytest.raises(StoreUnavailable, match="pinging"):
        await store.ping()
    with pytest.raises(StoreUnavailable):
        await say(store, "hello")
    await store.close()


async def test_a_server_that_says_nothing_is_unavailable(prefix: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        store = redis_sessions(f"redis://127.0.0.1:{port}/0", prefix, timeout_s=0.2)
        with pytest.raises(StoreUnavailable, match="within"):
            await store.ping()
        await store.close()


async def test_a_killed_server_is_found_again(tmp_path: Path, redis_server: RedisServer) -> None:
    del redis_server  # where it runs, another one does
    with RedisServer(tmp_path) as server:
        store = redis_sessions(server.url, "p")
        await say(store, "hello")
        server.kill9()
        with pytest.raises(StoreUnavailable):
            await say(store, "anybody there?")
        server.start()
        # without its data and without the scripts
        assert await say(store, "hello again") == [1]
        await store.close()


async def test_rubbish_under_a_key_is_a_store_error(redis_server: RedisServer, prefix: str) -> None:
    store = redis_sessions(redis_server.url, prefix)
    await say(store, "hello")
    async with Redis.from_url(redis_server.url) as redis:
        (name,) = [name async for name in redis.scan_iter(f"{prefix}:session:*:turns")]
        await redis.lset(name, 0, "no turn")
        with pytest.raises(StoreError, match="turn 1 of a session cannot be read"):
            await store.read(KEY, T)
        await redis.delete(name)
        await redis.set(name, "no list")
        with pytest.raises(StoreError, match="WRONGTYPE"):
            await store.read(KEY, T)
    await store.close()


@pytest.mark.parametrize(
    "url",
    [
        "http://secret@127.0.0.1",
        "127.0.0.1:6379",
        "redis://:secret@127.0.0.1:port/0",
        "redis://:secret@127.0.0.1/0?no_such_parameter=1",
    ],
)
def test_a_url_that_is_none_is_a_wrong_setting(url: str) -> None:
    with pytest.raises(ConfigurationInvalid, match="ECPHORIA_REDIS_URL") as caught:
        redis_sessions(url, "p")
    assert "secret" not in str(caught.value)
