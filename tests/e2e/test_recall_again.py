"""A question that is asked again is quicker, and never answered from what was."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from ecphoria.clock import Clock
from ecphoria.errors import EmbeddingFailed, InvalidVector
from ecphoria.model import EntityInput, EntityRef, MemoryInput, RecallRequest, RelationInput
from engines import with_clock

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
QUESTIONS = ["What is the delivery address?", "收货地址是什么？"]


def address(number, text, user="u1"):
    return MemoryInput(text=text, user_id=user, id=f"m{number}", occurred_at=NOW - number * DAY)


@pytest.fixture
async def shop(engine, admin):
    """Return the shared engine with two users, one of whom had a device repaired."""
    await engine.upsert_entities(
        admin,
        [
            EntityInput("User", "u1", {"name": "Ann"}),
            EntityInput("User", "u2", {"name": "Bob"}),
            EntityInput("Order", "o1", {"status": "paid"}),
            EntityInput("Device", "d1", {"name": "Phone"}),
            EntityInput("Repair", "r1", {"fault": "the display flickers", "status": "closed"}),
        ],
        [
            RelationInput("PLACED", EntityRef("User", "u1"), EntityRef("Order", "o1")),
            RelationInput("CONTAINS", EntityRef("Order", "o1"), EntityRef("Device", "d1")),
            RelationInput("HAS_REPAIR", EntityRef("Device", "d1"), EntityRef("Repair", "r1")),
        ],
    )
    await engine.remember(
        admin,
        [
            address(1, "The delivery address 收货地址 is 1 Old Street."),
            address(2, "The delivery address 收货地址 is 9 Far Street.", "u2"),
        ],
    )
    return engine


class Counted:
    """What a block of questions found in the cache."""

    def __init__(self, engine):
        self._engine = engine

    def __enter__(self):
        self._before = self._engine.queries.figures()
        return self

    def __exit__(self, *_):
        after = self._engine.queries.figures()
        self.hits = after.hits - self._before.hits
        self.misses = after.misses - self._before.misses


async def ask(engine, scope, question, user="u1"):
    found = await engine.recall(scope, RecallRequest(question, user, as_of=NOW))
    assert found.degradations == ()
    return (
        found.action,
        [item.memory.text for item in found.memories],
        [item.entity.ref for item in found.entities],
        found.context,
    )


@pytest.mark.parametrize("question", QUESTIONS)
async def test_a_second_time_nothing_is_embedded_and_the_answer_is_the_same(shop, admin, question):
    with Counted(shop) as first:
        answer = await ask(shop, admin, question)
    with Counted(shop) as second:
        assert await ask(shop, admin, question) == answer
    assert answer[1] == ["The delivery address 收货地址 is 1 Old Street."]
    assert first.misses > 0
    assert (second.hits, second.misses) == (first.hits + first.misses, 0)


async def test_descriptions_are_kept_for_other_questions(shop, admin):
    with Counted(shop) as first:
        await ask(shop, admin, "Is the one that flickers repaired?")
    with Counted(shop) as second:
        await ask(shop, admin, "Was it closed?")
    # the question, and the repair's fault; the question's only clause is the question
    assert (first.misses, first.hits) == (2, 1)
    assert (second.misses, second.hits) == (1, 2)


@pytest.mark.parametrize("question", QUESTIONS)
async def test_what_one_user_asks_tells_nothing_of_another(shop, admin, question):
    with Counted(shop) as first:
        await ask(shop, admin, question)
    with Counted(shop) as other:
        found = await ask(shop, admin, question, "u2")
    assert other.misses == first.misses - 1  # u2 has nothing that is described
    assert found[1] == ["The delivery address 收货地址 is 9 Far Street."]


async def test_a_write_between_changes_the_answer_and_drops_what_was_kept(shop, admin):
    with Counted(shop) as first:
        await ask(shop, admin, QUESTIONS[0])
    await ask(shop, admin, QUESTIONS[0], "u2")
    new = MemoryInput(text="The delivery address 收货地址 is 2 New Street.", user_id="u1")
    await shop.correct(admin, "m1", new, "moved")

    with Counted(shop) as mine:
        found = await ask(shop, admin, QUESTIONS[0])
    with Counted(shop) as others:
        await ask(shop, admin, QUESTIONS[0], "u2")
    assert found[1] == ["The delivery address 收货地址 is 2 New Street."]
    assert mine.misses == first.misses > 0
    assert others.misses == 0


async def test_a_write_in_another_process_changes_the_answer_as_well(shop, admin):
    elsewhere = with_clock(shop, Clock())
    await ask(shop, admin, QUESTIONS[0])
    new = MemoryInput(text="The delivery address 收货地址 is 2 New Street.", user_id="u1")
    await elsewhere.correct(admin, "m1", new, "moved")
    await elsewhere.upsert_entities(
        admin, [EntityInput("Repair", "r1", {"fault": "the battery swells", "status": "closed"})]
    )

    assert (await ask(shop, admin, QUESTIONS[0]))[1] == [
        "The delivery address 收货地址 is 2 New Street."
    ]


async def test_forgetting_drops_what_was_asked(shop, admin, tenant):
    with Counted(shop) as first:
        await ask(shop, admin, QUESTIONS[0])
    assert (tenant, "u1") in shop.queries._keys
    await shop.forget(admin, "u1", ["m1"], "asked to")

    assert (tenant, "u1") not in shop.queries._keys
    assert not any(key.owner == (tenant, "u1") for key in shop.queries._kept)
    with Counted(shop) as after:
        assert (await ask(shop, admin, QUESTIONS[0]))[1] == []
    assert after.misses == first.misses > 0


@pytest.mark.parametrize("what", ["entity", "shared memory"])
async def test_what_is_everybodys_drops_the_tenants(shop, admin, tenant, what):
    for user in ("u1", "u2"):
        await ask(shop, admin, QUESTIONS[0], user)
    if what == "entity":
        await shop.upsert_entities(admin, [EntityInput("Order", "o2", {"status": "paid"})])
    else:
        rule = MemoryInput(text="Parcels leave within a day.", user_id=None, kind="procedural")
        await shop.remember(admin, [rule])
    assert not any(owner[0] == tenant for owner in shop.queries._keys)


class Spoilt:
    """An embedder that fails on descriptions alone."""

    def __init__(self, inner, failure):
        self._inner = inner
        self._failure = failure
        self.spec = inner.spec

    async def embed_query(self, text):
        return await self._inner.embed_query(text)

    async def embed_passages(self, _texts):
        raise self._failure


@pytest.mark.parametrize("failure", [EmbeddingFailed("no model"), InvalidVector("all zeros")])
async def test_a_description_without_a_vector_spoils_no_answer(shop, admin, failure):
    spoilt = replace(shop, embedder=Spoilt(shop.embedder, failure))
    assert (await ask(spoilt, admin, QUESTIONS[0]))[1] == [
        "The delivery address 收货地址 is 1 Old Street."
    ]
