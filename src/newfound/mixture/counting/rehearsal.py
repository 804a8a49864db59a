"""Rehearsal: hide known classes, fit the mixture again, and see how many are found.

ρ is the number of components found per hidden class; 1 is right. There are two designs:

- "labelled" is the paper's (supplement, D^l_r and D^l_p). It takes the labelled rows only and
  drops the labels of some classes, so that the true classes of all rows are known.
- "hidden" takes all rows and drops the labels of some known classes. Truly novel classes are
  among the rows, too; the dropped labels show which components belong to the hidden classes.

Assumptions: known and novel classes are exchangeable, and labels are missing at random within a
class.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from newfound.arrays import ArrayLike, Doubles, Ints, LabelsLike, RandomStateLike
from newfound.errors import InputError
from newfound.labels import UNLABELLED, PartialLabels, encode_labels
from newfound.mixture.clustering import check_positive_int
from newfound.mixture.counting.count import count_categories
from newfound.mixture.counting.draws import (
    CategoryFinder,
    DrawRows,
    fit_quietly,
    fit_visible,
    run_draws,
    samples_of_rows,
    settings_of_draw,
)
from newfound.mixture.counting.novel_size import ratio_with_hidden

Design = Literal["labelled", "hidden"]


@dataclass(frozen=True)
class Rehearsal:
    """How many components were found in place of hidden classes.

    Attributes
    ----------
    design : {"labelled", "hidden"}
        Whether only labelled rows took part, or all rows.
    n_hidden : ndarray of int, shape (n_draws,)
        Number of known classes that were hidden in each draw.
    n_components : ndarray of shape (n_draws,)
        Number of components that were found in their place. With the design "hidden" a component
        may belong to a hidden class in part, so this need not be a whole number.
    """

    design: Design
    n_hidden: Ints
    n_components: Doubles

    @property
    def ratios(self) -> Doubles:
        """ρ of each draw: components found per hidden class; 1 is right."""
        return self.n_components / self.n_hidden

    def correct(self, n_novel: float, level: float = 0.9) -> tuple[float, tuple[float, float]]:
        """Correct the number of novel components by ρ.

        Parameters
        ----------
        n_novel : float
            K^n, the number of novel categories, as the mixture found it.
        level : float, default=0.9
            Probability of the interval.

        Returns
        -------
        corrected : float
            K^n divided by the median of ρ.
        interval : tuple of float
            K^n divided by two order statistics of ρ. A further draw falls between them with a
            probability of at least `level`. (0, inf) if there are too few draws for that.
        """
        ratios = np.sort(self.ratios)
        # of n + 1 exchangeable draws, the last one has any rank with the same probability
        place = int(np.floor((len(ratios) + 1) * (1 - level) / 2 + 1e-9))
        smallest = np.finfo(float).tiny
        corrected = n_novel / max(float(np.median(ratios)), smallest)
        if place < 1:
            return corrected, (0.0, float("inf"))
        low, high = ratios[place - 1], ratios[-place]
        return corrected, (n_novel / max(high, smallest), n_novel / max(low, smallest))


def rehearse(
    mixture: CategoryFinder,
    X: ArrayLike,
    y: LabelsLike,
    *,
    design: Design = "hidden",
    n_draws: int = 19,
    n_jobs: int | None = None,
    random_state: RandomStateLike = None,
    progress: Callable[[int, int], object] | None = None,
) -> Rehearsal:
    """Hide known classes and fit again, to see how far the number of novel ones can be trusted.

    Draws take samples of a large collection: at least 3,000 rows, and so many that a known class
    has 30 labels on average.

    Parameters
    ----------
    mixture : SplitMergeMixture
        Settings to rehearse with; it is not changed. If it is fitted to X and y, its count of the
        categories is used, which saves the time for another one.
    X : array-like of shape (n, d)
        Features.
    y : array-like of shape (n,)
        Partial labels of at least 4 known classes; half of these are hidden in each draw.
    design : {"hidden", "labelled"}, default="hidden"
        Whether to take all rows or the labelled rows only.
    n_draws : int, default=19
        Number of draws; 19 is the smallest number for a 90 % interval.
    n_jobs : int, optional
        Number of draws that run in parallel, as in joblib.
    random_state : int, RandomState or None, default=None
        Seed of the draw of hidden classes. Neither the order of the rows nor the names of the
        classes matter.
    progress : callable, optional
        Called after each draw as ``progress(done, total)``.

    Returns
    -------
    Rehearsal
        ρ of every draw.
    """
    check_positive_int("n_draws", n_draws)
    if design not in ("hidden", "labelled"):
        raise InputError(f"design must be 'hidden' or 'labelled'; got {design!r}.")
    X = np.asarray(X)
    partial = _encode(y, len(X))
    sizes = getattr(mixture, "sizes", None)
    ratio = sizes if isinstance(sizes, (int, float)) else None
    count = getattr(mixture, "count_", None)
    if count is None:
        # a fixed seed: the label rate describes the data, and must not differ between rehearsals
        count = count_categories(X, partial.codes, sizes=ratio or "alike", random_state=0)
    rate = 1.0 if np.isnan(count.label_rate) else count.label_rate  # NaN: nobody can know it
    seeds = check_random_state(random_state).randint(2**31, size=n_draws)
    settings = settings_of_draw(mixture)
    if ratio is not None:
        n_novel = count.n_novel if design == "hidden" else 0.0
        ratio = ratio_with_hidden(ratio, partial.n_known // 2, n_novel)
        settings.set_params(sizes=ratio)
    rehearse_once = _rehearse_all_rows if design == "hidden" else _rehearse_labelled_rows
    draw = functools.partial(rehearse_once, settings, rate)
    results = run_draws(draw, samples_of_rows(X, partial), seeds, n_jobs, progress)
    n_hidden, n_components = zip(*results, strict=True)
    return Rehearsal(design, np.array(n_hidden), np.array(n_components))


def _encode(y: LabelsLike, n_rows: int) -> PartialLabels:
    """Encode the labels and check that there are enough classes to hide half of them."""
    partial = encode_labels(y, n_rows)
    if partial.n_known < 4:
        raise InputError(
            f"A rehearsal hides half of the known classes and needs at least 4; "
            f"y names {partial.n_known}."
        )
    return partial


def _draw_hidden(codes: Ints, rng: np.random.Generator) -> Ints:
    """Draw half of the known classes, which are numbered by content."""
    n_known = int(codes.max()) + 1
    return rng.permutation(n_known)[: n_known // 2]


def _rehearse_all_rows(
    settings: CategoryFinder, rate: float, rows: DrawRows, seed: int
) -> tuple[int, float]:
    """Hide classes among all rows; return their number and that of their components.

    If h of the n rows of a novel component had a hidden label, they stand for h / rate rows of
    hidden classes, so that h / (rate n) of the component belongs to hidden classes.
    """
    rng = np.random.default_rng(seed)
    hidden = _draw_hidden(rows.codes, rng)
    was_hidden = np.isin(rows.codes, hidden)
    mixture = fit_visible(settings, rows, np.where(was_hidden, UNLABELLED, rows.codes), seed)
    sizes = np.bincount(mixture.labels_, minlength=mixture.n_components_)
    n_hidden_rows = np.bincount(mixture.labels_[was_hidden], minlength=mixture.n_components_)
    novel = slice(mixture.n_known_, None)
    return len(hidden), float((n_hidden_rows[novel] / (rate * sizes[novel])).sum())


def _rehearse_labelled_rows(
    settings: CategoryFinder, rate: float, rows: DrawRows, seed: int
) -> tuple[int, float]:
    """Hide classes among the labelled rows; return their number and that of their components.

    The other classes keep labels at the label rate of the whole collection, so that the task is
    as hard as the real one.
    """
    rng = np.random.default_rng(seed)
    is_labelled = rows.codes != UNLABELLED
    X, codes = rows.X[is_labelled], rows.codes[is_labelled]
    hidden = _draw_hidden(codes, rng)
    is_kept = ~np.isin(codes, hidden) & (rng.random(len(codes)) < rate)
    seeded = clone(settings).set_params(random_state=seed)
    mixture = fit_quietly(seeded, X, np.where(is_kept, codes, UNLABELLED))
    return len(hidden), float(mixture.n_novel_)
