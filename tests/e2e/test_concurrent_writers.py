"""Many writers at once, in one process and in several: one truth, all of its history, no error."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from ecphoria.clock import Clock
from ecphoria.errors import NotCurrent, StoreUnavailable
from ecphoria.lifecycle.history import values_at
from ecphoria.model import (
    EntityInput,
    EntityRef,
    FactInput,
    MemoryInput,
    ReceiptStatus,
    RelationInput,
    Status,
)
from ecphoria.recall.as_known import as_known
from ecphoria.stores.milvus import MilvusIndex
from ecphoria.stores.neo4j import Neo4jGraph
from engines import all_memories, check_index_equals_graph, settle, with_clock

WRITERS = 8
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
USER = "u1"
ORDERS = tuple(EntityRef("Order", f"#88230{number}") for number in range(3))
VALUES = ("placed", "paid", "shipped", "delivered")


@pytest.fixture
async def shop(engine, admin):
    await engine.upsert_entities(
        admin,
        [EntityInput("User", USER, {"name": "Ann"}), *(EntityInput("Order", o.id) for o in ORDERS)],
        [RelationInput("PLACED", EntityRef("User", USER), order) for order in ORDERS],
    )
    return engine


@contextlib.asynccontextmanager
async def replicas(engine, stores, number):
    """Yield engines as so many processes would have them: connections and locks of their own."""
    settings = engine.settings
    async with contextlib.AsyncExitStack() as stack:
        found = []
        for _ in range(number):
            graph = await stack.enter_async_context(
                Neo4jGraph.open(
                    stores.neo4j_uri,
                    user=stores.neo4j_user,
                    password=stores.neo4j_password,
                    database=stores.neo4j_database,
                    domain=engine.domain,
                    timeout_s=settings.store_timeout_s,
                )
            )
            index = MilvusIndex(
                stores.milvus_uri,
                token=None,
                prefix=settings.collection_prefix,
                timeout_s=settings.store_timeout_s,
            )
            stack.push_async_callback(index.close)
            await index.prepare(engine.embedder.spec)
            found.append(with_clock(engine, Clock(), graph=graph, index=index))
        yield found


@pytest.fixture(params=["one process", "eight processes"])
async def writers(request, shop, stores):
    if request.param == "one process":
        yield [shop] * WRITERS
        return
    async with replicas(shop, stores, WRITERS) as engines:
        yield engines


def status(order, value, at, source="crm", id_=None):
    return MemoryInput(
        text="",
        user_id=USER,
        id=id_,
        source=source,
        facts=(FactInput(order, "order.status", value),),
        occurred_at=NOW + at * DAY,
        valid_from=NOW + at * DAY,
    )


def accepted(receipts):
    return all(receipt.status is not ReceiptStatus.REJECTED for receipt in receipts)


# --- one attribute -------------------------------------------------------------------------


async def test_writers_of_one_attribute_leave_one_value_and_all_of_its_history(
    writers, shop, admin, tenant
):
    async def write(number, engine):
        receipts = []
        for part in range(2):
            at = 2 * number + part
            # every writer goes through the orders in another direction
            orders = ORDERS if number % 2 else ORDERS[::-1]
            receipts += await engine.remember(
                admin,
                [status(order, VALUES[at % 4], at, id_=f"{order.id}-{at}") for order in orders],
            )
        return receipts

    written = await asyncio.gather(*(write(*pair) for pair in enumerate(writers)))
    assert all(accepted(receipts) for receipts in written)
    await settle(shop, tenant)
    memories = await check_index_equals_graph(shop, tenant)
    for order in ORDERS:
        own = [memory for memory in memories if memory.id.startswith(order.id)]
        own.sort(key=lambda memory: memory.valid_from)
        assert len(own) == 2 * WRITERS
        ends = [memory.valid_from for memory in own[1:]]
        assert [memory.valid_until for memory in own] == [*ends, None]
        assert [memory.status for memory in own] == [Status.SUPERSEDED] * len(ends) + [
            Status.ACTIVE
        ]
        assert sorted(memory.claim_number for memory in own) == list(range(1, len(own) + 1))
        # whenever one looked, there was one value, and it was the newest that was known
        for known_at in sorted({memory.recorded_at for memory in own}):
            seen = [then for one in own if (then := as_known(one, known_at)) is not None]
            told = values_at(seen, NOW + 99 * DAY)
            assert told.current[-1].id == seen[-1].id
            assert len({one.value for one in told.current}) == 1
            assert told.conflicting == ()


async def test_what_is_taken_back_while_others_write_leaves_one_value(writers, shop, admin, tenant):
    order = ORDERS[0]
    for number in range(4):
        await shop.remember(admin, [status(order, "shipped", 10 * number, id_=f"shipped-{number}")])
        await asyncio.gather(
            writers[0].retract(admin, USER, f"shipped-{number}", "it was another order"),
            *(
                engine.remember(
                    admin, [status(order, VALUES[at % 2], 10 * number + at, id_=f"{number}-{at}")]
                )
                for at, engine in enumerate(writers[1:4], start=1)
            ),
        )
    await settle(shop, tenant)
    await check_index_equals_graph(shop, tenant)
    told = await shop.attribute_history(admin, USER, order, "order.status", as_of=NOW + 99 * DAY)
    assert {memory.id for memory in told.current} == {"3-3"}
    assert len(told.entries) == 12
    assert not any(memory.id.startswith("shipped") for memory in told.entries)


async def test_a_memory_is_taken_back_once(writers, shop, admin):
    await shop.remember(admin, [status(ORDERS[0], "paid", 0, id_="paid")])
    tried = await asyncio.gather(
        *(engine.retract(admin, USER, "paid", "never was") for engine in writers),
        return_exceptions=True,
    )
    assert {type(item) for item in tried} <= {NotCurrent, type(tried[0])}
    assert any(not isinstance(item, Exception) for item in tried)
    told = await shop.attribute_history(admin, USER, ORDERS[0], "order.status")
    assert told.entries == ()


# --- the same again ------------------------------------------------------------------------


@pytest.mark.parametrize("id_", [None, "mine"])
async def test_replays_at_once_make_one_memory(writers, shop, admin, tenant, id_):
    item = MemoryInput(text="包裹在17号柜，明天前取走。", user_id=USER, id=id_, occurred_at=NOW)
    done = await asyncio.gather(*(engine.remember(admin, [item]) for engine in writers))
    receipts = [receipt for (receipt,) in done]
    assert Counter(receipt.status for receipt in receipts) == {
        ReceiptStatus.CREATED: 1,
        ReceiptStatus.DUPLICATE: WRITERS - 1,
    }
    assert len({receipt.id for receipt in receipts}) == 1
    await settle(shop, tenant)
    (memory,) = await check_index_equals_graph(shop, tenant)
    assert memory.reinforced == WRITERS - 1


async def test_a_duplicate_says_indexed_only_when_it_is(shop, admin, tenant):
    down = with_clock(shop, shop.clock, index=_Down(shop.index))
    item = MemoryInput(text="The parcel waits at locker 17.", user_id=USER)
    near = replace(item, text="The parcel waits at the locker 17.")
    (first,) = await down.remember(admin, [item])
    assert (first.status, first.indexed) == (ReceiptStatus.CREATED, False)
    for again in (item, replace(item, id=first.id)):
        (receipt,) = await down.remember(admin, [again])
        assert (receipt.status, receipt.indexed) == (ReceiptStatus.DUPLICATE, False)
    await settle(shop, tenant)
    for again in (item, near):
        (receipt,) = await shop.remember(admin, [again])
        assert (receipt.status, receipt.id) == (ReceiptStatus.DUPLICATE, first.id)
        assert receipt.indexed


class _Down:
    """An index that cannot be written."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return self._refuse if name in {"upsert", "delete"} else getattr(self._inner, name)

    async def _refuse(self, *_args):
        msg = "the index is down"
        raise StoreUnavailable(msg)


