"""Rows of the vector index on Milvus: written, deleted, searched and read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ecphoria.errors import (
    EcphoriaError,
    InvalidInput,
    InvalidVector,
    StoreError,
    StoreUnavailable,
)
from ecphoria.model import EmbeddingSpec, Vector, vector_id
from ecphoria.stores.milvus_collections import (
    LEXICAL_FIELD,
    TERMS_BYTES,
    TERMS_FIELD,
    TEXT_FIELDS,
    TIME_FIELDS,
    has_terms,
    vector_field,
)
from ecphoria.stores.milvus_connection import MilvusConnection
from ecphoria.stores.milvus_errors import first_line
from ecphoria.stores.milvus_filter import (
    OPEN_END,
    expression,
    literal,
    literals,
    milliseconds,
    moment,
    stored_user,
    tenant_expression,
    user_expression,
)
from ecphoria.stores.ports import IndexedRow, TermHit, VectorFilter, VectorHit, VectorRow
from ecphoria_schema.domain import KINDS, Kind

Item = TypeVar("Item")

MAX_LIMIT = 16_384

# Bounded reads lag behind by 5 s at most (Milvus' `common.gracefulTime`). That long after a write
# of its own this process reads at Session level, which waits for that write and no longer: 18 ms
# at once, as quick as Bounded (4 ms) from 0.3 s on; Strong took 37 ms every time. Session does not
# see own deletes; the graph, which checks every seed, does.
READ_OWN_WRITES_S = 10.0

# Who only reads learns that late that a kind was switched over to rows with terms; who writes is
# told by the store.
LOOK_AGAIN_S = 60.0

# Stands between the terms of a text and those of its context, and for a text without terms: to no
# store it is a term that is asked for.
_CONTEXT = "|"

# Of one request; servers take 64 MiB by default.
_BATCH_ROWS = 1_000
_BATCH_BYTES = 16 * 1024 * 1024
_ROW_BYTES = sum(TEXT_FIELDS.values())
_FIELDS = ["id", *TEXT_FIELDS, "importance", *TIME_FIELDS]


class MilvusRows:
    """`VectorRows` over the collections that a function names."""

    def __init__(
        self,
        connection: MilvusConnection,
        collection: Callable[[Kind], str],
        spec: EmbeddingSpec | None = None,
    ) -> None:
        """Use a connection.

        Args:
            connection: To which Milvus.
            collection: Returns the collection of a kind, or an alias.
            spec: The model of the vectors; without it rows can be neither written nor searched.
        """
        self._connection = connection
        self._collection = collection
        self._spec = spec
        self._written: dict[Kind, float] = {}
        # kind -> whether its rows have terms, and when that was looked up
        self._terms: dict[Kind, tuple[bool, float]] = {}

    async def upsert(self, rows: Sequence[VectorRow]) -> None:
        """See `VectorRows.upsert`."""
        if not rows:
            return
        spec = self._prepared()
        by_kind: dict[Kind, dict[str, dict[str, object]]] = {}
        for position, row in enumerate(rows):
            try:
                record = _record(row, spec)
            except EcphoriaError as error:
                raise error.at("rows", position) from error
            by_kind.setdefault(row.kind, {})[str(record["id"])] = record
        for kind, records in by_kind.items():
            await self._write(kind, list(records.values()), spec)

    async def _write(
        self, kind: Kind, records: Sequence[dict[str, object]], spec: EmbeddingSpec
    ) -> None:
        with_terms = await self._has_terms(kind)
        for batch in _batches_of_bytes(records, 4 * spec.dimension + _ROW_BYTES):
            try:
                await self._send(kind, batch, with_terms=with_terms)
            except StoreError as error:
                await self._explain(kind, error)
                if isinstance(error, StoreUnavailable):
                    raise
                # the kind may have been switched over to rows with terms, or back
                before, with_terms = with_terms, await self._look_for_terms(kind)
                if with_terms == before:
                    raise
                await self._send(kind, batch, with_terms=with_terms)
            # only now: Session reads wait for the last write that was acknowledged
            self._written[kind] = time.monotonic()

    async def _send(
        self, kind: Kind, batch: Sequence[dict[str, object]], *, with_terms: bool
    ) -> None:
        name = self._collection(kind)
        left_out = frozenset[str]() if with_terms else frozenset({TERMS_FIELD})
        data = [{key: row[key] for key in row.keys() - left_out} for row in batch]
        await self._connection.call(f"writing {name}", "upsert", name, data)

    async def _has_terms(self, kind: Kind) -> bool:
        known = self._terms.get(kind)
        if known is None or (not known[0] and time.monotonic() - known[1] > LOOK_AGAIN_S):
            return await self._look_for_terms(kind)
        return known[0]

    async def _look_for_terms(self, kind: Kind) -> bool:
        name = self._collection(kind)
        found = has_terms(
            await self._connection.call(f"reading collection {name}", "describe_collection", name)
        )
        self._terms[kind] = (found, time.monotonic())
        return found

    async def delete(self, keys: Sequence[str]) -> None:
        """See `VectorRows.delete`; keys without a row are fine."""
        for kind in KINDS:
            await self._delete(self._collection(kind), keys)

    async def _delete(self, name: str, keys: Sequence[str]) -> None:
        ids = list({vector_id(key) for key in keys})
        for batch in _batches(ids, _BATCH_ROWS):
            await self._connection.call(f"deleting from {name}", "delete", name, ids=batch)

    async def search(
        self, kind: Kind, vector: Vector, filter_: VectorFilter, limit: int
    ) -> tuple[VectorHit, ...]:
        """See `VectorIndex.search`."""
        _check_limit(limit)
        spec = self._prepared()
        name = self._collection(kind)
        data = [_unit(vector, spec.dimension)]
        allowed = expression(filter_)
        try:
            found = await self._connection.read(
                f"searching {name}",
                "search",
                name,
                data=data,
                anns_field=vector_field(spec),
                filter=allowed,
                limit=limit,
                output_fields=["key"],
                search_params={"metric_type": "COSINE", "params": {"ef": max(2 * limit, 64)}},
                consistency_level=self._consistency(kind),
            )
        except StoreError as error:
            await self._explain(kind, error)
            raise
        # under COSINE what both stores call distance is the similarity
        hits = [
            VectorHit(str(hit["entity"]["key"]), min(1.0, max(-1.0, float(hit["distance"]))))
            for hit in (found[0] if found else ())
        ]
        return tuple(sorted(hits, key=lambda hit: (-hit.similarity, hit.key)))

    async def search_terms(
        self, kind: Kind, terms: Sequence[str], filter_: VectorFilter, limit: int
    ) -> tuple[TermHit, ...] | None:
        """See `VectorIndex.search_terms`."""
        _check_limit(limit)
        self._prepared()
        allowed = expression(filter_)
        asked = _terms(dict.fromkeys(terms))
        if not await self._has_terms(kind):
            return None
        if not asked:
            return ()
        name = self._collection(kind)
        try:
            found = await self._connection.read(
                f"searching {name} for terms",
                "search",
                name,
                data=[" ".join(asked)],
                anns_field=LEXICAL_FIELD,
                filter=allowed,
                limit=limit,
                output_fields=["key", TERMS_FIELD],
                search_params={"metric_type": "BM25"},
                consistency_level=self._consistency(kind),
            )
        except StoreError as error:
            await self._explain(kind, error)
            # the kind may have been switched back to rows without terms
            if isinstance(error, StoreUnavailable) or await self._look_for_terms(kind):
                raise
            return None
        hits = [_term_hit(hit) for hit in (found[0] if found else ())]
        return tuple(sorted(hits, key=lambda hit: (-hit.score, hit.key)))

    async def existing(self, keys: Sequence[str]) -> frozenset[str]:
        """See `VectorRows.existing`."""
        key_of = {vector_id(key): key for key in keys}
        found: set[str] = set()
        for kind in KINDS:
            for batch in _batches(list(key_of), _BATCH_ROWS):
                rows = await self._query(kind, f"id in {literals(batch)}", ["id"])
                found.update(key_of[row["id"]] for row in rows)
        return frozenset(found)

    async def rows(
        self, kind: Kind, after: str, limit: int, tenant: str | None = None
    ) -> tuple[IndexedRow, ...]:
        """See `VectorRows.rows`."""
        filter_ = f"id > {literal(after)}"
        if tenant is not None:
            filter_ += f" and {tenant_expression(tenant)}"
        # Without the flag Milvus Lite returns any rows after the id: of 28,200 in pages of 1,000
        # only 1,018 were seen. With pymilvus' own `reduce_stop_for_best` 2.3 returns more than
        # the limit. With the flag pymilvus ignores the level: the collection's own is Strong.
        found = await self._query(kind, filter_, _FIELDS, limit=limit, iterator="True")
        return tuple(sorted((_row(kind, row) for row in found), key=lambda row: row.id))

    async def rows_of(self, kind: Kind, keys: Sequence[str]) -> Mapping[str, IndexedRow]:
        """See `VectorRows.rows_of`."""
        if not keys:
            return {}
        ids = literals(vector_id(key) for key in keys)
        found = await self._query(kind, f"id in {ids}", _FIELDS)
        return {row["key"]: _row(kind, row) for row in found}

    async def count(self, tenant: str | None = None) -> int:
        """See `VectorRows.count`."""
        filter_ = "" if tenant is None else tenant_expression(tenant)
        counts = [await self.count_of(kind, filter_) for kind in KINDS]
        return sum(counts)

    async def count_user(self, tenant: str, user_id: str) -> int:
        """See `VectorRows.count_user`."""
        counts = [
            await self._count_in(self._collection(kind), user_expression(tenant, user_id))
            for kind in KINDS
        ]
        return sum(counts)

    async def delete_user(self, tenant: str, user_id: str) -> int:
        """See `VectorRows.delete_user`."""
        counts = [
            await self._delete_user(self._collection(kind), tenant, user_id) for kind in KINDS
        ]
        return sum(counts)

    async def _delete_user(self, name: str, tenant: str, user_id: str) -> int:
        filter_ = user_expression(tenant, user_id)
        count = await self._count_in(name, filter_)
        if count:
            await self._connection.call(f"deleting from {name}", "delete", name, filter=filter_)
        return count

    async def _count_in(self, name: str, filter_: str) -> int:
        rows: Any = await self._connection.read(
            f"counting in {name}",
            "query",
            name,
            filter=filter_,
            output_fields=["count(*)"],
            consistency_level="Strong",
        )
        return int(rows[0]["count(*)"])

    async def count_of(self, kind: Kind, filter_: str = "") -> int:
        """Return how many rows of a kind an expression finds, read with strong consistency."""
        rows = await self._query(kind, filter_, ["count(*)"])
        return int(rows[0]["count(*)"])

    async def _query(self, kind: Kind, filter_: str, fields: list[str], **options: object) -> Any:  # noqa: ANN401 - pymilvus has no types
        name = self._collection(kind)
        return await self._connection.read(
            f"reading {name}",
            "query",
            name,
            filter=filter_,
            output_fields=fields,
            consistency_level="Strong",
            **options,
        )

    async def _explain(self, kind: Kind, error: StoreError) -> None:
        """Raise a better error than this one, if there is one."""

    def _prepared(self) -> EmbeddingSpec:
        if self._spec is None:
            msg = "the vector index is not prepared: call `prepare` first"
            raise StoreError(msg)
        return self._spec

    def _consistency(self, kind: Kind) -> str:
        written = self._written.get(kind)
        if written is not None and time.monotonic() - written < READ_OWN_WRITES_S:
            return "Session"
        return "Bounded"


def _record(row: VectorRow, spec: EmbeddingSpec) -> dict[str, object]:
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
        "hash": row.hash,
        "importance": row.importance,
        "valid_from": milliseconds(row.valid_from),
        "valid_until": OPEN_END if row.valid_until is None else milliseconds(row.valid_until),
        "expires_at": OPEN_END if row.expires_at is None else milliseconds(row.expires_at),
        vector_field(spec): _unit(row.vector, spec.dimension),
        TERMS_FIELD: stored_terms(row),
    }


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= MAX_LIMIT:
        msg = f"the limit {limit} is not between 1 and {MAX_LIMIT}"
        raise InvalidInput(msg)


def _terms(terms: Iterable[str]) -> list[str]:
    """Return the terms; a text that is none could hold what a store reads as more than a word.

    Raises:
        InvalidInput: When one is empty, or holds anything but letters and digits.
    """
    checked = list(terms)
    for term in checked:
        if not term.isalnum():
            msg = f"{term!r} is no term: a term holds letters and digits alone"
            raise InvalidInput(msg)
    return checked


def stored_terms(row: VectorRow) -> str:
    """Return a row's terms as one text, as far as the field holds them.

    What is left out of an overlong text is found by its vector, as before; nothing is read from
    here but what lexical search compares.
    """
    words = [*_terms(row.terms), _CONTEXT, *_terms(row.context)]
    stored = " ".join(words)
    if len(stored.encode()) <= TERMS_BYTES:
        return stored
    kept, room = 0, TERMS_BYTES
    for word in words:
        room -= len(word.encode()) + 1
        if room < 0:
            break
        kept += 1
    return " ".join(words[:kept])


def _term_hit(hit: Mapping[str, Any]) -> TermHit:
    own, _, context = str(hit["entity"][TERMS_FIELD]).partition(_CONTEXT)
    return TermHit(
        str(hit["entity"]["key"]),
        # servers return scores above 0, Milvus Lite the same below 0
        abs(float(hit["distance"])),
        tuple(own.split()),
        tuple(context.split()),
    )


def _row(kind: Kind, record: Mapping[str, Any]) -> IndexedRow:
    return IndexedRow(
        id=record["id"],
        key=record["key"],
        tenant=record["tenant"],
        user_id=record["user_id"] or None,
        kind=kind,
        topic=record["topic"] or None,
        source_id=record["source_id"],
        privacy=record["privacy"],
        importance=float(record["importance"]),
        valid_from=moment(record["valid_from"]),
        valid_until=None if record["valid_until"] == OPEN_END else moment(record["valid_until"]),
        expires_at=None if record["expires_at"] == OPEN_END else moment(record["expires_at"]),
        status=record["status"],
        tier=record["tier"],
        lang=record["lang"],
        hash=record["hash"],
    )


def _unit(vector: Vector, dimension: int) -> NDArray[np.float32]:
    """Return a vector at length 1.

    Raises:
        InvalidVector: When it has another dimension, is zero, or holds NaN or infinity.
    """
    try:
        values = np.asarray(vector, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        msg = f"the vector is no list of numbers: {first_line(error)}"
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


def _batches_of_bytes(
    records: Sequence[dict[str, object]], row_bytes: int
) -> Iterator[list[dict[str, object]]]:
    """Cut records into batches of a request, each of `row_bytes` at most beside its terms."""
    batch: list[dict[str, object]] = []
    size = 0
    for record in records:
        bytes_ = row_bytes + len(str(record[TERMS_FIELD]).encode())
        if batch and (len(batch) == _BATCH_ROWS or size + bytes_ > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += bytes_
    if batch:
        yield batch
