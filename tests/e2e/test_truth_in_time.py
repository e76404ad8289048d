"""Recall says what is true at a moment: nothing expired or not yet valid; history on demand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from ecphoria.model import Action, EntityInput, EntityRef, MemoryInput, RecallRequest

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
async def shop(engine, admin):
    await engine.upsert_entities(
        admin,
        [EntityInput("User", "u1", {"name": "Ann"}), EntityInput("User", "u2", {"name": "Ann"})],
    )
    return engine


async def texts(engine, admin, question, user="u1", **changes):
    request = RecallRequest(question, user, **({"as_of": NOW} | changes))
    return [item.memory.text for item in (await engine.recall(admin, request)).memories]


async def test_a_just_acknowledged_memory_is_found_at_once(shop, admin):
    for number in range(10):
        text = f"The courier for parcel number {number} is called Courier{number}."
        (receipt,) = await shop.remember(admin, [MemoryInput(text=text, user_id="u1")])
        assert receipt.indexed
        found = await texts(
            shop, admin, f"Who is the courier for parcel number {number}?", as_of=None
        )
        assert text in found


async def test_validity_decides_and_as_of_moves_it(shop, admin):
    await shop.remember(
        admin,
        [
            MemoryInput(
                text="The delivery address is 1 Old Street.",
                user_id="u1",
                valid_from=NOW - 30 * DAY,
                valid_until=NOW - DAY,
            ),
            MemoryInput(
                text="The delivery address is 2 New Street.", user_id="u1", valid_from=NOW - DAY
            ),
            MemoryInput(
                text="The delivery address is 3 Future Street.", user_id="u1", valid_from=NOW + DAY
            ),
        ],
    )
    question = "What is the delivery address?"
    assert await texts(shop, admin, question) == ["The delivery address is 2 New Street."]
    assert await texts(shop, admin, question, as_of=NOW - 2 * DAY) == [
        "The delivery address is 1 Old Street."
    ]
    later = await texts(shop, admin, question, as_of=NOW + 2 * DAY)
    assert set(later) == {
        "The delivery address is 2 New Street.",
        "The delivery address is 3 Future Street.",
    }


async def test_what_has_expired_is_gone_for_good(shop, admin):
    await shop.remember(
        admin,
        [
            MemoryInput(
                text="The parcel waits at locker 17.",
                user_id="u1",
                valid_from=NOW - DAY,
                expires_at=NOW,
            )
        ],
    )
    question = "At which locker does the parcel wait?"
    assert await texts(shop, admin, question, as_of=NOW - timedelta(seconds=1)) != []
    assert await texts(shop, admin, question, as_of=NOW) == []


async def test_a_superseded_memory_is_history(shop, admin):
    await shop.remember(
        admin,
        [
            MemoryInput(
                text="The chosen courier is BlueBird.",
                user_id="u1",
                id="old",
                valid_from=NOW - 9 * DAY,
            ),
            MemoryInput(
                text="The chosen courier is RedFox.",
                user_id="u1",
                id="new",
                valid_from=NOW - 2 * DAY,
                supersedes="old",
            ),
        ],
    )
    await shop.reconcile()
    assert await texts(shop, admin, "Which courier is chosen?") == ["The chosen courier is RedFox."]
    assert await texts(shop, admin, "Which courier is chosen?", as_of=NOW - 5 * DAY) == [
        "The chosen courier is BlueBird."
    ]
    before = await texts(shop, admin, "Which courier was chosen before?")
    assert "The chosen courier is BlueBird." in before


async def test_users_and_tenants_never_mix(shop, admin, tenant):
    secret = "The gift card code for the parcel is 4711."
    await shop.remember(admin, [MemoryInput(text=secret, user_id="u2", valid_from=NOW - DAY)])
    assert await texts(shop, admin, "What is the gift card code for the parcel?", user="u2") == [
        secret
    ]
    assert await texts(shop, admin, "What is the gift card code for the parcel?") == []
    other = replace(admin, tenant=f"{tenant}-other")
    assert await texts(shop, other, "What is the gift card code for the parcel?", user="u2") == []


async def test_shared_knowledge_reaches_every_user(shop, admin):
    rule = "Returned parcels are refunded within 14 days."
    await shop.remember(
        admin, [MemoryInput(text=rule, user_id=None, kind="procedural", valid_from=NOW - DAY)]
    )
    for user in ("u1", "u2"):
        assert await texts(
            shop, admin, "Within how many days are returned parcels refunded?", user
        ) == [rule]


async def test_conflicting_memories_are_shown_with_the_more_reliable_first(shop, admin):
    await shop.upsert_entities(admin, [EntityInput("Product", "p1", {"name": "Kettle"})])
    about = (EntityRef("Product", "p1"),)
    await shop.remember(
        admin,
        [
            MemoryInput(
                text="The warranty of the kettle lasts 12 months.",
                user_id="u1",
                id="review",
                source="ugc",
                topic="warranty",
                about=about,
                valid_from=NOW - DAY,
                occurred_at=NOW - DAY,
            ),
            MemoryInput(
                text="The warranty of the kettle lasts 24 months.",
                user_id="u1",
                id="record",
                source="crm",
                topic="warranty",
                about=about,
                valid_from=NOW - DAY,
                occurred_at=NOW - DAY,
            ),
        ],
    )
    result = await shop.recall(
        admin, RecallRequest("How long is the warranty of the kettle?", "u1", as_of=NOW)
    )
    assert result.action is Action.ANSWER
    assert [item.memory.id for item in result.memories] == ["record", "review"]
    assert result.memories[0].conflicts_with == ("review",)
    assert result.memories[0].confidence.consistency.score == 0
    assert result.memories[0].confidence.overall > result.memories[1].confidence.overall


async def test_low_confidence_is_said_in_the_questions_language(shop, admin):
    await shop.remember(
        admin,
        [
            MemoryInput(
                text="听说这款水壶的保修可能是两年。",
                user_id="u1",
                source="ugc",
                topic="warranty",
                occurred_at=NOW - 400 * DAY,
                valid_from=NOW - 400 * DAY,
                expires_at=NOW + 400 * DAY,
            )
        ],
    )
    result = await shop.recall(admin, RecallRequest("这款水壶的保修是几年?", "u1", as_of=NOW))
    assert result.action is Action.ANSWER
    assert result.confidence is not None
    assert result.confidence.overall < 0.6
    assert result.advisory is not None
    assert "置信度较低" in result.advisory
