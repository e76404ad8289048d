"""The embedded stores' life, seen from the process that uses them.

``open_local_stores`` starts one child process (``ecphoria.stores.local_server``) with ArcadeDB and
Milvus Lite on a data directory, waits until both answer, and stops it at the end. What the rest of
ecphoria gets are two URIs: it talks to the embedded stores as it talks to servers.

The data directory::

    ecphoria.lock       held by the process that opened the directory, for as long as it is open
    ecphoria.lock.json  which process that is, for the error message of the next one
    stores.lock         held by the child; outlives a killed parent until the child has stopped
    neo4j-password      made once; ArcadeDB keeps only its hash
    graph/  vectors/    the stores' own files
    logs/stores.log     whatever the child and the JVM print
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import secrets
import shutil
import socket
import stat
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import psutil
import structlog
from filelock import FileLock, Timeout
from neo4j import AsyncGraphDatabase
from neo4j.exceptions import AuthError, DriverError, Neo4jError
from pymilvus import AsyncMilvusClient, MilvusException

from ecphoria.errors import (
    ConfigurationInvalid,
    DataDirectoryUnusable,
    StoreLocked,
    StoreStartFailed,
    StoreUnavailable,
)
from ecphoria.private_file import write_private
from ecphoria.stores.local_server import (
    DATABASE,
    GRAPH_DIR,
    LOG_LIMIT_BYTES,
    STORES_LOCK,
    VECTORS_DIR,
    Instructions,
    Report,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

USER: Final = "root"
LOCK: Final = "ecphoria.lock"
HOLDER: Final = "ecphoria.lock.json"
PASSWORD: Final = "neo4j-password"  # noqa: S105 - the name of the file, not the password
LOGS_DIR: Final = "logs"
LOG: Final = "stores.log"

# Below this a start would succeed and the first burst of writes fail half-way.
MIN_FREE_BYTES: Final = 200 * 1024 * 1024
# How long the child of a killed process may take to flush and close.
ORPHAN_LIMIT_S: Final = 60.0
STOP_LIMIT_S: Final = 45.0
TERMINATE_LIMIT_S: Final = 10.0
PING_TIMEOUT_S: Final = 5.0
POLL_S: Final = 0.1
TAIL_LINES: Final = 20
TAIL_BYTES: Final = 8_192
COMMAND_CHARS: Final = 200

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LocalStores:
    """Where the embedded stores answer, and with which credentials."""

    neo4j_uri: str
    neo4j_user: str
    neo4j_password: str = field(repr=False)
    neo4j_database: str
    milvus_uri: str
    pid: int
    log_file: Path
    _child: subprocess.Popen[bytes] = field(repr=False, compare=False)

    def alive(self) -> bool:
        """Tell whether the child process still runs; says nothing about its health."""
        return self._child.poll() is None


@asynccontextmanager
async def open_local_stores(
    data_dir: Path, *, heap: str = "512m", start_timeout_s: float = 120
) -> AsyncIterator[LocalStores]:
    """Run the embedded stores on a data directory for the length of the block.

    Args:
        data_dir: Where everything is kept. Made if missing, and made private (mode 0700).
        heap: Largest heap of the graph store's JVM, e.g. ``512m`` or ``2g``.
        start_timeout_s: How long both stores together may take until they answer. Waiting for
            the child of a killed process to end comes on top, at most ``ORPHAN_LIMIT_S``.

    Yields:
        The addresses, once both stores answered a ping.

    Raises:
        ConfigurationInvalid: ``heap`` is not a size.
        DataDirectoryUnusable: The directory cannot be made or written, or is nearly full.
        StoreLocked: Another process, named in the message, has the directory open.
        StoreStartFailed: The stores died or did not answer in time; has the log's last lines.
    """
    if not re.fullmatch(r"[1-9]\d*[kmgKMG]", heap):
        message = f"Heap size {heap!r} is not a number followed by k, m or g, such as 512m."
        raise ConfigurationInvalid(message)
    root = _absolute(data_dir)
    lock = _open_directory(root)
    try:
        await _await_orphan(root)
        child, log_file, log_start, password = _launch(root, heap)
        try:
            stores = await _await_ready(child, log_file, log_start, password, start_timeout_s)
            try:
                yield stores
            finally:
                if not stores.alive():
                    log.warning(
                        "local stores had already ended",
                        pid=stores.pid,
                        exit_status=child.poll(),
                        log_file=str(log_file),
                    )
        finally:
            await _stop(child)
    finally:
        _close_directory(root, lock)


async def ping(stores: LocalStores, *, timeout_s: float = PING_TIMEOUT_S) -> None:
    """Ask both stores for a trifle, through the drivers everybody uses.

    Args:
        stores: The stores to ask.
        timeout_s: How long both together may take to answer.

    Raises:
        StoreUnavailable: One of them gave no answer or a wrong one; its own error is the cause.
    """
    try:
        await _ping(stores, timeout_s)
    except _PING_FAULTS as error:
        why = str(error) or f"nothing within {timeout_s:g} s"
        message = f"An embedded store does not answer: {why}. Its log is {stores.log_file}."
        raise StoreUnavailable(message) from error


# --- the directory -------------------------------------------------------------------------


def _absolute(path: Path) -> Path:
    # Not resolve(): a link in the path may be re-pointed by its owner, and its name is known.
    return Path(os.path.abspath(path))  # noqa: PTH100


def _open_directory(root: Path) -> FileLock:
    """Make the directory usable and take its lock."""
    try:
        _make_private(root)
        free = shutil.disk_usage(root).free
        if free < MIN_FREE_BYTES:
            message = (
                f"The disk of data directory {root} has {free // 2**20} MB free; "
                f"at least {MIN_FREE_BYTES // 2**20} MB are needed."
            )
            raise DataDirectoryUnusable(message)
        lock = _file_lock(root / LOCK)
        lock.acquire(timeout=0)
    except Timeout:
        raise StoreLocked(_locked_by(root)) from None
    except (OSError, NotImplementedError) as error:
        raise _unusable(root, error) from error
    try:
        for part in (GRAPH_DIR, VECTORS_DIR, LOGS_DIR):
            (root / part).mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        lock.release()
        raise _unusable(root, error) from error
    return lock


def _unusable(root: Path, error: Exception) -> DataDirectoryUnusable:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return DataDirectoryUnusable(f"Data directory {root} cannot be used: {why}.")


def _make_private(root: Path) -> None:
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = root.stat().st_mode
    home = os.path.expanduser("~")  # noqa: PTH111 - Path.home() fails where there is none
    # Closing these to everybody else would break the machine or a login, not protect data.
    if mode & stat.S_ISVTX or root == Path(root.anchor) or str(root) == home:
        message = f"Data directory {root} is shared with other uses; name a directory inside it."
        raise DataDirectoryUnusable(message)
    if stat.S_IMODE(mode) & 0o077 and os.name == "posix":
        try:
            root.chmod(0o700)
        except PermissionError:
            # A mounted volume often belongs to someone else; our parts inside are private anyway.
            log.warning("data directory is open to other users", path=str(root))


def _file_lock(path: Path) -> FileLock:
    # A soft lock would outlive a crash, so no lock at all is better (NotImplementedError). Not
    # bound to a thread: the event loop that closes may run in another one than that which opened.
    return FileLock(path, mode=0o600, thread_local=False, fallback_to_soft=False)


def _close_directory(root: Path, lock: FileLock) -> None:
    # Before the release: afterwards it could be the next holder's.
    with contextlib.suppress(FileNotFoundError):
        (root / HOLDER).unlink()
    lock.release()


def _read_holder(root: Path) -> dict[str, Any]:
    """Return what the holder wrote about itself; nothing when it had no time to."""
    try:
        holder = json.loads((root / HOLDER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return holder if isinstance(holder, dict) else {}


def _write_holder(root: Path, child_pid: int | None = None) -> None:
    with contextlib.suppress(psutil.Error):
        command = " ".join(psutil.Process().cmdline())[:COMMAND_CHARS]
        holder = {
            "pid": os.getpid(),
            "command": command,
            "host": socket.gethostname(),
            "child_pid": child_pid,
        }
        write_private(root / HOLDER, json.dumps(holder))


def _locked_by(root: Path) -> str:
    holder = _read_holder(root)
    if "pid" not in holder:
        return f"Data directory {root} is in use by another process that is just starting."
    where = "" if holder.get("host") == socket.gethostname() else f" on {holder.get('host')}"
    return (
        f"Data directory {root} is in use by process {holder['pid']}{where}: "
        f"{holder.get('command')}"
    )


async def _await_orphan(root: Path) -> None:
    """Wait until the child of a killed process has stopped.

    Only the holder of the directory's lock starts a child, so whoever holds the stores' lock now
    has lost its parent and is on its way out.
    """
    orphan = _read_holder(root).get("child_pid")
    lock = _file_lock(root / STORES_LOCK)
    deadline = time.monotonic() + ORPHAN_LIMIT_S
    waiting = False
    while True:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if time.monotonic() > deadline:
                message = (
                    f"Data directory {root} is in use by process {orphan}: the embedded stores of "
                    f"a killed process, which did not stop within {ORPHAN_LIMIT_S:.0f} s."
                )
                raise StoreLocked(message) from None
        except (OSError, NotImplementedError) as error:
            raise _unusable(root, error) from error
        else:
            lock.release()
            return
        if not waiting:
            waiting = True
            log.info("waiting for the stores of a killed process to stop", pid=orphan)
        await asyncio.sleep(POLL_S)


def _password(root: Path) -> str:
    """Return the graph store's password, made at the first start."""
    path = root / PASSWORD
    if path.exists():
        password = path.read_text(encoding="utf-8").strip()
        if password:
            if stat.S_IMODE(path.stat().st_mode) & 0o077:
                path.chmod(0o600)
            return password
    password = secrets.token_urlsafe(32)
    write_private(path, password + "\n")
    users = root / GRAPH_DIR / "config" / "server-users.jsonl"
    if users.exists():
        # ArcadeDB silently keeps the hash of the lost password as long as this file is there.
        # It only knows root, so a fresh one loses nothing.
        log.warning("the graph store's password file was lost; a new one was made", path=str(path))
        users.replace(users.with_suffix(".jsonl.old"))
    return password


