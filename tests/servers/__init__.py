"""Real Neo4j and Milvus servers for tests.

Two kinds with the same shape: `servers` runs both as processes from a cache that
`python tests/servers/fetch.py` fills, without Docker; `containers` runs the images that
`docker-compose.yml` names. Both keep their data in a directory of the test, listen on 127.0.0.1
only, can be killed and started again, and end with the tests whatever happens to these.

    with open_servers("servers", tmp_path) as servers:
        driver = neo4j.GraphDatabase.driver(servers.neo4j_uri, auth=servers.neo4j_auth)
        servers.milvus.kill9()
        servers.milvus.start()

A machine that cannot run them raises `Unavailable`; `unavailable(reason)` turns that into a skip,
or into a failure on CI, where a quiet skip would mean that nothing was tested.
"""

from __future__ import annotations

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NoReturn

import pytest

from .process import Handle, StartError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Handle", "Kind", "Servers", "StartError", "Unavailable", "open_servers", "unavailable"]

Kind = Literal["servers", "containers"]


@dataclass(frozen=True, slots=True)
class Servers:
    """Where the two stores are, and how to kill and start them."""

    neo4j_uri: str
    neo4j_user: str
    neo4j_password: str
    neo4j_database: str
    milvus_uri: str
    neo4j: Handle
    milvus: Handle

    @property
    def neo4j_auth(self) -> tuple[str, str]:
        """User and password as the driver takes them."""
        return self.neo4j_user, self.neo4j_password


def unavailable(reason: object) -> NoReturn:
    """Skip the test that needs a server this machine cannot run; on CI fail it."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"no server on CI: {reason}", pytrace=False)
    pytest.skip(f"no server: {reason}")


@contextlib.contextmanager
def open_servers(kind: Kind, root: Path) -> Iterator[Servers]:
    """Start both servers at once and stop them at the end.

    Args:
        kind: Processes or containers.
        root: Directory for their data; the same directory again means the same data, except for
            containers, whose data goes with them.

    Yields:
        Where they are.

    Raises:
        Unavailable: When this machine cannot run them.
        StartError: When one of them does not start.
    """
    # Imported here: the drivers take a second, and collecting tests should not pay for it.
    from . import containers, milvus_server, neo4j_server  # noqa: PLC0415

    neo4j: neo4j_server.Neo4jServer | containers.Neo4jContainer
    milvus: milvus_server.MilvusServer | containers.MilvusContainer
    if kind == "servers":
        neo4j = neo4j_server.Neo4jServer(root / "neo4j")
        milvus = milvus_server.MilvusServer(root / "milvus")
    else:
        neo4j = containers.Neo4jContainer()
        milvus = containers.MilvusContainer()

    with ThreadPoolExecutor(2, thread_name_prefix="servers") as pool, contextlib.ExitStack() as end:
        # Registered before the start: if one fails, the other may be running already.
        end.callback(lambda: list(pool.map(lambda server: server.stop(), (neo4j, milvus))))
        starts = [pool.submit(neo4j.start), pool.submit(milvus.start)]
        for start in starts:
            start.result()
        yield Servers(
            neo4j_uri=neo4j.bolt_uri,
            neo4j_user=neo4j.user,
            neo4j_password=neo4j.password,
            neo4j_database=neo4j.database,
            milvus_uri=milvus.uri,
            neo4j=neo4j,
            milvus=milvus,
        )