# --- coming and going ----------------------------------------------------------------------


async def test_writing_forgetting_and_reconciling_at_once(writers, shop, admin, tenant):
    async def one(number, engine):
        ids = [f"m{number}-{part}" for part in range(6)]
        for id_ in ids:
            item = MemoryInput(text=f"Locker {id_} is free.", user_id=USER, id=id_)
            assert accepted(await engine.remember(admin, [item]))
            if id_.endswith(("1", "4")):
                await engine.forget(admin, USER, [id_], "asked for")
            if id_.endswith("2"):
                await engine.reconcile()

    await asyncio.gather(*(one(*pair) for pair in enumerate(writers)))
    await settle(shop, tenant)
    memories = await check_index_equals_graph(shop, tenant)
    assert {memory.id for memory in memories} == {
        f"m{number}-{part}" for number in range(WRITERS) for part in (0, 2, 3, 5)
    }


class _Before:
    """A graph on which something happens between what a writer read and what it writes."""

    def __init__(self, inner, happen):
        self._inner = inner
        self._happen = happen

    def __getattr__(self, name):
        return getattr(self._inner, name)

    async def write_memories(self, *args, **kwargs):
        happen, self._happen = self._happen, None
        if happen is not None:
            await happen()
        return await self._inner.write_memories(*args, **kwargs)


