"""Tell those who listen what happened to a user's memories, in this process."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator

from ecphoria.model import MemoryChange

# A listener that falls further behind than this loses the oldest changes.
MAX_BEHIND = 1_000


class ChangeFeed:
    """Hands changes to every listener of the user, or of the tenant's shared knowledge.

    It belongs to one event loop. Changes made by other processes are not seen.
    """

    def __init__(self, told: Callable[[str, str | None], None] | None = None) -> None:
        """Begin without listeners.

        Args:
            told: Called once a batch for each tenant and user (None = shared) whose memories
                have changed, before any listener gets to know.
        """
        self._told = told
        self._listeners: dict[tuple[str, str | None], set[asyncio.Queue[MemoryChange]]] = (
            defaultdict(set)
        )

    def publish(self, changes: Iterable[MemoryChange]) -> None:
        """Hand out changes; never waits."""
        changes = tuple(changes)
        if self._told is not None:
            for owner in dict.fromkeys((change.tenant, change.user_id) for change in changes):
                self._told(*owner)
        for change in changes:
            for queue in self._listeners.get((change.tenant, change.user_id), ()):
                if queue.full():
                    queue.get_nowait()
                queue.put_nowait(change)

    @contextlib.contextmanager
    def _listening(
        self, queue: asyncio.Queue[MemoryChange], *keys: tuple[str, str | None]
    ) -> Iterator[None]:
        for key in keys:
            self._listeners[key].add(queue)
        try:
            yield
        finally:
            for key in keys:
                self._listeners[key].discard(queue)
                if not self._listeners[key]:
                    del self._listeners[key]

    async def listen(self, tenant: str, user_id: str) -> AsyncIterator[MemoryChange]:
        """Yield changes of a user's own memories and of shared ones, from now on."""
        queue: asyncio.Queue[MemoryChange] = asyncio.Queue(MAX_BEHIND)
        with self._listening(queue, (tenant, user_id), (tenant, None)):
            while True:
                yield await queue.get()
