"""Whatever happens to memories, in whatever order: they stay true, and a plain model knows how.

The model below is the oracle. It keeps a log of what happened, and finds what was known at any
moment by going through the log again from its beginning; it shares no code with the engine.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ecphoria.errors import NotCurrent, NotFound, StoreUnavailable
from ecphoria.lifecycle.history import values_at
from ecphoria.model import (
    EntityInput,
    EntityRef,
    EveryUser,
    FactInput,
    MemoryInput,
    RecallRequest,
    ReceiptStatus,
    RelationInput,
    Role,
    Scope,
    memory_key,
)
from ecphoria.recall.as_known import as_known
from ecphoria.remember.claims import claim_key
from ecphoria.testing import ManualClock
from engines import check_index_equals_graph, settle, with_clock

# Long ago: what expires by this clock is nobody else's.
START = datetime(2021, 6, 1, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
USER = "u1"
ORDERS = ("#882301", "#882302")
VALUES = ("paid", "shipped", "delivered")
RELIABILITY = {"crm": 0.95, "dialogue": 0.70, "ugc": 0.40}
STEPS = 16
EXAMPLES = {"embedded": 25, "servers": 15, "containers": 15}


# --- the oracle ------------------------------------------------------------------------------


@dataclass
class Fact:
    """A memory as the caller gave it."""

    id: str
    given: MemoryInput
    order: str | None
    value: str | None
    reliability: float
    valid_from: datetime
    stated_until: datetime | None
    expires_at: datetime
    supersedes: str | None
    by_hand: bool


@dataclass
class Stand:
    """How a memory stands in a world."""

    fact: Fact
    number: int = 0
    retracted: bool = False
    replaced_by: list[str] = field(default_factory=list)
    fixed: datetime | None = None
    end: datetime | None = None
    ended_by: str | None = None
    replaced: bool = False

    @property
    def order(self):
        return (self.fact.valid_from, self.fact.reliability, self.number, self.fact.id)


class World:
    """What is known after some events, from the first one on."""

    def __init__(self) -> None:
        self.stands: dict[str, Stand] = {}
        self.counts: dict[str, int] = {}

    def happen(self, what, value):
        getattr(self, what)(value)
        self.settle()

    def write(self, facts):
        """Several of one call come at once: each may replace another of them."""
        for fact in facts:
            stand = self.stands[fact.id] = Stand(fact)
            if fact.order is not None:
                stand.number = self.counts[fact.order] = self.counts.get(fact.order, 0) + 1
        for fact in facts:
            self._replace(fact.supersedes, fact)
            for other in list(self.stands.values()):
                if other.fact.supersedes == fact.id:
                    self._replace(fact.id, other.fact)

    def _replace(self, old_id, new):
        old = self.stands.get(old_id)
        if old is None or new.id in old.replaced_by:
            return
        if new.by_hand or new.reliability >= old.fact.reliability:
            old.replaced_by.append(new.id)

    def retract(self, id_):
        self.stands[id_].retracted = True

    def forget(self, ids):
        gone = [self.stands[id_] for id_ in ids]
        for stand in gone:
            for other in self.stands.values():
                by = other.ended_by == stand.fact.id or stand.fact.id in other.replaced_by
                if by and not stand.retracted and other.end is not None:
                    other.fixed = other.end
        for id_ in ids:
            del self.stands[id_]
        for other in self.stands.values():
            other.replaced_by = [by for by in other.replaced_by if by in self.stands]

    def settle(self):
        held = [stand for stand in self.stands.values() if not stand.retracted]
        for stand in held:
            start = stand.fact.valid_from
            names = [self.stands[by] for by in stand.replaced_by if not self.stands[by].retracted]
            ends = [max(start, by.fact.valid_from) for by in names]
            ends += [] if stand.fixed is None else [stand.fixed]
            stand.replaced = bool(ends)
            stand.ended_by = None
            # what never held ends nothing
            stand.end = min(ends, default=None)
        alive = [stand for stand in held if stand.end is None or stand.end > stand.fact.valid_from]
        for stand in held:
            fact = stand.fact
            ends = [end for end in (stand.end, fact.stated_until) if end is not None]
            if stand in alive and fact.order is not None:
                enders = [
                    other
                    for other in alive
                    if other.fact.order == fact.order
                    and other.fact.value != fact.value
                    and other.fact.reliability >= fact.reliability
                    and other.order > stand.order
                ]
                if enders:
                    first = min(enders, key=lambda other: other.order)
                    ends.append(first.fact.valid_from)
                    stand.ended_by = first.fact.id
                    stand.replaced = True
            stand.end = min(ends, default=None)

    def is_current(self, id_):
        stand = self.stands[id_]
        return not stand.retracted and not stand.replaced


class Oracle:
    """All that happened, when, and what follows from it."""

    def __init__(self) -> None:
        self.events: list[tuple[datetime, str, object]] = []
        self.facts: dict[str, Fact] = {}
        self.forgotten: set[str] = set()
        self.now = World()

    def happen(self, moment, what, value):
        self.events.append((moment, what, value))
        self.now.happen(what, value)
        if what == "write":
            self.facts |= {fact.id: fact for fact in value}
        if what == "forget":
            self.forgotten |= set(value)

    def known(self, moment):
        world = World()
        for at, what, value in self.events:
            if at <= moment:
                world.happen(what, value)
        return world

    def history(self, order, as_of, world):
        """Return what is current, what contradicts it, and all that was known, as ids."""
        entries = sorted(
            (
                stand
                for stand in world.stands.values()
                if stand.fact.order == order
                and not stand.retracted
                and stand.fact.id not in self.forgotten
            ),
            key=lambda stand: (stand.fact.valid_from, stand.number, stand.fact.id),
        )
        valid = [
            stand
            for stand in entries
            if stand.fact.valid_from <= as_of and (stand.end is None or stand.end > as_of)
        ]
        best = max(
            valid,
            key=lambda stand: (
                stand.fact.reliability,
                stand.fact.valid_from,
                stand.number,
                stand.fact.id,
            ),
            default=None,
        )
        same = [stand for stand in valid if best and stand.fact.value == best.fact.value]
        return (
            [stand.fact.id for stand in same],
            [stand.fact.id for stand in valid if stand not in same],
            [(stand.fact.id, stand.end) for stand in entries],
        )


# --- faults ----------------------------------------------------------------------------------


class Died(Exception):
    """The process is gone; no more code of it runs."""


class Fault:
    """Where the process dies, or which store does not answer."""

    MUTATING = frozenset({"write_memories", "retract", "forget", "archive", "lease_pending"})
    INDEXING = frozenset({"upsert", "delete"})

    def __init__(self, where=None):
        self.where = where
        self.done: list[str] = []

    def of(self, inner):
        return _Faulty(inner, self)

    async def call(self, name, method, args, kwargs):
        point = (
            "graph" if name in self.MUTATING else "index" if name in self.INDEXING else "marking"
        )
        if self.where == ("down", point):
            msg = "the store is down"
            raise StoreUnavailable(msg)
        if self.where == ("before", point):
            raise Died
        result = await method(*args, **kwargs)
        self.done.append(name)
        if self.where == ("after", point):
            raise Died
        return result


class _Faulty:
    def __init__(self, inner, fault):
        self._inner = inner
        self._fault = fault

    def __getattr__(self, name):
        method = getattr(self._inner, name)
        if name not in Fault.MUTATING | Fault.INDEXING | {"mark_indexed"}:
            return method

        async def call(*args, **kwargs):
            return await self._fault.call(name, method, args, kwargs)

        return call


FAULTS = st.one_of(
    st.none(),
    st.none(),
    st.sampled_from(
        [
            ("down", "index"),
            *((when, where) for when in ("before", "after") for where in ("graph", "index")),
            ("before", "marking"),
            ("after", "marking"),
        ]
    ),
)
AGO = st.sampled_from([timedelta(0), HOUR, DAY, 2 * DAY, 5 * DAY, 9 * DAY, -DAY])
PICK = st.integers(0, 39)


ITEM = st.fixed_dictionaries(
    {
        "order": st.sampled_from([ORDERS[0], ORDERS[0], ORDERS[0], ORDERS[1], None]),
        "value": st.sampled_from(VALUES),
        "source": st.sampled_from(sorted(RELIABILITY)),
        "ago": AGO,
        "lasts": st.sampled_from([None, None, None, 3 * DAY]),
        "named": st.booleans(),
        "kind": st.sampled_from(["episodic", "semantic"]),
    }
)


# --- the machine -----------------------------------------------------------------------------


class LifeCycle(RuleBasedStateMachine):
    """Random lives of memories, each in a tenant of its own."""

    def __init__(self, engine, loop):
        super().__init__()
        self._loop = loop
        self._tenant = f"t-{secrets.token_hex(8)}"
        self._scope = Scope(self._tenant, "test", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)
        self._clock = ManualClock(START, name=self._tenant)
        self._stores = engine
        self._engine = with_clock(engine, self._clock)
        self._oracle = Oracle()
        self._count = 0
        # ids of memories that were said to be replaced before they came
        self._foretold = []

    def _do(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    @property
    def _now(self):
        return self._clock.now()

    @initialize(items=st.lists(ITEM, min_size=2, max_size=4))
    def shop(self, items):
        self._do(
            self._engine.upsert_entities(
                self._scope,
                [
                    EntityInput("User", USER, {"name": "Ann"}),
                    *(EntityInput("Order", order) for order in ORDERS),
                ],
                [
                    RelationInput("PLACED", EntityRef("User", USER), EntityRef("Order", order))
                    for order in ORDERS
                ],
            )
        )
        self._remember([self._input(**item) for item in items], None)

    # --- one call, perhaps interrupted -----------------------------------------------------

    def _call(self, verb, where, *args, **kwargs):
        """Return what a verb said and what it did to the graph; nothing said = it died.

        Whoever was interrupted is followed by a new process on the same stores.
        """
        fault = Fault(where)
        engine = with_clock(
            self._stores,
            self._clock,
            graph=fault.of(self._stores.graph),
            index=fault.of(self._stores.index),
        )
        try:
            said = self._do(getattr(engine, verb)(*args, **kwargs))
        except Died:
            said = None
        return said, fault.done

    def _input(self, *, order, value, source, ago, lasts, named, kind):
        self._count += 1
        at = self._now - ago
        facts = ()
        if order is not None:
            facts = (FactInput(EntityRef("Order", order), "order.status", value),)
        return MemoryInput(
            text=f"Note {self._count}: a courier came by.",
            user_id=USER,
            id=f"m{self._count}" if named else None,
            kind=kind,
            source=source,
            occurred_at=at,
            valid_from=at,
            valid_until=None if lasts is None else at + lasts,
            facts=facts,
        )

    def _fact(self, id_, item, *, supersedes=None, by_hand=False):
        lives = {"episodic": 60 * DAY, "semantic": None}[item.kind]
        order = item.facts[0].entity.id if item.facts else None
        return Fact(
            id=id_,
            given=item,
            order=order,
            value=item.facts[0].value if item.facts else None,
            reliability=RELIABILITY[item.source],
            valid_from=item.valid_from,
            stated_until=item.valid_until,
            expires_at=datetime.max.replace(tzinfo=UTC) if lives is None else self._now + lives,
            supersedes=supersedes or item.supersedes,
            by_hand=by_hand,
        )

    def _picked(self, pick):
        oracle = self._oracle
        # mostly one that something can happen to, the latest first
        alive = [id_ for id_ in reversed(oracle.now.stands) if oracle.now.is_current(id_)]
        ids = alive if alive and pick % 4 else list(reversed(oracle.facts))
        return ids[pick // 4 % len(ids)]

    @rule(items=st.lists(ITEM, min_size=1, max_size=3), where=FAULTS, replaces=st.none() | PICK)
    def remember(self, items, where, replaces):
        given = [self._input(**item) for item in items]
        if replaces is not None and given[0].id is not None:
            # on the writer's word, of one that is there, or of one that is yet to come
            known = [self._picked(replaces // 2), f"late{self._count}"]
            given[0] = replace(given[0], supersedes=known[replaces % 2])
            self._foretold += known[1:] if replaces % 2 else []
        self._remember(given, where)

    @precondition(lambda self: self._foretold)
    @rule(item=ITEM, where=FAULTS)
    def arrive_late(self, item, where):
        given = replace(self._input(**item), id=self._foretold.pop())
        self._remember([given], where)

    def _remember(self, given, where):
        said, done = self._call("remember", where, self._scope, given)
        if said is None and "write_memories" not in done:
            return
        ids = (
            [receipt.id for receipt in said]
            if said is not None
            else [item.id or self._id_of(item) for item in given]
        )
        if said is not None:
            rejected = [receipt for receipt in said if receipt.status is ReceiptStatus.REJECTED]
            assert rejected == []
            assert ReceiptStatus.DUPLICATE not in {receipt.status for receipt in said}
            if where is not None and where[0] == "down":
                assert not any(receipt.indexed for receipt in said)
        pairs = zip(ids, given, strict=True)
        self._oracle.happen(self._now, "write", [self._fact(*pair) for pair in pairs])

    def _id_of(self, item):
        # nobody was told the id: a repeated call finds it
        (receipt,) = self._do(self._engine.remember(self._scope, [item]))
        assert receipt.status is ReceiptStatus.DUPLICATE
        return receipt.id

    @rule(pick=PICK, where=FAULTS)
    def repeat(self, pick, where):
        id_ = self._picked(pick)
        fact = self._oracle.facts[id_]
        if fact.by_hand:
            return
        said, _ = self._call("remember", where, self._scope, [fact.given])
        if said is None:
            return
        if id_ in self._oracle.forgotten:
            assert (said[0].status, said[0].code) == ("REJECTED", "MEMORY_FORGOTTEN")
        else:
            assert (said[0].status, said[0].id) == ("DUPLICATE", id_)

    @rule(pick=PICK, item=ITEM, how=st.sampled_from(["supersede", "correct"]), where=FAULTS)
    def replace_by_hand(self, pick, item, how, where):
        id_ = self._picked(pick)
        old = self._oracle.facts[id_]
        new = self._input(**(item | {"order": old.order, "named": True, "lasts": None}))
        args = (self._scope, id_, new, "客户更正")
        refusal = self._refusal(id_)
        if refusal is not None:
            with pytest.raises(refusal):
                self._call(how, where, *args)
            return
        said, done = self._call(how, where, *args)
        if said is None and "write_memories" not in done:
            return
        if said is not None:
            assert id_ in said.supersedes
        new = replace(new, kind=old.given.kind)
        if how == "correct":
            new = replace(new, valid_from=old.valid_from, valid_until=old.stated_until)
        fact = self._fact(new.id, new, supersedes=id_, by_hand=True)
        self._oracle.happen(self._now, "write", [fact])

    def _refusal(self, id_):
        if id_ in self._oracle.forgotten:
            return NotFound
        return None if self._oracle.now.is_current(id_) else NotCurrent

    @rule(pick=PICK, where=FAULTS)
    def retract(self, pick, where):
        id_ = self._picked(pick)
        args = (self._scope, USER, id_, "never happened")
        refusal = self._refusal(id_)
        if refusal is not None:
            with pytest.raises(refusal):
                self._call("retract", where, *args)
            return
        _, done = self._call("retract", where, *args)
        if "retract" in done:
            self._oracle.happen(self._now, "retract", id_)

    @rule(picks=st.lists(PICK, min_size=1, max_size=2), where=FAULTS)
    def forget(self, picks, where):
        ids = list(dict.fromkeys(self._picked(pick) for pick in picks))
        there = [id_ for id_ in ids if id_ not in self._oracle.forgotten]
        said, done = self._call("forget", where, self._scope, USER, ids, "asked for")
        if said is not None:
            assert [item.id for item in said.items] == there
            assert said.forgotten == len(there)
        if "forget" in done:
            self._oracle.happen(self._now, "forget", there)

    @rule(
        by=st.sampled_from([timedelta(milliseconds=1), HOUR, DAY, 20 * DAY, 61 * DAY]),
        where=FAULTS,
    )
    def time_passes(self, by, where):
        self._clock.advance(by)
        _, done = self._call("age", where)
        due = [
            fact.id
            for fact in self._oracle.facts.values()
            if fact.expires_at <= self._now and fact.id not in self._oracle.forgotten
        ]
        if due and "forget" in done:
            self._oracle.happen(self._now, "forget", due)

    @rule(where=FAULTS)
    def reconcile(self, where):
        with_fault = where if where is None or where[0] != "down" else None
        self._call("reconcile", with_fault)

    # --- what must hold --------------------------------------------------------------------

    @rule(order=st.sampled_from(ORDERS), as_of=AGO, event=PICK)
    def ask(self, order, as_of, event):
        known_at = self._oracle.events[event % len(self._oracle.events)][0]
        moment = self._now - as_of
        told = self._do(
            self._engine.attribute_history(
                self._scope,
                USER,
                EntityRef("Order", order),
                "order.status",
                as_of=moment,
                known_at=known_at,
            )
        )
        expected = self._oracle.history(order, moment, self._oracle.known(known_at))
        assert _ids(told) == expected

    def teardown(self):
        try:
            self._do(self._check())
        finally:
            note(f"tenant {self._tenant}")

    async def _check(self):
        await self._settled()
        oracle, engine = self._oracle, self._engine
        memories = {
            memory.id: memory for memory in await check_index_equals_graph(engine, self._tenant)
        }
        # nothing acknowledged is lost, nothing forgotten is there
        assert set(memories) == set(oracle.now.stands) == set(oracle.facts) - oracle.forgotten
        for id_, stand in oracle.now.stands.items():
            assert memories[id_].text == stand.fact.given.text
            assert memories[id_].valid_from == stand.fact.valid_from
            if not stand.retracted:
                assert (id_, memories[id_].valid_until) == (id_, stand.end)
        assert await engine.memories(self._scope, USER, list(oracle.forgotten) or ["none"]) == {}
        keys = [memory_key(self._tenant, id_) for id_ in oracle.forgotten]
        assert await engine.index.existing(keys) == frozenset()
        for order in ORDERS:
            await self._check_history(order)
            await self._check_recall(order)

    async def _settled(self):
        while True:
            # a worker that died keeps its lease for a while
            self._clock.advance(timedelta(seconds=self._engine.settings.lease_s))
            await self._engine.reconcile()
            if not (await self._engine.graph.counts(self._tenant))["pending"]:
                break
        await settle(self._engine, self._tenant)

    async def _check_history(self, order):
        ref = EntityRef("Order", order)
        claim = claim_key(self._tenant, USER, "order.status", _canonical(ref), None)
        rows = await self._engine.graph.claimed(claim)
        moments = sorted({at for at, _, _ in self._oracle.events})
        starts = {fact.valid_from for fact in self._oracle.facts.values()}
        for known_at in moments:
            world = self._oracle.known(known_at)
            seen = [then for row in rows if (then := as_known(row, known_at)) is not None]
            for as_of in sorted({*starts, *moments}):
                told = _ids(values_at(seen, as_of))
                assert told == self._oracle.history(order, as_of, world), (known_at, as_of)
        told = await self._engine.attribute_history(self._scope, USER, ref, "order.status")
        assert _ids(told) == self._oracle.history(order, self._now, self._oracle.now)
        # one undisputed value
        assert len({memory.value for memory in told.current}) <= 1

    async def _check_recall(self, order):
        now = {
            id_
            for id_, stand in self._oracle.now.stands.items()
            if not stand.retracted
            and stand.fact.valid_from <= self._now
            and (stand.end is None or stand.end > self._now)
        }
        question = f"What is the status of order {order}? Which courier came by?"
        found = await self._engine.recall(self._scope, RecallRequest(question, USER, limit=50))
        assert {item.memory.id for item in found.memories} <= now
        ever = await self._engine.recall(
            self._scope, RecallRequest(f"{question} And before?", USER, limit=50)
        )
        held = {id_ for id_, stand in self._oracle.now.stands.items() if not stand.retracted}
        assert {item.memory.id for item in ever.memories} <= held


def _canonical(ref):
    return EntityRef(ref.type, ref.id.removeprefix("#"))


def _ids(told):
    return (
        [memory.id for memory in told.current],
        [memory.id for memory in told.conflicting],
        [(memory.id, memory.valid_until) for memory in told.entries],
    )


async def test_any_life_is_told_truly(engine, store_kind):
    loop = asyncio.get_running_loop()
    # in a thread of its own: the machine waits for each step, which runs on this loop
    await asyncio.to_thread(
        run_state_machine_as_test,
        lambda: LifeCycle(engine, loop),
        settings=settings(
            max_examples=EXAMPLES[store_kind],
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )
