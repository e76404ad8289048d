"""The API over the real engine and its stores: the whole way, and every kind of bad input."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from ecphoria.model import Role

pytestmark = pytest.mark.asyncio(loop_scope="session")

UPSERT = """mutation ($entities: [EntityInput!]!, $relations: [RelationInput!]! = []) {
  upsertEntities(input: {entities: $entities, relations: $relations}) {
    entities { index status id } relationsCreated relationsUnchanged
    error { code message path } } }"""
REMEMBER = """mutation ($items: [MemoryInput!]!) { rememberBatch(input: {items: $items}) {
  receipts { index status id indexed links { entity { type id } certainty how }
    error { code message path } } } }"""
RECALL = """query ($question: String!, $userId: ID!, $topics: [String!], $limit: Int! = 10) {
  recall(input: {question: $question, userId: $userId, topics: $topics, limit: $limit}) {
    action confidence { overall }
    memories { memory { id userId about { __typename id } } because { path } }
    entities { __typename id name
      ... on Device { serial repairs { id status } warranties { id kind endsAt } order { id } }
      ... on User { phone } }
    entityHits { entity { id } because { path } }
    relations { type from { id } to { id } }
    contextBlock(maxTokens: 400)
    trace { stage milliseconds candidates } } }"""
ENTITY = """query ($userId: ID!, $type: EntityType!, $id: ID!) {
  entity(userId: $userId, type: $type, id: $id) { __typename id name observedAt
    ... on User { phone orders { id devices { id user: order { user { id } } } } }
    ... on Product { instances { id } } } }"""
MEMORY = """query ($userId: ID!, $id: ID!) {
  memory(userId: $userId, id: $id) { id text source validFrom about { id name } } }"""

INJECTIONS = (
    '") or true or ("',
    "' OR 1=1 //",
    "%",
    "u1|Order|x",
    "}) MATCH (n) DETACH DELETE n//",
)


def ref(type_: str, id_: str) -> dict[str, str]:
    return {"type": type_, "id": id_}


def shop_of(user: str, phone: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return one user's order, device, repair and warranty, and a product that all share."""
    entities = [
        {**ref("User", user), "properties": {"name": "张伟", "phone": phone}},
        {**ref("Order", f"{user}-o"), "properties": {"status": "paid"}},
        {**ref("Device", f"{user}-d"), "properties": {"name": "iPhone 15", "serial": f"S{user}"}},
        {**ref("Repair", f"{user}-r"), "properties": {"status": "closed", "fault": "screen"}},
        {
            **ref("Warranty", f"{user}-w"),
            "properties": {"kind": "extended", "endsAt": "2099-01-01T00:00:00Z"},
        },
        {**ref("Product", "p"), "properties": {"name": "iPhone 15"}},
    ]
    relations = [
        {"type": type_, "from": ref(*start), "to": ref(*end)}
        for type_, start, end in (
            ("PLACED", ("User", user), ("Order", f"{user}-o")),
            ("CONTAINS", ("Order", f"{user}-o"), ("Device", f"{user}-d")),
            ("HAS_REPAIR", ("Device", f"{user}-d"), ("Repair", f"{user}-r")),
            ("COVERED_BY", ("Device", f"{user}-d"), ("Warranty", f"{user}-w")),
            ("INSTANCE_OF", ("Device", f"{user}-d"), ("Product", "p")),
        )
    ]
    return entities, relations


async def fill(api: Any) -> None:
    for user, phone in (("u1", "13800000001"), ("u2", "13800000002")):
        entities, relations = shop_of(user, phone)
        written = (await api.data(UPSERT, entities=entities, relations=relations))["upsertEntities"]
        assert written["relationsCreated"] == 5
        again = (await api.data(UPSERT, entities=entities, relations=relations))["upsertEntities"]
        assert again["relationsUnchanged"] == 5
        receipts = (
            await api.data(
                REMEMBER,
                items=[
                    {
                        "id": f"{user}-m",
                        "userId": user,
                        "text": "The screen of the iPhone 15 was repaired",
                        "about": [ref("Device", f"{user}-d")],
                        "source": "crm",
                    }
                ],
            )
        )["rememberBatch"]["receipts"]
        assert receipts[0]["status"] == "CREATED", receipts
        assert receipts[0]["indexed"] is True


