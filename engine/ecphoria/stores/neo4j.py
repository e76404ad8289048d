"""The graph store over Bolt: Neo4j in production, ArcadeDB on a laptop, the same driver."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
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
    CardinalityViolated,
    ConfigurationInvalid,
    MigrationFailed,
    MissingEntity,
    StoreAuthenticationFailed,
    StoreError,
    StoreUnavailable,
)
from ecphoria.model import (
    ApiKey,
    Edge,
    Entity,
    EntityRef,
    Memory,
    NamedEntity,
    SourceInfo,
    entity_key,
    memory_key,
)
from ecphoria.stores.graph_rows import (
    entity_from,
    key_from,
    key_props,
    memory_from,
    memory_props,
    merged_props,
    native,
    source_from,
    source_key,
    split_key,
)
from ecphoria.stores.ports import (
    EntityRow,
    EntityWrite,
    ExpandQuery,
    Expansion,
    MemoryWrite,
    PendingMemory,
    RelatedQuery,
    RelationRow,
    ServerInfo,
)
from ecphoria_schema.domain import Domain, Relation
from ecphoria_schema.expansion import expansion_query, names_query
from ecphoria_schema.migration import BOOTSTRAP, Migration, domain_migration, shipped_migrations
from ecphoria_schema.queries import query

log = structlog.get_logger(__name__)

Row = dict[str, Any]
Result = TypeVar("Result")

# How many entities of a type lend their names to a text (notes: a user may own thousands).
MAX_NAMED = 2_000
# How many relations of one entity are looked at before the scope filter.
MAX_SCANNED = 1_000
_WRITE_ATTEMPTS = 8
_DDL_ATTEMPTS = 10
_QUEUE_BATCH = 1_000
_TOO_MANY_LOGINS = "Neo.ClientError.Security.AuthenticationRateLimit"
_BOLT_URI = re.compile(r"(?:bolt|neo4j)(?:\+s|\+ssc)?://[^/]")


def _rows(
    text: str, **parameters: object
) -> Callable[[AsyncManagedTransaction], Awaitable[list[Row]]]:
    async def work(tx: AsyncManagedTransaction) -> list[Row]:
        return await _run(tx, text, **parameters)

    return work


async def _run(tx: AsyncManagedTransaction, text: str, **parameters: object) -> list[Row]:
    # every text is a shipped file or made from the validated domain; values are parameters
    result = await tx.run(text, parameters)
    # every query returns values and maps, no nodes: nothing to unpack, as `data()` would
    return [dict(record) async for record in result]


def _grouped(rows: Iterable[tuple[Any, Row]]) -> dict[Any, list[Row]]:
    groups: dict[Any, list[Row]] = defaultdict(list)
    for group, row in rows:
        groups[group].append(row)
    return dict(groups)


class Neo4jGraph:
    """`GraphStore` over the neo4j driver."""

    def __init__(
        self, driver: AsyncDriver, database: str, domain: Domain, timeout_s: float
    ) -> None:
        """Use a driver; `open` makes one."""
        self._driver = driver
        self._database = database
        self._domain = domain
        self._timeout_s = timeout_s
        self._expansions = {path: expansion_query(domain, path) for path in domain.paths}
        self._names = names_query(domain)
        self._shared_names = names_query(domain, shared_only=True)
        self._owning = tuple(relation for relation in domain.relations if relation.owns)
        self._depth = _depths(domain)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

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
        async with (
            self._translated(doing),
            self._driver.session(database=self._database) as session,
        ):
            return await session.execute_read(work)

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
            # two MERGEs of one new key: the second fails on ArcadeDB, and finds it next time
            async for attempt in stamina.retry_context(
                on=ConstraintError,
                attempts=_WRITE_ATTEMPTS,
                wait_initial=0.01,
                wait_max=0.5,
                wait_jitter=0.05,
            ):
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
            for row in await self._read("reading schema versions", _rows(query("schema_versions")))
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
            _rows(
                query("record_schema_version"),
                key=migration.version,
                checksum=migration.checksum,
                name=migration.name,
                now=_second(),
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

    # --- entities --------------------------------------------------------------------------

    async def upsert_entities(
        self, tenant: str, entities: Sequence[EntityRow], relations: Sequence[RelationRow]
    ) -> EntityWrite:
        """See `GraphStore.upsert_entities`."""
        now = _second()

        async def work(tx: AsyncManagedTransaction) -> EntityWrite:
            outcomes = await self._merge_entities(tx, tenant, entities, now)
            created = await self._merge_relations(tx, tenant, relations, now)
            return EntityWrite(tuple(outcomes), created)

        async with self._locked(entity_key(tenant, row.ref) for row in entities):
            return await self._write("writing entities", work)

    async def _merge_entities(
        self,
        tx: AsyncManagedTransaction,
        tenant: str,
        entities: Sequence[EntityRow],
        now: datetime,
    ) -> list[Any]:
        outcomes: list[Any] = [None] * len(entities)
        by_type: dict[str, list[tuple[int, EntityRow]]] = defaultdict(list)
        for index, row in enumerate(entities):
            by_type[row.ref.type].append((index, row))
        for label in sorted(by_type):
            # one order of keys for all writers, so that two batches cannot wait for each other
            group = sorted(by_type[label], key=lambda item: item[1].ref)
            keys = {index: entity_key(tenant, row.ref) for index, row in group}
            root = label == self._domain.root
            found = await _run(
                tx,
                query("merge_entities", label=label),
                tenant=tenant,
                now=now,
                rows=[
                    {
                        "key": keys[index],
                        "id": row.ref.id,
                        "owner_key": keys[index] if root else None,
                        "user_id": row.ref.id if root else None,
                    }
                    for index, row in group
                ],
            )
            stored = {item["key"]: item["props"] for item in found}
            changes: list[Row] = []
            for index, row in group:
                before = stored[keys[index]]
                new = "observed_at" not in before
                props = merged_props(self._domain, row, before)
                if props is not None:
                    changes.append({"key": keys[index], "props": props})
                outcomes[index] = "CREATED" if new else "UNCHANGED" if props is None else "UPDATED"
            if changes:
                await _run(tx, query("set_entities", label=label), rows=changes)
        return outcomes

    async def _merge_relations(
        self,
        tx: AsyncManagedTransaction,
        tenant: str,
        relations: Sequence[RelationRow],
        now: datetime,
    ) -> int:
        groups = _grouped(
            (
                (row.type, row.from_.type, row.to.type),
                {
                    "index": index,
                    "from": entity_key(tenant, row.from_),
                    "to": entity_key(tenant, row.to),
                },
            )
            for index, row in enumerate(relations)
        )
        created = 0
        # owners first: what hangs below inherits from what was connected just before
        for group in sorted(groups, key=lambda item: (self._depth.get(item[1], 99), item)):
            type_, start, end = group
            rows = sorted(groups[group], key=lambda row: (row["from"], row["to"]))
            new = await self._new_relations(tx, relations, group, rows)
            if not new:
                continue
            await _run(
                tx,
                query("merge_relations", type=type_, **{"from": start}, to=end),
                rows=new,
                now=now,
            )
            created += len(new)
            relation = self._domain.relation(type_, start, end)
            if relation is None:  # pragma: no cover - validated before
                continue
            await self._check_cardinality(tx, relation, start, end, new)
            if relation.owns:
                await self._hand_on_owner(tx, start, end, new)
        return created

    async def _new_relations(
        self,
        tx: AsyncManagedTransaction,
        relations: Sequence[RelationRow],
        group: tuple[str, str, str],
        rows: list[Row],
    ) -> list[Row]:
        type_, start, end = group
        found = await _run(
            tx, query("find_relations", type=type_, **{"from": start}, to=end), rows=rows
        )
        there: set[int] = set()
        for item in found:
            row = relations[item["index"]]
            for ref, key in ((row.from_, item["from"]), (row.to, item["to"])):
                if key is None:
                    msg = f"{type_}: there is no {ref.type} {ref.id!r}"
                    raise MissingEntity(msg, path=("relations", item["index"]))
            if item["there"]:
                there.add(item["index"])
        unique = {(row["from"], row["to"]): row for row in rows if row["index"] not in there}
        return list(unique.values())

    async def _check_cardinality(
        self,
        tx: AsyncManagedTransaction,
        relation: Relation,
        start: str,
        end: str,
        rows: list[Row],
    ) -> None:
        checks = (
            (relation.end_has_one_start, "second_starts", "to", {"type": relation.type, "to": end}),
            (
                relation.start_has_one_end,
                "second_ends",
                "from",
                {"type": relation.type, "from": start},
            ),
        )
        for applies, name, side, identifiers in checks:
            if not applies:
                continue
            found = await _run(
                tx, query(name, **identifiers), keys=sorted({row[side] for row in rows})
            )
            if found:
                key = found[0]["key"]
                ref = split_key(key)[1]
                index = next(row["index"] for row in rows if row[side] == key)
                partner = "start" if side == "to" else "end"
                msg = f"{relation.type}: {ref.type} {ref.id!r} would have a second {partner}"
                raise CardinalityViolated(msg, path=("relations", index))

    async def _hand_on_owner(
        self, tx: AsyncManagedTransaction, start: str, end: str, rows: list[Row]
    ) -> None:
        await _run(tx, query("own_ends", **{"from": start}, to=end), rows=rows)
        below = tuple(
            sorted({relation.type for relation in self._owning if self._below(end, relation)})
        )
        if below:
            keys = sorted({row["to"] for row in rows})
            await _run(tx, query("own_below", to=end, owning=below), keys=keys)

    def _below(self, label: str, relation: Relation) -> bool:
        return self._depth.get(relation.from_, 0) >= self._depth.get(label, 0)

    # --- memories --------------------------------------------------------------------------

    async def write_memories(
        self, memories: Sequence[Memory], token: str
    ) -> tuple[MemoryWrite, ...]:
        """See `GraphStore.write_memories`."""
        now = _second()
        ordered = sorted(memories, key=lambda memory: memory.key)

        async def work(tx: AsyncManagedTransaction) -> dict[str, MemoryWrite]:
            found = await _run(
                tx,
                query("merge_memories"),
                rows=[{"key": memory.key, "props": memory_props(memory)} for memory in ordered],
                token=token,
            )
            stored = {row["key"]: row for row in found}
            written = {memory.key: _outcome(memory, stored[memory.key]) for memory in ordered}
            created = [m for m in ordered if written[m.key].outcome == "CREATED"]
            if created:
                await self._connect(tx, created, token, now)
            return written

        async with self._locked(memory.key for memory in ordered):
            written = await self._write("writing memories", work)
        return tuple(written[memory.key] for memory in memories)

    async def _connect(
        self, tx: AsyncManagedTransaction, created: list[Memory], token: str, now: datetime
    ) -> None:
        about = _grouped(
            (split_key(key)[1].type, {"memory": memory.key, "entity": key})
            for memory in created
            for key in memory.about
        )
        for label in sorted(about):
            await _run(tx, query("link_about", label=label), rows=about[label])
        sources = self._domain.sources
        await _run(
            tx,
            query("link_source"),
            tenant=created[0].tenant,
            now=now,
            rows=[
                {
                    "memory": memory.key,
                    "source_key": source_key(memory.tenant, memory.source_id),
                    "source_id": memory.source_id,
                    "source_name": sources[memory.source_id].title.en,
                    "reliability": sources[memory.source_id].reliability,
                }
                for memory in created
            ],
        )
        keys = [memory.key for memory in created]
        pairs = [
            {"newer": memory.key, "older": memory_key(memory.tenant, memory.supersedes)}
            for memory in created
            if memory.supersedes is not None
        ]
        pairs += await _run(tx, query("late_supersessions"), keys=keys)
        superseded = await _run(tx, query("supersede"), rows=pairs) if pairs else []
        pending = sorted({*keys, *(row["key"] for row in superseded)})
        await _run(tx, query("mark_pending"), keys=pending, token=token)

    async def memories(self, tenant: str, ids: Sequence[str]) -> tuple[Memory, ...]:
        """See `GraphStore.memories`."""
        rows = await self._read(
            "reading memories",
            _rows(query("memories"), keys=[memory_key(tenant, id_) for id_ in ids]),
        )
        return tuple(memory_from(row["props"], row["about"]) for row in rows)

    async def pending(self, limit: int, after: str = "") -> tuple[PendingMemory, ...]:
        """See `GraphStore.pending`."""
        rows = await self._read(
            "reading pending rows", _rows(query("pending"), limit=limit, after=after)
        )
        return _pending(rows)

    async def pending_of(self, token: str) -> tuple[PendingMemory, ...]:
        """See `GraphStore.pending_of`."""
        rows = await self._read("reading pending rows", _rows(query("pending_of"), token=token))
        return _pending(rows)

    async def mark_indexed(self, done: Mapping[str, str], model: str) -> frozenset[str]:
        """See `GraphStore.mark_indexed`."""
        rows = await self._write(
            "marking rows as indexed",
            _rows(
                query("mark_indexed"),
                rows=[{"key": key, "token": done[key]} for key in sorted(done)],
                model=model,
            ),
        )
        return frozenset(row["key"] for row in rows)

    async def requeue(self, keys: Sequence[str], token: str) -> None:
        """See `GraphStore.requeue`."""
        await self._write(
            "queueing rows again", _rows(query("mark_pending"), keys=list(keys), token=token)
        )

    async def requeue_all(self, token: str) -> int:
        """See `GraphStore.requeue_all`."""
        count, after = 0, ""
        while rows := await self._write(
            "queueing every row again",
            _rows(query("requeue_all"), after=after, limit=_QUEUE_BATCH, token=token),
        ):
            count += len(rows)
            after = max(row["key"] for row in rows)
        return count

    async def count_pending(self) -> int:
        """See `GraphStore.count_pending`."""
        rows = await self._read("counting", _rows(query("count_pending"), prefix=""))
        return int(rows[0]["count"])

    # --- reading ---------------------------------------------------------------------------

    async def visible_entities(
        self, tenant: str, user_id: str | None, refs: Sequence[EntityRef]
    ) -> tuple[Entity, ...]:
        """See `GraphStore.visible_entities`."""
        rows = await self._by_label("entities", tenant, refs)
        found = (entity_from(self._domain, row["props"]) for row in rows)
        return tuple(entity for entity in found if self._is_visible(entity, user_id))

    async def existing_entities(
        self, tenant: str, refs: Sequence[EntityRef]
    ) -> frozenset[EntityRef]:
        """See `GraphStore.existing_entities`."""
        rows = await self._by_label("existing", tenant, refs)
        return frozenset(split_key(row["key"])[1] for row in rows)

    async def _by_label(self, name: str, tenant: str, refs: Sequence[EntityRef]) -> list[Row]:
        groups: dict[str, list[str]] = defaultdict(list)
        for ref in dict.fromkeys(refs):
            groups[ref.type].append(entity_key(tenant, ref))
        if not groups:
            return []

        async def work(tx: AsyncManagedTransaction) -> list[Row]:
            rows: list[Row] = []
            for label, keys in groups.items():
                rows += await _run(tx, query(name, label=label), keys=keys)
            return rows

        return await self._read("reading entities", work)

    def _is_visible(self, entity: Entity, user_id: str | None) -> bool:
        # an owned entity without an owner is not yet connected: fail closed
        if entity.type in self._domain.owned_types:
            return user_id is not None and entity.user_id == user_id
        return True

    async def names(self, tenant: str, user_id: str | None) -> tuple[NamedEntity, ...]:
        """See `GraphStore.names`."""
        owner = None if user_id is None else self._owner(tenant, user_id)
        text = self._shared_names if user_id is None else self._names
        rows = await self._read(
            "reading names", _rows(text, owner=owner, tenant=tenant, limit=MAX_NAMED)
        )
        called: dict[tuple[str, str], dict[EntityRef, None]] = defaultdict(dict)
        for row in rows:
            refs = [split_key(key)[1] for key in (row["key"], *row["holders"])]
            for name, value in row["props"].items():
                for text_ in value if isinstance(value, list) else [value]:
                    if text_:
                        called[str(text_), name].update(dict.fromkeys(refs))
        return tuple(
            NamedEntity(text_, name, tuple(refs)) for (text_, name), refs in called.items()
        )

    def _owner(self, tenant: str, user_id: str) -> str:
        return entity_key(tenant, EntityRef(self._domain.root, user_id))

    async def expand(self, query_: ExpandQuery) -> Expansion:
        """See `GraphStore.expand`."""
        mentions: dict[str, list[str]] = {
            f"mentions_{label}": [] for label in self._domain.entities
        }
        for ref in query_.mentions:
            mentions[f"mentions_{ref.type}"].append(entity_key(query_.tenant, ref))
        rows = await self._read(
            "expanding",
            _rows(
                self._expansions[query_.path],
                p={
                    "tenant": query_.tenant,
                    "user": query_.user_id,
                    "owner": self._owner(query_.tenant, query_.user_id),
                    "t": query_.as_of,
                    "history": query_.include_history,
                    "privacy": list(query_.privacy),
                    "seeds": list(query_.seeds),
                    "anchors": list(query_.seeds[: query_.anchors]),
                    "from_root": query_.from_root,
                    "cap": query_.memories_per_entity,
                    "scan": query_.scan_cap,
                    **mentions,
                },
            ),
        )
        return self._expansion(rows[0])

    def _expansion(self, row: Row) -> Expansion:
        others = {
            item["props"]["key"]: memory_from(item["props"], item["about"])
            for kept in row["others"]
            for item in kept
        }
        entities = tuple(entity_from(self._domain, props) for props in row["entities"])
        known = {entity.key for entity in entities}
        return Expansion(
            seeds=tuple(memory_from(item["props"], item["about"]) for item in row["seeds"]),
            others=tuple(others.values()),
            entities=entities,
            edges=tuple(
                dict.fromkeys(
                    Edge(type_, start, end)
                    for start, type_, end in row["edges"]
                    if start in known and end in known
                )
            ),
            mentioned=tuple(split_key(key)[1] for key in dict.fromkeys(row["named"])),
            sources=tuple(source_from(props) for props in row["sources"]),
            hidden=row["hidden"],
            scanned_out=bool(row["full"]),
        )

    async def related(self, query_: RelatedQuery) -> Mapping[EntityRef, tuple[Entity, ...]]:
        """See `GraphStore.related`."""
        start = query_.refs[0].type
        owned = self._domain.owned_types
        owner = self._owner(query_.tenant, query_.user_id)
        # from a shared entity back to the user's own: the user has few, the product may have many
        if not query_.forward and start not in owned and query_.other in owned:
            name, identifiers = "related_owned", {"from": query_.other, "to": start}
        elif query_.forward:
            name, identifiers = "related_forward", {"from": start, "to": query_.other}
        else:
            name, identifiers = "related_backward", {"from": query_.other, "to": start}
        rows = await self._read(
            "following a relation",
            _rows(
                query(name, type=query_.relation, **identifiers),
                keys=[entity_key(query_.tenant, ref) for ref in query_.refs],
                owner=owner,
                start_shared=start not in owned,
                shared=query_.other not in owned,
                scan=MAX_SCANNED,
                limit=query_.limit,
            ),
        )
        return {
            split_key(row["key"])[1]: tuple(
                sorted(
                    (entity_from(self._domain, props) for props in row["others"]),
                    key=lambda entity: entity.key,
                )
            )
            for row in rows
        }

    async def sources(self, tenant: str) -> tuple[SourceInfo, ...]:
        """See `GraphStore.sources`."""
        rows = await self._read("reading sources", _rows(query("sources"), tenant=tenant))
        return tuple(source_from(row["props"]) for row in rows)

    # --- keys and counts -------------------------------------------------------------------

    async def save_api_key(self, key: ApiKey) -> None:
        """See `GraphStore.save_api_key`."""
        await self._write(
            "saving an API key", _rows(query("save_api_key"), id=key.id, props=key_props(key))
        )

    async def api_key(self, key_id: str) -> ApiKey | None:
        """See `GraphStore.api_key`."""
        rows = await self._read("reading an API key", _rows(query("api_key"), id=key_id))
        return key_from(rows[0]["props"]) if rows else None

    async def api_keys(self, tenant: str) -> tuple[ApiKey, ...]:
        """See `GraphStore.api_keys`."""
        rows = await self._read("reading API keys", _rows(query("api_keys"), tenant=tenant))
        return tuple(key_from(row["props"]) for row in rows)

    async def counts(self, tenant: str) -> Mapping[str, int]:
        """See `GraphStore.counts`."""

        async def work(tx: AsyncManagedTransaction) -> dict[str, int]:
            result: dict[str, int] = {}
            for label in (*sorted(self._domain.entities), "Memory"):
                rows = await _run(tx, query("count_label", label=label), tenant=tenant)
                result[label] = rows[0]["count"]
            rows = await _run(tx, query("count_pending"), prefix=f"{tenant}|")
            result["pending"] = rows[0]["count"]
            return result

        return await self._read("counting", work)


def _pending(rows: Sequence[Row]) -> tuple[PendingMemory, ...]:
    return tuple(
        PendingMemory(
            row["key"],
            row["token"],
            memory_from(row["props"], row["about"]) if row["props"] else None,
        )
        for row in rows
    )


def _outcome(memory: Memory, stored: Row) -> MemoryWrite:
    if stored["created"]:
        return MemoryWrite(memory.key, "CREATED")
    if native(stored["user_id"]) != memory.user_id:
        return MemoryWrite(memory.key, "CONFLICT", "the id belongs to a memory of another user")
    if stored["content_hash"] != memory.content_hash:
        return MemoryWrite(memory.key, "CONFLICT", "the id belongs to a memory with other content")
    return MemoryWrite(memory.key, "DUPLICATE")


def _depths(domain: Domain) -> dict[str, int]:
    depths = {domain.root: 0}
    owning = [relation for relation in domain.relations if relation.owns]
    # longest way down: a type is written after everything it may inherit from
    for _ in domain.entities:
        for relation in owning:
            if relation.from_ in depths:
                for end in relation.to:
                    depth = depths[relation.from_] + 1
                    if end != domain.root and depth <= len(domain.entities):
                        depths[end] = max(depths.get(end, 0), depth)
    return depths


def _second() -> datetime:
    # whole seconds read well in the Browser; nothing is ordered by these times
    return datetime.now(UTC).replace(microsecond=0)


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
