"""A local server that speaks the OpenAI-compatible chat protocol, well and badly, as scripted."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Literal, TypeAlias

KEY = "sk-test-5e6f7a8b9c0d"
PATH = "/v1/chat/completions"
# A drip is slow but never silent: no time-out of one read would notice.
_DRIP_S = 0.02


@dataclass(frozen=True)
class Request:
    """What the server received."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes
    peer: tuple[str, int]
    at: float

    @property
    def body(self) -> dict[str, Any]:
        return json.loads(self.raw)

    @property
    def system(self) -> str:
        (message,) = [item for item in self.body["messages"] if item["role"] == "system"]
        return message["content"]

    @property
    def user(self) -> str:
        (message,) = [item for item in self.body["messages"] if item["role"] == "user"]
        return message["content"]


@dataclass(frozen=True)
class Reply:
    """What the server sends.

    `ends`: ``well``; ``cut`` closes the connection in the middle of the body; ``never`` says
    nothing more after the request; ``drip`` goes on sending blanks for ever.
    """

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    ends: Literal["well", "cut", "never", "drip"] = "well"


Answer: TypeAlias = Reply | Callable[[Request], Reply | Awaitable[Reply]]

HANGS = Reply(ends="never")
CUTS = Reply(body=b'{"choices": [{"message": {"content": "{\\"fac', ends="cut")
DRIPS = Reply(ends="drip")


def says(
    answer: object,
    *,
    finish: str | None = "stop",
    usage: Any = None,
    refusal: str | None = None,
) -> Reply:
    """Return a good reply that holds an answer: words, or what they are the JSON of."""
    content = answer if isinstance(answer, str) or answer is None else json.dumps(answer)
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_767_000_000,
        "model": "test-model",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, "refusal": refusal},
                "finish_reason": finish,
            }
        ],
        "usage": {"prompt_tokens": 70, "completion_tokens": 30, "total_tokens": 100}
        if usage is None
        else usage,
    }
    return Reply(body=json.dumps(body).encode())


def refuses(status: int, message: str = "no", **headers: str) -> Reply:
    """Return an error as OpenAI sends it; header names are written with ``_``."""
    body = {"error": {"message": message, "type": "invalid_request_error", "param": None}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, json.dumps(body).encode(), named)


def wants_key(reply: Reply) -> Answer:
    """Return a reply only for who brings the right key."""

    def check(request: Request) -> Reply:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        return reply if given == KEY else refuses(401, f"Incorrect API key provided: {given}.")

    return check


def without_schemas(reply: Reply) -> Answer:
    """Return a reply only where no JSON schema is asked for."""

    def check(request: Request) -> Reply:
        if request.body["response_format"]["type"] == "json_schema":
            return refuses(400, "This response_format type is unavailable now")
        return reply

    return check


class ChatServer:
    """A running server. It gives the scripted answers one by one, the last one for ever."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[Request] = []
        self.under_way = 0
        self.most_under_way = 0
        self._script: deque[Answer] = deque()

    def will(self, *answers: Answer) -> None:
        """Set what it answers from now on."""
        self._script = deque(answers)

    async def reply_to(self, request: Request) -> Reply:
        self.requests.append(request)
        answer = self._script.popleft() if len(self._script) > 1 else self._script[0]
        if isinstance(answer, Reply):
            return answer
        reply = answer(request)
        return reply if isinstance(reply, Reply) else await reply


async def _request(reader: asyncio.StreamReader, peer: tuple[str, int]) -> Request:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").rstrip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines)
    }
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path, headers, raw, peer, asyncio.get_running_loop().time())


async def _send(reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Send a reply; return whether the connection stays open."""
    if reply.ends == "never":
        await reader.read()  # until the client goes away
        return False
    length = {"transfer-encoding": "chunked"}
    if reply.ends != "drip":
        length = {"content-length": str(len(reply.body) + 100 * (reply.ends == "cut"))}
    headers = {"content-type": "application/json"} | length | reply.headers
    lines = [f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + reply.body)
    await writer.drain()
    while reply.ends == "drip":
        writer.write(b"1\r\n \r\n")
        await writer.drain()
        await asyncio.sleep(_DRIP_S)
    return reply.ends == "well"


@contextlib.asynccontextmanager
async def running_chat_server() -> AsyncIterator[ChatServer]:
    """Run a server on a free port of this machine, in this event loop."""
    tasks: set[asyncio.Task[None]] = set()
    server: ChatServer | None = None

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert server is not None
        # the client went away
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            is_open = True
            while is_open:
                request = await _request(reader, writer.get_extra_info("peername"))
                server.under_way += 1
                server.most_under_way = max(server.most_under_way, server.under_way)
                try:
                    is_open = await _send(await server.reply_to(request), reader, writer)
                finally:
                    server.under_way -= 1
        writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    listening = await asyncio.start_server(accept, "127.0.0.1", 0, limit=2**22)
    port = listening.sockets[0].getsockname()[1]
    server = ChatServer(f"http://127.0.0.1:{port}/v1")
    try:
        yield server
    finally:
        listening.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
