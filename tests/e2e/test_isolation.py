"""No result of another user, whatever is asked: hundreds of questions about all the others.

``python -m benchmarks.isolation`` asks ten thousand.
"""

from __future__ import annotations

import pytest
from benchmarks.isolation import allowed, ask_all, leaks, load
from benchmarks.isolation_data import SESSION, queries, world

from ecphoria.model import EveryUser, RecallRequest, Role, Scope

USERS, QUERIES = 6, 400


@pytest.fixture
async def crowd(engine, tenant):
    """Return the users of two tenants that the engine holds."""
    found = world((tenant, f"{tenant}-b"), USERS)
    await load(engine, found)
    return found


async def test_no_question_brings_anything_of_another_user(engine, crowd):
    report = await ask_all(engine, crowd, queries(crowd, QUERIES, seed=7))

    assert report.leaks == []
    assert report.asked == QUERIES
    # not since nothing came back, nor since nobody asked for what is not his
    assert report.own_found >= 0.9 * report.own_asked > 0
    assert report.actions["ANSWER"] > QUERIES / 10
    assert report.refused > 0

    # what is looked for would have been seen: the answer to one, taken for that to his neighbour
    one, other = crowd.users[:2]
    scope = Scope(one.tenant, "test", frozenset({Role.AGENT}), EveryUser.OF_TENANT)
    request = RecallRequest(
        f"Where is order {one.order}?", one.id, session_id=SESSION, explain=True
    )
    result = await engine.recall(scope, request)
    may = allowed(crowd)
    assert leaks(may[one.tenant, one.id], one, request.question, result) == []
    seen = leaks(may[other.tenant, other.id], other, "", result)
    assert f"mark {one.mark}" in seen
    assert any(leak.endswith(f"of {one.id}") for leak in seen)
    # nor is the other tenant's user of the same id the same one
    (twin,) = (user for user in crowd.users if user.id == one.id and user.tenant != one.tenant)
    assert f"mark {one.mark}" in leaks(may[twin.tenant, twin.id], twin, request.question, result)
