"""Rivals: other ways to estimate the number of categories, for comparison with ours.

They are not part of the paper's method. Each function takes the same X and partial labels y as
`SplitMergeMixture` and returns one number, K^n. ``studies/find_k.py`` puts them side by side. All
of them see what the mixture sees: unit-length rows on 128 principal directions (`Projection`).
"""

from __future__ import annotations

from collections.abc import Callable

from newfound.bench.rivals.bic import bic_mixture
from newfound.bench.rivals.brent import brent_search
from newfound.bench.rivals.deep_dpm import deep_dpm_rule
from newfound.bench.rivals.dirichlet import dirichlet_process
from newfound.bench.rivals.silhouettes import silhouette
from newfound.bench.rivals.ward import ward_labelled_score

__all__ = [
    "RIVALS",
    "bic_mixture",
    "brent_search",
    "deep_dpm_rule",
    "dirichlet_process",
    "silhouette",
    "ward_labelled_score",
]

#: Name → function that estimates K^n.
RIVALS: dict[str, Callable[..., int]] = {
    rival.__name__: rival
    for rival in (
        brent_search,
        ward_labelled_score,
        silhouette,
        bic_mixture,
        dirichlet_process,
        deep_dpm_rule,
    )
}
