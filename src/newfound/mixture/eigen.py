"""Eigenvalues and eigenvectors of symmetric matrices, also where LAPACK's quick method fails.

LAPACK's default method (MRRR, driver "evr") stops with an error on some matrices with many equal
eigenvalues. A shrunk covariance of fewer rows than columns is such a matrix, and small collections
make it. Divide and conquer (driver "evd") has no such trouble, but takes twice as long if only
some eigenvalues are wanted. So it is used only where the quick method fails.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from newfound.arrays import Doubles, Floats


def eigh(matrix: Floats, n_leading: int | None = None) -> tuple[Doubles, Doubles]:
    """Eigenvalues and eigenvectors of a symmetric matrix.

    Parameters
    ----------
    matrix : ndarray of shape (d, d)
        Symmetric.
    n_leading : int, optional
        Number of the largest eigenvalues that are wanted; by default all.

    Returns
    -------
    values : ndarray of shape (n_leading,)
        Eigenvalues in rising order.
    vectors : ndarray of shape (d, n_leading)
        Column i is the eigenvector of ``values[i]``.
    """
    d = len(matrix)
    first = 0 if n_leading is None else d - n_leading
    try:
        if n_leading is None:
            return linalg.eigh(matrix)
        return linalg.eigh(matrix, subset_by_index=[first, d - 1])
    except np.linalg.LinAlgError:
        values, vectors = linalg.eigh(matrix, driver="evd")
        return values[first:], vectors[:, first:]
