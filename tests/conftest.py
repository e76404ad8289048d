"""Store sets and engines for tests.

``pytest --stores=embedded,servers`` runs every test that needs stores once on each set:

- ``embedded``: ArcadeDB and Milvus Lite, as on a laptop;
- ``servers``: real Neo4j and Milvus processes, see `tests/servers`;
- ``containers``: the images of docker-compose.yml, where Docker runs.

A test marked ``one_store_set`` runs on the first one only: it needs stores, but what it proves is
before them or beside them, and what they do for it is proved on each set elsewhere.

A set is started once, when the first test asks for it. Tests share its stores but no state: each
has a tenant of its own.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import itertools
import os
import re
import secrets
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from xdist.scheduler import LoadScopeScheduling

from ecphoria.engine import Engine
from ecphoria.model import EveryUser, Role, Scope
from ecphoria.settings import Settings, load_settings
from ecphoria.stores.local import open_local_stores
from servers import Servers, Unavailable, open_servers, unavailable

if TYPE_CHECKING:
    from xdist.remote import Producer

    from servers.redis_server import RedisServer

KINDS = ("embedded", "servers", "containers")
# Stores are shared by the engines of many tests, and so are the keys of what is in them.
MASTER_KEYS = ",".join(
    f"{id_}:{base64.b64encode(hashlib.sha256(id_.encode()).digest()).decode()}"
    for id_ in ("test-1", "test-2")
)
_KIND = re.compile(rf"[\[-]({'|'.join(KINDS)})[\]-]")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--stores",
        default="embedded",
        help=f"comma-separated store sets to test on: {', '.join(KINDS)}",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "store_kind" in metafunc.fixturenames:
        kinds = metafunc.config.getoption("--stores").split(",")
        for kind in kinds:
            if kind not in KINDS:
                msg = f"--stores: {kind!r} is none of {', '.join(KINDS)}"
                raise pytest.UsageError(msg)
        if metafunc.definition.get_closest_marker("one_store_set"):
            kinds = kinds[:1]
        metafunc.parametrize("store_kind", kinds)


class ByStoreSet(LoadScopeScheduling):
    """Gives all tests of a store set to one worker, so that each set is started once.

    (xdist's own groups have no effect with pytest 9: it sets an attribute that nothing reads.)
    """

    def _split_scope(self, nodeid: str) -> str:
        file, _, rest = nodeid.partition("::")
        found = _KIND.search(rest)
        return found[1] if found else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByStoreSet | None:
    if config.getoption("dist") != "loadgroup":
        return None
    return ByStoreSet(config, log)


@dataclass(frozen=True)
class StoreSet:
    """Where the stores of a set are.

    Attributes:
        servers: Handles to kill and restart them; None for the embedded set.
    """

    kind: str
    neo4j_uri: str
    neo4j_user: str
    neo4j_password: str
    neo4j_database: str
    milvus_uri: str
    servers: Servers | None = None

    def env(self, prefix: str, data_dir: Path) -> dict[str, str]:
        """Return the settings for these stores, as environment variables."""
        return {
            "ECPHORIA_NEO4J_URI": self.neo4j_uri,
            "ECPHORIA_NEO4J_USER": self.neo4j_user,
            "ECPHORIA_NEO4J_PASSWORD": self.neo4j_password,
            "ECPHORIA_NEO4J_DATABASE": self.neo4j_database,
            "ECPHORIA_MILVUS_URI": self.milvus_uri,
            "ECPHORIA_COLLECTION_PREFIX": prefix,
            "ECPHORIA_DATA_DIR": str(data_dir),
            "ECPHORIA_MASTER_KEYS": MASTER_KEYS,
        }

    def settings(self, prefix: str, data_dir: Path, **overrides: Any) -> Settings:
        """Return the settings for these stores."""
        values = {
            name.removeprefix("ECPHORIA_").lower(): value
            for name, value in self.env(prefix, data_dir).items()
        }
        return load_settings(**(values | overrides))


@dataclass
class _Started:
    root: Path
    stack: contextlib.AsyncExitStack
    sets: dict[str, StoreSet | Unavailable] = field(default_factory=dict)
    engines: dict[str, Engine] = field(default_factory=dict)

    async def store_set(self, kind: str) -> StoreSet:
        if kind not in self.sets:
            try:
                self.sets[kind] = await self._start(kind)
            except Unavailable as error:
                self.sets[kind] = error
        found = self.sets[kind]
        if isinstance(found, Unavailable):
            unavailable(found)
        return found

    async def _start(self, kind: str) -> StoreSet:
        if kind == "embedded":
            local = await self.stack.enter_async_context(open_local_stores(self.root / kind))
            return StoreSet(
                kind,
                local.neo4j_uri,
                local.neo4j_user,
                local.neo4j_password,
                local.neo4j_database,
                local.milvus_uri,
            )
        servers = self.stack.enter_context(
            open_servers("servers" if kind == "servers" else "containers", self.root / kind)
        )
        return StoreSet(
            kind,
            servers.neo4j_uri,
            servers.neo4j_user,
            servers.neo4j_password,
            servers.neo4j_database,
            servers.milvus_uri,
            servers,
        )

    async def engine(self, kind: str) -> Engine:
        if kind not in self.engines:
            stores = await self.store_set(kind)
            settings = stores.settings("shared", self.root / f"{kind}-data")
            self.engines[kind] = await self.stack.enter_async_context(Engine.open(settings))
        return self.engines[kind]


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def _started(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[_Started]:
    async with contextlib.AsyncExitStack() as stack:
        yield _Started(tmp_path_factory.mktemp("stores"), stack)


@pytest_asyncio.fixture(loop_scope="session")
async def stores(store_kind: str, _started: _Started) -> StoreSet:
    """Return the store set that the test runs on, started."""
    return await _started.store_set(store_kind)


@pytest_asyncio.fixture(loop_scope="session")
async def engine(store_kind: str, _started: _Started) -> Engine:
    """Return an engine on the store set; shared, so use the `tenant` of the test."""
    return await _started.engine(store_kind)


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """Return a real Redis server; shared, so use the `prefix` of the test."""
    # the client takes a while to import, and few tests need it
    from servers.redis_server import RedisServer  # noqa: PLC0415

    try:
        server = RedisServer(tmp_path_factory.mktemp("redis"))
    except Unavailable as error:
        unavailable(error)
    with server:
        yield server


@pytest.fixture
def vector_uri(stores: StoreSet) -> str:
    """Return the URI of the vector store."""
    return stores.milvus_uri


@pytest.fixture
def vector_token() -> str | None:
    """Return the token of the vector store; the stores of tests have none."""
    return None


@pytest.fixture
def tenant() -> str:
    """Return a tenant that no other test uses."""
    return f"t-{secrets.token_hex(8)}"


@pytest.fixture
def admin(tenant: str) -> Scope:
    """Return a scope that may do everything in the test's tenant."""
    return Scope(tenant, "test", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)


_PREFIXES = itertools.count()


@pytest.fixture
def prefix() -> str:
    """Return a collection prefix that no other test uses."""
    return f"p{os.getpid()}_{next(_PREFIXES)}"


@pytest.fixture
def cli_env(stores: StoreSet, tmp_path: Path) -> dict[str, str]:
    """Return an environment that points the command line at the store set."""
    return _clean_env() | stores.env("shared", tmp_path / "data")


@pytest.fixture
def embedded_env(tmp_path: Path) -> dict[str, str]:
    """Return an environment with an empty data directory and embedded stores of its own."""
    return _clean_env() | {"ECPHORIA_DATA_DIR": str(tmp_path / "data")}


def _clean_env() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("ECPHORIA_")}
