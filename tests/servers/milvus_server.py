"""A real Milvus 2.3.5 standalone server for tests, from the PyPI wheel, without Docker.

Milvus 2.3.5 binds about ten ports on every interface, and no setting stops it. It therefore runs
in a network namespace of its own; `guard.py` in there accepts on a socket that was opened out here
on 127.0.0.1. As a further gain every port inside can keep its default.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import grpc
import yaml
from pymilvus import MilvusClient
from pymilvus.exceptions import MilvusException

from . import fetch
from .process import GUARD, GuardedProcess, Server, StartError, Unavailable, tail, wait_until

if TYPE_CHECKING:
    from pathlib import Path

INNER_PORT = 19530
HEALTH_PORT = 9091
SETTINGS: dict[str, object] = {
    # The default of half an hour makes SIGTERM hang.
    "common.gracefulStopTimeout": 3,
    # How long a killed server's registration blocks the next one.
    "common.session.ttl": 5,
    # A strongly consistent read waits for the next tick.
    "proxy.timeTickInterval": 20,
    # Loading a collection takes several rounds of the coordinator.
    "queryCoord.checkInterval": 50,
    "queryCoord.distPullInterval": 50,
    # The interim index of fresh rows misses half of what a filter leaves over (2.3.5).
    "queryNode.segcore.interimIndex.enableIndex": "false",
    "log.level": "warn",
}
# Milvus keeps a locked pid file and server ids at these fixed places. Private ones let several
# servers run, also of several users. Without /run/milvus Milvus falls back to /tmp/milvus.
_PRIVATE_DIRECTORIES = """
set -e
mkdir -p /tmp/milvus
mount -t tmpfs none /tmp/milvus
mkdir -p /run/milvus 2>/dev/null || true
if [ -d /run/milvus ]; then mount -t tmpfs none /run/milvus; fi
exec "$@"
"""
_NAMESPACES = ("unshare", "--net", "--mount", "--propagation", "private")


@functools.cache
def namespaces() -> tuple[str, ...]:
    """Return the command prefix that runs something in namespaces of its own.

    Raises:
        Unavailable: When this machine allows them neither directly nor by a user namespace.
    """
    if sys.platform != "linux":
        message = "Milvus without Docker needs Linux namespaces"
        raise Unavailable(message)
    reasons = []
    # Root may make them directly; anybody, and root in a container, may try a user namespace.
    for way in ((), ("--map-root-user",)):
        prelude = (*_NAMESPACES, *way, "sh", "-c", _PRIVATE_DIRECTORIES, "sh")
        if os.geteuid() != 0 and not way:
            continue
        try:
            subprocess.run(
                [*prelude, sys.executable, "-I", str(GUARD), "--probe"],
                check=True,
                capture_output=True,
                text=True,
                timeout=30,
            )
        except FileNotFoundError:
            message = "unshare is missing: install it, e.g. `apt install util-linux`"
            raise Unavailable(message) from None
        except subprocess.CalledProcessError as error:
            reasons.append(f"{shlex.join((*_NAMESPACES, *way))}: {error.stderr.strip()}")
        else:
            return prelude
    message = (
        "no network namespace can be made here ("
        + "; ".join(reasons)
        + "); run as root, or allow unprivileged user namespaces"
    )
    raise Unavailable(message)


def configuration(template: str, data_dir: Path) -> dict[str, Any]:
    """Fill in the wheel's `config.yaml.template` and add our settings.

    Args:
        template: Text with places such as `{{ proxy_port(int): 19530 }}`, mostly with a default.
        data_dir: Where data and logs go.

    Returns:
        What `milvus.yaml` has to say.
    """
    places = {
        "etcd_log_path": str(data_dir / "logs" / "etcd.log"),
        "etcd_data_dir": str(data_dir / "data" / "etcd.data"),
        "local_storage_dir": str(data_dir / "data"),
        "rocksmq_data_dir": str(data_dir / "data" / "rocksmq"),
        "system_log_path": str(data_dir / "logs"),
    }

    def fill(match: re.Match[str]) -> str:
        name, default = match["name"], match["default"]
        return places[name] if name in places else default.strip()

    place = r"\{\{\s*(?P<name>\w+)(?:\(\w+\))?(?::(?P<default>[^}]*))?\s*\}\}"
    root: dict[str, Any] = yaml.safe_load(re.sub(place, fill, template))
    for path, value in SETTINGS.items():
        *parents, last = path.split(".")
        node = root
        for parent in parents:
            node = node[parent]
        node[last] = value
    return root


def ping(uri: str) -> bool:
    """List the collections as a client would.

    Raises:
        MilvusException: When nobody answers, which may mean "not yet".
        grpc.RpcError: Likewise.
    """
    client = MilvusClient(uri=uri, timeout=5)
    try:
        client.list_collections(timeout=5)
    finally:
        client.close()
    return True


class MilvusServer(Server):
    """A Milvus server that lives as long as its `with` block, and never longer than the tests."""

    NAME = "Milvus"

    def __init__(self, data_dir: Path, *, grace: float = 10) -> None:
        """Prepare a server; nothing runs yet.

        Args:
            data_dir: Configuration, data and logs. Made when missing.
            grace: Seconds to stop before it is killed. Few: its own way to stop ends in a panic
                anyway, and after a kill -9 it sometimes hangs before that. No data depends on it.

        Raises:
            Unavailable: When Milvus is not on this machine, or cannot be shut in.
        """
        self._wheel = fetch.milvus_home()
        if not fetch.is_complete(self._wheel, fetch.MILVUS_VERSION):
            message = f"{self._wheel} is missing: run `python tests/servers/fetch.py`"
            raise Unavailable(message)
        self._prelude = namespaces()
        super().__init__(data_dir, grace)
        self.port = 0

    @property
    def uri(self) -> str:
        """URI for clients, known once started."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def _has_port(self) -> bool:
        # its own socket takes a free one, and keeps it
        return True

    def _prepare_home(self) -> None:
        for name in ("configs", "data", "logs"):
            (self.home / name).mkdir(parents=True, exist_ok=True)
        data = self._wheel / "milvus" / "data"
        config = configuration((data / "config.yaml.template").read_text(), self.home)
        (self.home / "configs" / "milvus.yaml").write_text(yaml.safe_dump(config))
        (self.home / "configs" / "glog.conf").write_text((data / "glog.conf").read_text())

    def _start_once(self) -> None:
        log = self.home / "logs" / "console.log"
        process = self._process = self._launch(log)
        wait_until(
            self._answers,
            name="Milvus",
            alive=lambda: process.alive,
            log=lambda: tail(log),
            retry_on=(OSError, MilvusException, grpc.RpcError),
        )

    def _launch(self, log: Path) -> GuardedProcess:
        # Only bound: clients are refused, not kept waiting, until the guard finds Milvus healthy.
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(("127.0.0.1", self.port))
            except OSError as error:
                message = f"somebody else listens on 127.0.0.1:{self.port} now"
                raise StartError(message) from error
            self.port = listener.getsockname()[1]
            return GuardedProcess(
                [str(self._wheel / "bin" / "milvus"), "run", "standalone"],
                log=log,
                cwd=self.home,
                env={
                    **os.environ,
                    "DEPLOY_MODE": "STANDALONE",
                    "LD_LIBRARY_PATH": str(self._wheel / "bin"),
                    "METRICS_PORT": str(HEALTH_PORT),
                },
                prelude=self._prelude,
                guard_options=(
                    f"--socket-fd={listener.fileno()}",
                    f"--port={INNER_PORT}",
                    f"--health-port={HEALTH_PORT}",
                ),
                pass_fds=(listener.fileno(),),
                grace=self._grace,
            )

    def _answers(self) -> bool:
        # A plain connection first: pymilvus logs a stack trace for every refused one.
        with socket.create_connection(("127.0.0.1", self.port), timeout=5):
            pass
        return ping(self.uri)
