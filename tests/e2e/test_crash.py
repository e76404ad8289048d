"""kill -9 at every stage boundary of a write: nothing acknowledged is lost, nothing is twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ecphoria.engine import Engine
from ecphoria.model import (
    EveryUser,
    IndexState,
    MemoryInput,
    RecallRequest,
    ReceiptStatus,
    Role,
    Scope,
    memory_key,
)
from ecphoria.settings import load_settings

WRITER = Path(__file__).with_name("crashing_writer.py")
STAGES = [
    "before write_memories",
    "after write_memories",
    "before embed_passages",
    "after embed_passages",
    "before upsert",
    "after upsert",
    "before mark_indexed",
    "after mark_indexed",
]


def crash(env, tenant, stage):
    done = subprocess.run(
        [sys.executable, str(WRITER), tenant, stage],
        env=env,
        capture_output=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == -9, done.stderr.decode()
    lines = (line.split() for line in done.stdout.decode().splitlines())
    return [words[1] for words in lines if words[:1] == ["kept"]]


async def whole(engine, tenant, acknowledged):
    """Check that after reconciling both stores hold the same, and nothing acknowledged is gone."""
    scope = Scope(tenant, "test", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)
    while (await engine.graph.counts(tenant))["pending"]:
        await engine.reconcile()
    kept = await engine.memories(scope, "u1", ["m1", "m2", "m3"])
    assert set(acknowledged) <= set(kept)
    assert {memory.index_state for memory in kept.values()} == {IndexState.INDEXED}
    keys = {memory_key(tenant, id_) for id_ in kept}
    assert await engine.index.existing([memory_key(tenant, f"m{n}") for n in (1, 2, 3)]) == keys
    assert await engine.index.count(tenant) == len(kept)
    # the caller that got no answer tries again
    again = [
        MemoryInput(text=f"memory number {n} of {tenant}", user_id="u1", id=f"m{n}")
        for n in (1, 2, 3)
    ]
    receipts = await engine.remember(scope, again)
    assert [item.status for item in receipts[: len(acknowledged)]] == [
        ReceiptStatus.DUPLICATE
    ] * len(acknowledged)
    assert (await engine.graph.counts(tenant))["Memory"] == 3
    assert await engine.index.count(tenant) == 3
    found = await engine.recall(scope, RecallRequest(f"memory number 3 of {tenant}", "u1"))
    assert [item.memory.id for item in found.memories][:1] == ["m3"]


@pytest.mark.parametrize("stage", STAGES)
async def test_a_killed_writer_loses_and_doubles_nothing(engine, cli_env, tenant, stage):
    acknowledged = crash({**cli_env}, tenant, stage)
    assert acknowledged == ["m1", "m2"]
    await whole(engine, tenant, acknowledged)


async def test_embedded_stores_survive_their_process(embedded_env, tenant):
    # here the stores die with the writer: its child goes down when the pipe to it breaks
    acknowledged = crash(embedded_env, tenant, "after write_memories")
    assert acknowledged == ["m1", "m2"]
    async with Engine.open(load_settings(data_dir=embedded_env["ECPHORIA_DATA_DIR"])) as engine:
        await whole(engine, tenant, acknowledged)
