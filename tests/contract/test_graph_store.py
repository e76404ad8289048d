"""The graph store's contract, the same on every store set."""

from __future__ import annotations

import asyncio
import re
import secrets
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from builders import pending_memory
from ecphoria.errors import (
    CardinalityViolated,
    ConfigurationInvalid,
    MigrationFailed,
    MissingEntity,
    StoreAuthenticationFailed,
    StoreUnavailable,
)
from ecphoria.model import (
    ApiKey,
    EntityRef,
    EveryUser,
    IndexState,
    Link,
    LinkMethod,
    Role,
    Status,
    entity_key,
    memory_key,
)
from ecphoria.stores import neo4j_connection as module
from ecphoria.stores.graph_rows import split_key
from ecphoria.stores.neo4j import Neo4jGraph
from ecphoria.stores.ports import EntityRow, ExpandQuery, NewMemory, RelatedQuery, RelationRow
from ecphoria_schema.domain import parse_domain, shipped_domain

NOW = datetime(2026, 3, 1, 12, 30, 15, 123_000, tzinfo=UTC)
DOMAIN = shipped_domain()
CLINIC = Path(__file__).parents[1] / "domains" / "clinic.yaml"
HOSTILE = ['") or true or ("', "' OR 1=1 //", "a\\", "`}) DETACH DELETE n //", "$owner", "中文'\"`"]


def opened(stores, domain=DOMAIN, **changes):
    access = {"user": stores.neo4j_user, "password": stores.neo4j_password, "timeout_s": 60}
    return Neo4jGraph.open(
        stores.neo4j_uri, database=stores.neo4j_database, domain=domain, **(access | changes)
    )


@pytest.fixture
async def graph(stores):
    async with opened(stores) as store:
        await store.migrate()
        yield store


def row(type_, id_, at=NOW, **props):
    return EntityRow(EntityRef(type_, id_), props, at)


def relation(type_, from_, to):
    return RelationRow(type_, EntityRef(*from_), EntityRef(*to))


def memory(tenant, id_, **changes):
    values = {
        "topic": "warranty",
        "valid_from": NOW - timedelta(days=1),
        "reliability": 0.95,
    } | changes
    return pending_memory(tenant, id_, NOW, **values)


CHAIN = (
    [
        row("User", "u1", name="Ann"),
        row("Order", "o1", placed_at=NOW, total=5.0),
        row("Device", "d1", name="Phone", serial="SN-1"),
        row("Repair", "r1", fault="screen"),
        row("Warranty", "w1", kind="extended", void_conditions=("water", "drop")),
        row("Product", "p1", name="Phone"),
    ],
    [
        relation("PLACED", ("User", "u1"), ("Order", "o1")),
        relation("CONTAINS", ("Order", "o1"), ("Device", "d1")),
        relation("HAS_REPAIR", ("Device", "d1"), ("Repair", "r1")),
        relation("COVERED_BY", ("Device", "d1"), ("Warranty", "w1")),
        relation("INSTANCE_OF", ("Device", "d1"), ("Product", "p1")),
    ],
)


async def write(graph, memories, token):
    """Write memories with a link to each entity they are about; return the outcomes."""
    new = [
        NewMemory(
            item,
            tuple(Link(split_key(key)[1], 1.0, LinkMethod.GIVEN) for key in item.about),
        )
        for item in memories
    ]
    return (await graph.write_memories(new, token, NOW)).writes


async def leased(graph, tenant, after=""):
    """Return what is pending of a tenant, taking no lease that lasts."""
    found, place = [], after or f"{tenant}|"
    while page := await graph.lease_pending("tester", 3, NOW, NOW, place):
        place = page[-1].key
        found += page
        if not place.startswith(f"{tenant}|"):
            break
    return [item for item in found if item.key.startswith(f"{tenant}|")]


async def owner_of(graph, tenant, type_, id_, user="u1"):
    found = await graph.visible_entities(tenant, user, [EntityRef(type_, id_)])
    return found[0].user_id if found else None


async def test_ping_names_the_product(graph, stores):
    info = await graph.ping()
    assert info.product == ("ArcadeDB" if stores.kind == "embedded" else "Neo4j")
    assert info.version[0].isdigit()


async def test_migrating_again_applies_nothing(graph):
    assert await graph.migrate() == ()


