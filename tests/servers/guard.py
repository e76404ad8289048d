"""Run one server process and never let it outlive the tests.

The tests start this file as a child; it starts the server as its own child and reads its standard
input. That pipe is held open by the tests only: it ends when they close it (a wish to stop) and
also when they are killed, whatever killed them. Should this process itself be killed, the kernel
kills the server (`PR_SET_PDEATHSIG`). The signal has to be asked for here and not in the tests: it
fires when the *thread* that started the child ends, and the tests start servers from threads.

With `--socket-fd` it is also the only way into a network namespace: that socket was bound outside,
so it accepts on the host's 127.0.0.1, while connections opened here stay inside.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import fcntl
import signal
import socket
import struct
import sys
from typing import NoReturn

PR_SET_PDEATHSIG = 1
SIOCGIFFLAGS = 0x8913
SIOCSIFFLAGS = 0x8914
IFF_UP = 1
CHUNK = 1 << 18

_libc = ctypes.CDLL(None)


def _die_with_parent() -> None:
    """Ask the kernel, between fork and exec, to kill the server when this process ends."""
    if sys.platform == "linux":
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def loopback_up() -> None:
    """Bring up `lo`, which is down in a new network namespace; spares the tests the `ip` tool."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("16sh22x", b"lo", 0)
        _, flags = struct.unpack("16sh22x", fcntl.ioctl(sock, SIOCGIFFLAGS, request))
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", flags | IFF_UP))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy one direction of a connection until either end goes away."""
    try:
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        # A peer that went away is the ordinary end of a connection, above all after a kill -9.
        return


async def _forward(listener: socket.socket, port: int) -> asyncio.Server:
    """Serve `listener` by connecting every client to 127.0.0.1:`port` of this namespace."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner_reader, inner_writer = await asyncio.open_connection(
                "127.0.0.1", port, limit=CHUNK
            )
        except OSError:
            writer.close()
            return
        pumps = [
            asyncio.create_task(_pump(reader, inner_writer)),
            asyncio.create_task(_pump(inner_reader, writer)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            writer.close()
            inner_writer.close()

    return await asyncio.start_server(serve, sock=listener, limit=CHUNK)


async def _healthy(port: int) -> bool:
    """Tell whether `/healthz` answers 200, which Milvus does when all its parts are up."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(b"GET /healthz HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
            return b" 200 " in await asyncio.wait_for(reader.readline(), 5)
        finally:
            writer.close()
    except (OSError, TimeoutError):
        return False


async def _open_the_way(listener: socket.socket, port: int, health_port: int) -> None:
    """Start to listen and forward once the server is healthy; earlier clients are refused."""
    while not await _healthy(health_port):  # noqa: ASYNC110 - a port has no event to wait for
        await asyncio.sleep(0.1)
    await (await _forward(listener, port)).serve_forever()


async def _run(arguments: argparse.Namespace) -> int:
    """Start the server, watch it and standard input, and see the server off.

    Returns:
        The server's return code, negative for a signal.
    """
    listener = None
    if arguments.socket_fd is not None:
        listener = socket.socket(fileno=arguments.socket_fd)
        loopback_up()
    server = await asyncio.create_subprocess_exec(
        *arguments.command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=sys.stderr,
        stderr=sys.stderr,
        preexec_fn=_die_with_parent,
    )
    print(server.pid, flush=True)  # noqa: T201 - the protocol: one line with the server's pid

    loop = asyncio.get_running_loop()
    stdin = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin)
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    ended = asyncio.create_task(server.wait())
    # Any of these ends the server; the last one is never done unless it fails.
    reasons: list[asyncio.Task[object]] = [
        asyncio.create_task(stdin.read()),
        asyncio.create_task(stop.wait()),
    ]
    if listener is not None:
        way = _open_the_way(listener, arguments.port, arguments.health_port)
        reasons.append(asyncio.create_task(way))

    await asyncio.wait([ended, *reasons], return_when=asyncio.FIRST_COMPLETED)
    if not ended.done():
        server.terminate()
        await asyncio.wait([ended], timeout=arguments.grace)
    if not ended.done():
        server.kill()
    code = await ended
    for reason in reasons:
        reason.cancel()
    for outcome in await asyncio.gather(*reasons, return_exceptions=True):
        if isinstance(outcome, Exception):
            raise outcome  # into the log; nothing else would tell why the way in was never open
    return code


def main() -> NoReturn:
    """Read the arguments and end with the server's own return code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--grace", type=float, default=30, help="seconds from SIGTERM to SIGKILL")
    parser.add_argument("--socket-fd", type=int, help="bound socket to serve; sets `lo` up")
    parser.add_argument("--port", type=int, help="where the server listens in here")
    parser.add_argument("--health-port", type=int, help="where `/healthz` answers in here")
    parser.add_argument("--probe", action="store_true", help="only try to set `lo` up")
    parser.add_argument("command", nargs="*", help="the server, after `--`")
    arguments = parser.parse_args()
    if arguments.probe:
        loopback_up()
        sys.exit(0)
    code = asyncio.run(_run(arguments))
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
