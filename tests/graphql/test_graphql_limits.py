"""How much one request may ask for."""

from __future__ import annotations

import asyncio
import functools
import itertools
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from graphql import (
    FragmentDefinitionNode,
    OperationDefinitionNode,
    get_introspection_query,
    parse,
    validate,
)

from ecphoria_graphql import limits
from ecphoria_graphql.app import create_app_for
from ecphoria_graphql.cost import Cost
from ecphoria_graphql.schema import build_schema
from ecphoria_graphql.server import running_server
from ecphoria_schema.domain import shipped_domain

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.asyncio(loop_scope="session")

MEMORY = 'memory(userId: "u1", id: "m1") { id }'


async def complexity_error(api: Any, query: str) -> str:
    started = time.perf_counter()
    body = await api.send(query)
    assert time.perf_counter() - started < 5
    assert "data" not in body or body["data"] is None
    assert "QUERY_TOO_COMPLEX" in {error["extensions"]["code"] for error in body["errors"]}, body
    message: str = body["errors"][0]["message"]
    return message


async def test_depth(shop: Any, api_over: Any) -> None:
    deep = '{ entity(userId: "u1", type: User, id: "u1") { ... on User { %s } } }'
    fits = "orders(limit: 1) { user { " * 5 + "id" + " } }" * 5
    async with api_over(shop) as api:
        assert await api.data(deep % fits)
        message = await complexity_error(api, deep % ("orders { user { " * 8 + "id" + " } }" * 8))
        assert str(limits.MAX_DEPTH) in message
        await complexity_error(api, deep % ("orders { user { " * 400 + "id" + " } }" * 400))
    assert limits.MAX_DEPTH == 12


async def test_nesting_that_no_parser_survives(shop: Any, api_over: Any) -> None:
    async with api_over(shop) as api:
        for query in ("{a" * 50_000, "{a(b:" + "[" * 50_000, "query($a:" + "[" * 50_000):
            await complexity_error(api, query)


async def test_aliases(shop: Any, api_over: Any) -> None:
    def many(count: int) -> str:
        return "{ " + " ".join(f"a{number}: {MEMORY}" for number in range(count)) + " }"

    async with api_over(shop) as api:
        assert len(await api.data(many(limits.MAX_ROOT_FIELDS))) == limits.MAX_ROOT_FIELDS
        await complexity_error(api, many(limits.MAX_ROOT_FIELDS + 1))
        assert "aliases" in await complexity_error(
            api,
            '{ entity(userId: "u1", type: User, id: "u1") { '
            + " ".join(f"a{number}: id" for number in range(limits.MAX_ALIASES + 1))
            + " } }",
        )
    assert shop.calls["memory"] == limits.MAX_ROOT_FIELDS


