"""How many tokens the chat model may still use: a budget for any 24 hours on end."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from ecphoria.clock import Clock
from ecphoria.errors import ChatFailed

WINDOW = timedelta(hours=24)
# What is spent within a minute is one entry, which goes when all of it is a day old.
_GRAIN = timedelta(minutes=1)


@dataclass(slots=True)
class Spending:
    """What one request costs; set `used` (tokens) as soon as it is known."""

    used: int


@dataclass(slots=True)
class _Minute:
    begun: datetime
    tokens: int


class TokenBudget:
    """Counts the tokens of the last 24 hours, those of requests under way at their most.

    It is this process's own and starts empty. Safe for concurrent use in one event loop.
    """

    def __init__(self, tokens_per_day: int, clock: Clock) -> None:
        """Start with nothing spent."""
        self._limit = tokens_per_day
        self._clock = clock
        self._spent: deque[_Minute] = deque()
        self._under_way = 0

    @property
    def used(self) -> int:
        """Tokens of the last 24 hours, requests under way included."""
        self._forget()
        return self._under_way + sum(minute.tokens for minute in self._spent)

    @contextlib.contextmanager
    def spending(self, most: int) -> Iterator[Spending]:
        """Set tokens aside for a request; afterwards what it used counts.

        Without a word about what was used, all of `most` counts: a request that was given up may
        have cost that.

        Args:
            most: Tokens that the request may use.

        Raises:
            ChatFailed: When they are more than is left.
        """
        used = self.used
        if used + most > self._limit:
            msg = (
                f"the chat model's budget is used up: {used} of {self._limit} tokens in 24 hours "
                f"(ECPHORIA_CHAT_TOKENS_PER_DAY), and this request may take {most}"
            )
            raise ChatFailed(msg)
        spending = Spending(most)
        self._under_way += most
        try:
            yield spending
        finally:
            self._under_way -= most
            self._add(spending.used)

    def _add(self, tokens: int) -> None:
        now = self._clock.now()
        if self._spent and now - self._spent[-1].begun < _GRAIN:
            # also where the clock was set back
            self._spent[-1].tokens += tokens
        elif tokens:
            self._spent.append(_Minute(now, tokens))

    def _forget(self) -> None:
        end = self._clock.now() - WINDOW - _GRAIN
        while self._spent and self._spent[0].begun <= end:
            self._spent.popleft()