# --- the child -----------------------------------------------------------------------------


def _launch(root: Path, heap: str) -> tuple[subprocess.Popen[bytes], Path, int, str]:
    """Start the child and tell it what to run.

    Returns:
        The child, its log, where in the log this run begins, and the password.
    """
    log_file = root / LOGS_DIR / LOG
    try:
        _write_holder(root)
        password = _password(root)
        with _open_log(log_file) as output:
            log_start = output.tell()
            child = _spawn(log_file, output)
    except OSError as error:
        raise _unusable(root, error) from error
    order = Instructions(data_dir=str(root), password=password, heap=heap, parent_pid=os.getpid())
    if child.stdin is None:  # for the type checker: it was asked for
        raise AssertionError
    # A child that is dead already is found by the one who waits for its answer.
    with contextlib.suppress(BrokenPipeError):
        child.stdin.write(json.dumps(order).encode() + b"\n")
    with contextlib.suppress(OSError):  # only the next one's error message is the poorer for it
        _write_holder(root, child.pid)
    return child, log_file, log_start, password


def _open_log(path: Path) -> IO[bytes]:
    if path.exists() and path.stat().st_size > LOG_LIMIT_BYTES:
        path.replace(path.with_name(f"{path.name}.1"))
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    output = os.fdopen(handle, "ab", buffering=0)
    output.seek(0, os.SEEK_END)
    return output


