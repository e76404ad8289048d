"""What the trade calls the same thing is the same thing, in what is kept and in what is asked."""

from __future__ import annotations

import pytest

from ecphoria.model import Action, EntityInput, EntityRef, MemoryInput, RecallRequest, RelationInput

VACUUM, LAPTOP = EntityRef("Product", "p-vacuum"), EntityRef("Product", "p-laptop")


@pytest.fixture
async def shop(engine, admin):
    """Return the shared engine: one user with a vacuum cleaner, and laptops that he has not."""
    await engine.upsert_entities(
        admin,
        [
            EntityInput("User", "u1", {"name": "Ann"}),
            EntityInput("Order", "o1", {"status": "paid"}),
            EntityInput("Device", "d1", {"name": "Vacuum Cleaner", "name_zh": "吸尘器"}),
            EntityInput("Repair", "r1", {"fault": "the motor rattles", "status": "closed"}),
            EntityInput("Product", "p-vacuum", {"name": "Vacuum Cleaner", "name_zh": "吸尘器"}),
            EntityInput("Product", "p-laptop", {"name": "Laptop", "name_zh": "笔记本电脑"}),
        ],
        [
            RelationInput("PLACED", EntityRef("User", "u1"), EntityRef("Order", "o1")),
            RelationInput("CONTAINS", EntityRef("Order", "o1"), EntityRef("Device", "d1")),
            RelationInput("INSTANCE_OF", EntityRef("Device", "d1"), VACUUM),
            RelationInput("HAS_REPAIR", EntityRef("Device", "d1"), EntityRef("Repair", "r1")),
        ],
    )
    return engine


async def asked(engine, admin, question):
    found = await engine.recall(admin, RecallRequest(question, "u1"))
    assert found.degradations == ()
    return found.action, {item.entity.ref for item in found.entities}


@pytest.mark.parametrize("question", ["When was my hoover repaired?", "我的吸尘机修好了吗？"])
async def test_a_thing_is_met_by_another_word_for_it(shop, admin, question):
    action, entities = await asked(shop, admin, question)
    assert action is Action.ANSWER
    assert {EntityRef("Device", "d1"), EntityRef("Repair", "r1")} <= entities


@pytest.mark.parametrize(
    "question", ["When was my notebook computer repaired?", "我的手提电脑修好了吗？"]
)
async def test_a_thing_that_he_has_not_is_not_taken_for_one_that_he_has(shop, admin, question):
    assert await asked(shop, admin, question) == (Action.FALLBACK, set())


@pytest.mark.parametrize("question", ["How old is my hoover by now?", "我的吸尘机都多久了？"])
async def test_of_a_thing_that_is_named_it_is_told_what_is_known(shop, admin, question):
    action, entities = await asked(shop, admin, question)
    assert action is Action.ANSWER
    assert EntityRef("Device", "d1") in entities


@pytest.mark.parametrize("text", ["The hoover smells of smoke.", "吸尘机有焦味。"])
async def test_a_memory_is_linked_to_what_it_calls_by_another_word(shop, admin, text):
    (receipt,) = await shop.remember(admin, [MemoryInput(text=text, user_id="u1", id="m1")])
    assert "d1" in {link.entity.id for link in receipt.links}
