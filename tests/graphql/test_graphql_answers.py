"""What comes back: joined answers, masks, batched look-ups; over an engine without stores."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ecphoria.governance.access import MASK
from ecphoria.model import EntityInput, EntityRef, FactInput, MemoryInput, RelationInput, Role
from ecphoria_graphql import limits, loaders

pytestmark = pytest.mark.asyncio(loop_scope="session")

RECALL = """
query Recall($question: String!, $userId: ID!, $asOf: DateTime) {
  recall(input: {question: $question, userId: $userId, asOf: $asOf}) {
    action advisory asOf language topics degradations
    confidence {
      overall timeliness { score level reason } source { score reason } consistency { score }
    }
    memories {
      relevance score similarity confidence { overall }
      memory { id text kind validUntil source about { __typename id } }
      because { path } conflictsWith
    }
    entities {
      __typename id type name observedAt confidence { overall }
      ... on Device { serial repairs { id status underWarranty device { id } } order { id } }
      ... on Order { placedAt total devices(limit: 1) { id } }
    }
    entityHits { relevance because { path } confidence { overall } entity { id } }
    relations { type from { id type } to { id type } confidence }
    contextBlock
    trace { stage milliseconds candidates dropped { rule count } note }
  }
}
"""


async def test_recall_is_joined(shop: Any, api_over: Any) -> None:
    async with api_over(shop) as api:
        data = await api.data(
            RECALL, question="is it covered?", userId="u1", asOf="2025-01-01T10:00:00+08:00"
        )
    answer = data["recall"]
    assert answer["action"] == "ANSWER"
    assert answer["language"] == "EN"
    assert answer["asOf"] == "2025-01-01T02:00:00Z"
    assert answer["confidence"]["timeliness"] == {
        "score": 0.85,
        "level": "STABLE",
        "reason": "seen today",
    }
    memory = answer["memories"][0]
    assert memory["memory"] == {
        "id": "m1",
        "text": "The screen was replaced",
        "kind": "EPISODIC",
        "validUntil": None,
        "source": "crm",
        "about": [{"__typename": "Device", "id": "d1"}, {"__typename": "Order", "id": "o1"}],
    }
    assert memory["because"] == [{"path": "question → memory"}]
    entities = {(item["__typename"], item["id"]): item for item in answer["entities"]}
    assert entities["Device", "d1"]["serial"] == "S1"
    assert entities["Device", "d1"]["repairs"] == [
        {"id": "r1", "status": "closed", "underWarranty": True, "device": {"id": "d1"}}
    ]
    assert entities["Device", "d1"]["confidence"] == {"overall": 0.9}
    assert entities["Order", "o1"]["placedAt"] == "2025-06-15T08:00:00.250Z"
    assert entities["Order", "o1"]["devices"] == [{"id": "d1"}]
    assert entities["User", "u1"]["type"] == "User"
    assert len(answer["entityHits"]) == len(answer["entities"])
    assert answer["entityHits"][0]["because"] == [{"path": "User u1 → Order o1"}]
    assert answer["relations"][0] == {
        "type": "PLACED",
        "from": {"id": "u1", "type": "User"},
        "to": {"id": "o1", "type": "Order"},
        "confidence": 0.9,
    }
    assert answer["contextBlock"] == "the default block"
    assert answer["trace"][0]["dropped"] == [{"rule": "expired", "count": 2}]
    assert shop.asked_for == {"u1"}


EXPLAIN = """
query Explain($explain: Boolean!) {
  recall(input: {question: "is it covered?", userId: "u1", explain: $explain}) {
    trace { stage input output considered {
      memoryId kind text place relevance score similarity dropped
      features { name value weight share } } }
  }
}
"""


async def test_a_recall_explains_itself_when_asked_to(shop: Any, api_over: Any) -> None:
    async with api_over(shop) as api:
        asked = await api.data(EXPLAIN, explain=True)
        not_asked = await api.data(EXPLAIN, explain=False)
    (step,) = asked["recall"]["trace"]
    assert (step["input"], step["output"]) == ("1 question", "3 seeds")
    assert step["considered"][0] == {
        "memoryId": "m1",
        "kind": "EPISODIC",
        "text": "The screen was replaced",
        "place": 1,
        "relevance": 0.9,
        "score": 0.5,
        "similarity": None,
        "dropped": "expired",
        "features": [{"name": "similarity", "value": 0.5, "weight": 4.0, "share": 0.25}],
    }
    assert not_asked["recall"]["trace"][0]["considered"] == []


async def test_a_level_is_one_call_a_relation(shop: Any, api_over: Any) -> None:
    async with api_over(shop) as api:
        await api.data(RECALL, question="q", userId="u1")
    # Order.devices, Device.repairs, Device.order, Repair.device: once each, for all entities
    assert shop.calls["CONTAINS:Device"] == 1
    assert shop.calls["HAS_REPAIR:Repair"] == 1
    assert shop.calls["CONTAINS:Order"] == 1
    assert shop.calls["HAS_REPAIR:Device"] == 1
    # what all memories are about: one call
    assert shop.calls["entities"] == 1
    assert shop.calls["recall"] == 1


async def test_relations_with_several_end_types_give_the_interface(
    shop: Any, api_over: Any
) -> None:
    query = """{ entity(userId: "u1", type: Ticket, id: "k1") {
      ... on Ticket { user { id } concerns { __typename id ... on Device { serial } } } } }"""
    async with api_over(shop) as api:
        data = await api.data(query)
    assert data["entity"]["concerns"] == [
        {"__typename": "Order", "id": "o1"},
        {"__typename": "Device", "id": "d1", "serial": "S1"},
        {"__typename": "Repair", "id": "r1"},
    ]
    assert data["entity"]["user"] is None


@pytest.mark.parametrize(
    ("roles", "phone", "city"),
    [
        ((Role.ADMIN,), "13800000000", "Wuhan"),
        ((Role.AGENT,), MASK, "Wuhan"),
        ((Role.ANALYST,), MASK, "Wuhan"),
        ((Role.AGENT, Role.ADMIN), "13800000000", "Wuhan"),
    ],
)
async def test_properties_are_masked_by_role(
    shop: Any, api_over: Any, roles: Any, phone: str, city: str
) -> None:
    query = """{ entity(userId: "u1", type: User, id: "u1") {
      ... on User { phone email city } } }"""
    async with api_over(shop, roles=roles) as api:
        user = (await api.data(query))["entity"]
        order = await api.data(
            '{ entity(userId: "u1", type: Order, id: "o1") { ... on Order { user { phone } } } }'
        )
    # what is not there is null, not a mask: a mask says that there is something
    assert user == {"phone": phone, "email": None, "city": city}
    assert order["entity"]["user"]["phone"] == phone


async def test_what_is_no_string_is_masked_as_null(clinic: Any, shop: Any, api_over: Any) -> None:
    shop.domain = clinic
    shop.put("Patient", "p1", birth_date="1980-02-29", allergies="penicillin")
    shop.put("Doctor", "x1", room=2**40, nicknames=("Bo", "Doc"))
    query = """{
      patient: entity(userId: "u1", type: Patient, id: "p1") {
        ... on Patient { birthDate allergies } }
      doctor: entity(userId: "u1", type: Doctor, id: "x1") { ... on Doctor { room nicknames } }
    }"""
    async with api_over(shop) as api:
        data = await api.data(query)
    assert data["patient"] == {"birthDate": "1980-02-29", "allergies": "penicillin"}
    assert data["doctor"] == {"room": 2**40, "nicknames": ["Bo", "Doc"]}
    async with api_over(shop, roles=(Role.AGENT,)) as api:
        data = await api.data(query)
    assert data["patient"] == {"birthDate": "1980-02-29", "allergies": MASK}


async def test_limits_of_lists(shop: Any, api_over: Any) -> None:
    query = """query ($limit: Int!) { entity(userId: "u1", type: Order, id: "o1") {
      ... on Order { devices(limit: $limit) { id } } } }"""
    async with api_over(shop) as api:
        assert len((await api.data(query, limit=1))["entity"]["devices"]) == 1
        assert len((await api.data(query, limit=200))["entity"]["devices"]) == 2
        for limit in (0, -1, 201):
            error = await api.error(query, limit=limit)
            assert error["extensions"]["code"] == "INVALID_INPUT"
            assert error["extensions"]["path"] == ["limit"]


async def test_context_block_has_its_own_budget(
    shop: Any, api_over: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "ecphoria_graphql.recall_types.context_block", lambda _result, budget: f"{budget} tokens"
    )
    query = """query ($tokens: Int) { recall(input: {question: "q", userId: "u1"}) {
      contextBlock(maxTokens: $tokens) } }"""
    async with api_over(shop) as api:
        assert (await api.data(query))["recall"]["contextBlock"] == "the default block"
        assert (await api.data(query, tokens=50))["recall"]["contextBlock"] == "50 tokens"
        for tokens in (0, -5, 10**6):
            error = await api.error(query, tokens=tokens)
            assert error["extensions"]["code"] == "INVALID_INPUT"


async def test_no_loader_is_shared_between_requests(
    shop: Any, api_over: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[Any, Any]] = []
    original = loaders.Loaders.__init__

    def remember_it(self: Any, engine: Any, scope: Any) -> None:
        made.append((self, scope))
        original(self, engine, scope)

    monkeypatch.setattr(loaders.Loaders, "__init__", remember_it)
    query = '{ entity(userId: "u1", type: Order, id: "o1") { ... on Order { devices { id } } } }'
    async with api_over(shop) as api:
        await api.data(query)
        shop.edges.clear()
        # a cache that outlived its request would still have the devices
        assert (await api.data(query))["entity"]["devices"] == []
    assert shop.calls["CONTAINS:Device"] == 2
    assert len({id(loader) for loader, _ in made}) == len(made) == 2


async def test_entities_of_an_operation_are_counted(
    shop: Any, api_over: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loaders, "MAX_ENTITIES", 3)
    query = """{ entity(userId: "u1", type: Order, id: "o1") { ... on Order {
      devices { repairs { device { id } } } } } }"""
    async with api_over(shop) as api:
        body = await api.send(query)
    assert {error["extensions"]["code"] for error in body["errors"]} == {"QUERY_TOO_COMPLEX"}
    assert "3" in body["errors"][0]["message"]
    assert limits.MAX_ENTITIES > 1000


async def test_types_that_left_the_domain_are_left_out(shop: Any, api_over: Any) -> None:
    shop.put("Spaceship", "s1")
    shop.memory_row("m3", "about a spaceship", EntityRef("Spaceship", "s1"))
    async with api_over(shop) as api:
        answer = (await api.data(RECALL, question="q", userId="u1"))["recall"]
    assert "Spaceship" not in {item["__typename"] for item in answer["entities"]}
    assert answer["memories"][2]["memory"]["about"] == []


async def test_remember_maps_every_field(shop: Any, api_over: Any) -> None:
    item = {
        "text": "换了屏幕",
        "userId": "u1",
        "id": "mine",
        "kind": "SEMANTIC",
        "topic": "repair",
        "source": "crm",
        "lang": "ZH",
        "importance": 0.25,
        "privacy": "SENSITIVE",
        "occurredAt": "2025-01-01T00:00:00Z",
        "validFrom": "2025-01-02T00:00:00+01:00",
        "validUntil": "2026-01-01T00:00:00Z",
        "expiresAt": "2027-01-01T00:00:00Z",
        "sessionId": "s",
        "agentId": "a",
        "about": [{"type": "Device", "id": "d1"}],
        "supersedes": "older",
        "facts": [
            {
                "entity": {"type": "Order", "id": "o1"},
                "attribute": "order.status",
                "value": "shipped",
            },
            {
                "entity": {"type": "User", "id": "u1"},
                "attribute": "user.preference",
                "value": "like",
                "subject": "茶",
                "text": "喜欢茶",
            },
        ],
    }
    query = """mutation ($input: MemoryInput!) { remember(input: $input) {
      index status id indexed links { entity { type id } certainty how } error { code } } }"""
    async with api_over(shop) as api:
        data = await api.data(query, input=item)
    assert data["remember"] == {
        "index": 0,
        "status": "CREATED",
        "id": "m0",
        "indexed": True,
        "links": [{"entity": {"type": "Device", "id": "d1"}, "certainty": 1.0, "how": "GIVEN"}],
        "error": None,
    }
    assert shop.written == [
        MemoryInput(
            text="换了屏幕",
            user_id="u1",
            id="mine",
            kind="semantic",
            topic="repair",
            source="crm",
            lang="zh",
            importance=0.25,
            privacy="sensitive",
            occurred_at=datetime(2025, 1, 1, tzinfo=UTC),
            valid_from=datetime(2025, 1, 1, 23, tzinfo=UTC),
            valid_until=datetime(2026, 1, 1, tzinfo=UTC),
            expires_at=datetime(2027, 1, 1, tzinfo=UTC),
            session_id="s",
            agent_id="a",
            about=(EntityRef("Device", "d1"),),
            supersedes="older",
            facts=(
                FactInput(EntityRef("Order", "o1"), "order.status", "shipped"),
                FactInput(EntityRef("User", "u1"), "user.preference", "like", "茶", "喜欢茶"),
            ),
        )
    ]


async def test_defaults_are_the_engines(shop: Any, api_over: Any) -> None:
    query = "mutation ($input: MemoryInput!) { remember(input: $input) { status } }"
    async with api_over(shop) as api:
        await api.data(query, input={"text": "x", "userId": "u1"})
        await api.data(query, input={"text": "x", "shared": True})
    assert shop.written == [MemoryInput("x", "u1"), MemoryInput("x", None)]


async def test_a_bad_item_leaves_the_others_in_place(shop: Any, api_over: Any) -> None:
    query = """mutation ($items: [MemoryInput!]!) { rememberBatch(input: {items: $items}) {
      receipts { index status id error { __typename code path } } error { code } } }"""
    async with api_over(shop) as api:
        data = await api.data(
            query,
            items=[
                {"text": "neither"},
                {"text": "good", "userId": "u1"},
                {"text": "both", "userId": "u1", "shared": True},
                {"text": "shared", "shared": True},
            ],
        )
    assert data["rememberBatch"]["error"] is None
    receipts = data["rememberBatch"]["receipts"]
    assert [receipt["index"] for receipt in receipts] == [0, 1, 2, 3]
    assert [receipt["status"] for receipt in receipts] == [
        "REJECTED", "CREATED", "REJECTED", "CREATED",
    ]  # fmt: skip
    assert receipts[0]["error"] == {
        "__typename": "InvalidInputFault",
        "code": "INVALID_SCOPE",
        "path": ["input", "items", "0", "userId"],
    }
    assert receipts[2]["error"]["path"] == ["input", "items", "2", "userId"]
    assert [item.text for item in shop.written] == ["good", "shared"]


async def test_entities_take_both_spellings(shop: Any, api_over: Any) -> None:
    query = """mutation ($entities: [EntityInput!]!, $relations: [RelationInput!]!) {
      upsertEntities(input: {entities: $entities, relations: $relations}) {
        entities { index status id } relationsCreated relationsUnchanged
        error { code message path } } }"""
    entities = [
        {
            "type": "Order",
            "id": "o9",
            "properties": {"placedAt": "2025-01-01T00:00:00Z", "tracking_number": "T"},
            "observedAt": "2025-01-01T00:00:00Z",
        },
        {"type": "User", "id": "u9"},
    ]
    relations = [
        {
            "type": "PLACED",
            "from": {"type": "User", "id": "u9"},
            "to": {"type": "Order", "id": "o9"},
        }
    ]
    async with api_over(shop) as api:
        data = await api.data(query, entities=entities, relations=relations)
        fault = await api.fault(
            query,
            entities=[{"type": "Order", "id": "o", "properties": {"placedAt": 1, "placed_at": 2}}],
            relations=[],
        )
    assert data["upsertEntities"]["relationsCreated"] == 1
    assert shop.written == [
        EntityInput(
            "Order",
            "o9",
            {"placed_at": "2025-01-01T00:00:00Z", "tracking_number": "T"},
            datetime(2025, 1, 1, tzinfo=UTC),
        ),
        EntityInput("User", "u9", {}, None),
        RelationInput("PLACED", EntityRef("User", "u9"), EntityRef("Order", "o9")),
    ]
    assert fault["code"] == "INVALID_INPUT"
    assert fault["path"] == ["input", "entities", "0", "properties", "placed_at"]


async def test_queries_by_get_but_no_mutations(shop: Any, api_over: Any) -> None:
    async with api_over(shop) as api:
        good = await api.http.get(
            "/graphql",
            params={"query": '{ memory(userId: "u1", id: "m1") { id } }'},
            headers={"Accept": "application/json"},
        )
        bad = await api.http.get(
            "/graphql",
            params={"query": 'mutation { remember(input: {text: "x", userId: "u1"}) { status } }'},
        )
    assert good.json() == {"data": {"memory": {"id": "m1"}}}
    assert bad.status_code == 405
    assert bad.headers["allow"] == "POST"
    assert bad.json()["errors"][0]["extensions"]["code"] == "BAD_REQUEST"
    assert shop.written == []
