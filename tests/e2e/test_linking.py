"""What a memory is about is found in its text, within its own user's things only."""

from __future__ import annotations

import pytest

from ecphoria.model import EntityInput, EntityRef, MemoryInput, ReceiptStatus, RelationInput


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
    assert set(receipt.links) == expected


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
