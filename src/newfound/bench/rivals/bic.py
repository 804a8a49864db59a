"""The K whose Gaussian mixture has the best information criterion."""

from __future__ import annotations

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from newfound.arrays import ArrayLike, LabelsLike, RandomStateLike
from newfound.bench.rivals.grid import best_on_grid
from newfound.bench.rivals.rival_input import ROWS_EACH, prepare_input, ridge, without_warnings

#: Principal directions of a mixture with full covariances.
N_FULL = 16
#: The grid of K ends after this many points in a row that are worse than the best.
N_WORSE = 3


def bic_mixture(
    X: ArrayLike,
    y: LabelsLike,
    *,
    n_max: int | None = None,
    random_state: RandomStateLike = None,
) -> int:
    """Choose the K whose Gaussian mixture has the smallest Bayesian information criterion.

    Schwarz (1978). Scikit-learn's `GaussianMixture` with full covariances is fitted on 16
    principal directions without labels, for K on a geometric grid from max(1, K^l) and on a finer
    grid around its best point. The grid ends at n_max, or after three points in a row that are
    worse than the best.

    Parameters
    ----------
    X : array-like of shape (n, d)
        As in `brent_search`.
    y : array-like of shape (n,), optional
        Partial labels; only their number of classes K^l is used.
    n_max : int, optional
        Largest total K. By default 1,000, or a 16th of the rows if that is less, because a full
        covariance needs at least one row per direction.
    random_state : int, RandomState or None, default=None
        Seed of the starts.

    Returns
    -------
    int
        K^n.
    """
    rows = prepare_input(X, y, n_max, random_state, rows_each=ROWS_EACH)
    V = rows.V[:, :N_FULL].astype(np.float64)

    def score(n_components: int) -> float:
        mixture = GaussianMixture(
            n_components,
            covariance_type="full",
            reg_covar=ridge(V),
            max_iter=50,
            random_state=rows.seed,
        )
        with without_warnings(ConvergenceWarning):
            return -float(mixture.fit(V).bic(V))

    return rows.novel(best_on_grid(score, max(1, rows.n_known), rows.n_max, N_WORSE))
