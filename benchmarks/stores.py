"""Store sets to measure on: the embedded stores, and the real servers that the tests start."""

from __future__ import annotations

import base64
import contextlib
import importlib.util
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol, cast

from neo4j import AsyncDriver, AsyncGraphDatabase
from pymilvus import AsyncMilvusClient

from ecphoria.settings import Settings, load_settings
from ecphoria.stores.local import open_local_stores

STORE_SETS: Final = ("embedded", "servers")

_PACKAGE: Final = Path(__file__).parents[1] / "tests" / "servers"


class LeftOut(Exception):
    """A store set cannot run here; the message says why and how to change that."""


# Of made-up data: phones and addresses are sealed as anywhere.
MASTER_KEY: Final = f"benchmark:{base64.b64encode(bytes(32)).decode()}"


@dataclass(frozen=True, slots=True)
class StoreSet:
    """Where the stores of a set are."""

    name: str
    neo4j_uri: str
    neo4j_user: str
    neo4j_password: str
    neo4j_database: str
    milvus_uri: str

    def values(self, prefix: str, data_dir: Path, **changed: object) -> dict[str, object]:
        """Return what is to be set for these stores; everything else is as shipped.

        Args:
            prefix: Of the collections' names.
            data_dir: Where the engine may write.
            changed: What is to be other than shipped.
        """
        return {
            "neo4j_uri": self.neo4j_uri,
            "neo4j_user": self.neo4j_user,
            "neo4j_password": self.neo4j_password,
            "neo4j_database": self.neo4j_database,
            "milvus_uri": self.milvus_uri,
            "collection_prefix": prefix,
            "data_dir": data_dir,
            "master_keys": MASTER_KEY,
            # between two questions is no place for it; it has a run at the start
            "reconcile_every_s": 86_400.0,
            **changed,
        }

    def settings(self, prefix: str, data_dir: Path, **changed: object) -> Settings:
        """Return settings of `values`."""
        return load_settings(**self.values(prefix, data_dir, **changed))

    def environment(self, prefix: str, data_dir: Path, **changed: object) -> dict[str, str]:
        """Return the environment of another process with settings of `values`."""
        values = self.values(prefix, data_dir, **changed)
        return os.environ | {
            f"ECPHORIA_{name.upper()}": str(value) for name, value in values.items()
        }

    @contextlib.asynccontextmanager
    async def bare(self) -> AsyncIterator[tuple[AsyncDriver, AsyncMilvusClient]]:
        """Open clients as anybody would who has no engine."""
        milvus = AsyncMilvusClient(uri=self.milvus_uri, dedicated=True)
        try:
            async with AsyncGraphDatabase.driver(
                self.neo4j_uri,
                auth=(self.neo4j_user, self.neo4j_password),
                notifications_min_severity="OFF",
            ) as driver:
                yield driver, milvus
        finally:
            await milvus.close()


class _Servers(Protocol):
    neo4j_uri: str
    neo4j_user: str
    neo4j_password: str
    neo4j_database: str
    milvus_uri: str


class _ServersPackage(Protocol):
    Unavailable: type[Exception]
    StartError: type[Exception]

    @staticmethod
    def open_servers(kind: Literal["servers"], root: Path) -> AbstractContextManager[_Servers]: ...


def _servers_package() -> _ServersPackage:
    """Import `tests/servers`, and nothing else of the tests.

    By path and not through `sys.path`: that would make every module of the tests importable here,
    `conftest` and `builders` among them.

    Raises:
        LeftOut: When the tests or what they need are not there.
    """
    name = "servers"
    spec = importlib.util.spec_from_file_location(
        name, _PACKAGE / "__init__.py", submodule_search_locations=[str(_PACKAGE)]
    )
    if spec is None or spec.loader is None or not _PACKAGE.is_dir():
        msg = "tests/servers, which starts them, is not in this copy of the repository"
        raise LeftOut(msg)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        msg = f"the module {error.name} is missing: run `make install-dev`"
        raise LeftOut(msg) from error
    return cast("_ServersPackage", module)


@contextlib.asynccontextmanager
async def open_store_set(name: str, root: Path) -> AsyncIterator[StoreSet]:
    """Start both stores of a set in an empty directory, and stop them at the end.

    Raises:
        LeftOut: When this machine cannot run them.
        StoreError: When the embedded stores do not start.
    """
    if name == "embedded":
        async with open_local_stores(root) as local:
            yield StoreSet(
                name,
                local.neo4j_uri,
                local.neo4j_user,
                local.neo4j_password,
                local.neo4j_database,
                local.milvus_uri,
            )
        return
    package = _servers_package()
    with contextlib.ExitStack() as stack:
        try:
            servers = stack.enter_context(package.open_servers("servers", root))
        except (package.Unavailable, package.StartError) as error:
            raise LeftOut(str(error)) from error
        yield StoreSet(
            name,
            servers.neo4j_uri,
            servers.neo4j_user,
            servers.neo4j_password,
            servers.neo4j_database,
            servers.milvus_uri,
        )