def _spawn(log_file: Path, output: IO[bytes]) -> subprocess.Popen[bytes]:
    # The child has to find this package also where only the parent's sys.path has it.
    source = str(Path(__file__).resolve().parents[2])
    inherited = os.environ.get("PYTHONPATH")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([inherited, source]) if inherited else source,
        "ECPHORIA_STORES_LOG": str(log_file),
        "ARCADEDB_JVM_ERROR_FILE": str(log_file.with_name("jvm-crash-%p.log")),
    }
    # Not asyncio's subprocess: that kills the child hard when the loop is closed. This one just
    # closes the pipe, whichever way this process ends.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "ecphoria.stores.local_server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=output,
        bufsize=0,
        cwd=log_file.parent,
        env=environment,
        umask=0o077,
        # Ctrl-C goes to the whole foreground group; the stores must outlive the last flush.
        start_new_session=True,
    )


_DIED: Final = "The embedded stores died while starting (exit status {})."


async def _await_ready(
    child: subprocess.Popen[bytes],
    log_file: Path,
    log_start: int,
    password: str,
    timeout_s: float,
) -> LocalStores:
    started = time.monotonic()

    def failure(what: str) -> StoreStartFailed:
        tail = _tail(log_file, log_start)
        return StoreStartFailed(f"{what} Log: {log_file}. Its last lines:\n{tail}")

    try:
        async with asyncio.timeout(timeout_s):
            report = await asyncio.to_thread(_read_report, child)
            if report is None:
                status = await asyncio.to_thread(child.wait)
                raise failure(_DIED.format(status))
            if report["state"] != "ready":
                raise _refusal(report, log_file) or failure(
                    f"The embedded stores did not start: {report['message']}."
                )
            stores = LocalStores(
                neo4j_uri=f"bolt://127.0.0.1:{report['bolt_port']}",
                neo4j_user=USER,
                neo4j_password=password,
                neo4j_database=DATABASE,
                milvus_uri=f"http://127.0.0.1:{report['milvus_port']}",
                pid=child.pid,
                log_file=log_file,
                _child=child,
            )
            while not await _answers(stores):
                if not stores.alive():
                    raise failure(_DIED.format(child.poll()))
                await asyncio.sleep(POLL_S)
    except AuthError as error:
        message = f"The graph store refuses its password from {log_file.parents[1] / PASSWORD}."
        raise failure(message) from error
    except TimeoutError:
        message = f"The embedded stores did not answer within {timeout_s:g} s."
        raise failure(message) from None
    log.info("local stores ready", pid=child.pid, seconds=round(time.monotonic() - started, 2))
    return stores


