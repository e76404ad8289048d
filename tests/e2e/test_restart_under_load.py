"""`ecphoria serve` is killed while clients write: what was acknowledged is there, exactly once."""

from __future__ import annotations

import asyncio
import re
import signal
import uuid
from collections import Counter
from dataclasses import dataclass, field

import httpx

from ecphoria.governance.keys import create_key
from ecphoria.model import EveryUser, Role
from engines import check_index_equals_graph, settle

CLIENTS = 4
WRITES = 15
PATIENCE_S = 120
REMEMBER = "mutation ($input: MemoryInput!) { remember(input: $input) { status id } }"
KEPT = {"CREATED", "DUPLICATE"}


@dataclass
class Said:
    """What clients have sent, and what they were told.

    Attributes:
        kept: Id and text of what was acknowledged.
        unanswered: What was sent, and no answer came.
        enough: Set once so many are acknowledged.
    """

    wanted: int
    kept: dict[str, str] = field(default_factory=dict)
    unanswered: list[dict[str, str]] = field(default_factory=list)
    enough: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, http: httpx.AsyncClient, item: dict[str, str]) -> bool:
        """Send an item; whether there was an answer."""
        try:
            body = {"query": REMEMBER, "variables": {"input": item}}
            answer = (await http.post("/graphql", json=body)).json()
        except httpx.HTTPError:
            self.unanswered.append(item)
            return False
        receipt = answer["data"]["remember"]
        assert receipt["status"] in KEPT, answer
        # the same id never stands for two
        assert self.kept.setdefault(receipt["id"], item["text"]) == item["text"]
        if len(self.kept) >= self.wanted:
            self.enough.set()
        return True

    async def write(self, url: str, key: str, client: int) -> None:
        """Write until the server is gone: what it had no answer to at first, then new things."""
        headers = {"X-API-Key": key}
        async with httpx.AsyncClient(
            base_url=url, headers=headers, trust_env=False, timeout=PATIENCE_S
        ) as http:
            while self.unanswered:
                if not await self.send(http, self.unanswered.pop()):
                    return
            while True:
                name = uuid.uuid4().hex
                item = {"userId": "u1", "text": f"Parcel {name} was left at the door / 包裹{name}"}
                if client % 2:
                    item["id"] = name
                if not await self.send(http, item):
                    return


async def announced(process, log) -> str:
    async with asyncio.timeout(PATIENCE_S):
        while not (found := re.search(r"Serving (http://[\d.:]+)/graphql", log.read_text())):
            assert process.poll() is None, log.read_text()
            await asyncio.sleep(0.1)
    return found[1]


async def killed(ecphoria, said, key, how, log) -> int:
    """Serve, have clients write, end the server by a signal; return its exit status."""
    with log.open("wb") as stderr, ecphoria.started("serve", "--port", "0", stderr=stderr) as serve:
        url = await announced(serve, log)
        writers = [asyncio.create_task(said.write(url, key, each)) for each in range(CLIENTS)]
        async with asyncio.timeout(PATIENCE_S):
            ended = asyncio.gather(*writers)
            enough = asyncio.create_task(said.enough.wait())
            await asyncio.wait({ended, enough}, return_when=asyncio.FIRST_COMPLETED)
            assert said.enough.is_set(), log.read_text()
            serve.send_signal(how)
            await ended
            status = await asyncio.to_thread(serve.wait)
    assert "Traceback" not in log.read_text()
    return status


async def test_what_was_acknowledged_is_there_exactly_once(engine, ecphoria, tenant, tmp_path):
    _, key = await create_key(
        engine.graph,
        engine.clock,
        tenant=tenant,
        name="test",
        roles=[Role.AGENT],
        users=EveryUser.OF_TENANT,
    )
    said = Said(WRITES)
    assert await killed(ecphoria, said, key, signal.SIGKILL, tmp_path / "killed") == -signal.SIGKILL
    said.enough.clear()
    said.wanted = len(said.kept) + WRITES
    assert await killed(ecphoria, said, key, signal.SIGTERM, tmp_path / "ended") == 0

    await settle(engine, tenant)
    found = await check_index_equals_graph(engine, tenant)
    texts = Counter(memory.text for memory in found)
    assert set(texts.values()) == {1}
    assert said.kept.items() <= {memory.id: memory.text for memory in found}.items()
    sent = {*said.kept.values(), *(item["text"] for item in said.unanswered)}
    assert texts.keys() <= sent
