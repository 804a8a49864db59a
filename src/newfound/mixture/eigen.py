"""Eigenvalues and eigenvectors of symmetric matrices, with fixed signs.

LAPACK's default method (MRRR, driver "evr") stops with an error on some matrices with many equal
eigenvalues. A shrunk covariance of fewer rows than columns is such a matrix. Divide and conquer
(driver "evd") has no such trouble.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from newfound.arrays import Doubles, Floats


def eigen(matrix: Doubles) -> tuple[Doubles, Doubles]:
    """All eigenvalues and eigenvectors of a symmetric matrix.

    Parameters
    ----------
    matrix : ndarray of shape (d, d)
        Symmetric.

    Returns
    -------
    values : ndarray of shape (d,)
        Eigenvalues, the largest first.
    vectors : ndarray of shape (d, d)
        Row i is the eigenvector of ``values[i]``, with unit length; its largest entry is positive.
    """
    return _sorted(*linalg.eigh(matrix, driver="evd"))


def leading_eigen(matrix: Doubles, n_leading: int) -> tuple[Doubles, Doubles]:
    """The largest eigenvalues of a symmetric matrix, and their eigenvectors.

    Parameters
    ----------
    matrix : ndarray of shape (d, d)
        Symmetric.
    n_leading : int
        Number of eigenvalues, from 1 to d.

    Returns
    -------
    values : ndarray of shape (n_leading,)
        Eigenvalues, the largest first.
    vectors : ndarray of shape (n_leading, d)
        As in `eigen`.
    """
    d = len(matrix)
    if n_leading < d:
        try:
            # for 128 of 1280 this takes half the time of all eigenvalues
            return _sorted(*linalg.eigh(matrix, subset_by_index=[d - n_leading, d - 1]))
        except np.linalg.LinAlgError:
            pass  # too many equal eigenvalues for this driver, and only it can leave some out
    values, vectors = eigen(matrix)
    return values[:n_leading], vectors[:n_leading]


def fix_signs(vectors: Floats) -> Floats:
    """Flip rows so that the largest entry of each is positive; eigenvectors have no sign."""
    largest = np.abs(vectors).argmax(axis=1)
    signs = np.sign(vectors[np.arange(len(vectors)), largest])
    fixed: Floats = vectors * np.where(signs == 0, 1, signs)[:, None]
    return fixed


def _sorted(values: Doubles, vectors: Doubles) -> tuple[Doubles, Doubles]:
    """From LAPACK's order, with rising values and vectors in columns, to ours."""
    return values[::-1], fix_signs(vectors.T[::-1])
