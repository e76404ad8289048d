"""Count which memories are used, without making those who ask wait.

Uses are counted in this process and written together, every second. A process that is killed
loses the last second of them, at worst.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from datetime import datetime

from ecphoria.clock import Clock
from ecphoria.flushing import flushed
from ecphoria.stores.ports import GraphStore, Uses
from ecphoria_schema.domain import Domain

# More different memories than this within one second are not counted: the log stays small.
MAX_KEYS = 10_000
_BATCH = 500


class AccessLog:
    """Uses that were noted but not written yet. It belongs to one event loop."""

    def __init__(self, graph: GraphStore, domain: Domain, clock: Clock) -> None:
        """Begin empty."""
        self._graph = graph
        self._domain = domain
        self._clock = clock
        self._uses: dict[str, Uses] = {}

    def note(self, keys: Iterable[str], now: datetime) -> None:
        """Note that memories were used; never waits."""
        for key in keys:
            before = self._uses.get(key)
            if before is not None:
                self._uses[key] = Uses(before.count + 1, max(before.last, now))
            elif len(self._uses) < MAX_KEYS:
                self._uses[key] = Uses(1, now)

    async def flush(self) -> int:
        """Write what was noted; return of how many memories.

        Raises:
            StoreUnavailable: When the graph does not answer; what was not written stays noted.
        """
        written = 0
        while self._uses:
            batch = {key: self._uses.pop(key) for key in list(self._uses)[:_BATCH]}
            try:
                await self._graph.record_access(batch, self._clock.token(), self._domain.kinds)
            except BaseException:
                for key, uses in batch.items():
                    since = self._uses.get(key)
                    self._uses[key] = (
                        uses
                        if since is None
                        else Uses(uses.count + since.count, max(uses.last, since.last))
                    )
                raise
            written += len(batch)
        return written

    def running(self) -> AbstractAsyncContextManager[None]:
        """Write every second in the background, and once more on leaving."""
        return flushed(self.flush, "uses")
