"""What the mixed load says of memory and errors: leaks are seen, noise is not."""

from __future__ import annotations

import random

import pytest
from benchmarks.mixed_load import MIB, Met, fault_of, growth, shipped


def looks(size, seconds=600):
    """Return a look every second, of so many MiB at each share of the time."""
    return [(at, round(size(at / seconds) * MIB)) for at in range(seconds + 1)]


@pytest.mark.parametrize(
    ("size", "verdict"),
    [
        (lambda _: 400, "FLAT"),
        # warm-up is no leak
        (lambda at: 200 + 200 * min(1, at / 0.25), "FLAT"),
        (lambda at: 400 + 60 * at, "GROWS"),
        (lambda at: 400 - 60 * at, "FLAT"),
        # much of a small process, little of a large one
        (lambda at: 50 + 10 * at, "FLAT"),
        (lambda at: 4_000 + 60 * at, "FLAT"),
        (lambda at: 4_000 + 400 * at, "GROWS"),
    ],
)
def test_growth_after_warm_up(size, verdict):
    rng = random.Random(7)  # noqa: S311 - the same in every run
    assert growth(looks(size)).verdict == verdict
    assert growth(looks(lambda at: size(at) + rng.gauss(0, 5))).verdict == verdict


def test_the_slope_is_told():
    found = growth(looks(lambda at: 400 + 100 * at))
    assert found.per_minute / MIB == pytest.approx(10, rel=0.01)
    assert found.rise == pytest.approx(70 / 430, rel=0.01)
    assert [round(size / MIB) for size in (found.tenths[0], found.tenths[-1])] == [405, 495]


def test_a_run_without_looks_is_no_run():
    with pytest.raises(ValueError, match="too short"):
        growth([(0, MIB), (1, MIB)])


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ({"data": {"recall": {"degradations": []}}}, None),
        ({"data": {"recall": {"degradations": ["vector index unavailable"]}}}, "DEGRADED"),
        ({"data": {"remember": {"status": "CREATED", "error": None}}}, None),
        ({"data": {"remember": {"status": "REJECTED", "error": {"code": "X"}}}}, "X"),
        ({"data": {"forget": {"error": {"code": "NOT_FOUND"}}}}, "NOT_FOUND"),
        ({"errors": [{"extensions": {"code": "RATE_LIMITED"}}]}, "RATE_LIMITED"),
        ({"errors": [{"message": "x"}]}, "none"),
    ],
)
def test_no_bad_answer_passes_for_a_good_one(answer, fault):
    assert fault_of(answer) == fault


def test_only_rate_limits_are_allowed():
    met = Met()
    met.errors.update({"recall: RATE_LIMITED": 3})
    assert met.bad == 0
    met.errors.update({"recall: STORE_UNAVAILABLE": 2})
    assert met.bad == 2


def test_every_operation_is_shipped():
    assert set(shipped()) == {
        "recall", "remember", "correct", "forget", "turn", "feedback", "follow",
    }  # fmt: skip