@pytest.mark.usefixtures("graph")
async def test_migrations_of_several_processes_at_once_are_safe(stores):
    # labels that no graph has yet, so that every client finds the work undone
    suffix = secrets.token_hex(4)
    text = CLINIC.read_text(encoding="utf-8").replace("name: clinic", f"name: clinic_{suffix}", 1)
    domain = parse_domain(re.sub(r"\b(Patient|Visit)\b", rf"\g<1>{suffix}", text))

    async def once():
        async with opened(stores, domain) as store:
            return await store.migrate()

    applied = await asyncio.gather(*(once() for _ in range(4)))
    assert all(len(versions) <= 1 for versions in applied)
    assert await once() == ()


async def test_an_altered_migration_is_refused(graph, monkeypatch):
    shipped = module.shipped_migrations()
    altered = (replace(shipped[0], statements=(*shipped[0].statements, "RETURN 1")), *shipped[1:])
    monkeypatch.setattr(module, "shipped_migrations", lambda: altered)
    with pytest.raises(MigrationFailed, match="0001"):
        await graph.migrate()


async def test_upserting_twice_changes_nothing(graph, tenant):
    first = await graph.upsert_entities(tenant, *CHAIN)
    assert set(first.outcomes) == {"CREATED"}
    assert first.relations_created == 5
    second = await graph.upsert_entities(tenant, *CHAIN)
    assert set(second.outcomes) == {"UNCHANGED"}
    assert second.relations_created == 0


async def test_values_come_back_as_they_went_in(graph, tenant):
    await graph.upsert_entities(tenant, *CHAIN)
    order, warranty = await graph.visible_entities(
        tenant, "u1", [EntityRef("Order", "o1"), EntityRef("Warranty", "w1")]
    )
    assert order.props == {"placed_at": NOW, "total": 5.0}
    assert isinstance(order.props["total"], float)
    assert warranty.props == {"kind": "extended", "void_conditions": ("water", "drop")}
    assert order.observed_at == NOW


async def test_older_news_fill_gaps_but_never_overwrite(graph, tenant):
    def at(days, **props):
        return graph.upsert_entities(
            tenant, [row("User", "u1", NOW + timedelta(days=days), name="Ann", **props)], []
        )

    await at(0, city="Rome")
    await at(3, zip="3")
    await at(2, city="Oslo", zip="2")
    await at(1, city="Bonn", level="gold")
    (user,) = await graph.visible_entities(tenant, "u1", [EntityRef("User", "u1")])
    assert user.props == {"name": "Ann", "city": "Oslo", "zip": "3", "level": "gold"}
    assert user.observed_at == NOW + timedelta(days=3)


async def test_a_batch_with_a_missing_end_writes_nothing(graph, tenant):
    bad = relation("PLACED", ("User", "u1"), ("Order", "nowhere"))
    with pytest.raises(MissingEntity) as caught:
        await graph.upsert_entities(tenant, CHAIN[0], [*CHAIN[1], bad])
    assert caught.value.path == ("relations", 5)
    assert (await graph.counts(tenant))["User"] == 0


async def test_a_second_owner_is_refused_and_nothing_is_written(graph, tenant):
    await graph.upsert_entities(tenant, *CHAIN)
    with pytest.raises(CardinalityViolated):
        await graph.upsert_entities(
            tenant,
            [row("User", "u2", name="Bob")],
            [relation("PLACED", ("User", "u2"), ("Order", "o1"))],
        )
    assert (await graph.counts(tenant))["User"] == 1
    assert await owner_of(graph, tenant, "Device", "d1") == "u1"


@pytest.mark.parametrize("order", ["as declared", "reversed", "one by one"])
async def test_ownership_reaches_everything_in_any_order_of_arrival(graph, tenant, order):
    entities, relations = CHAIN
    if order == "as declared":
        await graph.upsert_entities(tenant, entities, relations)
    elif order == "reversed":
        await graph.upsert_entities(tenant, entities, [])
        for item in reversed(relations):
            await graph.upsert_entities(tenant, [], [item])
    else:
        await graph.upsert_entities(tenant, entities, [])
        for item in relations:
            await graph.upsert_entities(tenant, [], [item])
    for type_, id_ in (("Order", "o1"), ("Device", "d1"), ("Repair", "r1"), ("Warranty", "w1")):
        assert await owner_of(graph, tenant, type_, id_) == "u1"


