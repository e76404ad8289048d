"""The child process that runs the embedded stores; started by ``ecphoria.stores.local``.

ArcadeDB (the graph, over Bolt) and Milvus Lite (the vectors, over gRPC) live in one process of
their own, so that neither a garbage collection in the JVM nor a scan in Milvus Lite's Python code
stalls the event loop that answers requests.

How it talks to its parent:

- stdin: one JSON line with what to run, then nothing more. End of file means stop: the kernel
  closes the pipe whatever way the parent ends, kill -9 included.
- stdout: one JSON line, ``Report``. Everything printed later goes to stderr, which is the log.
- exit status: one of the ``EXIT_...`` constants.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import signal
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn, TypedDict

import structlog
from filelock import FileLock, Timeout

if TYPE_CHECKING:
    from types import FrameType

STORES_LOCK = "stores.lock"
GRAPH_DIR = "graph"
VECTORS_DIR = "vectors"
LOG_LIMIT_BYTES = 10 * 1024 * 1024

EXIT_STOPPED = 0
EXIT_FAILED = 1
EXIT_STUCK = 3

DATABASE = "neo4j"
# A query that runs longer is a mistake (a walk without a cap) and would starve all others.
QUERY_LIMIT_MS = 30_000
# Everything goes to the one log. By default ArcadeDB keeps a second one of up to 1 GB.
JAVA_LOGGING = """\
handlers=java.util.logging.ConsoleHandler
.level=INFO
io.undertow.level=WARNING
org.xnio.level=WARNING
org.jboss.level=WARNING
java.util.logging.ConsoleHandler.level=INFO
"""
# Milvus Lite keeps unflushed rows uncompressed in Python objects; its own 128 MB default costs
# several times that in memory, and a longer replay after a crash.
MEMTABLE_LIMIT_BYTES = 2_000_000
# Milvus Lite's insert path takes no lock: sequence numbers, the write-ahead log's writer and the
# swap of the memtable are all plain attributes. A second worker is a race, and gains no speed
# since the work is Python under one GIL.
MILVUS_WORKERS = 1
# Time for requests under way when the stop comes.
GRACE_S = 10.0
# The last resort when a stop hangs and no parent is left to kill us: both stores recover from
# their write-ahead logs, but an orphan that never ends blocks the directory for good.
STOP_LIMIT_S = 60.0
POLL_S = 0.5

log = structlog.get_logger(__name__)


class Instructions(TypedDict):
    """What the parent sends. It goes over the pipe because anyone can read a command line."""

    data_dir: str
    password: str
    heap: str
    parent_pid: int


class Report(TypedDict, total=False):
    """What the child answers: both ports when it runs, or why it does not."""

    state: Literal["ready", "stopped", "locked", "package_missing", "disk", "failed"]
    bolt_port: int
    milvus_port: int
    message: str


class _Stopped(Exception):
    """The stop was asked for before the start was over."""


def main() -> NoReturn:
    """Run both stores until told to stop."""
    answer = _take_over_stdout()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
            # ArcadeDB ends its lines when it begins the next one.
            lambda _logger, _method, line: f"\n{line}",
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    status = EXIT_FAILED
    try:
        status = _run(answer)
    finally:
        # Not sys.exit: the JVM's remaining threads and JPype's exit hook can hang for ever, and
        # there is nothing left to flush.
        os._exit(status)


def _take_over_stdout() -> int:
    """Return a private handle on the parent's pipe and send every later print to the log.

    The JVM and any C library write to descriptor 1 as they please; one such line would spoil the
    answer, and a full pipe nobody reads would stall them.
    """
    answer = os.dup(1)
    os.dup2(2, 1)
    return answer


def _run(answer: int) -> int:
    line = sys.stdin.buffer.readline()
    if not line:
        return EXIT_STOPPED
    order: Instructions = json.loads(line)
    stop = threading.Event()

    def on_signal(number: int, _frame: FrameType | None) -> None:
        log.info("local stores: signal", signal=signal.Signals(number).name)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    for watch in (_watch_pipe, _watch_stop):
        threading.Thread(target=watch, args=(stop,), daemon=True, name=watch.__name__).start()

    with ExitStack() as stack:
        try:
            report = _start(order, stop, stack)
        except _Stopped:
            report = Report(state="stopped", message="stopped while starting")
        except Timeout:
            report = Report(state="locked", message="another process runs the stores")
        except ModuleNotFoundError as error:
            log.exception("local stores: package missing")
            report = Report(state="package_missing", message=str(error.name or error))
        except Exception as error:
            # The boundary of the process: whatever it is, the parent has to hear of it.
            log.exception("local stores: start failed")
            state: Literal["disk", "failed"] = "disk" if _is_disk_fault(error) else "failed"
            report = Report(state=state, message=f"{type(error).__name__}: {error}")
        with contextlib.suppress(BrokenPipeError):  # the parent is gone; the watchers see to it
            os.write(answer, json.dumps(report).encode() + b"\n")
        os.close(answer)
        if report["state"] == "ready":
            _serve(order, stop)
        # The guard of a hanging stop has to run for failed starts too.
        stop.set()
    log.info("local stores: stopped", state=report["state"])
    return EXIT_STOPPED if report["state"] in ("ready", "stopped") else EXIT_FAILED


def _start(order: Instructions, stop: threading.Event, stack: ExitStack) -> Report:
    data_dir = Path(order["data_dir"])
    lock = FileLock(data_dir / STORES_LOCK, mode=0o600, fallback_to_soft=False)
    lock.acquire(timeout=0)
    stack.callback(lock.release)
    bolt_port = _start_graph(data_dir / GRAPH_DIR, order, stop, stack)
    milvus_port = _start_vectors(data_dir / VECTORS_DIR, stop, stack)
    return Report(state="ready", bolt_port=bolt_port, milvus_port=milvus_port)


def _start_graph(root: Path, order: Instructions, stop: threading.Event, stack: ExitStack) -> int:
    _leave_if(stop)
    from arcadedb_embedded.server import ArcadeDBServer  # noqa: PLC0415 - only in this process

    logging = root / "logging.properties"
    logging.write_text(JAVA_LOGGING, encoding="utf-8")
    # ArcadeDB writes log/ into the current directory, which no setting changes.
    os.chdir(root)
    jvm_args = [
        # The JVM leaves SIGTERM and SIGINT to Python, whose stop is in the right order.
        "-Xrs",
        f"-Djava.util.logging.config.file={logging}",
    ]
    server = ArcadeDBServer(
        str(root),
        order["password"],
        {
            "host": "127.0.0.1",
            # 0: the system picks a free port, so two directories never fight over one.
            "http_port": 0,
            "bolt_port": 0,
            "server_plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
            "bolt_defaultDatabase": DATABASE,
            "server_defaultDatabases": f"{DATABASE}[root]",
            "mode": "production",
            "txWalFlush": 1,
        },
        jvm_kwargs={"heap_size": order["heap"], "jvm_args": jvm_args},
    )
    server.start()
    stack.callback(server.stop)
    database = server.get_database(DATABASE)
    # Native datetimes keep their zone and microseconds only with this implementation.
    database.command(
        "sql", "ALTER DATABASE `arcadedb.dateTimeImplementation` `java.time.ZonedDateTime`"
    )
    database.command("sql", f"ALTER DATABASE `arcadedb.command.timeout` {QUERY_LIMIT_MS}")
    # The wrapper has no call for the port that 0 became.
    ports = [
        int(plugin.getPort())
        for plugin in server._java_server.getPlugins()  # noqa: SLF001
        if str(plugin.getClass().getName()).endswith(".BoltProtocolPlugin")
    ]
    if not ports:
        message = "ArcadeDB started without its Bolt plugin"
        raise RuntimeError(message)
    return ports[0]


def _start_vectors(root: Path, stop: threading.Event, stack: ExitStack) -> int:
    _leave_if(stop)
    # Read once, when the package is imported.
    os.environ["MILVUS_LITE_MEMTABLE_MEMORY_LIMIT_BYTES"] = str(MEMTABLE_LIMIT_BYTES)
    from milvus_lite.adapter.grpc.server import (  # noqa: PLC0415 - only in this process
        start_server_in_thread,
    )

    server, database, port = start_server_in_thread(
        str(root), host="127.0.0.1", port=0, max_workers=MILVUS_WORKERS
    )
    # Run last to first: requests under way end before their collections are flushed and closed.
    stack.callback(database.close)
    stack.callback(lambda: server.stop(grace=GRACE_S).wait())
    _leave_if(stop)
    return int(port)


def _leave_if(stop: threading.Event) -> None:
    if stop.is_set():
        raise _Stopped


def _is_disk_fault(error: Exception) -> bool:
    """Tell a full or forbidden disk from other faults, also in the text of a Java exception."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)
    return any(
        words in str(error)
        for words in ("No space left on device", "Read-only file system", "Permission denied")
    )


