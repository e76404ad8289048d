"""Feedback acts at once and within bounds, says who gave it, and can be taken back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from neo4j import AsyncGraphDatabase

from ecphoria.errors import (
    FeedbackLimit,
    Forbidden,
    InvalidCursor,
    InvalidInput,
    InvalidTime,
    LessReliable,
    NotCurrent,
    NotFound,
)
from ecphoria.governance.access import MASK
from ecphoria.model import (
    AuditFilter,
    EntityInput,
    EntityRef,
    EveryUser,
    FactInput,
    FeedbackFilter,
    FeedbackInput,
    FeedbackStatus,
    MemoryInput,
    RecallRequest,
    Role,
    Scope,
    TaskStatus,
    Topics,
    Verdict,
)
from ecphoria.testing import ManualClock
from engines import check_index_equals_graph, settle, snapshot, with_clock

pytestmark = pytest.mark.asyncio(loop_scope="session")

START = datetime(2001, 3, 1, 9, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
USER = "u1"
DOOR = "The courier rang at the wrong door."
ASKED = "At which door did the courier ring?"


@pytest.fixture
def clock(tenant):
    return ManualClock(START, name=tenant)


@pytest.fixture
async def shop(engine, admin, clock):
    own = with_clock(engine, clock)
    await own.upsert_entities(admin, [EntityInput("User", USER, {"name": "Ann"})])
    return own


@pytest.fixture
def agent(tenant):
    return key(tenant, "agent")


def key(tenant, name, *roles, users=frozenset({USER})):
    return Scope(tenant, name, frozenset(roles or {Role.AGENT}), users)


async def kept(engine, admin, text=DOOR, **item):
    (receipt,) = await engine.remember(admin, [MemoryInput(text, **({"user_id": USER} | item))])
    assert receipt.code is None, receipt
    return receipt.id


def says(memory_id, verdict, **more):
    return FeedbackInput(memory_id, **({"user_id": USER, "verdict": verdict} | more))


async def found(engine, admin, question=ASKED):
    result = await engine.recall(admin, RecallRequest(question, USER))
    return [item.memory.id for item in result.memories]


async def reliability(engine, admin, id_):
    return {source.id: source for source in await engine.sources(admin)}[id_].reliability


# --- verdicts ------------------------------------------------------------------------------


async def test_what_is_over_is_not_told_any_more_and_comes_back_when_taken_back(
    shop, admin, agent, clock, tenant
):
    id_ = await kept(shop, admin)
    clock.advance(HOUR)
    before = await snapshot(shop, tenant, leave_out={"past"})
    given = await shop.feedback(agent, says(id_, Verdict.EXPIRED, note="he has moved"))
    assert (given.status, given.indexed) == (FeedbackStatus.GIVEN, True)
    said = given.feedback
    assert (said.by, said.at, said.note, said.ends_at) == (
        "agent",
        START + HOUR,
        "he has moved",
        START + HOUR,
    )
    assert said.before.valid_until is None
    assert (await shop.memory(admin, USER, id_)).valid_until == START + HOUR
    await check_index_equals_graph(shop, tenant)
    clock.advance(HOUR)
    assert id_ not in await found(shop, admin)

    again = await shop.feedback(agent, says(id_, Verdict.EXPIRED, at=START + 3 * HOUR))
    assert (again.status, again.feedback.id) == (FeedbackStatus.DUPLICATE, said.id)
    assert (await shop.memory(admin, USER, id_)).valid_until == START + HOUR

    undone = await shop.undo_feedback(agent, USER, said.id)
    assert (undone.status, undone.feedback.undone_by) == (FeedbackStatus.UNDONE, "agent")
    assert id_ in await found(shop, admin)
    await shop.access.flush()
    used = {"access_count", "last_accessed_at", "freshness", "freshness_at", "archive_at"}
    before = [({k: v for k, v in x.items() if k not in used}, *y) for x, *y in before.values()]
    after = await snapshot(shop, tenant, leave_out={"past", *used})
    assert list(after.values()) == [tuple(each) for each in before]
    # what was known meanwhile stays known
    known = await shop.recall(
        admin, RecallRequest(ASKED, USER, as_of=clock.now(), known_at=START + HOUR + HOUR / 2)
    )
    assert [item.memory.id for item in known.memories] == []
    assert (await shop.undo_feedback(agent, USER, said.id)).status is FeedbackStatus.UNCHANGED


async def test_the_earliest_end_counts_whatever_is_taken_back(shop, admin, tenant):
    id_ = await kept(shop, admin)
    one, other = key(tenant, "one"), key(tenant, "other")
    late = await shop.feedback(one, says(id_, Verdict.EXPIRED, at=START + 9 * DAY))
    early = await shop.feedback(other, says(id_, Verdict.EXPIRED, at=START + 2 * DAY))

    async def end():
        return (await shop.memory(admin, USER, id_)).valid_until

    assert await end() == START + 2 * DAY
    # it holds until then
    assert id_ in await found(shop, admin)
    await shop.undo_feedback(other, USER, early.feedback.id)
    assert await end() == START + 9 * DAY
    await shop.undo_feedback(one, USER, late.feedback.id)
    assert await end() is None
    with pytest.raises(InvalidTime):
        await shop.feedback(one, says(id_, Verdict.EXPIRED, at=START - DAY))


async def test_an_end_goes_together_with_what_takes_the_place(shop, admin, agent, clock):
    order = EntityRef("Order", "882301")

    def status(value):
        return {"facts": (FactInput(order, "order.status", value),), "text": ""}

    first = await kept(shop, admin, **status("paid"))
    given = await shop.feedback(agent, says(first, Verdict.EXPIRED, at=START + 5 * DAY))
    clock.advance(DAY)
    second = await kept(shop, admin, **status("shipped"))
    assert (await shop.memory(admin, USER, first)).valid_until == START + DAY
    await shop.undo_feedback(agent, USER, given.feedback.id)
    old = await shop.memory(admin, USER, first)
    assert (old.valid_until, old.status.value) == (START + DAY, "superseded")
    with pytest.raises(NotCurrent, match=second):
        await shop.feedback(agent, says(first, Verdict.WRONG))


@pytest.mark.parametrize(
    "text", ["我的快递一直没收到，想退款", "The parcel never arrived, I want a refund"]
)
async def test_a_wrong_topic_is_put_right(shop, admin, agent, clock, tenant, text):
    id_ = await kept(shop, admin, text)
    was = await shop.memory(admin, USER, id_)
    assert len(was.tags) > 1
    other = next(topic for topic in shop.domain.topics if topic not in was.tags)
    given = await shop.feedback(agent, says(id_, Verdict.WRONG_TOPIC, topics=(other,)))
    assert given.feedback.before.topics == Topics(was.topic, was.tags)
    now = await shop.memory(admin, USER, id_)
    assert (now.topic, now.tags) == (other, (other,))
    await check_index_equals_graph(shop, tenant)

    # of what two have said the last one that stands counts
    second = key(tenant, "second")
    clock.advance(HOUR)
    looked = await shop.feedback(second, says(id_, Verdict.WRONG_TOPIC))
    now = await shop.memory(admin, USER, id_)
    assert now.topic in was.tags
    assert {was.topic, other}.isdisjoint(now.tags)
    await shop.undo_feedback(agent, USER, given.feedback.id)
    assert await shop.memory(admin, USER, id_) == now
    await shop.undo_feedback(second, USER, looked.feedback.id)
    back = await shop.memory(admin, USER, id_)
    assert (back.topic, back.tags) == (was.topic, was.tags)
    await check_index_equals_graph(shop, tenant)
    for topics in (("no_such_topic",), (was.topic,), (other, other)):
        with pytest.raises(InvalidInput) as caught:
            await shop.feedback(agent, says(id_, Verdict.WRONG_TOPIC, topics=topics))
        assert caught.value.path[0] == "topics"


async def test_a_sensitive_memory_is_put_under_another_topic_in_the_index_too(shop, admin, tenant):
    id_ = await kept(shop, admin, "我的快递一直没收到，想退款", privacy="sensitive")
    redacted = key(tenant, "operator", Role.OPERATOR)
    other = "warranty"
    given = await shop.feedback(
        admin, says(id_, Verdict.WRONG_TOPIC, topics=(other,), note="他说的是保修，电话13812345678")
    )
    (stored,) = await shop.graph.memories(tenant, [id_])
    assert stored.text == "[敏感信息] warranty"
    assert (await shop.memory(admin, USER, id_)).text == "我的快递一直没收到，想退款"
    assert given.feedback.note == "他说的是保修，电话13812345678"
    (seen,) = (await shop.list_feedback(redacted, USER)).items
    assert seen.note == MASK
    # looked for in what it says, not in what is shown of it
    await shop.undo_feedback(admin, USER, given.feedback.id)
    was = await shop.memory(admin, USER, id_)
    await shop.feedback(admin, says(id_, Verdict.WRONG_TOPIC))
    assert (await shop.memory(admin, USER, id_)).topic in set(was.tags) - {was.topic}
    with pytest.raises(NotFound):
        await shop.feedback(key(tenant, "agent"), says(id_, Verdict.HELPFUL))


async def test_what_is_missing_is_a_task_until_it_is_there(shop, admin, agent, clock):
    ids = [await kept(shop, admin, f"The {name} is broken.") for name in ("kettle", "toaster")]
    tasks = []
    for id_ in ids:
        clock.advance(HOUR)
        item = says(id_, Verdict.MISSING_INFO, note="which model?")
        tasks.append((await shop.feedback(agent, item)).task)

    async def listed(status=None):
        page = await shop.completion_tasks(admin, USER, status=status)
        return {task.id: task.status for task in page.items}

    assert await listed(TaskStatus.OPEN) == dict.fromkeys(
        (task.id for task in tasks), TaskStatus.OPEN
    )
    again = await shop.feedback(agent, says(ids[0], Verdict.MISSING_INFO, note="the year, too"))
    assert (again.status, again.task.id) == (FeedbackStatus.DUPLICATE, tasks[0].id)

    model = await kept(shop, admin, "The kettle is an Aqua 300.")
    done = await shop.complete_task(agent, USER, tasks[0].id, model)
    assert (done.status, done.done_by, done.completed_by) == (TaskStatus.DONE, "agent", model)
    assert await shop.complete_task(admin, USER, tasks[0].id) == done
    new = MemoryInput("The toaster, a Crisp 2, is broken.", USER, id="better")
    await shop.correct(admin, ids[1], new, "the model was missing")
    assert await listed(TaskStatus.OPEN) == {}
    (by_itself, _) = (await shop.completion_tasks(admin, USER, status=TaskStatus.DONE)).items
    assert (by_itself.id, by_itself.completed_by, by_itself.done_by) == (
        tasks[1].id,
        "better",
        None,
    )
    # the old one holds again, so it is incomplete again
    await shop.retract(admin, USER, "better", "a mistake")
    assert list(await listed(TaskStatus.OPEN)) == [tasks[1].id]
    (about,) = (await shop.list_feedback(admin, USER, FeedbackFilter(memory_id=ids[1]))).items
    await shop.undo_feedback(agent, USER, about.id)
    assert list(await listed()) == [tasks[0].id]

    first = await shop.completion_tasks(admin, USER, first=1)
    with pytest.raises(InvalidCursor):
        await shop.completion_tasks(admin, None, first=1, after=first.cursors[0])
    with pytest.raises(NotFound):
        await shop.complete_task(agent, USER, tasks[0].id, "no such memory")
    with pytest.raises(InvalidInput) as caught:
        await shop.feedback(agent, says(ids[0], Verdict.MISSING_INFO))
    assert caught.value.path == ("note",)


async def test_what_is_wrong_is_believed_less_together_with_its_source(shop, admin, tenant):
    settings = shop.settings
    id_ = await kept(shop, admin, source="ugc")
    keys = [key(tenant, f"key {number}") for number in range(4)]
    declared = await reliability(shop, admin, "ugc")

    async def trust():
        result = await shop.recall(admin, RecallRequest(ASKED, USER))
        return result.memories[0].confidence.source

    assert (await trust()).score == declared
    given = [await shop.feedback(each, says(id_, Verdict.WRONG)) for each in keys]
    before = [one.feedback.before for one in given]
    assert [one.doubt for one in before] == pytest.approx([0.0, 0.06, 0.12, 0.12])
    assert before[0].reliability == declared
    assert await reliability(shop, admin, "ugc") == pytest.approx(declared - 0.04)
    told = await trust()
    assert told.score == pytest.approx(declared - 0.04 - settings.feedback_doubt_bound)
    assert "feedback" in told.reason
    # what comes from it from now on is no worse than what came before
    later = await kept(shop, admin, "The courier rang twice.", source="ugc")
    assert (await shop.memory(admin, USER, later)).reliability == declared
    # in whatever order it is taken back
    for one in (given[2], given[0], given[3], given[1]):
        await shop.undo_feedback(admin, USER, one.feedback.id)
    assert await reliability(shop, admin, "ugc") == declared
    memory = await shop.memory(admin, USER, id_)
    assert (memory.doubt, memory.status.value) == (0.0, "active")


async def test_what_helped_counts_as_used_and_is_kept_longer(shop, admin, agent, clock, tenant):
    id_ = await kept(shop, admin)
    clock.advance(40 * DAY)
    await shop.age()
    await settle(shop, tenant)
    was = await shop.memory(admin, USER, id_)
    assert was.tier == "archive"
    given = await shop.feedback(agent, says(id_, Verdict.HELPFUL))
    now = await shop.memory(admin, USER, id_)
    assert (now.tier, now.access_count, now.reinforced) == ("hot", 1, 1)
    assert now.freshness > 0
    assert id_ in await found(shop, admin)
    await check_index_equals_graph(shop, tenant)
    await shop.undo_feedback(agent, USER, given.feedback.id)
    back = await shop.memory(admin, USER, id_)
    assert replace(back, index_state=was.index_state) == was
    await check_index_equals_graph(shop, tenant)

    # used since: only its own share is taken away
    given = await shop.feedback(agent, says(id_, Verdict.HELPFUL))
    clock.advance(DAY)
    assert id_ in await found(shop, admin)
    await shop.access.flush()
    with_it = await shop.memory(admin, USER, id_)
    await shop.undo_feedback(agent, USER, given.feedback.id)
    left = await shop.memory(admin, USER, id_)
    assert (left.tier, left.reinforced) == ("hot", 0)
    assert left.access_count == with_it.access_count - 1
    assert 0 < left.freshness < with_it.freshness
    assert left.last_accessed_at == with_it.last_accessed_at


# --- limits --------------------------------------------------------------------------------


async def test_one_key_cannot_flood_it(shop, admin, agent, clock, tenant):
    settings = shop.settings.model_copy(update={"feedback_per_day": 8})
    small = replace(shop, settings=settings)
    ids = [await kept(shop, admin, f"Parcel {number} came.", source="ugc") for number in range(9)]
    declared = await reliability(shop, admin, "ugc")
    # twice at once is once
    twice = await asyncio.gather(
        *(small.feedback(agent, says(ids[0], Verdict.WRONG)) for _ in range(3))
    )
    assert sorted(one.status for one in twice) == ["DUPLICATE", "DUPLICATE", "GIVEN"]
    for id_ in ids[1:7]:
        await small.feedback(agent, says(id_, Verdict.WRONG))
    lowest = await reliability(shop, admin, "ugc")
    assert lowest == pytest.approx(declared - settings.feedback_trust_per_key)
    clock.advance(HOUR)
    last = await small.feedback(agent, says(ids[7], Verdict.HELPFUL))
    # taking back gives nothing back
    await small.undo_feedback(agent, USER, last.feedback.id)
    with pytest.raises(FeedbackLimit, match=r"8 times .* 2001-03-02T09:00:00Z") as caught:
        await small.feedback(agent, says(ids[8], Verdict.HELPFUL))
    assert caught.value.retry_after_s == 23 * 3600
    # the same again is no new one, and another key has its own
    assert (await small.feedback(agent, says(ids[0], Verdict.WRONG))).status == "DUPLICATE"
    await small.feedback(key(tenant, "other"), says(ids[8], Verdict.WRONG))
    clock.advance(23 * HOUR)
    await small.feedback(agent, says(ids[8], Verdict.HELPFUL))


async def test_a_source_is_never_lowered_further_than_the_bound(shop, admin, tenant):
    ids = [await kept(shop, admin, f"Parcel {number} came.", source="crm") for number in range(3)]
    declared = await reliability(shop, admin, "crm")
    for name in range(6):
        for id_ in ids:
            await shop.feedback(key(tenant, f"key {name}"), says(id_, Verdict.WRONG))
    bound = shop.settings.feedback_trust_bound
    assert await reliability(shop, admin, "crm") == pytest.approx(declared - bound)
    # a better source stays the better one by far
    doubted = declared - bound - shop.settings.feedback_doubt_bound
    assert doubted > await reliability(shop, admin, "dialogue")


# --- who may -------------------------------------------------------------------------------


async def test_ids_of_others_are_as_good_as_none(shop, admin, agent, tenant):
    mine, theirs = await kept(shop, admin), await kept(shop, admin, user_id="u2")
    neighbour = Scope(f"{tenant}x", "agent", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)
    given = await shop.feedback(agent, says(mine, Verdict.MISSING_INFO, note="when?"))
    every = key(tenant, "every", Role.ADMIN, users=EveryUser.OF_TENANT)
    for scope, user in ((every, "u2"), (every, None), (neighbour, USER)):
        with pytest.raises(NotFound):
            await shop.feedback(scope, says(mine, Verdict.HELPFUL, user_id=user))
        with pytest.raises(NotFound):
            await shop.undo_feedback(scope, user, given.feedback.id)
        with pytest.raises(NotFound):
            await shop.complete_task(scope, user, given.task.id)
        assert (await shop.list_feedback(scope, user)).items == ()
        assert (await shop.completion_tasks(scope, user)).items == ()
    with pytest.raises(NotFound):
        await shop.feedback(agent, says(theirs, Verdict.HELPFUL))
    with pytest.raises(Forbidden):
        await shop.feedback(agent, says(theirs, Verdict.HELPFUL, user_id="u2"))
    with pytest.raises(NotFound):
        await shop.complete_task(agent, USER, given.task.id, theirs)


async def test_what_others_said_is_taken_back_by_operators_alone(shop, admin, agent, clock, tenant):
    id_ = await kept(shop, admin)
    clock.advance(HOUR)
    given = await shop.feedback(agent, says(id_, Verdict.EXPIRED))
    with pytest.raises(Forbidden):
        await shop.undo_feedback(key(tenant, "another"), USER, given.feedback.id)
    with pytest.raises(Forbidden):
        await shop.feedback(key(tenant, "analyst", Role.ANALYST), says(id_, Verdict.HELPFUL))
    (seen,) = (await shop.list_feedback(key(tenant, "analyst", Role.ANALYST), USER)).items
    assert seen == given.feedback
    operator = key(tenant, "operator", Role.OPERATOR)
    undone = await shop.undo_feedback(operator, USER, given.feedback.id)
    assert undone.feedback.undone_by == "operator"
    entries = (await shop.audit_log(admin, AuditFilter(user_id=USER))).items
    assert {"feedback", "undoFeedback"} <= {entry.operation for entry in entries}


async def test_an_agent_cannot_end_or_move_what_a_better_source_says(shop, admin, agent):
    id_ = await kept(shop, admin, source="crm", topic="logistics")
    for item in (
        says(id_, Verdict.EXPIRED),
        says(id_, Verdict.WRONG_TOPIC, topics=("warranty",)),
    ):
        with pytest.raises(LessReliable):
            await shop.feedback(agent, item)
    memory = await shop.memory(admin, USER, id_)
    assert (memory.valid_until, memory.topic) == (None, "logistics")


async def test_shared_knowledge_is_changed_by_operators_and_judged_by_agents(
    shop, admin, agent, clock
):
    rule = await kept(shop, admin, "Parcels are left at the door.", user_id=None, kind="procedural")
    with pytest.raises(Forbidden):
        await shop.feedback(agent, says(rule, Verdict.EXPIRED, user_id=None))
    given = await shop.feedback(agent, says(rule, Verdict.WRONG, user_id=None))
    assert [one.id for one in (await shop.list_feedback(agent, None)).items] == [given.feedback.id]
    assert (await shop.list_feedback(agent, USER)).items == ()
    clock.advance(HOUR)
    await shop.feedback(admin, says(rule, Verdict.EXPIRED, user_id=None))
    await shop.undo_feedback(agent, None, given.feedback.id)


# --- privacy -------------------------------------------------------------------------------


async def test_a_note_hides_what_identifies_a_person(shop, admin, agent, stores, tenant):
    id_ = await kept(shop, admin)
    note = "回电13812345678，邮箱li.lei@example.com"
    given = await shop.feedback(agent, says(id_, Verdict.MISSING_INFO, note=note))
    assert given.feedback.note == given.task.note == "回电[电话]，邮箱[邮箱]"
    for page in (
        await shop.list_feedback(admin, USER),
        await shop.completion_tasks(admin, USER),
    ):
        assert [one.note for one in page.items] == [note]
    every = await raw(stores, tenant)
    assert "13812345678" not in every
    assert "li.lei" not in every


async def test_who_is_forgotten_takes_it_along_and_the_trust_stays(
    shop, admin, agent, stores, tenant
):
    ids = [await kept(shop, admin, f"Parcel {n} came.", source="ugc") for n in ("A7", "B8")]
    declared = await reliability(shop, admin, "ugc")
    for id_ in ids:
        await shop.feedback(agent, says(id_, Verdict.WRONG, note=f"the note on {id_}"))
        await shop.feedback(agent, says(id_, Verdict.MISSING_INFO, note="the missing part"))
    lowered = await reliability(shop, admin, "ugc")
    assert lowered == pytest.approx(declared - 0.02)
    await shop.forget(admin, USER, ids[:1], "asked for it")
    assert {one.memory_id for one in (await shop.list_feedback(admin, USER)).items} == {ids[1]}
    assert not (await shop.verify_forgotten(admin, USER)).clean
    receipt = await shop.forget_user(admin, USER, "Art. 17")
    assert receipt.counts["feedback"] == 3
    check = await shop.verify_forgotten(admin, USER)
    assert (check.clean, dict(check.left)) == (True, {})
    every = await raw(stores, tenant)
    for word in ("the note on", "the missing part", *ids, f"={USER}'"):
        assert word not in every
    assert await reliability(shop, admin, "ugc") == lowered
    # one more counts on from there
    id_ = await kept(shop, admin, user_id="u2", source="ugc")
    other = key(tenant, "agent", users=frozenset({"u2"}))
    await shop.feedback(other, says(id_, Verdict.WRONG, user_id="u2"))
    assert await reliability(shop, admin, "ugc") == pytest.approx(declared - 0.03)


async def raw(stores, tenant):
    """Return all properties of the tenant's nodes as one text."""
    auth = (stores.neo4j_user, stores.neo4j_password)
    async with AsyncGraphDatabase.driver(stores.neo4j_uri, auth=auth) as driver:
        result = await driver.execute_query(
            "MATCH (n) WHERE n.key STARTS WITH $tenant AND NOT n:Memory"
            " RETURN properties(n) AS props",
            tenant=f"{tenant}|",
            database_=stores.neo4j_database,
        )
    return "\n".join(str(dict(record["props"])) for record in result.records)
