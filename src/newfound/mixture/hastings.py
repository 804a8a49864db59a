"""The Hastings ratios of a split and of a merge (Eq. 5 and 6), as logarithms.

They compare how well two components and one component explain the same rows.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import gammaln

from newfound.arrays import Doubles
from newfound.errors import InputError
from newfound.mixture.prior import NIWPrior
from newfound.mixture.stats import GaussianStats

CountTerm = Literal["gamma", "factorial"]


def log_count(count: Doubles, count_term: CountTerm = "gamma") -> Doubles:
    """Log Γ(N) = log (N - 1)!, or the paper's "Γ(n) = n!" with ``count_term="factorial"``."""
    if count_term == "gamma":
        # an empty component has Γ(0) = ∞; it counts as one row, which gives log Γ = 0
        return np.asarray(gammaln(np.maximum(count, 1.0)))
    if count_term == "factorial":
        return np.asarray(gammaln(count + 1.0))
    raise InputError(f"count_term must be 'gamma' or 'factorial'; got {count_term!r}.")


def log_evidence(stats: GaussianStats, prior: NIWPrior, count_term: CountTerm = "gamma") -> Doubles:
    """Log [Γ(N) h(Z; θ)], the term of one component in Eq. 5 and 6."""
    return log_count(stats.count, count_term) + prior.log_marginal(stats)


def log_split_ratio(
    whole: GaussianStats,
    first: GaussianStats,
    second: GaussianStats,
    prior: NIWPrior,
    count_term: CountTerm = "gamma",
) -> Doubles:
    r"""Log of the Hastings ratio of a split.

    .. math::
        H_s = \frac{Γ(N_{i,1})\, h(Z_{i,1};θ)\; Γ(N_{i,2})\, h(Z_{i,2};θ)}{Γ(N_i)\, h(Z_i;θ)}
        \qquad (5)

    Parameters
    ----------
    whole, first, second : GaussianStats
        The component and its two halves, single or stacked.
    prior : NIWPrior
        θ.
    count_term : {"gamma", "factorial"}, default="gamma"
        Whether Γ(n) is (n - 1)! or, as the paper prints, n!.

    Returns
    -------
    ndarray
        log H_s; values above 0 speak for the split.
    """
    return (
        log_evidence(first, prior, count_term)
        + log_evidence(second, prior, count_term)
        - log_evidence(whole, prior, count_term)
    )


def log_merge_ratio(
    first: GaussianStats,
    second: GaussianStats,
    prior: NIWPrior,
    count_term: CountTerm = "gamma",
) -> Doubles:
    r"""Log of the Hastings ratio of a merge.

    .. math::
        H_m = \frac{Γ(N_i + N_j)\, h(Z_i ∪ Z_j;θ)}{Γ(N_i)\, h(Z_i;θ)\; Γ(N_j)\, h(Z_j;θ)}
        \qquad (6)

    Parameters
    ----------
    first, second : GaussianStats
        The two components, single or stacked.
    prior : NIWPrior
        θ.
    count_term : {"gamma", "factorial"}, default="gamma"
        As in `log_split_ratio`.

    Returns
    -------
    ndarray
        log H_m, which is ``-log_split_ratio(first + second, first, second)``.
    """
    return -log_split_ratio(first + second, first, second, prior, count_term)
