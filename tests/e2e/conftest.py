"""The command line as a user has it: a process of its own.

It is forked from one that has everything imported (`forked_cli`): a command takes the time of what
it does. That it starts from nothing is proved by the tests of `started`, and by tests/docs.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import psutil
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT_S = 180
FORKED = Path(__file__).with_name("forked_cli.py")
# As wide as needed: messages are compared, not their layout. A dumb terminal has 80 columns
# whatever one says.
WIDE = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "xterm"}


@dataclass(frozen=True)
class Done:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code in {0, 1}, self
        return json.loads(self.out)


def inherited() -> dict[str, str]:
    """Return the environment of the tests, without settings."""
    return {key: value for key, value in os.environ.items() if "ECPHORIA_" not in key} | WIDE


class Forks:
    """Runs commands in processes that are forked from one with everything imported."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server = subprocess.Popen(
            [sys.executable, str(FORKED)],
            env=inherited(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, args: list[str], env: dict[str, str], stdin: bytes) -> Done:
        """Run a command to its end."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            files = {name: Path(folder) / name for name in ("stdin", "stdout", "stderr")}
            files["stdin"].write_bytes(stdin)
            command = {
                "args": args,
                "env": env,
                "cwd": str(Path.cwd()),
                "timeout_s": TIMEOUT_S,
                **{name: str(file) for name, file in files.items()},
            }
            with self._lock:
                self._server.stdin.write(json.dumps(command) + "\n")
                self._server.stdin.flush()
                ended = json.loads(self._server.stdout.readline())
            out, err = (files[name].read_bytes().decode() for name in ("stdout", "stderr"))
        return Done(ended["code"], out, err)

    def close(self) -> None:
        """End the process that the others are forked from."""
        self._server.communicate()


class Ecphoria:
    """Runs `ecphoria` with an environment."""

    def __init__(self, forks: Forks, env: dict[str, str]) -> None:
        self._forks = forks
        self.env = inherited() | env

    def __call__(self, *args: object, stdin: bytes = b"", **env: str) -> Done:
        found = self._forks.run([*map(str, args)], self.env | env, stdin)
        assert "Traceback" not in found.err, found.err
        return found

    @contextlib.contextmanager
    def started(self, *args: object, stderr: IO[bytes] | int) -> Iterator[subprocess.Popen[bytes]]:
        """Start a command and end it, with whatever it started, at the end of the block."""
        process = subprocess.Popen(
            self._command(args), env=self.env, stdout=subprocess.PIPE, stderr=stderr
        )
        try:
            yield process
        finally:
            with contextlib.suppress(psutil.NoSuchProcess):
                for child in psutil.Process(process.pid).children(recursive=True):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        child.kill()
            process.kill()
            process.communicate()

    @staticmethod
    def _command(args: tuple[object, ...]) -> list[str]:
        return [sys.executable, "-m", "ecphoria", *map(str, args)]


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """The process that commands are forked from."""
    made = Forks()
    yield made
    made.close()


@pytest.fixture
def ecphoria(forks: Forks, cli_env: dict[str, str]) -> Ecphoria:
    """The command line on the stores under test."""
    return Ecphoria(forks, cli_env)


@pytest.fixture
def bare_ecphoria(forks: Forks, embedded_env: dict[str, str]) -> Ecphoria:
    """The command line with an empty data directory: embedded stores of its own, or none."""
    return Ecphoria(forks, embedded_env)