def _read_report(child: subprocess.Popen[bytes]) -> Report | None:
    """Block until the child's one line, or its end."""
    if child.stdout is None:  # for the type checker: it was asked for
        return None
    # Closed here, not by the one who stops the child: this thread outlives a cancelled start, and
    # the number of a pipe closed under its read could be another file by then.
    with child.stdout as pipe:
        line = pipe.readline()
    if not line.endswith(b"\n"):
        return None
    report: Report = json.loads(line)
    return report


def _refusal(report: Report, log_file: Path) -> Exception | None:
    """Return the more telling error for the child's known reasons."""
    root = log_file.parents[1]
    if report["state"] == "locked":
        return StoreLocked(f"Data directory {root} is in use by another process's stores.")
    if report["state"] == "disk":
        return DataDirectoryUnusable(
            f"Data directory {root} cannot be used: {report['message']}. Log: {log_file}."
        )
    if report["state"] == "package_missing":
        return StoreStartFailed(
            f"The embedded stores need the Python package {report['message']!r}, which is not "
            f"installed; `pip install ecphoria` brings it. Log: {log_file}."
        )
    return None


def _tail(path: Path, start: int) -> str:
    """Return the last lines this run wrote."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(start if start <= size else 0, size - TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError as error:
        return f"(unreadable: {error.strerror})"
    return "\n".join(lines[-TAIL_LINES:]) or "(nothing)"


_PING_FAULTS: Final = (DriverError, Neo4jError, MilvusException, OSError)


async def _answers(stores: LocalStores) -> bool:
    try:
        await _ping(stores, PING_TIMEOUT_S)
    except AuthError:  # asking again will not help
        raise
    except _PING_FAULTS as error:
        # Expected for a moment: Bolt listens before the default database exists.
        log.debug("local stores not ready yet", error=repr(error))
        return False
    return True


async def _ping(stores: LocalStores, timeout_s: float) -> None:
    # The drivers' own time-outs do not cover everything: a ping once hung for good.
    async with asyncio.timeout(timeout_s):
        driver = AsyncGraphDatabase.driver(
            stores.neo4j_uri,
            auth=(stores.neo4j_user, stores.neo4j_password),
            telemetry_disabled=True,
        )
        async with driver, driver.session(database=stores.neo4j_database) as session:
            await (await session.run("RETURN 1")).consume()
        milvus = AsyncMilvusClient(
            uri=stores.milvus_uri,
            timeout=timeout_s,
            # A connection of its own: the shared one belongs to the engine.
            dedicated=True,
            # gRPC would send even 127.0.0.1 through the proxy the environment names.
            grpc_options={"grpc.enable_http_proxy": 0},
        )
        try:
            await milvus.list_collections(timeout=timeout_s)
        finally:
            await milvus.close()


async def _stop(child: subprocess.Popen[bytes]) -> None:
    work = asyncio.ensure_future(asyncio.to_thread(_stop_child, child))
    try:
        await asyncio.shield(work)
    except asyncio.CancelledError:
        # Once more, since the stores should be closed before their lock is given up. A second
        # cancellation goes through: the pipe is closed, so the child ends by itself.
        await work
        raise


def _stop_child(child: subprocess.Popen[bytes]) -> None:
    """Ask by closing the pipe, then less and less politely."""
    if child.stdin:
        child.stdin.close()
    try:
        child.wait(STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        log.warning("local stores do not stop; terminating", pid=child.pid, after_s=STOP_LIMIT_S)
        child.terminate()
        try:
            child.wait(TERMINATE_LIMIT_S)
        except subprocess.TimeoutExpired:
            log.warning("local stores do not stop; killing", pid=child.pid)
            child.kill()
            child.wait()