async def test_what_nobody_owns_yet_is_hidden_and_what_is_shared_is_not(graph, tenant):
    await graph.upsert_entities(
        tenant,
        [row("User", "u1", name="Ann"), row("Order", "o9"), row("Product", "p9", name="P")],
        [],
    )
    refs = [EntityRef("Order", "o9"), EntityRef("Product", "p9")]
    assert [e.id for e in await graph.visible_entities(tenant, "u1", refs)] == ["p9"]
    assert [e.id for e in await graph.visible_entities(tenant, None, refs)] == ["p9"]
    assert await graph.existing_entities(tenant, refs) == frozenset(refs)


async def test_concurrent_upserts_of_one_entity_make_one(graph, tenant):
    news = [
        graph.upsert_entities(
            tenant, [row("User", "u1", NOW + timedelta(seconds=n), name="Ann", zip=str(n))], []
        )
        for n in range(12)
    ]
    outcomes = await asyncio.gather(*news)
    assert sum(item.outcomes == ("CREATED",) for item in outcomes) == 1
    (user,) = await graph.visible_entities(tenant, "u1", [EntityRef("User", "u1")])
    assert user.props["zip"] == "11"


@pytest.mark.usefixtures("graph")
async def test_two_clients_writing_one_key_at_once_make_one(stores, tenant):
    async def try_one(number):
        async with opened(stores) as store:
            (outcome,) = await write(store, [memory(tenant, "m1")], f"token-{number}")
            return outcome.outcome

    outcomes = await asyncio.gather(*(try_one(number) for number in range(6)))
    assert sorted(outcomes) == ["CREATED", *["DUPLICATE"] * 5]


async def test_memories_round_trip(graph, tenant):
    await graph.upsert_entities(tenant, *CHAIN)
    device = entity_key(tenant, EntityRef("Device", "d1"))
    kept = memory(
        tenant,
        "m1",
        about=(device,),
        tags=("warranty", "repair"),
        expires_at=NOW + timedelta(days=9),
        session_id="s",
        agent_id="a",
    )
    shared = memory(tenant, "m2", user_id=None, topic=None)
    written = await write(graph, [kept, shared], "token")
    assert [item.outcome for item in written] == ["CREATED", "CREATED"]
    found = {item.id: item for item in await graph.memories(tenant, ["m1", "m2", "m3"])}
    assert found == {"m1": kept, "m2": shared}


async def test_an_id_keeps_its_content_and_its_user(graph, tenant):
    await write(graph, [memory(tenant, "m1")], "one")
    again, other_text, other_user = [
        (await write(graph, [item], "two"))[0]
        for item in (
            memory(tenant, "m1"),
            memory(tenant, "m1", content_hash="x"),
            memory(tenant, "m1", user_id="u2"),
        )
    ]
    assert again.outcome == "DUPLICATE"
    assert (other_text.outcome, "other content" in other_text.conflict) == ("CONFLICT", True)
    assert (other_user.outcome, "another user" in other_user.conflict) == ("CONFLICT", True)
    (kept,) = await graph.memories(tenant, ["m1"])
    assert (kept.user_id, kept.content_hash) == ("u1", "hash of m1")


@pytest.mark.parametrize("late", [False, True], ids=["older first", "newer first"])
async def test_superseding_closes_the_older_one_in_any_order(graph, tenant, late):
    older = memory(tenant, "old", valid_from=NOW - timedelta(days=30))
    newer = memory(tenant, "new", valid_from=NOW, supersedes="old")
    for item in (newer, older) if late else (older, newer):
        await write(graph, [item], f"token of {item.id}")
    found = {item.id: item for item in await graph.memories(tenant, ["old", "new"])}
    assert found["old"].status is Status.SUPERSEDED
    assert found["old"].valid_until == NOW
    assert found["old"].index_state is IndexState.STALE
    assert found["new"].status is Status.ACTIVE
    assert found["new"].supersedes == "old"


async def test_another_users_memory_is_never_superseded(graph, tenant):
    await write(graph, [memory(tenant, "old", user_id="u2")], "one")
    await write(graph, [memory(tenant, "new", supersedes="old")], "two")
    (old,) = await graph.memories(tenant, ["old"])
    assert (old.status, old.valid_until) == (Status.ACTIVE, None)


