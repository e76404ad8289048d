"""How far feedback moves trust: bounded, and by what stands alone."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import memory
from ecphoria.model import SourceInfo
from ecphoria.settings import Settings
from ecphoria.trust import TrustBounds, believed, doubt_of, lowered

BOUNDS = TrustBounds(step=0.01, per_key=0.03, most=0.12, doubt=0.06, most_doubt=0.12)


@pytest.mark.parametrize(
    ("wrong", "left"),
    [
        ([], 0.95),
        ([1], 0.94),
        ([2, 1], 0.92),
        ([3], 0.92),
        ([1000], 0.92),
        ([3, 3, 3, 3], 0.83),
        ([1000] * 1000, 0.83),
    ],
)
def test_each_wrong_takes_a_step_and_no_key_and_no_crowd_more_than_its_bound(wrong, left):
    assert lowered(0.95, wrong, BOUNDS) == left


def test_trust_never_falls_below_nothing():
    assert lowered(0.05, [3, 3, 3], BOUNDS) == 0.0
    assert believed(memory(reliability=0.05, doubt=0.1), {}) == 0.0


@given(
    st.lists(st.integers(1, 50), max_size=20),
    st.integers(1, 50),
    st.floats(0, 1, allow_nan=False),
    st.randoms(use_true_random=False),
)
def test_the_order_makes_no_difference_and_more_never_raises_it(
    wrong: list[int], more: int, declared: float, shuffled: random.Random
):
    before = lowered(declared, wrong, BOUNDS)
    mixed = [*wrong]
    shuffled.shuffle(mixed)
    assert lowered(declared, mixed, BOUNDS) == before
    assert lowered(declared, [*wrong, more], BOUNDS) <= before
    assert max(0.0, declared - BOUNDS.most) <= before + 1e-6
    assert before <= declared + 1e-6


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_doubt_grows_with_the_keys_up_to_its_bound(some: int, more: int):
    assert doubt_of(0, BOUNDS) == 0.0
    assert doubt_of(some, BOUNDS) <= doubt_of(some + more, BOUNDS) <= BOUNDS.most_doubt


def test_a_memory_is_believed_as_its_source_is_now_less_the_doubt():
    sources = {"crm": SourceInfo("crm", "CRM", 0.9, declared=0.95)}
    said = memory(reliability=0.95, doubt=0.06)
    assert believed(said, sources) == 0.84
    # a source that is not known any more is worth what it was worth
    assert believed(said, {}) == 0.89


def test_by_default_no_feedback_puts_a_source_below_a_lesser_one():
    settings = Settings.model_construct()
    worst = settings.feedback_trust_bound + settings.feedback_doubt_bound
    assert 0.95 - worst > 0.70
    assert 0.70 - worst > 0.40
