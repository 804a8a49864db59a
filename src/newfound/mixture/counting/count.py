"""Estimate the number of novel categories, K^n, without clustering (deviation D9).

K^n depends on two quantities: how much of the unlabelled part is novel, and how large a category
is. Every row gets a score for how near it is to the labelled rows of some known class, in a space
that is learnt from these rows. Two groups of rows have a known answer. Labelled rows that are held
out behave like unlabelled rows of known classes. Labelled rows of known classes that are hidden
for a round behave like rows of novel classes.

Let m_K and m_N be the mean scores of these two groups, and m the mean score of the unlabelled
rows. The share of known rows among the unlabelled ones is (m - m_N) / (m_K - m_N). It gives the
label rate r, the share of the rows of known classes that is labelled. With N rows, N_l of them
labelled, in K^l known classes, the known classes have N_l / r rows in all, and

    K^n = K^l (N r / N_l - 1).

Assumptions: labels are missing at random, with one label rate for all known classes. Known and
novel classes are exchangeable: they lie in the feature space in the same way, and they have the
same mean size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats
from sklearn.utils import check_array, check_random_state

from newfound.arrays import ArrayLike, Floats, Ints, LabelsLike, RandomStateLike
from newfound.errors import InputError
from newfound.labels import UNLABELLED, encode_labels
from newfound.mixture.class_order import ClassOrder
from newfound.mixture.counting.hiding import Evidence, gather_evidence
from newfound.mixture.counting.odds import Odds, estimate_odds, find_present, without_absent
from newfound.mixture.rows import content_order, row_keys

#: Larger collections are sampled: the label rate needs no more rows than this.
MAX_ROWS = 20_000


@dataclass(frozen=True)
class CategoryCount:
    """Estimated number of novel categories.

    Attributes
    ----------
    n_novel : float
        Estimate of K^n, the number of novel categories. It need not be a whole number, and can
        be 0.
    interval : tuple of float
        Lower and upper end of the interval that holds K^n with the probability `level`.
    level : float
        Probability with which the interval contains K^n.
    label_rate : float
        Estimated share of the rows of known classes that are labelled.
    novel_share : float
        Estimated share of the unlabelled rows that belong to novel categories.
    n_known : int
        K^l, the number of known classes.
    n_absent : int
        Number of known classes that seem to have no unlabelled row.
    """

    n_novel: float
    interval: tuple[float, float]
    level: float
    label_rate: float
    novel_share: float
    n_known: int
    n_absent: int


def count_categories(
    X: ArrayLike,
    y: LabelsLike,
    *,
    level: float = 0.9,
    random_state: RandomStateLike = None,
) -> CategoryCount:
    """Estimate the number of novel categories, in seconds and without clustering.

    Known classes are hidden in turn, to learn what rows of a novel class look like.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Features, labelled and unlabelled rows together.
    y : array-like of shape (n,)
        Partial labels of at least two known classes; -1, None, NaN or an empty text where a
        row is unlabelled.
    level : float, default=0.9
        Probability with which the interval contains K^n.
    random_state : int, RandomState or None, default=None
        Seed of the draw of hidden classes. Neither the order of the rows nor the names of the
        classes matter.

    Returns
    -------
    CategoryCount
        K^n with its interval, the label rate and the share of novel rows.

    Raises
    ------
    InputError
        If fewer than two classes are known, or `level` is not a probability.
    """
    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1; got {level!r}.")
    X = check_array(X, dtype=[np.float64, np.float32], ensure_min_samples=2)
    partial, keys = encode_labels(y, len(X)), row_keys(X)
    codes = ClassOrder.of(partial, keys).number_by_content(partial.codes)
    order = content_order(keys, codes)
    return count_checked(X, codes, order, level=level, random_state=random_state)


def count_checked(
    X: Floats,
    codes: Ints,
    order: Ints,
    *,
    level: float = 0.9,
    random_state: RandomStateLike = None,
) -> CategoryCount:
    """Do the work of `count_categories` on rows that were already checked and sorted.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Features, float32 or float64, finite.
    codes : ndarray of int, shape (n,)
        Known class of each row without gaps, numbered by `ClassOrder`; -1 if unlabelled.
    order : ndarray of int, shape (n,)
        The rows sorted by `content_order`.
    level, random_state
        As in `count_categories`.

    Returns
    -------
    CategoryCount
        K^n with its interval.
    """
    n_known = int(codes.max()) + 1
    is_labelled = codes != UNLABELLED
    if n_known and is_labelled.all():
        return CategoryCount(0.0, (0.0, 0.0), level, 1.0, 0.0, n_known, n_known)
    if n_known < 2:
        raise InputError(
            f"Counting needs at least 2 known classes, since one is hidden to learn what a novel "
            f"one looks like; y names {n_known}. Label rows of more classes."
        )
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    sizes = np.bincount(codes[is_labelled])
    # a sample of rows has random numbers of labels, even if each class was given the same number
    by_class = len(X) <= MAX_ROWS and _labelled_by_class(sizes)
    if len(X) > MAX_ROWS:
        order = _sample(order, codes, rng)
    codes = codes[order]
    evidence = gather_evidence(X[order], codes, by_class=by_class, rng=rng)
    if evidence is None:  # any label rate is possible
        most = n_known * (len(X) / sizes.sum() - 1)
        return CategoryCount(0.0, (0.0, most), level, 1.0, 0.0, n_known, 0)
    return _conclude(evidence, codes, level)


def _sample(order: Ints, codes: Ints, rng: np.random.Generator) -> Ints:
    """Draw `MAX_ROWS` rows, and a labelled row of every class; keep their order."""
    taken = np.zeros(len(order), dtype=bool)
    taken[rng.permutation(len(order))[:MAX_ROWS]] = True
    names, first = np.unique(codes[order], return_index=True)
    taken[first[names >= 0]] = True
    return order[taken]


def _labelled_by_class(sizes: Ints) -> bool:
    """Whether the numbers of labels vary far less than if labels had been given at random.

    At random, their variance would be at least (1 - r) times their mean. The factor of 0.5
    allows for a label rate r of up to 0.5.
    """
    dispersion = float(sizes.var(ddof=1) / sizes.mean()) * (len(sizes) - 1)
    return bool(dispersion < 0.5 * stats.chi2.ppf(0.01, len(sizes) - 1))


def _conclude(evidence: Evidence, codes: Ints, level: float) -> CategoryCount:
    """Turn the evidence into K^n and its interval.

    The odds have a t distribution around the estimate, cut off where they would be negative.
    K^n comes from the median of that distribution. If the median says that there are more known
    rows than unlabelled rows, there is no novel category.
    """
    sizes = np.bincount(codes[codes >= 0])
    n_known, n_unlabelled = len(sizes), int((codes < 0).sum())
    odds = estimate_odds(evidence, n_unlabelled)
    present = find_present(evidence, odds, n_known, n_unlabelled)
    # a class with labels but without unlabelled rows would lower the odds of all others
    if not present.all():
        evidence = without_absent(evidence, present, sizes)
        odds = estimate_odds(evidence, n_unlabelled)
    sizes = sizes[present]
    n_labelled = int(sizes.sum())

    def novel_of(value: float) -> float:
        known = min(value * n_labelled, n_unlabelled)
        return len(sizes) * (n_unlabelled - known) / (n_labelled + known)

    freedom = max(1, n_known - 1)
    error = _standard_error(evidence, odds, novel_of(max(0.0, odds.value)), n_unlabelled)
    negative = float(stats.t.cdf(-odds.value / error, freedom))
    tails = (0.5, 0.5 + level / 2, 0.5 - level / 2)  # the larger the odds, the fewer are novel
    median, large, small = (
        max(0.0, odds.value + error * float(stats.t.ppf(negative + p * (1 - negative), freedom)))
        for p in tails
    )
    n_novel = novel_of(median)
    known = min(median * n_labelled, n_unlabelled)
    rate = n_labelled / (n_labelled + known)
    size_error = _size_error(sizes, rate, n_novel)
    return CategoryCount(
        n_novel=n_novel,
        interval=_widen(n_novel, (novel_of(large), novel_of(small)), size_error, level),
        level=level,
        label_rate=rate,
        novel_share=1 - known / n_unlabelled,
        n_known=n_known,
        n_absent=int((~present).sum()),
    )


def _standard_error(evidence: Evidence, odds: Odds, n_novel: float, n_unlabelled: int) -> float:
    """Standard error of the odds.

    Two things were decided by chance: first, which classes are known (and so can be hidden) and
    which are novel; second, which rows of the known classes are labelled. Nearness is mutual: if
    one class (or labelled row) is close to another, the other is close to it. The terms of a mean
    therefore come in equal pairs, which doubles its variance.
    """
    n_classes = len(np.unique(evidence.hidden.own))
    by_class = (1 - odds.share) ** 2 * odds.class_variance
    by_class *= 2 / n_classes + 1 / max(1.0, n_novel)
    by_row = odds.share**2 * odds.row_variance
    by_row *= 2 / evidence.n_kept + 1 / max(1.0, odds.share * n_unlabelled)
    scale = n_unlabelled / evidence.n_kept
    return max(scale * float(np.sqrt(by_class + by_row)), 1e-9)


def _size_error(sizes: Ints, rate: float, n_novel: float) -> float:
    """Relative error of K^n if novel classes are larger or smaller than known ones.

    Equal classes get different numbers of labels by chance; that part of the variance is removed.
    """
    mean = float(sizes.mean())
    by_chance = (1 - rate) * mean
    squared_cv = max(0.0, (float(sizes.var(ddof=1)) - by_chance) / mean**2)
    return float(np.sqrt(squared_cv * (1 / len(sizes) + 1 / max(1.0, n_novel))))


def _widen(
    n_novel: float, interval: tuple[float, float], error: float, level: float
) -> tuple[float, float]:
    """Add a relative error to an interval; on the logarithmic scale, as K^n is a ratio."""
    low, high = interval
    if n_novel <= 0:
        return 0.0, max(high, 0.0)
    reach = float(stats.norm.ppf(0.5 + level / 2)) * error
    high = n_novel * float(np.exp(np.hypot(np.log(max(high / n_novel, 1.0)), reach)))
    if low > 0:
        low = n_novel * float(np.exp(-np.hypot(np.log(max(n_novel / low, 1.0)), reach)))
    return min(low, n_novel), high
