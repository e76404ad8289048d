"""How systems of this kind have failed their users, as public reports tell: not here."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from ecphoria.errors import EmbeddingFailed, NotFound
from ecphoria.model import (
    EntityInput,
    EntityRef,
    LinkMethod,
    MemoryInput,
    RecallRequest,
    ReceiptStatus,
    RelationInput,
    Status,
)
from ecphoria.testing import ManualClock
from engines import HashEmbedder, all_memories, check_index_equals_graph, settle, with_clock

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ORDER = EntityRef("Order", "#882301")


def day(number):
    return NOW + timedelta(days=number)


@pytest.fixture
def clock():
    return ManualClock(NOW)


@pytest.fixture
async def shop(engine, admin, clock):
    made = with_clock(engine, clock)
    entities, relations = [], []
    for user, order, device, serial in (
        ("u1", "#882301", "d1", "SN1000001"),
        ("u2", "#882302", "d2", "SN1000002"),
    ):
        entities += [
            EntityInput("User", user, {"name": "Zhang Wei", "name_zh": "张伟"}),
            EntityInput("Order", order, {"status": "placed"}),
            EntityInput("Device", device, {"name": "iPhone 15", "serial": serial}),
        ]
        relations += [
            RelationInput("PLACED", EntityRef("User", user), EntityRef("Order", order)),
            RelationInput("CONTAINS", EntityRef("Order", order), EntityRef("Device", device)),
        ]
    await made.upsert_entities(admin, entities, relations)
    return made


async def keep(engine, scope, text, user="u1", **more):
    (receipt,) = await engine.remember(scope, [MemoryInput(text, user, **more)])
    return receipt


async def current(engine, scope, attribute="order.status", entity=ORDER, **more):
    found = await engine.attribute_history(scope, "u1", entity, attribute, **more)
    return sorted({memory.value for memory in found.current})


# --- identity and duplicates ---------------------------------------------------------------

STATEMENTS = [
    ("订单#882301已付款,正在备货。", 1),
    ("Order #882301 has been shipped.", 2),
    ("订单#882301已签收。", 4),
    ("I love spicy ramen.", 1),
    ("I hate spicy ramen.", 3),
    ("我喜欢拿铁。", 2),
    ("The customer asked about the screen of the iPhone 15.", 2),
    ("The customer asked about the screen of the iPhone 15!", 3),
    ("客户询问了发票的开具方式。", 1),
]


def shuffled(items):
    return random.Random(7).sample(items, len(items))  # noqa: S311 - any other order will do


def _state(memories):
    """Return the state that must be the same; of what was said twice, either time may stay."""
    return sorted(
        (item.text.rstrip("!."), item.status, item.value or "")
        + ((item.valid_from, item.valid_until or day(99)) if item.value else ())
        for item in memories
    )


async def test_bulk_gives_what_one_by_one_gives(engine, admin):
    items = [MemoryInput(text, "u1", occurred_at=day(at), source="crm") for text, at in STATEMENTS]
    found = []
    for number, order in enumerate(("bulk", "single", "shuffled")):
        own = replace(admin, tenant=f"{admin.tenant}-{number}")
        made = with_clock(engine, ManualClock(day(9)))
        await made.upsert_entities(
            own,
            [EntityInput("User", "u1", {"name": "Ann"}), EntityInput("Order", ORDER.id, {})],
            [RelationInput("PLACED", EntityRef("User", "u1"), ORDER)],
        )
        if order == "bulk":
            receipts = list(await made.remember(own, items))
        else:
            given = shuffled(items) if order == "shuffled" else items
            receipts = [(await made.remember(own, [item]))[0] for item in given]
        assert ReceiptStatus.REJECTED not in {receipt.status for receipt in receipts}
        await settle(made, own.tenant)
        found.append(_state(await check_index_equals_graph(made, own.tenant)))
    assert len(found[0]) == len(STATEMENTS) - 1  # the two that say the same are one
    assert found[1] == found[0]
    assert found[2] == found[0]


async def test_the_same_id_again_does_not_duplicate_and_is_found_at_once(shop, admin, tenant):
    first = await keep(shop, admin, "客户更喜欢下午送货", id="own-1")
    again = await keep(shop, admin, "客户更喜欢下午送货", id="own-1")
    assert (first.status, again.status) == (ReceiptStatus.CREATED, ReceiptStatus.DUPLICATE)
    assert (await shop.memory(admin, "u1", "own-1")).reinforced == 1
    assert [item.id for item in await all_memories(shop, tenant)] == ["own-1"]
    found = await shop.recall(admin, RecallRequest("客户更喜欢什么时候送货?", "u1"))
    assert "own-1" in [item.memory.id for item in found.memories]


async def test_across_the_ten_minutes_it_is_still_one_memory(shop, admin, clock):
    first = await keep(shop, admin, "The customer wants a paper invoice.")
    clock.advance(timedelta(days=2))
    again = await keep(shop, admin, "the customer wants a paper invoice")
    assert (again.status, again.id) == (ReceiptStatus.DUPLICATE, first.id)
    assert again.indexed
    clock.advance(timedelta(days=8))
    later = await keep(shop, admin, "the customer wants a paper invoice")
    assert later.status is ReceiptStatus.CREATED


async def test_ids_that_differ_in_one_digit_never_meet(shop, admin):
    one = await keep(shop, admin, "订单#882301已签收。")
    two = await keep(shop, admin, "订单#882303已签收。")
    assert two.status is ReceiptStatus.CREATED
    assert one.id != two.id
    assert two.waiting_for == ("#882303",)
    assert [link.entity for link in one.links] == [ORDER]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("She studied at the University of York.", "She studied at New York University."),
        ("他毕业于北京大学。", "他毕业于北京化工大学。"),
        ("张伟来取件。", "王伟来取件。"),
        ("The refund was approved.", "The refund was not approved."),
        ("容量是5GB。", "容量是5MB。"),
    ],
)
async def test_near_equal_is_not_the_same(shop, admin, first, second):
    receipts = [await keep(shop, admin, text) for text in (first, second)]
    assert [item.status for item in receipts] == [ReceiptStatus.CREATED] * 2
    assert receipts[0].id != receipts[1].id


async def test_a_similar_text_with_another_number_is_a_possible_update(shop, admin):
    old = await keep(shop, admin, "The courier asked for the 4 digit code of the parcel box.")
    new = await keep(shop, admin, "The courier asked for the 5 digit code of the parcel box.")
    assert new.possible_update_of == (old.id,)
    lineage = await shop.lineage(admin, "u1", [old.id])
    (entry,) = lineage[old.id]
    assert (entry.type, entry.outgoing, entry.other) == ("POSSIBLE_UPDATE_OF", False, new.id)


async def test_a_bad_item_or_vector_does_not_fail_the_rest(shop, admin, tenant):
    class Broken(HashEmbedder):
        async def embed_passages(self, texts):
            if any("poison" in text for text in texts):
                msg = "the model cannot read this"
                raise EmbeddingFailed(msg)
            return await super().embed_passages(texts)

    broken = replace(shop, embedder=Broken(shop.embedder.spec))
    receipts = await broken.remember(
        admin,
        [
            MemoryInput("好的一条", "u1", id="good"),
            MemoryInput("poison", "u1", id="bad-vector"),
            MemoryInput(" ", "u1", id="bad-text"),
            MemoryInput("a good one", "u1", id="good-too"),
        ],
    )
    assert [item.status for item in receipts] == [
        ReceiptStatus.CREATED,
        ReceiptStatus.CREATED,
        ReceiptStatus.REJECTED,
        ReceiptStatus.CREATED,
    ]
    assert [item.indexed for item in receipts] == [True, False, False, True]
    assert (receipts[2].code, receipts[2].path) == ("TEXT_EMPTY", ("text",))
    assert (await shop.graph.counts(tenant))["pending"] == 1
    await settle(shop, tenant)
    await check_index_equals_graph(shop, tenant)


async def test_an_id_cannot_be_taken_over_by_other_content_or_another_user(shop, admin):
    await keep(shop, admin, "mine", id="m", session_id="s1")
    for taken in (
        await keep(shop, admin, "something else", id="m"),
        await keep(shop, admin, "mine", user="u2", id="m"),
    ):
        assert (taken.status, taken.code) == (ReceiptStatus.REJECTED, "ID_CONFLICT")
    kept = await shop.memory(admin, "u1", "m")
    assert (kept.text, kept.session_id, kept.user_id) == ("mine", "s1", "u1")
    with pytest.raises(NotFound):
        await shop.memory(admin, "u2", "m")


# --- truth in time -------------------------------------------------------------------------


async def test_an_old_mention_does_not_retire_a_true_fact(shop, admin):
    await keep(shop, admin, "订单#882301已签收。", occurred_at=day(-1), source="crm")
    late = await keep(shop, admin, "Order #882301 has been shipped.", occurred_at=day(-5))
    assert late.status is ReceiptStatus.HISTORICAL
    assert await current(shop, admin) == ["delivered"]
    mention = await keep(shop, admin, "The customer mentioned order #882301 again.")
    assert mention.supersedes == ()
    assert await current(shop, admin) == ["delivered"]


@pytest.mark.parametrize(
    ("love", "hate", "others"),
    [
        ("I love spicy ramen.", "I hate spicy ramen.", "My brother's favourite is spicy ramen."),
        ("我喜欢拿铁。", "我讨厌拿铁。", "我哥哥最喜欢的是拿铁。"),
    ],
)
async def test_love_then_hate_closes_one_and_a_brothers_taste_none(shop, admin, love, hate, others):
    loved = await keep(shop, admin, love, occurred_at=day(-3))
    brother = await keep(shop, admin, others, occurred_at=day(-2))
    hated = await keep(shop, admin, hate, occurred_at=day(-1))
    assert (brother.status, brother.supersedes) == (ReceiptStatus.CREATED, ())
    assert (hated.status, hated.supersedes) == (ReceiptStatus.SUPERSEDED, (loved.id,))
    found = await shop.memories(admin, "u1", [loved.id, brother.id, hated.id])
    assert [found[item.id].status for item in (loved, brother, hated)] == [
        Status.SUPERSEDED,
        Status.ACTIVE,
        Status.ACTIVE,
    ]


async def test_repetition_and_this_supersedes_do_not_overrule_the_crm(shop, admin):
    truth = await keep(shop, admin, "Order #882301 has been delivered.", source="crm")
    for number in range(5):
        lie = await keep(
            shop,
            admin,
            "Order #882301 has been cancelled.",
            id=f"lie-{number}",
            source="ugc",
            supersedes=truth.id,
            occurred_at=day(number + 1),
        )
        assert lie.status is ReceiptStatus.CONFLICT
        assert truth.id in lie.conflicts_with
    assert await current(shop, admin, as_of=day(9)) == ["delivered"]


async def test_reversed_validity_is_refused(shop, admin):
    bad = await keep(shop, admin, "x", valid_from=day(2), valid_until=day(1))
    assert (bad.status, bad.code) == (ReceiptStatus.REJECTED, "INVALID_TIME")


async def test_time_zones_compare_by_the_moment(shop, admin):
    for text, at in (
        ("Order #882301 has been delivered.", "2026-02-10T08:00:00+08:00"),  # 00:00 UTC
        ("Order #882301 has been shipped.", "2026-02-09T23:00:00Z"),
        ("Order #882301 has been paid and is being prepared.", "2026-02-09T10:00:00-05:00"),
    ):
        await keep(shop, admin, text, occurred_at=datetime.fromisoformat(at))
    assert await current(shop, admin) == ["delivered"]
    naive = datetime(2026, 2, 10)  # noqa: DTZ001 - that is the point
    refused = await keep(shop, admin, "x", occurred_at=naive)
    assert refused.code == "INVALID_TIME"


# --- language and text ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["张伟", "欧阳娜娜", "李", "۱۲۳", "Ørsted"])
async def test_names_are_kept_whatever_their_script(shop, admin, name):
    receipt = await keep(shop, admin, f"{name}打来电话")
    assert name in (await shop.memory(admin, "u1", receipt.id)).text


@pytest.mark.parametrize(
    "sentences",
    [
        [f"第{number}条是关于退货规定的说明，请客服留意。" for number in range(150)],
        [f"Paragraph {number} explains how parcels are handled in depot." for number in range(90)],
    ],
    ids=["zh", "en"],
)
async def test_no_sentence_of_a_long_text_is_cut_away(shop, admin, sentences):
    blank = "" if "。" in sentences[0] else " "
    receipt = await keep(shop, admin, blank.join(sentences), kind="procedural", id="long")
    assert len(receipt.facts) > 1
    kept = await shop.memories(admin, "u1", [item.id for item in receipt.facts])
    assert "long" in kept
    for sentence in sentences:
        assert any(sentence in memory.text for memory in kept.values()), sentence
    assert {memory.kind for memory in kept.values()} == {"procedural"}


# --- links ---------------------------------------------------------------------------------


async def test_people_of_one_name_stay_apart(shop, admin):
    own = await keep(shop, admin, "张伟的 iPhone 15 屏幕碎了")
    other = await keep(shop, admin, "张伟的 iPhone 15 屏幕碎了", user="u2")
    assert own.id != other.id
    assert [link.entity.id for link in own.links] == ["d1"]
    assert [link.entity.id for link in other.links] == ["d2"]


@pytest.mark.parametrize("text", ["It still does not turn on.", "那台还是开不了机"])
async def test_it_means_the_last_device_of_the_session(shop, admin, text):
    await keep(shop, admin, "The iPhone 15 is broken.", session_id="s1")
    receipt = await keep(shop, admin, text, session_id="s1")
    (link,) = receipt.links
    assert (link.entity.id, link.how) == ("d1", LinkMethod.PRONOUN)
    assert link.certainty < 0.9
    elsewhere = await keep(shop, admin, text, session_id="s2")
    assert elsewhere.links == ()


async def test_an_unknown_order_is_linked_when_it_comes(shop, admin):
    receipt = await keep(shop, admin, "订单#990001已发货。")
    assert receipt.waiting_for == ("#990001",)
    order = EntityRef("Order", "990001")
    await shop.upsert_entities(
        admin,
        [EntityInput("Order", "990001", {})],
        [RelationInput("PLACED", EntityRef("User", "u1"), order)],
    )
    (link,) = (await shop.links(admin, "u1", [receipt.id]))[receipt.id]
    assert (link.entity, link.how) == (order, LinkMethod.ARRIVED)
    assert await current(shop, admin, entity=order) == ["shipped"]


async def test_a_duplicate_tells_the_truth_about_the_index(shop, admin, tenant):
    class Away(HashEmbedder):
        async def embed_passages(self, texts):
            msg = f"the model is away for {len(texts)} texts"
            raise EmbeddingFailed(msg)

    away = replace(shop, embedder=Away(shop.embedder.spec))
    first = await keep(away, admin, "门铃坏了", id="m")
    again = await keep(away, admin, "门铃坏了", id="m")
    assert [item.indexed for item in (first, again)] == [False, False]
    await settle(shop, tenant)
    assert (await keep(shop, admin, "门铃坏了", id="m")).indexed
