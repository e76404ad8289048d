"""Limits of a key: how often it may ask, and how much it may have under way."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW
from ecphoria.clock import Clock
from ecphoria.errors import RateLimited, TooManyOperations
from ecphoria.governance.rates import InFlight, RateLimit
from ecphoria.model import EveryUser, Role, Scope


def key(principal="k", tenant="shop"):
    return Scope(tenant, principal, frozenset({Role.AGENT}), EveryUser.OF_TENANT)


class Time:
    """A clock that tests move, in seconds."""

    def __init__(self):
        self.seconds = 0.0
        self.clock = Clock(now=lambda: NOW + timedelta(seconds=self.seconds))


def taken(limit, scope, tries):
    """Return how many of so many tries pass."""
    passed = 0
    for _ in range(tries):
        try:
            limit.take(scope)
        except RateLimited:
            continue
        passed += 1
    return passed


def test_a_minutes_worth_then_evenly():
    time = Time()
    limit = RateLimit(60, time.clock)
    assert taken(limit, key(), 100) == 60
    time.seconds = 3
    assert taken(limit, key(), 100) == 3
    time.seconds = 1_000
    assert taken(limit, key(), 100) == 60


def test_the_refusal_says_when_to_come_again():
    time = Time()
    limit = RateLimit(2, time.clock)
    assert taken(limit, key(), 2) == 2
    with pytest.raises(RateLimited, match="2 operations a minute") as caught:
        limit.take(key())
    assert caught.value.retry_after_s == 30
    time.seconds = caught.value.retry_after_s
    limit.take(key())


def test_keys_and_tenants_have_a_limit_each():
    limit = RateLimit(1, Time().clock)
    for scope in (key("a"), key("b"), key("a", "other")):
        assert taken(limit, scope, 5) == 1


def test_no_limit():
    assert taken(RateLimit(0, Time().clock), key(), 1_000) == 1_000


def test_a_clock_that_is_set_back_gives_and_takes_nothing():
    time = Time()
    limit = RateLimit(1, time.clock)
    assert taken(limit, key(), 1) == 1
    time.seconds = -3_600
    assert taken(limit, key(), 5) == 0


@given(st.lists(st.floats(0, 90), max_size=60), st.integers(1, 30))
def test_never_more_than_a_bucket_and_what_flowed_in(waits, per_minute):
    time = Time()
    limit = RateLimit(per_minute, time.clock)
    passed = 0
    for wait in waits:
        time.seconds += wait
        passed += taken(limit, key(), 2)
    assert passed <= per_minute + time.seconds * per_minute / 60 + 1e-6


def test_under_way_is_counted_until_it_ends_however_it_ends():
    limit = InFlight(2, "operations")
    refused = pytest.raises(TooManyOperations, match="2 operations")
    with limit.one(key()), limit.one(key()), limit.one(key("another")), refused, limit.one(key()):
        pytest.fail("it was let in")
    with pytest.raises(ZeroDivisionError), limit.one(key()):
        _ = 1 / 0
    with limit.one(key()), limit.one(key()):
        pass
    assert not limit._under_way


def test_any_number_under_way():
    limit = InFlight(0, "operations")
    with limit.one(key()), limit.one(key()), limit.one(key()):
        pass


def test_seen_from_further_out_and_pickled_the_time_stays():
    import pickle  # noqa: PLC0415

    error = RateLimited("slow down", retry_after_s=7.0)
    assert error.at("input").retry_after_s == 7.0
    assert error.at("input").path == ("input",)
    assert pickle.loads(pickle.dumps(error)).retry_after_s == 7.0  # noqa: S301
