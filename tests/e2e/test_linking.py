"""What a memory is about is found in its text, within its own user's things only."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ecphoria.model import (
    EntityInput,
    EntityRef,
    Link,
    LinkMethod,
    MemoryInput,
    ReceiptStatus,
    RelationInput,
)


def ref(type_, id_):
    return EntityRef(type_, id_)


@pytest.fixture
async def shop(engine, admin):
    entities, relations = [], []
    for user, order, device, serial in (
        ("u1", "#882301", "d1", "SN1000001"),
        ("u2", "#882302", "d2", "SN1000002"),
    ):
        entities += [
            EntityInput("User", user, {"name": "Zhang Wei", "name_zh": "张伟"}),
            EntityInput("Order", order, {"status": "delivered"}),
            EntityInput("Device", device, {"name": "iPhone 15", "serial": serial}),
        ]
        relations += [
            RelationInput("PLACED", ref("User", user), ref("Order", order)),
            RelationInput("CONTAINS", ref("Order", order), ref("Device", device)),
            RelationInput("INSTANCE_OF", ref("Device", device), ref("Product", "p1")),
        ]
    entities.append(EntityInput("Product", "p1", {"name": "iPhone 15", "aliases": ["苹果15"]}))
    await engine.upsert_entities(admin, entities, relations)
    return engine


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("订单#882301还没发货", {ref("Order", "#882301")}),
        ("order 882301 has not arrived", {ref("Order", "#882301")}),
        ("订单＃８８２３０１还没发货", {ref("Order", "#882301")}),
        ("order #882302 has not arrived", set()),  # another user's, one digit off
        ("order #8823011 has not arrived", set()),
        ("我的iPhone15屏幕碎了", {ref("Device", "d1"), ref("Product", "p1")}),
        ("苹果15屏幕碎了", {ref("Device", "d1"), ref("Product", "p1")}),
        ("the iPhone 1 in the museum", set()),
        ("unit SN1000001 came in", {ref("Device", "d1")}),
        ("unit SN1000002 came in", set()),
    ],
)
async def test_links_by_id_alias_and_name(shop, admin, text, expected):
    (receipt,) = await shop.remember(admin, [MemoryInput(text=text, user_id="u1")])
    assert receipt.status is ReceiptStatus.CREATED
    assert {link.entity for link in receipt.links} == expected
    kept = (await shop.links(admin, "u1", [receipt.id])).get(receipt.id, ())
    assert set(kept) == set(receipt.links)


async def test_a_link_says_how_it_was_found_and_how_certain_it_is(shop, admin):
    given, by_id, by_name = await shop.remember(
        admin,
        [
            MemoryInput(text="It came late.", user_id="u1", about=(ref("Order", "#882301"),)),
            MemoryInput(text="Order 882301 came late.", user_id="u1"),
            MemoryInput(text="The iPhone 15 came late.", user_id="u1"),
        ],
    )
    assert given.links == (Link(ref("Order", "#882301"), 1.0, LinkMethod.GIVEN),)
    assert by_id.links == (Link(ref("Order", "#882301"), 0.95, LinkMethod.ID),)
    assert {link.how for link in by_name.links} == {LinkMethod.NAME}
    assert {link.certainty for link in by_name.links} == {0.9}


async def test_several_of_one_name_are_each_less_certain(shop, admin):
    await shop.upsert_entities(
        admin,
        [EntityInput("Device", "d9", {"name": "iPhone 15"})],
        [RelationInput("CONTAINS", ref("Order", "#882301"), ref("Device", "d9"))],
    )
    (receipt,) = await shop.remember(
        admin, [MemoryInput(text="我的iPhone 15屏幕碎了", user_id="u1")]
    )
    certainty = {link.entity: link.certainty for link in receipt.links}
    assert certainty == {
        ref("Device", "d1"): 0.45,
        ref("Device", "d9"): 0.45,
        ref("Product", "p1"): 0.9,
    }


# --- "it" ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("unit SN1000001 came in for a check", "it hums at night"),
        ("SN1000001 送来检查", "那台晚上有杂音"),
    ],
)
@pytest.mark.parametrize("together", [True, False])
async def test_it_means_the_last_device_of_the_session(shop, admin, first, then, together):
    said = [MemoryInput(text=text, user_id="u1", session_id="s1") for text in (first, then)]
    if together:
        _, receipt = await shop.remember(admin, said)
    else:
        await shop.remember(admin, said[:1])
        (receipt,) = await shop.remember(admin, said[1:])
    assert receipt.links == (Link(ref("Device", "d1"), 0.6, LinkMethod.PRONOUN),)


@pytest.mark.parametrize(
    "changes",
    [
        {"session_id": "another"},
        {"session_id": None},
        {"user_id": "u2"},
        {"text": "另一台没问题"},
        {"text": "the order never came"},
    ],
)
async def test_it_means_nothing_of_another_session_user_or_type(shop, admin, changes):
    first = MemoryInput(text="unit SN1000001 came in", user_id="u1", session_id="s1")
    then = MemoryInput(text="it hums at night", user_id="u1", session_id="s1")
    await shop.remember(admin, [first])
    (receipt,) = await shop.remember(admin, [replace(then, **changes)])
    assert receipt.links == ()


# --- ids that wait -------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["订单#990077还没发货", "order 990077 has not arrived"])
async def test_an_unknown_id_waits_and_links_when_its_entity_arrives(shop, admin, text):
    (receipt,) = await shop.remember(admin, [MemoryInput(text=text, user_id="u1")])
    assert receipt.links == ()
    assert [waiting.lstrip("#") for waiting in receipt.waiting_for] == ["990077"]
    # a neighbour's order, one digit off, comes and goes by
    await shop.upsert_entities(
        admin,
        [EntityInput("Order", "#990078", {"status": "paid"})],
        [RelationInput("PLACED", ref("User", "u1"), ref("Order", "#990078"))],
    )
    assert await shop.links(admin, "u1", [receipt.id]) == {}
    await shop.upsert_entities(
        admin,
        [EntityInput("Order", "#990077", {"status": "paid"})],
        [RelationInput("PLACED", ref("User", "u1"), ref("Order", "#990077"))],
    )
    (link,) = (await shop.links(admin, "u1", [receipt.id]))[receipt.id]
    assert (link.entity, link.how) == (ref("Order", "#990077"), LinkMethod.ARRIVED)
    assert 0 < link.certainty <= 0.95


async def test_an_id_waits_in_vain_for_what_is_another_users(shop, admin):
    (receipt,) = await shop.remember(admin, [MemoryInput(text="订单#990079还没发货", user_id="u1")])
    await shop.upsert_entities(
        admin,
        [EntityInput("Order", "#990079", {"status": "paid"})],
        [RelationInput("PLACED", ref("User", "u2"), ref("Order", "#990079"))],
    )
    assert await shop.links(admin, "u1", [receipt.id]) == {}


@pytest.mark.parametrize(
    "about", [ref("Order", "#882302"), ref("Order", "none"), ref("User", "u2")]
)
async def test_an_explicit_link_out_of_scope_rejects_the_item_only(shop, admin, about):
    bad = MemoryInput(text="This is about somebody else.", user_id="u1", about=(about,))
    good = MemoryInput(text="This is about nothing.", user_id="u1")
    rejected, kept = await shop.remember(admin, [bad, good])
    assert (rejected.status, rejected.code) == (ReceiptStatus.REJECTED, "MISSING_ENTITY")
    assert rejected.path == ("about", 0)
    assert kept.status is ReceiptStatus.CREATED
    assert (await shop.graph.counts(admin.tenant))["Memory"] == 1


async def test_the_same_input_twice_is_one_memory(shop, admin):
    item = MemoryInput(text="订单#882301还没发货", user_id="u1")
    first, twin = await shop.remember(admin, [item, item])
    (again,) = await shop.remember(admin, [item])
    assert [first.status, twin.status, again.status] == [
        ReceiptStatus.CREATED,
        ReceiptStatus.DUPLICATE,
        ReceiptStatus.DUPLICATE,
    ]
    assert first.id == twin.id == again.id
    assert (await shop.memory(admin, "u1", first.id)).text == item.text
    assert await shop.index.count(admin.tenant) == 1
