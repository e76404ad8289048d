"""Looking around on real stores: lists page by page, conflicts, what is connected, counts."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from builders import pending_memory
from ecphoria.errors import Forbidden, InvalidCursor, InvalidInput, NotFound
from ecphoria.model import (
    EntityInput,
    EntityRef,
    FactInput,
    MemoryFilter,
    MemoryInput,
    RelationInput,
    Role,
    Status,
)
from ecphoria.reading.entity_graph import ENDS_PER_RELATION
from ecphoria.stores.ports import NewMemory
from ecphoria.testing import ManualClock
from engines import settle, with_clock

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)


@pytest.fixture
def shop(engine):
    return with_clock(engine, ManualClock(NOW))


async def put(engine, *memories):
    """Write memories straight to the graph: what a list shows does not depend on the index."""
    written = await engine.graph.write_memories(
        [NewMemory(memory) for memory in memories], "a token", NOW
    )
    assert {write.outcome for write in written.writes} == {"CREATED"}


async def pages(engine, scope, user, filter_=None, *, first=3, between=None):
    """Return the ids of all pages, page by page."""
    found, after = [], None
    while True:
        page = await engine.list_memories(scope, user, filter_, first=first, after=after)
        found.append([memory.id for memory in page.items])
        if not page.has_next:
            return found
        after = page.cursors[-1]
        if between is not None:
            await between(len(found))


async def listed(engine, scope, user="u1", **filter_):
    page = await engine.list_memories(scope, user, MemoryFilter(**filter_), first=50)
    count = await engine.count_memories(scope, user, MemoryFilter(**filter_))
    assert count == len(page.items)
    return {memory.id for memory in page.items}


# --- memories ------------------------------------------------------------------------------


async def test_pages_are_newest_first_and_whole_at_every_size(shop, admin, tenant):
    # several that happened at the same moment: the id decides, on every page
    moments = {f"m-{number:02}": NOW - (number // 4) * HOUR for number in range(17)}
    await put(shop, *(pending_memory(tenant, *item) for item in moments.items()))
    expected = sorted(moments, key=lambda id_: (moments[id_], id_), reverse=True)
    for first in (1, 4, 16, 17, 18):
        read = await pages(shop, admin, "u1", first=first)
        assert [id_ for page in read for id_ in page] == expected
        assert all(len(page) == first for page in read[:-1])
        assert read[-1]
    assert await shop.count_memories(admin, "u1") == len(moments)


async def test_pages_stay_whole_while_others_write(shop, admin, tenant):
    before = [pending_memory(tenant, f"m-{n:03}", NOW - n * HOUR) for n in range(40)]
    await put(shop, *before)

    async def others(page):
        # at the place of the cursor, before it and after it; and one that was there goes
        place = NOW - (page * 3 - 1) * HOUR
        ids = {f"a-{page}": place, f"z-{page}": place, f"old-{page}": NOW - 99 * DAY}
        ids[f"new-{page}"] = NOW + page * HOUR
        await put(shop, *(pending_memory(tenant, id_, at) for id_, at in ids.items()))
        if page == 2:
            await shop.forget(admin, "u1", ["m-039"], "asked for")

    writing = asyncio.create_task(_write_on(shop, tenant))
    try:
        read = await pages(shop, admin, "u1", between=others)
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
    seen = [id_ for page in read for id_ in page]
    assert len(seen) == len(set(seen))
    assert {memory.id for memory in before} - set(seen) == {"m-039"}
    assert [id_ for id_ in seen if id_.startswith("m-")] == [f"m-{n:03}" for n in range(39)]


async def _write_on(engine, tenant):
    for number in range(1_000):
        at = NOW - (number % 60) * HOUR
        await put(engine, pending_memory(tenant, f"w-{number:04}", at))


async def test_a_filter_is_met_in_every_part(shop, admin, tenant):
    await shop.upsert_entities(
        admin,
        [EntityInput("User", "u1", {"name": "张伟"}), EntityInput("Order", "o-1", {})],
        [RelationInput("PLACED", EntityRef("User", "u1"), EntityRef("Order", "o-1"))],
    )
    await shop.remember(
        admin,
        [MemoryInput("The order came late.", "u1", id="about", about=(EntityRef("Order", "o-1"),),
                     occurred_at=NOW - 50 * DAY, source="ugc")],
    )  # fmt: skip
    made = {
        "plain": {},
        "fact": {"kind": "semantic", "topic": "warranty"},
        "tagged": {"tags": ("logistics_complaint", "warranty")},
        "said": {"source_id": "dialogue"},
        "ended": {"valid_until": NOW - DAY},
        "gone": {"expires_at": NOW - HOUR},
        "was": {"status": Status.SUPERSEDED, "valid_until": NOW - 2 * DAY},
        "back": {"status": Status.DISABLED},
        "rule": {"user_id": None, "kind": "procedural"},
        "theirs": {"user_id": "u2"},
        "hidden": {"privacy": "sensitive"},
    }
    for days, (id_, changes) in enumerate(made.items(), 3):
        await put(shop, pending_memory(tenant, id_, NOW - days * DAY, **changes))
    own = {"about", "plain", "fact", "tagged", "said", "ended", "hidden"}

    assert await listed(shop, admin) == own
    assert await listed(shop, admin, include_shared=True) == own | {"rule"}
    assert await listed(shop, admin, kinds=("semantic",)) == {"fact"}
    assert await listed(shop, admin, kinds=("procedural",), include_shared=True) == {"rule"}
    assert await listed(shop, admin, topics=("warranty",)) == {"fact", "tagged"}
    assert await listed(shop, admin, topics=("warranty",), kinds=("episodic",)) == {"tagged"}
    assert await listed(shop, admin, sources=("dialogue", "ugc")) == {"said", "about"}
    assert await listed(shop, admin, entity=EntityRef("Order", "o-1")) == {"about"}
    assert await listed(shop, admin, entity=EntityRef("Order", "none")) == set()
    assert await listed(shop, admin, statuses=(Status.SUPERSEDED, Status.DISABLED)) == {
        "was", "back",
    }  # fmt: skip
    assert await listed(shop, admin, valid_at=NOW) == own - {"ended"}
    assert await listed(shop, admin, valid_at=NOW - 20 * DAY) == {"about"}
    since, until = NOW - 5 * DAY, NOW - 3 * DAY
    # from the first moment on, up to the last one without it
    assert await listed(shop, admin, occurred_since=since, occurred_until=until) == {
        "fact", "tagged",
    }  # fmt: skip
    # who may not read it does not learn that it is there
    agent = replace(admin, roles=frozenset({Role.AGENT}))
    assert await listed(shop, agent) == own - {"hidden"}
    assert await listed(shop, admin, "u2") == {"theirs"}
    assert await listed(shop, replace(admin, tenant=f"{tenant}-x"), include_shared=True) == set()
    await shop.forget(admin, "u1", ["plain"], "asked for")
    assert await listed(shop, admin) == own - {"plain"}


async def test_a_list_is_read_within_its_scope_and_by_its_own_cursors(shop, admin, tenant):
    for user in ("u1", "u2"):
        for number in range(3):
            await put(shop,
                pending_memory(tenant, f"{user}-{number}", NOW - number * HOUR, user_id=user),
            )  # fmt: skip
    (cursor,) = (await shop.list_memories(admin, "u1", first=1)).cursors
    agent = replace(admin, roles=frozenset({Role.AGENT}), users=frozenset({"u1"}))
    # the same list, whoever reads on
    assert (await shop.list_memories(agent, "u1", after=cursor)).items[0].id == "u1-1"
    other_tenant = replace(admin, tenant=f"{tenant}-x")
    elsewhere = [
        shop.list_memories(admin, "u2", after=cursor),
        shop.list_memories(other_tenant, "u1", after=cursor),
        shop.list_memories(admin, "u1", MemoryFilter(kinds=("episodic",)), after=cursor),
        shop.list_memories(admin, "u1", MemoryFilter(valid_at=NOW), after=cursor),
        shop.list_memories(admin, "u1", MemoryFilter(include_shared=True), after=cursor),
        shop.list_entities(admin, "u1", "Order", after=cursor),
        shop.conflicts(admin, "u1", after=cursor),
        shop.list_memories(admin, "u1", after=f"{cursor[:-1]}{'A' if cursor[-1] != 'A' else 'B'}"),
    ]
    for call in elsewhere:
        with pytest.raises(InvalidCursor) as caught:
            await call
        assert caught.value.path == ("after",)
    for call in (
        shop.list_memories(agent, "u2"),
        shop.count_memories(agent, "u2"),
        shop.list_entities(agent, "u2", "Order"),
        shop.conflicts(agent, "u2"),
        shop.entity_graph(agent, "u2", EntityRef("User", "u2")),
        shop.stats(agent, "u2"),
        shop.tenant_stats(agent),
        shop.list_memories(replace(admin, roles=frozenset({Role.OPERATOR})), "u1"),
    ):
        with pytest.raises(Forbidden):
            await call


@pytest.mark.parametrize(
    ("filter_", "path"),
    [
        ({"statuses": (Status.FORGOTTEN,)}, ("filter", "statuses")),
        ({"statuses": ()}, ("filter", "statuses")),
        ({"topics": ("ok", "")}, ("filter", "topics", 1)),
        ({"sources": tuple(f"s{n}" for n in range(101))}, ("filter", "sources")),
        ({"entity": EntityRef("Phone", "1")}, ("filter", "entity", "type")),
        ({"entity": EntityRef("Order", " ")}, ("filter", "entity", "id")),
        ({"valid_at": datetime(2026, 1, 1)}, ("filter", "valid_at")),  # noqa: DTZ001 - the fault
        ({"occurred_since": NOW, "occurred_until": NOW}, ("filter", "occurred_until")),
    ],
)
async def test_a_bad_filter_is_named(shop, admin, filter_, path):
    with pytest.raises(InvalidInput) as caught:
        await shop.list_memories(admin, "u1", MemoryFilter(**filter_))
    assert caught.value.path == path


# --- entities ------------------------------------------------------------------------------


async def fill(engine, admin, user, orders=5):
    """Write a user with orders, a device each, all of one shared product; and a ticket."""
    entities = [
        EntityInput("User", user, {"name": "Ann"}),
        EntityInput("Product", "p", {"name": "X"}),
    ]
    entities += [EntityInput("Product", f"p-{n}", {"name": f"Y {n}"}) for n in range(3)]
    entities.append(EntityInput("Ticket", f"{user}-k", {"subject": "Late"}))
    relations = [("OPENED", ("User", user), ("Ticket", f"{user}-k"))]
    for number in range(orders):
        order, device = f"{user}-o{number:02}", f"{user}-d{number:02}"
        entities += [EntityInput("Order", order, {}), EntityInput("Device", device, {"name": "X"})]
        relations += [
            ("PLACED", ("User", user), ("Order", order)),
            ("CONTAINS", ("Order", order), ("Device", device)),
            ("INSTANCE_OF", ("Device", device), ("Product", "p")),
            ("CONCERNS", ("Ticket", f"{user}-k"), ("Order", order)),
            ("CONCERNS", ("Ticket", f"{user}-k"), ("Device", device)),
        ]
    await engine.upsert_entities(
        admin,
        entities,
        [RelationInput(type_, EntityRef(*a), EntityRef(*b)) for type_, a, b in relations],
    )


async def all_of(call, first):
    found, after = [], None
    while True:
        page = await call(first=first, after=after)
        found += [entity.id for entity in page.items]
        if not page.has_next:
            return found
        after = page.cursors[-1]


async def test_entities_are_listed_by_type_and_followed_page_by_page(shop, admin, tenant):
    await fill(shop, admin, "u1")
    await fill(shop, admin, "u2")
    orders = [f"u1-o{n:02}" for n in range(5)]
    devices = [f"u1-d{n:02}" for n in range(5)]

    def of(type_, scope=admin):
        return lambda **page: shop.list_entities(scope, "u1", type_, **page)

    def from_(ref, relation, *others, forward=True):
        async def read(**page):
            return (
                await shop.related_pages(
                    admin, "u1", [ref], relation, others, forward=forward, **page
                )
            )[ref]

        return read

    for first in (1, 2, 5, 9):
        assert await all_of(of("Order"), first) == orders
        assert await all_of(of("Product"), first) == ["p", "p-0", "p-1", "p-2"]
        assert await all_of(of("User"), first) == ["u1"]
        user, product, ticket = (
            EntityRef("User", "u1"), EntityRef("Product", "p"), EntityRef("Ticket", "u1-k"),
        )  # fmt: skip
        assert await all_of(from_(user, "PLACED", "Order"), first) == orders
        # from what is shared only to what is his own
        instances = from_(product, "INSTANCE_OF", "Device", forward=False)
        assert await all_of(instances, first) == devices
        # several types: one after the other
        concerns = from_(ticket, "CONCERNS", "Order", "Device", "Repair")
        assert await all_of(concerns, first) == [*devices, *orders]
    assert await shop.count_entities(admin, "u1", "Order") == 5
    assert await shop.count_entities(admin, "u1", "Product") == 4
    assert await shop.count_entities(admin, "u3", "Order") == 0
    assert await all_of(of("Product", replace(admin, tenant=f"{tenant}-x")), 5) == []
    # another user's entity leads nowhere
    theirs = EntityRef("User", "u2")
    page = (await shop.related_pages(admin, "u1", [theirs], "PLACED", ["Order"]))[theirs]
    assert (page.items, page.has_next) == ((), False)
    (cursor,) = (await from_(user, "PLACED", "Order")(first=1)).cursors
    with pytest.raises(InvalidCursor):
        await from_(ticket, "CONCERNS", "Order")(first=1, after=cursor)


async def test_what_is_connected_is_found_along_a_path_and_every_way(shop, admin):
    await fill(shop, admin, "u1", orders=2)
    await fill(shop, admin, "u2", orders=2)
    order = EntityRef("Order", "u1-o00")

    down = await shop.entity_graph(admin, "u1", order, path="after_sales")
    assert [entity.id for entity in down.entities] == ["u1-o00", "u1-d00", "p"]
    assert [(edge.type, edge.from_key.split("|")[2], edge.to_key.split("|")[2])
            for edge in down.edges] == [("CONTAINS", "u1-o00", "u1-d00"),
                                        ("INSTANCE_OF", "u1-d00", "p")]  # fmt: skip
    assert not down.truncated
    one = await shop.entity_graph(admin, "u1", order, path="after_sales", depth=1)
    assert {entity.id for entity in one.entities} == {"u1-o00", "u1-d00"}

    near = await shop.entity_graph(admin, "u1", order, depth=1)
    assert {entity.id for entity in near.entities} == {"u1-o00", "u1-d00", "u1", "u1-k"}
    # a relation has its own direction, whichever way it was walked
    assert ("PLACED", "u1", "u1-o00") in {
        (edge.type, edge.from_key.split("|")[2], edge.to_key.split("|")[2]) for edge in near.edges
    }
    every = await shop.entity_graph(admin, "u1", order, depth=4)
    assert {entity.id for entity in every.entities} == {
        "u1", "u1-o00", "u1-o01", "u1-d00", "u1-d01", "u1-k", "p",
    }  # fmt: skip
    assert len(every.edges) == 2 + 2 + 2 + 4 + 1
    product = EntityRef("Product", "p")
    from_shared = await shop.entity_graph(admin, "u2", product, depth=1)
    assert {entity.id for entity in from_shared.entities} == {"p", "u2-d00", "u2-d01"}

    with pytest.raises(NotFound):
        await shop.entity_graph(admin, "u2", order)
    for changes, path in (
        ({"path": "no_such"}, ("path",)),
        ({"path": "payments", "ref": EntityRef("Ticket", "u1-k")}, ("type",)),
        ({"depth": 5}, ("depth",)),
        ({"depth": 0}, ("depth",)),
    ):
        with pytest.raises(InvalidInput) as caught:
            await shop.entity_graph(admin, "u1", **({"ref": order} | changes))
        assert caught.value.path == path


async def test_a_walk_with_too_many_ends_says_that_it_was_cut(shop, admin):
    await fill(shop, admin, "u1", orders=ENDS_PER_RELATION + 1)
    found = await shop.entity_graph(admin, "u1", EntityRef("User", "u1"), depth=1)
    orders = [entity for entity in found.entities if entity.type == "Order"]
    assert (len(orders), found.truncated) == (ENDS_PER_RELATION, True)
    along = await shop.entity_graph(admin, "u1", EntityRef("User", "u1"), path="after_sales")
    # the path's own caps
    assert sum(entity.type == "Order" for entity in along.entities) == 5
    assert along.truncated


# --- conflicts, counts, who and where from -------------------------------------------------


def says(id_, value, source, days, order="o-1", user="u1"):
    fact = FactInput(EntityRef("Order", order), "order.status", value)
    at = NOW - days * DAY
    return MemoryInput(
        "", user, id=id_, source=source, topic="repair", occurred_at=at, facts=(fact,)
    )


async def test_conflicts_are_grouped_the_more_reliable_first(shop, admin):
    for order in ("o-1", "o-2", "o-3"):
        await shop.remember(
            admin,
            [
                says(f"{order}-crm", "paid", "crm", 9, order),
                says(f"{order}-ugc", "cancelled", "ugc", 3, order),
            ],
        )
    await shop.remember(admin, [says("o-4-crm", "paid", "crm", 9, "o-4")])
    # no attribute: a less reliable source says that it replaces what a better one has said
    await shop.remember(
        admin,
        [
            MemoryInput("The courier is BlueBird.", "u1", id="s-crm", source="crm",
                        occurred_at=NOW - 5 * DAY),
            MemoryInput("The courier is RedFox.", "u1", id="s-ugc", source="ugc",
                        occurred_at=NOW - 2 * DAY, supersedes="s-crm"),
        ],
    )  # fmt: skip
    await shop.remember(admin, [says("x", "paid", "crm", 9, user="u2")])
    found, after = [], None
    while True:
        page = await shop.conflicts(admin, "u1", first=2, after=after)
        found += page.items
        if not page.has_next:
            break
        after = page.cursors[-1]
    assert sorted([memory.id for memory in conflict.memories] for conflict in found) == [
        [f"{order}-crm", f"{order}-ugc"] for order in ("o-1", "o-2", "o-3", "s")
    ]
    assert {conflict.attribute for conflict in found} == {"order.status", None}
    assert len((await shop.conflicts(admin, "u1", topic="repair")).items) == 3
    assert (await shop.conflicts(admin, "u1", topic="warranty")).items == ()
    assert (await shop.conflicts(admin, "u2")).items == ()
    # what was put right contradicts nothing any more
    await shop.retract(admin, "u1", "o-1-ugc", "misread")
    assert len((await shop.conflicts(admin, "u1")).items) == 3


async def test_counts_sources_and_who_asks(shop, admin, tenant):
    await fill(shop, admin, "u1", orders=2)
    await shop.remember(
        admin, [MemoryInput("The parcel came late.", "u1", source="crm", occurred_at=NOW - DAY)]
    )
    await put(shop,
        pending_memory(tenant, "p-1", NOW - DAY),
        pending_memory(tenant, "p-2", NOW - DAY, user_id="u2", kind="semantic"),
    )  # fmt: skip
    mine = await shop.stats(admin, "u1")
    assert [(each.kind, each.status, each.tier, each.count) for each in mine.memories] == [
        ("episodic", Status.ACTIVE, "hot", 2)
    ]
    assert mine.pending == 1
    assert {type_: count for type_, count in mine.entities.items() if count} == {
        "User": 1, "Order": 2, "Device": 2, "Ticket": 1,
    }  # fmt: skip
    whole = await shop.tenant_stats(replace(admin, roles=frozenset({Role.OPERATOR})))
    assert sum(each.count for each in whole.memories) == 3
    assert whole.pending == 2
    assert whole.entities["Product"] == 4
    await settle(shop, tenant)
    assert (await shop.stats(admin, "u1")).pending == 0

    sources = {source.id: source for source in await shop.sources(admin)}
    assert set(sources) == set(shop.domain.sources)
    assert sources["crm"].reliability == pytest.approx(0.95)
    assert not sources["crm"].disabled

    agent = replace(admin, roles=frozenset({Role.AGENT}), users=frozenset({"u2", "u1"}))
    me = await shop.me(agent)
    assert (me.tenant, me.roles, me.users) == (tenant, (Role.AGENT,), ("u1", "u2"))
    assert me.readable == ("public", "internal")
    assert (await shop.me(admin)).users is None
