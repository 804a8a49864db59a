"""Rehearsal: hide known classes, run the whole mixture again, see what becomes of them.

Two designs. "labelled" is the paper's (supplement, D^l_r and D^l_p): only the labelled rows, some
classes' labels dropped; the truth is known. "hidden" takes all rows and drops the labels of some
known classes: then their own labelled rows show as how many components they came out, ρ components
for each hidden class, among truly novel ones.

Assumed: known and novel classes are exchangeable, labels are missing at random within a class.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.utils import check_random_state

from newfound.arrays import ArrayLike, Doubles, Floats, Ints, LabelsLike, RandomStateLike
from newfound.errors import DiscoveryWarning, InputError
from newfound.labels import UNLABELLED, encode_labels
from newfound.mixture.clustering import check_positive_int
from newfound.mixture.counting.count import count_categories
from newfound.mixture.estimator import SplitMergeMixture

Design = Literal["labelled", "hidden"]


@dataclass(frozen=True)
class Rehearsal:
    """What became of hidden classes.

    Attributes
    ----------
    design : {"labelled", "hidden"}
        Whether only labelled rows took part, or all.
    n_hidden : ndarray of int, shape (n_draws,)
        Known classes that were hidden in each draw.
    n_components : ndarray of shape (n_draws,)
        Components that they came out as.
    """

    design: Design
    n_hidden: Ints
    n_components: Doubles

    @property
    def ratios(self) -> Doubles:
        """ρ of each draw: components for each hidden class; 1 is right."""
        return self.n_components / self.n_hidden

    def correct(self, n_novel: float, level: float = 0.9) -> tuple[float, tuple[float, float]]:
        """Correct a number of novel components by ρ.

        Parameters
        ----------
        n_novel : float
            K^n as the mixture found it.
        level : float, default=0.9
            Probability of the interval.

        Returns
        -------
        corrected : float
            K^n divided by the median of ρ.
        interval : tuple of float
            K^n divided by two order statistics of ρ, such that a further draw falls between them
            with probability `level` or more; (0, inf) where there are too few draws for that.
        """
        ratios = np.sort(self.ratios)
        place = int(np.floor((len(ratios) + 1) * (1 - level) / 2 + 1e-9))
        smallest = np.finfo(float).tiny
        corrected = n_novel / max(float(np.median(ratios)), smallest)
        if place < 1:
            return corrected, (0.0, float("inf"))
        low, high = ratios[place - 1], ratios[-place]
        return corrected, (n_novel / max(high, smallest), n_novel / max(low, smallest))


def rehearse(
    mixture: SplitMergeMixture,
    X: ArrayLike,
    y: LabelsLike,
    *,
    design: Design = "hidden",
    n_draws: int = 19,
    n_jobs: int | None = None,
    random_state: RandomStateLike = None,
    callback: Callable[[int], object] | None = None,
) -> Rehearsal:
    """Hide half of the known classes and fit again, several times.

    Parameters
    ----------
    mixture : SplitMergeMixture
        Settings to rehearse with; it is not changed.
    X : array-like of shape (n, d)
        Features.
    y : array-like of shape (n,)
        Partial labels of at least 4 known classes.
    design : {"hidden", "labelled"}, default="hidden"
        Take all rows, or labelled rows only.
    n_draws : int, default=19
        How often; 19 is the least for a 90 % interval.
    n_jobs : int, optional
        Draws at the same time, as in joblib.
    random_state : int, RandomState or None, default=None
        Seed of the classes that are hidden.
    callback : callable, optional
        Called with the number of draws that are done, after each.

    Returns
    -------
    Rehearsal
        ρ of every draw.
    """
    check_positive_int("n_draws", n_draws)
    if design not in ("hidden", "labelled"):
        raise InputError(f"design must be 'hidden' or 'labelled'; got {design!r}.")
    X = np.asarray(X)
    partial = encode_labels(y, len(X))
    if partial.n_known < 4:
        raise InputError(
            f"A rehearsal hides half of the known classes and needs at least 4; "
            f"y names {partial.n_known}."
        )
    rate = count_categories(X, partial.codes, random_state=0).label_rate
    seeds = check_random_state(random_state).randint(2**31, size=n_draws)
    play = _play_hidden if design == "hidden" else _play_labelled
    settings = clone(mixture).set_params(n_init=1, verbose=0, callback=None)
    draws = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(play)(settings, X, partial.codes, rate, int(seed)) for seed in seeds
    )
    results = []
    for result in draws:
        results.append(result)
        if callback is not None:
            callback(len(results))
    n_hidden, n_components = zip(*results, strict=True)
    return Rehearsal(design, np.array(n_hidden), np.array(n_components))


def _fit(settings: SplitMergeMixture, X: Floats, y: Ints, seed: int) -> SplitMergeMixture:
    """Fit a copy; that few classes are left to learn from is meant here, and no cause to warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscoveryWarning)
        return clone(settings).set_params(random_state=seed).fit(X, y)


def _draw_hidden(codes: Ints, rng: np.random.Generator) -> Ints:
    """Half of the known classes."""
    n_known = int(codes.max()) + 1
    return rng.permutation(n_known)[: n_known // 2]


def _play_hidden(
    settings: SplitMergeMixture, X: Floats, codes: Ints, rate: float, seed: int
) -> tuple[int, float]:
    """All rows; of a novel component of n rows, h of them hidden labels, h / (rate n) is theirs."""
    rng = np.random.default_rng(seed)
    hidden = _draw_hidden(codes, rng)
    was_hidden = np.isin(codes, hidden)
    y = np.where(was_hidden, UNLABELLED, codes)
    mixture = _fit(settings, X, y, seed)
    sizes = np.bincount(mixture.labels_, minlength=mixture.n_components_)
    theirs = np.bincount(mixture.labels_[was_hidden], minlength=mixture.n_components_)
    novel = slice(mixture.n_known_, None)
    return len(hidden), float((theirs[novel] / (rate * sizes[novel])).sum())


def _play_labelled(
    settings: SplitMergeMixture, X: Floats, codes: Ints, rate: float, seed: int
) -> tuple[int, float]:
    """Labelled rows only; kept classes keep labels at the rate that the whole collection has."""
    rng = np.random.default_rng(seed)
    labelled = np.flatnonzero(codes != UNLABELLED)
    hidden = _draw_hidden(codes, rng)
    is_kept = ~np.isin(codes[labelled], hidden) & (rng.random(len(labelled)) < rate)
    y = np.where(is_kept, codes[labelled], UNLABELLED)
    mixture = _fit(settings, X[labelled], y, seed)
    return len(hidden), float(mixture.n_novel_)
