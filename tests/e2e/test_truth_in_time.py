"""Recall says what is true at a moment: nothing expired or not yet valid; history on demand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from ecphoria.errors import LessReliable, NotCurrent, NotFound
from ecphoria.model import (
    Action,
    EntityInput,
    EntityRef,
    FactInput,
    MemoryInput,
    RecallRequest,
    Role,
)
from ecphoria.testing import ManualClock
from engines import with_clock

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


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
    # a review counts against the record as far as it is worth next to it; the record in full
    better, lesser = (item.confidence.consistency.score for item in result.memories)
    assert (better, lesser) == (pytest.approx(1 - 0.40 / 0.95), 0)
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


# --- what was known ------------------------------------------------------------------------

ORDER = EntityRef("Order", "#882301")


def status(id_, value, at, **more):
    return MemoryInput(
        text="",
        user_id="u1",
        id=id_,
        facts=(FactInput(ORDER, "order.status", value),),
        occurred_at=NOW + at * DAY,
        **more,
    )


async def history(engine, admin, **times):
    return await engine.attribute_history(admin, "u1", ORDER, "order.status", **times)


async def test_each_write_is_known_from_its_own_moment_on(shop, admin):
    """By today's clock, whose moments are finer than what the stores keep."""
    for number, value in enumerate(("placed", "paid", "shipped", "delivered")):
        await shop.remember(admin, [status(f"m{number}", value, number - 9)])
    moments = [memory.recorded_at for memory in (await history(shop, admin)).entries]
    for number, moment in enumerate(moments):
        told = await history(shop, admin, known_at=moment, as_of=NOW)
        assert [memory.id for memory in told.current] == [f"m{number}"]
        assert [memory.id for memory in told.entries] == [f"m{n}" for n in range(number + 1)]
        assert told.conflicting == ()


async def test_the_two_times_are_asked_for_apart(shop, admin):
    clock = ManualClock(NOW)
    own = with_clock(shop, clock)
    await own.remember(admin, [status("paid", "paid", -9)])
    clock.advance(DAY)
    await own.remember(admin, [status("delivered", "delivered", -1)])
    clock.advance(DAY)
    await own.remember(admin, [status("shipped", "shipped", -5)])
    expected = {
        # known then: what held then at (9.5, 7, 3, 0.5) days before
        NOW: [None, "paid", "paid", "paid"],
        NOW + DAY: [None, "paid", "paid", "delivered"],
        NOW + 2 * DAY: [None, "paid", "shipped", "delivered"],
    }
    for known_at, values in expected.items():
        for days, value in zip((9.5, 7, 3, 0.5), values, strict=True):
            told = await history(own, admin, known_at=known_at, as_of=NOW - days * DAY)
            assert [memory.value for memory in told.current] == ([value] if value else [])
    before = await history(own, admin, known_at=NOW - DAY)
    assert before.entries == ()


async def test_a_clock_that_is_behind_changes_no_past(shop, admin):
    ahead, behind = ManualClock(NOW), ManualClock(NOW - HOUR)
    await with_clock(shop, ahead).remember(admin, [status("paid", "paid", -9)])
    await with_clock(shop, behind).remember(admin, [status("shipped", "shipped", -5)])
    ahead.advance(HOUR)
    await with_clock(shop, ahead).remember(admin, [status("delivered", "delivered", -1)])
    for known_at, value in ((NOW, "shipped"), (NOW + HOUR, "delivered")):
        told = await history(shop, admin, known_at=known_at, as_of=NOW)
        assert [memory.value for memory in told.current] == [value]
    # nothing was known before the first was
    assert (await history(shop, admin, known_at=NOW - HOUR, as_of=NOW)).entries == ()


async def test_recall_answers_as_it_would_have_then(shop, admin):
    clock = ManualClock(NOW)
    own = with_clock(shop, clock)
    wrong, right = "The spare key is kept in the blue drawer.", "The spare key is in the green box."
    question = "Where is the spare key kept?"
    await own.remember(admin, [MemoryInput(text=wrong, user_id="u1", id="wrong", kind="semantic")])
    clock.advance(DAY)
    await own.correct(
        admin, "wrong", MemoryInput(text=right, user_id="u1", id="right"), "somebody looked"
    )
    clock.advance(DAY)
    await own.retract(admin, "u1", "right", "nobody knows")
    asked = {
        "known_at": [(NOW, [wrong]), (NOW + DAY, [right]), (NOW + 2 * DAY, [wrong])],
        "as_of": [(NOW + 2 * DAY, [wrong])],
    }
    for name, cases in asked.items():
        for moment, expected in cases:
            times = {"as_of": None} | {name: moment}
            assert await texts(own, admin, question, **times) == expected, (name, moment)


async def test_what_was_taken_back_ends_nothing_when_it_is_forgotten(shop, admin):
    await shop.remember(admin, [status("paid", "paid", -9)])
    await shop.supersede(admin, "paid", status("wrong", "cancelled", -8), "customer called")
    await shop.retract(admin, "u1", "wrong", "another customer")
    await shop.remember(admin, [status("shipped", "shipped", -5)])
    await shop.forget(admin, "u1", ["wrong"], "asked for")
    await shop.retract(admin, "u1", "shipped", "another order")
    told = await history(shop, admin, as_of=NOW)
    assert [(memory.id, memory.valid_until) for memory in told.current] == [("paid", None)]


async def test_only_what_is_current_is_changed_by_hand(shop, admin):
    await shop.remember(admin, [status("paid", "paid", -9), status("shipped", "shipped", -5)])
    new = status("new", "delivered", -1)
    with pytest.raises(NotCurrent, match="shipped"):
        await shop.supersede(admin, "paid", new, "it came")
    with pytest.raises(NotCurrent, match="shipped"):
        await shop.retract(admin, "u1", "paid", "it came")
    with pytest.raises(NotFound):
        await shop.correct(admin, "unknown", new, "it came")
    agent = replace(admin, roles=frozenset({Role.AGENT}))
    with pytest.raises(LessReliable):
        await shop.supersede(agent, "shipped", replace(new, source="ugc"), "heard it")
    receipt = await shop.supersede(admin, "shipped", replace(new, source="ugc"), "heard it")
    assert receipt.supersedes == ("shipped",)