@pytest.mark.parametrize("gone", ["forgotten", "taken back", "replaced"])
@pytest.mark.parametrize(
    "text", ["The parcel waits at locker 17.", "the parcel waits at the locker 17."]
)
async def test_what_was_known_and_goes_while_it_is_said_again_is_news(
    shop, admin, tenant, gone, text
):
    (old,) = await shop.remember(
        admin,
        [MemoryInput(text="The parcel waits at locker 17.", user_id=USER, occurred_at=NOW)],
    )

    async def happen():
        if gone == "forgotten":
            await shop.forget(admin, USER, [old.id], "asked for")
        elif gone == "taken back":
            await shop.retract(admin, USER, old.id, "never was")
        else:
            new = MemoryInput(text="The parcel was sent back.", user_id=USER)
            await shop.supersede(admin, old.id, new, "it was")

    writer = with_clock(shop, shop.clock, graph=_Before(shop.graph, happen))
    again = MemoryInput(text=text, user_id=USER, occurred_at=NOW + DAY)
    (receipt,) = await writer.remember(admin, [again])
    assert receipt.status is ReceiptStatus.CREATED
    assert receipt.id != old.id
    assert (await shop.memory(admin, USER, receipt.id)).text == text
    await settle(shop, tenant)
    await check_index_equals_graph(shop, tenant)
    assert (await shop.memories(admin, USER, [old.id]) == {}) is (gone == "forgotten")


async def test_workers_share_what_is_left_over(shop, stores, admin, tenant):
    down = with_clock(shop, shop.clock, index=_Down(shop.index))
    items = [
        MemoryInput(text=f"Locker {number} is free.", user_id=USER, id=f"m{number}")
        for number in range(40)
    ]
    await down.remember(admin, items)
    embedded = Counter()

    class Counting:
        spec = shop.embedder.spec

        async def embed_passages(self, texts):
            embedded.update(texts)
            return await shop.embedder.embed_passages(texts)

    async with replicas(shop, stores, 3) as engines:
        await asyncio.gather(
            *(replace(engine, embedder=Counting()).reconcile() for engine in engines)
        )
    await settle(shop, tenant)
    assert len(await check_index_equals_graph(shop, tenant)) == len(items)
    assert {embedded[item.text] for item in items} == {1}


async def test_ageing_in_several_processes_erases_once(shop, stores, admin, tenant):
    await shop.remember(
        admin,
        [
            MemoryInput(text=f"Locker {number} is free.", user_id=USER, expires_at=NOW)
            for number in range(10)
        ],
    )
    async with replicas(shop, stores, 3) as engines:
        reports = await asyncio.gather(*(engine.age() for engine in engines))
    # others' expired memories may be among them, never fewer
    assert sum(report.expired for report in reports) >= 10
    await settle(shop, tenant)
    assert await all_memories(shop, tenant) == []
    assert await check_index_equals_graph(shop, tenant) == []
