"""Over GraphQL, too, what is hidden is shown to those alone who may read it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ecphoria.model import Role

WRITE = """
mutation Write($items: [MemoryInput!]!, $entities: [EntityInput!]!) {
  upsertEntities(input: {entities: $entities}) { entities { status } }
  rememberBatch(input: {items: $items}) { receipts { status } }
}
"""
READ = """
query Read {
  recall(input: {question: "Which earbuds crackle?", userId: "u1", explain: true}) {
    memories { memory { text evidence details { value } } }
    contextBlock(maxTokens: 2000)
    trace { considered { text } }
  }
  memory(userId: "u1", id: "m1") { text }
  entity(userId: "u1", type: User, id: "u1") { ... on User { phone city } }
  attributeHistory(userId: "u1", entity: {type: User, id: "u1"}, attribute: "user.phone") {
    current { text value }
  }
}
"""
CLEAR = ("13812345678", "li.lei@example.com", "13987654321")


@pytest.mark.parametrize(
    ("role", "clear"), [(Role.AGENT, False), (Role.ANALYST, False), (Role.ADMIN, True)]
)
async def test_what_is_hidden_is_shown_by_role(
    engine: Any, tenant: str, api_over: Any, role: Role, *, clear: bool
) -> None:
    items = [
        {"id": "m1", "userId": "u1", "text": "The earbuds crackle, call 13812345678 back"},
        {"id": "m2", "userId": "u1", "text": "Earbuds: write to li.lei@example.com instead"},
        {"id": "m3", "userId": "u1", "text": "My phone number is 13987654321"},
        {"id": "m4", "userId": "u1", "text": "He is ill, earbuds", "privacy": "SENSITIVE"},
    ]
    person = {"name": "Li Lei", "phone": "13812345678", "city": "Lima"}
    async with api_over(engine, tenant=tenant) as api:
        written = await api.data(
            WRITE, items=items, entities=[{"type": "User", "id": "u1", "properties": person}]
        )
    receipts = written["rememberBatch"]["receipts"]
    assert [receipt["status"] for receipt in receipts] == ["CREATED"] * 4
    async with api_over(engine, tenant=tenant, roles=(role,)) as api:
        found = await api.data(READ)
    text = json.dumps(found, ensure_ascii=False)
    assert [value in text for value in CLEAR] == [clear] * len(CLEAR)
    assert ("He is ill" in text) is clear
    assert ("[phone]" in found["recall"]["contextBlock"]) is not clear
    assert found["entity"]["city"] == "Lima"
    assert "enc1:" not in text
