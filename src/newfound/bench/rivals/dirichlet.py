"""The number of components that a Dirichlet-process mixture uses."""

from __future__ import annotations

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture

from newfound.arrays import ArrayLike, LabelsLike, RandomStateLike
from newfound.bench.rivals.rival_input import ROWS_EACH, prepare_input, ridge, without_warnings

#: Principal directions of a mixture with diagonal covariances.
N_DIAGONAL = 32
#: A component with fewer rows than this does not count as a category.
SMALLEST_COMPONENT = 5


def dirichlet_process(
    X: ArrayLike,
    y: LabelsLike,
    *,
    n_max: int | None = None,
    random_state: RandomStateLike = None,
) -> int:
    """Count the components that a truncated Dirichlet-process mixture uses.

    Blei and Jordan (2006), in the form of scikit-learn's `BayesianGaussianMixture` with its
    default concentration, on 32 principal directions and without labels. Covariances are
    diagonal: with full ones almost no component becomes empty. Components with fewer than 5 rows
    are not counted.

    Parameters
    ----------
    X, y
        As in `bic_mixture`.
    n_max : int, optional
        The truncation. By default as in `bic_mixture`.
    random_state : int, RandomState or None, default=None
        Seed of the start.

    Returns
    -------
    int
        K^n.
    """
    rows = prepare_input(X, y, n_max, random_state, rows_each=ROWS_EACH)
    V = rows.V[:, :N_DIAGONAL].astype(np.float64)
    mixture = BayesianGaussianMixture(
        n_components=rows.n_max,
        covariance_type="diag",
        weight_concentration_prior_type="dirichlet_process",
        reg_covar=ridge(V),
        max_iter=100,
        random_state=rows.seed,
    )
    with without_warnings(ConvergenceWarning):
        sizes = np.bincount(mixture.fit_predict(V))
    return rows.novel(int(np.count_nonzero(sizes >= SMALLEST_COMPONENT)))
