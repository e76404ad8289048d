"""Clients that dribble, do not read, or are gone: they lose their connection, others go on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from ecphoria.model import ChangeKind, MemoryChange
from ecphoria.settings import Settings
from ecphoria_graphql.app import create_app_for
from ecphoria_graphql.server import running_server

from .conftest import NOW, PATIENCE_S, Server, until_followed

pytestmark = pytest.mark.asyncio(loop_scope="session")

FOLLOW = 'subscription { memoryChanged(userId: "u1") { memory { text } } }'
SECONDS = 0.3
# that no compression makes short
LONG = secrets.token_hex(200_000)


@pytest.fixture
def settings(tmp_path: Any) -> Settings:
    return Settings(data_dir=tmp_path, _env_file=None, client_timeout_s=SECONDS)


@dataclass
class Raw:
    """A client that says byte by byte what it wants to."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ended(self) -> bytes:
        """Return what still came, once the server has ended the connection."""
        async with asyncio.timeout(PATIENCE_S):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""


@dataclass
class Slow:
    """A server that waits for no one, and who asks it."""

    url: str
    key: str

    def head(self, accept: str = "application/json", length: int | None = None) -> bytes:
        lines = [
            "POST /graphql HTTP/1.1",
            "Host: x",
            f"X-API-Key: {self.key}",
            "Content-Type: application/json",
            f"Accept: {accept}",
            *([] if length is None else [f"Content-Length: {length}"]),
        ]
        return "\r\n".join(lines).encode()

    @contextlib.asynccontextmanager
    async def connected(self, receive_buffer: int | None = None) -> AsyncIterator[Raw]:
        host, port = self.url.removeprefix("http://").split(":")
        sock = socket.socket()
        sock.setblocking(False)  # noqa: FBT003 - the socket module's signature
        if receive_buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        await asyncio.get_running_loop().sock_connect(sock, (host, int(port)))
        # a reader that takes in no more than it is asked for
        reader, writer = await asyncio.open_connection(sock=sock, limit=1)
        try:
            yield Raw(reader, writer)
        finally:
            writer.transport.abort()

    async def goes_on(self) -> None:
        """Check that others are answered."""
        async with httpx.AsyncClient(base_url=self.url, trust_env=False, timeout=30) as http:
            answer = await http.post(
                "/graphql",
                json={"query": '{ memory(userId: "u1", id: "m1") { id } }'},
                headers={"X-API-Key": self.key},
            )
        assert answer.json() == {"data": {"memory": {"id": "m1"}}}


@pytest.fixture
async def slow(shop: Any, new_key: Any) -> AsyncIterator[Slow]:
    key = await new_key(shop, "t")
    async with running_server(create_app_for(shop), client_timeout_s=SECONDS) as url:
        yield Slow(url, key)


@pytest.mark.parametrize("head", [b"", b"POST /graphql HTTP/1.1\r\nHost: x\r\nX-A"])
async def test_a_head_that_never_ends(slow: Slow, head: bytes) -> None:
    async with slow.connected() as raw:
        raw.writer.write(head)
        await slow.goes_on()
        assert await raw.ended() == b""


async def test_a_second_head_that_never_ends(slow: Slow) -> None:
    body = b'{"query": "{ __typename }"}'
    async with slow.connected() as raw:
        raw.writer.write(slow.head(length=len(body)) + b"\r\n\r\n" + body)
        answer = b""
        async with asyncio.timeout(PATIENCE_S):
            while b"Query" not in answer:
                answer += await raw.reader.read(4096)
        raw.writer.write(b"POST /gra")
        assert b"200 OK" not in await raw.ended()
    await slow.goes_on()


async def test_a_body_that_dribbles_is_told_so(slow: Slow) -> None:
    async with slow.connected() as raw:
        raw.writer.write(slow.head(length=1000) + b"\r\n\r\n")

        async def dribble() -> None:
            while True:
                raw.writer.write(b" ")
                await asyncio.sleep(SECONDS / 10)

        dribbling = asyncio.create_task(dribble())
        try:
            await slow.goes_on()
            answer = await raw.ended()
        finally:
            dribbling.cancel()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    (error,) = json.loads(body)["errors"]
    assert error["extensions"]["code"] == "BAD_REQUEST"
    assert f"{SECONDS:g} seconds" in error["message"]


async def test_a_follower_that_does_not_read_is_followed_no_more(shop: Any, slow: Slow) -> None:
    body = json.dumps({"query": FOLLOW}).encode()
    shop.memory_row("m1", LONG)
    async with slow.connected(receive_buffer=4096) as raw:
        raw.writer.write(slow.head("text/event-stream", len(body)) + b"\r\n\r\n" + body)
        await until_followed(shop, "t", "u1")
        async with asyncio.timeout(PATIENCE_S):
            while shop.changes._listeners:
                shop.changes.publish([MemoryChange(ChangeKind.CREATED, "t", "u1", "m1", NOW)])
                await asyncio.sleep(0.01)
    await slow.goes_on()


async def test_a_websocket_that_is_not_read_is_closed(shop: Any, slow: Slow) -> None:
    shop.memory_row("m1", LONG)
    async with Server(slow.url).connect(slow.key) as live:
        await live.begin()
        await live.subscribe("1", FOLLOW)
        await until_followed(shop, "t", "u1")
        live.socket.transport.pause_reading()
        async with asyncio.timeout(PATIENCE_S):
            while shop.changes._listeners:
                shop.changes.publish([MemoryChange(ChangeKind.CREATED, "t", "u1", "m1", NOW)])
                await asyncio.sleep(0.01)
        live.socket.transport.abort()
    await slow.goes_on()


async def test_who_waits_for_news_is_not_slow(shop: Any, slow: Slow) -> None:
    async with Server(slow.url).connect(slow.key) as live:
        await live.begin()
        await live.subscribe("1", FOLLOW)
        await until_followed(shop, "t", "u1")
        body = json.dumps({"query": FOLLOW}).encode()
        async with slow.connected() as raw:
            raw.writer.write(slow.head("text/event-stream", len(body)) + b"\r\n\r\n" + body)
            await until_followed(shop, "t", "u1", times=2)
            # as long as it takes for another, who is slow
            async with slow.connected() as other:
                assert await other.ended() == b""
            shop.changes.publish([MemoryChange(ChangeKind.CREATED, "t", "u1", "m1", NOW)])
            assert (await live.next("1"))["memoryChanged"]["memory"]["text"]
            heard = b""
            async with asyncio.timeout(PATIENCE_S):
                while b"memoryChanged" not in heard:
                    heard += await raw.reader.read(4096)


async def test_the_system_asks_for_clients_that_are_gone(
    slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ecphoria_graphql import slow_clients  # noqa: PLC0415

    seen = []
    watch = slow_clients._watch

    def watching(transport: Any, seconds: float) -> None:
        watch(transport, seconds)
        seen.append(
            transport.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        )

    monkeypatch.setattr(slow_clients, "_watch", watching)
    await slow.goes_on()
    assert seen == [1]
