"""Running the application: in the foreground for `serve`, in the background for `demo`."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import os
import signal
import socket
from typing import TYPE_CHECKING

import uvicorn

from ecphoria.engine import Engine
from ecphoria.errors import ConfigurationInvalid, InternalError, PortInUse
from ecphoria_graphql.app import create_app_for
from ecphoria_graphql.slow_clients import (
    CLIENT_TIMEOUT_S,
    PatientConfig,
    PatientHttp,
    PatientSocket,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from starlette.types import ASGIApp

    from ecphoria.settings import Settings

GRACE_S = 10
_BACKLOG = 2048
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _Server(uvicorn.Server):
    """A server that leaves signals to whoever runs it.

    Uvicorn's own handling raises the signal again when it is done, which ends the process before
    the embedded stores are closed.
    """

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def bind(host: str, port: int) -> socket.socket:
    """Take a port before anything heavy is done.

    Args:
        host: Name or address to listen on.
        port: 0 = any free one; the socket tells which.

    Raises:
        PortInUse: When another program listens there.
        ConfigurationInvalid: When the address is not one of this machine, or may not be used.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        msg = f"cannot listen on {host!r}: {error}"
        raise ConfigurationInvalid(msg) from error
    listener = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":
            # a port whose last connections linger is free; on Windows this would share it
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            msg = f"port {port} on {host} is taken by another program"
            raise PortInUse(msg) from error
        msg = f"cannot listen on {host} port {port}: {error.strerror}"
        raise ConfigurationInvalid(msg) from error
    listener.setblocking(False)  # noqa: FBT003 - the socket module's signature
    return listener


def base_url(listener: socket.socket) -> str:
    """Return the URL under which a listening socket is reached from this machine."""
    host, port = listener.getsockname()[:2]
    address = ipaddress.ip_address(host.partition("%")[0])
    if address.is_unspecified:
        host = "127.0.0.1" if address.version == 4 else "::1"  # noqa: PLR2004 - IPv4
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _server(app: ASGIApp, client_timeout_s: float) -> _Server:
    config = PatientConfig(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        http=PatientHttp,
        ws=PatientSocket,
        lifespan="on",
        timeout_graceful_shutdown=GRACE_S,
    )
    config.client_timeout_s = client_timeout_s
    return _Server(config)


async def _started(server: _Server, running: asyncio.Task[None]) -> None:
    while not server.started:
        await asyncio.wait({running}, timeout=0.01)
        if running.done():
            # reading the result would raise uvicorn's SystemExit
            msg = "the HTTP server did not start; the log has the cause"
            raise InternalError(msg)


async def _run(server: _Server, listener: socket.socket) -> None:
    try:
        await server.serve(sockets=[listener])
    except SystemExit as error:
        # how uvicorn says that the lifespan failed; its log has the cause
        msg = "the HTTP server did not start; the log has the cause"
        raise InternalError(msg) from error


@contextlib.asynccontextmanager
async def running_server(
    app: ASGIApp,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    client_timeout_s: float = CLIENT_TIMEOUT_S,
) -> AsyncIterator[str]:
    """Serve an application in the background of this event loop; yield its base URL.

    Signals stay the caller's. On leaving, requests under way are finished.

    Args:
        app: What answers.
        host: Address to listen on.
        port: 0 = any free one.
        client_timeout_s: How long a client may take to ask, and to read; in seconds.

    Raises:
        PortInUse: When another program listens there.
        ConfigurationInvalid: When the address cannot be used.
        InternalError: When the application does not start.
    """
    with contextlib.closing(bind(host, port)) as listener:
        url = base_url(listener)
        server = _server(app, client_timeout_s)
        running = asyncio.create_task(_run(server, listener), name="http server")
        try:
            await _started(server, running)
            yield url
        finally:
            server.should_exit = True
            await asyncio.gather(running, return_exceptions=True)


async def _serve(
    settings: Settings, listener: socket.socket, announce: Callable[[str], None]
) -> None:
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    server: _Server | None = None

    def stop(number: int) -> None:
        if server is not None:
            server.handle_exit(number, None)
        elif task is not None:
            # still opening the stores: unwind, so that they are closed again
            task.cancel()

    for number in _SIGNALS:
        # Windows has none; there Ctrl-C cancels the whole
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stop, number)
    try:
        async with Engine.open(settings) as engine:
            server = _server(create_app_for(engine), settings.client_timeout_s)
            running = asyncio.create_task(_run(server, listener), name="http server")
            try:
                await _started(server, running)
                announce(base_url(listener))
                await running
            finally:
                server.should_exit = True
                await asyncio.gather(running, return_exceptions=True)
    finally:
        for number in _SIGNALS:
            with contextlib.suppress(NotImplementedError):
                loop.remove_signal_handler(number)


def serve(
    settings: Settings,
    host: str | None = None,
    port: int | None = None,
    *,
    announce: Callable[[str], None] = print,
) -> None:
    """Serve until SIGINT or SIGTERM; then finish requests and close the stores.

    Args:
        settings: Of the engine; also give host and port where the arguments do not.
        host: Address to listen on.
        port: Port to listen on; 0 = any free one.
        announce: Told the base URL once requests are answered.

    Raises:
        PortInUse: When another program listens there, before any store is opened.
        ConfigurationInvalid: When the address cannot be used.
        EcphoriaError: When the engine cannot be opened.
    """
    address = settings.host if host is None else host
    with (
        contextlib.closing(bind(address, settings.port if port is None else port)) as listener,
        # cancelled by a signal while opening: that was asked for
        contextlib.suppress(asyncio.CancelledError),
    ):
        asyncio.run(_serve(settings, listener, announce))
