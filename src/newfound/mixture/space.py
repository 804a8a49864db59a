"""The space of the mixture: what is needed to project a row, apart from the estimator."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from newfound.arrays import Doubles, Floats, Ints

#: Rows that are projected at once.
BLOCK_ROWS = 4096
#: A unit-length row that is closer to the mean than this differs from it by rounding only.
ROUNDING = 1e-12


class Space(NamedTuple):
    """What a fitted `Projection` has learnt."""

    mean: Doubles  # (d,)
    directions: Doubles  # (q, d)
    whitening: Doubles | None  # (q, q)


def unit_rows(X: Floats) -> Floats:
    """Scale each row to length 1; a row of zeros stays as it is."""
    largest = np.abs(X).max(axis=1, keepdims=True)
    # divided by the largest entry first, so that no square over- or underflows
    scaled = X / np.where(largest > 0, largest, 1)
    norms = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))[:, None]
    scaled /= np.where(norms > 0, norms, 1)
    return scaled


def coordinates(X: Floats, space: Space) -> Doubles:
    """Coordinates of unit-length rows along the directions."""
    found: Doubles = (unit_rows(X.astype(np.float64)) - space.mean) @ space.directions.T
    return found


def project_in_order(X: Floats, order: Ints, space: Space) -> Floats:
    """Project the rows ``X[order]`` block by block.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows that were already checked.
    order : ndarray of int, shape (m,)
        Rows to project.
    space : Space
        Of a fitted `Projection`.

    Returns
    -------
    ndarray of shape (m, q)
        Rows of unit length, in the precision of X.
    """
    projected = np.empty((len(order), len(space.directions)), dtype=X.dtype)
    for start in range(0, len(order), BLOCK_ROWS):
        block = coordinates(X[order[start : start + BLOCK_ROWS]], space)
        # scaling to unit length would blow rounding errors up to random directions
        block[np.abs(block).max(axis=1) < ROUNDING] = 0
        if space.whitening is not None:
            block = block @ space.whitening
        projected[start : start + BLOCK_ROWS] = unit_rows(block)
    return projected
