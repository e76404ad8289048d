"""A clock for tests: it stands still, goes where it is told, and never repeats a token."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from ecphoria.clock import Clock
from ecphoria.errors import InvalidTime
from ecphoria.testing import ManualClock

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
NAIVE = datetime(2026, 3, 1, 12)  # noqa: DTZ001 - that it has no zone is the point


def test_it_stands_still_until_it_is_moved():
    clock = ManualClock(START)
    assert clock.now() == clock.now() == START
    assert clock.advance(timedelta(days=2)) == clock.now() == START + timedelta(days=2)
    clock.set(START.astimezone(timezone(timedelta(hours=8))))
    assert clock.now() == START
    assert clock.now().tzinfo is UTC
    assert clock.advance(timedelta(days=-1)) == START - timedelta(days=1)


def test_it_shows_what_the_stores_can_keep():
    clock = ManualClock(START.replace(microsecond=123_456))
    assert clock.now().microsecond == 123_000
    assert clock.advance(timedelta(microseconds=1_500)).microsecond == 124_000


def test_it_is_a_clock_whose_parts_cannot_be_taken_out():
    clock = ManualClock(START)
    assert isinstance(clock, Clock)
    with pytest.raises(AttributeError):
        clock.now = lambda: START


def test_tokens_are_a_function_of_the_name():
    def tokens(clock):
        return [clock.token() for _ in range(3)]

    one = tokens(ManualClock(START, name="a"))
    assert one == tokens(ManualClock(START, name="a"))
    assert len({*one, *tokens(ManualClock(START, name="b"))}) == 6
    assert all(len(token) == 32 and int(token, 16) >= 0 for token in one)
    # without a name they are nobody else's
    assert not set(tokens(ManualClock(START))) & set(tokens(ManualClock(START)))


def test_a_moment_without_a_zone_is_refused():
    with pytest.raises(InvalidTime):
        ManualClock(NAIVE)
    with pytest.raises(InvalidTime):
        ManualClock(START).set(NAIVE)
