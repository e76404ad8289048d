"""A change of the index to another model that kills itself, for test_reembed.py.

    python crashing_reembed.py STAGE

Stores and the collection prefix come from the environment.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from ecphoria.engine import Engine
from ecphoria.lifecycle import reembed, verify
from ecphoria.settings import load_settings
from renamed_model import opener

STAGES = (
    "between two collections",
    "in filling",
    "before serve",
    "between two aliases",
    "after serve",
    "in checking",
    "after finish",
)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def crashing(owner, name, when, *, call=1):
    method = getattr(owner, name)
    calls = 0

    async def crash(*args, **kwargs):
        nonlocal calls
        calls += 1
        number = calls
        if when == "before" and number == call:
            die()
        result = await method(*args, **kwargs)
        if when == "after" and number == call:
            die()
        return result

    setattr(owner, name, crash)


async def main(stage):
    sys.modules["ecphoria.engine"].open_embedder = opener()
    reembed._BATCH = 5
    verify.PAGE = 10
    async with Engine.open(load_settings(), any_model=True) as engine:
        when, name = stage.split(" ", 1)
        if stage == "between two collections":
            crashing(engine.index._collections, "_make", "after", call=1)
        elif stage == "between two aliases":
            crashing(engine.index._collections, "_point", "after", call=2)
        elif when != "in":
            crashing(engine.index, name, when)
        async for progress in engine.reembed():
            if when == "in" and progress.stage == name and progress.done >= 10:
                die()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
