"""Looking around over the API on real stores: connections, global ids, scope, typed errors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ecphoria.model import Role
from ecphoria_graphql.export import export_sdl
from ecphoria_graphql.node_ids import NodeRef, node_id
from ecphoria_schema.domain import load_domain

pytestmark = pytest.mark.asyncio(loop_scope="session")

OPERATIONS = Path(__file__).parents[2] / "graphql" / "operations"
UPSERT = """mutation ($entities: [EntityInput!]!, $relations: [RelationInput!]! = []) {
  upsertEntities(input: {entities: $entities, relations: $relations}) { relationsCreated } }"""
REMEMBER = """mutation ($items: [MemoryInput!]!) { rememberBatch(input: {items: $items}) {
  receipts { status id } } }"""
MEMORIES = """query ($userId: ID!, $filter: MemoryFilterInput, $first: Int! = 2, $after: String) {
  memories(userId: $userId, filter: $filter, first: $first, after: $after) {
    totalCount
    edges { cursor node { id nodeId about { id } } }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }"""
ENTITIES = """query ($userId: ID!, $type: EntityType!, $first: Int! = 2, $after: String) {
  entities(userId: $userId, type: $type, first: $first, after: $after) {
    totalCount edges { cursor node { __typename id nodeId } }
    pageInfo { hasNextPage endCursor } } }"""
TICKET = """query ($userId: ID!, $first: Int! = 2, $after: String) {
  entity(userId: $userId, type: Ticket, id: "u1-k") { ... on Ticket {
    concernsConnection(first: $first, after: $after) {
      edges { node { __typename id } } pageInfo { hasNextPage endCursor } } } } }"""
NODE = """query ($nodeId: ID!) { node(nodeId: $nodeId) { __typename nodeId
  ... on Memory { id text } ... on Device { id serial } } }"""


def operation(name: str) -> str:
    return (OPERATIONS / f"{name}.graphql").read_text(encoding="utf-8")


async def fill(api: Any, user: str = "u1") -> None:
    """Write a user with three orders, a device each, a ticket about all, and a memory each."""
    entities = [
        {"type": "User", "id": user, "properties": {"name": "张伟", "phone": "13800000001"}},
        {"type": "Ticket", "id": f"{user}-k", "properties": {"subject": "Late"}},
    ]
    relations = [("OPENED", ("User", user), ("Ticket", f"{user}-k"))]
    items = []
    for number in range(3):
        order, device = f"{user}-o{number}", f"{user}-d{number}"
        entities += [
            {"type": "Order", "id": order, "properties": {"status": "paid"}},
            {"type": "Device", "id": device, "properties": {"name": "X", "serial": f"S{device}"}},
        ]
        relations += [
            ("PLACED", ("User", user), ("Order", order)),
            ("CONTAINS", ("Order", order), ("Device", device)),
            ("CONCERNS", ("Ticket", f"{user}-k"), ("Order", order)),
            ("CONCERNS", ("Ticket", f"{user}-k"), ("Device", device)),
        ]
        items.append(
            {
                "id": f"{user}-m{number}",
                "userId": user,
                "text": f"Part number {number} of the device was replaced.",
                "about": [{"type": "Device", "id": device}],
                "occurredAt": f"2026-01-0{number + 1}T00:00:00Z",
                "source": "crm",
            }
        )
    made = [
        {"type": type_, "from": dict(zip(("type", "id"), start, strict=True)),
         "to": dict(zip(("type", "id"), end, strict=True))}
        for type_, start, end in relations
    ]  # fmt: skip
    await api.data(UPSERT, entities=entities, relations=made)
    receipts = (await api.data(REMEMBER, items=items))["rememberBatch"]["receipts"]
    assert {receipt["status"] for receipt in receipts} == {"CREATED"}


async def walked(api: Any, query: str, field: str, /, **variables: Any) -> list[dict[str, Any]]:
    """Return the nodes of all pages, each of which tells how long the list is."""
    nodes: list[dict[str, Any]] = []
    after = None
    while True:
        page = (await api.data(query, after=after, **variables))[field]
        nodes += [edge["node"] for edge in page["edges"]]
        assert page["pageInfo"]["endCursor"] == page["edges"][-1]["cursor"]
        if not page["pageInfo"]["hasNextPage"]:
            assert page["totalCount"] == len(nodes)
            return nodes
        after = page["pageInfo"]["endCursor"]


async def test_connections_lead_through_the_whole_lists(
    engine: Any, tenant: str, api_over: Any
) -> None:
    async with api_over(engine, tenant=tenant) as api:
        await fill(api)
        memories = await walked(api, MEMORIES, "memories", userId="u1")
        assert [node["id"] for node in memories] == ["u1-m2", "u1-m1", "u1-m0"]
        assert [node["about"] for node in memories] == [[{"id": f"u1-d{n}"}] for n in (2, 1, 0)]
        about = {"entity": {"type": "Device", "id": "u1-d1"}, "kinds": ["EPISODIC"]}
        found = (await api.data(MEMORIES, userId="u1", filter=about))["memories"]
        assert [edge["node"]["id"] for edge in found["edges"]] == ["u1-m1"]
        cursor = found["edges"][0]["cursor"]
        assert found["pageInfo"] == {
            "hasNextPage": False, "hasPreviousPage": False,
            "startCursor": cursor, "endCursor": cursor,
        }  # fmt: skip
        nobody = (await api.data(MEMORIES, userId="nobody"))["memories"]
        assert (nobody["edges"], nobody["totalCount"]) == ([], 0)
        assert nobody["pageInfo"]["endCursor"] is None

        devices = await walked(api, ENTITIES, "entities", userId="u1", type="Device")
        assert [node["id"] for node in devices] == ["u1-d0", "u1-d1", "u1-d2"]
        pages, after = [], None
        while True:
            ticket = (await api.data(TICKET, userId="u1", after=after))["entity"]
            page = ticket["concernsConnection"]
            pages.append([edge["node"]["id"] for edge in page["edges"]])
            if not page["pageInfo"]["hasNextPage"]:
                break
            after = page["pageInfo"]["endCursor"]
        assert pages == [["u1-d0", "u1-d1"], ["u1-d2", "u1-o0"], ["u1-o1", "u1-o2"]]


async def test_a_global_id_finds_the_thing_again_within_its_scope(
    engine: Any, tenant: str, api_over: Any
) -> None:
    async with api_over(engine, tenant=tenant) as api:
        await fill(api)
        memory = (await api.data(MEMORIES, userId="u1"))["memories"]["edges"][0]["node"]
        device = (await api.data(ENTITIES, userId="u1", type="Device"))["entities"]["edges"][0]
        again = (await api.data(NODE, nodeId=memory["nodeId"]))["node"]
        assert (again["__typename"], again["id"]) == ("Memory", memory["id"])
        again = (await api.data(NODE, nodeId=device["node"]["nodeId"]))["node"]
        assert again == {
            "__typename": "Device", "nodeId": device["node"]["nodeId"],
            "id": "u1-d0", "serial": "Su1-d0",
        }  # fmt: skip
        # what is not there, and what is another user's, are the same
        for ref in (
            NodeRef("Memory", "u1", "none"), NodeRef("Memory", "u2", memory["id"]),
            NodeRef("Device", "u1", "none"), NodeRef("Device", "u2", "u1-d0"),
        ):  # fmt: skip
            assert await api.data(NODE, nodeId=node_id(ref)) == {"node": None}
        for bad in ("", "u1-m0", memory["nodeId"][:-1], node_id(NodeRef("Phone", "u1", "x"))):
            error = await api.error(NODE, nodeId=bad)
            assert error["extensions"]["code"] == "INVALID_NODE_ID"
            assert error["extensions"]["path"] == ["nodeId"]
    async with api_over(engine, tenant=f"{tenant}-x") as other:
        assert await other.data(NODE, nodeId=memory["nodeId"]) == {"node": None}
    async with api_over(engine, tenant=tenant, users=["u2"]) as narrow:
        error = await narrow.error(NODE, nodeId=memory["nodeId"])
        assert error["extensions"]["code"] == "FORBIDDEN"


async def test_bad_arguments_are_typed_errors(engine: Any, tenant: str, api_over: Any) -> None:
    async with api_over(engine, tenant=tenant) as api:
        await fill(api)
        cursor = (await api.data(MEMORIES, userId="u1"))["memories"]["pageInfo"]["endCursor"]
        graph = operation("entity_graph")
        start = {"userId": "u1", "type": "Device", "id": "u1-d0"}
        for query, variables, code, path in (
            (MEMORIES, {"userId": "u1", "after": "x"}, "INVALID_CURSOR", ["after"]),
            (MEMORIES, {"userId": "u2", "after": cursor}, "INVALID_CURSOR", ["after"]),
            (ENTITIES, {"userId": "u1", "type": "Order", "after": cursor}, "INVALID_CURSOR",
             ["after"]),
            (TICKET, {"userId": "u1", "after": cursor}, "INVALID_CURSOR", ["after"]),
            (MEMORIES, {"userId": "u1", "first": 0}, "INVALID_INPUT", ["first"]),
            (MEMORIES, {"userId": "u1", "first": 201}, "INVALID_INPUT", ["first"]),
            (TICKET, {"userId": "u1", "first": 0}, "INVALID_INPUT", ["first"]),
            (MEMORIES, {"userId": "u1", "filter": {"statuses": ["FORGOTTEN"]}}, "INVALID_INPUT",
             ["filter", "statuses"]),
            (MEMORIES, {"userId": "u1", "filter": {"validAt": "2026-01-01T00:00:00"}},
             "INVALID_TIME", ["filter", "validAt"]),
            (MEMORIES, {"userId": "u1", "filter": {"entity": {"type": "Order", "id": ""}}},
             "INVALID_INPUT", ["filter", "entity", "id"]),
            (MEMORIES, {"userId": "*"}, "INVALID_SCOPE", None),
            (graph, {**start, "depth": 9}, "INVALID_INPUT", ["depth"]),
            (graph, {**start, "path": "payments", "type": "Ticket"}, "INVALID_INPUT", ["type"]),
            (graph, {**start, "id": "none"}, "NOT_FOUND", None),
            (graph, {**start, "userId": "u2"}, "NOT_FOUND", None),
        ):  # fmt: skip
            error = await api.error(query, **variables)
            assert (error["extensions"]["code"], error["extensions"].get("path")) == (code, path)
    async with api_over(engine, tenant=tenant, roles=(Role.AGENT,), users=["u2"]) as agent:
        for name, variables in (
            ("memories", {}), ("entities", {"type": "Order"}), ("conflicts", {}), ("stats", {}),
            ("entity_graph", start),
        ):  # fmt: skip
            error = await agent.error(operation(name), **({"userId": "u1"} | variables))
            assert error["extensions"]["code"] == "FORBIDDEN"
        error = await agent.error(operation("tenant_stats"))
        assert error["extensions"]["code"] == "FORBIDDEN"


async def test_the_shipped_operations_answer(engine: Any, tenant: str, api_over: Any) -> None:
    async with api_over(engine, tenant=tenant) as api:
        await fill(api)
        says = [
            {
                "id": id_,
                "userId": "u1",
                "source": source,
                "occurredAt": f"2026-0{month}-01T00:00:00Z",
                "facts": [
                    {
                        "entity": {"type": "Order", "id": "u1-o0"},
                        "attribute": "order.status",
                        "value": value,
                    }
                ],
            }
            for id_, source, value, month in (("a", "crm", "paid", 1), ("b", "ugc", "cancelled", 2))
        ]
        receipts = (await api.data(REMEMBER, items=says))["rememberBatch"]["receipts"]
        assert [receipt["status"] for receipt in receipts] == ["CREATED", "CONFLICT"]
        memories = (await api.data(operation("memories"), userId="u1"))["memories"]
        assert memories["edges"][0]["node"]["id"] == "b"
        entities = (await api.data(operation("entities"), userId="u1", type="Order"))["entities"]
        assert [edge["node"]["id"] for edge in entities["edges"]] == ["u1-o0", "u1-o1", "u1-o2"]
        node = entities["edges"][0]["node"]["nodeId"]
        assert (await api.data(operation("node"), nodeId=node))["node"]["id"] == "u1-o0"
        (conflict,) = (await api.data(operation("conflicts"), userId="u1"))["conflicts"]["edges"]
        assert conflict["node"]["attribute"] == "order.status"
        assert [one["value"] for one in conflict["node"]["memories"]] == ["paid", "cancelled"]
        graph = (
            await api.data(operation("entity_graph"), userId="u1", type="Order", id="u1-o0",
                           path="after_sales")
        )["entityGraph"]  # fmt: skip
        assert [entity["id"] for entity in graph["entities"]] == ["u1-o0", "u1-d0"]
        assert graph["relations"] == [
            {"type": "CONTAINS", "from": {"type": "Order", "id": "u1-o0"},
             "to": {"type": "Device", "id": "u1-d0"}}
        ]  # fmt: skip
        assert graph["truncated"] is False
        sources = (await api.data(operation("sources")))["sources"]
        assert {source["id"] for source in sources} >= {"crm", "ugc"}
        stats = (await api.data(operation("stats"), userId="u1"))["stats"]
        assert stats["memoryCount"] == 5
        assert {"type": "Device", "count": 3} in stats["entities"]
        assert (await api.data(operation("tenant_stats")))["tenantStats"]["memoryCount"] == 5
        me = (await api.data(operation("me")))["me"]
        assert (me["tenant"], me["roles"], me["everyUser"]) == (tenant, ["ADMIN"], True)
    async with api_over(engine, tenant=tenant, roles=(Role.OPERATOR,), users=["u2"]) as operator:
        me = (await operator.data(operation("me")))["me"]
        assert (me["roles"], me["users"], me["readablePrivacy"]) == (
            ["OPERATOR"], ["u2"], ["PUBLIC"],
        )  # fmt: skip


def privacy_in(sdl: str) -> set[tuple[str, str]]:
    return set(re.findall(r"^  (\w+): \w+ @privacy\(level: (\w+)\)$", sdl, re.MULTILINE))


async def test_a_property_that_is_not_public_says_so_in_the_schema(engine: Any) -> None:
    clinic = load_domain(Path(__file__).parents[1] / "domains" / "clinic.yaml")
    assert privacy_in(export_sdl(clinic)) == {
        ("birthDate", "INTERNAL"), ("allergies", "SENSITIVE"),
    }  # fmt: skip
    declared = {
        (name, prop.privacy.upper())
        for type_ in engine.domain.entities.values()
        for name, prop in type_.properties.items()
        if prop.privacy != "public"
    }
    found = {(re.sub(r"([A-Z])", r"_\1", name).lower(), level)
             for name, level in privacy_in(export_sdl(engine.domain))}  # fmt: skip
    # nothing is hidden without saying so, and the field is there for everybody, as null or a mask
    assert found == {pair for pair in declared if pair[0] != "name"}
    assert found
