"""GraphQL over HTTP, as its specification says: media types, status codes, methods, streams."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from ecphoria.governance.keys import revoke_key
from ecphoria.model import ChangeKind, MemoryChange, Role
from ecphoria_graphql.context import RECHECK_S
from ecphoria_graphql.negotiation import JSON, RESPONSE_JSON, accepted
from engines import check_index_equals_graph, settle

from .conftest import NOW, until_followed

pytestmark = pytest.mark.asyncio(loop_scope="session")

GOOD = '{ memory(userId: "u1", id: "m1") { id } }'
WRITE = 'mutation { remember(input: {text: "x", userId: "u1"}) { status } }'
FOLLOW = 'subscription { memoryChanged(userId: "u1") { kind memoryId } }'
EVENTS = "text/event-stream"


@pytest.mark.parametrize(
    ("header", "json_", "events", "first"),
    [
        (None, JSON, False, False),
        ("", JSON, False, False),
        ("*/*", JSON, False, False),
        ("application/*", JSON, False, False),
        ("application/json", JSON, False, False),
        ("Application/JSON; charset=UTF-8", JSON, False, False),
        ('application/json; charset="utf-8"', JSON, False, False),
        (RESPONSE_JSON, RESPONSE_JSON, False, False),
        (f"{RESPONSE_JSON}, application/json;q=0.9", RESPONSE_JSON, False, False),
        (f"application/json, {RESPONSE_JSON}", RESPONSE_JSON, False, False),
        (f"application/json, {RESPONSE_JSON};q=0.5", JSON, False, False),
        (f"{RESPONSE_JSON}, */*;q=0.1", RESPONSE_JSON, False, False),
        (f"{RESPONSE_JSON};q=0, */*", JSON, False, False),
        ("text/html, */*;q=0.8", JSON, False, False),
        ("text/html", None, False, False),
        ("application/json;q=0", None, False, False),
        ("application/json;q=oops", None, False, False),
        ("application/json; charset=iso-8859-1", None, False, False),
        ("multipart/mixed", None, False, False),
        (EVENTS, None, True, True),
        (f"{EVENTS}, */*", JSON, True, False),
        (f"{EVENTS}, application/json;q=0.5", JSON, True, True),
        (f"{RESPONSE_JSON}, application/json, {EVENTS}, multipart/mixed", RESPONSE_JSON, True,
         False),
        (",,;;q=1,", None, False, False),
    ],
)  # fmt: skip
async def test_what_a_client_takes(
    header: str | None, json_: str | None, events: Any, first: Any
) -> None:
    found = accepted(header)
    assert (found.json, found.events, found.events_first) == (json_, events, first)


async def post(api: Any, query: Any, accept: str = RESPONSE_JSON, **more: Any) -> httpx.Response:
    response: httpx.Response = await api.http.post(
        "/graphql", json={"query": query, **more}, headers={"Accept": accept}
    )
    return response


@pytest.mark.parametrize(
    ("query", "more", "status", "code", "has_data"),
    [
        (GOOD, {}, 200, None, True),
        # part of it failed: the answer is whole all the same
        ('{ memory(userId: "u1", id: "none") { id } }', {}, 200, "NOT_FOUND", True),
        ("{", {}, 400, "GRAPHQL_PARSE_FAILED", False),
        ("{ nothing }", {}, 400, "GRAPHQL_VALIDATION_FAILED", False),
        ("query ($a: Int!) { __typename }", {"variables": {"a": "x"}}, 400, None, False),
        (
            "query ($u: ID!, $i: ID!) { memory(userId: $u, id: $i) { id } }",
            {"variables": {"u": [1], "i": "m1"}},
            400,
            "BAD_USER_INPUT",
            False,
        ),
        ("query A { __typename } query B { __typename }", {}, 400, "BAD_REQUEST", False),
        ("query A { __typename }", {"operationName": "B"}, 400, "BAD_REQUEST", False),
        ("{ " + "__typename " * 5000 + "}", {}, 400, "QUERY_TOO_COMPLEX", False),
    ],
)
async def test_status_codes_of_the_new_media_type(
    shop: Any, api_over: Any, query: str, more: Any, status: int, code: str, has_data: Any
) -> None:
    async with api_over(shop) as api:
        response = await post(api, query, **more)
        assert response.headers["content-type"] == f"{RESPONSE_JSON}; charset=utf-8"
        assert response.status_code == status, response.text
        body = response.json()
        assert ("data" in body) is has_data
        if code is not None:
            assert body["errors"][0]["extensions"]["code"] == code
        # clients that do not know it get 200 for every answer, unless it is no GraphQL request
        old = await post(api, query, JSON, **more)
        assert old.headers["content-type"] == JSON
        assert old.status_code == (400 if code == "BAD_REQUEST" else 200)
        assert old.json().get("data") == body.get("data")


@pytest.mark.parametrize("accept", ["text/html;q=0, text/plain", "image/png", "multipart/mixed"])
async def test_what_nobody_can_send_is_406(shop: Any, api_over: Any, accept: str) -> None:
    async with api_over(shop) as api:
        response = await post(api, WRITE, accept)
    assert response.status_code == 406
    assert response.json()["errors"][0]["extensions"]["code"] == "BAD_REQUEST"
    assert shop.written == []


@pytest.mark.parametrize(
    ("type_", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("APPLICATION/JSON;charset=UTF-8", 200),
        ("application/json; charset=latin-1", 415),
        ("text/plain", 415),
        ("application/graphql", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
        ("text/json, application/json", 415),
        (None, 415),
    ],
)
async def test_only_json_is_read(shop: Any, api_over: Any, type_: str | None, status: int) -> None:
    async with api_over(shop) as api:
        request = api.http.build_request("POST", "/graphql", content=json.dumps({"query": GOOD}))
        if type_ is not None:
            request.headers["Content-Type"] = type_
        response = await api.http.send(request)
    assert response.status_code == status


@pytest.mark.parametrize("accept", [JSON, RESPONSE_JSON])
async def test_batching_is_off(shop: Any, api_over: Any, accept: str) -> None:
    async with api_over(shop) as api:
        response = await api.http.post(
            "/graphql", json=[{"query": WRITE}] * 2, headers={"Accept": accept}
        )
    assert response.status_code == 400
    assert response.headers["content-type"].startswith(accept)
    assert "batching is off" in response.json()["errors"][0]["message"]
    assert shop.written == []


async def test_get_is_for_queries_only(shop: Any, api_over: Any) -> None:
    query = 'query ($id: ID!) { memory(userId: "u1", id: $id) { id } }'
    async with api_over(shop) as api:
        params = {"query": query, "variables": '{"id": "m1"}'}
        good = await api.http.get("/graphql", params=params)
        assert good.json() == {"data": {"memory": {"id": "m1"}}}
        both = f"query A {GOOD} {WRITE.replace('mutation', 'mutation B')}"
        named = await api.http.get("/graphql", params={"query": both, "operationName": "A"})
        assert named.status_code == 200
        for accept in (JSON, RESPONSE_JSON, EVENTS, "*/*"):
            for params in ({"query": WRITE}, {"query": both, "operationName": "B"}):
                bad = await api.http.get("/graphql", params=params, headers={"Accept": accept})
                assert (bad.status_code, bad.headers["allow"]) == (405, "POST")
        for params in (
            {"query": query, "variables": "{"}, {"query": query, "variables": "[1]"},
            {"query": query, "variables": "5"}, {}, {"variables": "{}"},
        ):  # fmt: skip
            assert (await api.http.get("/graphql", params=params)).status_code == 400, params
    assert shop.written == []


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
async def test_other_methods_are_405(shop: Any, api_over: Any, method: str) -> None:
    async with api_over(shop) as api:
        response = await api.http.request(method, "/graphql", json={"query": GOOD})
    assert response.status_code == 405


async def test_refusals_come_in_the_media_type_asked_for(shop: Any, api_over: Any) -> None:
    async with api_over(shop, anonymous=True) as api:
        response = await post(api, GOOD)
    assert response.status_code == 401
    assert response.headers["content-type"].startswith(RESPONSE_JSON)
    assert response.headers["www-authenticate"] == "Bearer"


# --- streams of events ---------------------------------------------------------------------


async def events(response: httpx.Response) -> Any:
    """Yield (event, data) as an EventSource reads them."""
    event, data = "", ""
    async for line in response.aiter_lines():
        if line.startswith("event: "):
            event = line.removeprefix("event: ")
        elif line.startswith("data: "):
            data = line.removeprefix("data: ")
        elif not line and event:
            yield event, json.loads(data) if data else None
            event, data = "", ""


def change(memory_id: str = "m1") -> MemoryChange:
    return MemoryChange(ChangeKind.CREATED, "t", "u1", memory_id, NOW)


async def client(server: Any, key: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=server.url,
        headers={"Authorization": f"Bearer {key}"},
        timeout=60,
        trust_env=False,
    )


@pytest.mark.parametrize("method", ["POST", "GET"])
@pytest.mark.parametrize("accept", [EVENTS, f"{RESPONSE_JSON}, {JSON}, {EVENTS}"])
async def test_a_subscription_over_events(
    shop: Any, new_key: Any, server_over: Any, method: str, accept: str
) -> None:
    key = await new_key(shop, "t", Role.AGENT)
    async with server_over(shop) as server, await client(server, key) as http:
        body: dict[str, Any] = (
            {"json": {"query": FOLLOW}} if method == "POST" else {"params": {"query": FOLLOW}}
        )
        async with http.stream(method, "/graphql", headers={"Accept": accept}, **body) as response:
            assert response.status_code == 200
            assert response.headers["content-type"].startswith(EVENTS)
            await until_followed(shop, "t", "u1")
            found = events(response)
            for id_ in ("m1", "m2"):
                shop.changes.publish([change(id_)])
                event, data = await anext(found)
                assert event == "next"
                assert data["data"]["memoryChanged"] == {"kind": "CREATED", "memoryId": id_}
            # a key that is revoked ends it
            await revoke_key(shop.graph, shop.clock, tenant="t", key_id=key.split("_")[1])
            shop.clock.moment = shop.clock.moment.replace(second=int(RECHECK_S) + 1)
            shop.changes.publish([change()])
            event, data = await anext(found)
            assert data["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"
            assert await anext(found) == ("complete", None)
    assert not shop.changes._listeners


async def test_a_client_that_leaves_is_followed_no_more(
    shop: Any, new_key: Any, server_over: Any
) -> None:
    key = await new_key(shop, "t", Role.AGENT)
    async with server_over(shop) as server, await client(server, key) as http:
        async with http.stream(
            "POST", "/graphql", json={"query": FOLLOW}, headers={"Accept": EVENTS}
        ):
            await until_followed(shop, "t", "u1")
        await until_followed(shop, "t", "u1", 0)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        (GOOD, None),
        ("{ nothing }", "GRAPHQL_VALIDATION_FAILED"),
        ('subscription { memoryChanged(userId: "*") { kind } }', "INVALID_SCOPE"),
        ("{", "GRAPHQL_PARSE_FAILED"),
    ],
)
async def test_anything_else_over_events_is_one_result(
    shop: Any, api_over: Any, query: str, code: str | None
) -> None:
    async with api_over(shop) as api:
        response = await post(api, query, EVENTS)
        assert response.headers["content-type"].startswith(EVENTS)
        found = [item async for item in events(response)]
    assert [event for event, _ in found] == ["next", "complete"]
    errors = found[0][1].get("errors", [])
    assert [error["extensions"]["code"] for error in errors] == ([code] if code else [])


async def test_a_query_of_who_takes_both_is_one_answer(shop: Any, api_over: Any) -> None:
    async with api_over(shop) as api:
        response = await post(api, GOOD, f"{JSON}, {EVENTS}")
    assert response.headers["content-type"] == JSON
    assert response.json() == {"data": {"memory": {"id": "m1"}}}


# --- time and how much at once -------------------------------------------------------------


class Stuck:
    """A verb that never ends, and tells when it began and that it was stopped."""

    def __init__(self, shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = asyncio.Semaphore(0)
        self.stopped = 0
        monkeypatch.setattr(shop, "memory", self._memory)

    async def _memory(self, *_: Any) -> Any:
        self.begun.release()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped += 1


@pytest.mark.parametrize("accept", [JSON, RESPONSE_JSON])
async def test_an_operation_that_takes_too_long_is_stopped(
    shop: Any, api_over: Any, monkeypatch: pytest.MonkeyPatch, accept: str
) -> None:
    shop.settings = shop.settings.model_copy(update={"operation_timeout_s": 0.05})
    stuck = Stuck(shop, monkeypatch)
    async with api_over(shop) as api:
        response = await post(api, GOOD, accept)
        streamed = await post(api, GOOD, EVENTS)
        found = [item async for item in events(streamed)]
    assert response.status_code == 503
    (error,) = response.json()["errors"]
    assert error["extensions"]["code"] == "OPERATION_TIMEOUT"
    assert "0.05 seconds" in error["message"]
    assert error["extensions"]["retryable"] is True
    assert found[0][1]["errors"][0]["extensions"]["code"] == "OPERATION_TIMEOUT"
    assert stuck.stopped == 2


@pytest.mark.parametrize("seconds", [0.001, 0.03, 0.2])
async def test_a_write_that_is_stopped_leaves_nothing_half_done(
    engine: Any, tenant: str, api_over: Any, seconds: float
) -> None:
    """Wherever it was stopped: graph and index agree once the reconciler has been there."""
    settings = engine.settings.model_copy(update={"operation_timeout_s": seconds})
    items = [{"userId": "u1", "text": f"Parcel {number} came late"} for number in range(20)]
    query = """mutation ($items: [MemoryInput!]!) {
      rememberBatch(input: {items: $items}) { receipts { status } } }"""
    async with api_over(replace(engine, settings=settings), tenant=tenant) as api:
        hasty = await post(api, query, variables={"items": items})
        assert hasty.status_code in {200, 503}, hasty.text
    async with api_over(engine, tenant=tenant) as api:
        again = (await api.data(query, items=items))["rememberBatch"]["receipts"]
    # nothing is there twice, and nothing is lost
    assert {item["status"] for item in again} <= {"CREATED", "DUPLICATE"}
    await settle(engine, tenant)
    assert len(await check_index_equals_graph(engine, tenant)) == len(items)


async def test_a_timeout_of_the_engines_own_is_no_timeout_of_the_operation(
    shop: Any, api_over: Any
) -> None:
    shop.failure = TimeoutError("inside")
    async with api_over(shop) as api:
        error = await api.error(GOOD)
    assert error["extensions"]["code"] == "INTERNAL_ERROR"


async def test_a_key_has_so_much_under_way_at_once(
    shop: Any, api_over: Any, new_key: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.settings = shop.settings.model_copy(update={"max_operations_per_key": 2})
    stuck = Stuck(shop, monkeypatch)
    other = await new_key(shop, "t", Role.AGENT)
    async with api_over(shop) as api:
        waiting = [asyncio.create_task(post(api, GOOD)) for _ in range(2)]
        for _ in waiting:
            await stuck.begun.acquire()
        refused = await post(api, GOOD)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        (error,) = refused.json()["errors"]
        assert error["extensions"]["code"] == "TOO_MANY_OPERATIONS"
        assert "2 operations" in error["message"]
        # another key is not held up
        query = {"query": "{ __typename }"}
        fine = await api.http.post(
            "/graphql", json=query, headers={"Authorization": f"Bearer {other}"}
        )
        assert fine.status_code == 200
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        again = await api.data("{ __typename }")
    assert again == {"__typename": "Query"}


async def test_a_key_has_so_many_subscriptions_over_all_connections(
    shop: Any, new_key: Any, server_over: Any
) -> None:
    shop.settings = shop.settings.model_copy(update={"max_subscriptions_per_key": 2})
    key = await new_key(shop, "t", Role.AGENT)
    async with server_over(shop) as server, server.connect(key) as one, server.connect(key) as two:
        for live in (one, two):
            await live.begin()
            await live.subscribe("1", FOLLOW)
        await until_followed(shop, "t", "u1", 2)
        await two.subscribe("2", FOLLOW)
        error = await two.error("2")
        assert error["extensions"]["code"] == "TOO_MANY_OPERATIONS"
        assert "2 subscriptions" in error["message"]
        await one.send("complete", id="1")
        await until_followed(shop, "t", "u1", 1)
        await two.subscribe("3", FOLLOW)
        await until_followed(shop, "t", "u1", 2)


async def test_a_key_that_asks_too_often_is_told_to_wait(
    shop: Any, api_over: Any, new_key: Any
) -> None:
    shop.settings = shop.settings.model_copy(update={"rate_per_minute": 3})
    other = await new_key(shop, "t", Role.AGENT)
    async with api_over(shop) as api:
        for _ in range(3):
            assert (await post(api, GOOD)).status_code == 200
        for accept in (JSON, RESPONSE_JSON):
            refused = await post(api, GOOD, accept)
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "20")
            (error,) = refused.json()["errors"]
            assert error["extensions"]["code"] == "RATE_LIMITED"
            assert error["extensions"]["retryable"] is True
        fine = await api.http.post(
            "/graphql", json={"query": GOOD}, headers={"Authorization": f"Bearer {other}"}
        )
        assert fine.status_code == 200
        shop.clock.moment = shop.clock.moment.replace(second=20)
        assert (await post(api, GOOD)).status_code == 200
    assert shop.calls["memory"] == 5


async def test_the_rate_counts_over_a_websocket_too(
    shop: Any, new_key: Any, server_over: Any
) -> None:
    shop.settings = shop.settings.model_copy(update={"rate_per_minute": 1})
    key = await new_key(shop, "t", Role.AGENT)
    async with server_over(shop) as server, server.connect(key) as live:
        await live.begin()
        await live.subscribe("1", GOOD)
        assert (await live.next("1"))["memory"] == {"id": "m1"}
        assert await live.receive() == {"type": "complete", "id": "1"}
        await live.subscribe("2", GOOD)
        assert (await live.error("2"))["extensions"]["code"] == "RATE_LIMITED"
