"""What every vector index promises, on Milvus Lite and on real servers."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import json
import math
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import pytest
import pytest_asyncio
from pymilvus import AsyncMilvusClient, DataType
from structlog.testing import capture_logs

import builders
from builders import vector_row
from ecphoria.errors import (
    ConfigurationInvalid,
    EmbeddingMismatch,
    InvalidInput,
    InvalidScope,
    InvalidVector,
    StoreAuthenticationFailed,
    StoreError,
    StoreUnavailable,
)
from ecphoria.model import EmbeddingSpec, memory_key, vector_id
from ecphoria.remember.indexing import index_memories
from ecphoria.stores.milvus import MilvusIndex
from ecphoria.stores.ports import (
    Generation,
    IndexedRow,
    RowFields,
    VectorFilter,
    VectorRow,
)
from ecphoria_schema.domain import KINDS

DIMENSION = 8
SPEC = EmbeddingSpec("test-model", "1", DIMENSION)
T = datetime(2025, 6, 15, 8, tzinfo=UTC)
STEP = timedelta(milliseconds=1)
DAY = timedelta(days=1)
EAST = (1.0, *[0.0] * (DIMENSION - 1))
NORTH = (0.0, 1.0, *[0.0] * (DIMENSION - 2))
STRANGE_IDS = [
    '") or true or ("',
    '" or tenant != "',
    "\\",
    '\\"',
    "a\\",
    "'",
    '"',
    "%",
    "user_%",
    "_",
    "null",
    "{x}",
    "\\u0022",
    "\\n",
    "👩‍👧 Ünï çødé",
    "用户" * 128,
    "𠮷" * 256,
]

_NUMBERS = itertools.count()


def vector_at(degrees: float) -> tuple[float, ...]:
    angle = math.radians(degrees)
    return (math.cos(angle), math.sin(angle), *[0.0] * (DIMENSION - 2))


def make_row(tenant: str, name: str, /, **changes: object) -> VectorRow:
    return vector_row(tenant, name, T - DAY, **({"vector": EAST} | changes))


def make_filter(tenant: str, /, **changes: object) -> VectorFilter:
    filter_ = VectorFilter(tenant=tenant, user_id="U1", as_of=T, privacy=("public", "internal"))
    return dataclasses.replace(filter_, **changes)  # type: ignore[arg-type]


async def names(index: MilvusIndex, filter_: VectorFilter, limit: int = 100) -> list[str]:
    hits = await index.search("episodic", EAST, filter_, limit)
    return [hit.key.split("|", 2)[2] for hit in hits]


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def prepared() -> AsyncIterator[dict[str, MilvusIndex]]:
    """Collect one prepared index a store; making three collections takes seconds."""
    indexes: dict[str, MilvusIndex] = {}
    yield indexes
    for index in indexes.values():
        # the stores of the tests may have been stopped before
        with contextlib.suppress(StoreUnavailable):
            await index.drop()
        await index.close()


@pytest_asyncio.fixture(loop_scope="session")
async def index(
    prepared: dict[str, MilvusIndex], vector_uri: str, vector_token: str | None
) -> MilvusIndex:
    """Return an index that tests share; each has a tenant of its own."""
    if vector_uri not in prepared:
        shared = MilvusIndex(
            vector_uri, token=vector_token, prefix=f"vi{os.getpid()}", timeout_s=60
        )
        prepared[vector_uri] = shared
        await shared.prepare(SPEC)
    return prepared[vector_uri]


@pytest.fixture
def own_tenant() -> str:
    return f"t{os.getpid()}-{next(_NUMBERS)}"


@pytest_asyncio.fixture(loop_scope="session")
async def open_index(
    vector_uri: str, vector_token: str | None
) -> AsyncIterator[Callable[..., MilvusIndex]]:
    """Return a function that makes indexes on one prefix, which is dropped in the end."""
    prefix = f"vi{os.getpid()}_{next(_NUMBERS)}"
    opened: list[MilvusIndex] = []

    def make(timeout_s: float = 60) -> MilvusIndex:
        made = MilvusIndex(vector_uri, token=vector_token, prefix=prefix, timeout_s=timeout_s)
        opened.append(made)
        return made

    yield make
    last = make()
    await last.drop()
    for each in opened:
        await each.close()


# --- connection ----------------------------------------------------------------------------


async def test_ping_names_product_and_version(index: MilvusIndex) -> None:
    info = await index.ping()

    assert info.product in {"Milvus", "Milvus Lite"}
    assert info.version[0].isdigit()


async def test_nothing_listens() -> None:
    index = MilvusIndex("http://127.0.0.1:1", token=None, prefix="x", timeout_s=20)
    started = time.monotonic()

    with pytest.raises(StoreUnavailable) as caught:
        await index.ping()

    assert time.monotonic() - started < 5
    assert caught.value.__cause__ is not None
    await index.close()


async def test_nobody_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        index = MilvusIndex(uri, token=None, prefix="x", timeout_s=1)
        started = time.monotonic()

        with pytest.raises(StoreUnavailable):
            await index.prepare(SPEC)

        assert time.monotonic() - started < 4
        await index.close()


class _Refuse(grpc.GenericRpcHandler):
    def service(self, _details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        def refuse(_request: bytes, context: grpc.ServicerContext) -> bytes:
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "auth check failure")
            raise AssertionError

        return grpc.unary_unary_rpc_method_handler(refuse)


@pytest.fixture
def refusing_uri() -> Iterator[str]:
    server = grpc.server(ThreadPoolExecutor(1), handlers=(_Refuse(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"http://127.0.0.1:{port}"
    server.stop(0).wait()


async def test_a_refused_token_is_told_apart_and_not_tried_again(refusing_uri: str) -> None:
    index = MilvusIndex(refusing_uri, token="root:wrong", prefix="x", timeout_s=20)

    with pytest.raises(StoreAuthenticationFailed) as caught:
        await index.ping()

    assert "wrong" not in caught.value.message
    await index.close()


@pytest.mark.parametrize("uri", ["", "localhost", "./milvus.db", "ftp://x", "http://a:b"])
def test_what_is_no_uri(uri: str) -> None:
    with pytest.raises(ConfigurationInvalid, match="ECPHORIA_MILVUS_URI"):
        MilvusIndex(uri, token=None, prefix="x", timeout_s=1)


async def test_closing_twice(open_index: Callable[..., MilvusIndex]) -> None:
    index = open_index()
    await index.ping()

    await index.close()
    await index.close()

    with pytest.raises(StoreError, match="closed"):
        await index.ping()


async def test_a_cancelled_call_leaves_the_index_usable(
    index: MilvusIndex, own_tenant: str
) -> None:
    await index.upsert([make_row(own_tenant, "m")])

    for delay in (0, 0.001, 0.003, 0.01):
        task = asyncio.create_task(names(index, make_filter(own_tenant)))
        await asyncio.sleep(delay)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    assert await names(index, make_filter(own_tenant)) == ["m"]


async def test_a_cancelled_connect_leaves_the_index_usable(
    open_index: Callable[..., MilvusIndex],
) -> None:
    index = open_index()
    task = asyncio.create_task(index.ping())
    await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task

    assert await index.ping()


# --- collections ---------------------------------------------------------------------------


async def test_prepare_twice_keeps_rows(open_index: Callable[..., MilvusIndex]) -> None:
    index = open_index()
    await index.prepare(SPEC)
    await index.upsert([make_row("acme", "m")])

    await index.prepare(SPEC)
    await open_index().prepare(SPEC)

    assert await index.count() == 1


async def test_prepare_at_once(open_index: Callable[..., MilvusIndex]) -> None:
    indexes = [open_index() for _ in range(3)]

    await asyncio.gather(*(index.prepare(SPEC) for index in indexes))

    infos = [await index.info() for index in indexes]
    assert set(infos[0]) == set(KINDS)
    assert infos[0] == infos[1] == infos[2]
    await indexes[0].upsert([make_row("acme", "m", kind=kind) for kind in KINDS])
    assert await indexes[1].count("acme") == len(KINDS)


async def test_another_model_is_a_mismatch_that_names_both(
    index: MilvusIndex, open_index: Callable[..., MilvusIndex]
) -> None:
    own = open_index()
    await own.prepare(SPEC)

    for other in (
        dataclasses.replace(SPEC, model='模型 "b"'),
        dataclasses.replace(SPEC, version="2"),
        dataclasses.replace(SPEC, dimension=16),
    ):
        with pytest.raises(EmbeddingMismatch) as caught:
            await open_index().prepare(other)
        message = caught.value.message
        assert repr(SPEC.model) in message
        assert repr(other.model) in message
        assert f"version {other.version!r}" in message
        assert f"{other.dimension} dimensions" in message
        assert "ecphoria reembed" in message
    # what the anchors of relevance are does not change the vectors
    await open_index().prepare(dataclasses.replace(SPEC, unrelated=0.3))
    assert {info.spec for info in (await own.info()).values()} == {SPEC}
    assert await index.ping()


async def test_two_models_at_once(open_index: Callable[..., MilvusIndex]) -> None:
    other = dataclasses.replace(SPEC, version="2")
    results = await asyncio.gather(
        open_index().prepare(SPEC), open_index().prepare(other), return_exceptions=True
    )

    # each kind goes to one of the two, so one of them or both fail, and never otherwise
    assert any(results)
    assert all(result is None or isinstance(result, EmbeddingMismatch) for result in results)


async def test_rebuilding_for_another_model(open_index: Callable[..., MilvusIndex]) -> None:
    index = open_index()
    await index.prepare(SPEC)
    await index.upsert([make_row("acme", "m")])
    other = EmbeddingSpec("other", "7", 3)

    await index.drop()
    assert await index.info() == {}
    await index.prepare(other)
    await index.upsert([make_row("acme", "m", vector=(0, 0, 2))])

    (hit,) = await index.search("episodic", (0, 0, 1), make_filter("acme"), 5)
    assert hit.similarity == pytest.approx(1)
    assert {info.spec for info in (await index.info()).values()} == {other}


async def test_info(open_index: Callable[..., MilvusIndex]) -> None:
    index = open_index()
    assert await index.info() == {}
    await index.prepare(SPEC)
    await index.upsert([make_row("acme", "a"), make_row("acme", "b", kind="semantic")])

    info = await index.info()

    assert {kind: info[kind].rows for kind in KINDS} == {
        "episodic": 1,
        "semantic": 1,
        "procedural": 0,
    }
    assert len({each.collection for each in info.values()}) == len(KINDS)


async def test_drop_without_anything(open_index: Callable[..., MilvusIndex]) -> None:
    index = open_index()

    await index.drop()
    await index.drop()


@pytest_asyncio.fixture(loop_scope="session")
async def client(vector_uri: str, vector_token: str | None) -> AsyncIterator[AsyncMilvusClient]:
    client = AsyncMilvusClient(uri=vector_uri, token=vector_token or "", dedicated=True)
    yield client
    await client.close()


async def test_what_a_crash_left_half_made_is_completed(
    open_index: Callable[..., MilvusIndex], client: AsyncMilvusClient
) -> None:
    index = open_index()
    await index.prepare(SPEC)
    collections = {kind: info.collection for kind, info in (await index.info()).items()}
    # as after a crash before the alias was made, and one before the index was
    for kind, collection in collections.items():
        await client.drop_alias(index._collections.alias(kind))
        await client.release_collection(collection)
    await client.drop_index(collections["semantic"], "dense")

    again = open_index()
    await again.prepare(SPEC)
    await again.upsert([make_row("acme", "m", kind="semantic")])

    assert {kind: info.collection for kind, info in (await again.info()).items()} == collections
    assert len(await again.search("semantic", EAST, make_filter("acme"), 5)) == 1


async def test_an_alias_of_a_collection_that_is_not_ours(
    open_index: Callable[..., MilvusIndex], client: AsyncMilvusClient
) -> None:
    index = open_index()
    alias = index._collections.alias("episodic")
    schema = AsyncMilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=32)
    schema.add_field("dense", DataType.FLOAT_VECTOR, dim=DIMENSION)
    await client.create_collection(f"{alias}_stranger", schema=schema)
    await client.create_alias(f"{alias}_stranger", alias)

    with pytest.raises(EmbeddingMismatch, match="does not say"):
        await index.prepare(SPEC)

    await client.drop_alias(alias)
    await client.drop_collection(f"{alias}_stranger")


async def test_a_released_collection_is_loaded_again(
    open_index: Callable[..., MilvusIndex], client: AsyncMilvusClient
) -> None:
    index = open_index()
    await index.prepare(SPEC)
    await index.upsert([make_row("acme", "m")])
    collection = (await index.info())["episodic"].collection

    async def found() -> bool:
        # servers need a moment before all of their parts know what was released
        for _ in range(60):
            with contextlib.suppress(StoreError):
                return await names(index, make_filter("acme")) == ["m"]
            await asyncio.sleep(0.5)
        return False

    await client.release_collection(collection)
    assert await found()
    assert await index.existing([memory_key("acme", "m")])


async def test_vectors_before_prepare(open_index: Callable[..., MilvusIndex]) -> None:
    index = open_index()

    with pytest.raises(StoreError, match="prepare"):
        await index.upsert([make_row("acme", "m")])
    with pytest.raises(StoreError, match="prepare"):
        await names(index, make_filter("acme"))


# --- writing -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "vector",
    [
        (),
        (1.0,) * (DIMENSION - 1),
        (1.0,) * (DIMENSION + 1),
        (0.0,) * DIMENSION,
        (-0.0,) * DIMENSION,
        (math.nan, *EAST[1:]),
        (*EAST[:-1], math.inf),
        (-math.inf, *EAST[1:]),
        (*EAST[:-1], "x"),
        (*EAST[:-1], None),
        (*EAST[:-1], 10**400),
        (EAST,),
    ],
)
async def test_a_bad_vector_is_refused_before_anything_is_written(
    index: MilvusIndex, own_tenant: str, vector: tuple[float, ...]
) -> None:
    good, bad = make_row(own_tenant, "good"), make_row(own_tenant, "bad", vector=vector)

    with pytest.raises(InvalidVector) as caught:
        await index.upsert([good, bad])
    with pytest.raises(InvalidVector):
        await index.search("episodic", vector, make_filter(own_tenant), 5)

    assert caught.value.path == ("rows", 1, "vector")
    assert await index.count(own_tenant) == 0


async def test_a_bad_vector_is_left_out_and_named_and_the_rest_of_the_batch_is_written(
    index: MilvusIndex,
) -> None:
    memories = [builders.memory(f"{next(_NUMBERS)}", f"text {number}") for number in range(5)]
    vectors = {memory.text: vector_at(number) for number, memory in enumerate(memories)}
    vectors |= {"text 1": (math.nan, *EAST[1:]), "text 3": (0.0,) * DIMENSION}

    class NoModel:
        spec = SPEC

    with capture_logs() as logs:
        written = await index_memories(index, NoModel(), memories, vectors)  # type: ignore[arg-type]

    keys = [memory.key for memory in memories]
    assert written == await index.existing(keys) == {keys[0], keys[2], keys[4]}
    assert [log["memory"] for log in logs] == [keys[1], keys[3]]


@pytest.mark.parametrize("scale", [1e-320, 1e-30, 3, 1e30, 1e300])
async def test_vectors_of_any_length_are_normalised(
    index: MilvusIndex, own_tenant: str, scale: float
) -> None:
    await index.upsert([make_row(own_tenant, "m", vector=[x * scale for x in vector_at(60)])])

    (hit,) = await index.search("episodic", [x * scale for x in EAST], make_filter(own_tenant), 5)

    assert hit.similarity == pytest.approx(0.5, abs=1e-2 if scale < 1e-300 else 1e-5)


@pytest.mark.parametrize("change", [{"tenant": ""}, {"user_id": ""}])
async def test_a_row_without_owner_is_refused(
    index: MilvusIndex, own_tenant: str, change: dict[str, object]
) -> None:
    with pytest.raises(InvalidScope):
        await index.upsert([make_row(own_tenant, "good"), make_row(own_tenant, "bad", **change)])

    assert await index.count(own_tenant) == 0


async def test_the_last_of_equal_ids_wins(index: MilvusIndex, own_tenant: str) -> None:
    await index.upsert(
        [make_row(own_tenant, "m", user_id="U2"), make_row(own_tenant, "m", user_id="U1")]
    )
    assert await names(index, make_filter(own_tenant)) == ["m"]
    assert await names(index, make_filter(own_tenant, user_id="U2")) == []
    assert await index.count(own_tenant) == 1

    await index.upsert([make_row(own_tenant, "m", user_id="U2")])
    assert await names(index, make_filter(own_tenant, user_id="U2")) == ["m"]
    assert await index.count(own_tenant) == 1


async def test_a_large_batch(index: MilvusIndex, own_tenant: str) -> None:
    rows = [
        make_row(own_tenant, f"m{number:04}", kind=KINDS[number % 3], vector=vector_at(number / 10))
        for number in range(2_500)
    ]
    await index.upsert(rows)

    keys = [row.key for row in rows]
    assert await index.count(own_tenant) == len(rows)
    assert await index.existing([*keys, memory_key(own_tenant, "none")]) == frozenset(keys)
    assert await names(index, make_filter(own_tenant), limit=3) == ["m0000", "m0003", "m0006"]
    assert len(await names(index, make_filter(own_tenant), limit=1000)) == 834

    await index.delete(keys[:2_200])
    assert await index.count(own_tenant) == 300
    assert await index.existing(keys) == frozenset(keys[2_200:])
    assert await index.count() >= 300


async def test_deleting(index: MilvusIndex, own_tenant: str) -> None:
    rows = [make_row(own_tenant, kind, kind=kind) for kind in KINDS]
    keys = [row.key for row in rows]
    await index.upsert(rows)
    assert await index.existing(keys) == frozenset(keys)

    await index.delete([keys[0], keys[2], memory_key(own_tenant, "none")])

    assert await index.existing(keys) == {keys[1]}
    await index.delete([keys[0]])
    assert await index.existing(keys) == {keys[1]}
    await index.upsert([rows[0]])
    assert await index.existing(keys) == {keys[0], keys[1]}


async def test_nothing_to_do(index: MilvusIndex) -> None:
    await index.upsert([])
    await index.delete([])

    assert await index.existing([]) == frozenset()


async def test_an_acknowledged_row_is_found_at_once(index: MilvusIndex, own_tenant: str) -> None:
    for number in range(25):
        await index.upsert([make_row(own_tenant, f"m{number:02}")])

        assert len(await names(index, make_filter(own_tenant))) == number + 1


async def test_many_at_once(index: MilvusIndex, own_tenant: str) -> None:
    async def one(number: int) -> list[str]:
        user = f"U{number}"
        await index.upsert([make_row(own_tenant, f"m{number}", user_id=user)])
        return await names(index, make_filter(own_tenant, user_id=user))

    found = await asyncio.gather(*(one(number) for number in range(20)))

    assert found == [[f"m{number}"] for number in range(20)]


# --- searching -----------------------------------------------------------------------------


async def test_similarity_is_the_cosine_nearest_first(index: MilvusIndex, own_tenant: str) -> None:
    await index.upsert(
        [
            make_row(own_tenant, f"{degrees:03}", vector=vector_at(degrees))
            for degrees in (180, 90, 0, 60, 120)
        ]
    )

    hits = await index.search("episodic", vector_at(0), make_filter(own_tenant), 10)

    assert [hit.key[-3:] for hit in hits] == ["000", "060", "090", "120", "180"]
    assert [hit.similarity for hit in hits] == pytest.approx([1, 0.5, 0, -0.5, -1], abs=1e-5)
    assert all(-1 <= hit.similarity <= 1 for hit in hits)
    assert len(await names(index, make_filter(own_tenant), limit=2)) == 2


async def test_ties_are_in_order_of_keys(index: MilvusIndex, own_tenant: str) -> None:
    await index.upsert([make_row(own_tenant, name) for name in "dbeac"])

    assert await names(index, make_filter(own_tenant)) == list("abcde")


async def test_kinds_are_apart(index: MilvusIndex, own_tenant: str) -> None:
    await index.upsert([make_row(own_tenant, kind, kind=kind) for kind in KINDS])

    for kind in KINDS:
        hits = await index.search(kind, EAST, make_filter(own_tenant), 5)
        assert [hit.key for hit in hits] == [memory_key(own_tenant, kind)]


@pytest.mark.parametrize(
    ("row", "filter_", "found"),
    [
        ({}, {}, True),
        ({"user_id": None}, {}, True),
        ({"user_id": "U2"}, {}, False),
        ({"user_id": "u1"}, {}, False),
        ({"user_id": "U11"}, {}, False),
        ({"privacy": "sensitive"}, {}, False),
        ({"privacy": "public"}, {}, True),
        ({"privacy": "sensitive"}, {"privacy": ("sensitive",)}, True),
        ({"tier": "archive"}, {}, False),
        ({"tier": "archive"}, {"tiers": ("hot", "archive")}, True),
        ({"status": "superseded"}, {}, True),
        ({"status": "disabled"}, {}, False),
        ({"status": "forgotten"}, {}, False),
        ({"status": "disabled"}, {"as_of": None}, False),
        ({"status": "disabled"}, {"statuses": ("active", "superseded", "disabled")}, True),
        ({"status": "forgotten"}, {"statuses": ("active", "superseded", "disabled")}, False),
        ({"status": "superseded"}, {"statuses": ("active",)}, False),
        ({"status": "forgotten"}, {"as_of": None}, False),
        ({"valid_from": T}, {}, True),
        ({"valid_from": T + STEP}, {}, False),
        ({"valid_from": T + STEP}, {"as_of": None}, True),
        ({"valid_until": T}, {}, False),
        ({"valid_until": T, "status": "superseded"}, {}, False),
        ({"valid_until": T, "status": "superseded"}, {"as_of": T - STEP}, True),
        ({"valid_until": T + STEP}, {}, True),
        ({"valid_until": T}, {"as_of": None}, True),
        ({"expires_at": T}, {}, False),
        ({"expires_at": T + STEP}, {}, True),
        ({"expires_at": T}, {"as_of": None}, True),
        ({"valid_from": datetime(1901, 1, 1, tzinfo=UTC)}, {"as_of": T.replace(year=1960)}, True),
        ({"valid_from": datetime(1961, 1, 1, tzinfo=UTC)}, {"as_of": T.replace(year=1960)}, False),
        ({}, {"as_of": datetime.max.replace(tzinfo=UTC)}, True),
        ({"topic": None}, {}, True),
        ({"topic": None}, {"topics": ("order",)}, False),
        ({}, {"topics": ("order", "退款")}, True),
        ({"topic": "退款"}, {"topics": ("退款",)}, True),
        ({}, {"topics": ("refund",)}, False),
        ({"importance": 0.7}, {"min_importance": 0.7}, True),
        ({"importance": 0.1}, {"min_importance": 0.1}, True),
        ({"importance": 0.69}, {"min_importance": 0.7}, False),
        ({"importance": 0.0}, {"min_importance": 1e-9}, False),
        ({"importance": 1.0}, {"min_importance": 1.0}, True),
        ({"importance": 0.0}, {"min_importance": 0.0}, True),
    ],
)
async def test_filters(
    index: MilvusIndex,
    own_tenant: str,
    row: dict[str, object],
    filter_: dict[str, object],
    found: bool,  # noqa: FBT001
) -> None:
    await index.upsert([make_row(own_tenant, "m", **row)])

    assert await names(index, make_filter(own_tenant, **filter_)) == (["m"] if found else [])


async def test_strange_ids_see_their_own_and_nothing_else(
    index: MilvusIndex, own_tenant: str
) -> None:
    await index.upsert(
        [make_row(own_tenant, name, user_id=name, topic=name[:60]) for name in STRANGE_IDS]
    )

    for name in STRANGE_IDS:
        mine = make_filter(own_tenant, user_id=name)
        assert await names(index, mine) == [name]
        topical = dataclasses.replace(mine, topics=(name[:60],))
        assert await names(index, topical) == [name]
        assert await names(index, make_filter(name, user_id=name)) == []
        assert await names(index, make_filter(own_tenant, user_id="U1", topics=(name,))) == []
        assert await names(index, make_filter(own_tenant, privacy=(name,))) == []
        assert await index.count(name) == 0
        assert await index.existing([name]) == frozenset()


async def test_control_characters_never_widen_a_filter(index: MilvusIndex, own_tenant: str) -> None:
    # ids have none; should one come through, finding nothing and failing are both fine
    await index.upsert([make_row(own_tenant, "m")])

    for char in ("\n", "\r", "\t", "\0", "\x1b", "\x7f", "\u2028"):
        filter_ = make_filter(own_tenant, user_id=f"U1{char}")
        with contextlib.suppress(StoreError):
            assert await names(index, filter_) == []


async def test_tenants_are_apart(index: MilvusIndex, own_tenant: str) -> None:
    longer = f"{own_tenant}x"
    await index.upsert(
        [
            make_row(own_tenant, "own"),
            make_row(longer, "other"),
            make_row(longer, "other shared", user_id=None),
        ]
    )

    assert await names(index, make_filter(own_tenant)) == ["own"]
    assert await names(index, make_filter(longer)) == ["other", "other shared"]
    assert await index.count(own_tenant) == 1
    assert await index.count(longer) == 2


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"tenant": ""}, InvalidScope),
        ({"user_id": ""}, InvalidScope),
        ({"privacy": ()}, InvalidScope),
        ({"tiers": ()}, InvalidInput),
    ],
)
async def test_missing_scope_is_an_error(
    index: MilvusIndex, change: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await names(index, make_filter("acme", **change))


async def test_an_empty_tenant_is_not_every_tenant(index: MilvusIndex) -> None:
    with pytest.raises(InvalidScope):
        await index.count("")


@pytest.mark.parametrize("limit", [0, -1, 16_385])
async def test_limits(index: MilvusIndex, limit: int) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        await names(index, make_filter("acme"), limit=limit)


async def test_the_largest_limit(index: MilvusIndex, own_tenant: str) -> None:
    await index.upsert([make_row(own_tenant, "m")])

    assert await names(index, make_filter(own_tenant), limit=16_384) == ["m"]


# --- reading rows --------------------------------------------------------------------------


async def every_row(
    index: MilvusIndex, kind: str, tenant: str | None, page: int
) -> list[IndexedRow]:
    found: list[IndexedRow] = []
    while rows := await index.rows(kind, found[-1].id if found else "", page, tenant):
        assert len(rows) <= page
        found += rows
    return found


async def test_rows_come_once_each_and_in_order(
    open_index: Callable[..., MilvusIndex], client: AsyncMilvusClient
) -> None:
    index = open_index()
    await index.prepare(SPEC)
    collection = (await index.info())["episodic"].collection
    live: dict[str, VectorRow] = {}
    # several segments, some rows written twice, some deleted: a store answers from all of them
    for part in range(4):
        new = [
            make_row(f"t{part % 2}", f"m{part}-{number}", vector=vector_at(number))
            for number in range(400)
        ]
        again = [dataclasses.replace(row, status="superseded") for row in list(live.values())[::7]]
        await index.upsert([*new, *again])
        live |= {row.key: row for row in [*new, *again]}
        gone = list(live)[::11]
        await index.delete(gone)
        live = {key: row for key, row in live.items() if key not in gone}
        await client.flush(collection)

    found = await every_row(index, "episodic", None, 97)

    assert [row.id for row in found] == sorted(vector_id(key) for key in live)
    assert {row.key: row.status for row in found} == {row.key: row.status for row in live.values()}
    own = await every_row(index, "episodic", "t1", 97)
    assert {row.key for row in own} == {key for key in live if key.startswith("t1|")}
    assert await index.rows("semantic", "", 10) == ()


async def test_a_write_and_a_deletion_are_seen_by_the_next_page_of_rows(
    index: MilvusIndex, own_tenant: str
) -> None:
    for number in range(10):
        row = make_row(own_tenant, f"m{number}")
        await index.upsert([row])
        assert [each.key for each in await index.rows("episodic", "", 10, own_tenant)] == [row.key]
        await index.delete([row.key])
        assert await index.rows("episodic", "", 10, own_tenant) == ()


async def test_a_row_reads_back_as_it_was_written(index: MilvusIndex, own_tenant: str) -> None:
    rows = [
        make_row(own_tenant, "plain", hash="ab" * 16),
        make_row(
            own_tenant,
            "用户" * 100,
            kind="semantic",
            user_id=None,
            topic=None,
            importance=0.7,
            valid_from=datetime(1901, 1, 1, tzinfo=UTC),
            valid_until=T + STEP,
            expires_at=datetime.max.replace(tzinfo=UTC, microsecond=999_000),
            status="disabled",
            tier="archive",
            lang="zh",
        ),
    ]
    await index.upsert(rows)

    for row in rows:
        found = await index.rows_of(row.kind, [row.key, memory_key(own_tenant, "none")])
        (streamed,) = await index.rows(row.kind, "", 10, own_tenant)
        assert found == {row.key: streamed}
        assert streamed.id == vector_id(row.key)
        assert streamed.importance == pytest.approx(row.importance, abs=1e-6)
        wanted = dataclasses.replace(row, importance=streamed.importance)
        for name in (item.name for item in dataclasses.fields(RowFields)):
            assert getattr(streamed, name) == getattr(wanted, name), name
    assert await index.rows_of("episodic", [rows[1].key]) == {}
    assert await index.rows_of("episodic", []) == {}


# --- generations ---------------------------------------------------------------------------

OTHER = dataclasses.replace(SPEC, version="2")


async def switched(index: MilvusIndex, spec: EmbeddingSpec, number: int = 2) -> Generation:
    made = await index.make_generation(spec, number)
    await index.serve(made)
    await index.finish(made)
    return next(item for item in await index.generations() if item.name == made.name)


async def test_another_model_of_the_same_dimension_is_neither_read_nor_written(
    open_index: Callable[..., MilvusIndex],
) -> None:
    old = open_index()
    await old.prepare(SPEC)
    await old.upsert([make_row("acme", "m"), make_row("acme", "n")])

    made = await open_index().make_generation(OTHER, 2)
    target = await old.at(made)
    await target.upsert([make_row("acme", "m", vector=NORTH), make_row("acme", "n", vector=NORTH)])
    await old.serve(made)

    for late in (old, await prepared_by_force(open_index(), SPEC)):
        for _ in range(2):
            with pytest.raises(EmbeddingMismatch, match="restart it") as caught:
                await names(late, make_filter("acme"))
            assert "version '2'" in caught.value.message
            assert "version '1'" in caught.value.message
            with pytest.raises(EmbeddingMismatch, match="restart it"):
                await late.upsert([make_row("acme", "m", status="superseded")])
    new = open_index()
    await new.prepare(OTHER)
    assert {row.status for row in await new.rows("episodic", "", 10)} == {"active"}
    hits = await new.search("episodic", NORTH, make_filter("acme"), 5)
    assert [hit.similarity for hit in hits] == pytest.approx([1, 1])
    # a deletion is right whoever makes it
    await old.delete([memory_key("acme", "n")])
    assert [row.key for row in await new.rows("episodic", "", 10)] == [memory_key("acme", "m")]


async def prepared_by_force(index: MilvusIndex, spec: EmbeddingSpec) -> MilvusIndex:
    # a process that was started before the switch, but connects only now
    index._spec = spec
    return index


async def test_the_same_model_goes_on_over_a_new_generation(
    open_index: Callable[..., MilvusIndex],
) -> None:
    index = open_index()
    await index.prepare(SPEC)
    await index.upsert([make_row("acme", "old")])

    await switched(open_index(), SPEC)

    assert await names(index, make_filter("acme")) == []
    await index.upsert([make_row("acme", "new")])
    assert await names(index, make_filter("acme")) == ["new"]
    await index.prepare(SPEC)
    assert await index.count() == 1


async def test_a_deletion_reaches_what_is_kept_and_what_is_being_filled(
    open_index: Callable[..., MilvusIndex],
) -> None:
    index = open_index()
    await index.prepare(SPEC)
    await index.upsert([make_row("acme", "m"), make_row("acme", "n")])
    await switched(index, OTHER)
    await index.prepare(OTHER)
    filling = await index.make_generation(SPEC, 3)
    await (await index.at(filling)).upsert([make_row("acme", "m"), make_row("acme", "n")])

    await index.delete([memory_key("acme", "m")])

    keys = [memory_key("acme", name) for name in "mn"]
    kept = {
        item.number: await (await index.at(item)).existing(keys)
        for item in await index.generations()
    }
    assert kept == {1: {keys[1]}, 2: frozenset(), 3: {keys[1]}}


async def test_generations_are_told_apart_until_they_are_dropped(
    open_index: Callable[..., MilvusIndex], client: AsyncMilvusClient
) -> None:
    index = open_index()
    assert await index.generations() == ()
    await index.prepare(SPEC)
    (first,) = await index.generations()
    assert (first.number, first.spec, first.filling, first.replaces) == (1, SPEC, False, "")
    assert first.kinds == first.serving == frozenset(KINDS)

    second = await index.make_generation(OTHER, 2)
    assert (second.number, second.spec, second.filling) == (2, OTHER, True)
    assert second.serving == frozenset()
    assert await index.make_generation(OTHER, 2) == second
    with pytest.raises(StoreError, match="serves"):
        await index.drop_generation(first)
    await index.serve(second)
    await index.serve(second)
    await index.finish(second)
    first, second = await index.generations()
    assert (second.serving, second.filling, second.replaces) == (
        frozenset(KINDS),
        False,
        first.name,
    )
    assert first.serving == frozenset()
    assert {info.spec for info in (await index.info()).values()} == {OTHER}

    # back again: what was taken out of memory is loaded
    rows = await index.at(first)
    await rows.upsert([make_row("acme", "m")])
    await index.serve(first)
    await index.finish(first)
    await index.prepare(SPEC)
    assert await names(index, make_filter("acme")) == ["m"]
    first, second = await index.generations()
    assert (first.replaces, second.serving) == (second.name, frozenset())

    await index.drop_generation(second)
    await index.drop_generation(second)
    assert [item.name for item in await index.generations()] == [first.name]
    assert not [name for name in await client.list_collections() if second.name in name]
    assert await names(index, make_filter("acme")) == ["m"]


async def test_what_a_crash_left_of_a_generation_is_completed_or_dropped(
    open_index: Callable[..., MilvusIndex], client: AsyncMilvusClient
) -> None:
    index = open_index()
    await index.prepare(SPEC)
    made = await index.make_generation(OTHER, 2)
    # as after a crash between two kinds, and one between renaming and dropping
    await client.drop_collection(index._collections.name("semantic", made.name))
    (_, half) = await index.generations()
    assert half.kinds == frozenset(KINDS) - {"semantic"}
    assert (await index.make_generation(OTHER, 2)).kinds == frozenset(KINDS)
    name = index._collections.name("episodic", made.name)
    await client.rename_collection(name, f"{name}_old")

    left = [item for item in await index.generations() if not item.serving]
    assert {item.spec for item in left if item.name.endswith("_old")} == {None}
    for item in left:
        await index.drop_generation(item)
    assert [item.number for item in await index.generations()] == [1]


async def test_a_switch_that_was_interrupted_goes_on(
    open_index: Callable[..., MilvusIndex], client: AsyncMilvusClient
) -> None:
    index = open_index()
    await index.prepare(SPEC)
    made = await index.make_generation(OTHER, 2)
    await index.serve(made)
    kind = KINDS[-1]
    first = index._collections.name(kind, (await index.generations())[0].name)
    await client.alter_alias(first, index._collections.alias(kind))

    for spec in (SPEC, OTHER):
        with pytest.raises(EmbeddingMismatch, match="ecphoria reembed"):
            await open_index().prepare(spec)
    await index.serve(made)

    await open_index().prepare(OTHER)
    (first_generation, second) = await index.generations()
    assert second.replaces == first_generation.name


async def test_rows_of_another_version_are_refused_but_replaced(
    open_index: Callable[..., MilvusIndex], client: AsyncMilvusClient
) -> None:
    index = open_index()
    for kind in KINDS:
        alias = index._collections.alias(kind)
        schema = AsyncMilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=32)
        schema.add_field("dense", DataType.FLOAT_VECTOR, dim=DIMENSION)
        lock = {"model": SPEC.model, "version": SPEC.version, "dimension": DIMENSION}
        await client.create_collection(
            f"{alias}_{'a' * 12}",
            schema=schema,
            properties={"ecphoria.embedding": json.dumps(lock)},
        )
        await client.create_alias(f"{alias}_{'a' * 12}", alias)

    with pytest.raises(EmbeddingMismatch, match=r"other fields.*ecphoria reembed"):
        await index.prepare(SPEC)
    (old,) = await index.generations()
    assert (old.number, old.spec, old.serving) == (0, None, frozenset(KINDS))
    with pytest.raises(EmbeddingMismatch, match="another version"):
        await index.at(old)

    await switched(index, SPEC, 2)
    await index.prepare(SPEC)
    await index.upsert([make_row("acme", "m")])
    assert await names(index, make_filter("acme")) == ["m"]
    await index.drop_generation(old)
    assert [item.number for item in await index.generations()] == [2]


async def test_the_search_index_is_rebuilt_when_rows_grew(
    vector_uri: str, vector_token: str | None, prefix: str, client: AsyncMilvusClient
) -> None:
    index = MilvusIndex(
        vector_uri, token=vector_token, prefix=prefix, timeout_s=60, refresh_from=100
    )
    await index.prepare(SPEC)
    collection = (await index.info())["episodic"].collection

    async def grow(start: int, count: int) -> None:
        rows = [
            make_row("acme", f"m{number}", vector=vector_at(number))
            for number in range(start, start + count)
        ]
        await index.upsert(rows)

    async def step() -> None:
        # the store indexes in the background; nothing else tells when it is done
        async with asyncio.timeout(120):
            while not await index.refresh():  # noqa: ASYNC110
                await asyncio.sleep(0.2)

    await grow(0, 99)
    assert await index.refresh() == ()
    await grow(99, 1)
    if (await index.ping()).product == "Milvus Lite":
        assert await index.refresh() == ()
    else:
        assert await index.refresh() == (collection,)
        await step()
        described = await client.describe_index(collection, "dense")
        assert (described["total_rows"], described["pending_index_rows"]) == (100, 0)
        assert await index.refresh() == ()
        await grow(100, 29)
        assert await index.refresh() == ()
        await grow(129, 1)
        assert await index.refresh() == (collection,)
        await step()
        assert await index.refresh() == ()
        await index.delete([memory_key("acme", f"m{number}") for number in range(30)])
        assert await index.refresh() == (collection,)
    assert len(await names(index, make_filter("acme"), limit=1000)) >= 100
    await index.drop()
    await index.close()


# --- a server that goes away and comes back -------------------------------------------------

_LITE = """
import os, sys, time
os.environ["MILVUS_LITE_MEMTABLE_MEMORY_LIMIT_BYTES"] = "2000000"
from milvus_lite.adapter.grpc.server import start_server_in_thread
kept = start_server_in_thread(sys.argv[1], host="127.0.0.1", port=int(sys.argv[2]), max_workers=1)
print(kept[2], flush=True)
sys.stdin.read()
os._exit(0)
"""


class _Lite:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = 0
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        command = [sys.executable, "-c", _LITE, str(self.directory), str(self.port)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


@pytest.fixture
def lite(tmp_path: Path) -> Iterator[_Lite]:
    server = _Lite(tmp_path)
    server.start()
    yield server
    server.kill()


async def test_a_server_that_comes_back(lite: _Lite) -> None:
    uri = f"http://127.0.0.1:{lite.port}"
    index = MilvusIndex(uri, token=None, prefix="back", timeout_s=30)
    await index.prepare(SPEC)
    await index.upsert([make_row("acme", "m")])

    for _ in range(2):
        lite.kill()
        started = time.monotonic()
        with pytest.raises(StoreUnavailable):
            await names(index, make_filter("acme"))
        with pytest.raises(StoreUnavailable):
            await index.upsert([make_row("acme", "lost")])
        # soon enough to answer from the graph alone
        assert time.monotonic() - started < 6

        lite.start()
        # collections are not loaded after a start
        assert await names(index, make_filter("acme")) == ["m"]
    assert await index.existing([memory_key("acme", "m")])
    await index.upsert([make_row("acme", "n")])
    assert await names(index, make_filter("acme")) == ["m", "n"]
    await index.close()


async def test_a_short_break_is_bridged(lite: _Lite) -> None:
    uri = f"http://127.0.0.1:{lite.port}"
    index = MilvusIndex(uri, token=None, prefix="gap", timeout_s=30)
    await index.prepare(SPEC)
    lite.kill()
    lite.start()

    await index.upsert([make_row("acme", "m")])

    assert await index.count("acme") == 1
    await index.close()
