"""Clients that take their time: none holds a connection for ever.

A client has so many seconds to bring a request's head, and as many to read what it was sent before
more of it fits. What waits for the server (an answer in the making, a subscription without news)
has no limit here. Bodies are `limits.BodyLimit`'s; websockets are pinged by uvicorn besides.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, TimerHandle, Transport

CLIENT_TIMEOUT_S = 60.0
# A host that is gone without a word is asked for after the client's time, and so often at last.
_PROBES, _PROBE_S = 3, 10


class PatientConfig(uvicorn.Config):
    """Uvicorn's configuration, and how long a client may take."""

    client_timeout_s: float = CLIENT_TIMEOUT_S


def client_timeout_s(config: uvicorn.Config) -> float:
    """Return how long a client may take, in seconds."""
    return config.client_timeout_s if isinstance(config, PatientConfig) else CLIENT_TIMEOUT_S


class _Unread:
    """Ends a connection whose client does not read."""

    def __init__(self, loop: AbstractEventLoop, seconds: float) -> None:
        self._loop = loop
        self._seconds = seconds
        self._timer: TimerHandle | None = None

    def begin(self, transport: Transport) -> None:
        if self._timer is None:
            # closing in good order would wait for the same client
            self._timer = self._loop.call_later(self._seconds, transport.abort)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _watch(transport: Transport, seconds: float) -> None:
    """Have the system notice a client that is gone without a word."""
    sock = transport.get_extra_info("socket")
    if sock is None or sock.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # names that not every system has
    for name, value in (
        ("TCP_KEEPIDLE", max(1, round(seconds))),
        ("TCP_KEEPINTVL", _PROBE_S),
        ("TCP_KEEPCNT", _PROBES),
        ("TCP_USER_TIMEOUT", max(1, round(seconds * 1000))),
    ):
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


class PatientHttp(H11Protocol):
    """A connection over HTTP that ends when its client takes too long."""

    def __init__(self, config: uvicorn.Config, *args: Any, **options: Any) -> None:  # noqa: ANN401 - uvicorn's signature
        """Begin without a connection."""
        super().__init__(config, *args, **options)
        self._seconds = client_timeout_s(config)
        self._unread = _Unread(self.loop, self._seconds)
        self._head: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as uvicorn
        """Wait for the head of the first request."""
        super().connection_made(transport)
        _watch(transport, self._seconds)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Read on; the time for a head runs from its first byte."""
        super().data_received(data)
        answering = self.cycle is not None and not self.cycle.response_complete
        if answering or self.transport.is_closing() or self.transport.get_protocol() is not self:
            self._cancel_head()
        elif self.timeout_keep_alive_task is None:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers."""
        self._cancel_head()
        self._unread.end()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for the client to read."""
        self._unread.begin(self.transport)
        super().pause_writing()

    def resume_writing(self) -> None:
        """Write on."""
        self._unread.end()
        super().resume_writing()

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the last bytes to be read."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._unread.begin(self.transport)

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that nothing comes over."""
        super().timeout_keep_alive_handler()
        self._unread.begin(self.transport)

    def _await_head(self) -> None:
        if self._head is None:
            self._head = self.loop.call_later(self._seconds, self.transport.abort)

    def _cancel_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None


class PatientSocket(WebSocketsSansIOProtocol):
    """A websocket that ends when its client does not read."""

    def __init__(self, config: uvicorn.Config, *args: Any, **options: Any) -> None:  # noqa: ANN401 - uvicorn's signature
        """Begin without a connection."""
        super().__init__(config, *args, **options)
        self._unread = _Unread(self.loop, client_timeout_s(config))

    def pause_writing(self) -> None:
        """Wait for the client to read."""
        self._unread.begin(self.transport)
        super().pause_writing()

    def resume_writing(self) -> None:
        """Write on."""
        self._unread.end()
        super().resume_writing()

    def keepalive_timeout(self) -> None:
        """Close a connection whose client does not answer."""
        super().keepalive_timeout()
        self._unread.begin(self.transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timer."""
        self._unread.end()
        super().connection_lost(exc)