async def test_pending_rows_end_with_the_right_token_only(graph, tenant):
    await write(graph, [memory(tenant, "m1"), memory(tenant, "m2")], f"{tenant}-one")
    pending = await leased(graph, tenant)
    assert [(item.memory.id, item.token) for item in pending] == [
        ("m1", f"{tenant}-one"),
        ("m2", f"{tenant}-one"),
    ]
    key = memory_key(tenant, "m1")
    assert await graph.mark_indexed({key: "another token"}, "model") == frozenset()
    await graph.requeue([key], f"{tenant}-two")
    assert await graph.mark_indexed({key: f"{tenant}-one"}, "model") == frozenset()
    assert await graph.mark_indexed({key: f"{tenant}-two"}, "other model") == {key}
    assert [item.memory.id for item in await leased(graph, tenant)] == ["m2"]
    (done,) = await graph.memories(tenant, ["m1"])
    assert (done.index_state, done.embedding_model) == (IndexState.INDEXED, "other model")
    assert (await graph.counts(tenant))["pending"] == 1


async def test_pending_pages_by_key(graph, tenant):
    await write(graph, [memory(tenant, f"m{n}") for n in range(7)], "token")
    assert [item.memory.id for item in await leased(graph, tenant)] == [f"m{n}" for n in range(7)]


def expand_query(tenant, user="u1", **changes):
    base = ExpandQuery(
        tenant=tenant,
        user_id=user,
        path="after_sales",
        seeds=(),
        anchors=10,
        mentions=(),
        from_root=False,
        as_of=NOW,
        privacy=("internal", "public"),
        memories_per_entity=5,
        scan_cap=300,
    )
    return replace(base, **changes)


async def test_expanding_from_a_repair_brings_the_whole_chain(graph, tenant):
    await graph.upsert_entities(tenant, *CHAIN)
    key = entity_key(tenant, EntityRef("Repair", "r1"))
    await write(graph, [memory(tenant, "m1", about=(key,))], "token")
    found = await graph.expand(expand_query(tenant, seeds=(memory_key(tenant, "m1"),)))
    assert {(e.type, e.id) for e in found.entities} == {
        ("User", "u1"),
        ("Order", "o1"),
        ("Device", "d1"),
        ("Repair", "r1"),
        ("Warranty", "w1"),
        ("Product", "p1"),
    }
    assert {edge.type for edge in found.edges} == {
        "PLACED",
        "CONTAINS",
        "HAS_REPAIR",
        "COVERED_BY",
        "INSTANCE_OF",
    }
    assert [item.id for item in found.seeds] == ["m1"]
    assert [source.id for source in found.sources] == ["crm"]


async def test_expanding_from_the_root_keeps_the_newest_within_the_caps(graph, tenant):
    entities = [row("User", "u1", name="Ann")]
    relations = []
    for n in range(9):
        entities.append(row("Order", f"o{n}", placed_at=NOW + timedelta(days=n)))
        relations.append(relation("PLACED", ("User", "u1"), ("Order", f"o{n}")))
    entities.append(row("Order", "undated"))
    relations.append(relation("PLACED", ("User", "u1"), ("Order", "undated")))
    await graph.upsert_entities(tenant, entities, relations)
    found = await graph.expand(expand_query(tenant, from_root=True))
    orders = {entity.id for entity in found.entities if entity.type == "Order"}
    assert orders == {"o4", "o5", "o6", "o7", "o8"}


async def test_expansion_shows_only_what_is_current_and_the_users_own(graph, tenant):
    await graph.upsert_entities(tenant, *CHAIN)
    about = (entity_key(tenant, EntityRef("Device", "d1")),)
    day = timedelta(days=1)
    shown = [
        memory(tenant, "own", about=about),
        memory(tenant, "shared", about=about, user_id=None),
        memory(tenant, "starts now", about=about, valid_from=NOW),
    ]
    hidden = [
        memory(tenant, "other user", about=about, user_id="u2"),
        memory(tenant, "ends now", about=about, valid_until=NOW),
        memory(tenant, "not yet", about=about, valid_from=NOW + day),
        memory(tenant, "expired", about=about, expires_at=NOW),
        memory(tenant, "disabled", about=about, status=Status.DISABLED),
        memory(tenant, "forgotten", about=about, status=Status.FORGOTTEN),
        memory(tenant, "sensitive", about=about, privacy="sensitive"),
    ]
    everything = [*shown, *hidden]
    await write(graph, everything, "token")
    wanted = {item.id for item in shown}
    mention = (EntityRef("Device", "d1"),)
    by_walk = await graph.expand(expand_query(tenant, mentions=mention, memories_per_entity=50))
    assert {item.id for item in by_walk.others} == wanted
    by_seed = await graph.expand(expand_query(tenant, seeds=tuple(item.key for item in everything)))
    assert {item.id for item in by_seed.seeds} == wanted
    history = await graph.expand(
        expand_query(tenant, seeds=tuple(item.key for item in everything), include_history=True)
    )
    assert {item.id for item in history.seeds} == wanted | {"ends now"}


