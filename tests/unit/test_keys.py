"""API keys: made, presented, expired, revoked."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from builders import NOW
from ecphoria.clock import Clock
from ecphoria.errors import InvalidInput, InvalidScope, NotFound, Unauthenticated
from ecphoria.governance.keys import authenticate, create_key, revoke_key
from ecphoria.model import ApiKey, EveryUser, Role


@dataclass
class Graph:
    """The key methods of a graph, in memory."""

    kept: dict[str, ApiKey] = field(default_factory=dict)

    async def save_api_key(self, key):
        self.kept[key.id] = key

    async def api_key(self, key_id):
        return self.kept.get(key_id)


def at(days=0.0):
    return Clock(now=lambda: NOW + timedelta(days=days))


async def made(graph, **more):
    values = {
        "tenant": "shop",
        "name": " bot ",
        "roles": [Role.AGENT],
        "users": ["u-1"],
    } | more
    return await create_key(graph, at(), **values)


async def test_a_key_yields_the_scope_it_was_made_for():
    graph = Graph()
    key, secret = await made(graph)
    scope = await authenticate(graph, at(), secret)
    assert (scope.tenant, scope.principal) == ("shop", key.id)
    assert (scope.roles, scope.users) == (frozenset({Role.AGENT}), frozenset({"u-1"}))
    every, secret = await made(graph, users=EveryUser.OF_TENANT)
    assert (await authenticate(graph, at(), secret)).users is EveryUser.OF_TENANT
    assert every.id != key.id


async def test_the_secret_is_kept_as_a_hash_only():
    graph = Graph()
    key, presented = await made(graph)
    match = re.fullmatch(r"ecph_([0-9a-f]{16})_([A-Za-z0-9_-]{43})", presented)
    assert match[1] == key.id
    assert match[2] not in str(graph.kept)
    assert key.secret_hash == hashlib.sha256(match[2].encode()).hexdigest()
    assert (key.name, key.created_at, key.expires_at) == ("bot", NOW, None)


async def test_every_refusal_is_the_same():
    graph = Graph()
    key, good = await made(graph)
    other, wrong = await made(graph)
    messages = set()
    for presented in (
        None,
        "",
        "Bearer " + good,
        good + " ",
        good + "\n",
        good[:-1],
        good.upper(),
        good.replace("ecph_", "ecph-"),
        f"ecph_{key.id}_{wrong[-43:]}",
        f"ecph_{'0' * 16}_{good[-43:]}",
        f"ecph_{other.id}_{good[-43:]}",
        f"ecph_{key.id}_{'é' * 43}",
        "x" * 100_000,
    ):
        with pytest.raises(Unauthenticated) as caught:
            await authenticate(graph, at(), presented)
        messages.add(caught.value.message)
    assert len(messages) == 1
    assert key.id not in messages.pop()


@pytest.mark.parametrize(("days", "good"), [(0, True), (6.99, True), (7, False), (8, False)])
async def test_a_key_expires(days, good):
    graph = Graph()
    _, secret = await made(graph, lifetime=timedelta(days=7))
    if good:
        assert await authenticate(graph, at(days), secret)
    else:
        with pytest.raises(Unauthenticated):
            await authenticate(graph, at(days), secret)


async def test_a_revoked_key_is_dead_at_once_and_revoking_twice_is_no_error():
    graph = Graph()
    key, secret = await made(graph)
    revoked = await revoke_key(graph, at(1), tenant="shop", key_id=key.id)
    assert revoked.revoked_at == NOW + timedelta(days=1)
    assert await revoke_key(graph, at(2), tenant="shop", key_id=key.id) == revoked
    with pytest.raises(Unauthenticated):
        await authenticate(graph, at(1), secret)


async def test_another_tenants_key_looks_like_none():
    graph = Graph()
    key, secret = await made(graph)
    messages = []
    for tenant, key_id in (("other", key.id), ("shop", "0" * 16)):
        with pytest.raises(NotFound) as caught:
            await revoke_key(graph, at(), tenant=tenant, key_id=key_id)
        messages.append(caught.value.message.replace(tenant, "").replace(key_id, ""))
    assert messages[0] == messages[1]
    assert await authenticate(graph, at(), secret)


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"tenant": ""}, InvalidScope),
        ({"tenant": "*"}, InvalidScope),
        ({"tenant": "a|b"}, InvalidScope),
        ({"roles": []}, InvalidScope),
        ({"roles": ["admin"]}, InvalidScope),
        ({"users": []}, InvalidScope),
        ({"users": [""]}, InvalidScope),
        ({"users": ["*"]}, InvalidScope),
        # a string is a collection of one-letter users
        ({"users": "alice"}, InvalidScope),
        ({"name": " "}, InvalidInput),
        ({"name": "x" * 101}, InvalidInput),
        ({"lifetime": timedelta(0)}, InvalidInput),
        ({"lifetime": -timedelta(days=1)}, InvalidInput),
        ({"lifetime": timedelta.max}, InvalidInput),
    ],
)
async def test_a_bad_key_is_not_made(changes, kind):
    graph = Graph()
    with pytest.raises(kind):
        await made(graph, **changes)
    assert graph.kept == {}


async def test_a_stored_key_that_was_tampered_with_fails_closed():
    graph = Graph()
    key, secret = await made(graph)
    graph.kept[key.id] = replace(key, users=frozenset())
    with pytest.raises(InvalidScope):
        await authenticate(graph, at(), secret)
