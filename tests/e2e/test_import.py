"""Bulk import into real stores: good lines kept, bad ones named, kill -9 survived."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ecphoria.bulk_import import Progress, import_files, sources
from ecphoria.model import EveryUser, Role, Scope

if TYPE_CHECKING:
    from ecphoria.engine import Engine

    from .conftest import Ecphoria

DEMO_DATA = Path(__file__).parents[2] / "engine" / "ecphoria" / "demo_data"
MANY = 2_000


def scope(tenant: str) -> Scope:
    return Scope(tenant, "cli", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)


def write(path: Path, lines: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


def lines_of(name: str) -> int:
    return len((DEMO_DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines())


async def run(engine: Engine, tenant: str, *files: str) -> list[Progress]:
    return [event async for event in import_files(engine, scope(tenant), files)]


async def test_the_demo_data_go_in_whole_and_twice_is_once(engine: Engine, tenant: str) -> None:
    files = sources([str(DEMO_DATA)])
    first = (await run(engine, tenant, *files))[-1]
    entities, relations, memories = map(lines_of, ("entities", "relations", "memories"))
    assert first.tally["entity"] == {"created": entities}
    assert first.tally["relation"] == {"created": relations}
    outcomes = first.tally["memory"]
    said = (DEMO_DATA / "memories.jsonl").read_text(encoding="utf-8").splitlines()
    replacing = sum(json.loads(line).get("supersedes") is not None for line in said)
    # what is said to replace a more reliable source's word is a conflict
    assert outcomes == {
        "created": memories - replacing,
        "superseded": outcomes["superseded"],
        "conflict": replacing - outcomes["superseded"],
    }
    assert first.unindexed == 0
    again = (await run(engine, tenant, *files))[-1]
    # without `observed_at` an entity's line is news, even when it says the same
    assert again.tally == {
        "entity": {"updated": entities},
        "relation": {"unchanged": relations},
        "memory": {"duplicate": memories},
    }
    assert (await engine.graph.counts(tenant))["Memory"] == memories
    assert await engine.index.count(tenant) == memories


async def test_every_outcome_of_a_memory_is_counted(
    engine: Engine, tenant: str, tmp_path: Path
) -> None:
    def status(id_: str, value: str, day: int, **keys: object) -> dict[str, Any]:
        return {
            "id": id_,
            "user_id": "u-1",
            "source": "crm",
            "occurred_at": f"2025-06-{day:02}T08:00:00+08:00",
            "facts": [
                {
                    "entity": {"type": "Order", "id": "#882301"},
                    "attribute": "order.status",
                    "value": value,
                }
            ],
            **keys,
        }

    files = [
        write(tmp_path / "1.jsonl", [status("paid", "paid", 1)]),
        write(tmp_path / "2.jsonl", [status("shipped", "shipped", 3)]),
        write(
            tmp_path / "3.jsonl",
            [
                status("between", "awaiting_shipment", 2),
                status("rumour", "cancelled", 4, source="dialogue", text="听说订单已取消"),
                status("paid", "paid", 1),
                status("bad", "on the moon", 5),
                {"id": "note", "user_id": "u-1", "text": "客户要求送货前打电话"},
            ],
        ),
    ]
    events = await run(engine, tenant, *files)
    last = events[-1]
    assert last.tally["memory"] == {
        "created": 2,
        "superseded": 1,
        "historical": 1,
        "conflict": 1,
        "duplicate": 1,
        "rejected": 1,
    }
    assert last.unindexed == 0
    (bad,) = [each for event in events for each in event.bad]
    assert (bad.line, bad.code) == (4, "INVALID_INPUT")
    assert "facts.0.value" in bad.reason


async def test_each_bad_line_is_named_and_every_good_one_kept(
    engine: Engine, tenant: str, tmp_path: Path
) -> None:
    def order(id_: str) -> dict[str, str]:
        return {"type": "Order", "id": id_}

    def placed(by: str, what: str) -> dict[str, Any]:
        return {"type": "PLACED", "from": {"type": "User", "id": by}, "to": order(what)}

    def said(id_: str, **keys: object) -> dict[str, Any]:
        return {"id": id_, "user_id": "u-1", "text": f"note {id_}", **keys}

    file = write(
        tmp_path / "shop.jsonl",
        [
            {"type": "User", "id": "u-1", "props": {"name": "Ann"}},
            {"type": "Alien", "id": "a-1", "props": {}},
            {**order("#1000001"), "props": {"status": "paid"}},
            {**order("#1000002"), "props": {"colour": "red"}},
            {**order("#1000003"), "props": {"total": "many"}},
            {"type": "User", "id": "u-2", "props": {}},
            {**order("#1000004"), "props": {}},
            placed("u-1", "#1000001"),
            placed("nobody", "#1000004"),
            {**placed("u-1", "#1000004"), "type": "STOLE"},
            placed("u-1", "#1000004"),
            said("m-1"),
            said("m-2", source="rumour"),
            said("m-3", valid_from="2025-02-01T00:00:00Z", valid_until="2025-01-01T00:00:00Z"),
            said("m-4", about=[{"type": "Order", "id": "#9999999"}]),
            said("m-5", text=" "),
            said("m-6", about=[order("#1000001")]),
            said("m-1", text="another text under a known id"),
        ],
    )
    events = await run(engine, tenant, file)
    bad = {line.line: line.code for event in events for line in event.bad}
    assert bad == {
        2: "UNKNOWN_ENTITY_TYPE",
        4: "UNKNOWN_PROPERTY",
        5: "INVALID_INPUT",
        6: "INVALID_INPUT",
        9: "MISSING_ENTITY",
        10: "UNKNOWN_RELATION",
        13: "INVALID_INPUT",
        14: "INVALID_TIME",
        15: "MISSING_ENTITY",
        16: "TEXT_EMPTY",
        18: "ID_CONFLICT",
    }
    counts = await engine.graph.counts(tenant)
    assert (counts["User"], counts["Order"], counts["Memory"]) == (1, 2, 2)
    assert all(line.reason for event in events for line in event.bad)


async def test_a_killed_import_goes_on_and_nothing_is_missing_or_there_twice(
    ecphoria: Ecphoria, engine: Engine, tenant: str, tmp_path: Path
) -> None:
    user = {"type": "User", "id": "u-1", "props": {"name": "Ann"}}
    notes = [
        {"id": f"m-{number}", "user_id": "u-1", "text": f"Note {number} on order {number + 10**6}."}
        for number in range(MANY)
    ]
    file = write(tmp_path / "many.jsonl", [user, *notes])
    _kill_half_way(ecphoria, tenant, file)

    resumed = ecphoria("import", file, "--tenant", tenant, "--json")
    assert resumed.code == 0, resumed.err
    assert "going on at line" in resumed.err
    assert sum(resumed.json["tally"]["memory"].values()) == MANY
    done = ecphoria("reconcile", "--json")
    assert done.json["left"] == 0

    assert (await engine.graph.counts(tenant))["Memory"] == MANY
    assert await engine.index.count(tenant) == MANY
    again = ecphoria("import", file, "--tenant", tenant, "--restart", "--json")
    assert again.json["tally"]["memory"] == {"duplicate": MANY}


async def test_the_embedded_stores_survive_the_kill_of_their_process(
    bare_ecphoria: Ecphoria, tenant: str, tmp_path: Path
) -> None:
    notes = [
        {"id": f"m-{number}", "user_id": "u-1", "text": f"Note {number} on order {number + 10**6}."}
        for number in range(MANY)
    ]
    file = write(tmp_path / "many.jsonl", notes)
    _kill_half_way(bare_ecphoria, tenant, file)
    resumed = bare_ecphoria("import", file, "--tenant", tenant, "--json")
    assert resumed.code == 0, resumed.err
    assert bare_ecphoria("reconcile", "--json").json["left"] == 0
    again = bare_ecphoria("import", file, "--tenant", tenant, "--restart", "--json")
    assert again.json["tally"]["memory"] == {"duplicate": MANY}
    [index] = [
        check for check in bare_ecphoria("doctor", "--json").json if check["check"] == "index model"
    ]
    assert f"{MANY:,} rows" in index["detail"]


def _kill_half_way(ecphoria: Ecphoria, tenant: str, file: str) -> None:
    """Kill -9 an import after some of its batches were acknowledged."""
    imports = Path(ecphoria.env["ECPHORIA_DATA_DIR"]) / "imports"
    size = Path(file).stat().st_size
    with ecphoria.started("import", file, "--tenant", tenant, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline:
            for progress in imports.glob("*[0-9a-f].json"):
                if 0.2 * size < json.loads(progress.read_text())["state"]["offset"]:
                    # the embedded stores' own process is left to notice it by itself
                    os.kill(process.pid, signal.SIGKILL)
                    assert process.wait() == -signal.SIGKILL
                    assert list(imports.iterdir())
                    return
            time.sleep(0.01)
    pytest.fail(f"the import ended with {process.returncode} before it could be killed")


def test_standard_input_and_the_error_file(ecphoria: Ecphoria, tenant: str, tmp_path: Path) -> None:
    lines = [{"type": "User", "id": "u-1", "props": {"name": "Ann"}}, {"no": "shape"}] + [
        {"user_id": "u-1"} for _ in range(30)
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    errors = tmp_path / "bad.jsonl"
    done = ecphoria("import", "-", "-t", tenant, "--errors", errors, stdin=text)
    assert done.code == 1
    assert "cannot be resumed" in done.err
    assert "31 bad lines" in done.err
    assert done.err.count("MALFORMED_LINE") == 20
    found = [json.loads(line) for line in errors.read_text().splitlines()]
    assert [bad["line"] for bad in found] == list(range(2, 33))
    assert "entities: 1 created" in done.out
