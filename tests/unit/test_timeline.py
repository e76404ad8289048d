"""Which value of an attribute holds when: for any set of claims, in any order of arrival."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from ecphoria.model import Status
from ecphoria.timeline import Claimant, Replacement, alone, may_replace, places

START = datetime(2026, 1, 1, tzinfo=UTC)


def day(number):
    return START + timedelta(days=number)


def claim(key, value, at, reliability=0.7, number=1, **more):
    base = Claimant(key, value, day(at), None, None, reliability, number)
    return replace(base, **more)


def current(found, moment):
    """Return which of the placed claims hold at a moment, without those that only contradict."""
    return {
        item.value
        for item, place in found
        if item.valid_from <= moment
        and (place.valid_until is None or place.valid_until > moment)
        and not place.conflicts_with
    }


claims = st.lists(
    st.builds(
        claim,
        key=st.just(""),
        value=st.sampled_from(["已付款", "shipped", "delivered"]),
        at=st.integers(0, 12),
        reliability=st.sampled_from([0.4, 0.7, 0.95]),
        stated_until=st.one_of(st.none(), st.integers(13, 20).map(day)),
    ),
    min_size=1,
    max_size=8,
).map(
    lambda items: [
        replace(item, key=f"k{place}", number=place + 1) for place, item in enumerate(items)
    ]
)


def test_a_newer_value_of_an_equal_source_ends_the_older():
    old, new = claim("old", "paid", 1), claim("new", "shipped", 3)
    found = places([old, new])
    assert found["old"].valid_until == day(3)
    assert found["old"].superseded_by == "new"
    assert found["old"].status is Status.SUPERSEDED
    assert found["new"] == alone(new)


def test_what_arrives_late_becomes_history_not_the_present():
    found = places([claim("now", "c", 9), claim("first", "a", 1), claim("late", "b", 5)])
    assert [found[key].valid_until for key in ("first", "late", "now")] == [day(5), day(9), None]
    assert found["late"].superseded_by == "now"


def test_a_less_reliable_contradiction_leaves_both():
    found = places([claim("crm", "a", 1, 0.95), claim("ugc", "b", 5, 0.4)])
    assert found["crm"].valid_until is None
    assert found["ugc"].valid_until is None
    assert found["ugc"].conflicts_with == ("crm",)
    assert found["crm"].conflicts_with == ()


def test_a_reliable_word_ends_the_contradiction_too():
    found = places(
        [claim("crm", "a", 1, 0.95), claim("ugc", "b", 5, 0.4), claim("new", "c", 7, 0.95)]
    )
    assert found["ugc"].valid_until == found["crm"].valid_until == day(7)
    assert found["new"].conflicts_with == ()


def test_saying_it_again_ends_nothing():
    found = places([claim("one", "a", 1), claim("two", "a", 5), claim("three", "b", 8)])
    assert found["one"].valid_until == found["two"].valid_until == day(8)
    assert found["one"].superseded_by == found["two"].superseded_by == "three"


def test_what_was_corrected_never_held_and_ends_nothing():
    wrong = claim("wrong", "b", 5, replaced_by=(Replacement("right", day(5)),))
    found = places([claim("first", "a", 1), wrong, claim("right", "c", 8)])
    assert found["wrong"].valid_until == day(5)
    assert found["first"].valid_until == day(8)


def test_a_lesser_source_may_not_replace_by_name_unless_by_hand():
    assert may_replace(0.7, 0.7, by_hand=False)
    assert not may_replace(0.4, 0.95, by_hand=False)
    assert may_replace(0.4, 0.95, by_hand=True)


@given(claims, st.randoms())
def test_the_order_of_arrival_changes_nothing(items, random):
    shuffled = items.copy()
    random.shuffle(shuffled)
    assert places(shuffled) == places(items)


@given(claims, st.integers(0, 20))
def test_at_most_one_value_is_undisputed_at_any_moment(items, moment):
    found = places(items)
    values = current([(item, found[item.key]) for item in items], day(moment))
    assert len(values) <= 1


@given(claims)
def test_the_newest_of_the_most_reliable_is_never_ended_by_another(items):
    best = max(items, key=lambda item: (item.reliability, item.valid_from, item.number))
    place = places(items)[best.key]
    assert place.valid_until == best.stated_until
    assert place.superseded_by is None


@given(claims)
def test_nothing_ends_before_it_begins_or_after_its_own_end(items):
    for item in items:
        place = places(items)[item.key]
        if place.valid_until is not None:
            assert place.valid_until >= item.valid_from
            assert item.stated_until is None or place.valid_until <= item.stated_until


@given(claims, st.data())
def test_a_claim_more_never_reopens_what_was_ended(items, data):
    place = data.draw(st.integers(0, len(items) - 1))
    fewer = [item for number, item in enumerate(items) if number != place]
    before, after = places(fewer), places(items)
    for item in fewer:
        old, new = before[item.key].valid_until, after[item.key].valid_until
        assert old is None or (new is not None and new <= old)
