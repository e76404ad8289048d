"""Checks and arithmetic on batches of vectors. Pure functions, no model."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ecphoria.errors import InvalidVector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Matrix: TypeAlias = NDArray[np.float32]


def unit_vectors(
    batch: ArrayLike,
    count: int,
    dimension: int,
    *,
    indexes: Sequence[int] | None = None,
) -> Matrix:
    """Return a batch of vectors at unit length, as float32, one a row.

    Args:
        batch: What the model returned.
        count: How many vectors there must be.
        dimension: How long each must be.
        indexes: What to call row i in an error; i itself if None.

    Raises:
        InvalidVector: When the batch has another shape, or a vector holds NaN or infinity or is
            all zeros; the message and the path name its index.
    """
    try:
        # float64, since the squares of large float32 numbers overflow.
        vectors = np.asarray(batch, dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = f"the embedding model returned no numeric matrix: {error}"
        raise InvalidVector(msg) from error
    if vectors.shape != (count, dimension):
        msg = (
            f"the embedding model returned shape {vectors.shape} for {count} texts; "
            f"expected {(count, dimension)}"
        )
        raise InvalidVector(msg)
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        raise _invalid(int(np.argmin(finite)), "holds NaN or infinity", indexes)
    # Scaled by the largest component first: neither huge nor tiny vectors leave float64.
    largest = np.abs(vectors).max(axis=1, initial=0.0)
    if not largest.all():
        raise _invalid(int(np.argmin(largest)), "is all zeros", indexes)
    vectors = vectors / largest[:, None]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    units: Matrix = vectors.astype(np.float32)
    return units


def weighted_means(vectors: Matrix, owners: Sequence[int], weights: Sequence[float]) -> Matrix:
    """Average the vectors of each owner's windows; not normalised.

    Args:
        vectors: One row a window.
        owners: Which text each window belongs to: 0, 0, 1, 2, 2, 2; ascending, without gaps.
        weights: What each window counts.

    Returns:
        One row a text.
    """
    starts = np.flatnonzero(np.diff(np.asarray(owners), prepend=-1))
    weighted = vectors * np.asarray(weights, dtype=np.float32)[:, None]
    means: Matrix = np.add.reduceat(weighted, starts, axis=0)
    return means


def _invalid(row: int, fault: str, indexes: Sequence[int] | None) -> InvalidVector:
    index = row if indexes is None else indexes[row]
    msg = f"the embedding model's vector of text {index} {fault}"
    return InvalidVector(msg, path=(index,))


def best_cosines(asked: Sequence[ArrayLike], vectors: Sequence[ArrayLike]) -> list[float]:
    """Return, for each vector, the cosine to the nearest of those asked for; all of unit length."""
    return [float(best) for best in (np.asarray(vectors) @ np.asarray(asked).T).max(axis=1)]
