"""What the servers have in common: a guarded child process, free ports, waiting until ready."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

GUARD = Path(__file__).with_name("guard.py")
READY_SECONDS = 120.0
PORT_ATTEMPTS = 3


class Unavailable(Exception):
    """The server cannot run on this machine; the message says why and how to change that."""


class StartError(RuntimeError):
    """A server that should run did not start; the message ends with its last log lines."""


class Handle(Protocol):
    """The life of one server, the same for a process and for a container."""

    def start(self) -> Self:
        """Start, or start again on the same data and port, and wait until it answers."""
        ...

    def stop(self) -> None:
        """Stop in good order; harmless when it is not running."""
        ...

    def kill9(self) -> None:
        """End it without any chance to clean up, as a crash does."""
        ...


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port


def tail(path: Path, lines: int = 30) -> str:
    """Return the last lines of a log, for error messages."""
    if not path.exists():
        return f"({path.name} was never written)"
    text = path.read_text(errors="replace")
    # A crash in Go prints its reason and then the stacks of hundreds of goroutines.
    return "\n".join(text.split("\ngoroutine ", 1)[0].splitlines()[-lines:])


class GuardedProcess:
    """A server process under `guard.py`, which ends it when this process is gone."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        log: Path,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        prelude: Sequence[str] = (),
        guard_options: Sequence[str] = (),
        pass_fds: Sequence[int] = (),
        grace: float = 30,
    ) -> None:
        """Start the guard and the server.

        Args:
            command: The server and its arguments.
            log: Where standard output and error of both are appended.
            cwd: The server's working directory.
            env: Environment of the server; the own one by default.
            prelude: Command that runs the guard, such as `unshare`.
            guard_options: More options of `guard.py`.
            pass_fds: File descriptors the guard inherits.
            grace: Seconds from SIGTERM to SIGKILL.

        Raises:
            StartError: When the server could not even be executed.
        """
        self.log = log
        self._grace = grace
        guard = [sys.executable, "-I", str(GUARD), f"--grace={grace}", *guard_options, "--"]
        with log.open("ab") as out:
            # A session of its own: Ctrl-C must reach the tests only, which then stop the server.
            self._guard = subprocess.Popen(
                [*prelude, *guard, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=out,
                cwd=cwd,
                env=env,
                pass_fds=pass_fds,
                start_new_session=True,
            )
        line = self._guard.stdout.readline() if self._guard.stdout else b""
        if not line.strip().isdigit():
            self.stop()
            message = f"{command[0]} could not be started:\n{tail(log)}"
            raise StartError(message)
        self.pid = int(line)
        self.guard_pid = self._guard.pid

    @property
    def alive(self) -> bool:
        """Whether the server runs."""
        return self._guard.poll() is None

    def stop(self) -> int:
        """Stop the server in good order, harder after the grace time.

        Returns:
            The guard's return code: the server's, or 128 + the signal that ended it.
        """
        if self._guard.stdin and not self._guard.stdin.closed:
            self._guard.stdin.close()
        return self._reap()

    def kill9(self) -> int:
        """Kill the server with SIGKILL and wait until it is gone."""
        if self.alive:
            os.kill(self.pid, signal.SIGKILL)
        return self._reap()

    def _reap(self) -> int:
        try:
            code = self._guard.wait(self._grace + 15)
        except subprocess.TimeoutExpired:
            # The kernel then kills the server too, see `guard.py`.
            self._guard.kill()
            code = self._guard.wait()
        for pipe in (self._guard.stdin, self._guard.stdout):
            if pipe:
                pipe.close()
        return code


def wait_until(
    ready: Callable[[], bool],
    *,
    name: str,
    alive: Callable[[], bool],
    log: Callable[[], str],
    retry_on: tuple[type[Exception], ...],
    timeout: float = READY_SECONDS,
) -> None:
    """Call `ready` until it says yes.

    Args:
        ready: Asks the server; may raise one of `retry_on`.
        name: The server, for the error message.
        alive: Whether it is worth waiting on.
        log: Returns the last log lines, for the error message.
        retry_on: Exceptions that mean "not yet".
        timeout: Seconds to wait at most.

    Raises:
        StartError: When it ended or did not answer in time.
    """
    deadline = time.monotonic() + timeout
    reason: object = "no answer"
    while time.monotonic() < deadline:
        try:
            if ready():
                return
        except retry_on as error:
            reason = error
        if not alive():
            message = f"{name} ended while starting:\n{log()}"
            raise StartError(message)
        time.sleep(0.1)
    message = f"{name} was not ready after {timeout:.0f} s ({reason}):\n{log()}"
    raise StartError(message)


class Server:
    """What a server of one guarded process does: start on a free port, stop, die, start again.

    Attributes:
        NAME: What messages call it.
    """

    NAME = ""

    def __init__(self, data_dir: Path, grace: float) -> None:
        """Prepare a server; nothing runs yet."""
        self.home = data_dir.absolute()
        self._grace = grace
        self._process: GuardedProcess | None = None

    @property
    def process(self) -> GuardedProcess:
        """The running process.

        Raises:
            StartError: When it was not started.
        """
        if self._process is None:
            message = f"{self.NAME} was not started"
            raise StartError(message)
        return self._process

    def start(self) -> Self:
        """Start, or start again on the same data and port, and wait until it answers.

        Raises:
            StartError: When it does not; the message ends with the last log lines.
        """
        if self._process is not None and self._process.alive:
            return self
        self._prepare_home()
        fixed = self._has_port
        for attempt in range(1, PORT_ATTEMPTS + 1):
            if not fixed:
                self._choose_port()
            try:
                self._start_once()
            except StartError as error:
                taken = "Address already in use" in str(error)
                # Somebody else took the port between our look and the server's bind.
                if taken and not fixed and attempt < PORT_ATTEMPTS:
                    continue
                raise
            except BaseException:
                self.kill9()  # also on Ctrl-C while waiting
                raise
            break
        return self

    def stop(self) -> None:
        """Stop in good order; harmless when it is not running."""
        if self._process is not None:
            self._process.stop()

    def kill9(self) -> None:
        """Kill it with SIGKILL, as a crash would, and wait until it is gone."""
        if self._process is not None:
            self._process.kill9()

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.stop()

    @property
    def _has_port(self) -> bool:
        raise NotImplementedError

    def _choose_port(self) -> None:
        raise NotImplementedError

    def _prepare_home(self) -> None:
        raise NotImplementedError

    def _start_once(self) -> None:
        raise NotImplementedError
