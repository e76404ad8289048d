"""Ids of others: whatever takes one answers as for an id that there is not.

Every argument of every field that is an id is tried with what belongs to another user and to
another tenant; a test fails for an argument that is tried nowhere.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from graphql import GraphQLInputObjectType, get_named_type, parse, validate

from ecphoria.governance.access import READABLE
from ecphoria.model import (
    EntityRef,
    EveryUser,
    FeedbackInput,
    MemoryInput,
    Role,
    Scope,
    Verdict,
)
from ecphoria_graphql.field_access import FIELD_OPERATIONS
from ecphoria_graphql.node_ids import NodeRef, node_id
from ecphoria_graphql.schema import build_schema
from ecphoria_schema.domain import shipped_domain

from .test_graphql_engine import ref, shop_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

UPSERT = """mutation ($entities: [EntityInput!]!, $relations: [RelationInput!]! = []) {
  upsertEntities(input: {entities: $entities, relations: $relations}) { relationsCreated } }"""
SECRET = "Confidential"
FAULT = "error { code message path }"
RECEIPT = (
    f"{{ status supersedes conflictsWith possibleUpdateOf links {{ entity {{ id }} }} {FAULT} }}"
)

# Put in anew for each call, so that none finds what an earlier one has left.
OWN_MEMORY, OWN_TEXT = "own-memory", "A text of its own"
OWN = f'userId: "u1", text: "{OWN_TEXT}"'
OWN_TASK = "own-task"
MEMORY, ENTITY, USER, SESSION = "memory", "entity", "user", "session"
FEEDBACK, TASK = "feedback", "task"


@dataclass(frozen=True)
class Try:
    """An operation with an id in one place.

    Attributes:
        field: The field.
        place: The argument, with the fields of its inputs after it.
        kind: What the id is one of.
        text: The operation with `$id`.
    """

    field: str
    place: str
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.field}({self.place})"


def tries() -> Iterator[Try]:
    """Yield one operation for every argument that is an id."""
    q, m = "query ($id: ID!)", "mutation ($id: ID!)"
    yield Try("Query.memory", "id", MEMORY, q + ' { memory(userId: "u1", id: $id) { text } }')
    yield Try("Query.memory", "userId", USER, q + ' { memory(userId: $id, id: "u2-m") { text } }')
    yield Try(
        "Query.entity", "id", ENTITY,
        q + ' { entity(userId: "u1", type: Order, id: $id) { name ... on Order { status } } }',
    )  # fmt: skip
    yield Try(
        "Query.entity", "userId", USER,
        q + ' { entity(userId: $id, type: Order, id: "u2-o") { name } }',
    )  # fmt: skip
    yield Try(
        "Query.recall", "input.userId", USER,
        q + ' { recall(input: {question: "What happened?", userId: $id}) { action } }',
    )  # fmt: skip
    yield Try(
        "Query.recall", "input.sessionId", SESSION,
        q + ' { recall(input: {question: "What was repaired?", userId: "u1", sessionId: $id})'
        " { session { turnCount turns { text } } memories { memory { text } } } }",
    )  # fmt: skip
    yield Try(
        "Query.attributeHistory", "userId", USER,
        q + ' { attributeHistory(userId: $id, entity: {type: Order, id: "u2-o"},'
        ' attribute: "order.status") { current { text } } }',
    )  # fmt: skip
    yield Try(
        "Query.attributeHistory", "entity.id", ENTITY,
        q + ' { attributeHistory(userId: "u1", entity: {type: Order, id: $id},'
        ' attribute: "order.status") { current { text } } }',
    )  # fmt: skip
    yield Try(
        "Query.session", "userId", USER,
        q + ' { session(userId: $id, sessionId: "u2-s") { turns { text } } }',
    )  # fmt: skip
    yield Try(
        "Query.session", "sessionId", SESSION,
        q + ' { session(userId: "u1", sessionId: $id) { turnCount turns { text } } }',
    )  # fmt: skip
    yield Try(
        "Query.memories",
        "userId",
        USER,
        q + " { memories(userId: $id) { edges { node { text } } } }",
    )
    yield Try(
        "Query.memories", "filter.entity.id", ENTITY,
        q + ' { memories(userId: "u1", filter: {entity: {type: Order, id: $id}})'
        " { edges { node { text } } } }",
    )  # fmt: skip
    yield Try(
        "Query.entities", "userId", USER,
        q + " { entities(userId: $id, type: Order) { edges { node { name } } } }",
    )  # fmt: skip
    yield Try(
        "Query.conflicts", "userId", USER, q + " { conflicts(userId: $id) { edges { cursor } } }"
    )
    yield Try("Query.stats", "userId", USER, q + " { stats(userId: $id) { memoryCount } }")
    yield Try(
        "Query.entityGraph", "userId", USER,
        q + ' { entityGraph(userId: $id, type: Order, id: "u2-o") { __typename } }',
    )  # fmt: skip
    yield Try(
        "Query.entityGraph", "id", ENTITY,
        q + ' { entityGraph(userId: "u1", type: Order, id: $id) { __typename } }',
    )  # fmt: skip
    yield Try(
        "Subscription.memoryChanged", "userId", USER,
        "subscription ($id: ID!) { memoryChanged(userId: $id) { memoryId } }",
    )  # fmt: skip
    for name in ("correct", "supersede"):
        yield Try(
            f"Mutation.{name}", "memoryId", MEMORY,
            f'{m} {{ {name}(memoryId: $id, new: {{{OWN}}}, reason: "x") {RECEIPT} }}',
        )  # fmt: skip
        yield from _inputs(
            f"Mutation.{name}", "new", name, f'memoryId: "{OWN_MEMORY}", reason: "x", new: '
        )
    yield from _inputs("Mutation.remember", "input", "remember", "input: ")
    yield from _inputs(
        "Mutation.rememberBatch", "input.items", "rememberBatch", "input: {items: [", "]}",
        shown=f"{{ receipts {RECEIPT} {FAULT} }}",
    )  # fmt: skip
    yield Try(
        "Mutation.retract", "memoryId", MEMORY,
        f'{m} {{ retract(memoryId: $id, userId: "u1", reason: "x") {RECEIPT} }}',
    )  # fmt: skip
    yield Try(
        "Mutation.retract", "userId", USER,
        f'{m} {{ retract(memoryId: "u2-m", userId: $id, reason: "x") {RECEIPT} }}',
    )  # fmt: skip
    yield Try(
        "Mutation.forget", "ids", MEMORY,
        m + ' { forget(userId: "u1", ids: [$id], reason: "x") { found unknown error { code } } }',
    )  # fmt: skip
    yield Try(
        "Mutation.forget", "userId", USER,
        m + ' { forget(userId: $id, ids: ["u2-m"], reason: "x") { found error { code } } }',
    )  # fmt: skip
    yield Try(
        "Mutation.forgetByRule", "rule.userId", USER,
        m + " { forgetByRule(rule: {userId: $id, olderThanDays: 0}, dryRun: false) { found } }",
    )  # fmt: skip
    yield Try(
        "Query.verifyForgotten", "userId", USER, q + " { verifyForgotten(userId: $id) { clean } }"
    )
    yield Try("Query.auditLog", "filter.userId", USER,
        q + " { auditLog(filter: {userId: $id}) { edges { cursor } } }",
    )  # fmt: skip
    yield Try(
        "Mutation.forgetUser", "userId", USER,
        m + ' { forgetUser(userId: $id, reason: "x") { receipt { id } error { code } } }',
    )  # fmt: skip
    yield Try(
        "Mutation.allowForgotten", "userId", USER,
        m + " { allowForgotten(userId: $id) { allowed error { code } } }",
    )  # fmt: skip
    verdict, fault = 'verdict: MISSING_INFO, note: "when?"', "error { code message path }"
    yield Try(
        "Mutation.feedback", "input.memoryId", MEMORY,
        f'{m} {{ feedback(input: {{memoryId: $id, userId: "u1", {verdict}}})'
        f" {{ status task {{ id }} {fault} }} }}",
    )  # fmt: skip
    yield Try(
        "Mutation.feedback", "input.userId", USER,
        f'{m} {{ feedback(input: {{memoryId: "u2-m", userId: $id, {verdict}}})'
        f" {{ status {fault} }} }}",
    )  # fmt: skip
    yield Try(
        "Mutation.undoFeedback", "feedbackId", FEEDBACK,
        f'{m} {{ undoFeedback(userId: "u1", feedbackId: $id) {{ status {fault} }} }}',
    )  # fmt: skip
    yield Try(
        "Mutation.undoFeedback", "userId", USER,
        f'{m} {{ undoFeedback(userId: $id, feedbackId: "none") {{ status {fault} }} }}',
    )  # fmt: skip
    yield Try(
        "Mutation.completeTask", "id", TASK,
        f'{m} {{ completeTask(userId: "u1", id: $id) {{ task {{ note }} {fault} }} }}',
    )  # fmt: skip
    yield Try(
        "Mutation.completeTask", "userId", USER,
        f'{m} {{ completeTask(userId: $id, id: "none") {{ task {{ note }} {fault} }} }}',
    )  # fmt: skip
    yield Try(
        "Mutation.completeTask", "memoryId", MEMORY,
        f'{m} {{ completeTask(userId: "u1", id: "{OWN_TASK}", memoryId: $id)'
        f" {{ task {{ completedBy }} {fault} }} }}",
    )  # fmt: skip
    yield Try(
        "Query.feedback", "userId", USER,
        q + " { feedback(userId: $id) { edges { node { note } } } }",
    )  # fmt: skip
    yield Try(
        "Query.feedback", "filter.memoryId", MEMORY,
        q + ' { feedback(userId: "u1", filter: {memoryId: $id}) { edges { node { note } } } }',
    )  # fmt: skip
    yield Try(
        "Query.completionTasks", "userId", USER,
        q + " { completionTasks(userId: $id) { edges { node { note } } } }",
    )  # fmt: skip
    for place in ("input.entities.id", "input.relations.from.id", "input.relations.to.id"):
        yield Try("Mutation.upsertEntities", place, ENTITY, f"{m} {{ {_upsert(place)} }}")
    turn = 'speaker: CUSTOMER, text: "Hello, it is me"'
    yield Try(
        "Mutation.endSession", "userId", USER,
        m + ' { endSession(userId: $id, sessionId: "u2-s") { turns } }',
    )  # fmt: skip
    yield Try(
        "Mutation.endSession", "sessionId", SESSION,
        m + ' { endSession(userId: "u1", sessionId: $id) { turns } }',
    )  # fmt: skip
    yield Try(
        "Mutation.rememberTurn", "userId", USER,
        f'{m} {{ rememberTurn(userId: $id, sessionId: "u2-s", {turn})'
        f" {{ session {{ turnCount }} {FAULT} }} }}",
    )  # fmt: skip
    yield Try(
        "Mutation.rememberTurn", "sessionId", SESSION,
        f'{m} {{ rememberTurn(userId: "u1", sessionId: $id, {turn})'
        f" {{ session {{ turns {{ text }} }} {FAULT} }} }}",
    )  # fmt: skip


def _inputs(
    field: str, place: str, name: str, before: str, after: str = "", shown: str = RECEIPT
) -> Iterator[Try]:
    m = "mutation ($id: ID!)"
    fact = 'text: "x", attribute: "order.status", value: "sent"'
    for inner, kind, given in (
        ("userId", USER, f'userId: $id, text: "{OWN_TEXT}"'),
        ("supersedes", MEMORY, f"{OWN}, supersedes: $id"),
        ("about.id", ENTITY, f"{OWN}, about: [{{type: Order, id: $id}}]"),
        (
            "facts.entity.id",
            ENTITY,
            f"{OWN}, facts: [{{entity: {{type: Order, id: $id}}, {fact}}}]",
        ),
    ):
        text = f"{m} {{ {name}({before}{{{given}}}{after}) {shown} }}"
        yield Try(field, f"{place}.{inner}", kind, text)


def _upsert(place: str) -> str:
    parts = {
        "input.entities.id": "entities: [{type: Order, id: $id}]",
        "input.relations.from.id": "relations: [{type: CONTAINS, from: {type: Order, id: $id},"
        ' to: {type: Device, id: "u1-d"}}]',
        "input.relations.to.id": 'relations: [{type: PLACED, from: {type: User, id: "u1"},'
        " to: {type: Order, id: $id}}]",
    }
    return f"upsertEntities(input: {{{parts[place]}}}) {{ {FAULT} }}"


# Ids that the caller gives to his own: there is nothing of others to be found by them, but for the
# id of a memory, which has a test of its own.
OF_ONES_OWN = {"id", "sessionId", "agentId", "sources"}


def _id_places(schema: Any) -> Iterator[tuple[str, str]]:
    def walk(type_: Any, path: str, seen: tuple[str, ...] = ()) -> Iterator[str]:
        named = get_named_type(type_)
        if named.name == "ID":
            yield path
        elif isinstance(named, GraphQLInputObjectType) and named.name not in seen:
            for name, item in named.fields.items():
                yield from walk(item.type, f"{path}.{name}", (*seen, named.name))

    for root in (schema.query_type, schema.mutation_type, schema.subscription_type):
        for name, field in root.fields.items():
            for argument, item in field.args.items():
                for path in walk(item.type, argument):
                    yield f"{root.name}.{name}", path


def _is_ones_own(field: str, place: str) -> bool:
    outer, _, last = place.rpartition(".")
    writes = outer in {"input", "input.items", "new"} and field.startswith("Mutation.")
    # an idempotency key is looked for among those of the same API key only
    labels = place in {"turnId", "idempotencyKey"} and field.startswith("Mutation.")
    # who did something is no id of anybody's data
    asks = place in {"filter.sources", "filter.principal"}
    return asks or labels or (writes and last in OF_ONES_OWN)


NODES = ("Query.node", "nodeId")


async def test_every_id_argument_is_tried() -> None:
    schema = build_schema(shipped_domain())._schema
    wanted = {each for each in _id_places(schema) if not _is_ones_own(*each)}
    assert wanted == {(each.field, each.place) for each in tries()} | {NODES}
    assert {field for field, _ in wanted} <= set(FIELD_OPERATIONS)
    for each in tries():
        assert validate(schema, parse(each.text)) == [], str(each)


@dataclass
class World:
    """Two tenants with a user `u1` each, of whom one has a neighbour `u2`."""

    engine: Any
    tenant: str
    api: Any
    foreign: dict[str, tuple[str, ...]]


@pytest.fixture
async def world(engine: Any, tenant: str, api_over: Any) -> Any:
    """Fill two tenants; return a client that may do everything for `u1` of the first."""
    given: dict[str, Any] = {}
    for name, users in ((tenant, ("u1", "u2")), (f"{tenant}-b", ("u9",))):
        async with api_over(engine, tenant=name) as admin:
            scope = Scope(name, "test", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)
            for user in users:
                entities, relations = shop_of(user, "13800000001")
                await admin.data(UPSERT, entities=entities, relations=relations)
                about = (EntityRef("Order", f"{user}-o"),)
                (receipt,) = await engine.remember(
                    scope,
                    [
                        MemoryInput(
                            f"{SECRET} {user}: order {user}-o", user, id=f"{user}-m", about=about
                        )
                    ],
                )
                assert receipt.id == f"{user}-m", receipt
                said = FeedbackInput(f"{user}-m", user, Verdict.MISSING_INFO, f"{SECRET} {user}")
                given[user] = await engine.feedback(scope, said)
                await engine.remember_turn(
                    scope, user, f"{user}-s", "customer", f"{SECRET} turn {user}"
                )
    others = (given["u2"], given["u9"])
    foreign = FOREIGN | {
        FEEDBACK: tuple(each.feedback.id for each in others),
        TASK: tuple(each.task.id for each in others),
    }
    async with api_over(engine, tenant=tenant, users=["u1"]) as api:
        yield World(engine, tenant, api, foreign)


FOREIGN = {
    MEMORY: ("u2-m", "u9-m"),
    ENTITY: ("u2-o", "u9-o"),
    USER: ("u2", "u9"),
    SESSION: ("u2-s", "u9-s"),
}


async def _answer(world: World, text: str, id_: str) -> Any:
    """Return what a client sees, with the id itself made the same."""
    marks = {}
    if OWN_MEMORY in text:
        marks[OWN_MEMORY] = await _own_memory(world)
    if OWN_TASK in text:
        marks[OWN_TASK] = await _own_task(world)
    marks[OWN_TEXT] = f"Parcel {uuid.uuid4().hex} came late"
    for mark, value in marks.items():
        text = text.replace(mark, value)
    response = await world.api.http.post(
        "/graphql",
        json={"query": text, "variables": {"id": id_}},
        # one answer for everything, subscriptions too
        headers={"Accept": "text/event-stream"},
    )
    (line, *_) = [each for each in response.text.splitlines() if each.startswith("data: ")]
    assert '"INTERNAL_ERROR"' not in line, line
    assert "GRAPHQL_VALIDATION_FAILED" not in line, line
    own = json.loads(line.removeprefix("data: "))
    found = json.dumps(own, ensure_ascii=False).replace(json.dumps(id_)[1:-1], "<id>")
    for mark, value in marks.items():
        found = found.replace(value, mark)
    assert f"{SECRET} u2" not in found
    assert f"{SECRET} u9" not in found
    assert f"{SECRET} turn u2" not in found
    assert not re.search(r'possibleUpdateOf": \[[^\]]*"u[29]-', found)
    # what is like an earlier text of the test's own is no matter here
    return json.loads(found, object_hook=lambda item: item | {"possibleUpdateOf": []})


async def _own_memory(world: World) -> str:
    scope = Scope(world.tenant, "test", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)
    id_ = f"own-{uuid.uuid4().hex}"
    await world.engine.remember(scope, [MemoryInput(f"Note {id_} was made", "u1", id=id_)])
    return id_


async def _own_task(world: World) -> str:
    scope = Scope(world.tenant, "test", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)
    said = FeedbackInput(await _own_memory(world), "u1", Verdict.MISSING_INFO, "when?")
    id_: str = (await world.engine.feedback(scope, said)).task.id
    return id_


async def _state(engine: Any, tenant: str, user: str) -> Any:
    scope = Scope(tenant, "test", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)
    memory = await engine.memory(scope, user, f"{user}-m")
    order = EntityRef("Order", f"{user}-o")
    related = await engine.related(scope, user, [order], "CONTAINS", "Device")
    session = await engine.session(scope, user, f"{user}-s")
    return (
        (memory.text, memory.status, memory.valid_until),
        (await engine.entity(scope, user, order)).props,
        [entity.id for entity in related[order]],
        [turn.text for turn in session.turns],
        (await engine.list_feedback(scope, user)).items,
        (await engine.completion_tasks(scope, user)).items,
    )


async def test_an_id_of_others_is_an_id_that_there_is_not(world: World) -> None:
    states = [
        await _state(world.engine, world.tenant, "u2"),
        await _state(world.engine, f"{world.tenant}-b", "u9"),
    ]
    differ = []
    for each in tries():
        # none of the tries leaves anything behind that the next one would see
        unknown = await _answer(world, each.text, f"none-{uuid.uuid4().hex[:8]}")
        for id_ in world.foreign[each.kind]:
            found = await _answer(world, each.text, id_)
            if found != unknown:
                differ.append((str(each), id_, found, unknown))
    assert differ == [], "\n".join(map(str, differ))
    assert states == [
        await _state(world.engine, world.tenant, "u2"),
        await _state(world.engine, f"{world.tenant}-b", "u9"),
    ]


async def test_what_is_tried_would_find_ones_own(world: World) -> None:
    """The tries are no empty shells: with one's own id most of them find something."""
    own = {MEMORY: "u1-m", ENTITY: "u1-o", USER: "u1", SESSION: "u1-s"}
    same = []
    for each in tries():
        if each.field.startswith(("Mutation", "Subscription")) or each.kind == USER:
            continue
        unknown = await _answer(world, each.text, "none-at-all")
        if await _answer(world, each.text, own[each.kind]) == unknown:
            same.append(str(each))
    assert set(same) <= {"Query.attributeHistory(entity.id)"}


