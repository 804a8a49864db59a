"""Where added rows crowd: a scan over neighbourhoods, tested by permutations.

Rows of categories that exist already arrive where their categories lie. So within a category, added
rows and earlier rows are mixed in the same proportion everywhere, also if the category has grown. A
neighbourhood with far more added rows than that holds something that was not there before.

The scan statistic is that of Kulldorff (1997), with the shares of the categories as expectation.
How large its maximum is by chance is learnt from permutations: within each category, the rows that
count as added are drawn anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from newfound.arrays import Bools, Doubles, Floats, Ints
from newfound.mixture.counting.neighbours import nearest_rows

#: Numbers of rows in the smallest and the largest neighbourhood. A larger category is found by a
#: part of it.
SMALLEST, LARGEST = 4, 48
#: Number of permutations; with 199, the smallest p-value is 0.005.
_N_PERMUTATIONS = 199
#: After this many permutations with a larger excess the test ends: chance explains it.
_ENOUGH_LARGER = 10
#: Neighbourhoods of this many rows are scanned at most.
_MAX_CENTRES = 20_000


class Excess(NamedTuple):
    """The neighbourhood in which added rows are most in excess.

    Attributes
    ----------
    rows : ndarray of int
        The rows of the neighbourhood.
    p_value : float
        Probability of such an excess by chance, somewhere among the rows.
    """

    rows: Ints
    p_value: float


def neighbourhoods(V: Floats) -> Ints:
    """Nearest rows of each row, which comes first itself; of the first rows if there are many.

    Parameters
    ----------
    V : ndarray of shape (n, q)
        Rows of unit length, in a random order, such as that of their content.

    Returns
    -------
    ndarray of int, shape (m, k)
        Indices of rows, the nearest first.
    """
    centres = np.arange(min(len(V), _MAX_CENTRES))
    neighbours, _ = nearest_rows(V, min(LARGEST, len(V)) - 1, centres)
    return np.column_stack([centres, neighbours])


def log_excess_ratio(n_added: Doubles, expected: Doubles, sizes: Ints) -> Doubles:
    r"""Log likelihood ratio of an excess of added rows against the expected number.

    .. math:: a \log\frac{a}{e} + (k - a) \log\frac{k - a}{k - e} \text{ if } a > e, \text{ else } 0

    Parameters
    ----------
    n_added, expected : ndarray of shape (m, s)
        a and e, the number of added rows in each neighbourhood, and its expectation.
    sizes : ndarray of shape (s,)
        k, the number of rows.

    Returns
    -------
    ndarray of shape (m, s)
        The ratios, at least 0.
    """
    tiny = np.finfo(np.float64).tiny
    others, expected_others = sizes - n_added, np.maximum(sizes - expected, tiny)
    ratio = xlogy(n_added, n_added / np.maximum(expected, tiny))
    ratio += xlogy(others, others / expected_others)
    return np.where(n_added > expected, ratio, 0.0)


def largest_excess(
    nearest: Ints, is_added: Bools, labels: Ints, rng: np.random.Generator
) -> Excess:
    """Find the neighbourhood where added rows are most in excess, and test it.

    Parameters
    ----------
    nearest : ndarray of int, shape (m, k)
        Result of `neighbourhoods`. Each is scanned with its nearest 4, 5 … k rows.
    is_added : ndarray of bool, shape (n,)
        The added rows.
    labels : ndarray of int, shape (n,)
        Category of each row. The expected share of added rows is that of the row's category.
    rng : Generator
        Draws the permutations.

    Returns
    -------
    Excess
        Its p-value is 1 if there is no excess at all, or too few rows for a neighbourhood.
    """
    sizes = np.arange(SMALLEST, nearest.shape[1] + 1)
    share = np.bincount(labels, is_added) / np.maximum(np.bincount(labels), 1)
    expected = np.cumsum(share[labels][nearest], axis=1)[:, SMALLEST - 1 :]

    def scan(flags: Bools) -> Doubles:
        n_added = np.cumsum(flags[nearest], axis=1, dtype=np.float64)[:, SMALLEST - 1 :]
        return log_excess_ratio(n_added, expected, sizes)

    ratios = scan(is_added)
    # sums of shares are rounded, so that a neighbourhood of added rows only may seem to have excess
    if ratios.max(initial=0) < 1e-6:
        return Excess(nearest[:0].ravel(), 1.0)
    centre, size = np.unravel_index(ratios.argmax(), ratios.shape)
    rows = nearest[centre, : size + SMALLEST]
    by_category = np.argsort(labels, kind="stable")
    n_larger = 0
    for n_drawn in range(1, _N_PERMUTATIONS + 1):
        flags = np.empty_like(is_added)
        flags[by_category] = is_added[np.lexsort((rng.random(len(labels)), labels))]
        n_larger += bool(scan(flags).max() >= ratios[centre, size])
        if n_larger == _ENOUGH_LARGER:  # the test of Besag and Clifford (1991) may end early
            return Excess(rows, n_larger / n_drawn)
    return Excess(rows, (1 + n_larger) / (1 + _N_PERMUTATIONS))