async def test_aliases_hidden_in_fragments(shop: Any, api_over: Any) -> None:
    query = (
        '{ entity(userId: "u1", type: User, id: "u1") { ...f ... on User { orders { ...f } } } }'
        " fragment f on Entity { "
        + " ".join(f"a{number}: id" for number in range(limits.MAX_ALIASES // 2 + 1))
        + " }"
    )
    async with api_over(shop) as api:
        await complexity_error(api, query)


async def test_fragments_that_multiply(shop: Any, api_over: Any) -> None:
    spreads = " ".join(
        f"fragment f{number} on Query {{ ...f{number + 1} ...f{number + 1} }}"
        for number in range(150)
    )
    query = f"{{ ...f0 }} {spreads} fragment f150 on Query {{ {MEMORY} }}"
    async with api_over(shop) as api:
        await complexity_error(api, query)
    assert shop.calls["memory"] == 0


async def test_fields(shop: Any, api_over: Any) -> None:
    spreads = " ".join(
        f"fragment f{number} on User {{ ...f{after} orders {{ user {{ ...f{after} }} }} }}"
        for number, after in itertools.pairwise(range(5))
    )
    many = " ".join(["id"] * 200)
    query = (
        f'{{ entity(userId: "u1", type: User, id: "u1") {{ ...f0 }} }} {spreads}'
        f" fragment f4 on User {{ {many} }}"
    )
    async with api_over(shop) as api:
        assert str(limits.MAX_FIELDS) in await complexity_error(api, query)


async def test_cycles_of_fragments(shop: Any, api_over: Any) -> None:
    async with api_over(shop) as api:
        body = await api.send("{ ...a } fragment a on Query { ...b } fragment b on Query { ...a }")
    assert {error["extensions"]["code"] for error in body["errors"]} == {
        "GRAPHQL_VALIDATION_FAILED"
    }


async def test_tokens(shop: Any, api_over: Any) -> None:
    async with api_over(shop) as api:
        message = await complexity_error(api, "{ " + "__typename " * 5000 + "}")
    assert str(limits.MAX_TOKENS) in message


async def test_introspection_fits(shop: Any, api_over: Any) -> None:
    async with api_over(shop) as api:
        assert (await api.data(get_introspection_query()))["__schema"]


# --- size of the body ----------------------------------------------------------------------


@pytest.fixture
async def url(shop: Any) -> AsyncIterator[str]:
    async with running_server(create_app_for(shop)) as base:
        yield base


async def in_chunks(size: int) -> AsyncIterator[bytes]:
    yield b'{"query": "'
    for _ in range(size // 65_536):
        yield b"x" * 65_536
        await asyncio.sleep(0)
    yield b'"}'


@pytest.mark.parametrize("how", ["whole", "chunked"])
async def test_ten_megabytes_are_refused(shop: Any, url: str, new_key: Any, how: str) -> None:
    key = await new_key(shop, "t")
    size = 10 * 1024 * 1024
    content: Any = b"x" * size if how == "whole" else in_chunks(size)
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=30) as http:
        response = await http.post(
            "/graphql",
            content=content,
            headers={"X-API-Key": key, "Content-Type": "application/json"},
        )
        assert ("content-length" in response.request.headers) is (how == "whole")
        assert response.status_code == 413
        (error,) = response.json()["errors"]
        assert error["extensions"]["code"] == "REQUEST_TOO_LARGE"
        assert str(shop.settings.max_request_bytes) in error["message"]
        # and the server goes on
        assert (await http.get("/healthz")).status_code == 200


async def test_length_that_lies(url: str) -> None:
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        b"POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: 99999999999\r\nConnection: close\r\n\r\n"
    )
    writer.write_eof()
    answer = await asyncio.wait_for(reader.read(), 15)
    writer.close()
    assert answer == b"" or b" 413 " in answer or b" 400 " in answer


async def test_the_limit_itself_fits(shop: Any, api_over: Any) -> None:
    limit = shop.settings.max_request_bytes
    query = '{"query": "{ __typename }"}'
    async with api_over(shop) as api:
        headers = {"Content-Type": "application/json"}
        good = await api.http.post("/graphql", content=query.ljust(limit), headers=headers)
        bad = await api.http.post("/graphql", content=query.ljust(limit + 1), headers=headers)
    assert good.json() == {"data": {"__typename": "Query"}}
    assert bad.status_code == 413


async def test_large_batches_are_refused_whole(shop: Any, api_over: Any) -> None:
    query = """mutation ($items: [MemoryInput!]!) {
      rememberBatch(input: {items: $items}) {
        receipts { status } error { code message path } } }"""
    items = [{"text": "x", "userId": "u1"}] * (shop.settings.max_batch + 1)
    async with api_over(shop) as api:
        fault = await api.fault(query, items=items)
    assert fault["code"] == "BATCH_TOO_LARGE"
    assert fault["path"] == ["input", "items"]
    assert str(shop.settings.max_batch) in fault["message"]
    assert shop.written == []


# --- cost by the sizes of lists ------------------------------------------------------------


@functools.cache
def _core() -> Any:
    return build_schema(shipped_domain())._schema


def _cost(query: str, **variables: Any) -> int:
    document = parse(query)
    schema = _core()
    assert validate(schema, document) == []
    operations = [
        node for node in document.definitions if isinstance(node, OperationDefinitionNode)
    ]
    fragments = {
        node.name.value: node
        for node in document.definitions
        if isinstance(node, FragmentDefinitionNode)
    }
    return Cost(schema, variables, fragments).of(operations[0])


ORDERS = "fragment f on User { orders(limit: 2) { devices(limit: 2) { id } } }"
ASKED = '{question: "x", userId: "u1", limit: 50}'
USER = 'entity(userId: "u1", type: User, id: "u1")'


@pytest.mark.parametrize(
    ("query", "variables", "cost"),
    [
        ("{ __typename }", {}, 0),
        (f"{{ {USER} {{ id name }} }}", {}, 1),
        (f"{{ {USER} {{ ... on User {{ orders {{ id }} }} }} }}", {}, 1 + 20),
        (f"{{ {USER} {{ ... on User {{ orders(limit: 5) {{ id }} }} }} }}", {}, 1 + 5),
        (
            f"{{ {USER} {{ ... on User {{ orders(limit: 5) {{ devices(limit: 3) {{ id }}}} }} }}}}",
            {},
            1 + 5 * (1 + 3),
        ),
        (
            f"query ($n: Int!) {{ {USER} {{ ... on User {{ orders(limit: $n) {{ id }} }} }} }}",
            {"n": 7},
            1 + 7,
        ),
        (
            f"query ($n: Int! = 9) {{ {USER} {{ ... on User {{ orders(limit: $n) {{ id }} }} }} }}",
            {},
            1 + 9,
        ),
        (
            f"{{ {USER} {{ ...f ...f }} }} {ORDERS}",
            {},
            1 + 2 * (2 * (1 + 2)),
        ),
        # a size that is refused later counts as the greatest
        (f"{{ {USER} {{ ... on User {{ orders(limit: 2000000) {{ id }} }} }} }}", {}, 1_001),
        (f"{{ {USER} {{ ... on User {{ orders(limit: -5) {{ id }} }} }} }}", {}, 1 + 1),
        (
            f"{{ recall(input: {ASKED}) {{ topics memories {{ memory {{ id }} }} }} }}",
            {},
            1 + 50 * (1 + 1),
        ),
        (
            "query ($in: RecallInput!) { recall(input: $in) { entities { id } } }",
            {"in": {"question": "x", "userId": "u1", "entityLimit": 100}},
            1 + 100,
        ),
    ],
)
async def test_what_an_operation_costs(query: str, variables: Any, cost: int) -> None:
    assert _cost(query, **variables) == cost


async def test_cost_is_limited_and_told(shop: Any, api_over: Any) -> None:
    deep = "orders { user { " * 4 + "id" + " } }" * 4
    query = f"{{ {USER} {{ ... on User {{ {deep} }} }} }}"
    async with api_over(shop) as api:
        message = await complexity_error(api, query)
        assert str(shop.settings.max_operation_cost) in message
        assert str(_cost(query)) in message
        assert shop.calls["entities"] == 0
        assert await api.data(query.replace("orders", "orders(limit: 2)"))


async def test_the_design_query_and_the_shipped_operations_fit(shop: Any) -> None:
    from pathlib import Path  # noqa: PLC0415

    for file in (Path(__file__).parents[2] / "graphql" / "operations").glob("*.graphql"):
        assert _cost(file.read_text("utf-8")) <= shop.settings.max_operation_cost / 5, file.name


async def test_fragments_that_multiply_nothing_are_added_up_at_once() -> None:
    spreads = " ".join(
        f"fragment f{number} on Query {{ ...f{number + 1} ...f{number + 1} }}"
        for number in range(150)
    )
    query = f"{{ ...f0 }} {spreads} fragment f150 on Query {{ __typename }}"
    assert _cost(query) == 0
