"""A writer that kills itself at a stage boundary, for test_crash.py.

    python crashing_writer.py TENANT STAGE

Keeps memories one by one and prints `kept ID` for each that was acknowledged. On the third it is
killed (-9) right before or after the stage. Stores come from the environment.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from ecphoria.engine import Engine
from ecphoria.model import EveryUser, MemoryInput, Role, Scope
from ecphoria.settings import load_settings

CRASH_AT = 3


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def crashing(method, count, *, before):
    async def call(*args, **kwargs):
        if before and count() == CRASH_AT:
            die()
        result = await method(*args, **kwargs)
        if count() == CRASH_AT:
            die()
        return result

    return call


async def main(tenant, stage):
    written = 0
    scope = Scope(tenant, "writer", frozenset({Role.ADMIN}), EveryUser.OF_TENANT)
    async with Engine.open(load_settings()) as engine:
        when, name = stage.split(" ")
        owner = {
            "write_memories": engine.graph,
            "embed_passages": engine.embedder,
            "upsert": engine.index,
            "mark_indexed": engine.graph,
        }[name]
        method = crashing(getattr(owner, name), lambda: written, before=when == "before")
        object.__setattr__(owner, name, method)
        for number in range(1, CRASH_AT + 1):
            written = number
            item = MemoryInput(
                text=f"memory number {number} of {tenant}", user_id="u1", id=f"m{number}"
            )
            (receipt,) = await engine.remember(scope, [item])
            print("kept", receipt.id, flush=True)  # noqa: T201 - that is how it acknowledges


asyncio.run(main(*sys.argv[1:]))