async def test_another_users_entity_is_hidden_and_counted(graph, tenant):
    await graph.upsert_entities(tenant, *CHAIN)
    await graph.upsert_entities(tenant, [row("User", "u2", name="Bob")], [])
    mention = (EntityRef("Order", "o1"), EntityRef("Order", "none"), EntityRef("Product", "p1"))
    found = await graph.expand(expand_query(tenant, user="u2", mentions=mention))
    assert {(e.type, e.id) for e in found.entities} == {("User", "u2"), ("Product", "p1")}
    assert found.hidden == 1
    assert found.mentioned == (EntityRef("Product", "p1"),)


async def test_a_scan_cap_says_that_it_cut(graph, tenant):
    await graph.upsert_entities(tenant, *CHAIN)
    about = (entity_key(tenant, EntityRef("Device", "d1")),)
    await write(graph, [memory(tenant, f"m{n}", about=about) for n in range(4)], "token")
    mention = (EntityRef("Device", "d1"),)
    cut = await graph.expand(expand_query(tenant, mentions=mention, scan_cap=3))
    whole = await graph.expand(expand_query(tenant, mentions=mention, scan_cap=30))
    assert (cut.scanned_out, whole.scanned_out) == (True, False)


async def test_names_are_the_users_own_and_those_of_his_products(graph, tenant):
    await graph.upsert_entities(tenant, *CHAIN)
    await graph.upsert_entities(
        tenant, [row("User", "u2", name="Bob"), row("Product", "p2", name="Lamp")], []
    )
    names = {item.name: set(item.refs) for item in await graph.names(tenant, "u1")}
    assert names["Phone"] == {EntityRef("Product", "p1"), EntityRef("Device", "d1")}
    assert names["SN-1"] == {EntityRef("Device", "d1")}
    assert {"Bob", "Lamp"} & names.keys() == set()
    shared = {item.name for item in await graph.names(tenant, None)}
    assert shared == {"Phone", "Lamp"}


async def test_ids_that_end_so_are_the_users_own(graph, tenant):
    await graph.upsert_entities(
        tenant,
        [
            row("User", "u1"),
            row("User", "u2", name="Bob"),
            *(row("Order", id_) for id_ in ("#W123456", "W9123456", "#W123457", "#V123456")),
        ],
        [
            relation("PLACED", ("User", user), ("Order", id_))
            for user, id_ in (
                ("u1", "#W123456"),
                ("u1", "W9123456"),
                ("u1", "#W123457"),
                ("u2", "#V123456"),
            )
        ],
    )
    assert await graph.ids_ending(tenant, "u1", "Order", ["123456"]) == ("#W123456", "W9123456")
    several = await graph.ids_ending(tenant, "u1", "Order", ["3457", "123457", "9123456"])
    assert several == ("#W123457", "W9123456")
    assert await graph.ids_ending(tenant, "u2", "Order", ["123456"]) == ("#V123456",)
    assert await graph.ids_ending(tenant, "u1", "Device", ["123456"]) == ()
    assert await graph.ids_ending(f"{tenant}-other", "u1", "Order", ["123456"]) == ()


async def test_related_follows_both_directions_and_shows_only_the_users_own(graph, tenant):
    await graph.upsert_entities(tenant, *CHAIN)
    await graph.upsert_entities(
        tenant,
        [
            row("User", "u2", name="Bob"),
            row("Order", "o2"),
            row("Device", "d2", name="Phone"),
        ],
        [
            relation("PLACED", ("User", "u2"), ("Order", "o2")),
            relation("CONTAINS", ("Order", "o2"), ("Device", "d2")),
            relation("INSTANCE_OF", ("Device", "d2"), ("Product", "p1")),
        ],
    )

    async def related(user, ref, relation_, other, *, forward):
        found = await graph.related(
            RelatedQuery(tenant, user, (EntityRef(*ref),), relation_, other, forward, 10)
        )
        return [entity.id for entities in found.values() for entity in entities]

    assert await related("u1", ("Device", "d1"), "HAS_REPAIR", "Repair", forward=True) == ["r1"]
    assert await related("u1", ("Device", "d1"), "CONTAINS", "Order", forward=False) == ["o1"]
    assert await related("u1", ("Product", "p1"), "INSTANCE_OF", "Device", forward=False) == ["d1"]
    assert await related("u2", ("Product", "p1"), "INSTANCE_OF", "Device", forward=False) == ["d2"]
    assert await related("u2", ("Device", "d1"), "HAS_REPAIR", "Repair", forward=True) == []


