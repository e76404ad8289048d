"""A store dies while in use: typed errors, nothing half-written, and it goes on afterwards."""

from __future__ import annotations

import asyncio
import os
import signal

import httpx
import psutil
import pytest

from ecphoria.engine import Engine
from ecphoria.errors import StoreUnavailable
from ecphoria.governance.keys import create_key
from ecphoria.model import Action, EveryUser, MemoryInput, RecallRequest, Role
from ecphoria.settings import load_settings
from ecphoria_graphql.app import create_app_for

QUESTION = RecallRequest("Where is the spare key of the shop kept?", "u1")
RECALL = '{ recall(input: {question: "Where is the spare key kept?", userId: "u1"}) { action } }'


def memory(id_, text="The spare key of the shop is kept in the blue drawer."):
    return MemoryInput(text=text, user_id="u1", id=id_)


async def keeps_working(engine, admin, id_):
    """Wait until both stores answer again, then check that a write is found."""
    for _ in range(60):
        try:
            await engine.health()
            (receipt,) = await engine.remember(admin, [memory(id_, f"Note {id_} of the shop.")])
            while (await engine.graph.counts(admin.tenant))["pending"]:
                await engine.reconcile()
        except StoreUnavailable:
            await asyncio.sleep(1)
        else:
            assert receipt.id == id_
            return
    pytest.fail("the stores are back, but the engine does not work again")


async def test_without_vectors_the_graph_answers_and_writes_wait(engine, stores, admin):
    if stores.servers is None:
        pytest.skip("the embedded stores are one process; the next test kills it")
    await engine.remember(admin, [memory("before")])
    stores.servers.milvus.kill9()
    try:
        result = await engine.recall(admin, QUESTION)
        assert any("vector index unavailable" in item for item in result.degradations)
        (receipt,) = await engine.remember(admin, [memory("during")])
        assert (receipt.status, receipt.indexed) == ("CREATED", False)
        assert (await engine.memory(admin, "u1", "during")).text == memory("during").text
    finally:
        stores.servers.milvus.start()
    await keeps_working(engine, admin, "after")
    found = await engine.recall(admin, QUESTION)
    assert found.action is Action.ANSWER
    assert found.degradations == ()
    assert {"before", "during"} & {item.memory.id for item in found.memories}
    assert await engine.index.count(admin.tenant) == 3


async def test_without_the_graph_there_is_no_answer_but_a_typed_error(engine, stores, admin):
    if stores.servers is None:
        pytest.skip("the embedded stores are one process; the next test kills it")
    await engine.remember(admin, [memory("before")])
    stores.servers.neo4j.kill9()
    try:
        for call in (
            engine.recall(admin, QUESTION),
            engine.remember(admin, [memory("during")]),
            engine.memory(admin, "u1", "before"),
            engine.health(),
        ):
            with pytest.raises(StoreUnavailable):
                await call
    finally:
        stores.servers.neo4j.start()
    await keeps_working(engine, admin, "after")
    kept = await engine.memories(admin, "u1", ["before", "during", "after"])
    assert set(kept) == {"before", "after"}
    assert await engine.index.count(admin.tenant) == 2


async def test_embedded_stores_that_die_are_said_and_lose_nothing(embedded_env, admin):
    settings = load_settings(data_dir=embedded_env["ECPHORIA_DATA_DIR"], store_timeout_s=10)
    async with Engine.open(settings) as engine:
        await engine.remember(admin, [memory("before")])
        _, key = await create_key(
            engine.graph,
            engine.clock,
            tenant=admin.tenant,
            name="test",
            roles=[Role.AGENT],
            users=EveryUser.OF_TENANT,
        )
        for child in psutil.Process().children(recursive=True):
            if any("local_server" in part for part in child.cmdline()) and any(
                str(settings.data_dir) in file.path for file in child.open_files()
            ):
                os.kill(child.pid, signal.SIGKILL)
        with pytest.raises(StoreUnavailable):
            await engine.recall(admin, QUESTION)
        transport = httpx.ASGITransport(create_app_for(engine))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            answer = await client.post(
                "/graphql", json={"query": RECALL}, headers={"Authorization": f"Bearer {key}"}
            )
            ready = await client.get("/readyz")
        assert answer.json()["errors"][0]["extensions"]["code"] == "STORE_UNAVAILABLE"
        assert ready.status_code == 503
    async with Engine.open(settings) as engine:
        assert (await engine.memory(admin, "u1", "before")).text == memory("before").text
        assert (await engine.recall(admin, QUESTION)).action is Action.ANSWER
