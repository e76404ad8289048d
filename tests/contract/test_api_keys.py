"""API keys on real stores: rotated and revoked at once, by several and through several."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from ecphoria.clock import Clock
from ecphoria.errors import InvalidInput, Unauthenticated
from ecphoria.governance.keys import authenticate, create_key, revoke_key, rotate_key
from ecphoria.model import EveryUser, Role
from ecphoria.stores.neo4j import Neo4jGraph

CLOCK = Clock()


def other_process(stores, engine):
    """Return a graph store as another replica has it: with connections of its own."""
    return Neo4jGraph.open(
        stores.neo4j_uri,
        user=stores.neo4j_user,
        password=stores.neo4j_password,
        database=stores.neo4j_database,
        domain=engine.domain,
        timeout_s=60,
    )


async def made(engine, tenant, **more):
    given = {"name": "k", "roles": [Role.AGENT], "users": EveryUser.OF_TENANT} | more
    return await create_key(engine.graph, CLOCK, tenant=tenant, **given)


async def counts(graph, secret):
    try:
        await authenticate(graph, CLOCK, secret)
    except Unauthenticated:
        return False
    return True


async def test_rotation_and_revocation_are_seen_by_another_replica_at_its_next_request(
    stores, engine, tenant
):
    key, old = await made(engine, tenant, lifetime=timedelta(days=1))
    async with other_process(stores, engine) as other:
        assert await counts(other, old)
        grace = timedelta(hours=1)
        rotated, new = await rotate_key(
            engine.graph, CLOCK, tenant=tenant, key_id=key.id, grace=grace
        )
        assert await engine.graph.api_key(key.id) == rotated
        assert [await counts(other, secret) for secret in (old, new)] == [True, True]
        _, newest = await rotate_key(engine.graph, CLOCK, tenant=tenant, key_id=key.id)
        found = [await counts(other, secret) for secret in (old, new, newest)]
        assert found == [False, False, True]
        await revoke_key(other, CLOCK, tenant=tenant, key_id=key.id)
        assert not await counts(engine.graph, newest)


async def test_of_many_rotations_at_once_each_that_succeeds_has_a_secret_that_counted(
    engine, tenant
):
    """Nobody is handed a secret that another one has overwritten unseen."""
    key, first = await made(engine, tenant)
    before = await engine.graph.api_key(key.id)

    class Stale:
        """The store as those see it who all read the key before any of them wrote."""

        async def api_key(self, _id):
            return before

        async def rotate_api_key(self, changed, expected):
            return await engine.graph.rotate_api_key(changed, expected)

    found = await asyncio.gather(
        *(rotate_key(Stale(), CLOCK, tenant=tenant, key_id=key.id) for _ in range(6)),
        return_exceptions=True,
    )
    (winner,) = [item for item in found if isinstance(item, tuple)]
    assert [type(item) for item in found if item is not winner] == [InvalidInput] * 5
    assert await counts(engine.graph, winner[1])
    assert not await counts(engine.graph, first)


async def test_a_rotation_does_not_bring_back_what_is_revoked_meanwhile(engine, tenant):
    key, first = await made(engine, tenant)
    before = await engine.graph.api_key(key.id)
    await revoke_key(engine.graph, CLOCK, tenant=tenant, key_id=key.id)
    assert not await engine.graph.rotate_api_key(before, before.secret_hash)
    assert not await counts(engine.graph, first)
    assert not await engine.graph.rotate_api_key(before, "another hash")
