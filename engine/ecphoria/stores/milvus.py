"""The vector index on Milvus: the same code on Milvus Lite and on servers.

A kind's rows live in the collection `{prefix}_{kind}_{fingerprint}`, the fingerprint telling the
embedding model, and are reached by the alias `{prefix}_{kind}` alone, in both directions. What
the stores do not have in common is left out: filter templates, nullable fields, scalar indexes,
and partition keys, with which Milvus before 2.3.10 upserts rows into the wrong partition
(milvus-io/milvus#30607), where a search by tenant misses them.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import grpc
import numpy as np
import stamina
from numpy.typing import NDArray
from pymilvus import AsyncMilvusClient, DataType, MilvusException
from pymilvus.client.connection_manager import AsyncConnectionManager

from ecphoria.errors import (
    ConfigurationInvalid,
    EcphoriaError,
    EmbeddingMismatch,
    InvalidInput,
    InvalidVector,
    StoreAuthenticationFailed,
    StoreError,
    StoreUnavailable,
)
from ecphoria.model import MAX_ID_CHARS, EmbeddingSpec, Vector, vector_id
from ecphoria.stores.milvus_filter import (
    OPEN_END,
    expression,
    literals,
    milliseconds,
    stored_user,
    tenant_expression,
)
from ecphoria.stores.ports import IndexInfo, ServerInfo, VectorFilter, VectorHit, VectorRow
from ecphoria_schema.domain import KINDS, Kind

Item = TypeVar("Item")

MAX_LIMIT = 16_384
HNSW = {"M": 8, "efConstruction": 256}

# Bounded reads lag behind by 5 s at most (Milvus' `common.gracefulTime`). That long after a write
# of its own this process reads at Session level, which waits for that write and no longer: 18 ms
# at once, as quick as Bounded (4 ms) from 0.3 s on; Strong took 37 ms every time. Session does not
# see own deletes; the graph, which checks every seed, does.
READ_OWN_WRITES_S = 10.0

# Of one request; servers take 64 MiB by default.
_BATCH_ROWS = 1_000
_BATCH_BYTES = 16 * 1024 * 1024

_ATTEMPTS = 3
# One attempt and one more on a new channel when the old one broke; the rest is up to `_call`.
_CLIENT_RETRIES = 1

# Channels to one address share a connection, and with it the pause before it is tried again, which
# grows to two minutes: without these a server that has come back would stay out of reach so long.
_CHANNEL = {"grpc.use_local_subchannel_pool": 1, "grpc.max_reconnect_backoff_ms": 1_000}

_LOCK = "ecphoria.embedding"
_VECTOR = "dense"

# Servers count the bytes of a text, Milvus Lite its characters: room for 4 bytes a character.
_ID_BYTES = 4 * MAX_ID_CHARS
_WORD_BYTES = 64
_TEXT_FIELDS = {
    "key": 128 + _ID_BYTES,
    "tenant": 128,
    "user_id": _ID_BYTES,
    "topic": _ID_BYTES,
    "source_id": _ID_BYTES,
    "privacy": _WORD_BYTES,
    "status": _WORD_BYTES,
    "tier": _WORD_BYTES,
    "lang": _WORD_BYTES,
}
_ROW_BYTES = sum(_TEXT_FIELDS.values())
_TIME_FIELDS = ("valid_from", "valid_until", "expires_at")

# Codes of Milvus, the same since 2.3 and on Milvus Lite.
_NOT_FOUND = frozenset({100, 1600})
_NOT_LOADED = 101
# unavailable, out of memory, overloaded, out of disk, rate limited, quota, time ticks late, partly
# loaded, recovering, no replica, no channel, no node: all pass once it has come up or calmed down
_PASSING = frozenset({2, 3, 4, 7, 8, 9, 11, 103, 106, 400, 401, 500, 501, 503, 901, 902, 903, 905})
# 2.3 hides some of these in errors of other codes
_PASSING_TEXT = re.compile(r"\b(channel|node) not (found|available|match)|service not ready")
_NO_CONNECTION = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
    }
)
_REFUSED = frozenset({grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED})


class MilvusIndex:
    """`VectorIndex` over pymilvus. It belongs to the event loop that first uses it."""

    def __init__(self, uri: str, *, token: str | None, prefix: str, timeout_s: float) -> None:
        """Keep where to connect to; nothing is sent before the first call.

        Args:
            uri: Where the server listens, `http://` or `https://`.
            token: `user:password` or an API key; None for a server without authentication.
            prefix: Beginning of the names of all collections and aliases.
            timeout_s: Seconds that one operation may take, attempts included.

        Raises:
            ConfigurationInvalid: When the URI is none.
        """
        # anything else, such as a file name, would make pymilvus start a server of its own
        if not uri.startswith(("http://", "https://")):
            msg = "ECPHORIA_MILVUS_URI must begin with http:// or https://"
            raise ConfigurationInvalid(msg)
        # pymilvus logs every error with its traceback before it raises it, expected ones too; what
        # it raises is translated here, and the cause is chained
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL)
        try:
            self._client = AsyncMilvusClient(
                uri=uri,
                token=token or "",
                timeout=timeout_s,
                dedicated=True,
                grpc_options=_CHANNEL,
            )
        except (MilvusException, ValueError) as error:
            msg = f"ECPHORIA_MILVUS_URI is no URI of a Milvus server: {_first_line(error)}"
            raise ConfigurationInvalid(msg) from error
        self._prefix = prefix
        self._timeout_s = timeout_s
        self._connecting = asyncio.Lock()
        self._version: str | None = None
        self._closed = False
        self._dimension: int | None = None
        self._written: dict[Kind, float] = {}

    # --- connection --------------------------------------------------------------------------

    async def ping(self) -> ServerInfo:
        """See `VectorIndex.ping`."""
        version: str = await self._call("pinging", "get_server_version")
        if _is_lite(version):
            return ServerInfo("Milvus Lite", version.partition("-")[2])
        return ServerInfo("Milvus", version.removeprefix("v"))

    async def close(self) -> None:
        """See `VectorIndex.close`; closing twice is harmless."""
        self._closed = True
        with _translated("closing"):
            await self._client.close()

    async def _connected(self) -> str:
        # Of several first calls one connects: pymilvus would open a channel for each of them.
        async with self._connecting:
            if self._version is None:
                # pymilvus keeps a manager a loop for ever, filed under the loop's address. A later
                # loop at the same address would get it, with locks of the dead one. Holding on to
                # the loop keeps its address taken.
                manager = AsyncConnectionManager.get_instance()
                vars(manager).setdefault("held_loop", asyncio.get_running_loop())
                self._version = await self._client.get_server_version(retry_times=_CLIENT_RETRIES)
            return self._version

    async def _call(self, doing: str, method: str, *args: object, **options: object) -> Any:  # noqa: ANN401 - pymilvus has no types
        # Everything called through here may be called twice: reads, upserts and deletes by primary
        # key, and what `_settled` looks at afterwards.
        if self._closed:
            msg = f"the vector index was closed before {doing}"
            raise StoreError(msg)
        result: Any = None
        with _translated(doing):
            async with asyncio.timeout(self._timeout_s):
                async for attempt in stamina.retry_context(
                    on=_is_passing,
                    attempts=_ATTEMPTS,
                    timeout=None,
                    wait_initial=0.05,
                    wait_max=1.0,
                    wait_jitter=0.05,
                ):
                    with attempt:
                        await self._connected()
                        result = await getattr(self._client, method)(
                            *args, retry_times=_CLIENT_RETRIES, **options
                        )
        return result

    async def _read(self, doing: str, method: str, alias: str, **options: object) -> Any:  # noqa: ANN401 - pymilvus has no types
        # Milvus Lite forgets at every start what was loaded, and others may release it.
        try:
            return await self._call(doing, method, alias, **options)
        except StoreError as error:
            if _code(error) != _NOT_LOADED:
                raise
        await self._call(f"loading {alias}", "load_collection", alias)
        return await self._call(doing, method, alias, **options)

    # --- collections -------------------------------------------------------------------------

    async def prepare(self, spec: EmbeddingSpec) -> None:
        """See `VectorIndex.prepare`."""
        await _all(self._prepare(kind, spec) for kind in KINDS)
        self._dimension = spec.dimension

    async def drop(self) -> None:
        """See `VectorIndex.drop`."""
        await _all(self._drop(kind) for kind in KINDS)
        self._dimension = None
        self._written.clear()

    async def info(self) -> Mapping[Kind, IndexInfo]:
        """See `VectorIndex.info`; a kind that has no collection is left out."""
        found: dict[Kind, IndexInfo] = {}
        for kind in KINDS:
            alias = self._alias(kind)
            target = await self._target(alias)
            if target is not None:
                spec = await self._locked_spec(target)
                found[kind] = IndexInfo(target, spec, await self._count(alias, ""))
        return found

    def _alias(self, kind: Kind) -> str:
        return f"{self._prefix}_{kind}"

    async def _prepare(self, kind: Kind, spec: EmbeddingSpec) -> None:
        alias = self._alias(kind)
        target = await self._target(alias)
        if target is None:
            made = f"{alias}_{_fingerprint(spec)}"
            await self._create_collection(made, spec)
            await self._check_lock(made, spec)
            await self._create_index(made)
            await self._create_alias(made, alias)
            # another process, set to another model, may have been quicker
            target = await self._target(alias) or made
        await self._check_lock(target, spec)
        await self._create_index(target)
        await self._call(f"loading {target}", "load_collection", target)

    async def _drop(self, kind: Kind) -> None:
        alias = self._alias(kind)
        own = re.compile(rf"{re.escape(alias)}_[0-9a-f]{{12}}")

        async def drop_alias() -> None:
            await self._call(f"dropping {alias}", "drop_alias", alias)

        async def gone() -> bool:
            return await self._target(alias) is None

        # servers after 2.3 refuse to drop a collection that has an alias
        await _settled(drop_alias, gone)
        for name in await self._call("listing collections", "list_collections"):
            if own.fullmatch(name):
                await self._call(f"dropping {name}", "drop_collection", name)

    async def _target(self, alias: str) -> str | None:
        try:
            found = await self._call(f"reading alias {alias}", "describe_alias", alias)
        except StoreError as error:
            if _code(error) in _NOT_FOUND:
                return None
            raise
        return str(found["collection_name"])

    async def _described(self, name: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = await self._call(
                f"reading collection {name}", "describe_collection", name
            )
        except StoreError as error:
            if _code(error) in _NOT_FOUND:
                return None
            raise
        return found

    async def _locked_spec(self, name: str) -> EmbeddingSpec:
        found = await self._described(name)
        text = "" if found is None else found["properties"].get(_LOCK, "")
        try:
            lock = json.loads(text)
            return EmbeddingSpec(lock["model"], lock["version"], lock["dimension"])
        except (ValueError, KeyError, TypeError) as error:
            msg = (
                f"collection {name} does not say which embedding model it was made for; "
                "rebuild it with `ecphoria reindex`"
            )
            raise EmbeddingMismatch(msg) from error

    async def _check_lock(self, name: str, spec: EmbeddingSpec) -> None:
        found = await self._locked_spec(name)
        if _lock(found) != _lock(spec):
            msg = (
                f"collection {name} was made for {_told(found)}, but the settings name "
                f"{_told(spec)}; set ECPHORIA_EMBEDDING_* back, or rebuild it with "
                "`ecphoria reindex`"
            )
            raise EmbeddingMismatch(msg)

    async def _create_collection(self, name: str, spec: EmbeddingSpec) -> None:
        async def make() -> None:
            await self._call(
                f"creating collection {name}",
                "create_collection",
                name,
                schema=_schema(spec.dimension),
                # Milvus Lite keeps properties, but neither a schema's nor a field's description
                properties={_LOCK: _lock(spec)},
                consistency_level="Bounded",
            )

        async def there() -> bool:
            return await self._described(name) is not None

        await _settled(make, there)

    async def _create_index(self, name: str) -> None:
        # Apart from the collection: an index that fails leaves the collection behind without one.
        async def there() -> bool:
            return bool(await self._call(f"reading indexes of {name}", "list_indexes", name))

        async def make() -> None:
            # Milvus Lite makes the index, but lacks a call by which pymilvus waits for it: this
            # fails there every time, and `there` finds the index.
            await self._call(f"indexing {name}", "create_index", name, self._index_params())

        if not await there():
            await _settled(make, there)

    async def _create_alias(self, name: str, alias: str) -> None:
        async def make() -> None:
            await self._call(f"creating alias {alias}", "create_alias", name, alias)

        async def there() -> bool:
            return await self._target(alias) is not None

        await _settled(make, there)

    def _index_params(self) -> Any:  # noqa: ANN401 - pymilvus has no types
        # HNSW of Milvus Lite applies filters after the search: of one user's 100 rows among 10,000
        # it found .59 of the ten nearest (ef 64) or .96 (ef 512), and took rows at half the pace.
        # FLAT finds all of them in about the same time.
        lite = _is_lite(self._version or "")
        params = AsyncMilvusClient.prepare_index_params()
        params.add_index(
            _VECTOR,
            index_name=_VECTOR,
            index_type="FLAT" if lite else "HNSW",
            metric_type="COSINE",
            params={} if lite else HNSW,
        )
        return params

    # --- rows --------------------------------------------------------------------------------

    async def upsert(self, rows: Sequence[VectorRow]) -> None:
        """See `VectorIndex.upsert`."""
        if not rows:
            return
        dimension = self._prepared()
        by_kind: dict[Kind, dict[str, dict[str, object]]] = {}
        for position, row in enumerate(rows):
            try:
                record = _record(row, dimension)
            except EcphoriaError as error:
                raise error.at("rows", position) from error
            by_kind.setdefault(row.kind, {})[str(record["id"])] = record
        size = max(1, min(_BATCH_ROWS, _BATCH_BYTES // (4 * dimension + _ROW_BYTES)))
        for kind, records in by_kind.items():
            alias = self._alias(kind)
            for batch in _batches(list(records.values()), size):
                await self._call(f"writing {alias}", "upsert", alias, batch)
                # only now: Session reads wait for the last write that was acknowledged
                self._written[kind] = time.monotonic()

    async def delete(self, keys: Sequence[str]) -> None:
        """See `VectorIndex.delete`; keys without a row are fine."""
        ids = list({vector_id(key) for key in keys})
        for kind in KINDS:
            alias = self._alias(kind)
            for batch in _batches(ids, _BATCH_ROWS):
                await self._call(f"deleting from {alias}", "delete", alias, ids=list(batch))

    async def search(
        self, kind: Kind, vector: Vector, filter_: VectorFilter, limit: int
    ) -> tuple[VectorHit, ...]:
        """See `VectorIndex.search`."""
        if not 1 <= limit <= MAX_LIMIT:
            msg = f"the limit {limit} is not between 1 and {MAX_LIMIT}"
            raise InvalidInput(msg)
        alias = self._alias(kind)
        found = await self._read(
            f"searching {alias}",
            "search",
            alias,
            data=[_unit(vector, self._prepared())],
            anns_field=_VECTOR,
            filter=expression(filter_),
            limit=limit,
            output_fields=["key"],
            search_params={"metric_type": "COSINE", "params": {"ef": max(2 * limit, 64)}},
            consistency_level=self._consistency(kind),
        )
        # under COSINE what both stores call distance is the similarity
        hits = [
            VectorHit(str(hit["entity"]["key"]), min(1.0, max(-1.0, float(hit["distance"]))))
            for hit in (found[0] if found else ())
        ]
        return tuple(sorted(hits, key=lambda hit: (-hit.similarity, hit.key)))

    async def existing(self, keys: Sequence[str]) -> frozenset[str]:
        """See `VectorIndex.existing`."""
        key_of = {vector_id(key): key for key in keys}
        found: set[str] = set()
        for kind in KINDS:
            alias = self._alias(kind)
            for batch in _batches(list(key_of), _BATCH_ROWS):
                rows = await self._read(
                    f"reading {alias}",
                    "query",
                    alias,
                    filter=f"id in {literals(batch)}",
                    output_fields=["id"],
                    consistency_level="Strong",
                )
                found.update(key_of[row["id"]] for row in rows)
        return frozenset(found)

    async def count(self, tenant: str | None = None) -> int:
        """See `VectorIndex.count`."""
        filter_ = "" if tenant is None else tenant_expression(tenant)
        counts = [await self._count(self._alias(kind), filter_) for kind in KINDS]
        return sum(counts)

    async def _count(self, alias: str, filter_: str) -> int:
        rows = await self._read(
            f"counting {alias}",
            "query",
            alias,
            filter=filter_,
            output_fields=["count(*)"],
            consistency_level="Strong",
        )
        return int(rows[0]["count(*)"])

    def _prepared(self) -> int:
        if self._dimension is None:
            msg = "the vector index is not prepared: call `prepare` first"
            raise StoreError(msg)
        return self._dimension

    def _consistency(self, kind: Kind) -> str:
        written = self._written.get(kind)
        if written is not None and time.monotonic() - written < READ_OWN_WRITES_S:
            return "Session"
        return "Bounded"


# --- errors --------------------------------------------------------------------------------


@contextlib.contextmanager
def _translated(doing: str) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        msg = f"the vector store did not answer in time while {doing}"
        raise StoreUnavailable(msg) from error
    except (MilvusException, grpc.RpcError) as error:
        _raise_translated(error, doing)


def _raise_translated(error: Exception, doing: str) -> NoReturn:
    if _grpc_status(error) in _REFUSED:
        msg = "the vector store refused the token"
        raise StoreAuthenticationFailed(msg) from error
    if _is_passing(error):
        msg = f"the vector store is unavailable while {doing}: {_first_line(error)}"
        raise StoreUnavailable(msg) from error
    msg = f"the vector store failed while {doing}: {_first_line(error)}"
    raise StoreError(msg) from error


def _is_passing(error: Exception) -> bool:
    status = _grpc_status(error)
    if status is not None:
        return status in _NO_CONNECTION
    return isinstance(error, MilvusException) and (
        error.retriable or error.code in _PASSING or _PASSING_TEXT.search(error.message) is not None
    )


def _grpc_status(error: BaseException) -> grpc.StatusCode | None:
    """Return the state of the connection that an error reports, if it is about one."""
    seen: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in seen:
        seen.append(cause)
        code = getattr(cause, "code", None)
        code = code() if callable(code) else code
        if isinstance(code, grpc.StatusCode):
            return code
        # pymilvus raises errors from themselves
        cause = cause.__context__ if cause.__cause__ in seen else cause.__cause__
    return None


def _code(error: StoreError) -> int | None:
    cause = error.__cause__
    return cause.code if isinstance(cause, MilvusException) else None


def _first_line(error: BaseException) -> str:
    text = str(getattr(error, "message", "") or error)
    return next(iter(text.strip().splitlines()), type(error).__name__)[:300]


async def _all(calls: Iterable[Awaitable[None]]) -> None:
    # Each runs to its end: when one fails, the others must not go on unseen.
    for result in await asyncio.gather(*calls, return_exceptions=True):
        if result is not None:
            raise result


async def _settled(do: Callable[[], Awaitable[None]], done: Callable[[], Awaitable[bool]]) -> None:
    # Another process may do the same at the same time, and stores differ in how they tell so: an
    # error counts only when what was to be done is still not done.
    try:
        await do()
    except StoreError:
        if not await done():
            raise


# --- values --------------------------------------------------------------------------------


def _is_lite(version: str) -> bool:
    # "milvus_lite-3.2.2"; the server 2.3.5 from PyPI calls itself "v2.3.5-lite", but is none
    return version.startswith("milvus_lite")


def _lock(spec: EmbeddingSpec) -> str:
    return json.dumps(
        {"model": spec.model, "version": spec.version, "dimension": spec.dimension},
        ensure_ascii=False,
    )


def _fingerprint(spec: EmbeddingSpec) -> str:
    return hashlib.sha256(_lock(spec).encode()).hexdigest()[:12]


def _told(spec: EmbeddingSpec) -> str:
    return f"model {spec.model!r}, version {spec.version!r}, {spec.dimension} dimensions"


def _schema(dimension: int) -> Any:  # noqa: ANN401 - pymilvus has no types
    schema = AsyncMilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=32)
    for name, length in _TEXT_FIELDS.items():
        schema.add_field(name, DataType.VARCHAR, max_length=length)
    schema.add_field("importance", DataType.FLOAT)
    for name in _TIME_FIELDS:
        schema.add_field(name, DataType.INT64)
    schema.add_field(_VECTOR, DataType.FLOAT_VECTOR, dim=dimension)
    return schema


def _record(row: VectorRow, dimension: int) -> dict[str, object]:
    tenant_expression(row.tenant)
    return {
        "id": vector_id(row.key),
        "key": row.key,
        "tenant": row.tenant,
        "user_id": stored_user(row.user_id),
        "topic": row.topic or "",
        "source_id": row.source_id,
        "privacy": row.privacy,
        "status": row.status,
        "tier": row.tier,
        "lang": row.lang,
        "importance": row.importance,
        "valid_from": milliseconds(row.valid_from),
        "valid_until": OPEN_END if row.valid_until is None else milliseconds(row.valid_until),
        "expires_at": OPEN_END if row.expires_at is None else milliseconds(row.expires_at),
        _VECTOR: _unit(row.vector, dimension),
    }


def _unit(vector: Vector, dimension: int) -> NDArray[np.float32]:
    """Return a vector at length 1.

    Raises:
        InvalidVector: When it has another dimension, is zero, or holds NaN or infinity.
    """
    try:
        values = np.asarray(vector, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        msg = f"the vector is no list of numbers: {_first_line(error)}"
        raise InvalidVector(msg, path=("vector",)) from error
    if values.shape != (dimension,):
        msg = f"the vector has the shape {values.shape}, not ({dimension},)"
        raise InvalidVector(msg, path=("vector",))
    if not np.isfinite(values).all():
        msg = "the vector holds NaN or infinity"
        raise InvalidVector(msg, path=("vector",))
    largest = np.abs(values).max()
    if largest == 0:
        msg = "the vector is all zeros"
        raise InvalidVector(msg, path=("vector",))
    # first by the largest number: squares of very large or small ones leave the range of floats
    scaled = values / largest
    unit: NDArray[np.float32] = (scaled / np.linalg.norm(scaled)).astype(np.float32)
    return unit


def _batches(items: Sequence[Item], size: int) -> Iterator[list[Item]]:
    for start in range(0, len(items), size):
        yield list(items[start : start + size])
