"""DeepDPM's rule: literal Hastings ratios with its own prior."""

from __future__ import annotations

import numpy as np

from newfound.arrays import ArrayLike, LabelsLike, RandomStateLike
from newfound.bench.rivals.rival_input import N_DIRECTIONS, prepare_input, without_warnings
from newfound.errors import DiscoveryWarning
from newfound.mixture.estimator import SplitMergeMixture
from newfound.mixture.prior import NIWPrior


def deep_dpm_rule(
    X: ArrayLike,
    y: LabelsLike,
    *,
    n_max: int | None = None,
    random_state: RandomStateLike = None,
) -> int:
    """Split and merge by the literal Hastings ratios with DeepDPM's prior, without labels.

    Ronen et al., "DeepDPM: Deep Clustering With an Unknown Number of Clusters" (CVPR 2022):
    K_init = 10, m is the mean of the rows, κ = 1e-4, ν = d + 2 and νΨ = 0.005 I (their scale
    takes the place of νΨ in the paper). Their network is left out; the features do not change.

    Parameters
    ----------
    X : array-like of shape (n, d)
        As in `brent_search`.
    y : array-like of shape (n,), optional
        Partial labels; only their number of classes K^l is used.
    n_max : int, optional
        Upper bound of the answer, as a total K. By default there is none.
    random_state : int, RandomState or None, default=None
        Seed of the start and the moves.

    Returns
    -------
    int
        K^n.
    """
    rows = prepare_input(X, y, n_max, random_state)
    d = rows.V.shape[1]
    # their prior scale is 0.005 I, which is our νΨ; so Ψ is 0.005 I / ν
    nu = d + 2.0
    mean = rows.V.mean(axis=0, dtype=np.float64)
    mixture = SplitMergeMixture(
        min(10, len(rows.V)),
        n_directions=N_DIRECTIONS,
        acceptance="literal",
        prior=NIWPrior(mean, np.asarray(1e-4), np.asarray(nu), 0.005 / nu * np.eye(d)),
        n_init=1,
        random_state=rows.seed,
    )
    with without_warnings(DiscoveryWarning):
        n_total = mixture.fit(rows.X).n_components_
    return rows.novel(n_total if n_max is None else min(n_total, n_max))
