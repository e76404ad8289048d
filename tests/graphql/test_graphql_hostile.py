"""Hostile input: every string of the API is tried with what breaks out of strings elsewhere.

The places are read out of the schema, so that a new one is tried from its first day on.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from ecphoria.errors import error_classes
from ecphoria.model import EntityRef, EveryUser, MemoryInput, Role, Scope
from ecphoria_graphql.error_codes import GraphQLCode
from ecphoria_graphql.limits import MAX_TOKENS
from ecphoria_graphql.schema import build_schema
from ecphoria_schema.domain import shipped_domain
from schema_walk import Place, Together, operation, places, selection, strings

from .test_graphql_engine import UPSERT, shop_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

SECRET = "Confidential"
HOSTILE = (
    "x'}) MATCH (n) DETACH DELETE n // \\' OR 1=1",
    'x") or true or user_id like ("%',
    'x") { text } } mutation { forgetUser(userId: "u2") { at }',
    "<script>alert(1)</script>\"'><img src=x>${jndi:ldap://x}{{7*7}}%n%s",
    "x\nERROR incident=forged\r\n[audit] done",
    "x\x00\x07\x1b[2Jy",
    "x\ud800y",
    "\u202eu1\u202c\u200f../../etc/passwd",
    "“或者”；删除全部『用户』' ＯＲ ''＝'' ——",
    "*",
)
# Those that an id may be, as well as a text: nothing in them is no character.
PLAIN = tuple(text for text in HOSTILE if text.isprintable() and text != "*")

FEW = 1
LONGEST_MESSAGE = 500
MOST_ERRORS = 101
PATIENCE_S = 60

CODES = {kind.code for kind in error_classes()} | {str(code) for code in GraphQLCode}
NEVER = {"INTERNAL_ERROR", "ECPHORIA_ERROR", "STORE_ERROR"}
INSIDE = re.compile(
    r"(?i:neo4j|milvus|arcade|cypher|bolt:|grpc|jdbc|java\.|traceback|site-packages|strawberry"
    r"|localhost|127\.0\.0\.1|/tmp|/work|\bself\.|\bNoneType\b|0x[0-9a-f]{6})"
    rf"|\.py\b|\bline \d+, in\b|\b\w+(?:Error|Exception)\b|(?:{'|'.join(kind.__name__ for kind in error_classes())})\b"  # noqa: E501
)


def schema() -> Any:
    return build_schema(shipped_domain())._schema


def codes(answer: Any) -> Iterator[tuple[str, str]]:
    """Yield code and message of every error, wherever it is in an answer."""
    if isinstance(answer, list):
        for item in answer:
            yield from codes(item)
    elif isinstance(answer, dict):
        if "message" in answer and isinstance(answer.get("extensions"), dict):
            yield answer["extensions"]["code"], answer["message"]
        elif isinstance(answer.get("code"), str):
            yield answer["code"], answer.get("message") or answer.get("reason") or ""
        for item in answer.values():
            yield from codes(item)


def leaks(message: str, given: str) -> bool:
    """Whether a message tells of the inside; what was sent may come back in it."""
    for form in filter(
        None, (given, repr(given)[1:-1], json.dumps(given)[1:-1], given.replace('"', '\\"'))
    ):
        message = message.replace(form, "…")
    return INSIDE.search(message) is not None


@dataclass
class World:
    """Two tenants: a user `u1` to write for, and others whose data must stay as they are."""

    engine: Any
    tenant: str
    api: Any
    task: str = "none"

    def scope(self, tenant: str) -> Scope:
        return Scope(tenant, "test", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)

    async def spare(self, count: int) -> None:
        """Put in memories of `u1` that may be changed, and a task that may be completed."""
        items = [
            MemoryInput(f"Spare note {number} of the shop", "u1", id=f"spare-{number}")
            for number in range(count)
        ]
        await self.engine.remember(self.scope(self.tenant), items)
        await self.api.data(
            """mutation { feedback(input: {memoryId: "spare-0", userId: "u1",
              verdict: MISSING_INFO, note: "Which one?"}) { __typename } }"""
        )
        asked = '{ completionTasks(userId: "u1") { edges { node { id } } } }'
        (edge,) = (await self.api.data(asked))["completionTasks"]["edges"]
        self.task = edge["node"]["id"]

    def beside(self, place: Place, number: int) -> dict[str, Any]:
        """Return what stands beside the string that is tried."""
        gone = place.field in {"forgetUser", "allowForgotten", "verifyForgotten", "forgetByRule"}
        return {
            "userId": f"gone-{number}" if gone else "u1",
            "id": self.task if place.field == "completeTask" else "u1-none",
            "ids": "u1-none",
            "memoryId": f"spare-{number}",
            "text": f"Parcel {number} came late",
            "attribute": "order.status",
            "value": "shipped",
            "type": "Order",
            "question": "Which parcel came late?",
            "olderThanDays": 0,
            "dryRun": False,
            # what may be left out, but then nothing is done
            "also": {"userId", "text", "olderThanDays", "dryRun"},
        }  # fmt: skip

    async def others(self) -> Any:
        """Return all that is known of the others."""
        found = []
        for tenant, user in ((self.tenant, "u2"), (f"{self.tenant}-b", "u9")):
            scope = self.scope(tenant)
            memory = await self.engine.memory(scope, user, f"{user}-m")
            order = await self.engine.entity(scope, user, EntityRef("Order", f"{user}-o"))
            session = await self.engine.session(scope, user, f"{user}-s")
            found.append((memory, order.props, [turn.text for turn in session.turns]))
        return [*found, await self.engine.graph.counts(f"{self.tenant}-b")]


@pytest.fixture
async def world(engine: Any, tenant: str, api_over: Any) -> Any:
    async with (
        api_over(engine, tenant=f"{tenant}-b") as other,
        api_over(engine, tenant=tenant) as api,
    ):
        made = World(engine, tenant, api)
        for name, client, user in (
            (tenant, api, "u1"),
            (tenant, api, "u2"),
            (f"{tenant}-b", other, "u9"),
        ):
            entities, relations = shop_of(user, "13800000001")
            await client.data(UPSERT, entities=entities, relations=relations)
            text = f"{SECRET} {user}: order {user}-o was sent"
            about = (EntityRef("Order", f"{user}-o"),)
            await engine.remember(
                made.scope(name), [MemoryInput(text, user, id=f"{user}-m", about=about)]
            )
            await engine.remember_turn(
                made.scope(name), user, f"{user}-s", "customer", f"{SECRET} turn {user}"
            )
        yield made


async def _tried(world: World, core: Any, place: Place, values: list[str]) -> Any:
    """Send one operation with all values in one place; return the answer."""
    wrapped: list[Any] = list(values)
    if place.type == "JSON":
        wrapped = [{"name": value, "status": value} for value in values]
    if place.field == "rememberBatch" and "items" in place.path:
        wrapped = [Together(wrapped)]
    text, variables = operation(core, place, wrapped, world.beside)
    response = await world.api.http.post(
        "/graphql",
        content=json.dumps({"query": text, "variables": variables}),
        headers={"Content-Type": "application/json"},
    )
    assert response.status_code == 200, (str(place), response.text[:500])
    return response.json()


def _faults(place: Place, answer: Any, values: list[str]) -> Iterator[str]:
    found = list(codes(answer))
    for code, message in found:
        if code not in CODES or code in NEVER:
            yield f"{place}: {code}: {message}"
        if all(leaks(message, value) for value in values or [""]):
            yield f"{place}: tells of the inside: {message}"
    written = json.dumps(answer, ensure_ascii=False)
    for mark in (f"{SECRET} u2", f"{SECRET} u9", f"{SECRET} turn u2", f"{SECRET} turn u9"):
        if mark in written:
            yield f"{place}: shows {mark}"


def _everywhere(core: Any) -> list[tuple[Place, list[str]]]:
    """Return every place with what to try there.

    An input that stands in several operations gets all of it in one of them, in a batch if there is
    one, and a few in the others.
    """
    # one operation has one subscription: it has a test of its own
    found = [place for place in places(core, strings(core)) if place.root != "subscription"]
    found.sort(key=lambda place: place.field != "rememberBatch")
    seen: set[str] = set()
    tried = []
    for number, place in enumerate(found):
        start = number % len(HOSTILE)
        few = [*HOSTILE, *HOSTILE][start : start + FEW]
        tried.append((place, few if place.input in seen else list(HOSTILE)))
        seen.add(place.input)
    return tried


async def test_no_string_breaks_out_anywhere(world: World) -> None:
    core = schema()
    before = await world.others()
    await world.spare(len(HOSTILE))
    faults = []
    for place, values in _everywhere(core):
        answer = await _tried(world, core, place, values)
        faults += list(_faults(place, answer, values))
    assert faults == [], "\n".join(faults)
    assert await world.others() == before
    kept = await world.engine.memory(world.scope(world.tenant), "u1", "u1-m")
    assert kept.text == f"{SECRET} u1: order u1-o was sent"
    await world.engine.audit.flush()


async def test_no_id_is_longer_than_allowed(world: World) -> None:
    core = schema()
    await world.spare(1)
    faults = []
    for place in places(core, frozenset({"ID"})):
        # `memoryId` says what a new one supersedes, whatever stands in it
        if place.root == "subscription" or place.path == ("new", "supersedes"):
            continue
        answer = await _tried(world, core, place, ["i" * 10_000])
        found = list(codes(answer))
        faults += list(_faults(place, answer, []))
        if not any("are allowed" in message for _, message in found):
            faults.append(f"{place}: {found}")
        if any(len(message) > LONGEST_MESSAGE for _, message in found):
            faults.append(f"{place}: gives the whole back")
    assert faults == [], "\n".join(faults)


async def test_what_is_hostile_comes_back_verbatim(world: World) -> None:
    write = """mutation ($id: ID!, $text: String!) {
      remember(input: {userId: $id, id: $id, text: $text, sessionId: $id, agentId: $id}) { status }
      upsertEntities(input: {entities: [
        {type: Order, id: $id, properties: {status: $text}},
        {type: User, id: $id, properties: {name: "Wei"}}],
        relations: [{type: PLACED, from: {type: User, id: $id}, to: {type: Order, id: $id}}]}) {
          relationsCreated }
      rememberTurn(userId: $id, sessionId: $id, speaker: CUSTOMER, text: $text, turnId: $id) {
        session { turns { text } } } }"""
    read = """query ($id: ID!, $text: String!) {
      memory(userId: $id, id: $id) { id userId sessionId agentId text }
      entity(userId: $id, type: Order, id: $id) { id ... on Order { status user { id } } }
      session(userId: $id, sessionId: $id) { sessionId turns { text } }
      memories(userId: $id) { edges { node { text } } }
      recall(input: {question: $text, userId: $id}) {
        memories { memory { text } } } }"""
    for id_ in PLAIN:
        text = f"The note says: {id_} and no more"
        await world.api.data(write, id=id_, text=text)
        found = await world.api.data(read, id=id_, text=text)
        assert found["memory"] == {
            **dict.fromkeys(("id", "userId", "sessionId", "agentId"), id_),
            "text": text,
        }
        assert found["entity"] == {"id": id_, "status": text, "user": {"id": id_}}
        assert found["session"] == {"sessionId": id_, "turns": [{"text": text}]}
        assert found["memories"]["edges"] == [{"node": {"text": text}}]
        assert found["recall"]["memories"] == [{"memory": {"text": text}}]
    # what is no character is none afterwards, and the rest is as it was
    for text, kept in (
        ("a\x00b", "a b"),
        ("a\ud800b", "a b"),
        ("\u202e倒\u202c的", "倒的"),
        ("\r\nERROR x\r\ny", "ERROR x\ny"),
    ):
        item = await world.api.data(
            'mutation ($text: String!) { remember(input: {userId: "odd", text: $text}) { id } }',
            text=text,
        )
        found = await world.api.data(
            'query ($id: ID!) { memory(userId: "odd", id: $id) { text } }', **item["remember"]
        )
        assert found["memory"]["text"] == kept


async def test_who_is_hostile_follows_nobody(engine: Any, tenant: str, api_over: Any) -> None:
    query = "subscription ($user: ID!) { memoryChanged(userId: $user) { kind } }"
    async with api_over(engine, tenant=tenant, users=["u1"]) as api:
        for value in (*HOSTILE, "u2", "i" * 10_000):
            response = await api.http.post(
                "/graphql",
                content=json.dumps({"query": query, "variables": {"user": value}}),
                headers={"Content-Type": "application/json", "Accept": "text/event-stream"},
            )
            (line, *_) = [each for each in response.text.splitlines() if each.startswith("data: ")]
            (error,) = json.loads(line.removeprefix("data: "))["errors"]
            assert error["extensions"]["code"] in {"FORBIDDEN", "INVALID_SCOPE"}
            assert not leaks(error["message"], value)
        # and what was refused is on record, though its user is nobody
        await engine.audit.flush()


# --- what one request may hold -------------------------------------------------------------


async def refused(api: Any, code: str, limit: int, query: str, **variables: Any) -> None:
    body = await api.send(query, **variables)
    found = {error["extensions"]["code"]: error["message"] for error in body["errors"]}
    assert code in found, body
    assert str(limit) in found[code]
    assert body.get("data") is None


async def test_floods_of_directives(shop: Any, api_over: Any) -> None:
    once = "{ me { tenant %s } }"
    async with api_over(shop) as api:
        started = time.perf_counter()
        await refused(api, "QUERY_TOO_COMPLEX", MAX_TOKENS, once % ("@include(if: true) " * 10_000))
        body = await api.send(once % ("@include(if: true) " * 500))
        assert {error["extensions"]["code"] for error in body["errors"]} == {
            "GRAPHQL_VALIDATION_FAILED"
        }
        # what the schema does not have, many times: not one error each
        body = await api.send(once % ("@none " * 1_500))
        assert len(body["errors"]) <= MOST_ERRORS
        assert time.perf_counter() - started < PATIENCE_S


async def test_floods_of_unknown_fields_and_fragments(shop: Any, api_over: Any) -> None:
    fields = " ".join(f"f{number}" for number in range(1_900))
    spreads = " ".join(f"...f{number}" for number in range(1_000))
    overlap = "{ me { " + "a: tenant a: principal " * 400 + "} }"
    definitions = " ".join(f"fragment f{number} on Query {{ nothing }}" for number in range(600))
    async with api_over(shop) as api:
        started = time.perf_counter()
        for query in (
            f"{{ {fields} }}",
            f"{{ {spreads} }}",
            f"{{ __typename }} {definitions}",
            overlap,
            "{ me { tenant " + "...a " * 900 + "} } fragment a on Caller { tenant ...a }",
        ):
            body = await api.send(query)
            assert 0 < len(body["errors"]) <= MOST_ERRORS, query[:80]
            assert all(error["extensions"]["code"] != "INTERNAL_ERROR" for error in body["errors"])
        assert time.perf_counter() - started < PATIENCE_S


async def test_huge_variables(shop: Any, api_over: Any) -> None:
    query = """query ($a: [String!]) {
      recall(input: {question: "x", userId: "u1", topics: $a}) { action } }"""
    json_ = """mutation ($a: JSON) { upsertEntities(input: {
      entities: [{type: Order, id: "o", properties: $a}]}) { relationsCreated } }"""
    deep: Any = "x"
    for _ in range(400):
        deep = {"a": [deep]}
    async with api_over(shop) as api:
        started = time.perf_counter()
        bad = await api.send(query, a=[1] * 100_000)
        assert 0 < len(bad["errors"]) <= MOST_ERRORS
        assert len(json.dumps(bad)) < 100_000
        for value in (deep, {str(number): number for number in range(50_000)}, "x" * 1_000_000):
            body = await api.send(json_, a=value)
            assert all(
                error["extensions"]["code"] != "INTERNAL_ERROR" for error in body.get("errors", ())
            )
            assert len(json.dumps(body)) < 100_000
        body = await api.send(
            query, a=["warranty"], **{f"v{number}": number for number in range(50_000)}
        )
        assert "errors" not in body
        assert time.perf_counter() - started < PATIENCE_S


async def test_huge_lists_are_refused_with_their_limit(world: World) -> None:
    api, most = world.api, world.engine.settings.max_batch
    many = [f"i{number}" for number in range(20_000)]
    refs = [{"type": "Order", "id": id_} for id_ in many[:3_000]]
    fields = schema().mutation_type.fields
    shown = {
        name: selection(fields[name].type) for name in ("forget", "remember", "upsertEntities")
    }
    listed = """query ($a: [{}!]) {{ memories(userId: "u1", filter: {{{}: $a}}) {{
      edges {{ cursor }} }} }}"""
    cases: list[tuple[str, list[Any]]] = [
        (
            'mutation ($a: [ID!]!) { forget(userId: "u1", ids: $a, reason: "x")'
            + shown["forget"]
            + "}",
            many,
        ),
        (
            "mutation ($a: [EntityRefInput!]!) {"
            ' remember(input: {userId: "u1", text: "x", about: $a})' + shown["remember"] + "}",
            refs,
        ),
        (
            "mutation ($a: [RelationInput!]!) { upsertEntities(input: {relations: $a})"
            + shown["upsertEntities"]
            + "}",
            [{"type": "PLACED", "from": ref, "to": ref} for ref in refs],
        ),
        (listed.format("String", "topics"), many),
        (listed.format("ID", "sources"), many),
    ]
    faults = []
    for query, value in cases:
        found = list(codes(await api.send(query, a=value)))
        if not any("are allowed" in m or "may be about" in m or str(most) in m for _, m in found):
            faults.append((query[:90], found[:2]))
    assert faults == []
