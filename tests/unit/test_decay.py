"""Fading, use, archive and heat: the brief's formulas."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecphoria.decay import archive_at, faded, heat, refreshed
from ecphoria_schema.domain import Decay

DECAY = Decay(per_day=0.95, on_use=0.2, archive_below=0.1, archive_unused_days=30)
START = datetime(2026, 1, 1, tzinfo=UTC)


def day(number):
    return START + timedelta(days=number)


def test_freshness_falls_by_a_twentieth_a_day():
    assert faded(1.0, START, day(1), DECAY) == pytest.approx(0.95)
    assert faded(1.0, START, day(45), DECAY) < 0.1 < faded(1.0, START, day(44), DECAY)


def test_a_use_freshens_up_to_one():
    assert refreshed(0.5, START, START, DECAY, 1) == pytest.approx(0.7)
    assert refreshed(0.9, START, START, DECAY, 3) == 1.0


def test_thirty_unused_days_are_enough_for_the_archive():
    assert archive_at(1.0, START, DECAY) == day(30)


def test_what_is_hardly_fresh_goes_earlier():
    assert archive_at(0.11, START, DECAY) < day(2)
    assert archive_at(0.1, START, DECAY) == START


def test_heat_is_uses_cooled_by_a_tenth_a_day():
    assert heat(7, START, day(10)) == pytest.approx(7 * math.exp(-1))
    assert heat(7, None, day(10)) == 0.0
    assert heat(3, day(2), START) == 3.0


@given(st.floats(0.1001, 1.0), st.integers(0, 100))
def test_on_the_day_of_the_archive_it_is_stale_or_unused(freshness, days):
    due = archive_at(freshness, START, DECAY)
    assert due <= day(30)
    moment = min(day(days), due - timedelta(seconds=1))
    if due < day(30):
        assert faded(freshness, START, moment, DECAY) >= 0.1 - 1e-6


@given(st.floats(0, 1), st.integers(0, 400), st.integers(1, 50))
def test_freshness_stays_between_nothing_and_one(freshness, days, uses):
    assert 0 <= faded(freshness, START, day(days), DECAY) <= 1
    assert 0 < refreshed(freshness, START, day(days), DECAY, uses) <= 1