async def test_the_whole_way(engine: Any, tenant: str, api_over: Any) -> None:
    async with api_over(engine, tenant=tenant) as api:
        await fill(api)
        answer = (
            await api.data(
                RECALL, question="Is my iPhone 15 still under warranty after the repair?",
                userId="u1",
            )
        )["recall"]  # fmt: skip
        found = {(item["__typename"], item["id"]): item for item in answer["entities"]}
        assert {
            ("User", "u1"), ("Order", "u1-o"), ("Device", "u1-d"), ("Repair", "u1-r"),
            ("Warranty", "u1-w"),
        } <= set(found)  # fmt: skip
        assert not [id_ for _, id_ in found if id_.startswith("u2")]
        device = found["Device", "u1-d"]
        assert device["repairs"] == [{"id": "u1-r", "status": "closed"}]
        assert device["warranties"] == [
            {"id": "u1-w", "kind": "extended", "endsAt": "2099-01-01T00:00:00Z"}
        ]
        assert device["order"] == {"id": "u1-o"}
        assert [hit["memory"]["id"] for hit in answer["memories"]] == ["u1-m"]
        assert {"__typename": "Device", "id": "u1-d"} in answer["memories"][0]["memory"]["about"]
        assert {"type": "PLACED", "from": {"id": "u1"}, "to": {"id": "u1-o"}} in answer["relations"]
        assert answer["contextBlock"]
        assert "u2" not in str(answer)
        memory = (await api.data(MEMORY, userId="u1", id="u1-m"))["memory"]
        assert memory["source"] == "crm"
        assert memory["about"][0]["name"] == "iPhone 15"


async def test_nothing_of_others_can_be_walked_to(engine: Any, tenant: str, api_over: Any) -> None:
    async with api_over(engine, tenant=tenant) as api:
        await fill(api)
        for query, variables in (
            (ENTITY, {"userId": "u2", **ref("Order", "u1-o")}),
            (ENTITY, {"userId": "u2", **ref("User", "u1")}),
            (MEMORY, {"userId": "u2", "id": "u1-m"}),
        ):
            error = await api.error(query, **variables)
            assert error["extensions"]["code"] == "NOT_FOUND"
        # the product is shared; whose devices it has depends on who asks
        product = (await api.data(ENTITY, userId="u1", **ref("Product", "p")))["entity"]
        assert product["instances"] == [{"id": "u1-d"}]
    async with api_over(engine, tenant=f"{tenant}-x") as other:
        for query, variables in (
            (ENTITY, {"userId": "u1", **ref("Order", "u1-o")}),
            (ENTITY, {"userId": "u1", **ref("Product", "p")}),
            (MEMORY, {"userId": "u1", "id": "u1-m"}),
        ):
            error = await other.error(query, **variables)
            assert error["extensions"]["code"] == "NOT_FOUND"
        answer = await other.data(RECALL, question="iPhone 15 warranty", userId="u1")
        assert answer["recall"]["entities"] == answer["recall"]["memories"] == []
    async with api_over(engine, tenant=tenant, users=["u2"]) as narrow:
        error = await narrow.error(RECALL, question="q", userId="u1")
        assert error["extensions"]["code"] == "FORBIDDEN"


