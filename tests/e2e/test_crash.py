"""kill -9 at every stage boundary of everything that writes: nothing is lost, nothing is twice."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from subprocess import PIPE

import pytest
import pytest_asyncio

from e2e.crashing_writer import DAY, LIVES, ORDER, START, USER, Life, scope_of, watch
from ecphoria.embedding.open import open_embedder
from ecphoria.engine import Engine
from ecphoria.settings import load_settings
from ecphoria.testing import ManualClock
from engines import HashEmbedder, settle, snapshot, with_clock

WRITER = Path(__file__).with_name("crashing_writer.py")
INDEXED = ("embed_passages 1", "upsert 1", "mark_indexed 1")
# Every call of a port that each life makes after what was acknowledged, in order.
CALLS = {
    "remember": ("write_memories 1", *INDEXED),
    "say again": ("embed_passages 1", "write_memories 1", "upsert 1", "mark_indexed 1"),
    "replace": ("write_memories 1", *INDEXED),
    "retract": ("retract 1", *INDEXED),
    "forget": ("forget 1", "delete 1", "mark_indexed 1"),
    "age": ("forget 1", "archive 1", "archive 2"),
    "use": ("record_access 1",),
    "reconcile": (
        "lease_pending 1",
        "delete 1",
        "embed_passages 1",
        "upsert 1",
        "mark_indexed 1",
        "lease_pending 2",
    ),
    "arrive": ("upsert_entities 1",),
}
POINTS = [
    (life, f"{when} {call}")
    for life, calls in CALLS.items()
    for call in calls
    for when in ("before", "after")
]


class Writers:
    """Forks writers from a process that has everything imported."""

    def __init__(self, process):
        self._process = process

    @classmethod
    @contextlib.asynccontextmanager
    async def started(cls, env):
        env = env | {"PYTHONPATH": str(WRITER.parents[1])}
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(WRITER), env=env, stdin=PIPE, stdout=PIPE
        )
        try:
            yield cls(process)
        finally:
            process.stdin.close()
            await process.wait()

    async def crash(self, tenant, life, point, spec):
        """Run a writer until it kills itself; return the ids it told were kept, and forgotten."""
        case = {"tenant": tenant, "life": life, "point": point, "spec": asdict(spec)}
        self._process.stdin.write(json.dumps(case).encode() + b"\n")
        await self._process.stdin.drain()
        ended = json.loads(await self._process.stdout.readline())
        assert ended["code"] == -9, ended
        told = ended["told"]
        return (
            {id_ for word, *ids in told if word == "kept" for id_ in ids},
            {id_ for word, *ids in told if word == "forgotten" for id_ in ids},
        )


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def _writers():
    async with contextlib.AsyncExitStack() as stack:
        yield stack, {}


@pytest_asyncio.fixture(loop_scope="session")
async def writers(_writers, stores, tmp_path_factory) -> Writers:
    stack, started = _writers
    if stores.kind not in started:
        clean = {name: value for name, value in os.environ.items() if "ECPHORIA_" not in name}
        env = clean | stores.env("shared", tmp_path_factory.mktemp("writers"))
        started[stores.kind] = await stack.enter_async_context(Writers.started(env))
    return started[stores.kind]


def told_nothing(*_words):
    return None


def a_life(engine, tenant, at=START, tell=told_nothing):
    clock = ManualClock(at)
    own = with_clock(engine, clock, embedder=HashEmbedder(engine.embedder.spec))
    return Life(own, clock, tenant, tell)


async def state_of(engine, tenant):
    """Return all that a tenant's memories are, once nothing is left to do."""
    # later than any lease of a writer that died
    later = a_life(engine, tenant, START + 40 * DAY).engine
    await settle(later, tenant)
    # a repeated write says it again
    return await snapshot(later, tenant, leave_out=("reinforced",))


_STATES: dict[tuple[str, str], tuple[dict, dict]] = {}


async def states(engine, store_kind, life):
    """Return how it is before and after what a life does, when nothing interrupts it."""
    if (store_kind, life) not in _STATES:
        tenant = f"t-{life.replace(' ', '-')}-{os.urandom(6).hex()}"
        own = a_life(engine, tenant)
        begin, act = LIVES[life]
        await begin(own)
        before = await state_of(engine, tenant) if life != "reconcile" else None
        await act(own)
        after = await state_of(engine, tenant)
        _STATES[store_kind, life] = before or after, after
    return _STATES[store_kind, life]


@pytest.mark.parametrize("life", LIVES)
async def test_these_are_all_the_boundaries_there_are(engine, tenant, life):
    called = []
    own = a_life(engine, tenant)
    begin, act = LIVES[life]
    await begin(own)
    # ports of this life alone: the others are shared
    watched = with_clock(own.engine, own.clock, graph=_Own(engine.graph), index=_Own(engine.index))
    watch(watched, None, lambda _, call: called.append(call))
    own.engine = watched
    await act(own)
    assert tuple(called) == CALLS[life]


class _Own:
    """A port of which methods can be set without setting them for everybody."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)


@pytest.mark.parametrize(("life", "point"), POINTS)
async def test_a_killed_writer_loses_and_doubles_nothing(
    engine, store_kind, writers, tenant, life, point
):
    before, after = await states(engine, store_kind, life)
    kept, forgotten = await writers.crash(tenant, life, point, engine.embedder.spec)
    found = await state_of(engine, tenant)
    going = before.keys() - after.keys()
    assert {id_ for id_ in kept - forgotten if not made(id_)} - going <= found.keys()
    assert found.keys().isdisjoint(forgotten)
    if life != "age":
        # one transaction: it has happened or it has not
        assert found in (before, after)
    assert found.keys() in (before.keys(), after.keys())
    await one_value_at_most(engine, tenant)
    if life != "use" or found == before:
        # who got no answer does it again; nobody repeats a use
        _, act = LIVES[life]
        await act(a_life(engine, tenant))
    assert await state_of(engine, tenant) == after
    await one_value_at_most(engine, tenant)


def made(id_):
    return id_.startswith("mem-")


async def one_value_at_most(engine, tenant):
    life = a_life(engine, tenant, START + 40 * DAY)
    history = await life.engine.attribute_history(life.scope, USER, ORDER, "order.status")
    assert len({memory.value for memory in history.current}) <= 1
    assert history.conflicting == ()


async def test_embedded_stores_survive_their_process(embedded_env, tenant):
    settings = load_settings(data_dir=embedded_env["ECPHORIA_DATA_DIR"])
    embedder = await open_embedder(settings)
    await embedder.close()
    # here the stores die with the writer: its child goes down when the pipe to it breaks
    async with Writers.started(embedded_env) as writers:
        kept, _ = await writers.crash(tenant, "remember", "after write_memories 1", embedder.spec)
    async with Engine.open(settings) as engine:
        found = await state_of(engine, tenant)
        assert kept < set(found)
        assert {"delivered", "more", "talk", "talk~2"} < set(found)
        await one_value_at_most(engine, tenant)
        kept_text = await engine.memories(scope_of(tenant), USER, ["note"])
        assert kept_text["note"].text == "A courier came by."
