"""How often an operation goes to the stores: by its levels, never by how much it brings."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from importlib import resources
from typing import Any

import pytest
from benchmarks.recorder import watched_engine

from ecphoria.governance.data_keys import DataKeys
from ecphoria_schema.queries import _FRAGMENTS

pytestmark = pytest.mark.asyncio(loop_scope="session")

UPSERT = """mutation ($entities: [EntityInput!]!, $relations: [RelationInput!]!) {
  upsertEntities(input: {entities: $entities, relations: $relations}) { relationsCreated } }"""
REMEMBER = """mutation ($items: [MemoryInput!]!) {
  rememberBatch(input: {items: $items}) { receipts { status } } }"""
RECALL = """query ($userId: ID!) {
  recall(input: {question: "Was the screen replaced under warranty?",
                 userId: $userId, limit: 50}) {
    memories { memory { id about { id } links { how } conflictsWith { memory { id } } } }
    entities { __typename id
      ... on Device { order { id } repairs { id status device { id } } } } } }"""
ENTITIES = """query ($userId: ID!) {
  entity(userId: $userId, type: User, id: $userId) { ... on User {
    orders(limit: 10) { devices { repairs { id } product { id } } }
    ordersConnection(first: 10) { edges { node {
      devicesConnection(first: 5) { edges { node {
        repairsConnection(first: 5) { edges { node { id } } } } } } } } } } } }"""
MEMORIES = """query ($userId: ID!) {
  memories(userId: $userId, first: 50) {
    totalCount
    edges { node { id about { __typename id } links { how } supersedes { memory { id } } } } } }"""
GRAPH = """query ($userId: ID!) {
  entityGraph(userId: $userId, type: User, id: $userId, depth: 3) { entities { id } } }"""
NODES = """query ($userId: ID!) {
  entities(userId: $userId, type: Order, first: 50) { edges { node { id } } }
  stats(userId: $userId) { memoryCount entities { count } } }"""


def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    found = []
    for item in (resources.files("ecphoria_schema") / "cypher").iterdir():
        text = item.read_text("utf-8")
        for name, fragment in _FRAGMENTS.items():
            text = text.replace(f"__{name}__", fragment)
        parts = [re.escape(part) for part in re.split(r"__[A-Z]+__", text)]
        found.append((item.name.removesuffix(".cypher"), re.compile(r"[\w|]+".join(parts))))
    return found


PATTERNS = _patterns()


def named(graph: Any, text: str) -> str:
    """Return what a Cypher text is called: a file's name, or what it was made for."""
    made = {
        graph._names: "names",
        graph._shared_names: "shared names",
        graph._entities: "entities",
        graph._neighbours: "neighbours",
        graph._counts[True]: "counts",
        **dict.fromkeys(graph._expansions.values(), "expansion"),
    }
    if text in made:
        return made[text]
    (name,) = (name for name, pattern in PATTERNS if pattern.fullmatch(text))
    return name


@pytest.fixture
async def asked(engine: Any, tenant: str, api_over: Any) -> Any:
    """Return what runs an operation for a user: how often what was sent, and what came back."""
    watched, seen = watched_engine(engine, engine.graph._driver)
    keys = DataKeys(watched.graph, engine.vault.ring, engine.clock)
    watched = replace(watched, vault=keys)

    async with api_over(watched, tenant=tenant) as api:
        for user, size in (("few", 1), ("many", 9)):
            await fill(api, user, size)

        async def ask(query: str, user: str) -> tuple[Counter[str], Counter[str], Any]:
            seen.clear()
            data = await api.data(query, userId=user)
            return (
                Counter(named(watched.graph, sent.text) for sent in seen.statements),
                Counter(search.kind for search in seen.searches),
                data,
            )

        yield ask