@pytest.mark.parametrize("text", INJECTIONS)
async def test_strings_stay_strings(engine: Any, tenant: str, api_over: Any, text: str) -> None:
    async with api_over(engine, tenant=tenant) as api:
        await fill(api)
        for query, variables in (
            (RECALL, {"question": text, "userId": text}),
            (RECALL, {"question": "iPhone 15", "userId": text}),
            (RECALL, {"question": text, "userId": "u3"}),
            (RECALL, {"question": "iPhone 15", "userId": "u3", "topics": [text]}),
            (ENTITY, {"userId": text, **ref("Order", "u1-o")}),
            (ENTITY, {"userId": "u1", **ref("Order", text)}),
            (MEMORY, {"userId": text, "id": "u1-m"}),
            (MEMORY, {"userId": "u1", "id": text}),
        ):
            body = await api.send(query, **variables)
            assert "u1-" not in str(body.get("data"))
            for error in body.get("errors", ()):
                assert error["extensions"]["code"] in {
                    "NOT_FOUND", "INVALID_SCOPE", "INVALID_INPUT",
                }  # fmt: skip
        # and what carries it is kept as it is, and harms nobody
        receipts = await api.data(
            REMEMBER, items=[{"text": f"x {text}", "userId": "u9", "sessionId": text}]
        )
        assert receipts["rememberBatch"]["receipts"][0]["status"] == "CREATED"
        assert (await api.data(MEMORY, userId="u1", id="u1-m"))["memory"]["id"] == "u1-m"


async def test_masks(engine: Any, tenant: str, api_over: Any) -> None:
    async with api_over(engine, tenant=tenant) as api:
        await fill(api)
        user = (await api.data(ENTITY, userId="u1", **ref("User", "u1")))["entity"]
        assert user["phone"] == "13800000001"
    async with api_over(engine, tenant=tenant, roles=(Role.AGENT,)) as agent:
        bodies = [
            await agent.send(ENTITY, userId="u1", **ref("User", "u1")),
            await agent.send(RECALL, question="iPhone 15 warranty", userId="u1"),
        ]
    for body in bodies:
        assert "errors" not in body
        assert "13800000001" not in str(body)
    assert bodies[0]["data"]["entity"]["phone"] == "•••"


