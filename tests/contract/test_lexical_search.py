"""What every vector index promises of its search by terms, where the store has BM25.

A store that lacks it says so, and does everything else as before: the last tests here.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio
from pymilvus import AsyncMilvusClient

from builders import vector_row
from ecphoria.errors import InvalidInput, InvalidScope, StoreError
from ecphoria.language.terms import terms
from ecphoria.model import EmbeddingSpec, memory_key
from ecphoria.stores.milvus import MilvusIndex
from ecphoria.stores.milvus_collections import TERMS_BYTES
from ecphoria.stores.milvus_connection import MilvusConnection
from ecphoria.stores.ports import Generation, VectorFilter, VectorRow
from ecphoria_schema.domain import KINDS

SPEC = EmbeddingSpec("test-model", "1", 4)
EAST = (1.0, 0.0, 0.0, 0.0)
T = datetime(2025, 6, 15, 8, tzinfo=UTC)
DAY = timedelta(days=1)

_NUMBERS = itertools.count()


def make_row(tenant: str, name: str, text: str, /, **changes: object) -> VectorRow:
    return vector_row(tenant, name, T - DAY, **({"vector": EAST, "terms": terms(text)} | changes))


def make_filter(tenant: str, /, **changes: object) -> VectorFilter:
    filter_ = VectorFilter(tenant=tenant, user_id="U1", as_of=T, privacy=("public", "internal"))
    return dataclasses.replace(filter_, **changes)  # type: ignore[arg-type]


async def found(
    index: MilvusIndex, question: str, filter_: VectorFilter, limit: int = 100
) -> list[str]:
    hits = await index.search_terms("episodic", terms(question), filter_, limit)
    assert hits is not None
    return [hit.key.split("|", 2)[2] for hit in hits]


@pytest_asyncio.fixture(loop_scope="session")
async def open_index(
    vector_uri: str, vector_token: str | None
) -> AsyncIterator[Callable[[], MilvusIndex]]:
    """Return a function that makes indexes on one prefix, which is dropped in the end."""
    prefix = f"lx{os.getpid()}_{next(_NUMBERS)}"
    opened: list[MilvusIndex] = []

    def make() -> MilvusIndex:
        opened.append(MilvusIndex(vector_uri, token=vector_token, prefix=prefix, timeout_s=60))
        return opened[-1]

    yield make
    await make().drop()
    for each in opened:
        await each.close()


@pytest_asyncio.fixture(loop_scope="session")
async def any_index(open_index: Callable[[], MilvusIndex]) -> MilvusIndex:
    """Return an index on any store."""
    index = open_index()
    await index.prepare(SPEC)
    return index


@pytest_asyncio.fixture(loop_scope="session")
async def index(any_index: MilvusIndex, store_kind: str) -> MilvusIndex:
    """Return an index with lexical search; the servers that tests start are too old for it."""
    if await any_index.search_terms("episodic", ("a",), make_filter("t"), 1) is None:
        assert store_kind == "servers", "the embedded store and those of the compose file have it"
        pytest.skip("this server has no BM25")
    return any_index


@contextlib.contextmanager
def without_bm25() -> Iterator[None]:
    """Have every store look like one that is too old, until it is upgraded at the end."""

    async def too_old(_self: MilvusConnection) -> bool:
        return False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MilvusConnection, "has_bm25", too_old)
        yield


@pytest_asyncio.fixture(loop_scope="session")
async def client(vector_uri: str, vector_token: str | None) -> AsyncIterator[AsyncMilvusClient]:
    client = AsyncMilvusClient(uri=vector_uri, token=vector_token or "", dedicated=True)
    yield client
    await client.close()


# --- what is found -------------------------------------------------------------------------


async def test_chinese_english_and_mixed_texts_are_found_by_their_words(index: MilvusIndex) -> None:
    texts = {
        "zh": "客户说电池充不满电，希望换一块新的",
        "en": "The customer's batteries were not charging",
        "mixed": "iPhone 15 的屏幕碎了，customer wants a refund",
        "other": "Lieferung am Dienstag, всё хорошо",
    }
    await index.upsert([make_row("t", name, text) for name, text in texts.items()])

    assert await found(index, "电池坏了", make_filter("t")) == ["zh"]
    assert await found(index, "Is the battery charged?", make_filter("t")) == ["en"]
    assert await found(index, "ＩＰＨＯＮＥ 的屏幕", make_filter("t")) == ["mixed"]
    assert await found(index, "refunded", make_filter("t")) == ["mixed"]
    assert await found(index, "Всё", make_filter("t")) == ["other"]
    assert await found(index, "洗衣机 dishwasher", make_filter("t")) == []


async def test_more_words_in_common_come_first(index: MilvusIndex) -> None:
    await index.upsert(
        [
            make_row("t", "both", "the camera lens of the phone is broken"),
            make_row("t", "one", "the camera of the phone works well now"),
            *[make_row("t", f"n{number}", "nothing of the kind") for number in range(20)],
        ]
    )

    assert await found(index, "camera lens", make_filter("t")) == ["both", "one"]
    assert await found(index, "camera lens", make_filter("t"), limit=1) == ["both"]


async def test_scores_are_higher_for_what_is_better(index: MilvusIndex) -> None:
    await index.upsert(
        [make_row("t", "a", "camera lens broken"), make_row("t", "b", "camera works fine")]
    )

    hits = await index.search_terms("episodic", ("camera", "len"), make_filter("t"), 5)

    assert hits is not None
    first, second = hits
    assert first.score > second.score > 0


async def test_an_id_is_told_from_the_one_next_to_it(index: MilvusIndex) -> None:
    await index.upsert(
        [make_row("t", f"o{n}", f"order #88230{n} and ticket RMA-2025/00{n}2") for n in range(9)]
    )

    assert await found(index, "订单882304", make_filter("t")) == ["o4"]
    assert (await found(index, "where is RMA-2025/0062?", make_filter("t")))[0] == "o6"


async def test_terms_and_context_come_back_apart(index: MilvusIndex) -> None:
    await index.upsert([make_row("t", "m", "yes, both of them", context=terms("电池 and screen?"))])

    hits = await index.search_terms("episodic", terms("电池"), make_filter("t"), 5)

    assert hits is not None
    (hit,) = hits
    assert hit.key == memory_key("t", "m")
    assert (hit.terms, hit.context) == (terms("yes, both of them"), terms("电池 and screen?"))


async def test_a_text_without_terms_is_kept_and_never_found(index: MilvusIndex) -> None:
    await index.upsert([make_row("t", "m", "?!"), make_row("t", "n", "", context=("电池",))])

    assert await index.count("t") == 2
    assert await found(index, "电池", make_filter("t")) == ["n"]
    hits = await index.search("episodic", EAST, make_filter("t"), 5)
    assert len(hits) == 2


@pytest.mark.parametrize("text", ["退款" * 40_000, "word " * 40_000, "𠮷" * 40_000])
async def test_an_overlong_text_is_found_by_its_beginning(index: MilvusIndex, text: str) -> None:
    long = f"beginning {text} ending"
    assert len(" ".join(terms(long)).encode()) > TERMS_BYTES

    await index.upsert([make_row("t", "m", long)])

    assert await found(index, "beginning", make_filter("t")) == ["m"]
    assert await found(index, "ending", make_filter("t")) == []


async def test_many_overlong_texts_in_one_call(index: MilvusIndex) -> None:
    rows = [make_row("t", f"m{number}", "退款" * 12_000) for number in range(400)]

    await index.upsert([*rows, make_row("t", "last", "the last one")])

    assert await index.count("t") == 401
    assert await found(index, "last", make_filter("t")) == ["last"]


# --- what is not ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"tenant": "other"},
        {"user_id": "U2"},
        {"privacy": "sensitive"},
        {"valid_from": T + DAY},
        {"valid_until": T},
        {"expires_at": T},
        {"tier": "archive"},
        {"status": "disabled"},
        {"kind": "semantic"},
    ],
)
async def test_what_the_filter_leaves_out_is_not_found(
    index: MilvusIndex, changes: dict[str, object]
) -> None:
    wanted = make_row("t", "in", "the battery is dead, said somebody at length")
    hidden = [
        dataclasses.replace(
            make_row(str(changes.get("tenant", "t")), f"out{number}", "battery"),
            **changes,  # type: ignore[arg-type]
        )
        for number in range(20)
    ]
    await index.upsert([wanted, *hidden])

    # the better ones that are left out take no place of those that may be found
    assert await found(index, "battery", make_filter("t"), limit=1) == ["in"]
    assert await found(index, "battery", make_filter("t")) == ["in"]


async def test_topic_and_importance_are_filtered_too(index: MilvusIndex) -> None:
    await index.upsert(
        [
            make_row("t", "a", "battery", importance=0.7),
            make_row("t", "b", "battery", topic="refund", importance=0.2),
            make_row("t", "shared", "battery", user_id=None),
        ]
    )

    filter_ = make_filter("t")
    assert set(await found(index, "battery", filter_)) == {"a", "b", "shared"}
    assert await found(index, "battery", dataclasses.replace(filter_, topics=("refund",))) == ["b"]
    assert await found(index, "battery", dataclasses.replace(filter_, min_importance=0.7)) == ["a"]


async def test_a_filter_without_a_user_is_refused(index: MilvusIndex) -> None:
    with pytest.raises(InvalidScope):
        await index.search_terms("episodic", ("a",), make_filter("t", user_id=""), 5)


async def test_what_is_deleted_is_gone(index: MilvusIndex) -> None:
    await index.upsert([make_row("t", "a", "battery"), make_row("t", "b", "battery")])

    await index.delete([memory_key("t", "a")])

    assert await found(index, "battery", make_filter("t")) == ["b"]


async def test_a_new_text_takes_the_place_of_the_old_one(index: MilvusIndex) -> None:
    await index.upsert([make_row("t", "a", "电池 battery", context=("lens",))])

    await index.upsert([make_row("t", "a", "屏幕 screen")])

    for gone in ("battery", "电池", "lens"):
        assert await found(index, gone, make_filter("t")) == []
    assert await found(index, "屏幕", make_filter("t")) == ["a"]


@pytest.mark.parametrize("question", ["", " \n", "?!…。", "the of 的了吗", "🙂", '"" + - ~ *'])
async def test_a_question_without_terms_finds_nothing(index: MilvusIndex, question: str) -> None:
    await index.upsert([make_row("t", "m", "battery")])

    assert await found(index, question, make_filter("t")) == []


@pytest.mark.parametrize(
    "question",
    [
        '"battery" OR screen',
        "+battery -screen",
        "batt*",
        "screen~2",
        "text_match(terms, 'battery')",
        'battery") or tenant != ("',
        "{battery}",
        "| screen",
    ],
)
async def test_a_question_is_no_syntax(index: MilvusIndex, question: str) -> None:
    await index.upsert([make_row("t", "a", "battery"), make_row("t", "b", "screen")])
    await index.upsert([make_row("other", "c", "battery screen")])

    # whatever the marks: what has one of its words is found, and nothing else is
    expected = {name for name, word in (("a", "battery"), ("b", "screen")) if word in question}
    assert set(await found(index, question, make_filter("t"))) == expected


@pytest.mark.parametrize("term", ["", "two words", "a|b", "a-b", "|", "\x00"])
async def test_what_is_no_term_is_refused(any_index: MilvusIndex, term: str) -> None:
    with pytest.raises(InvalidInput):
        await any_index.search_terms("episodic", ("fine", term), make_filter("t"), 5)
    for bad in ({"terms": (term,)}, {"context": (term,)}):
        with pytest.raises(InvalidInput) as caught:
            await any_index.upsert([make_row("t", "a", ""), make_row("t", "m", "", **bad)])
        assert caught.value.path[:2] == ("rows", 1)
    assert await any_index.count("t") == 0


@pytest.mark.parametrize("limit", [0, -1, 16_385])
async def test_a_limit_out_of_range(any_index: MilvusIndex, limit: int) -> None:
    with pytest.raises(InvalidInput):
        await any_index.search_terms("episodic", ("a",), make_filter("t"), limit)


async def test_before_prepare(open_index: Callable[[], MilvusIndex]) -> None:
    with pytest.raises(StoreError, match="prepare"):
        await open_index().search_terms("episodic", ("a",), make_filter("t"), 5)


async def test_200_terms_at_once(index: MilvusIndex) -> None:
    await index.upsert([make_row("t", "m", "w150")])

    assert await found(index, " ".join(f"w{n}" for n in range(200)), make_filter("t")) == ["m"]


# --- stores and collections without --------------------------------------------------------


async def _check_dense_only(index: MilvusIndex) -> None:
    await index.upsert([make_row("t", "m", "battery", context=("lens",))])
    for kind in KINDS:
        assert await index.search_terms(kind, ("batteri",), make_filter("t"), 5) is None
    (hit,) = await index.search("episodic", EAST, make_filter("t"), 5)
    assert hit.similarity == pytest.approx(1)
    assert not any(info.lexical for info in (await index.info()).values())
    assert await index.existing([memory_key("t", "m")])


async def test_info_tells_whether_there_is_lexical_search(any_index: MilvusIndex) -> None:
    able = await any_index.search_terms("episodic", ("a",), make_filter("t"), 1) is not None

    assert {info.lexical for info in (await any_index.info()).values()} == {able}
    # what this store can do at all was done
    assert not any(item.outdated for item in await any_index.generations())


async def test_a_store_without_bm25_is_marked_and_does_all_else(
    open_index: Callable[[], MilvusIndex],
) -> None:
    index = open_index()
    with without_bm25():
        await index.prepare(SPEC)

    await _check_dense_only(index)
    (generation,) = await index.generations()
    # by this store nothing better can be made
    assert not generation.outdated


async def test_a_store_that_refuses_it_is_taken_without(
    open_index: Callable[[], MilvusIndex],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def says_so(_self: MilvusConnection) -> bool:
        return True

    # no store knows it: all of them refuse it as one without BM25 does that says otherwise
    monkeypatch.setattr(MilvusConnection, "has_bm25", says_so)
    for name in ("_TOKENIZER", "_TOKENIZER_LITE"):
        monkeypatch.setattr(f"ecphoria.stores.milvus_collections.{name}", "no-such-tokenizer")
    index = open_index()
    await index.prepare(SPEC)

    await _check_dense_only(index)


async def _made_before(index: MilvusIndex, client: AsyncMilvusClient) -> None:
    """Make an index as it was made before there was lexical search."""
    with without_bm25():
        await index.prepare(SPEC)
    for info in (await index.info()).values():
        # properties cannot be removed on every store
        await client.alter_collection_properties(info.collection, properties={"ecphoria.plain": ""})


async def test_an_index_made_before_works_on_and_is_outdated(
    open_index: Callable[[], MilvusIndex],
    client: AsyncMilvusClient,
) -> None:
    await _made_before(open_index(), client)

    index = open_index()
    await index.prepare(SPEC)

    await _check_dense_only(index)
    assert [item.outdated for item in await index.generations()] == [True]


async def _switched(index: MilvusIndex) -> Generation:
    made = await index.make_generation(SPEC, 2)
    rows = await index.at(made)
    await rows.upsert([make_row("t", "m", "battery")])
    await index.serve(made)
    await index.finish(made)
    return made


async def test_a_new_generation_brings_it_and_who_writes_learns_of_it(
    open_index: Callable[[], MilvusIndex],
    client: AsyncMilvusClient,
    index: MilvusIndex,
) -> None:
    old, other = open_index(), open_index()
    await index.drop()
    await _made_before(old, client)
    await other.prepare(SPEC)
    await other.upsert([make_row("t", "m", "battery")])
    assert await other.search_terms("episodic", ("batteri",), make_filter("t"), 5) is None
    before = (await old.generations())[0]

    made = await _switched(old)

    assert not made.outdated
    # the other process was not told
    await other.upsert([make_row("t", "n", "battery")])
    assert set(await found(other, "battery", make_filter("t"))) == {"m", "n"}
    # and back: it is told by the search
    await old.at(before)
    await old.serve(before)
    assert await other.search_terms("episodic", ("batteri",), make_filter("t"), 5) is None
    await other.upsert([make_row("t", "n", "battery")])
    assert len(await other.search("episodic", EAST, make_filter("t"), 5)) == 2
