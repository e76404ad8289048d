"""Faults planted in real stores are found, told, and mended; what is in line stays as it is."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from ecphoria.clock import Clock
from ecphoria.lifecycle import verify as verifying
from ecphoria.lifecycle.verify import Fault
from ecphoria.model import MemoryInput, RecallRequest, memory_key
from ecphoria.remember.indexing import vector_row

if TYPE_CHECKING:
    from e2e.conftest import Ecphoria

COURIERS = 12


def note(number):
    return MemoryInput(
        text=f"The courier of parcel {number} is Courier{number}.", user_id="u1", id=f"m{number}"
    )


async def verified(engine, tenant, **options):
    report = None
    async for progress in engine.verify(tenant=tenant, **options):
        report = progress.report
    return report


async def planted(engine, admin):
    """Keep memories, then put the index out of line behind the engine's back."""
    tenant = admin.tenant
    await engine.remember(admin, [note(number) for number in range(COURIERS)])
    stored = await engine.memories(admin, "u1", [f"m{number}" for number in range(COURIERS)])
    (vector,) = await engine.embedder.embed_passages(["something else"])
    rows = {id_: vector_row(memory, vector) for id_, memory in stored.items()}
    await engine.index.delete([memory_key(tenant, "m1"), memory_key(tenant, "m2")])
    await engine.index.upsert(
        [
            dataclasses.replace(rows["m3"], hash="0" * 32),
            dataclasses.replace(rows["m4"], status="superseded", importance=0.99),
            dataclasses.replace(rows["m5"], key=memory_key(tenant, "nobody")),
            dataclasses.replace(rows["m6"], kind="procedural"),
        ]
    )
    # as a process left it that was set to another model
    token = Clock().token()
    await engine.graph.requeue([memory_key(tenant, "m7")], token)
    await engine.graph.mark_indexed({memory_key(tenant, "m7"): token}, "another-model")


async def test_stores_are_in_line_after_every_kind_of_write(engine, admin, tenant):
    await engine.remember(admin, [note(number) for number in range(COURIERS)])
    await engine.supersede(admin, "m1", dataclasses.replace(note(1), id="new"), "moved on")
    await engine.retract(admin, "u1", "m2", "never true")
    await engine.forget(admin, "u1", ["m3"], "asked for")

    report = await verified(engine, tenant)

    assert (report.checked, report.found, report.examples) == (COURIERS, 0, ())


async def test_differences_are_told_and_mended(engine, admin, tenant):
    await planted(engine, admin)

    report = await verified(engine, tenant)
    assert report.checked == COURIERS
    assert (report.missing, report.orphaned, report.stale_text, report.stale_fields) == (2, 2, 1, 2)
    told = {(item.memory_id, item.fault): set(item.fields) for item in report.examples}
    assert {item.tenant for item in report.examples} == {tenant}
    assert told == {
        ("m1", Fault.MISSING): set(),
        ("m2", Fault.MISSING): set(),
        ("m3", Fault.STALE_TEXT): set(),
        ("m4", Fault.STALE_FIELDS): {"status", "importance"},
        ("nobody", Fault.ORPHANED): set(),
        ("m6", Fault.ORPHANED): set(),
        ("m7", Fault.STALE_FIELDS): {"embedding_model"},
    }
    assert (await verified(engine, tenant)) == report

    mended = await verified(engine, tenant, repair=True)
    assert (mended.found, mended.repaired, mended.left) == (7, 7, 0)
    assert (await verified(engine, tenant)).found == 0
    assert (await engine.graph.counts(tenant))["pending"] == 0
    assert await engine.index.count(tenant) == COURIERS
    for number in (1, 3, 4, 6):
        found = await engine.recall(
            admin, RecallRequest(f"Who is the courier of parcel {number}?", "u1")
        )
        assert found.memories[0].memory.id == f"m{number}"
        assert found.memories[0].similarity is not None


async def test_many_pages(engine, admin, tenant, monkeypatch):
    monkeypatch.setattr(verifying, "PAGE", 5)
    await planted(engine, admin)
    assert (await verified(engine, tenant, repair=True)).left == 0
    assert (await verified(engine, tenant)).found == 0


async def test_writes_that_go_on_meanwhile_are_no_differences(engine, admin, tenant, monkeypatch):
    monkeypatch.setattr(verifying, "PAGE", 3)
    await engine.remember(admin, [note(number) for number in range(COURIERS)])
    number = COURIERS
    async for progress in engine.verify(tenant=tenant, repair=True):
        report = progress.report
        # before, in and behind the page that comes next
        await engine.remember(admin, [note(number), note(number + 1)])
        await engine.supersede(
            admin, f"m{number}", dataclasses.replace(note(number), id=f"n{number}"), "moved on"
        )
        await engine.forget(admin, "u1", [f"m{number % COURIERS}", f"m{number + 1}"], "asked for")
        number += 2
    assert report.found == 0
    assert (await verified(engine, tenant)).found == 0


async def test_the_command_tells_by_its_exit_code(
    ecphoria: Ecphoria, engine, admin, tenant, tmp_path
):
    await planted(engine, admin)

    plain = ecphoria("verify", "--tenant", tenant)
    assert plain.code == 1
    for told in ("missing", "orphaned", "stale text", "stale fields", "m4", "status", "--repair"):
        assert told in plain.out
    found = ecphoria("verify", "--tenant", tenant, "--json")
    assert found.code == 1
    assert {name: found.json[name] for name in ("checked", "missing", "found", "left")} == {
        "checked": COURIERS,
        "missing": 2,
        "found": 7,
        "left": 7,
    }
    assert {"fault": "missing", "memoryId": "m1", "tenant": tenant, "fields": []} in found.json[
        "examples"
    ]
    mended = ecphoria("verify", "--tenant", tenant, "--repair")
    assert (mended.code, "all 7 differences were mended" in mended.out) == (0, True)
    good = ecphoria("verify", "--tenant", tenant)
    assert (good.code, "in line" in good.out) == (0, True)
    wrong = ecphoria("verify", ECPHORIA_NEO4J_URI="http://nowhere", ECPHORIA_DATA_DIR=str(tmp_path))
    assert (wrong.code, "CONFIGURATION_INVALID" in wrong.err) == (3, True)


@pytest.mark.parametrize("fails", ["Courier1.", "Courier"])
async def test_what_cannot_be_mended_is_left_and_told(engine, admin, tenant, fails):
    from renamed_model import Renamed  # noqa: PLC0415 - loads the model's package

    await planted(engine, admin)
    model = engine.embedder.spec.model
    picky = dataclasses.replace(engine, embedder=Renamed(engine.embedder, model, fails))
    report = await verified(picky, tenant, repair=True)
    # orphaned rows need no model, and a row that is right is only marked
    assert (report.found, report.repaired) == ((7, 6) if fails == "Courier1." else (7, 2))
    assert (await verified(engine, tenant, repair=True)).left == 0
    while (await engine.graph.counts(tenant))["pending"]:
        await engine.reconcile()
    assert (await verified(engine, tenant)).found == 0
