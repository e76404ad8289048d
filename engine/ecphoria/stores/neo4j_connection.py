"""A connection to the graph over Bolt: transactions, retries, errors, schema."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Self, TypeVar
from weakref import WeakValueDictionary

import stamina
import structlog
from neo4j import AsyncDriver, AsyncGraphDatabase, AsyncManagedTransaction, Query
from neo4j.exceptions import (
    AuthError,
    ClientError,
    ConfigurationError,
    ConstraintError,
    DriverError,
    Neo4jError,
    ServiceUnavailable,
    SessionExpired,
    TransientError,
)

from ecphoria.errors import (
    ConfigurationInvalid,
    MigrationFailed,
    StoreAuthenticationFailed,
    StoreError,
    StoreUnavailable,
)
from ecphoria.model import EntityRef, entity_key
from ecphoria.stores.ports import ServerInfo
from ecphoria_schema.domain import Domain
from ecphoria_schema.migration import BOOTSTRAP, Migration, domain_migration, shipped_migrations
from ecphoria_schema.queries import query

log = structlog.get_logger(__name__)

Row = dict[str, Any]
Result = TypeVar("Result")

_ATTEMPTS = 8
_DDL_ATTEMPTS = 10
_GONE = "Neo.ClientError.Statement.EntityNotFound"
_UNKNOWN = "Neo.DatabaseError.General.UnknownError"
_TOO_MANY_LOGINS = "Neo.ClientError.Security.AuthenticationRateLimit"
_BOLT_URI = re.compile(r"(?:bolt|neo4j)(?:\+s|\+ssc)?://[^/]")


def records(
    text: str, **parameters: object
) -> Callable[[AsyncManagedTransaction], Awaitable[list[Row]]]:
    """Return the work of a transaction that runs one query."""

    async def work(tx: AsyncManagedTransaction) -> list[Row]:
        return await run(tx, text, **parameters)

    return work


async def run(tx: AsyncManagedTransaction, text: str, **parameters: object) -> list[Row]:
    """Run a query in a transaction; return its rows as maps of values."""
    # every text is a shipped file or made from the validated domain; values are parameters
    result = await tx.run(text, parameters)
    # every query returns values and maps, no nodes: nothing to unpack, as `data()` would
    return [dict(record) async for record in result]


def grouped(rows: Iterable[tuple[Any, Row]]) -> dict[Any, list[Row]]:
    """Return rows by their group, in order."""
    groups: dict[Any, list[Row]] = defaultdict(list)
    for group, row in rows:
        groups[group].append(row)
    return dict(groups)


class Neo4jConnection:
    """What all parts of the graph store do their work through."""

    def __init__(
        self, driver: AsyncDriver, database: str, domain: Domain, timeout_s: float
    ) -> None:
        """Use a driver; `open` makes one."""
        self._driver = driver
        self._database = database
        self._domain = domain
        self._timeout_s = timeout_s
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def _owner(self, tenant: str, user_id: str) -> str:
        return entity_key(tenant, EntityRef(self._domain.root, user_id))

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls,
        uri: str,
        user: str,
        password: str,
        *,
        database: str,
        domain: Domain,
        timeout_s: float,
    ) -> AsyncIterator[Self]:
        """Connect; nothing is sent before the first call.

        Raises:
            ConfigurationInvalid: When the URI is none.
        """
        if not _BOLT_URI.match(uri):
            msg = f"ECPHORIA_NEO4J_URI {uri!r} must begin with bolt:// or neo4j:// (or +s, +ssc)"
            raise ConfigurationInvalid(msg)
        try:
            driver = AsyncGraphDatabase.driver(
                uri,
                auth=(user, password),
                connection_timeout=min(10.0, timeout_s),
                connection_acquisition_timeout=timeout_s,
                max_transaction_retry_time=timeout_s / 3,
                # ArcadeDB reports contention as transient: the default first pause is 1 s
                initial_retry_delay=0.02,
                retry_delay_multiplier=1.5,
                keep_alive=True,
                # deprecation hints of the server are for developers, not for the log
                notifications_min_severity="OFF",
            )
        except (ConfigurationError, ValueError) as error:
            msg = f"ECPHORIA_NEO4J_URI {uri!r} is no Bolt URI: {error}"
            raise ConfigurationInvalid(msg) from error
        async with driver:
            yield cls(driver, database, domain, timeout_s)

    async def close(self) -> None:
        """Close connections."""
        await self._driver.close()

    @contextlib.asynccontextmanager
    async def _translated(self, doing: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._timeout_s):
                yield
        except TimeoutError as error:
            msg = f"the graph store did not answer within {self._timeout_s:g} s while {doing}"
            raise StoreUnavailable(msg) from error
        except AuthError as error:
            msg = "the graph store refused the user name or password"
            raise StoreAuthenticationFailed(msg) from error
        except ClientError as error:
            if error.code != _TOO_MANY_LOGINS:
                msg = f"the graph store failed while {doing}: {_first_line(error)}"
                raise StoreError(msg) from error
            msg = "the graph store refuses this user for a while after several wrong passwords"
            raise StoreAuthenticationFailed(msg) from error
        except (ServiceUnavailable, SessionExpired, TransientError) as error:
            msg = f"the graph store is unavailable while {doing}: {_first_line(error)}"
            raise StoreUnavailable(msg) from error
        except (Neo4jError, DriverError) as error:
            if _is_lost(error):
                msg = f"the graph store is unavailable while {doing}: {_first_line(error)}"
                raise StoreUnavailable(msg) from error
            msg = f"the graph store failed while {doing}: {_first_line(error)}"
            raise StoreError(msg) from error
        except OSError as error:
            msg = f"the graph store cannot be reached while {doing}: {_first_line(error)}"
            raise StoreUnavailable(msg) from error

    async def _read(
        self, doing: str, work: Callable[[AsyncManagedTransaction], Awaitable[Result]]
    ) -> Result:
        async with self._translated(doing):
            async for attempt in _attempts():
                with attempt:
                    async with self._driver.session(database=self._database) as session:
                        return await session.execute_read(work)
        raise AssertionError  # pragma: no cover - the loop returns or raises

    @contextlib.asynccontextmanager
    async def _locked(self, keys: Iterable[str]) -> AsyncIterator[None]:
        # writers of one key in this process wait here: in the store they would collide, roll
        # back and try again. Sorted, so that two batches cannot wait for each other.
        async with contextlib.AsyncExitStack() as stack:
            for key in sorted(set(keys)):
                await stack.enter_async_context(self._locks.setdefault(key, asyncio.Lock()))
            yield

    async def _write(
        self, doing: str, work: Callable[[AsyncManagedTransaction], Awaitable[Result]]
    ) -> Result:
        async with self._translated(doing):
            async for attempt in _attempts():
                with attempt:
                    async with self._driver.session(database=self._database) as session:
                        return await session.execute_write(work)
        raise AssertionError  # pragma: no cover - the loop returns or raises

    async def ping(self) -> ServerInfo:
        """See `GraphStore.ping`."""
        async with self._translated("pinging"):
            async with self._driver.session(database=self._database) as session:
                result = await session.run(query("ping"))
                await result.consume()
            info = await self._driver.get_server_info()
        product, _, version = info.agent.partition("/")
        if "ArcadeDB" in info.agent:
            return ServerInfo(
                "ArcadeDB", info.agent.partition("ArcadeDB")[2].strip(" )v") or version
            )
        return ServerInfo(product, version)

    # --- schema ----------------------------------------------------------------------------

    async def migrate(self) -> tuple[str, ...]:
        """See `GraphStore.migrate`."""
        await self._ddl(BOOTSTRAP)
        recorded = {
            row["key"]: row["checksum"]
            for row in await self._read(
                "reading schema versions", records(query("schema_versions"))
            )
        }
        applied: list[str] = []
        for migration in (*shipped_migrations(), domain_migration(self._domain)):
            known = recorded.get(migration.version)
            if known is None:
                known = await self._apply(migration)
                applied.append(migration.version)
            if known != migration.checksum:
                msg = (
                    f"migration {migration.version} ({migration.name}) was applied with other "
                    f"content: recorded {known}, shipped {migration.checksum}"
                )
                raise MigrationFailed(msg)
        return tuple(applied)

    async def _apply(self, migration: Migration) -> str:
        for statement in migration.statements:
            await self._ddl(statement)
        rows = await self._write(
            f"recording migration {migration.version}",
            records(
                query("record_schema_version"),
                key=migration.version,
                checksum=migration.checksum,
                name=migration.name,
                now=whole_second(),
            ),
        )
        log.info("migration applied", version=migration.version, name=migration.name)
        return str(rows[0]["checksum"])

    async def _ddl(self, statement: str) -> None:
        # two processes that start together may collide; every statement is IF NOT EXISTS
        try:
            async with self._translated("changing the schema"):
                async for attempt in stamina.retry_context(
                    on=_may_pass,
                    attempts=_DDL_ATTEMPTS,
                    wait_initial=0.05,
                    wait_max=1.0,
                    timeout=self._timeout_s,
                ):
                    with attempt:
                        async with self._driver.session(database=self._database) as session:
                            result = await session.run(Query(statement))
                            await result.consume()
        except StoreAuthenticationFailed:
            raise
        except StoreUnavailable:
            raise
        except StoreError as error:
            msg = f"{error.message} ({statement})"
            raise MigrationFailed(msg) from error


def whole_second() -> datetime:
    """Return the present moment, for a time that only people read."""
    # whole seconds read well in the Browser; nothing is ordered by these times
    return datetime.now(UTC).replace(microsecond=0)


def _attempts() -> AsyncIterator[stamina.Attempt]:
    return stamina.retry_context(
        on=_collided,
        attempts=_ATTEMPTS,
        wait_initial=0.01,
        wait_max=0.5,
        wait_jitter=0.05,
    )


def _collided(error: Exception) -> bool:
    # two MERGEs of one new key: the second fails on ArcadeDB, and finds it next time; what another
    # writer deletes while it is looked at is not there next time; ArcadeDB calls a rare collision
    # of many writers no more than unknown, and the transaction is rolled back
    return isinstance(error, ConstraintError) or getattr(error, "code", None) in {_GONE, _UNKNOWN}


def _may_pass(error: Exception) -> bool:
    # a collision passes, a refusal does not
    if isinstance(error, AuthError) or getattr(error, "code", None) == _TOO_MANY_LOGINS:
        return False
    return isinstance(error, Neo4jError | DriverError)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def _is_lost(error: BaseException) -> bool:
    code = getattr(error, "code", None) or ""
    return "DatabaseUnavailable" in code or "DatabaseNotFound" in code
