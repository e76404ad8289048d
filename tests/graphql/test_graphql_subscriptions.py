"""Following changes over a websocket: who may, what comes, how it ends."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from websockets.exceptions import InvalidStatus

from ecphoria.clock import Clock
from ecphoria.errors import StoreUnavailable
from ecphoria.governance.keys import revoke_key
from ecphoria.model import ChangeKind, MemoryChange, Role
from ecphoria_graphql import app as app_module
from ecphoria_graphql import limits, sockets
from ecphoria_graphql.app import create_app_for
from ecphoria_graphql.context import RECHECK_S
from ecphoria_graphql.server import running_server

from .conftest import NOW, Server, until_followed

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.asyncio(loop_scope="session")

FOLLOW = """subscription ($userId: ID!) { memoryChanged(userId: $userId) {
  kind memoryId userId at memory { id text status } } }"""
MEMORY = """query ($userId: ID!, $id: ID!) { memory(userId: $userId, id: $id) { text } }"""


def change(
    kind: ChangeKind = ChangeKind.CREATED, memory_id: str = "m1", user: str | None = "u1"
) -> MemoryChange:
    return MemoryChange(kind, "t", user, memory_id, NOW)


# --- who may -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "payload",
    [
        lambda key: {"Authorization": f"Bearer {key}"},
        lambda key: {"authorization": f"bearer {key}"},
        lambda key: {"X-API-Key": key},
        lambda key: {"x-api-key": key, "Authorization": f"Bearer {key}", "else": [1]},
    ],
)
async def test_the_key_comes_with_the_connection(
    shop: Any, new_key: Any, server_over: Any, payload: Callable[[str], dict[str, Any]]
) -> None:
    key = await new_key(shop, "t", Role.AGENT)
    async with server_over(shop) as server, server.connect() as live:
        await live.begin(**payload(key))
        await live.subscribe("1", FOLLOW, userId="u1")
        await until_followed(shop, "t", "u1")
        shop.changes.publish([change()])
        assert (await live.next("1"))["memoryChanged"] == {
            "kind": "CREATED",
            "memoryId": "m1",
            "userId": "u1",
            "at": "2025-06-15T08:00:00.250Z",
            "memory": {"id": "m1", "text": "The screen was replaced", "status": "ACTIVE"},
        }


async def test_the_key_comes_in_a_header(shop: Any, new_key: Any, server_over: Any) -> None:
    key = await new_key(shop, "t", Role.AGENT)
    async with server_over(shop) as server:
        async with server.connect(key) as live:
            await live.begin()
            await live.subscribe("1", FOLLOW, userId="u1")
            await until_followed(shop, "t", "u1")
        async with server.connect(**{"X-API-Key": key}) as live:
            await live.begin()


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer nonsense"},
        {"Authorization": None},
        {"Authorization": {"Bearer": "x"}},
        {"X-API-Key": ["x"]},
        {"X-API-Key": f"ecph_{'0' * 16}_{'A' * 43}"},
    ],
)
async def test_a_connection_without_a_good_key_is_closed(
    shop: Any, server_over: Any, payload: dict[str, Any]
) -> None:
    async with server_over(shop) as server, server.connect() as live:
        await live.send("connection_init", payload=payload)
        assert await live.closed() == (
            sockets.UNAUTHORIZED,
            "UNAUTHENTICATED: the API key is missing or not valid",
        )


async def test_two_keys_are_no_key(shop: Any, new_key: Any, server_over: Any) -> None:
    one, two = [await new_key(shop, "t", Role.AGENT) for _ in range(2)]
    async with server_over(shop) as server, server.connect(one) as live:
        await live.send("connection_init", payload={"X-API-Key": two})
        code, reason = await live.closed()
    assert code == sockets.UNAUTHORIZED
    assert "several API keys" in (reason or "")


async def test_keys_that_cannot_be_looked_up_are_worth_another_try(
    shop: Any, new_key: Any, server_over: Any
) -> None:
    key = await new_key(shop, "t", Role.AGENT)
    async with server_over(shop) as server:
        shop.graph.failure = StoreUnavailable("the graph store does not answer; " + "很忙" * 100)
        async with server.connect(key) as live:
            await live.send("connection_init")
            code, reason = await live.closed()
            assert code == sockets.TRY_AGAIN
            assert (reason or "").startswith("STORE_UNAVAILABLE: the graph store does not answer")
        shop.graph.failure = None
        async with server.connect(key) as live:
            await live.begin()
            shop.graph.failure = StoreUnavailable("the graph store does not answer")
            await live.subscribe("1", FOLLOW, userId="u1")
            error = await live.error("1")
            assert error["extensions"]["code"] == "STORE_UNAVAILABLE"
            assert error["extensions"]["retryable"] is True


async def test_nothing_is_answered_before_the_key_was_seen(shop: Any, server_over: Any) -> None:
    async with server_over(shop) as server, server.connect() as live:
        await live.subscribe("1", FOLLOW, userId="u1")
        assert (await live.closed())[0] == 4401
    assert not shop.changes._listeners


@pytest.mark.parametrize(
    ("roles", "users", "user", "code"),
    [
        ((Role.OPERATOR,), None, "u1", "FORBIDDEN"),
        ((Role.AGENT,), ["u2"], "u1", "FORBIDDEN"),
        ((Role.ADMIN,), None, "*", "INVALID_SCOPE"),
        ((Role.ADMIN,), None, "", "INVALID_SCOPE"),
        ((Role.ADMIN,), None, "%", "INVALID_SCOPE"),
    ],
)
async def test_what_is_not_allowed_is_said_at_once(
    shop: Any, new_key: Any, server_over: Any, roles: Any, users: Any, user: str, code: str
) -> None:
    key = await new_key(shop, "t", *roles, **({"users": users} if users else {}))
    async with server_over(shop) as server, server.connect(key) as live:
        await live.begin()
        await live.subscribe("1", FOLLOW, userId=user)
        assert (await live.error("1"))["extensions"]["code"] == code
        # the connection stays good for what is allowed
        await live.send("ping")
        assert await live.receive() == {"type": "pong"}
    assert not shop.changes._listeners


async def test_a_key_that_is_revoked_or_expires_ends_what_it_began(
    shop: Any, new_key: Any, server_over: Any
) -> None:
    lasting = await new_key(shop, "t", Role.AGENT)
    brief = await new_key(shop, "t", Role.AGENT, lifetime=timedelta(seconds=RECHECK_S))
    async with (
        server_over(shop) as server,
        server.connect(lasting) as live,
        server.connect(brief) as short,
    ):
        for each in (live, short):
            await each.begin()
            await each.subscribe("1", FOLLOW, userId="u1")
        await until_followed(shop, "t", "u1", 2)
        shop.clock.moment += timedelta(seconds=RECHECK_S)
        shop.changes.publish([change()])
        assert (await live.next("1"))["memoryChanged"]["memoryId"] == "m1"
        await _ends_unauthenticated(short, "1")
        await revoke_key(shop.graph, shop.clock, tenant="t", key_id=lasting.split("_")[1])
        shop.clock.moment += timedelta(seconds=RECHECK_S)
        shop.changes.publish([change()])
        await _ends_unauthenticated(live, "1")
        await live.subscribe("2", FOLLOW, userId="u1")
        assert (await live.error("2"))["extensions"]["code"] == "UNAUTHENTICATED"
    assert not shop.changes._listeners


async def _ends_unauthenticated(live: Any, id_: str) -> None:
    message = await live.receive()
    assert (message["type"], message["id"]) == ("next", id_), message
    (error,) = message["payload"]["errors"]
    assert error["extensions"]["code"] == "UNAUTHENTICATED"
    assert message["payload"]["data"] is None
    assert await live.receive() == {"type": "complete", "id": id_}


# --- what comes ----------------------------------------------------------------------------


async def test_only_what_happens_to_the_user_and_to_what_all_share(
    shop: Any, new_key: Any, server_over: Any
) -> None:
    key = await new_key(shop, "t", Role.AGENT)
    async with server_over(shop) as server, server.connect(key) as live:
        await live.begin()
        await live.subscribe("one", FOLLOW, userId="u1")
        await live.subscribe("two", FOLLOW, userId="u2")
        await until_followed(shop, "t", "u1")
        await until_followed(shop, "t", "u2")
        shop.changes.publish(
            [
                change(memory_id="of-u3", user="u3"),
                replace(change(memory_id="of-others"), tenant="elsewhere"),
                change(memory_id="of-u1"),
            ]
        )
        found = await live.next("one")
        assert found["memoryChanged"]["memoryId"] == "of-u1"
        # what the store no longer has, or the key may not read
        assert found["memoryChanged"]["memory"] is None
        shop.changes.publish([change(memory_id="shared", user=None)])
        messages = [await live.receive() for _ in range(2)]
        assert {message["id"] for message in messages} == {"one", "two"}
        for message in messages:
            event = message["payload"]["data"]["memoryChanged"]
            assert (event["memoryId"], event["userId"]) == ("shared", None)


async def test_each_result_is_looked_up_anew(shop: Any, new_key: Any, server_over: Any) -> None:
    key = await new_key(shop, "t", Role.AGENT)
    async with server_over(shop) as server, server.connect(key) as live:
        await live.begin()
        await live.subscribe("1", FOLLOW, userId="u1")
        await until_followed(shop, "t", "u1")
        for text in ("first", "second"):
            shop.memory_row("m1", text)
            shop.changes.publish([change()])
            assert (await live.next("1"))["memoryChanged"]["memory"]["text"] == text


async def test_a_failure_in_one_result_does_not_end_the_rest(
    shop: Any, new_key: Any, server_over: Any
) -> None:
    key = await new_key(shop, "t", Role.AGENT)
    async with server_over(shop) as server, server.connect(key) as live:
        await live.begin()
        await live.subscribe("1", FOLLOW, userId="u1")
        await until_followed(shop, "t", "u1")
        shop.failures["memories"] = RuntimeError("password is hunter2")
        shop.changes.publish([change()])
        message = await live.receive()
        assert message["type"] == "next"
        assert message["payload"]["data"]["memoryChanged"]["memoryId"] == "m1"
        (error,) = message["payload"]["errors"]
        assert error["extensions"]["code"] == "INTERNAL_ERROR"
        assert "hunter2" not in str(message)
        shop.failures.clear()
        shop.changes.publish([change()])
        assert (await live.next("1"))["memoryChanged"]["memory"]["id"] == "m1"


async def test_queries_and_mutations_work_there_too(
    shop: Any, new_key: Any, server_over: Any
) -> None:
    key = await new_key(shop, "t", Role.AGENT)
    async with server_over(shop) as server, server.connect(key) as live:
        await live.begin()
        for text in ("first", "second"):
            shop.memory_row("m1", text)
            await live.subscribe("q", MEMORY, userId="u1", id="m1")
            assert (await live.next("q"))["memory"]["text"] == text
            assert await live.receive() == {"type": "complete", "id": "q"}
        await live.subscribe("q", MEMORY, userId="u1", id="none")
        message = await live.receive()
        (error,) = message["payload"]["errors"]
        assert error["extensions"]["code"] == "NOT_FOUND"


async def test_a_subscription_over_plain_http_says_where_to_go(shop: Any, api_over: Any) -> None:
    async with api_over(shop) as api:
        response = await api.http.post(
            "/graphql", json={"query": FOLLOW, "variables": {"userId": "u1"}}
        )
    assert response.status_code == 400
    (error,) = response.json()["errors"]
    assert error["extensions"]["code"] == "BAD_REQUEST"
    assert "websocket" in error["message"]
    assert not shop.changes._listeners


# --- limits and faults ---------------------------------------------------------------------


async def test_limits_of_an_operation_apply(shop: Any, new_key: Any, server_over: Any) -> None:
    key = await new_key(shop, "t", Role.AGENT)
    deep = "memory { supersedes { " * 8 + "memoryId" + " } }" * 8
    many = " ".join(f"a{number}: memoryId" for number in range(limits.MAX_ALIASES + 1))
    async with server_over(shop) as server, server.connect(key) as live:
        await live.begin()
        for fields in (deep, many, "memoryId " * limits.MAX_FIELDS):
            query = f'subscription {{ memoryChanged(userId: "u1") {{ {fields} }} }}'
            await live.subscribe("1", query)
            assert "QUERY_TOO_COMPLEX" in {
                error["extensions"]["code"] for error in await live.errors("1")
            }
        for query, code in (
            ("subscription {", "GRAPHQL_PARSE_FAILED"),
            ("subscription { nothing }", "GRAPHQL_VALIDATION_FAILED"),
            ("subscription { memoryChanged { kind } }", "GRAPHQL_VALIDATION_FAILED"),
            (FOLLOW, "BAD_USER_INPUT"),
        ):
            await live.subscribe("1", query)
            assert (await live.error("1"))["extensions"]["code"] == code
        two = """subscription { a: memoryChanged(userId: "u1") { kind }
          b: memoryChanged(userId: "u2") { kind } }"""
        await live.subscribe("1", two)
        assert (await live.error("1"))["extensions"]["code"] == "GRAPHQL_VALIDATION_FAILED"
    assert not shop.changes._listeners


async def test_a_connection_has_so_many_operations_at_once(
    shop: Any, new_key: Any, server_over: Any
) -> None:
    key = await new_key(shop, "t", Role.AGENT)
    most = sockets.MAX_OPERATIONS
    async with server_over(shop) as server, server.connect(key) as live:
        await live.begin()
        for number in range(most):
            await live.subscribe(str(number), FOLLOW, userId="u1")
        await until_followed(shop, "t", "u1", most)
        await live.subscribe("more", FOLLOW, userId="u1")
        error = await live.error("more")
        assert error["extensions"]["code"] == "QUERY_TOO_COMPLEX"
        assert str(most) in error["message"]
        await live.send("complete", id="0")
        await until_followed(shop, "t", "u1", most - 1)
        await live.subscribe("more", FOLLOW, userId="u1")
        await until_followed(shop, "t", "u1", most)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[1]",
        "5",
        "{}",
        '{"type": 5}',
        '{"type": "nonsense"}',
        '{"type": "subscribe"}',
        '{"type": "subscribe", "id": ["1"], "payload": {"query": "{ __typename }"}}',
        '{"type": "subscribe", "id": "", "payload": {"query": "{ __typename }"}}',
        '{"type": "subscribe", "id": "1", "payload": null}',
        '{"type": "subscribe", "id": "1", "payload": {"query": 5}}',
        '{"type": "subscribe", "id": "1", "payload": {"query": "{a}", "variables": [1]}}',
        '{"type": "subscribe", "id": "1", "payload": {"query": "{a}", "operationName": 1}}',
        '{"type": "complete", "id": {}}',
        '{"type": "connection_init", "payload": "key"}',
        "[" * 100_000,
        b"\xff\xfe",
    ],
    ids=lambda text: str(text[:60]),
)
async def test_messages_that_are_none_close_the_connection(
    shop: Any, new_key: Any, server_over: Any, text: str | bytes
) -> None:
    key = await new_key(shop, "t", Role.AGENT)
    async with server_over(shop) as server:
        async with server.connect(key) as live:
            if "connection_init" not in str(text):
                await live.begin()
            await live.socket.send(text)
            code, reason = await live.closed()
            assert code == 4400, (code, reason)
            assert reason
        async with server.connect(key) as live:
            await live.begin()


async def test_ids_and_beginnings_come_once(shop: Any, new_key: Any, server_over: Any) -> None:
    key = await new_key(shop, "t", Role.AGENT)
    async with server_over(shop) as server:
        async with server.connect(key) as live:
            await live.begin()
            await live.subscribe("1", FOLLOW, userId="u1")
            await live.subscribe("1", FOLLOW, userId="u1")
            assert (await live.closed())[0] == 4409
        async with server.connect(key) as live:
            await live.begin()
            await live.send("connection_init")
            assert (await live.closed())[0] == 4429
        async with server.connect(key, protocol="graphql-ws") as live:
            assert (await live.closed())[0] == 4406


async def test_a_message_has_the_size_of_a_request_at_most(
    shop: Any, new_key: Any, server_over: Any
) -> None:
    key = await new_key(shop, "t", Role.AGENT)
    largest = shop.settings.max_request_bytes
    query = json.dumps({"type": "subscribe", "id": "1", "payload": {"query": "{ __typename }"}})
    async with server_over(shop) as server:
        async with server.connect(key) as live:
            await live.begin()
            await live.socket.send(query.ljust(largest))
            assert await live.next("1") == {"__typename": "Query"}
        async with server.connect(key) as live:
            await live.begin()
            await live.socket.send(query.ljust(largest + 1))
            code, reason = await live.closed()
            assert code == limits.MESSAGE_TOO_BIG
            assert "REQUEST_TOO_LARGE" in (reason or "")


async def test_whoever_says_nothing_is_not_waited_for(
    shop: Any, server_over: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_module, "INIT_TIMEOUT_S", 0.05)
    async with server_over(shop) as server, server.connect() as live:
        assert (await live.closed())[0] == 4408


async def test_pages_of_other_sites_are_refused(shop: Any, new_key: Any, server_over: Any) -> None:
    key = await new_key(shop, "t", Role.AGENT)
    async with server_over(shop) as server:
        with pytest.raises(InvalidStatus):
            async with server.connect(key, Origin="https://elsewhere.example"):
                pytest.fail("it connected")
        async with server.connect(key, Origin=server.url) as live:
            await live.begin()


# --- how it ends ---------------------------------------------------------------------------


async def test_what_is_complete_or_gone_is_not_followed_any_more(
    shop: Any, new_key: Any, server_over: Any
) -> None:
    key = await new_key(shop, "t", Role.AGENT)
    async with server_over(shop) as server:
        async with server.connect(key) as live:
            await live.begin()
            await live.subscribe("1", FOLLOW, userId="u1")
            await live.subscribe("2", FOLLOW, userId="u1")
            await until_followed(shop, "t", "u1", 2)
            await live.send("complete", id="1")
            await until_followed(shop, "t", "u1", 1)
            shop.changes.publish([change()])
            await live.next("2")
        await until_followed(shop, "t", "u1", 0)
        async with server.connect(key) as live:
            await live.begin()
            await live.subscribe("1", FOLLOW, userId="u1")
            await until_followed(shop, "t", "u1")
            # a client that is gone without a word
            live.socket.transport.abort()
        await until_followed(shop, "t", "u1", 0)
    assert not shop.changes._listeners


async def test_the_server_stops_with_open_subscriptions(shop: Any, new_key: Any) -> None:
    key = await new_key(shop, "t", Role.AGENT)
    async with running_server(create_app_for(shop)) as url:
        opening = Server(url).connect(key)
        live = await opening.__aenter__()
        await live.begin()
        await live.subscribe("1", FOLLOW, userId="u1")
        await until_followed(shop, "t", "u1")
    # the server is down: it has told the client so, and follows nothing any more
    assert (await live.closed())[0] == 1012
    await opening.__aexit__(None, None, None)
    assert not shop.changes._listeners
    assert not [task for task in asyncio.all_tasks() if "run_operation" in repr(task.get_coro())]


# --- with stores ---------------------------------------------------------------------------

REMEMBER = """mutation ($input: MemoryInput!) { remember(input: $input) { status id } }"""
FORGET = """mutation ($userId: ID!, $ids: [ID!]!) {
  forget(userId: $userId, ids: $ids, reason: "asked to") { forgotten } }"""
RETRACT = """mutation ($userId: ID!, $id: ID!) {
  retract(userId: $userId, memoryId: $id, reason: "a slip") { status } }"""


async def test_writes_are_seen_by_who_follows_the_user(
    engine: Any, tenant: str, api_over: Any, new_key: Any, server_over: Any
) -> None:
    moment = NOW
    engine = replace(engine, clock=Clock(lambda: moment))
    key = await new_key(engine, tenant, Role.AGENT)
    foreign = await new_key(engine, f"{tenant}-x", Role.AGENT)

    def status(id_: str, user: str, value: str, hour: int) -> dict[str, Any]:
        return {
            "id": id_,
            "userId": user,
            "validFrom": f"2025-06-14T{hour:02}:00:00Z",
            "facts": [
                {
                    "entity": {"type": "Order", "id": "#882301"},
                    "attribute": "order.status",
                    "value": value,
                }
            ],
        }

    async with (
        server_over(engine) as server,
        server.connect(key) as live,
        server.connect(foreign) as elsewhere,
        api_over(engine, tenant=tenant) as api,
    ):
        await live.begin()
        await live.subscribe("1", FOLLOW, userId="u1")
        await until_followed(engine, tenant, "u1")
        await elsewhere.begin()
        await elsewhere.subscribe("1", FOLLOW, userId="u1")
        await until_followed(engine, f"{tenant}-x", "u1")

        await api.data(REMEMBER, input=status("of-another", "u2", "paid", 8))
        await api.data(REMEMBER, input=status("first", "u1", "paid", 8))
        event = (await live.next("1"))["memoryChanged"]
        assert (event["kind"], event["memoryId"], event["userId"]) == ("CREATED", "first", "u1")
        assert event["memory"]["status"] == "ACTIVE"

        await api.data(REMEMBER, input=status("second", "u1", "shipped", 9))
        events = [(await live.next("1"))["memoryChanged"] for _ in range(2)]
        assert [(event["kind"], event["memoryId"]) for event in events] == [
            ("CREATED", "second"),
            ("SUPERSEDED", "first"),
        ]
        assert events[1]["memory"]["status"] == "SUPERSEDED"

        await api.data(RETRACT, userId="u1", id="second")
        event = (await live.next("1"))["memoryChanged"]
        assert (event["kind"], event["memoryId"]) == ("RETRACTED", "second")

        await api.data(FORGET, userId="u1", ids=["first"])
        event = (await live.next("1"))["memoryChanged"]
        assert (event["kind"], event["memoryId"]) == ("FORGOTTEN", "first")
        assert event["memory"] is None

        await api.data(REMEMBER, input={"text": "所有用户都看得到的规则", "shared": True})
        event = (await live.next("1"))["memoryChanged"]
        assert (event["kind"], event["userId"]) == ("CREATED", None)
        assert event["memory"]["text"] == "所有用户都看得到的规则"

        # the other tenant's connection has had nothing: its next message is this answer
        await elsewhere.send("ping")
        assert await elsewhere.receive() == {"type": "pong"}