class Counting:
    """An engine that counts its verbs and is otherwise the one given."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        if name in {"related", "entities", "recall", "entity"}:
            self.calls[name] += 1
        return getattr(self._engine, name)


async def test_round_trips_of_an_operation(engine: Any, tenant: str, api_over: Any) -> None:
    counting = Counting(engine)
    async with api_over(counting, tenant=tenant) as api:
        await fill(api)
        counting.calls.clear()
        await api.data(RECALL, question="iPhone 15 warranty repair", userId="u1")
    # repairs, warranties and order of all devices: one each; `about` of all memories: one
    assert counting.calls == {"recall": 1, "related": 3, "entities": 1}


# --- bad input -----------------------------------------------------------------------------
# Refused before a store is asked, or (MISSING_ENTITY) tried on each store set in tests/contract.

BAD_MEMORIES: list[tuple[dict[str, Any], str, list[str]]] = [
    ({"text": ""}, "TEXT_EMPTY", ["text"]),
    ({"text": " \n\t\u200b"}, "TEXT_EMPTY", ["text"]),
    ({"text": "x" * 200_000}, "TEXT_TOO_LONG", ["text"]),
    ({"userId": ""}, "INVALID_SCOPE", ["userId"]),
    ({"userId": "*"}, "INVALID_SCOPE", ["userId"]),
    ({"userId": None}, "INVALID_SCOPE", ["userId"]),
    ({"shared": True}, "INVALID_SCOPE", ["userId"]),
    ({"userId": "u" * 10_000}, "INVALID_SCOPE", ["userId"]),
    ({"id": ""}, "INVALID_INPUT", ["id"]),
    ({"id": "a\u0000b"}, "INVALID_INPUT", ["id"]),
    ({"id": "x" * 10_000}, "TEXT_TOO_LONG", ["id"]),
    ({"sessionId": " "}, "INVALID_INPUT", ["sessionId"]),
    ({"source": "nobody"}, "INVALID_INPUT", ["source"]),
    ({"importance": 1.5}, "INVALID_INPUT", ["importance"]),
    ({"importance": -0.1}, "INVALID_INPUT", ["importance"]),
    (
        {"validFrom": "2025-02-01T00:00:00Z", "validUntil": "2025-01-01T00:00:00Z"},
        "INVALID_TIME",
        ["validUntil"],
    ),
    ({"about": [{"type": "Order", "id": "no-such-order"}]}, "MISSING_ENTITY", ["about", "0"]),
    ({"about": [{"type": "Order", "id": ""}]}, "INVALID_INPUT", ["about", "0", "id"]),
]


@pytest.mark.one_store_set
@pytest.mark.parametrize(("change", "code", "path"), BAD_MEMORIES)
async def test_bad_memories(
    engine: Any, tenant: str, api_over: Any, change: Any, code: str, path: list[str]
) -> None:
    good = {"text": "The battery was replaced", "userId": "u1"}
    async with api_over(engine, tenant=tenant) as api:
        payload = await api.data(REMEMBER, items=[{**good, **change}, good])
    receipts = payload["rememberBatch"]["receipts"]
    bad, kept = receipts
    assert (bad["status"], bad["error"]["code"]) == ("REJECTED", code)
    assert bad["error"]["path"] == ["input", "items", "0", *path]
    assert bad["error"]["message"]
    assert bad["links"] == []
    assert kept["status"] == "CREATED"
    assert [receipt["index"] for receipt in receipts] == [0, 1]
    assert (await engine.graph.counts(tenant))["Memory"] == 1


async def test_duplicate_ids(engine: Any, tenant: str, api_over: Any) -> None:
    one = {"id": "same", "text": "The battery was replaced", "userId": "u1"}
    two = {**one, "text": "The screen was replaced"}
    async with api_over(engine, tenant=tenant) as api:
        first, second, third = [
            (await api.data(REMEMBER, items=items))["rememberBatch"]["receipts"]
            for items in ([one, one, two], [two], [{**one, "userId": "u2"}])
        ]
    assert [item["status"] for item in first] == ["CREATED", "DUPLICATE", "REJECTED"]
    assert first[2]["error"]["code"] == "DUPLICATE_ID"
    assert second[0]["error"]["code"] == third[0]["error"]["code"] == "ID_CONFLICT"


BAD_UPSERTS: list[tuple[dict[str, Any], dict[str, Any], str, list[str | int]]] = [
    ({"id": ""}, {}, "INVALID_INPUT", ["entities", 1, "id"]),
    ({"id": "x" * 10_000}, {}, "TEXT_TOO_LONG", ["entities", 1, "id"]),
    ({"id": "a\u0000"}, {}, "INVALID_INPUT", ["entities", 1, "id"]),
    ({"properties": {"color": "red"}}, {}, "UNKNOWN_PROPERTY",
     ["entities", 1, "properties", "color"]),
    ({"properties": {"total": "much"}}, {}, "INVALID_INPUT",
     ["entities", 1, "properties", "total"]),
    ({"properties": {"total": float("nan")}}, {}, "INVALID_INPUT",
     ["entities", 1, "properties", "total"]),
    ({"properties": {"placedAt": "2025-01-01T00:00:00"}}, {}, "INVALID_TIME",
     ["entities", 1, "properties", "placed_at"]),
    ({"properties": {"status": {"deep": [1]}}}, {}, "INVALID_INPUT",
     ["entities", 1, "properties", "status"]),
    ({"properties": {"status": "x" * 20_000}}, {}, "TEXT_TOO_LONG",
     ["entities", 1, "properties", "status"]),
    ({"type": "Device"}, {}, "INVALID_INPUT", ["entities", 1, "properties"]),
    ({"id": "o1", "properties": {"status": "other"}}, {}, "DUPLICATE_ID", ["entities", 1, "id"]),
    ({}, {"type": "USED"}, "UNKNOWN_RELATION", ["relations", 0, "type"]),
    ({}, {"to": {"type": "Order", "id": "none"}}, "MISSING_ENTITY", ["relations", 0]),
    ({}, {"to": {"type": "Order", "id": ""}}, "INVALID_INPUT", ["relations", 0, "to", "id"]),
]  # fmt: skip


@pytest.mark.one_store_set
@pytest.mark.parametrize(("entity", "relation", "code", "path"), BAD_UPSERTS)
async def test_bad_upserts_write_nothing(
    engine: Any,
    tenant: str,
    api_over: Any,
    entity: Any,
    relation: Any,
    code: str,
    path: list[str | int],
) -> None:
    entities = [
        {**ref("Order", "o1"), "properties": {"status": "paid"}},
        {**ref("Order", "o2"), **entity},
        {**ref("User", "u1"), "properties": {"name": "张伟"}},
    ]
    relations = [
        {"type": "PLACED", "from": ref("User", "u1"), "to": ref("Order", "o1"), **relation}
    ]
    async with api_over(engine, tenant=tenant) as api:
        fault = await api.fault(UPSERT, entities=entities, relations=relations)
        assert fault["code"] == code, fault
        assert fault["path"][: len(path) + 1] == ["input", *map(str, path)], fault
        gone = await api.error(ENTITY, userId="u1", **ref("User", "u1"))
    assert gone["extensions"]["code"] == "NOT_FOUND"
    counts = await engine.graph.counts(tenant)
    assert not counts.get("Order")
    assert not counts.get("User")


@pytest.mark.one_store_set
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"question": ""}, "TEXT_EMPTY"),
        ({"question": " \n"}, "TEXT_EMPTY"),
        ({"question": "x" * 5000}, "TEXT_TOO_LONG"),
        ({"limit": 0}, "INVALID_INPUT"),
        ({"limit": -1}, "INVALID_INPUT"),
        ({"limit": 101}, "INVALID_INPUT"),
        ({"topics": ["no such topic"]}, "INVALID_INPUT"),
    ],
)
async def test_bad_recalls(
    engine: Any, tenant: str, api_over: Any, change: dict[str, Any], code: str
) -> None:
    async with api_over(engine, tenant=tenant) as api:
        error = await api.error(RECALL, **{"question": "q", "userId": "u1", **change})
    assert error["extensions"]["code"] == code, error
    assert error["extensions"]["path"][0] == "input"


async def test_odd_texts_come_back(engine: Any, tenant: str, api_over: Any) -> None:
    texts = ["屏幕碎了\u0000 \ud800 了", "🙂" * 50, "e\u0301cran cassé", "ر repair ي"]
    async with api_over(engine, tenant=tenant) as api:
        receipts = (
            await api.data(REMEMBER, items=[{"text": text, "userId": "u1"} for text in texts])
        )["rememberBatch"]["receipts"]
        assert {receipt["status"] for receipt in receipts} <= {"CREATED", "REJECTED"}
        for receipt in receipts:
            if receipt["status"] == "CREATED":
                assert (await api.data(MEMORY, userId="u1", id=receipt["id"]))["memory"]["text"]
            else:
                assert receipt["error"]["code"]
        for text in texts:
            await api.send(RECALL, question=text, userId="u1")


async def test_a_key_of_another_tenant_sees_nothing(
    engine: Any, tenant: str, api_over: Any, new_key: Any
) -> None:
    async with api_over(engine, tenant=tenant) as api:
        await fill(api)
        foreign = await new_key(engine, f"{tenant}-y", Role.ADMIN)
        body = await api.send(MEMORY, key=foreign, userId="u1", id="u1-m")
    assert body["errors"][0]["extensions"]["code"] == "NOT_FOUND"


async def test_readyz_names_the_stores(engine: Any, api_over: Any) -> None:
    async with api_over(engine, anonymous=True) as api:
        body = (await api.http.get("/readyz")).json()
    assert body["status"] == "ready"
    assert "/" in body["graph"]
    assert "/" in body["vectors"]
    assert body["model"]
