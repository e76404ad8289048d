"""How often a key may ask, and how much it may have under way. Per process, in memory."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterator
from typing import Final

from cachetools import TTLCache

from ecphoria.clock import Clock
from ecphoria.errors import RateLimited, TooManyOperations
from ecphoria.model import Scope

MAX_BUCKETS: Final = 100_000
_MINUTE_S: Final = 60.0


class RateLimit:
    """A token bucket for each principal: it holds a minute's worth and fills evenly."""

    def __init__(self, per_minute: int, clock: Clock) -> None:
        """Begin with all buckets full.

        Args:
            per_minute: Operations a minute; 0 = any number.
            clock: Where time comes from.
        """
        self._per_minute = per_minute
        self._clock = clock
        # after a minute without use a bucket is full again, so that nothing is lost with it
        self._buckets: TTLCache[tuple[str, str], tuple[float, float]] = TTLCache(
            MAX_BUCKETS, _MINUTE_S, timer=self._now
        )

    def _now(self) -> float:
        return self._clock.now().timestamp()

    def take(self, scope: Scope) -> None:
        """Count one operation.

        Raises:
            RateLimited: When the bucket is empty; says when there is something in it again.
        """
        if not self._per_minute:
            return
        key, now, rate = (scope.tenant, scope.principal), self._now(), self._per_minute / _MINUTE_S
        left, since = self._buckets.get(key, (float(self._per_minute), now))
        # a clock that is set back takes nothing away
        left = min(float(self._per_minute), left + max(0.0, now - since) * rate)
        if left < 1.0:
            wait = max(1, math.ceil((1.0 - left) / rate))
            msg = f"{self._per_minute} operations a minute are allowed: go on in {wait} s"
            raise RateLimited(msg, retry_after_s=float(wait))
        self._buckets[key] = (left - 1.0, now)


class InFlight:
    """Counts what each principal has under way, up to a limit."""

    def __init__(self, limit: int, what: str) -> None:
        """Begin with nothing under way.

        Args:
            limit: How much at once; 0 = any number.
            what: What is counted, e.g. ``operations``; for the message.
        """
        self._limit = limit
        self._what = what
        self._under_way: Counter[tuple[str, str]] = Counter()

    @contextlib.contextmanager
    def one(self, scope: Scope) -> Iterator[None]:
        """Count one for as long as the block lasts.

        Raises:
            TooManyOperations: When there are as many as allowed.
        """
        key = (scope.tenant, scope.principal)
        if self._limit and self._under_way[key] >= self._limit:
            msg = f"{self._limit} {self._what} of one key at once are allowed"
            raise TooManyOperations(msg)
        self._under_way[key] += 1
        try:
            yield
        finally:
            self._under_way[key] -= 1
            if not self._under_way[key]:
                del self._under_way[key]
