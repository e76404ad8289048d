"""Checks on what a model returns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecphoria.embedding.vectors import unit_vectors, weighted_means
from ecphoria.errors import InvalidVector

# Spans float64 where a component squared would overflow or vanish.
COMPONENT = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False), st.floats(-1, 1), st.just(1e-300)
)
ROW = st.lists(COMPONENT, min_size=3, max_size=3).filter(any)


@given(st.lists(ROW, min_size=1, max_size=5))
def test_unit_length_and_same_direction(rows):
    found = unit_vectors(rows, len(rows), 3)
    assert found.dtype == np.float32
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    largest = np.abs(np.array(rows)).argmax(axis=1)
    for row, vector, at in zip(rows, found, largest, strict=True):
        assert np.sign(vector[at]) == np.sign(row[at])


@given(
    st.lists(ROW, min_size=1, max_size=5),
    st.data(),
    st.sampled_from([[float("nan"), 1, 1], [1, float("inf"), 1], [1, 1, -np.inf], [0, -0.0, 0]]),
)
def test_a_bad_vector_is_named(rows, data, bad):
    at = data.draw(st.integers(0, len(rows) - 1))
    rows[at] = bad
    with pytest.raises(InvalidVector, match=f"text {at} ") as caught:
        unit_vectors(rows, len(rows), 3)
    assert caught.value.path == (at,)
    names = [10 * index for index in range(len(rows))]
    with pytest.raises(InvalidVector) as caught:
        unit_vectors(rows, len(rows), 3, indexes=names)
    assert caught.value.path == (10 * at,)


@pytest.mark.parametrize(
    "batch",
    [[], [[]], [1.0, 2.0], [[1.0, 2.0]], [[1.0, 2.0, 3.0]] * 3, [[1, 2], [3]], None, "xy", [["a"]]],
)
def test_another_shape_is_refused(batch):
    with pytest.raises(InvalidVector):
        unit_vectors(batch, 2, 3)


def test_an_empty_batch_is_an_empty_matrix():
    assert unit_vectors(np.empty((0, 3)), 0, 3).shape == (0, 3)


def test_the_input_is_left_alone():
    batch = np.array([[3.0, 4.0]])
    unit_vectors(batch, 1, 2)
    assert batch.tolist() == [[3.0, 4.0]]


def test_opposite_windows_leave_no_direction():
    opposite = np.array([[1, 0], [-1, 0], [0, 1]], dtype=np.float32)
    means = weighted_means(opposite, [7, 7, 8], [1, 1, 1])
    with pytest.raises(InvalidVector, match="text 7 is all zeros"):
        unit_vectors(means, 2, 2, indexes=[7, 8])


def test_longer_windows_weigh_more():
    windows = np.array([[1, 0], [0, 1], [1, 0]], dtype=np.float32)
    assert weighted_means(windows, [0, 0, 1], [1, 3, 5]).tolist() == [[1, 3], [5, 0]]
