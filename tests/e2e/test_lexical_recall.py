"""Memories are found by their words, too: from the write to the answer, and to forgetting."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ecphoria.engine import Engine
from ecphoria.language.terms import terms
from ecphoria.model import MemoryInput, RecallRequest
from ecphoria.stores.milvus_connection import MilvusConnection
from ecphoria.stores.ports import VectorFilter
from engines import settle

THEN = datetime(2026, 3, 1, 12, tzinfo=UTC)
EVERYTHING = ("public", "internal", "sensitive")


def turn(number, text, **changes):
    return MemoryInput(
        **{
            "text": text,
            "user_id": "u1",
            "id": f"m{number}",
            "occurred_at": THEN + timedelta(minutes=number),
            "session_id": "s1",
        }
        | changes
    )


async def by_words(engine, tenant, question, kind="episodic", privacy=EVERYTHING):
    """Return the ids of memories that have a word of the question; None = no lexical search."""
    filter_ = VectorFilter(tenant=tenant, user_id="u1", as_of=None, privacy=privacy)
    hits = await engine.index.search_terms(kind, terms(question), filter_, 50)
    return None if hits is None else {hit.key.split("|", 2)[2] for hit in hits}


async def ids_of(engine, admin, question):
    found = await engine.recall(admin, RecallRequest(question, "u1", limit=20))
    assert found.degradations == ()
    return {item.memory.id for item in found.memories}, {
        step.stage: step.note for step in found.trace
    }


@pytest.fixture
async def lexical(engine, tenant):
    """Return the shared engine, whose store has lexical search."""
    if await by_words(engine, tenant, "anything") is None:
        kind = (await engine.index.ping()).product
        assert kind == "Milvus", "the embedded store has lexical search"
        pytest.skip("this server has no BM25")
    return engine


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("蓝牙耳机的充电盒打不开", "充电盒怎么样了？"),
        ("The charging cradle of the earbuds stays shut", "what about the cradles"),
        ("QZX-7741 was handed over to the depot", "QZX-7741"),
    ],
)
async def test_a_memory_is_found_by_its_words(lexical, admin, tenant, text, question):
    await lexical.remember(admin, [turn(1, text)])

    assert await by_words(lexical, tenant, question) == {"m1"}


async def test_an_answer_is_found_by_what_it_answers(lexical, admin, tenant):
    await lexical.remember(
        admin,
        [turn(1, "Which colour would you like for the wristband?"), turn(2, "Green would be nice")],
    )

    assert await by_words(lexical, tenant, "wristband") == {"m1", "m2"}
    # another session knows nothing of it
    await lexical.remember(admin, [turn(3, "Blue is fine as well", session_id="s2")])
    assert await by_words(lexical, tenant, "wristband") == {"m1", "m2"}


async def test_a_turn_that_comes_late_gets_into_the_context_at_once(lexical, admin, tenant):
    await lexical.remember(admin, [turn(5, "Green would be nice")])

    await lexical.remember(admin, [turn(4, "Which colour for the wristband?")])

    assert await by_words(lexical, tenant, "wristband") == {"m4", "m5"}


async def test_forgotten_words_live_on_nowhere(lexical, admin, tenant):
    await lexical.remember(
        admin,
        [
            turn(1, "My locker code is ZEBRA-99"),
            turn(2, "Thanks, that is noted"),
            turn(3, "Anything else to be done"),
            turn(4, "That would be all for today"),
        ],
    )
    assert await by_words(lexical, tenant, "ZEBRA-99") == {"m1", "m2", "m3"}

    await lexical.forget(admin, "u1", ["m1"], "asked to")
    await settle(lexical, tenant)

    assert await by_words(lexical, tenant, "ZEBRA-99") == set()
    assert await by_words(lexical, tenant, "noted today") == {"m2", "m3", "m4"}


async def test_sensitive_words_are_in_no_index(lexical, admin, tenant):
    await lexical.remember(
        admin,
        [
            turn(1, "The patient takes metoprolol", privacy="sensitive"),
            turn(2, "Delivered to the neighbour"),
        ],
    )

    assert await by_words(lexical, tenant, "metoprolol") == set()
    assert await by_words(lexical, tenant, "neighbour") == {"m2"}


async def test_without_a_word_in_common_meaning_is_asked_alone(engine, admin):
    await engine.remember(admin, [turn(1, "包裹放在门卫那里了", session_id=None)])

    found, notes = await ids_of(engine, admin, "？！ 包裹")
    assert "m1" in found
    lacking = "no lexical search of episodic, semantic, procedural; "
    assert notes["seed"].removeprefix(lacking).startswith("by words and sense: ")


async def test_an_index_made_before_is_noted_and_reembed_brings_the_words(
    stores, prefix, tmp_path, admin, tenant
):
    async def too_old(_self):
        return False

    settings = stores.settings(prefix, tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MilvusConnection, "has_bm25", too_old)
        # the server was upgraded since
        patch.setattr(MilvusConnection, "version", _versioned(MilvusConnection.version))
        async with Engine.open(settings) as engine:
            await engine.remember(admin, [turn(1, "The cradle of the earbuds stays shut")])
    async with Engine.open(settings) as engine:
        try:
            _, notes = await ids_of(engine, admin, "the cradle of the earbuds")
            assert notes["seed"].startswith("no lexical search of")
            assert await by_words(engine, tenant, "cradle") is None
            (old,) = await engine.index.generations()
            assert old.outdated

            stages = [progress.stage async for progress in engine.reembed()]

            assert stages[-1] == "done"
            able = {info.lexical for info in (await engine.index.info()).values()}
            assert await by_words(engine, tenant, "cradle") == ({"m1"} if able == {True} else None)
            assert [progress.stage async for progress in engine.reembed()] == ["unchanged"]
        finally:
            await engine.index.drop()


def _versioned(version):
    async def older(self):
        return f"{await version(self)}-older"

    return older