async def test_api_keys_round_trip(graph, tenant):
    key = ApiKey(
        id=f"{tenant}-key",
        tenant=tenant,
        name="agents",
        secret_hash="hash",
        roles=frozenset({Role.AGENT, Role.OPERATOR}),
        users=frozenset({"u1", "u2"}),
        created_at=NOW,
    )
    everyone = replace(key, id=f"{tenant}-all", users=EveryUser.OF_TENANT, expires_at=NOW)
    await graph.save_api_key(key)
    await graph.save_api_key(everyone)
    assert await graph.api_key(key.id) == key
    assert await graph.api_key(everyone.id) == everyone
    assert await graph.api_key("unknown") is None
    revoked = replace(key, revoked_at=NOW)
    await graph.save_api_key(revoked)
    assert set(await graph.api_keys(tenant)) == {revoked, everyone}


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_strings_are_values_and_nothing_else(graph, tenant, text):
    await graph.upsert_entities(
        tenant, [row("User", text, name=text), row("Order", text, status=text)], []
    )
    await graph.upsert_entities(tenant, [], [relation("PLACED", ("User", text), ("Order", text))])
    await write(
        graph,
        [
            memory(
                tenant,
                text,
                text=text,
                user_id=text,
                topic=text,
                about=(entity_key(tenant, EntityRef("Order", text)),),
            ),
            memory(tenant, "another user's"),
        ],
        "token",
    )
    (order,) = await graph.visible_entities(tenant, text, [EntityRef("Order", text)])
    assert order.props["status"] == text
    seeds = (memory_key(tenant, text), memory_key(tenant, "another user's"))
    found = await graph.expand(expand_query(tenant, user=text, seeds=seeds))
    assert [item.id for item in found.seeds] == [text]
    assert {(e.type, e.id) for e in found.entities} == {("User", text), ("Order", text)}
    assert (await graph.counts(tenant))["Order"] == 1


async def test_tenants_share_ids_but_nothing_else(graph, tenant):
    other = f"{tenant}-other"
    await graph.upsert_entities(tenant, *CHAIN)
    await graph.upsert_entities(other, [row("User", "u1", name="Eve")], [])
    await write(graph, [memory(tenant, "m1")], "one")
    await write(graph, [memory(other, "m1", text="theirs", content_hash="x")], "two")
    assert await graph.visible_entities(other, "u1", [EntityRef("Device", "d1")]) == ()
    found = await graph.expand(
        expand_query(
            other,
            seeds=(memory_key(tenant, "m1"), memory_key(other, "m1")),
            mentions=(EntityRef("Device", "d1"),),
            from_root=True,
        )
    )
    assert [item.text for item in found.seeds] == ["theirs"]
    assert {entity.key for entity in found.entities} == {f"{other}|User|u1"}
    assert (await graph.counts(other))["Memory"] == 1


async def test_a_wrong_password_is_its_own_error(stores):
    async with opened(stores, password="not the password", timeout_s=20) as store:
        with pytest.raises(StoreAuthenticationFailed):
            await store.ping()


async def test_nobody_listening_is_unavailable(unused_tcp_port):
    nobody = Neo4jGraph.open(
        f"bolt://127.0.0.1:{unused_tcp_port}",
        "neo4j",
        "password",
        database="neo4j",
        domain=DOMAIN,
        timeout_s=6,
    )
    async with nobody as store:
        with pytest.raises(StoreUnavailable):
            await store.names("t", "u1")


async def test_a_uri_that_is_none_is_a_configuration_error():
    with pytest.raises(ConfigurationInvalid, match="NEO4J_URI"):
        async with Neo4jGraph.open(
            "http://nowhere", "u", "p", database="neo4j", domain=DOMAIN, timeout_s=5
        ):
            pass
