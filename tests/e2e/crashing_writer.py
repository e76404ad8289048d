"""Writers that are killed at a stage boundary, for test_crash.py.

Reads cases from standard input, one JSON object a line, and runs each in a process of its own,
forked from this one: so it has everything imported already. A case names a life (`LIVES` below),
which first does some things that are acknowledged, and then one thing during which the process
kills itself (-9), right before or after a call of a port. What was acknowledged, and which calls
were made, comes back as one JSON object a line.

Stores come from the environment.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial

import ecphoria.engine
from ecphoria.engine import Engine
from ecphoria.errors import NotCurrent, StoreUnavailable
from ecphoria.model import (
    EmbeddingSpec,
    EntityInput,
    EntityRef,
    EveryUser,
    FactInput,
    MemoryInput,
    RelationInput,
    Role,
    Scope,
    memory_key,
)
from ecphoria.settings import load_settings
from ecphoria.testing import ManualClock
from engines import HashEmbedder

# Long ago: what expires by this clock is nobody else's.
START = datetime(2021, 2, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
USER, ORDER = "u1", EntityRef("Order", "#882301")
PORTS = {
    "graph": (
        "write_memories",
        "retract",
        "forget",
        "archive",
        "record_access",
        "lease_pending",
        "mark_indexed",
        "upsert_entities",
    ),
    "index": ("upsert", "delete"),
    "embedder": ("embed_passages",),
}
TALK = (
    "用户：我的订单#882301怎么还没发货？客服：已发出，物流单号SF112233。"
    "用户：物流官网查不到啊。客服：我帮您联系仓库核查"
)


def scope_of(tenant):
    return Scope(tenant, "writer", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)


def status(id_, value, at):
    return MemoryInput(
        text="",
        user_id=USER,
        id=id_,
        facts=(FactInput(ORDER, "order.status", value),),
        occurred_at=START + at * DAY,
        valid_from=START + at * DAY,
    )


def noted(id_, text="A courier came by.", **more):
    return MemoryInput(text=text, user_id=USER, id=id_, occurred_at=START, **more)


# --- lives: what is acknowledged first, and what is done when the process dies ------------------


class Life:
    """A process: its engine, its clock, what it was told."""

    def __init__(self, engine, clock, tenant, tell):
        self.engine = engine
        self.clock = clock
        self.scope = scope_of(tenant)
        self.tell = tell

    async def remember(self, *items):
        for receipt in await self.engine.remember(self.scope, items):
            if receipt.code is not None:
                msg = f"the write was refused: {receipt}"
                raise RuntimeError(msg)
            for one in receipt.facts or (receipt,):
                self.tell("kept", one.id)

    async def forget(self, *ids):
        await self.engine.forget(self.scope, USER, ids, "asked for")
        self.tell("forgotten", *ids)


async def _two_values(life):
    await life.remember(status("paid", "paid", 1), noted("note"))
    await life.remember(status("shipped", "shipped", 3))


async def _remember(life):
    await life.remember(
        status("delivered", "delivered", 5),
        noted("more", "Locker 17 is free."),
        noted("talk", TALK),
    )


async def _say_again(life):
    await life.remember(noted(None, "A courier just came by!!"))


async def _note(life):
    await life.remember(noted(None))


async def _replace(life):
    better = noted("better", "Two couriers came by.")
    # who got no answer asks again, and is told what took its place
    with suppress(NotCurrent):
        await life.engine.supersede(life.scope, "note", better, "客户更正")


async def _retract(life):
    with suppress(NotCurrent):
        await life.engine.retract(life.scope, USER, "shipped", "it was another order")


async def _forget(life):
    await life.forget("shipped", "note")


async def _short_lives(life):
    await _two_values(life)
    await life.remember(noted("short", expires_at=START + 2 * DAY), noted("long", kind="semantic"))


async def _age(life):
    life.clock.set(START + 31 * DAY)
    await life.engine.age()


async def _archived(life):
    await life.remember(noted("note"))
    await _age(life)
    await life.engine.reconcile()


async def _use(life):
    life.clock.set(START + 31 * DAY)
    life.engine.access.note([memory_key(life.scope.tenant, "note")], life.clock.now())
    await life.engine.access.flush()


async def _left_over(life):
    """Leave work to the reconciler: rows to write, to write again and to delete."""
    await _two_values(life)
    index = life.engine.index
    down = _Down()
    object.__setattr__(life.engine, "index", down)
    await life.remember(status("delivered", "delivered", 5), noted("more", "Locker 17 is free."))
    await life.forget("note")
    object.__setattr__(life.engine, "index", index)


class _Down:
    def __getattr__(self, name):
        async def call(*_args, **_kwargs):
            msg = f"the index is down: {name}"
            raise StoreUnavailable(msg)

        return call


async def _reconcile(life):
    await life.engine.reconcile()


async def _waiting(life):
    await life.engine.upsert_entities(life.scope, [EntityInput("User", USER, {"name": "王芳"})])
    await life.remember(noted("note", "订单#882301还没到"))


async def _arrive(life):
    await life.engine.upsert_entities(
        life.scope,
        [EntityInput("Order", ORDER.id)],
        [RelationInput("PLACED", EntityRef("User", USER), ORDER)],
    )


LIVES = {
    "remember": (_two_values, _remember),
    "say again": (_note, _say_again),
    "replace": (_two_values, _replace),
    "retract": (_two_values, _retract),
    "forget": (_two_values, _forget),
    "age": (_short_lives, _age),
    "use": (_archived, _use),
    "reconcile": (_left_over, _reconcile),
    "arrive": (_waiting, _arrive),
}


# --- dying -----------------------------------------------------------------------------------


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def watch(engine, point, tell):
    """Tell every call of a port from now on; die at the point, e.g. ``before upsert 1``."""
    count = Counter()
    for port, names in PORTS.items():
        owner = getattr(engine, port)
        for name in names:
            method = partial(_watched, getattr(owner, name), name, count, point, tell)
            object.__setattr__(owner, name, method)


async def _watched(method, name, count, point, tell, *args, **kwargs):
    count[name] += 1
    call = f"{name} {count[name]}"
    tell("called", call)
    if point == f"before {call}":
        die()
    result = await method(*args, **kwargs)
    if point == f"after {call}":
        die()
    return result


async def live(case, tell):
    async def opened(_settings):
        return HashEmbedder(EmbeddingSpec(**case["spec"]))

    ecphoria.engine.open_embedder = opened
    clock = ManualClock(START)
    async with Engine.open(load_settings(), clock=clock) as engine:
        life = Life(engine, clock, case["tenant"], tell)
        begin, act = LIVES[case["life"]]
        await begin(life)
        watch(engine, case["point"], tell)
        await act(life)


def run(case):
    """Run a case in a process of its own; return what it told and how it ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        code = 1
        try:
            with os.fdopen(writing, "w", buffering=1) as out:
                asyncio.run(live(case, lambda *words: print(json.dumps(words), file=out)))
            code = 0
        except Exception as error:  # noqa: BLE001 - whatever it is, the test is to be told
            print(repr(error), file=sys.stderr)  # noqa: T201 - to the test's log
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as out:
        told = [json.loads(line) for line in out]
    _, status_ = os.waitpid(child, 0)
    return {"told": told, "code": os.waitstatus_to_exitcode(status_)}


def main():
    # logs go to standard output: they must not come between
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin:
        answers.write(json.dumps(run(json.loads(line))) + "\n")


if __name__ == "__main__":
    main()
