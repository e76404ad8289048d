"""The client, against the running application: over its own transport and over a real port."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from graphql import parse, validate

from ecphoria.client import Client, documents
from ecphoria.errors import (
    Forbidden,
    IdempotencyKeyReused,
    InternalError,
    InvalidInput,
    InvalidScope,
    NotFound,
    RateLimited,
    RequestRefused,
    ServerUnreachable,
    StoreUnavailable,
    TextEmpty,
    Unauthenticated,
)
from ecphoria.model import Action, ReceiptStatus, Role
from ecphoria_graphql.app import create_app_for
from ecphoria_graphql.schema import build_schema

pytestmark = pytest.mark.asyncio(loop_scope="session")


def client_of(shop: Any, key: str) -> Client:
    transport = httpx.ASGITransport(create_app_for(shop), raise_app_exceptions=False)
    return Client("http://test", key, transport=transport)


@pytest.mark.parametrize("name", ["RECALL", "MEMORY", "REMEMBER", "FORGET"])
async def test_its_operations_fit_every_domain(shop: Any, clinic: Any, name: str) -> None:
    document = parse(getattr(documents, name))
    for domain in (shop.domain, clinic):
        assert validate(build_schema(domain)._schema, document) == []


async def test_the_whole_way_on_real_stores(
    engine: Any, tenant: str, new_key: Any, server_over: Any
) -> None:
    key = await new_key(engine, tenant)
    async with server_over(engine) as server, Client(server.url, key) as client:
        written = await client.remember(
            "客户说手机屏幕在维修后又碎了",
            "u1",
            kind="EPISODIC",
            occurredAt=datetime(2026, 1, 2, tzinfo=UTC),
        )
        assert (written.status, written.error) == (ReceiptStatus.CREATED, None)
        assert written.id is not None
        memory = await client.memory("u1", written.id)
        assert (memory.text, memory.user_id) == ("客户说手机屏幕在维修后又碎了", "u1")
        assert memory.valid_from is not None
        assert memory.valid_from.tzinfo is not None
        answer = await client.recall("手机屏幕怎么了？", "u1", max_tokens=200)
        assert answer.action in set(Action)
        assert "u2" not in answer.context
        bad, good = await client.remember_all(
            [{"text": " ", "userId": "u1"}, {"text": "Prefers e-mail", "userId": "u1"}]
        )
        assert bad.status is ReceiptStatus.REJECTED
        assert isinstance(bad.error, TextEmpty)
        assert bad.error.path == ("input", "items", "0", "text")
        assert good.status is ReceiptStatus.CREATED
        with pytest.raises(TextEmpty):
            await client.remember(" ", "u1")
        with pytest.raises(InvalidInput) as caught:
            await client.forget("u1", [written.id], " ")
        assert caught.value.path == ("reason",)
        for _ in range(2):
            gone = await client.forget(
                "u1", [written.id, "none"], "asked for", idempotency_key="one"
            )
            assert (gone.count, gone.unknown) == (1, ("none",))
        twice = [
            await client.remember("Wants a call", "u1", idempotency_key="two") for _ in range(2)
        ]
        assert twice[0] == twice[1]
        with pytest.raises(IdempotencyKeyReused):
            await client.remember("Wants no call", "u1", idempotency_key="two")
        with pytest.raises(NotFound):
            await client.memory("u1", written.id)


async def test_an_answer_with_all_its_parts(shop: Any, new_key: Any) -> None:
    async with client_of(shop, await new_key(shop, "t", Role.AGENT)) as client:
        answer = await client.recall("What was replaced?", "u1")
    assert (answer.action, answer.confidence) == (Action.ANSWER, 0.85)
    assert [found.memory.id for found in answer.memories] == ["m1", "m2"]
    assert (answer.memories[0].relevance, answer.memories[0].confidence) == (0.9, 0.8)
    assert ("Device", "d1", "Phone 1") in {(it.type, it.id, it.name) for it in answer.entities}
    assert answer.context


async def test_errors_are_raised_as_their_classes(shop: Any, new_key: Any) -> None:
    async with client_of(shop, await new_key(shop, "t", Role.AGENT, users=["u1"])) as client:
        with pytest.raises(NotFound, match="none"):
            await client.memory("u1", "none")
        with pytest.raises(Forbidden):
            await client.memory("u2", "m1")
        with pytest.raises(InvalidScope) as caught:
            await client.recall("What?", "*")
        assert caught.value.path
        with pytest.raises(Forbidden, match="forget needs one of the roles"):
            await client.forget("u1", ["m1"], "x")
        with pytest.raises(RequestRefused, match="GRAPHQL_VALIDATION_FAILED"):
            await client.graphql("{ nothing }")
        with pytest.raises(RequestRefused, match="BAD_REQUEST"):
            await client.graphql("query A { __typename } query B { __typename }")
        both = "query A { a: __typename } query B { b: __typename }"
        assert await client.graphql(both, operation_name="B") == {"b": "Query"}
        shop.failure = StoreUnavailable("the graph store does not answer")
        with pytest.raises(StoreUnavailable) as away:
            await client.memory("u1", "m1")
        assert away.value.retryable
        shop.failure = RuntimeError("secret")
        with pytest.raises(InternalError) as masked:
            await client.memory("u1", "m1")
        assert "secret" not in masked.value.message
    async with client_of(shop, "no key") as client:
        with pytest.raises(Unauthenticated):
            await client.memory("u1", "m1")


async def test_a_refusal_for_haste_says_how_long_to_wait(shop: Any, new_key: Any) -> None:
    shop.settings = shop.settings.model_copy(update={"rate_per_minute": 2})
    async with client_of(shop, await new_key(shop, "t", Role.AGENT)) as client:
        for _ in range(2):
            await client.memory("u1", "m1")
        with pytest.raises(RateLimited) as caught:
            await client.memory("u1", "m1")
    assert caught.value.retry_after_s == 30


@pytest.mark.parametrize(
    ("status", "text", "kind"),
    [
        (502, "<html>Bad Gateway</html>", ServerUnreachable),
        (404, "not here", RequestRefused),
        (200, "[]", RequestRefused),
        (200, "{}", RequestRefused),
        (200, '{"errors": [{"message": "x"}]}', RequestRefused),
        (200, '{"errors": [{"message": "x", "extensions": 5}]}', RequestRefused),
        (500, '{"errors": "x"}', ServerUnreachable),
    ],
)
async def test_what_is_no_answer_of_this_api(status: int, text: str, kind: Any) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(status, text=text))
    async with Client("http://test", "key", transport=transport) as client:
        with pytest.raises(kind):
            await client.memory("u1", "m1")


async def test_nobody_there() -> None:
    async with Client("http://127.0.0.1:1", "key") as client:
        with pytest.raises(ServerUnreachable, match="does not answer") as caught:
            await client.memory("u1", "m1")
    assert "key" not in caught.value.message
