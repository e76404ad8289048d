"""A clock that stands still until a test moves it."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta

from ecphoria.clock import Clock
from ecphoria.model import utc


class _State:
    """What a clock shows and how many tokens it gave out."""

    def __init__(self, moment: datetime, name: str) -> None:
        self.moment = moment
        self.name = name
        self.tokens = 0

    def now(self) -> datetime:
        return self.moment

    def token(self) -> str:
        self.tokens += 1
        return hashlib.sha256(f"{self.name}:{self.tokens}".encode()).hexdigest()[:32]


class ManualClock(Clock):
    """A source of time and tokens that does only what a test says."""

    __slots__ = ("_state",)

    _state: _State

    def __init__(self, moment: datetime, *, name: str | None = None) -> None:
        """Set it; it stands still.

        Args:
            moment: What it shows first.
            name: Its tokens are a function of this and of how many there were before; a random
                one without. Two clocks over the same stores need different names.

        Raises:
            InvalidTime: When the moment has no time zone.
        """
        state = _State(utc(moment), secrets.token_hex(8) if name is None else name)
        super().__init__(now=state.now, token=state.token)
        object.__setattr__(self, "_state", state)

    def set(self, moment: datetime) -> None:
        """Show another moment, be it an earlier one.

        Raises:
            InvalidTime: When it has no time zone.
        """
        self._state.moment = utc(moment)

    def advance(self, by: timedelta) -> datetime:
        """Go on (or back) by a time; return what it shows then."""
        self.set(self._state.moment + by)
        return self._state.moment