async def test_a_node_of_others_is_none(world: World) -> None:
    query = "query ($id: ID!) { node(nodeId: $id) { __typename ... on Memory { text } } }"
    mine = await _answer(world, query, node_id(NodeRef("Memory", "u1", "u1-m")))
    assert mine["data"]["node"]["text"].startswith(SECRET)
    unknown = await _answer(world, query, node_id(NodeRef("Memory", "u1", "none")))
    for foreign in ("u2-m", "u9-m"):
        assert await _answer(world, query, node_id(NodeRef("Memory", "u1", foreign))) == unknown
    nobody = await _answer(world, query, node_id(NodeRef("Memory", "nobody", "none")))
    for user in ("u2", "u9"):
        found = await _answer(world, query, node_id(NodeRef("Memory", user, f"{user}-m")))
        assert found == nobody
        order = await _answer(world, query, node_id(NodeRef("Order", "u1", f"{user}-o")))
        assert order == await _answer(world, query, node_id(NodeRef("Order", "u1", "none")))


async def test_the_id_of_anothers_memory_is_taken_and_tells_no_more(world: World) -> None:
    query = f"mutation ($id: ID!) {{ remember(input: {{{OWN}, id: $id}}) {RECEIPT} }}"
    receipt = (await _answer(world, query, "u2-m"))["data"]["remember"]
    assert (receipt["status"], receipt["error"]["code"]) == ("REJECTED", "ID_CONFLICT")
    assert "u2" not in json.dumps(receipt)
    # another tenant's ids are not taken here
    assert (await _answer(world, query, "u9-m"))["data"]["remember"]["status"] == "CREATED"