def _serve(order: Instructions, stop: threading.Event) -> None:
    """Wait for the stop, keeping an eye on the parent and on the size of the log."""
    log.info("local stores: ready", pid=os.getpid(), parent_pid=order["parent_pid"])
    while not stop.wait(POLL_S):
        # The pipe alone does not tell when a process the parent forked still holds its other end.
        if os.name == "posix" and os.getppid() != order["parent_pid"]:
            log.warning("local stores: the parent is gone", parent_pid=order["parent_pid"])
            stop.set()
        _cap_log()


def _cap_log() -> None:
    """Keep the log bounded during a long run as well; its file is opened for appending.

    Lines written between the copy and the cut are lost, which is the price of a log that other
    code writes to through a plain descriptor.
    """
    if os.fstat(2).st_size <= LOG_LIMIT_BYTES:
        return
    path = os.environ.get("ECPHORIA_STORES_LOG")
    if path is None:
        return
    try:
        shutil.copyfile(path, f"{path}.1")
        os.ftruncate(2, 0)
    except OSError as error:
        # Most likely a full disk. Losing the log is better than adding to the trouble.
        os.ftruncate(2, 0)
        log.warning("local stores: log cut without a copy", error=str(error))


def _watch_pipe(stop: threading.Event) -> None:
    """Stop when the parent closes the pipe or dies."""
    sys.stdin.buffer.read()
    stop.set()


def _watch_stop(stop: threading.Event) -> None:
    """End the process when stopping takes for ever."""
    stop.wait()
    time.sleep(STOP_LIMIT_S)
    log.error("local stores: the stop hangs; ending now", after_s=STOP_LIMIT_S)
    os._exit(EXIT_STUCK)


if __name__ == "__main__":
    main()
