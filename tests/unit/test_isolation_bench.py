"""The isolation benchmark sees what leaks, wherever it stands, and asks the same every time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from benchmarks.isolation import allowed, leaks
from benchmarks.isolation_data import entities, ids, marks, memories, queries, world

from builders import NOW, memory, recalled
from ecphoria.model import (
    Action,
    ConsideredMemory,
    Entity,
    EntityRef,
    RecalledEntity,
    RecalledRelation,
    RecallResult,
    TraceStep,
)

CROWD = world(("a", "b"), 12)
# the second one's order is named by the first
ONE, _, OTHER = CROWD.users[:3]
MAY = allowed(CROWD)["a", ONE.id]


def result(**more):
    empty = RecallResult(
        Action.ANSWER, NOW, "en", (), (), (), (), None, None, "", (), (TraceStep("rank", 1.0, 0),)
    )
    return replace(empty, **more)


def seen(found, question=""):
    return leaks(MAY, ONE, question, found)


def own(text="nothing of note", user=ONE, tenant="a"):
    key = f"{tenant}|Memory|{user.memory_id(1)}"
    return replace(memory(user.memory_id(1), text, user_id=user.id), key=key, tenant=tenant)


def test_what_is_his_own_or_shared_is_no_leak():
    text = f"{ONE.order} {ONE.serial} {ONE.mark} {CROWD.shared['a']} {ONE.memory_id(3)}"
    assert seen(result(memories=(recalled(own(text)),), context=text)) == []
    shared = replace(own(), user_id=None)
    assert seen(result(memories=(recalled(shared),))) == []


def test_an_id_of_the_question_may_be_repeated_and_no_other():
    found = result(advisory=f"nothing on {OTHER.order}")
    assert seen(found, f"Where is {OTHER.order}?") == []
    assert seen(found, "Where is it?") == [f"id {OTHER.order}"]


@pytest.mark.parametrize(
    "found",
    [
        result(context=f"x {OTHER.mark} y"),
        result(advisory=OTHER.mark),
        result(degradations=(OTHER.mark,)),
        result(topics=(OTHER.mark,)),
        result(memories=(recalled(own(OTHER.mark)),)),
        result(memories=(replace(recalled(own()), because=(OTHER.mark,)),)),
        result(trace=(TraceStep("seed", 1.0, 1, note=OTHER.mark),)),
        result(trace=(TraceStep("seed", 1.0, 1, {OTHER.mark: 1}),)),
        result(trace=(TraceStep("rank", 1.0, 1, considered=(ConsideredMemory(own(OTHER.mark)),)),)),
    ],
)
def test_a_mark_is_seen_wherever_it_stands(found):
    assert seen(found) == [f"mark {OTHER.mark}"]


def test_the_mark_of_the_same_user_id_in_the_other_tenant_is_seen():
    (twin,) = (user for user in CROWD.users if user.id == ONE.id and user is not ONE)
    assert seen(result(context=twin.mark)) == [f"mark {twin.mark}"]
    assert seen(result(context=CROWD.shared["b"])) == [f"mark {CROWD.shared['b']}"]


def test_owners_are_looked_at_even_without_a_mark():
    foreign = own("nothing of note", OTHER)
    assert f"{foreign.key} of {OTHER.id}" in seen(result(memories=(recalled(foreign),)))
    considered = TraceStep("rank", 1.0, 1, considered=(ConsideredMemory(foreign),))
    assert f"{foreign.key} of {OTHER.id}" in seen(result(trace=(considered,)))
    entity = Entity("a|Order|x", "Order", "x", "x", user_id=OTHER.id)
    reached = RecalledEntity(entity, 1.0, recalled(own()).confidence, "why")
    # the owner's id stands in it, too
    assert seen(result(entities=(reached,))) == [f"id {OTHER.id}", f"a|Order|x of {OTHER.id}"]
    assert seen(result(memories=(recalled(own(tenant="b")),)))


def test_an_id_in_a_relation_is_seen():
    ends = EntityRef("User", ONE.id), EntityRef("Order", OTHER.order)
    assert seen(result(relations=(RecalledRelation("PLACED", *ends, 1.0),))) == [
        f"id {OTHER.order}"
    ]


def test_everything_that_is_one_users_has_his_mark():
    for tenant in ("a", "b"):
        for each in entities(CROWD, tenant):
            assert marks(repr(each)), each
        for each in memories(CROWD, tenant):
            (mark,) = marks(each.text)
            owner = next((user for user in CROWD.users if user.mark == mark), None)
            assert (each.user_id, tenant) == (owner and owner.id, owner.tenant if owner else tenant)


def test_no_question_holds_a_mark_and_most_are_about_others():
    asked = list(queries(CROWD, 500, seed=3))
    assert not any(marks(query.request.question) for query in asked)
    others = [
        query
        for query in asked
        if ids(query.request.question) - allowed(CROWD)[query.user.tenant, query.user.id].ids
    ]
    assert len(others) > 150
    assert {query.user for query in asked} == set(CROWD.users)
    assert {query.request.explain for query in asked} == {True, False}
    assert any(query.foreign for query in asked)
    assert all(query.one_user for query in asked if query.foreign)


def test_the_same_seed_asks_the_same():
    assert list(queries(CROWD, 50, seed=3)) == list(queries(CROWD, 50, seed=3))
    assert list(queries(CROWD, 50, seed=3)) != list(queries(CROWD, 50, seed=4))
