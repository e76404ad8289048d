"""Where time and randomness come from, so that tests can set both."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime


def _now() -> datetime:
    return datetime.now(UTC)


def _token() -> str:
    return secrets.token_hex(16)


@dataclass(frozen=True, slots=True)
class Clock:
    """A source of the present moment (UTC) and of unique tokens (32 hex digits)."""

    now: Callable[[], datetime] = _now
    token: Callable[[], str] = _token