async def fill(api: Any, user: str, size: int) -> None:
    entities = [
        {"type": "User", "id": user, "properties": {"name": user}},
        {"type": "Product", "id": "p", "properties": {"name": "Phone X"}},
    ]
    relations = []
    items = []
    for number in range(size):
        order, device, repair = (f"{user}-{letter}{number}" for letter in "odr")
        entities += [
            {"type": "Order", "id": order, "properties": {"status": "paid"}},
            {"type": "Device", "id": device, "properties": {"name": "Phone X", "serial": device}},
            {"type": "Repair", "id": repair, "properties": {"status": "closed"}},
        ]
        relations += [
            ("PLACED", ("User", user), ("Order", order)),
            ("CONTAINS", ("Order", order), ("Device", device)),
            ("HAS_REPAIR", ("Device", device), ("Repair", repair)),
            ("INSTANCE_OF", ("Device", device), ("Product", "p")),
        ]
        items.append(
            {
                "userId": user,
                "text": f"The screen of phone {device} was replaced under warranty.",
                "about": [{"type": "Device", "id": device}, {"type": "Order", "id": order}],
            }
        )
    made = [
        {"type": type_, "from": dict(zip(("type", "id"), start, strict=True)),
         "to": dict(zip(("type", "id"), end, strict=True))}
        for type_, start, end in relations
    ]  # fmt: skip
    await api.data(UPSERT, entities=entities, relations=made)
    await api.data(REMEMBER, items=items)


# each operation's key is looked up: that is the one round trip beside what is listed
KEY = Counter({"api_key": 1})


async def test_a_recall_is_one_search_a_kind_and_one_expansion(asked: Any) -> None:
    sent, searched, few = await asked(RECALL, "few")
    assert sent == KEY + Counter(
        {
            # what the user's things are called, then the answer itself
            "names": 1, "expansion": 1,
            # fields below: `about`; `links` and `conflictsWith`, each after a look at what may be
            # seen; then a relation a level
            "entities": 1, "memories": 2, "memory_links": 1, "lineage": 1, "related_backward": 2,
            "related_forward": 1,
        }
    )  # fmt: skip
    assert searched == Counter({"episodic": 1, "semantic": 1, "procedural": 1})
    again, searched_again, many = await asked(RECALL, "many")
    assert (again, searched_again) == (sent, searched)
    assert len(many["recall"]["entities"]) > len(few["recall"]["entities"]) > 3
    assert len(many["recall"]["memories"]) > len(few["recall"]["memories"]) > 0


async def test_nested_entities_are_one_statement_a_level(asked: Any) -> None:
    sent, searched, few = await asked(ENTITIES, "few")
    assert sent == KEY + Counter({"entities": 1, "related_forward": 4, "page_forward": 3})
    assert searched == Counter()
    again, _, many = await asked(ENTITIES, "many")
    assert again == sent
    sizes = [len(data["entity"]["ordersConnection"]["edges"]) for data in (few, many)]
    assert sizes == [1, 9]


async def test_a_page_of_memories_is_the_same_few_statements_at_any_size(asked: Any) -> None:
    sent, searched, few = await asked(MEMORIES, "few")
    assert sent == KEY + Counter(
        {
            "list_memories": 1, "count_memories": 1, "entities": 1,
            "memories": 2, "memory_links": 1, "lineage": 1,
        }
    )  # fmt: skip
    assert searched == Counter()
    again, _, many = await asked(MEMORIES, "many")
    assert again == sent
    assert [data["memories"]["totalCount"] for data in (few, many)] == [1, 9]
    # who does not ask how many there are does not pay for it
    uncounted, _, _ = await asked(MEMORIES.replace("totalCount", ""), "many")
    assert uncounted == sent - Counter({"count_memories": 1})


async def test_a_walk_is_one_statement_a_level_and_counts_are_one(asked: Any) -> None:
    for user, reached in (("few", 5), ("many", 29)):
        sent, searched, data = await asked(GRAPH, user)
        assert sent == KEY + Counter({"entities": 1, "neighbours": 3})
        assert searched == Counter()
        # the user, his orders, their devices and repairs, and the product of them all
        assert len(data["entityGraph"]["entities"]) == reached
        sent, _, _ = await asked(NODES, user)
        assert sent == KEY + Counter({"list_owned": 1, "counts": 1})
