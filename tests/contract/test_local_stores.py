# ruff: noqa: ASYNC240 - a test may wait for the disk
"""The embedded stores' life: start, ping, lock, crash, stop. Real stores, real processes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import psutil
import pytest
import pytest_asyncio
import structlog
from neo4j import AsyncGraphDatabase
from neo4j.exceptions import AuthError
from pymilvus import DataType, MilvusClient

from ecphoria.errors import (
    ConfigurationInvalid,
    DataDirectoryUnusable,
    StoreLocked,
    StoreStartFailed,
    StoreUnavailable,
)
from ecphoria.stores import local
from ecphoria.stores.local import LocalStores, open_local_stores, ping
from ecphoria.stores.local_server import LOG_LIMIT_BYTES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODE_BITS = pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")

# Another program that uses a data directory. It prints one line: what it got, or the error.
PROGRAM = """
import asyncio, json, sys
from pathlib import Path
from ecphoria.errors import EcphoriaError
from ecphoria.stores.local import open_local_stores

async def main():
    async with open_local_stores(Path(sys.argv[1])) as stores:
        print(json.dumps({
            "neo4j_uri": stores.neo4j_uri,
            "neo4j_password": stores.neo4j_password,
            "milvus_uri": stores.milvus_uri,
            "pid": stores.pid,
        }), flush=True)
        await asyncio.sleep(600)

try:
    asyncio.run(main())
except EcphoriaError as error:
    print(json.dumps({"code": error.code, "message": error.message}), flush=True)
"""


class Address(NamedTuple):
    """As much of ``LocalStores`` as a client needs."""

    neo4j_uri: str
    neo4j_password: str
    milvus_uri: str


def address(stores: LocalStores) -> Address:
    return Address(stores.neo4j_uri, stores.neo4j_password, stores.milvus_uri)


def program(data_dir: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(data_dir)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


async def answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return the program's line; log lines on the same output are not JSON."""
    assert process.stdout is not None
    while line := await asyncio.to_thread(process.stdout.readline):
        if line.startswith("{"):
            result: dict[str, Any] = json.loads(line)
            return result
    pytest.fail("the program ended without an answer")


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


async def ended(stores: LocalStores) -> None:
    """Wait until the child is gone."""
    async with asyncio.timeout(30):
        while stores.alive():  # noqa: ASYNC110 - a process sends no event
            await asyncio.sleep(0.02)


async def cypher(where: Address, query: str, **parameters: object) -> list[dict[str, Any]]:
    driver = AsyncGraphDatabase.driver(where.neo4j_uri, auth=("root", where.neo4j_password))
    async with asyncio.timeout(60), driver:
        records, _, _ = await driver.execute_query(query, parameters, database_="neo4j")
    return [record.data() for record in records]


@contextlib.contextmanager
def milvus(where: Address) -> Iterator[MilvusClient]:
    client = MilvusClient(uri=where.milvus_uri, grpc_options={"grpc.enable_http_proxy": 0})
    try:
        yield client
    finally:
        client.close()


async def write(where: Address, key: str) -> None:
    await cypher(where, "CREATE (:Note {key: $key})", key=key)
    with milvus(where) as client:
        if not client.has_collection("notes"):
            schema = client.create_schema(auto_id=False)
            schema.add_field("id", DataType.VARCHAR, max_length=64, is_primary=True)
            schema.add_field("vector", DataType.FLOAT_VECTOR, dim=4)
            index = client.prepare_index_params()
            index.add_index("vector", index_type="FLAT", metric_type="COSINE")
            client.create_collection("notes", schema=schema, index_params=index)
        client.upsert("notes", [{"id": key, "vector": [1.0, 0.0, 0.0, 0.0]}])


async def keys(where: Address) -> tuple[set[str], set[str]]:
    """Return what the graph has, and what the vector store has."""
    rows = await cypher(where, "MATCH (n:Note) RETURN n.key AS key")
    found: set[str] = set()
    with milvus(where) as client:
        if client.has_collection("notes"):
            client.load_collection("notes")
            answer = client.query("notes", filter='id != ""', output_fields=["id"])
            found = {row["id"] for row in answer}
    return {row["key"] for row in rows}, found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared") / "new" / "data"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stores(data_dir: Path) -> AsyncIterator[LocalStores]:
    async with open_local_stores(data_dir) as opened:
        yield opened
    assert not opened.alive()
    assert not (data_dir / local.HOLDER).exists()


