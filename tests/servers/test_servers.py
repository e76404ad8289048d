"""The test servers themselves: they start, keep what they acknowledged, and never stay behind."""

from __future__ import annotations

import gc
import hashlib
import os
import signal
import subprocess
import sys
import time
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, cast

import httpx
import neo4j
import psutil
import pytest
from pymilvus import MilvusClient

from . import Kind, Servers, Unavailable, open_servers, unavailable
from .milvus_server import MilvusServer
from .neo4j_server import Neo4jServer, auth_line
from .process import GuardedProcess, StartError, tail

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KIND = cast("Kind", os.environ.get("ECPHORIA_TEST_SERVERS", "servers"))
ROWS = 200
DIMENSION = 8


def family(process: GuardedProcess) -> list[psutil.Process]:
    """Return the guard and everything below it."""
    guard = psutil.Process(process.guard_pid)
    return [guard, *guard.children(recursive=True)]


def listening(processes: list[psutil.Process]) -> set[str]:
    """Return the addresses these processes listen on, as seen from the host's network."""
    hosts = set()
    for process in processes:
        for connection in process.net_connections("inet"):
            if connection.status == psutil.CONN_LISTEN:
                address = ip_address(connection.laddr.ip)
                mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
                hosts.add(str(mapped or address))
    return hosts


def gone(processes: list[psutil.Process], timeout: float = 10) -> bool:
    """Tell whether all of them have ended; a zombie that nobody reaps has."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in processes):
            return True
        time.sleep(0.05)
    return False


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Both servers; afterwards nothing of them is left."""
    processes: list[psutil.Process] = []
    try:
        with open_servers(KIND, tmp_path_factory.mktemp("servers")) as opened:
            yield opened
            for handle in (opened.neo4j, opened.milvus):
                if isinstance(handle, Neo4jServer | MilvusServer):
                    processes += family(handle.process)
    except Unavailable as reason:
        unavailable(reason)
    assert gone(processes, timeout=0.1)


@pytest.mark.servers
def test_neo4j_keeps_acknowledged_rows_over_kill_9(servers: Servers) -> None:
    """Commit, kill -9, start again at the same place: the rows are there."""
    rows = list(range(ROWS))
    with neo4j.GraphDatabase.driver(servers.neo4j_uri, auth=servers.neo4j_auth) as driver:
        driver.execute_query(
            "UNWIND $rows AS id CREATE (:Probe {id: id})",
            rows=rows,
            database_=servers.neo4j_database,
        )
    servers.neo4j.kill9()
    servers.neo4j.start()
    with neo4j.GraphDatabase.driver(servers.neo4j_uri, auth=servers.neo4j_auth) as driver:
        found, _, _ = driver.execute_query(
            "MATCH (p:Probe) RETURN p.id AS id ORDER BY id", database_=servers.neo4j_database
        )
    assert [record["id"] for record in found] == rows


@pytest.mark.servers
def test_neo4j_refuses_another_password(servers: Servers) -> None:
    """The password that was written without Neo4j's own tool is really asked for."""
    wrong = (servers.neo4j_user, "wrong")
    with (
        neo4j.GraphDatabase.driver(servers.neo4j_uri, auth=wrong) as driver,
        pytest.raises(neo4j.exceptions.AuthError),
    ):
        driver.verify_connectivity()


@pytest.mark.servers
def test_milvus_keeps_acknowledged_rows_over_kill_9(servers: Servers) -> None:
    """Insert without a flush, kill -9, start again at the same place: the rows are there."""
    client = MilvusClient(uri=servers.milvus_uri)
    client.create_collection("probe", dimension=DIMENSION, consistency_level="Strong")
    rows = [{"id": i, "vector": [float(i + j + 1) for j in range(DIMENSION)]} for i in range(ROWS)]
    assert client.insert("probe", rows)["insert_count"] == ROWS
    client.close()
    servers.milvus.kill9()
    servers.milvus.start()
    client = MilvusClient(uri=servers.milvus_uri)
    client.load_collection("probe", timeout=60)
    found = client.query("probe", filter="id >= 0", output_fields=["id"], limit=ROWS * 2)
    nearest = client.search("probe", data=[rows[7]["vector"]], limit=1, search_params={})
    client.close()
    assert sorted(row["id"] for row in found) == list(range(ROWS))
    assert nearest[0][0]["distance"] == pytest.approx(1, abs=1e-3)


