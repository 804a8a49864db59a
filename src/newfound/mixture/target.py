"""The number of components that the mixture starts with, and the number that its moves lead to.

By default the novel categories are counted before any move is made (deviation D9), and moves lead
to the counted K^n (deviation D8). Warnings here point at the line that called `fit` or `refit`.
"""

from __future__ import annotations

import warnings

import numpy as np

from newfound.arrays import Floats, Ints
from newfound.errors import DiscoveryWarning, InputError
from newfound.labels import UNLABELLED
from newfound.mixture.clustering import default_n_components
from newfound.mixture.counting.count import CategoryCount, count_checked
from newfound.mixture.counting.novel_size import Sizes
from newfound.mixture.rows import row_keys

#: With fewer known classes than this, they say little about novel ones.
_CLASSES_TO_TRUST = 5

_NO_LABEL = (
    "No row is labelled: the mixture works unsupervised, and has no example of a category. For a "
    "result that can be trusted, label some rows of a few classes."
)
_ONE_CLASS = (
    "Only one class is known, which does not show how much classes differ: moves are accepted "
    "with the paper's probability min(1, H), which seldom finds K. Label rows of a second class, "
    "preferably of five or more."
)
_FEW_CLASSES = (
    "Only {} classes are known, and novel ones are judged by them: K may well lie outside its "
    "interval. Label rows of five classes or more."
)


def count_for_moves(
    X: Floats,
    codes: Ints,
    order: Ints,
    *,
    is_needed: bool,
    given: CategoryCount | None,
    sizes: Sizes,
    random_state: np.random.RandomState,
    n_rows: int | None = None,
) -> CategoryCount | None:
    """Count the categories if the moves need it; warn if too few classes are known.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Features.
    codes : ndarray of int, shape (n,)
        Known class of each row, -1 if unlabelled.
    order : ndarray of int, shape (n,)
        The rows sorted by `content_order`.
    is_needed : bool
        Whether moves are to lead to a count: not if K is given or the acceptance is literal.
    given : CategoryCount or None
        A count to use instead of counting.
    sizes : {"unknown", "alike"} or float
        What is known about the sizes of novel categories.
    random_state : RandomState
        Draws the hidden classes.
    n_rows : int, optional
        Number of rows for which those of `order` stand; by default that of X.

    Returns
    -------
    CategoryCount or None
        None if no count is needed, or fewer than two classes are known.
    """
    n_known = int(codes.max()) + 1
    if n_known == 0:
        warnings.warn(_NO_LABEL, DiscoveryWarning, stacklevel=4)
    if not is_needed or n_known == 0:
        return None
    # with all rows labelled there is nothing to find, and nothing to warn about
    some_unlabelled = bool((codes == UNLABELLED).any())
    if n_known == 1 and some_unlabelled:
        warnings.warn(_ONE_CLASS, DiscoveryWarning, stacklevel=4)
        return None
    if n_known < _CLASSES_TO_TRUST and some_unlabelled:
        warnings.warn(_FEW_CLASSES.format(n_known), DiscoveryWarning, stacklevel=4)
    if given is not None:
        return given
    return count_checked(X, codes, order, n_rows=n_rows, sizes=sizes, random_state=random_state)


def resolve_start(
    n_components: int | None,
    n_components_init: int | None,
    count: CategoryCount | None,
    n_known: int,
    n_rows: int,
) -> int:
    """K to start from: what was asked for, or the paper's K^l + K^l / 2; at least the count.

    Parameters
    ----------
    n_components, n_components_init : int or None
        As in `SplitMergeMixture`.
    count : CategoryCount or None
        The count that moves lead to.
    n_known, n_rows : int
        Number of known classes K^l, and of rows.

    Returns
    -------
    int
        K, at least the number of known classes.
    """
    # components of few rows cannot split far enough to reach a larger count (D9)
    counted = n_known if count is None else n_known + round(count.n_novel)
    asked = n_components if n_components is not None else n_components_init
    if asked is None:
        return min(max(default_n_components(n_known), counted), n_rows)
    name = "n_components_init" if n_components is None else "n_components"
    if asked > n_rows:
        raise InputError(
            f"{name}={asked} is more than the n_samples={n_rows} rows of X; "
            "there cannot be more categories than rows."
        )
    if asked < n_known:
        warnings.warn(
            f"{name}={asked}, but y names {n_known} known classes: {n_known} components are used.",
            DiscoveryWarning,
            stacklevel=3,
        )
    return max(asked, min(counted, n_rows))


def warn_if_missed(count: CategoryCount | None, n_novel: int) -> None:
    """Warn if the moves did not come near the counted K^n."""
    if count is None or n_novel == round(count.n_novel):
        return
    low, high = count.interval
    if not low - 0.5 <= n_novel <= high + 0.5:
        warnings.warn(
            f"The count suggests {count.n_novel:.1f} novel categories ({100 * count.level:g} % "
            f"interval: {low:.1f} to {high:.1f}), but the rows were divided into {n_novel}. Do not "
            "rely on either number.",
            DiscoveryWarning,
            stacklevel=4,
        )


def warn_if_not_kept(given: int | None, n_components: int, free: Floats) -> None:
    """Warn if there are fewer components than the K that was given.

    `free` are the unlabelled rows, projected, shape (n_free, q).
    """
    if given is None or n_components >= given:
        return
    # the same row may be projected to other last digits
    n_distinct = len(np.unique(row_keys(free.round(5))))
    warnings.warn(
        f"n_components={given}, but there are only {n_components} components: the {len(free)} "
        f"unlabelled rows have {n_distinct} distinct values. (Rows of which one is a multiple of "
        "the other count as one.) Lower n_components, or give rows that differ.",
        DiscoveryWarning,
        stacklevel=4,
    )
