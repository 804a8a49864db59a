"""How rows are drawn: samples of large collections, and labels given at random or by quota."""

from __future__ import annotations

import numpy as np
from scipy import stats

from newfound.arrays import Bools, Ints


def sample_rows(codes: Ints, n_rows: int, rng: np.random.Generator) -> Bools:
    """Draw rows at random, and a labelled row of every class.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        Known class of each row, negative if it has none.
    n_rows : int
        Number of rows to draw, without the labelled ones.
    rng : Generator
        Draws the rows.

    Returns
    -------
    ndarray of bool, shape (n,)
        The rows that were drawn; all of them if there are no more than `n_rows`.
    """
    if len(codes) <= n_rows:
        return np.ones(len(codes), dtype=bool)
    taken = np.zeros(len(codes), dtype=bool)
    taken[rng.permutation(len(codes))[:n_rows]] = True
    names, first = np.unique(codes, return_index=True)
    taken[first[names >= 0]] = True
    return taken


def labelled_by_class(n_labels: Ints, rate: float = 0.5) -> bool:
    """Whether the numbers of labels vary far less than if labels had been given at random.

    At random, their variance would be at least (1 - r) times their mean.

    Parameters
    ----------
    n_labels : ndarray of int, shape (K^l,)
        Number of labels of each class.
    rate : float, default=0.5
        The label rate r, or the largest that it may have.
    """
    dispersion = float(n_labels.var(ddof=1) / n_labels.mean()) * (len(n_labels) - 1)
    return bool(dispersion < (1 - rate) * stats.chi2.ppf(0.01, len(n_labels) - 1))
