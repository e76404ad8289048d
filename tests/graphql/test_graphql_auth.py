"""Who may ask: a key in a header, or 401."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ecphoria.errors import StoreUnavailable
from ecphoria.governance.keys import revoke_key
from ecphoria.model import Role

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUERY = {"query": '{ memory(userId: "u1", id: "m1") { id } }'}


async def ask(api: Any, **headers: str) -> int:
    response = await api.http.post(
        "/graphql", json=QUERY, headers={name.replace("_", "-"): v for name, v in headers.items()}
    )
    if response.status_code == 401:
        (error,) = response.json()["errors"]
        assert error["extensions"]["code"] == "UNAUTHENTICATED"
        assert error["extensions"]["remedy"]
        # nobody learns which part of a key is wrong
        assert error["message"] in {
            "the API key is missing or not valid",
            "the request carries several API keys",
        }
        assert response.headers["www-authenticate"] == "Bearer"
        assert "data" not in response.json()
    return response.status_code


async def test_both_headers_work(shop: Any, api_over: Any, new_key: Any) -> None:
    key = await new_key(shop, "t", Role.AGENT)
    async with api_over(shop, anonymous=True) as api:
        assert await ask(api, Authorization=f"Bearer {key}") == 200
        assert await ask(api, Authorization=f"bearer  {key} ") == 200
        assert await ask(api, X_API_Key=key) == 200
        assert await ask(api, X_API_Key=key, Authorization=f"Bearer {key}") == 200


async def test_bad_keys(shop: Any, api_over: Any, new_key: Any) -> None:
    key = await new_key(shop, "t", Role.AGENT)
    other = await new_key(shop, "t", Role.AGENT)
    swapped = "_".join([*key.split("_")[:2], other.split("_", 2)[2]])
    async with api_over(shop, anonymous=True) as api:
        assert await ask(api) == 401
        for bad in (
            "", " ", "x", "*", "null", key[:-1], key + "x", key.upper(), swapped,
            f"ecph_{'0' * 16}_{'A' * 43}", "ecph__", '") or true or ("', "k" * 10_000,
            f"{key},{key}",
        ):  # fmt: skip
            assert await ask(api, Authorization=f"Bearer {bad}") == 401, bad
            assert await ask(api, X_API_Key=bad) == 401, bad
        assert await ask(api, Authorization=key) == 401
        assert await ask(api, Authorization=f"Basic {key}") == 401
        assert await ask(api, Authorization=f"Bearer {key} {key}") == 401
        assert await ask(api, Authorization=f"Bearer {key}", X_API_Key=other) == 401
        # the key goes into a header, never into the URL, where logs would keep it
        response = await api.http.get("/graphql", params={**QUERY, "api_key": key, "key": key})
        assert response.status_code == 401
    assert shop.calls["memory"] == 0


async def test_expired_and_revoked_keys(shop: Any, api_over: Any, new_key: Any) -> None:
    brief = await new_key(shop, "t", Role.AGENT, lifetime=timedelta(seconds=10))
    lasting = await new_key(shop, "t", Role.AGENT)
    async with api_over(shop, anonymous=True) as api:
        assert await ask(api, X_API_Key=brief) == 200
        shop.clock.moment += timedelta(seconds=10)
        assert await ask(api, X_API_Key=brief) == 401
        assert await ask(api, X_API_Key=lasting) == 200
        await revoke_key(shop.graph, shop.clock, tenant="t", key_id=lasting.split("_")[1])
        assert await ask(api, X_API_Key=lasting) == 401


async def test_a_key_may_name_its_users_only(shop: Any, api_over: Any) -> None:
    query = 'query ($user: ID!) { memory(userId: $user, id: "m1") { id } }'
    async with api_over(shop, users=["u1", "u3"]) as api:
        assert (await api.data(query, user="u1"))["memory"] == {"id": "m1"}
        error = await api.error(query, user="u2")
    assert error["extensions"]["code"] == "FORBIDDEN"
    assert "u2" not in shop.asked_for


async def test_keys_cannot_be_looked_up(shop: Any, api_over: Any, new_key: Any) -> None:
    key = await new_key(shop, "t", Role.AGENT)
    shop.graph.failure = StoreUnavailable("the graph store does not answer")
    async with api_over(shop, anonymous=True) as api:
        response = await api.http.post("/graphql", json=QUERY, headers={"X-API-Key": key})
    assert response.status_code == 503
    assert response.json()["errors"][0]["extensions"]["code"] == "STORE_UNAVAILABLE"
    assert response.json()["errors"][0]["extensions"]["retryable"] is True


async def test_a_bug_in_looking_up_keys_is_masked(shop: Any, api_over: Any, new_key: Any) -> None:
    key = await new_key(shop, "t", Role.AGENT)
    shop.graph.failure = RuntimeError("secret")
    async with api_over(shop, anonymous=True) as api:
        response = await api.http.post("/graphql", json=QUERY, headers={"X-API-Key": key})
    assert response.status_code == 500
    assert response.json()["errors"][0]["extensions"]["code"] == "INTERNAL_ERROR"
    assert "secret" not in response.text


async def test_introspection_needs_a_key(shop: Any, api_over: Any) -> None:
    query = {"query": "{ __schema { types { name } } }"}
    async with api_over(shop, anonymous=True) as api:
        assert (await api.http.post("/graphql", json=query)).status_code == 401
    async with api_over(shop) as api:
        assert len((await api.data(query["query"]))["__schema"]["types"]) > 20


async def test_health_and_page_need_no_key(shop: Any, api_over: Any) -> None:
    async with api_over(shop, anonymous=True) as api:
        for path in ("/healthz", "/readyz"):
            assert (await api.http.get(path)).status_code == 200
        page = await api.http.get("/graphql", headers={"Accept": "text/html"})
        assert page.status_code == 200
        assert page.headers["content-type"].startswith("text/html")
