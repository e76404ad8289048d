"""What was said right before a memory in its session: kept in line whatever comes or goes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from builders import pending_memory
from ecphoria.model import memory_key
from ecphoria.remember.indexing import contexts_of
from ecphoria.stores.neo4j import Neo4jGraph
from ecphoria.stores.ports import CONTEXT_MEMORIES, NewMemory
from ecphoria_schema.domain import shipped_domain

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DOMAIN = shipped_domain()


@pytest.fixture
async def graph(stores):
    async with Neo4jGraph.open(
        stores.neo4j_uri,
        user=stores.neo4j_user,
        password=stores.neo4j_password,
        database=stores.neo4j_database,
        domain=DOMAIN,
        timeout_s=60,
    ) as store:
        await store.migrate()
        yield store


def said(tenant, number, **changes):
    """Return what was said so many minutes after the beginning."""
    id_ = changes.pop("id", f"m{number}")
    values = {
        "text": f"said {id_}",
        "recorded_at": NOW,
        "session_id": "s1",
        "reliability": 0.9,
    } | changes
    return pending_memory(tenant, id_, NOW + timedelta(minutes=number), **values)


async def write(graph, memories, token):
    return await graph.write_memories([NewMemory(memory) for memory in memories], token, NOW)


async def settle(graph, tenant, ids, token):
    keys = {memory_key(tenant, id_): token for id_ in ids}
    assert await graph.mark_indexed(keys, "model") == keys.keys()


async def pending(graph, tenant, *ids):
    states = await graph.states([memory_key(tenant, id_) for id_ in ids])
    return [state.key.split("|", 2)[2] for state in states if state.pending]


async def context(graph, memory):
    return (await graph.said_before([memory])).get(memory.key, ())


async def test_the_last_ones_before_it_the_latest_first(graph, tenant):
    memories = [said(tenant, number) for number in range(5)]
    await write(graph, memories, "one")

    found = await graph.said_before(memories)

    assert CONTEXT_MEMORIES == 2
    assert {key.split("|", 2)[2]: texts for key, texts in found.items()} == {
        "m1": ("said m0",),
        "m2": ("said m1", "said m0"),
        "m3": ("said m2", "said m1"),
        "m4": ("said m3", "said m2"),
    }


async def test_of_one_moment_by_id(graph, tenant):
    memories = [said(tenant, 0, id=id_) for id_ in ("a", "a~2", "b")]
    await write(graph, memories, "one")

    assert await context(graph, memories[2]) == ("said a~2", "said a")
    assert await context(graph, memories[0]) == ()


@pytest.mark.parametrize(
    "changes",
    [{"session_id": "s2"}, {"user_id": "u2"}, {"session_id": None}, {"user_id": None}],
)
async def test_other_sessions_and_users_are_none_of_it(graph, tenant, changes):
    asked = said(tenant, 9)
    await write(graph, [said(tenant, 1, **changes), asked], "one")

    assert await context(graph, asked) == ()


async def test_another_tenant_is_none_of_it(graph, tenant):
    asked = said(tenant, 9)
    await write(graph, [said(f"{tenant}-2", 1), asked], "one")

    assert await context(graph, asked) == ()


async def test_without_a_session_nothing_is_asked_for(graph, tenant):
    alone = said(tenant, 9, session_id=None)
    await write(graph, [said(tenant, 1, session_id=None), alone], "one")

    assert await contexts_of(graph, [alone]) == {}
    assert await graph.said_before([alone]) == {}


@pytest.mark.parametrize(
    ("own", "shown"),
    [
        ("public", ("said public",)),
        ("internal", ("said internal", "said public")),
        ("sensitive", ("said internal", "said public")),
    ],
)
async def test_nothing_stricter_than_itself_gets_into_it(graph, tenant, own, shown):
    asked = said(tenant, 9, privacy=own)
    before = [
        said(tenant, number, id=level, privacy=level)
        for number, level in enumerate(("public", "internal"))
    ]
    await write(graph, [*before, asked], "one")

    assert await context(graph, asked) == shown


async def test_a_sensitive_one_takes_its_place_and_is_not_shown(graph, tenant):
    asked = said(tenant, 9)
    await write(graph, [said(tenant, 1), said(tenant, 2, privacy="sensitive"), asked], "one")

    assert await context(graph, asked) == ("said m1",)


async def test_what_comes_late_makes_those_after_it_pending(graph, tenant):
    ids = ("m1", "m3", "m4", "m5")
    token = f"{tenant}-one"
    await write(graph, [said(tenant, int(id_[1:])) for id_ in ids], token)
    await settle(graph, tenant, ids, token)

    written = await write(graph, [said(tenant, 2)], f"{tenant}-two")

    # to be indexed at once, as what was written
    assert [item.memory.id for item in written.pending] == ["m2", "m3", "m4"]
    assert await pending(graph, tenant, *ids) == ["m3", "m4"]
    assert await context(graph, said(tenant, 3)) == ("said m2", "said m1")


async def test_what_comes_in_order_makes_nothing_else_pending(graph, tenant):
    await write(graph, [said(tenant, 1)], f"{tenant}-one")
    await settle(graph, tenant, ["m1"], f"{tenant}-one")

    written = await write(graph, [said(tenant, 2), said(tenant, 3)], f"{tenant}-two")

    assert [item.memory.id for item in written.pending] == ["m2", "m3"]
    assert await pending(graph, tenant, "m1") == []


async def test_what_is_forgotten_leaves_the_context_and_makes_it_pending(graph, tenant):
    ids = [f"m{number}" for number in range(6)]
    memories = [said(tenant, number) for number in range(6)]
    token = f"{tenant}-one"
    await write(graph, memories, token)
    await settle(graph, tenant, ids, token)

    await graph.forget([memories[2].key], f"{tenant}-two", NOW, "asked to")

    assert await pending(graph, tenant, *ids) == ["m2", "m3", "m4"]
    assert await context(graph, memories[3]) == ("said m1", "said m0")
    assert await context(graph, memories[4]) == ("said m3", "said m1")


async def test_a_forgotten_session_leaves_nothing(graph, tenant):
    memories = [said(tenant, number) for number in range(4)]
    await write(graph, memories, "one")

    await graph.forget([memory.key for memory in memories], "two", NOW, "asked to")

    assert await graph.said_before(memories) == {}
