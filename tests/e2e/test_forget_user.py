"""A user who is forgotten is gone from every store, and nothing of him comes back by itself."""

from __future__ import annotations

import json
from contextlib import aclosing

import pytest
from neo4j import AsyncGraphDatabase

from ecphoria.errors import Forbidden, NotFound, UserForgotten
from ecphoria.model import (
    Action,
    AuditFilter,
    AuditOutcome,
    EntityInput,
    EntityRef,
    EveryUser,
    MemoryFilter,
    MemoryInput,
    RecallRequest,
    ReceiptStatus,
    RelationInput,
    Role,
    Scope,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

USER, OTHER = EntityRef("User", "u1"), EntityRef("User", "u2")
PHONE = "13812345678"


async def shop(engine, admin):
    """Two users with an order each, memories of both, and a rule for everybody."""
    await engine.upsert_entities(
        admin,
        [
            EntityInput("User", "u1", {"name": "Li Lei", "phone": PHONE}),
            EntityInput("User", "u2", {"name": "Han Meimei"}),
            EntityInput("Order", "882301", {"status": "paid"}),
            EntityInput("Order", "882302", {"status": "paid"}),
        ],
        [
            RelationInput("PLACED", USER, EntityRef("Order", "882301")),
            RelationInput("PLACED", OTHER, EntityRef("Order", "882302")),
        ],
    )
    receipts = await engine.remember(
        admin,
        [
            MemoryInput(f"订单882301的耳机没声音，回电{PHONE}", "u1", id="mine-1"),
            MemoryInput("The parcel of order 882301 is late", "u1", id="mine-2"),
            MemoryInput("The parcel of order 882302 is late", "u2", id="theirs"),
            MemoryInput("Parcels are delivered within 3 days", None, id="rule"),
        ],
    )
    assert {receipt.status for receipt in receipts} == {ReceiptStatus.CREATED}
    await engine.remember_turn(admin, "u1", "s1", "customer", "Where is order 882301?")


async def unseen(engine, admin):
    """Whether no verb shows anything of the user."""
    with pytest.raises(NotFound):
        await engine.entity(admin, "u1", EntityRef("Order", "882301"))
    with pytest.raises(NotFound):
        await engine.memory(admin, "u1", "mine-1")
    listed = await engine.list_memories(admin, "u1", MemoryFilter())
    answer = await engine.recall(admin, RecallRequest("Where is the parcel of order 882301?", "u1"))
    said = await engine.session(admin, "u1", "s1")
    return (
        not listed.items
        and not said.turns
        and answer.action is Action.FALLBACK
        and PHONE not in answer.context
    )


async def names_in_graph(stores, tenant, *words):
    """Return which of the words stand in any node of the tenant."""
    auth = (stores.neo4j_user, stores.neo4j_password)
    async with AsyncGraphDatabase.driver(stores.neo4j_uri, auth=auth) as driver:
        result = await driver.execute_query(
            "MATCH (n) WHERE n.key STARTS WITH $tenant RETURN properties(n) AS props",
            tenant=f"{tenant}|",
            database_=stores.neo4j_database,
        )
    every = [str(dict(record["props"])) for record in result.records]
    return {word for word in words if any(word in props for props in every)}


async def test_all_that_is_his_goes_and_all_else_stays(engine, stores, admin, tenant):
    await shop(engine, admin)
    neighbour = Scope(f"{tenant}x", "test", admin.roles, EveryUser.OF_TENANT)
    await engine.remember(neighbour, [MemoryInput("Another shop's u1", "u1", id="mine-1")])

    receipt = await engine.forget_user(admin, "u1", "he asked for it, Art. 17")

    assert receipt.by == "test"
    assert receipt.finished_at is not None
    assert (receipt.counts["memories"], receipt.counts["turns"]) == (2, 1)
    assert receipt.counts["entities"] >= 2
    assert receipt.counts["data keys"] == 1
    assert await unseen(engine, admin)
    check = await engine.verify_forgotten(admin, "u1")
    assert (check.clean, dict(check.left), check.receipt) == (True, {}, receipt)
    assert (
        await names_in_graph(stores, tenant, "Li Lei", "882301", PHONE, "mine-1", "'u1'") == set()
    )

    assert (await engine.memory(admin, "u2", "theirs")).text == "The parcel of order 882302 is late"
    assert (await engine.memory(admin, "u2", "rule")).user_id is None
    assert await engine.entity(admin, "u2", EntityRef("Order", "882302"))
    assert (await engine.memory(neighbour, "u1", "mine-1")).text == "Another shop's u1"


async def test_old_data_does_not_bring_him_back_until_he_is_allowed(engine, admin):
    await shop(engine, admin)
    await engine.forget_user(admin, "u1", "he asked for it")

    again = MemoryInput("The parcel of order 882301 is late", "u1", id="mine-2")
    (refused, kept) = await engine.remember(
        admin, [again, MemoryInput("Order 882302 came", "u2", id="new")]
    )
    assert (refused.status, refused.code) == (ReceiptStatus.REJECTED, UserForgotten.code)
    assert kept.status is ReceiptStatus.CREATED
    with pytest.raises(UserForgotten) as caught:
        await engine.upsert_entities(admin, [EntityInput("User", "u1", {"name": "Li Lei"})])
    assert caught.value.path[:2] == ("entities", 0)
    assert (await engine.verify_forgotten(admin, "u1")).clean

    assert await engine.allow_forgotten(admin, "u1")
    assert not await engine.allow_forgotten(admin, "u1")
    await engine.upsert_entities(
        admin, [EntityInput("User", "u1", {"name": "Li Lei", "phone": PHONE})]
    )
    (receipt,) = await engine.remember(admin, [MemoryInput("He is back", "u1", id="back")])
    assert receipt.status is ReceiptStatus.CREATED
    listed = await engine.list_memories(admin, "u1", MemoryFilter())
    assert [memory.id for memory in listed.items] == ["back"]


async def test_interrupted_nobody_sees_him_and_the_worker_finishes(engine, admin):
    await shop(engine, admin)
    async with aclosing(engine.forget_user_in_batches(admin, "u1", "he asked for it")) as steps:
        first = await anext(steps)
    assert first.receipt is None
    assert await unseen(engine, admin)
    check = await engine.verify_forgotten(admin, "u1")
    assert check.receipt.finished_at is None

    again = await engine.forget_user(admin, "u1", "he asked for it, again")

    assert again.id == check.receipt.id
    assert again.finished_at is not None
    assert (await engine.verify_forgotten(admin, "u1")).clean


async def test_what_was_done_to_whom_is_on_record_without_content(engine, admin, tenant):
    await shop(engine, admin)
    agent = Scope(tenant, "an-agent", frozenset({Role.AGENT}), frozenset({"u1"}))
    with pytest.raises(Forbidden):
        await engine.forget_user(agent, "u1", "no")
    await engine.memory(admin, "u1", "mine-1")
    await engine.forget_user(admin, "u1", f"he asked for it, {PHONE}, u1")
    await engine.audit.flush()

    page = await engine.audit_log(admin, AuditFilter(user_id="u1"))

    entries = {(entry.operation, entry.principal, entry.outcome) for entry in page.items}
    assert ("forgetUser", "test", AuditOutcome.DONE) in entries
    assert ("forgetUser", "an-agent", AuditOutcome.REFUSED) in entries
    assert ("readSensitive", "test", AuditOutcome.DONE) in entries
    said = json.dumps([str(entry) for entry in page.items], ensure_ascii=False)
    assert PHONE not in said
    assert "'u1'" not in said
    with pytest.raises(Forbidden):
        await engine.audit_log(agent, AuditFilter())


async def test_only_operators_and_admins_forget_users(engine, tenant):
    for role, may in ((Role.AGENT, False), (Role.ANALYST, False), (Role.OPERATOR, True)):
        scope = Scope(tenant, "key", frozenset({role}), EveryUser.OF_TENANT)
        for act in (
            lambda scope=scope: engine.forget_user(scope, "nobody", "asked"),
            lambda scope=scope: engine.verify_forgotten(scope, "nobody"),
            lambda scope=scope: engine.allow_forgotten(scope, "nobody"),
        ):
            if may:
                await act()
            else:
                with pytest.raises(Forbidden):
                    await act()
