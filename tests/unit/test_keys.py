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
from ecphoria.governance.keys import authenticate, create_key, revoke_key, rotate_key
from ecphoria.model import ApiKey, EveryUser, Role


@dataclass
class Graph:
    """The key methods of a graph, in memory."""

    kept: dict[str, ApiKey] = field(default_factory=dict)

    async def save_api_key(self, key):
        self.kept[key.id] = key

    async def api_key(self, key_id):
        return self.kept.get(key_id)

    async def rotate_api_key(self, key, expected_hash):
        there = self.kept.get(key.id)
        if there is None or there.secret_hash != expected_hash or there.revoked_at is not None:
            return False
        self.kept[key.id] = key
        return True


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


# --- rotation ------------------------------------------------------------------------------


async def counts(graph, secret, hours=0.0):
    try:
        return await authenticate(graph, at(hours / 24), secret)
    except Unauthenticated:
        return None


async def test_without_a_grace_the_old_secret_is_dead_at_once():
    graph = Graph()
    key, old = await made(graph)
    rotated, new = await rotate_key(graph, at(), tenant="shop", key_id=key.id)
    assert await counts(graph, old) is None
    scope = await counts(graph, new)
    # who acts stays the same in all that is on record
    assert (scope.principal, scope.roles, scope.users) == (key.id, key.roles, key.users)
    assert rotated.previous_hash is None
    assert new.split("_")[1] == key.id


@pytest.mark.parametrize(("hours", "old_counts"), [(0, True), (0.99, True), (1, False), (2, False)])
async def test_within_the_grace_both_secrets_count(hours, old_counts):
    graph = Graph()
    key, old = await made(graph)
    _, new = await rotate_key(graph, at(), tenant="shop", key_id=key.id, grace=timedelta(hours=1))
    assert (await counts(graph, old, hours) is not None) is old_counts
    assert await counts(graph, new, hours) is not None


async def test_a_second_rotation_ends_the_grace_of_the_first():
    graph = Graph()
    key, first = await made(graph)
    grace = timedelta(hours=1)
    _, second = await rotate_key(graph, at(), tenant="shop", key_id=key.id, grace=grace)
    _, third = await rotate_key(graph, at(), tenant="shop", key_id=key.id, grace=grace)
    found = [await counts(graph, secret) is not None for secret in (first, second, third)]
    assert found == [False, True, True]


async def test_a_revoked_key_has_no_grace_and_cannot_be_rotated():
    graph = Graph()
    key, old = await made(graph)
    grace = timedelta(days=1)
    _, new = await rotate_key(graph, at(), tenant="shop", key_id=key.id, grace=grace)
    await revoke_key(graph, at(), tenant="shop", key_id=key.id)
    assert [await counts(graph, secret) for secret in (old, new)] == [None, None]
    with pytest.raises(InvalidInput, match="revoked"):
        await rotate_key(graph, at(), tenant="shop", key_id=key.id)


async def test_the_end_of_a_key_stays_unless_a_new_one_is_given():
    graph = Graph()
    key, _ = await made(graph, lifetime=timedelta(days=7))
    stays, old = await rotate_key(graph, at(1), tenant="shop", key_id=key.id)
    assert stays.expires_at == NOW + timedelta(days=7)
    longer, _ = await rotate_key(
        graph,
        at(2),
        tenant="shop",
        key_id=key.id,
        grace=timedelta(days=30),
        lifetime=timedelta(days=7),
    )
    assert longer.expires_at == NOW + timedelta(days=9)
    # a grace does not outlast the key
    assert await counts(graph, old, 24 * 9) is None
    with pytest.raises(InvalidInput, match="expired"):
        await rotate_key(graph, at(9), tenant="shop", key_id=key.id)


async def test_of_two_rotations_at_once_one_is_refused():
    graph = Graph()
    key, _ = await made(graph)
    real = graph.api_key

    async def read_before_the_other_wrote(key_id):
        found = await real(key_id)
        graph.api_key = real
        await rotate_key(graph, at(), tenant="shop", key_id=key.id)
        return found

    graph.api_key = read_before_the_other_wrote
    with pytest.raises(InvalidInput, match="meanwhile"):
        await rotate_key(graph, at(), tenant="shop", key_id=key.id)


@pytest.mark.parametrize(
    "changes",
    [
        {"grace": -timedelta(seconds=1)},
        {"grace": timedelta(days=31)},
        {"lifetime": timedelta(0)},
        {"lifetime": timedelta.max},
    ],
)
async def test_a_bad_rotation_changes_nothing(changes):
    graph = Graph()
    key, secret = await made(graph)
    with pytest.raises(InvalidInput):
        await rotate_key(graph, at(), tenant="shop", key_id=key.id, **changes)
    with pytest.raises(NotFound):
        await rotate_key(graph, at(), tenant="other", key_id=key.id)
    assert await counts(graph, secret) is not None
