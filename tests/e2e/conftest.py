"""The command line as a user has it: a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import psutil
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT_S = 180


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


class Ecphoria:
    """Runs `ecphoria` with an environment."""

    def __init__(self, env: dict[str, str]) -> None:
        inherited = {key: value for key, value in os.environ.items() if "ECPHORIA_" not in key}
        # As wide as needed: messages are compared, not their layout. A dumb terminal has 80 columns
        # whatever one says.
        wide = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "xterm"}
        self.env = {**inherited, **wide, **env}

    def __call__(self, *args: object, stdin: bytes = b"", **env: str) -> Done:
        done = subprocess.run(
            self._command(args),
            env={**self.env, **env},
            input=stdin,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        found = Done(done.returncode, done.stdout.decode(), done.stderr.decode())
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


@pytest.fixture
def ecphoria(cli_env: dict[str, str]) -> Ecphoria:
    """The command line on the stores under test."""
    return Ecphoria(cli_env)


@pytest.fixture
def bare_ecphoria(embedded_env: dict[str, str]) -> Ecphoria:
    """The command line with an empty data directory: embedded stores of its own, or none."""
    return Ecphoria(embedded_env)
