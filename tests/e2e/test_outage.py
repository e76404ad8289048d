"""A store dies while in use: typed errors, nothing half-written, and it goes on afterwards."""

from __future__ import annotations

import asyncio
import contextlib
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
from ecphoria_graphql.server import running_server

QUESTION = RecallRequest("Where is the spare key of the shop kept?", "u1")
RECALL = '{ recall(input: {question: "Where is the spare key kept?", userId: "u1"}) { action } }'


def memory(id_, text="The spare key of the shop is kept in the blue drawer."):
    return MemoryInput(text=text, user_id="u1", id=id_)


# What was begun before a store went has its status already; the error is in the answer then.
ANSWERED, PARTLY = (200, None), (200, "STORE_UNAVAILABLE")


class Asked:
    """What somebody met with who asks the API all the time."""

    def __init__(self):
        self.seen = []
        self._news = asyncio.Condition()

    async def note(self, outcome):
        async with self._news:
            self.seen.append(outcome)
            self._news.notify_all()

    async def until(self, outcome):
        """Return when one more question has had this outcome."""
        async with self._news:
            so_far = len(self.seen)
            await self._news.wait_for(lambda: outcome in self.seen[so_far:])


@contextlib.asynccontextmanager
async def asked_all_the_time(engine, tenant):
    _, key = await create_key(
        engine.graph,
        engine.clock,
        tenant=tenant,
        name="test",
        roles=[Role.AGENT],
        users=EveryUser.OF_TENANT,
    )
    asked = Asked()
    async with (
        running_server(create_app_for(engine)) as url,
        httpx.AsyncClient(
            base_url=url, headers={"X-API-Key": key}, trust_env=False, timeout=120
        ) as http,
    ):

        async def ask():
            while True:
                answer = await http.post("/graphql", json={"query": RECALL})
                (error,) = answer.json().get("errors") or [None]
                await asked.note((answer.status_code, error and error["extensions"]["code"]))

        asking = [asyncio.create_task(ask()) for _ in range(2)]
        try:
            yield asked
        finally:
            for each in asking:
                each.cancel()
            await asyncio.gather(*asking, return_exceptions=True)


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


async def test_without_the_graph_there_is_no_answer_but_a_typed_error(stores, admin, tmp_path):
    if stores.servers is None:
        pytest.skip("the embedded stores are one process; the next test kills it")
    # each call goes on trying for a third of this
    settings = stores.settings("shared", tmp_path, store_timeout_s=9)
    async with Engine.open(settings) as engine, asked_all_the_time(engine, admin.tenant) as asked:
        await engine.remember(admin, [memory("before")])
        await asked.until(ANSWERED)
        stores.servers.neo4j.kill9()
        try:
            found = await asyncio.gather(
                engine.recall(admin, QUESTION),
                engine.remember(admin, [memory("during")]),
                engine.memory(admin, "u1", "before"),
                engine.health(),
                return_exceptions=True,
            )
            assert [type(error) for error in found] == [StoreUnavailable] * 4
            await asked.until((503, "STORE_UNAVAILABLE"))
        finally:
            stores.servers.neo4j.start()
        await keeps_working(engine, admin, "after")
        # by the same server: nobody has started it anew
        await asked.until(ANSWERED)
        assert set(asked.seen) <= {ANSWERED, (503, "STORE_UNAVAILABLE"), PARTLY}, asked.seen
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