async def test_both_answer(stores: LocalStores) -> None:
    await ping(stores)
    assert stores.alive()
    assert stores.neo4j_uri.startswith("bolt://127.0.0.1:")
    assert stores.milvus_uri.startswith("http://127.0.0.1:")
    assert stores.neo4j_password not in repr(stores)


async def test_listens_on_this_machine_only(stores: LocalStores) -> None:
    listening = [
        connection.laddr.ip.removeprefix("::ffff:")
        for connection in psutil.Process(stores.pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert listening
    assert set(listening) == {"127.0.0.1"}


@MODE_BITS
async def test_everything_is_private(stores: LocalStores, data_dir: Path) -> None:
    assert stat.S_IMODE(data_dir.stat().st_mode) == 0o700
    assert stat.S_IMODE((data_dir / local.PASSWORD).stat().st_mode) == 0o600
    await ping(stores)
    open_to_others = [
        path for path in data_dir.rglob("*") if stat.S_IMODE(path.stat().st_mode) & 0o077
    ]
    assert open_to_others == []


async def test_password_is_in_no_command_line_and_no_log(stores: LocalStores) -> None:
    assert stores.neo4j_password not in " ".join(psutil.Process(stores.pid).cmdline())
    assert stores.neo4j_password not in stores.log_file.read_text(encoding="utf-8")


async def test_wrong_password_is_refused(stores: LocalStores) -> None:
    with pytest.raises(AuthError):
        await cypher(address(stores)._replace(neo4j_password="wrong"), "RETURN 1")


@MODE_BITS
async def test_ctrl_c_does_not_reach_the_child(stores: LocalStores) -> None:
    assert os.getsid(stores.pid) == stores.pid


async def test_second_process_is_told_who_has_it(stores: LocalStores, data_dir: Path) -> None:
    process = program(data_dir)
    try:
        got = await answer(process)
    finally:
        process.kill()
        process.communicate()
    assert got["code"] == StoreLocked.code
    assert f"process {os.getpid()}" in got["message"]
    await ping(stores)


async def test_second_open_in_the_same_process(stores: LocalStores, data_dir: Path) -> None:
    started = time.monotonic()
    with pytest.raises(StoreLocked, match=str(os.getpid())):
        async with open_local_stores(data_dir):
            pass
    assert time.monotonic() - started < 1
    await ping(stores)


async def test_data_survive_and_directories_do_not_mix(stores: LocalStores, tmp_path: Path) -> None:
    async with open_local_stores(tmp_path) as first:
        assert first.pid != stores.pid
        await write(address(first), "kept")
        assert "kept" not in (await keys(address(stores)))[0]
        password = first.neo4j_password
    assert not psutil.pid_exists(first.pid)
    with pytest.raises(StoreUnavailable):
        await ping(first, timeout_s=1)

    async with open_local_stores(tmp_path) as second:
        assert second.neo4j_password == password
        assert await keys(address(second)) == ({"kept"}, {"kept"})

    (tmp_path / local.PASSWORD).unlink()
    async with open_local_stores(tmp_path) as third:
        assert third.neo4j_password != password
        assert await keys(address(third)) == ({"kept"}, {"kept"})
        with pytest.raises(AuthError):
            await cypher(address(third)._replace(neo4j_password=password), "RETURN 1")


@MODE_BITS
async def test_child_stops_by_itself_when_its_parent_is_killed(tmp_path: Path) -> None:
    process = program(tmp_path)
    try:
        got = await answer(process)
        child = psutil.Process(got.pop("pid"))
        where = Address(**got)
        acknowledged = {f"note {number}" for number in range(20)}
        for key in acknowledged:
            await write(where, key)
    finally:
        process.kill()
        process.communicate()
    # At once: the open itself has to wait for the orphan.
    async with open_local_stores(tmp_path) as stores:
        assert not child.is_running()
        assert await keys(address(stores)) == (acknowledged, acknowledged)
        assert '"event": "local stores: stopped"' in stores.log_file.read_text(encoding="utf-8")


async def test_death_in_use_is_seen_and_logged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_file = tmp_path / local.LOGS_DIR / local.LOG
    log_file.parent.mkdir()
    log_file.write_bytes(b"old\n" * (LOG_LIMIT_BYTES // 4 + 1))
    with structlog.testing.capture_logs() as logs:
        async with open_local_stores(tmp_path) as stores:
            assert stores.log_file == log_file
            assert "old" not in log_file.read_text(encoding="utf-8")
            assert log_file.with_name(f"{log_file.name}.1").exists()
            await write(address(stores), "kept")
            psutil.Process(stores.pid).kill()
            await ended(stores)
    assert [
        (entry["log_level"], entry["exit_status"]) for entry in logs if "exit_status" in entry
    ] == [("warning", -signal.SIGKILL)]

    # Both stores recover what they acknowledged, and nothing left behind blocks the start.
    async with open_local_stores(tmp_path) as stores:
        assert await keys(address(stores)) == ({"kept"}, {"kept"})
        # SIGTERM from outside (a service manager that signals the whole group) stops cleanly too.
        psutil.Process(stores.pid).terminate()
        await ended(stores)
        assert '"event": "local stores: stopped"' in stores.log_file.read_text(encoding="utf-8")
    capsys.readouterr()


async def test_start_that_takes_too_long_leaves_nothing_behind(tmp_path: Path) -> None:
    before = children()
    with pytest.raises(StoreStartFailed, match=r"0\.01 s[\s\S]*stores\.log"):
        async with open_local_stores(tmp_path, start_timeout_s=0.01):
            pass
    assert children() <= before
    assert not (tmp_path / local.HOLDER).exists()


async def test_cancelled_start_leaves_nothing_behind(tmp_path: Path) -> None:
    before = children()

    async def use() -> None:
        async with open_local_stores(tmp_path):
            pytest.fail("not reached")

    task = asyncio.create_task(use())
    await asyncio.sleep(0.5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert children() <= before


async def test_jvm_that_cannot_start_shows_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(StoreStartFailed, match=r"(?i)heap") as caught:
        async with open_local_stores(tmp_path, heap="1k"):
            pass
    assert str(tmp_path / local.LOGS_DIR / local.LOG) in caught.value.message


async def test_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub = tmp_path / "stub"
    stub.mkdir()
    (stub / "milvus_lite.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'milvus_lite'\", name='milvus_lite')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(stub), prepend=os.pathsep)
    with pytest.raises(StoreStartFailed, match="'milvus_lite'"):
        async with open_local_stores(tmp_path / "data"):
            pass


@pytest.mark.parametrize("inside", [".", "data", "a/b"])
async def test_path_that_is_a_file(tmp_path: Path, inside: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataDirectoryUnusable, match="file"):
        async with open_local_stores(tmp_path / "file" / inside):
            pass


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
async def test_directory_without_write_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(DataDirectoryUnusable, match="Permission denied"):
            async with open_local_stores(tmp_path / "data"):
                pass
    finally:
        tmp_path.chmod(0o700)


@MODE_BITS
async def test_shared_directory_is_left_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    with pytest.raises(DataDirectoryUnusable, match="shared"):
        async with open_local_stores(tmp_path):
            pass
    assert list(tmp_path.iterdir()) == []


async def test_nearly_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=local.MIN_FREE_BYTES - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
    with pytest.raises(DataDirectoryUnusable, match="199 MB free"):
        async with open_local_stores(tmp_path):
            pass


@pytest.mark.parametrize("heap", ["", "512", "0m", "-1m", "512m -Dx=y", "1 g"])
async def test_heap_that_is_no_size(tmp_path: Path, heap: str) -> None:
    with pytest.raises(ConfigurationInvalid, match="Heap size"):
        async with open_local_stores(tmp_path, heap=heap):
            pass