@pytest.mark.servers
def test_only_the_loopback_address_is_listened_on(servers: Servers) -> None:
    """Nobody outside this machine can reach a test server."""
    for handle in (servers.neo4j, servers.milvus):
        if isinstance(handle, Neo4jServer | MilvusServer):
            assert listening(family(handle.process)) == {"127.0.0.1"}


@pytest.mark.servers
def test_neo4j_serves_its_browser_when_asked(tmp_path: Path) -> None:
    """The Browser is served on 127.0.0.1, and the same home opens with the same password."""
    try:
        server = Neo4jServer(tmp_path, browser=True)
    except Unavailable as reason:
        unavailable(reason)
    with server:
        page = httpx.get(server.browser_uri, timeout=30)
        assert "Neo4j Browser" in page.text
        assert listening(family(server.process)) == {"127.0.0.1"}
        processes = family(server.process)
    assert gone(processes, timeout=0.1)


def test_the_server_ends_when_the_tests_are_killed(tmp_path: Path) -> None:
    """`kill -9` of the process that holds a server takes the server along."""
    script = (
        "import pathlib, time\n"
        f"from {GuardedProcess.__module__} import GuardedProcess\n"
        f"here = pathlib.Path({str(tmp_path)!r})\n"
        "server = GuardedProcess(['sleep', '600'], log=here / 'log', cwd=here)\n"
        "print(server.guard_pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as tests:
        assert tests.stdout is not None
        guard = psutil.Process(int(tests.stdout.readline()))
        processes = [guard, *guard.children(recursive=True)]
        names = [process.name() for process in processes[1:]]
        tests.kill()
    assert names == ["sleep"]
    assert gone(processes)


def test_the_server_ends_when_its_guard_is_killed(tmp_path: Path) -> None:
    """Even `kill -9` of the guard leaves no server behind."""
    server = GuardedProcess(["sleep", "600"], log=tmp_path / "log", cwd=tmp_path)
    child = psutil.Process(server.pid)
    os.kill(server.guard_pid, signal.SIGKILL)
    assert gone([child])
    server.stop()


def test_a_server_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    """After the grace time the good order ends."""
    stubborn = ["sh", "-c", "trap '' TERM; echo ready >&2; while :; do sleep 0.1; done"]
    log = tmp_path / "log"
    server = GuardedProcess(stubborn, log=log, cwd=tmp_path, grace=0.5)
    while "ready" not in tail(log):
        time.sleep(0.01)
    assert server.stop() == 128 + signal.SIGKILL
    assert not server.alive


def test_a_server_that_cannot_be_executed_says_so(tmp_path: Path) -> None:
    """The error has the reason, not only a return code."""
    with pytest.raises(StartError, match="No such file"):
        GuardedProcess(["./not-there"], log=tmp_path / "log", cwd=tmp_path)


# docker-py forgets to close the socket it could not connect.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_containers_without_an_engine_are_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason is told, and nothing is started."""
    pytest.importorskip("testcontainers")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with (
        pytest.raises(Unavailable, match="no Docker engine answers"),
        open_servers("containers", tmp_path),
    ):
        pytest.fail("it opened")
    gc.collect()  # here, or the forgotten socket is blamed on another test


def test_an_absent_server_is_a_skip_but_a_failure_on_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quiet skip on CI would mean that nothing was tested."""
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no server on CI: why"):
        unavailable("why")
    monkeypatch.setenv("CI", "false")
    with pytest.raises(pytest.skip.Exception, match="no server: why"):
        unavailable("why")


def test_the_first_password_is_written_as_neo4j_does() -> None:
    """Salted SHA-256 in 1,024 rounds; the server's own answer is tested above."""
    line = auth_line("neo4j", "secret", b"\x01\x02")
    user, credential, flags = line.split(":")
    algorithm, digest, salt, rounds = credential.split(",")
    assert (user, algorithm, salt, rounds, flags) == ("neo4j", "SHA-256", "0102", "1024", "")
    assert len(digest) == hashlib.sha256().digest_size * 2
