"""Relevance as a probability."""

from __future__ import annotations

import math
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecphoria.recall.calibration import Calibration, shipped_calibration
from ecphoria.recall.features import Features

SHARES = st.builds(Features, **{field.name: st.floats(0, 1) for field in fields(Features)})


def test_features_and_their_products_are_summed():
    fitted = Calibration("any", -1.0, {"words": 2.0, "words*topic": 4.0})
    found = fitted.probability(Features(words=0.5, topic=0.25))
    assert found == pytest.approx(1 / (1 + math.exp(-(-1.0 + 1.0 + 0.5))))


@given(SHARES)
def test_what_ships_gives_probabilities(found):
    assert 0 <= shipped_calibration().probability(found) <= 1


@given(SHARES, st.sampled_from(["similarity", "words", "topic"]))
def test_nearer_is_never_less_relevant(found, name):
    more = Features(**{**_values(found), name: 1.0})
    assert shipped_calibration().probability(more) >= shipped_calibration().probability(found)


def test_no_number_is_too_large():
    wild = Calibration("any", 1e9, {"words": -1e12})
    assert wild.probability(Features(words=1.0)) == pytest.approx(0.0)
    assert wild.probability(Features()) == pytest.approx(1.0)


def _values(found):
    return {field.name: getattr(found, field.name) for field in fields(Features)}
