"""The Redis server of the tests: found where it is, asked for by password, gone at the end."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import psutil
import pytest
import redis

from . import Unavailable, fetch, unavailable
from .redis_server import RedisServer

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.servers
def test_redis_listens_here_only_asks_for_its_password_and_ends(tmp_path: Path) -> None:
    try:
        server = RedisServer(tmp_path)
    except Unavailable as reason:
        unavailable(reason)
    with server:
        guard = psutil.Process(server.process.guard_pid)
        family = [guard, *guard.children(recursive=True)]
        addresses = {
            connection.laddr.ip
            for process in family
            for connection in process.net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        }
        assert addresses == {"127.0.0.1"}
        with redis.Redis(port=server.port) as client, pytest.raises(redis.AuthenticationError):
            client.ping()
        with redis.Redis.from_url(server.url) as client:
            client.set("key", "值")
            port, password = server.port, server.password
            server.kill9()
            server.start()
            assert (server.port, server.password) == (port, password)
            assert client.get("key") is None
        family += psutil.Process(server.process.guard_pid).children(recursive=True)
    assert not any(
        process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in family
    )


def test_a_redis_on_the_path_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "bin" / "redis-server"
    installed.parent.mkdir()
    installed.touch(mode=0o755)
    monkeypatch.setenv("ECPHORIA_TEST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(installed.parent))
    assert shutil.which("apt-get") is None
    assert fetch.fetch_redis() == installed
    assert fetch.redis_server() == (installed, {})


def test_a_machine_without_redis_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ECPHORIA_TEST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(fetch.MissingToolError, match="install Redis"):
        fetch.fetch_redis()
    with pytest.raises(Unavailable, match="install Redis"):
        RedisServer(tmp_path)
