"""The importing process of `benchmarks.bulk_import`: the command line's own import, in steps.

It reads its order, one line of JSON, from standard input and tells of every batch of memories on
standard output. Before some of them it waits until it is told to go on; its clock stands meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from ecphoria.cli.common import cli_scope, open_engine
from ecphoria.cli.imports import load
from ecphoria.engine import Engine
from ecphoria.logs import configure_logging
from ecphoria.model import MemoryInput, Receipt, Scope
from ecphoria.settings import load_settings


@dataclass(frozen=True)
class _Gated(Engine):
    """An engine that asks before it remembers."""

    # what an engine has may have defaults
    gate: Callable[[Sequence[MemoryInput]], Awaitable[None]] = field(kw_only=True)

    async def remember(self, scope: Scope, items: Sequence[MemoryInput]) -> tuple[Receipt, ...]:
        await self.gate(items)
        return await super().remember(scope, items)


def _say(**what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


class _Gate:
    def __init__(self, wait_every: int) -> None:
        self._wait_every = wait_every
        self._batches = 0
        self._waited = 0.0

    def clock(self) -> float:
        return time.perf_counter() - self._waited

    async def enter(self, items: Sequence[MemoryInput]) -> None:
        waits = self._batches > 0 and self._batches % self._wait_every == 0
        self._batches += 1
        ids = [item.id for item in items]
        _say(event="batch", first=ids[0], items=len(ids), clock=self.clock(), waits=waits)
        if waits:
            since = time.perf_counter()
            await asyncio.to_thread(sys.stdin.readline)
            self._waited += time.perf_counter() - since


async def _run(order: dict[str, Any]) -> None:
    settings = load_settings(**order["settings"])
    gate = _Gate(order["wait_every"])
    async with open_engine(settings) as engine:
        parts = {item.name: getattr(engine, item.name) for item in fields(Engine)}
        gated = _Gated(**parts, gate=gate.enter)
        event, first_bad, _ = await load(gated, cli_scope(order["tenant"]), order["files"])
    if event is None or first_bad:
        msg = f"the import left something out: {first_bad[:1]}"
        raise RuntimeError(msg)
    _say(
        event="done",
        clock=gate.clock(),
        tally=event.tally["memory"],
        unindexed=event.unindexed,
        peak=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )


if __name__ == "__main__":
    configure_logging("warning")
    asyncio.run(_run(json.loads(sys.stdin.readline())))
