"""Neo4j and Milvus as containers, in the shape of the two servers.

The images are those of `docker-compose.yml`, so that tests run what users run. The ports of the
host are chosen here and not by Docker, which would choose others when a container starts again.
"""

from __future__ import annotations

import importlib
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import grpc
import yaml
from neo4j.exceptions import DriverError, Neo4jError
from pymilvus.exceptions import MilvusException

from . import milvus_server, neo4j_server
from .process import Unavailable, free_port, wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from testcontainers.core.container import DockerContainer

COMPOSE = Path(__file__).parents[2] / "docker-compose.yml"
LOG_LINES = 30


def image(service: str) -> str:
    """Return the image of a service in `docker-compose.yml`."""
    compose: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())
    return str(compose["services"][service]["image"])


def require_engine() -> None:
    """Do nothing where a Docker engine answers.

    Raises:
        Unavailable: Where none does.
    """
    try:
        # By name: `docker` comes with testcontainers and has no types of its own.
        docker: Any = importlib.import_module("docker")
        importlib.import_module("testcontainers.core.container")
    except ImportError as error:
        message = f"testcontainers is not installed: {error}"
        raise Unavailable(message) from error
    try:
        client = docker.from_env()
        try:
            client.ping()
        finally:
            client.close()
    except docker.errors.DockerException as error:
        message = f"no Docker engine answers: {error}"
        raise Unavailable(message) from error


class _Container:
    """One container with one port, whose data lives in it and goes with it."""

    def __init__(
        self,
        service: str,
        port: int,
        env: Mapping[str, str],
        command: str | None = None,
    ) -> None:
        require_engine()
        # Not imported at the top: it reads the Docker configuration, which may be absent.
        from testcontainers.core.container import DockerContainer  # noqa: PLC0415

        self.name = service
        self.port = free_port()
        self._container: DockerContainer = DockerContainer(image(service)).with_envs(**env)
        if command:
            self._container.with_command(command)
        self.host = self._container.get_docker_client().host()
        if self.host in {"localhost", "127.0.0.1"}:
            self.host = "127.0.0.1"
            # `with_bind_ports` would publish on every interface; this is what docker-py takes.
            ports = cast("dict[str, object]", self._container.ports)
            ports[str(port)] = (self.host, self.port)
        else:
            # The engine is elsewhere, as on some CI systems, and has to be reached from here.
            self._container.with_bind_ports(port, self.port)
        self._started = False

    def start(self) -> Self:
        """Start, or start again on the same data and port, and wait until it answers.

        Raises:
            StartError: When it does not; the message ends with the last log lines.
        """
        if self._started:
            self._container.get_wrapped_container().start()
        else:
            self._container.start()
            self._started = True
        wait_until(
            self._answers,
            name=self.name,
            alive=self._alive,
            log=self._log,
            retry_on=(OSError, DriverError, Neo4jError, MilvusException, grpc.RpcError),
        )
        return self

    def stop(self) -> None:
        """Stop it and remove it with its data; harmless when it was not started."""
        self._container.stop()
        self._started = False

    def kill9(self) -> None:
        """Kill it with SIGKILL, as a crash would, and wait until it is gone."""
        wrapped = self._container.get_wrapped_container()
        wrapped.kill()
        wrapped.wait()

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.stop()

    def _answers(self) -> bool:
        raise NotImplementedError

    def _alive(self) -> bool:
        self._container.reload()
        return self._container.status in {"created", "restarting", "running"}

    def _log(self) -> str:
        out, err = self._container.get_logs()
        return "\n".join((out + err).decode(errors="replace").splitlines()[-LOG_LINES:])


class Neo4jContainer(_Container):
    """Neo4j as `neo4j_server.Neo4jServer`, in a container."""

    def __init__(self) -> None:
        """Prepare a container; nothing runs yet.

        Raises:
            Unavailable: Where no Docker engine answers.
        """
        self.user = neo4j_server.USER
        self.password = secrets.token_urlsafe(24)
        self.database = neo4j_server.DATABASE
        auth = f"{self.user}/{self.password}"
        super().__init__("neo4j", 7687, {"NEO4J_AUTH": auth})

    @property
    def bolt_uri(self) -> str:
        """URI for drivers."""
        return f"bolt://{self.host}:{self.port}"

    def _answers(self) -> bool:
        return neo4j_server.ping(self.bolt_uri, self.user, self.password)


class MilvusContainer(_Container):
    """Milvus as `milvus_server.MilvusServer`, in a container."""

    def __init__(self) -> None:
        """Prepare a container; nothing runs yet.

        Raises:
            Unavailable: Where no Docker engine answers.
        """
        # Standalone with everything inside, as testcontainers' own MilvusContainer sets it up.
        env = {
            "COMMON_STORAGETYPE": "local",
            "DEPLOY_MODE": "STANDALONE",
            "ETCD_DATA_DIR": "/var/lib/milvus/etcd",
            "ETCD_USE_EMBED": "true",
        }
        super().__init__("milvus", 19530, env, "milvus run standalone")
        # As in docker-compose.yml: older Docker profiles forbid system calls that Milvus makes.
        self._container.with_kwargs(security_opt=["seccomp:unconfined"])

    @property
    def uri(self) -> str:
        """URI for clients."""
        return f"http://{self.host}:{self.port}"

    def _answers(self) -> bool:
        return milvus_server.ping(self.uri)
