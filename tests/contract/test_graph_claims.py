"""Memories of one attribute in the graph: one order of them, whoever writes, however often."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from builders import pending_memory
from ecphoria.model import (
    EntityRef,
    IndexState,
    Link,
    LinkMethod,
    Status,
    entity_key,
    memory_key,
)
from ecphoria.recall.as_known import as_known
from ecphoria.stores.graph_rows import session_key
from ecphoria.stores.neo4j import Neo4jGraph
from ecphoria.stores.ports import EntityRow, Mention, NewMemory, Reinforcement, RelationRow, Uses
from ecphoria_schema.domain import shipped_domain

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DOMAIN = shipped_domain()


def opened(stores):
    return Neo4jGraph.open(
        stores.neo4j_uri,
        user=stores.neo4j_user,
        password=stores.neo4j_password,
        database=stores.neo4j_database,
        domain=DOMAIN,
        timeout_s=60,
    )


@pytest.fixture
async def graph(stores):
    async with opened(stores) as store:
        await store.migrate()
        yield store


def day(number):
    return NOW + timedelta(days=number)


def memory(tenant, id_, value=None, at=0.0, **changes):
    values = {
        "topic": "order_status",
        "text": f"订单 status: {value}",
        "recorded_at": NOW,
        "attribute": "order.status" if value else None,
        "value": value,
        "claim": f"{tenant}|Claim|1" if value else None,
    } | changes
    return pending_memory(tenant, id_, day(at), **values)


async def write(graph, *memories, call="t", now=NOW, **more):
    new = [NewMemory(item, **more) for item in memories]
    return (await graph.write_memories(new, call, now)).writes


async def stored(graph, tenant, *ids):
    found = {item.id: item for item in await graph.memories(tenant, ids)}
    return [found.get(id_) for id_ in ids]


def ids(keys):
    return [key.rsplit("|", 1)[1] for key in keys]


async def test_bulk_and_one_by_one_and_backwards_end_the_same(graph, tenant):
    values = [("a", "paid", 1), ("b", "shipped", 3), ("c", "shipped", 4), ("d", "delivered", 6)]
    for name, order in (("bulk", None), ("single", values), ("back", values[::-1])):
        items = [
            memory(tenant, f"{name}-{id_}", value, at, claim=f"{tenant}|Claim|{name}")
            for id_, value, at in order or values
        ]
        if order is None:
            await write(graph, *items)
        else:
            for item in items:
                await write(graph, item)
        found = await stored(graph, tenant, *(f"{name}-{id_}" for id_, _, _ in values))
        assert [item.valid_until for item in found] == [day(3), day(6), day(6), None]
        assert [item.status for item in found] == [Status.SUPERSEDED] * 3 + [Status.ACTIVE]


async def test_the_write_tells_what_it_ended_and_what_ended_it(graph, tenant):
    await write(graph, memory(tenant, "a", "paid", 1))
    (newer,) = await write(graph, memory(tenant, "c", "delivered", 5))
    (late,) = await write(graph, memory(tenant, "b", "shipped", 3))
    (doubt,) = await write(graph, memory(tenant, "d", "lost", 7, source_id="ugc"))
    assert ids(newer.supersedes) == ["a"]
    assert ids([late.superseded_by]) == ["c"]
    assert ids(doubt.conflicts_with) == ["c"]


async def test_eight_writers_at_once_leave_one_current_value_and_all_history(stores, tenant):
    async def one(number):
        async with opened(stores) as own:
            item = memory(tenant, f"m{number}", f"value {number}", number)
            return await write(own, item, call=f"t{number}")

    async with opened(stores) as graph:
        await graph.migrate()
        await asyncio.gather(*(one(number) for number in range(8)))
        found = await stored(graph, tenant, *(f"m{number}" for number in range(8)))
    assert [item.valid_until for item in found] == [*(day(number) for number in range(1, 8)), None]
    assert [item.id for item in found if item.status is Status.ACTIVE] == ["m7"]
    assert sorted(item.claim_number for item in found) == list(range(1, 9))


async def test_the_past_is_told_as_it_was_known(graph, tenant):
    await write(graph, memory(tenant, "a", "paid", 1), now=day(10))
    await write(graph, memory(tenant, "c", "delivered", 5), now=day(11))
    await write(graph, memory(tenant, "b", "shipped", 3), now=day(12))
    (a,) = await stored(graph, tenant, "a")
    assert a.valid_until == day(3)
    assert [as_known(a, day(at)).valid_until for at in (10, 11, 12)] == [None, day(5), day(3)]
    assert as_known(a, NOW - timedelta(days=1)) is None


async def test_what_is_taken_back_gives_its_place_back(graph, tenant):
    await write(graph, memory(tenant, "a", "paid", 1))
    await write(graph, memory(tenant, "b", "shipped", 3))
    pending = await graph.retract(tenant, "b", "token", day(9), reason="客户弄错了", by="ann")
    assert sorted(item.memory.id for item in pending) == ["a", "b"]
    a, b = await stored(graph, tenant, "a", "b")
    assert (a.status, a.valid_until, a.invalidated_at) == (Status.ACTIVE, None, None)
    assert (b.status, b.past[-1].status) == (Status.DISABLED, Status.ACTIVE)
    assert await graph.retract(tenant, "b", "token", day(9), reason="again", by="ann") == ()


async def test_what_a_forgotten_memory_ended_stays_ended(graph, tenant):
    await write(graph, memory(tenant, "a", "paid", 1), memory(tenant, "b", "shipped", 3))
    (gone,) = await graph.forget([memory_key(tenant, "b")], "token", day(9), "asked for")
    assert (gone.id, gone.user_id) == ("b", "u1")
    a, b = await stored(graph, tenant, "a", "b")
    assert (a.status, a.valid_until) == (Status.SUPERSEDED, day(3))
    assert b is None
    await write(graph, memory(tenant, "c", "paid", 5))
    (a,) = await stored(graph, tenant, "a")
    assert a.valid_until == day(3)


async def test_what_is_forgotten_leaves_no_word_and_does_not_come_back(graph, tenant):
    item = memory(tenant, "a", "secret", 1, evidence="秘密", session_id="s1")
    await write(graph, item)
    key = memory_key(tenant, "a")
    await graph.forget([key], "gone", day(9), "asked for")
    assert await graph.forget([key], "again", day(9), "asked for") == ()
    (write_,) = await write(graph, item)
    assert write_.outcome == "FORGOTTEN"
    rows = await graph._read("looking", _everything(key))  # what no verb shows
    (props,) = [row["props"] for row in rows]
    assert "秘密" not in str(props)
    assert "secret" not in str(props)
    assert props["status"] == "forgotten"


def _everything(key):
    async def work(tx):
        result = await tx.run(
            "MATCH (m:Memory {key: $k}) RETURN properties(m) AS props", {"k": key}
        )
        return [dict(record) async for record in result]

    return work


async def test_replacing_by_name_takes_a_source_as_good(graph, tenant):
    await write(graph, memory(tenant, "crm"))
    (less,) = await write(graph, memory(tenant, "ugc", source_id="ugc", supersedes="crm"))
    (crm,) = await stored(graph, tenant, "crm")
    assert (ids(less.conflicts_with), crm.status) == (["crm"], Status.ACTIVE)
    hand = memory(tenant, "hand", source_id="ugc", supersedes="crm", valid_from=day(2))
    (more,) = await write(graph, hand, how="hand", reason="客户要求更正", by="ann")
    (crm,) = await stored(graph, tenant, "crm")
    assert (ids(more.supersedes), crm.status, crm.valid_until) == (
        ["crm"],
        Status.SUPERSEDED,
        day(2),
    )
    lineage = await graph.lineage(tenant, ["crm"])
    (by,) = [item for item in lineage["crm"] if item.type == "SUPERSEDES"]
    assert (by.other, by.how, by.reason, by.by) == ("hand", "hand", "客户要求更正", "ann")


async def test_saying_it_again_is_counted(graph, tenant):
    item = memory(tenant, "a")
    await write(graph, item)
    (again,) = await write(graph, item, call="another")
    assert again.outcome == "DUPLICATE"
    assert again.index_state is IndexState.PENDING
    written = await graph.write_memories([], "t", NOW, [Reinforcement(item.key, "better words")])
    assert [entry.memory.text for entry in written.pending] == ["better words"]
    (found,) = await stored(graph, tenant, "a")
    assert (found.reinforced, found.text) == (2, "better words")


async def test_two_workers_never_lease_the_same_row(stores, tenant):
    async with opened(stores) as graph:
        await graph.migrate()
        await write(graph, *(memory(tenant, f"m{number}") for number in range(20)))

    async def take(worker):
        async with opened(stores) as own:
            rows = await own.lease_pending(worker, 7, NOW, day(1), f"{tenant}|")
            return [row.key for row in rows if row.key.startswith(f"{tenant}|")]

    taken = await asyncio.gather(*(take(f"{tenant}-{number}") for number in range(3)))
    together = [key for keys in taken for key in keys]
    assert len(together) == len(set(together)) == 20
    assert await take(f"{tenant}-late") == []


async def test_a_lease_ends_with_its_time_or_a_change(graph, tenant):
    await write(graph, memory(tenant, "m"))
    key = memory_key(tenant, "m")

    async def take(worker, now):
        rows = await graph.lease_pending(worker, 1000, now, now + timedelta(hours=1), f"{tenant}|")
        return [row.key for row in rows if row.key == key]

    assert await take(f"{tenant}-one", NOW) == [key]
    assert await take(f"{tenant}-two", NOW) == []
    assert await take(f"{tenant}-one", NOW) == [key]
    assert await take(f"{tenant}-two", day(1)) == [key]
    await graph.requeue([key], "changed")
    assert await take(f"{tenant}-three", day(1)) == [key]


async def test_a_task_is_leased_to_one_worker(graph, tenant):
    until = NOW + timedelta(minutes=1)
    assert await graph.take_lease(tenant, "one", NOW, until)
    assert not await graph.take_lease(tenant, "two", NOW, until)
    assert await graph.take_lease(tenant, "one", NOW, until)
    assert await graph.take_lease(tenant, "two", until, until + timedelta(minutes=1))


ORDER = EntityRef("Order", "882301")


async def link_of(graph, tenant):
    return (await graph.links(tenant, ["m"])).get("m", ())


async def waiting(graph, tenant):
    mentions = tuple(
        Mention("#882301", EntityRef("Order", id_), 0.9) for id_ in ("882301", "#882301")
    )
    await write(graph, memory(tenant, "m"), mentions=mentions)


def placed(user):
    return RelationRow("PLACED", EntityRef("User", user), ORDER)


async def test_a_mention_waits_for_its_entity_and_its_owner(graph, tenant):
    await waiting(graph, tenant)
    await graph.upsert_entities(tenant, [EntityRow(ORDER, {}, NOW)], [])
    assert await link_of(graph, tenant) == ()
    await graph.upsert_entities(
        tenant, [EntityRow(EntityRef("User", "u1"), {"name": "王芳"}, NOW)], [placed("u1")]
    )
    (link,) = await link_of(graph, tenant)
    assert (link.entity, link.how, link.certainty) == (ORDER, LinkMethod.ARRIVED, 0.9)
    (found,) = await graph.memories(tenant, ["m"])
    assert found.about == (entity_key(tenant, ORDER),)


async def test_a_mention_never_links_to_what_is_another_users(graph, tenant):
    await waiting(graph, tenant)
    await graph.upsert_entities(
        tenant,
        [EntityRow(EntityRef("User", "u2"), {"name": "Ann"}, NOW), EntityRow(ORDER, {}, NOW)],
        [placed("u2")],
    )
    assert await link_of(graph, tenant) == ()


async def test_uses_freshen_and_bring_back_from_the_archive(graph, tenant):
    item = memory(tenant, "m", freshness_at=NOW, archive_at=day(30))
    await write(graph, item)
    moved = await graph.archive(day(30), 1000, "token")
    assert "m" in [change.id for change in moved if change.tenant == tenant]
    (archived,) = await stored(graph, tenant, "m")
    assert (archived.tier, archived.archive_at) == ("archive", None)
    await graph.record_access({item.key: Uses(3, day(31))}, "token", DOMAIN.kinds)
    (used,) = await stored(graph, tenant, "m")
    assert (used.tier, used.access_count, used.last_accessed_at) == ("hot", 3, day(31))
    assert used.freshness == pytest.approx(0.95**31 + 0.6)
    assert used.archive_at == day(61)


async def test_only_what_has_expired_is_named(graph, tenant):
    await write(graph, memory(tenant, "old", expires_at=day(1)), memory(tenant, "new"))
    found = [key for key in await graph.expired(day(1), 100_000) if key.startswith(f"{tenant}|")]
    assert found == [memory_key(tenant, "old")]


async def test_a_sessions_entities_come_latest_first(graph, tenant):
    refs = [EntityRef("Product", "p1"), EntityRef("Product", "p2")]
    await graph.upsert_entities(tenant, [EntityRow(ref, {"name": ref.id}, NOW) for ref in refs], [])
    for at, ref in enumerate(refs):
        item = memory(tenant, f"m{at}", at=at, session_id="s|1")
        await write(graph, item, links=(Link(ref, 1.0, LinkMethod.NAME),))
    assert await graph.session_entities(tenant, "u1", "s|1", 10) == tuple(refs[::-1])
    assert await graph.session_entities(tenant, "u1|s", "1", 10) == ()
    assert session_key(tenant, "u1", "s|1") != session_key(tenant, "u1|s", "1")


async def test_scanning_pages_through_everything_that_is_not_forgotten(graph, tenant):
    await write(graph, *(memory(tenant, f"m{number}") for number in range(7)))
    await graph.forget([memory_key(tenant, "m3")], "token", NOW, "asked for")
    seen, after = [], ""
    while page := await graph.scan_memories(after, 3, tenant):
        seen += [item.id for item in page]
        after = page[-1].key
    assert seen == ["m0", "m1", "m2", "m4", "m5", "m6"]
