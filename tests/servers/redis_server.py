"""A real Redis server for tests: one process, one port on 127.0.0.1, nothing kept on disk."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

import redis

from . import fetch
from .process import GuardedProcess, Server, Unavailable, free_port, tail, wait_until

if TYPE_CHECKING:
    from pathlib import Path


def ping(url: str) -> bool:
    """Say PING as a client would.

    Raises:
        redis.RedisError: When nobody answers, which may mean "not yet".
    """
    with redis.Redis.from_url(url, socket_timeout=5) as client:
        return bool(client.ping())


class RedisServer(Server):
    """A Redis server that lives as long as its `with` block, and never longer than the tests.

    Started again it has the same port and password, and no data.
    """

    NAME = "Redis"

    def __init__(self, data_dir: Path, *, grace: float = 10) -> None:
        """Prepare a server; nothing runs yet.

        Args:
            data_dir: For its configuration and log. Made when missing.
            grace: Seconds to stop in good order before it is killed.

        Raises:
            Unavailable: When Redis is not on this machine.
        """
        try:
            self._server, self._env = fetch.redis_server()
        except fetch.MissingToolError as error:
            raise Unavailable(str(error)) from error
        super().__init__(data_dir, grace)
        self.password = secrets.token_urlsafe(24)
        self.port = 0

    @property
    def url(self) -> str:
        """URL for clients, known once started."""
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    @property
    def _has_port(self) -> bool:
        return bool(self.port)

    def _choose_port(self) -> None:
        self.port = free_port()

    def _prepare_home(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)

    def _start_once(self) -> None:
        # in a file: arguments can be read by every user of the machine
        config = self.home / "redis.conf"
        config.touch(mode=0o600)
        config.write_text(
            "bind 127.0.0.1\n"
            f"port {self.port}\n"
            f"requirepass {self.password}\n"
            "protected-mode yes\n"
            "daemonize no\n"
            'save ""\n'
            "appendonly no\n"
        )
        log = self.home / "redis.log"
        self._process = GuardedProcess(
            [str(self._server), str(config)],
            log=log,
            cwd=self.home,
            env={**os.environ, **self._env},
            grace=self._grace,
        )
        process = self._process
        wait_until(
            lambda: ping(self.url),
            name="Redis",
            alive=lambda: process.alive,
            log=lambda: tail(log),
            retry_on=(redis.RedisError, OSError),
        )