# --- role by privacy -----------------------------------------------------------------------


SHOWN = '{ entity(userId: "u1", type: User, id: "u1") { name ... on User { phone city } } }'
ASKED = """{ recall(input: {question: "Was the screen repaired?", userId: "u1"}) {
  contextBlock memories { memory { text } } } }"""


@pytest.mark.parametrize("role", Role)
async def test_what_a_role_sees_of_each_privacy_level(
    engine: Any, tenant: str, api_over: Any, role: Role
) -> None:
    admin = Scope(tenant, "test", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)
    levels = ("public", "internal", "sensitive")
    receipts = await engine.remember(
        admin,
        [
            MemoryInput(
                f"The screen of the iPhone was repaired, {level}", "u1", id=level, privacy=level
            )
            for level in levels
        ],
    )
    kept = {receipt.id for receipt in receipts if receipt.code is None}
    assert {"public", "internal"} <= kept
    user = {
        **ref("User", "u1"),
        "properties": {"name": "张伟", "phone": "13800000001", "city": "Wuhan"},
    }
    async with api_over(engine, tenant=tenant) as api:
        await api.data(UPSERT, entities=[user])
    may_read = role in {Role.AGENT, Role.ANALYST, Role.ADMIN}
    query = """query ($id: ID!) { memory(userId: "u1", id: $id) { text } }"""
    async with api_over(engine, tenant=tenant, roles=(role,)) as api:
        for level in sorted(kept):
            body = await api.send(query, id=level)
            if not may_read:
                assert body["errors"][0]["extensions"]["code"] == "FORBIDDEN"
            elif level in READABLE[role]:
                assert body["data"]["memory"]["text"].endswith(level)
            elif "errors" in body:
                assert body["errors"][0]["extensions"]["code"] == "NOT_FOUND"
            else:
                assert "repaired" not in body["data"]["memory"]["text"]
        if not may_read:
            return
        shown = (await api.data(SHOWN))["entity"]
        assert shown["name"] == "张伟"
        assert (shown["city"] == "Wuhan") is ("internal" in READABLE[role])
        assert (shown["phone"] == "13800000001") is ("sensitive" in READABLE[role])
        answer = await api.send(ASKED)
        assert "errors" not in answer, answer
        for level in kept - READABLE[role]:
            assert f"repaired, {level}" not in json.dumps(answer)
