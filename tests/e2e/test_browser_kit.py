"""The analysts' queries on real stores: the rows they promise, and no secret among them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import neo4j
import pytest

from builders import pending_memory
from ecphoria.model import (
    EntityInput,
    EntityRef,
    FactInput,
    Link,
    LinkMethod,
    MemoryInput,
    RelationInput,
    memory_key,
)
from ecphoria.recall.judge import disagreeing, memory_confidence
from ecphoria.stores.neo4j import Neo4jGraph
from ecphoria.stores.ports import EntityRow, NewMemory, RelationRow
from ecphoria_schema.browser_kit import kit_queries, role_statements, sensitive_properties
from ecphoria_schema.domain import load_domain
from engines import all_memories

DAY = timedelta(days=1)
CLINIC = load_domain(Path(__file__).parents[1] / "domains" / "clinic.yaml")
USER, OTHER = "u1", "u2"
ORDER, DEVICE = EntityRef("Order", "#910001"), EntityRef("Device", "d1")
PHONE, STREET = "13812345678", "221 Baker Street"


@pytest.fixture
def ask(stores, tenant):
    """Run a query of a kit as the Browser does: by Bolt, in a read transaction."""
    auth = (stores.neo4j_user, stores.neo4j_password)
    with (
        neo4j.GraphDatabase.driver(
            stores.neo4j_uri, auth=auth, notifications_min_severity="OFF"
        ) as driver,
        driver.session(
            database=stores.neo4j_database, default_access_mode=neo4j.READ_ACCESS
        ) as session,
    ):

        def run(domain, name, **parameters):
            (query,) = (item for item in kit_queries(domain) if item.name == name)
            values = {
                "tenant": tenant,
                "userId": USER,
                "entityType": domain.root,
                "entityId": USER,
                "attribute": None,
                "topic": None,
                "memoryIds": None,
            } | parameters
            found = list(session.run(query.body, values))
            _check_shown(domain, found)
            return found

        yield run


def _check_shown(domain, found):
    """No node comes with what is sensitive, and of memories and keys come none at all."""
    hiding = {label for label in domain.entities if sensitive_properties(domain, label)}
    for record in found:
        for node in _nodes(list(record.values())):
            assert node.labels <= set(domain.entities) - hiding
    said = repr([[_plain(value) for value in record.values()] for record in found])
    for secret in (PHONE, STREET, "metoprolol", "enc1:"):
        assert secret not in said


def _nodes(value):
    if isinstance(value, neo4j.graph.Node):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _nodes(item)


def _plain(value):
    return dict(value.items()) if isinstance(value, neo4j.graph.Entity) else value


@pytest.fixture
async def shop(engine, admin):
    now = datetime.now(UTC)
    await engine.upsert_entities(
        admin,
        [
            EntityInput("User", USER, {"name": "Li Lei", "phone": PHONE, "level": "gold"}),
            EntityInput("User", OTHER, {"name": "Han Meimei"}),
            EntityInput("Order", ORDER.id, {"status": "shipped", "placed_at": now - 40 * DAY}),
            EntityInput("Order", "#910002", {"placed_at": now - 3 * DAY}),
            EntityInput("Device", "d1", {"name": "iPhone 15"}),
            EntityInput("Repair", "rep-1", {"fault": "screen"}),
            EntityInput("Warranty", "w1", {"kind": "extended", "ends_at": now + 90 * DAY}),
            EntityInput("Product", "p1", {"name": "iPhone"}),
            EntityInput("Payment", "pay1", {"method": "card", "card_last4": "4417"}),
        ],
        [
            RelationInput("PLACED", EntityRef("User", USER), ORDER),
            RelationInput("PLACED", EntityRef("User", USER), EntityRef("Order", "#910002")),
            RelationInput("CONTAINS", ORDER, DEVICE),
            RelationInput("HAS_REPAIR", DEVICE, EntityRef("Repair", "rep-1")),
            RelationInput("COVERED_BY", DEVICE, EntityRef("Warranty", "w1")),
            RelationInput("INSTANCE_OF", DEVICE, EntityRef("Product", "p1")),
            RelationInput("PAID_BY", ORDER, EntityRef("Payment", "pay1")),
        ],
    )

    def status(id_, value, days, **more):
        facts = (FactInput(ORDER, "order.status", value),)
        return MemoryInput("", USER, id=id_, facts=facts, occurred_at=now - days * DAY, **more)

    receipts = await engine.remember(
        admin,
        [
            status("paid", "paid", 30, source="crm"),
            status("shipped", "shipped", 20, source="crm"),
            status("doubt", "delivered", 5, source="ugc"),
            MemoryInput(
                f"客户手机号{PHONE}，请寄到{STREET}",
                USER,
                id="phone",
                about=(DEVICE,),
                source="crm",
            ),
            MemoryInput(
                "The patient takes metoprolol",
                USER,
                id="secret",
                about=(DEVICE,),
                privacy="sensitive",
            ),
            MemoryInput(
                "The screen flickers since the repair",
                USER,
                id="flicker",
                about=(DEVICE,),
                topic="fault",
                occurred_at=now - 60 * DAY,
                valid_until=now + 30 * DAY,
            ),
            MemoryInput("Asks about order #777001 again", USER, id="waits", topic="logistics"),
            MemoryInput("Prefers tea", OTHER, id="theirs"),
        ],
    )
    assert [receipt for receipt in receipts if receipt.status == "REJECTED"] == []
    return engine


async def test_a_walk_brings_what_hangs_below_a_customer(shop, ask):
    rows = ask(shop.domain, "01_after_sales")
    assert [row["order"]["id"] for row in rows] == ["#910002", ORDER.id]
    last = rows[-1]
    assert last["user"]["name"] == "Li Lei"
    assert {"phone", "address", "email"}.isdisjoint(last["user"])
    assert [last[name]["name"] for name in ("device", "repair", "warranty", "product")] == [
        "iPhone 15", "screen", "extended", "iPhone",
    ]  # fmt: skip
    assert [item.type for item in last["relations"]] == [
        "CONTAINS", "HAS_REPAIR", "COVERED_BY", "INSTANCE_OF",
    ]  # fmt: skip
    paid = ask(shop.domain, "01_payments")[-1]
    assert paid["payment"]["method"] == "card"
    assert "card_last4" not in paid["payment"]
    assert ask(shop.domain, "01_tickets")[0]["ticket"] is None
    assert ask(shop.domain, "01_after_sales", tenant="nobody") == []


async def test_facts_stand_beside_what_they_replaced(shop, ask):
    rows = {row["memory"]: row for row in ask(shop.domain, "02_current_and_superseded")}
    states = {id_: (row["state"], row["value"]) for id_, row in rows.items()}
    assert states["paid"] == ("superseded", "paid")
    assert states["shipped"] == ("current", "shipped")
    assert rows["paid"]["replaced_by"] == ["shipped"]
    assert rows["paid"]["about"] == [ORDER.id]
    assert rows["paid"]["until"] == rows["shipped"]["since"]
    assert ask(shop.domain, "02_current_and_superseded", attribute="user.phone") == []


async def test_conflicts_name_both_sides(shop, ask):
    for parameters in ({}, {"userId": None}):
        (row,) = ask(shop.domain, "03_conflicts_by_topic", **parameters)
        assert (row["newer_value"], row["newer_source"]) == ("delivered", "ugc")
        assert (row["older_value"], row["older_memory"]) == ("shipped", "shipped")
    assert ask(shop.domain, "03_conflicts_by_topic", topic="gift") == []
    assert ask(shop.domain, "03_conflicts_by_topic", userId=OTHER) == []


async def test_confidence_is_what_recall_would_say(shop, ask, admin, tenant):
    rows = ask(shop.domain, "04_by_confidence")
    scores = [row["confidence"] for row in rows]
    assert scores == sorted(scores)
    now = datetime.now(UTC)
    known = [
        memory
        for memory in await all_memories(shop, tenant)
        if memory.user_id == USER and memory.status == "active"
    ]
    against = disagreeing(known, known)
    infos = {source.id: source for source in await shop.sources(admin)}
    assert {row["memory"] for row in rows} == {memory.id for memory in known}
    for row in rows:
        (memory,) = (item for item in known if item.id == row["memory"])
        expected = memory_confidence(memory, known, against, infos, shop.domain, now)
        assert row["timeliness"] == pytest.approx(expected.timeliness.score, abs=0.011)
        assert row["source"] == pytest.approx(expected.source.score)
        assert row["consistency"] == pytest.approx(expected.consistency.score, abs=0.011)
        assert row["confidence"] == pytest.approx(expected.overall, abs=0.011)
    assert {row["memory"]: row["consistency"] for row in rows}["doubt"] == 0


async def test_unlinked_memories_tell_what_they_wait_for(shop, ask, tenant):
    mine = ask(shop.domain, "05_unlinked")
    assert [(row["memory"], row["user"]) for row in mine] == [("waits", USER)]
    assert f"{tenant}|Order|#777001" in mine[0]["waits_for"]
    everybody = ask(shop.domain, "05_unlinked", userId=None)
    assert {row["memory"] for row in everybody} == {"waits", "theirs"}


async def test_sources_come_with_what_they_gave(shop, ask):
    rows = ask(shop.domain, "06_sources")
    trust = [row["reliability"] for row in rows]
    assert trust == sorted(trust, reverse=True)
    counts = {
        row["source"]: (row["memories"], row["active"], row["superseded"], row["contradicting"])
        for row in rows
    }
    assert counts["ugc"] == (1, 1, 0, 1)
    assert counts["crm"][2:] == (1, 0)
    assert sum(count[0] for count in counts.values()) == 8


async def test_what_recall_used_comes_with_how_often(shop, ask, tenant):
    assert ask(shop.domain, "07_used_by_recall") == []
    shop.access.note([memory_key(tenant, "flicker")], datetime.now(UTC))
    await shop.access.flush()
    (row,) = ask(shop.domain, "07_used_by_recall")
    assert (row["memory"], row["used"], row["about"]) == ("flicker", 1, ["iPhone 15"])
    asked = ask(shop.domain, "07_used_by_recall", memoryIds=["secret", "flicker", "theirs"])
    assert [row["memory"] for row in asked] == ["flicker", "secret"]
    assert asked[-1]["text"] == "[sensitive]"


async def test_what_the_index_waits_for(shop, ask, tenant):
    assert ask(shop.domain, "08_pending") == []
    await shop.graph.write_memories(
        [NewMemory(pending_memory(tenant, "m-wait", datetime.now(UTC)))], "t", datetime.now(UTC)
    )
    (row,) = ask(shop.domain, "08_pending")
    assert (row["memory"], row["state"]) == (f"{tenant}|Memory|m-wait", "pending")
    assert ask(shop.domain, "08_pending", tenant=tenant[:-1]) == []
    await shop.reconcile()


async def test_the_history_of_an_attribute_is_in_order_of_time(shop, ask):
    thing = {"entityType": "Order", "entityId": ORDER.id}
    rows = ask(shop.domain, "09_history_of_attribute", **thing, attribute="order.status")
    assert [row["value"] for row in rows] == ["paid", "shipped", "delivered"]
    assert [row["how"] for row in rows] == [["attribute"], [], []]
    assert rows[0]["true_until"] == rows[1]["true_from"]
    assert rows == ask(shop.domain, "09_history_of_attribute", **thing)


async def test_memories_of_one_thing_come_with_the_way_to_it(shop, ask):
    rows = ask(shop.domain, "10_about_one_thing", entityType="Device", entityId="d1")
    texts = {row["memory"]: row["text"] for row in rows}
    assert texts.keys() == {"phone", "secret", "flicker"}
    assert texts["secret"] == "[sensitive]"
    assert "[" in texts["phone"]
    assert {tuple(row["way"]) for row in rows} == {("Li Lei", ORDER.id, "iPhone 15")}
    assert {row["linked_by"] for row in rows} == {"given"}
    assert ask(shop.domain, "10_about_one_thing", entityType="Device", entityId="d2") == []


async def test_a_second_domain_has_its_own_queries(stores, ask, tenant):
    now = datetime.now(UTC)
    patient, visit = EntityRef("Patient", USER), EntityRef("Visit", "vis-001")
    doctor, drug = EntityRef("Doctor", "doc-1"), EntityRef("Prescription", "rx-1")
    async with Neo4jGraph.open(
        stores.neo4j_uri,
        stores.neo4j_user,
        stores.neo4j_password,
        database=stores.neo4j_database,
        domain=CLINIC,
        timeout_s=60,
    ) as graph:
        await graph.migrate()
        await graph.upsert_entities(
            tenant,
            [
                EntityRow(patient, {"name": "王芳", "allergies": "enc1:x"}, now),
                EntityRow(visit, {"reason": "咳嗽"}, now),
                EntityRow(doctor, {"name": "李医生"}, now),
                EntityRow(drug, {"drug": "止咳糖浆"}, now),
            ],
            [
                RelationRow("CAME_FOR", patient, visit),
                RelationRow("SEEN_BY", visit, doctor),
                RelationRow("RESULTED_IN", visit, drug),
            ],
        )
        memory = pending_memory(tenant, "m-1", now, user_id=USER, source_id="chart")
        link = Link(visit, 1.0, LinkMethod.GIVEN)
        await graph.write_memories([NewMemory(memory, (link,))], "t", now)
    (row,) = ask(CLINIC, "01_referrals")
    assert row["doctor"]["name"] == "李医生"
    (row,) = ask(CLINIC, "01_treatment")
    assert row["patient"]["name"] == "王芳"
    assert "allergies" not in row["patient"]
    assert (row["prescription"]["name"], row["doctor"]["name"]) == ("止咳糖浆", "李医生")
    (row,) = ask(CLINIC, "10_about_one_thing", entityType="Visit", entityId="vis-001")
    assert row["way"] == ["王芳", "咳嗽"]
    (row,) = ask(CLINIC, "04_by_confidence")
    assert row["confidence"] == pytest.approx(0.4 + 0.35 * 0.9 + 0.25, abs=0.011)


async def test_neo4j_reads_every_statement_of_the_role(stores, engine):
    if stores.kind == "embedded":
        pytest.skip("ArcadeDB has no such commands")
    auth = (stores.neo4j_user, stores.neo4j_password)
    with (
        neo4j.GraphDatabase.driver(stores.neo4j_uri, auth=auth) as driver,
        driver.session(database="system") as session,
    ):
        for statement in role_statements(engine.domain, "demo", "neo4j"):
            # Community parses them, and says that it has no roles
            with pytest.raises(neo4j.exceptions.ClientError) as refused:
                session.run(statement).consume()
            assert refused.value.code.endswith("UnsupportedAdministrationCommand"), statement
