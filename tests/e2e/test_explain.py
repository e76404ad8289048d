"""A recall that explains itself: all that was looked at, and the same answer."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ecphoria.model import Action, EveryUser, MemoryInput, RecallRequest, Role, Scope

THEN = datetime(2026, 3, 1, 12, tzinfo=UTC)
TEXTS = {
    "address": ("u1", "The customer's shipping address is 9 Quay Street, Bristol"),
    "kettle": ("u1", "水壶的电源线太短,客户希望换一根长的"),
    "secret": ("u2", "The customer's shipping address is 4 Mill Lane, Leeds"),
    "rule": (None, "A shipping address can be changed until the parcel is dispatched"),
}


@pytest.fixture
async def kept(engine, admin):
    items = [
        MemoryInput(text, user, id=id_, occurred_at=THEN) for id_, (user, text) in TEXTS.items()
    ]
    await engine.remember(admin, items)


@pytest.mark.parametrize("question", ["What is my shipping address?", "我的收货地址是什么?"])
@pytest.mark.usefixtures("kept")
async def test_everything_that_was_looked_at_is_told_and_nothing_else(engine, tenant, question):
    scope = Scope(tenant, "agent", frozenset({Role.AGENT}), EveryUser.OF_TENANT)
    request = RecallRequest(question, "u1", explain=True)

    found = await engine.recall(scope, request)

    assert found.action is Action.ANSWER
    looked = {each.memory.id: each for step in found.trace for each in step.considered}
    assert set(looked) == {"address", "kettle", "rule"}
    inside = [item.memory.id for item in found.memories]
    assert [id_ for id_, each in looked.items() if each.dropped is None] == inside
    assert sorted(each.place for each in looked.values()) == [1, 2, 3]
    for each in looked.values():
        assert sum(part.share for part in each.features) == pytest.approx(each.score)
    rank = next(step for step in found.trace if step.stage == "rank")
    assert (rank.input, rank.candidates) == ("3 memories", len(inside))
    assert sum(rank.dropped.values()) == 3 - len(inside)
    assert all(step.input and step.output for step in found.trace)

    # it is told at the end, and changes nothing
    plain = await engine.recall(scope, replace(request, explain=False))
    assert [item.memory.id for item in plain.memories] == inside
    assert not any(step.considered for step in plain.trace)
    assert [step.stage for step in plain.trace] == [step.stage for step in found.trace]


@pytest.mark.usefixtures("kept")
async def test_of_a_fallback_it_is_told_what_was_too_weak(engine, tenant):
    scope = Scope(tenant, "agent", frozenset({Role.AGENT}), EveryUser.OF_TENANT)
    request = RecallRequest("Where is order #990417?", "u1", explain=True)

    found = await engine.recall(scope, request)

    assert (found.action, found.memories) == (Action.FALLBACK, ())
    looked = [each for step in found.trace for each in step.considered]
    assert {each.memory.id for each in looked} <= {"address", "kettle", "rule"}
    assert looked
    assert all(each.dropped for each in looked)
    notes = {step.stage: step.note for step in found.trace}
    assert "nothing of this user's" in notes["focus"]
    assert notes["judge"].startswith("FALLBACK: best relevance")
