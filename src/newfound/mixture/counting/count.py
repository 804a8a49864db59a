"""How many novel categories are there? Hide some known classes, and see how novel rows look.

K^n is three questions in one: how much of the unlabelled part is novel, how large a category
is, and which row goes where. The first two need no clustering. Every row gets a score, how near
it is to the labelled rows of some known class, in a space that is learnt from these rows. Two
groups of rows have a known answer: labelled rows that are held out behave like unlabelled rows
of known classes, and labelled rows of known classes that are hidden for a round behave like rows
of novel classes. Their mean scores m_K and m_N, and the mean score m of the unlabelled rows, give
the share of known rows among these, (m - m_N) / (m_K - m_N); hence the label rate r of the known
classes, N_l / r rows of known classes in all, and K^n = K^l (N r / N_l - 1).

Assumed: labels are missing at random, with one label rate for all known classes; known and
novel classes are exchangeable, in how they lie and in their mean size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.special import expit
from sklearn.utils import check_array, check_random_state

from newfound.arrays import ArrayLike, Bools, Doubles, Floats, Ints, LabelsLike, RandomStateLike
from newfound.errors import InputError
from newfound.labels import encode_labels
from newfound.mixture.counting.hiding import N_FOLDS, N_REPEATS, Evidence, Seen, gather_evidence
from newfound.mixture.rows import content_order, row_keys

#: More rows than this are sampled: the rate needs no more.
MAX_ROWS = 20_000
#: How much a known row weighs in the score, against a novel one: less than its due, so that only
#: regions where known rows prevail count. There, hidden classes stand best for novel ones.
_KNOWN_WEIGHT = 0.1
#: Share of the classes taken for absent that may be there.
_FALSE_ABSENCES = 0.1


@dataclass(frozen=True)
class CategoryCount:
    """How many novel categories there are.

    Attributes
    ----------
    n_novel : float
        Estimate of K^n; it is no whole number, and can be 0.
    interval : tuple of float
        Between these K^n lies with the probability `level`.
    level : float
        That probability.
    label_rate : float
        Estimated share of the rows of known classes that are labelled.
    novel_share : float
        Estimated share of the unlabelled rows that belong to novel categories.
    n_known : int
        K^l.
    n_absent : int
        Known classes that seem to have no unlabelled row.
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

    Parameters
    ----------
    X : array-like of shape (n, d)
        Features, labelled and unlabelled rows together.
    y : array-like of shape (n,)
        Partial labels of at least two known classes; -1, None, NaN or an empty text where a
        row is unlabelled.
    level : float, default=0.9
        Probability of the interval.
    random_state : int, RandomState or None, default=None
        Seed of the classes that are hidden; the order of the rows does not matter.

    Returns
    -------
    CategoryCount
        K^n with its interval, the label rate and the share of novel rows.

    Raises
    ------
    InputError
        If fewer than two classes are known, or `level` is no probability.
    """
    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1; got {level!r}.")
    X = check_array(X, dtype=[np.float64, np.float32], ensure_min_samples=2)
    partial = encode_labels(y, len(X))
    n_known = partial.n_known
    if n_known and partial.is_labelled.all():
        return CategoryCount(0.0, (0.0, 0.0), level, 1.0, 0.0, n_known, n_known)
    if n_known < 2:
        raise InputError(
            f"Counting needs at least 2 known classes, since one is hidden to learn what a novel "
            f"one looks like; y names {n_known}. Label rows of more classes."
        )
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    order = content_order(row_keys(X), partial.codes)
    sizes = np.bincount(partial.codes[partial.is_labelled])
    by_class = len(X) <= MAX_ROWS and _labelled_by_class(sizes)
    if len(X) > MAX_ROWS:
        order = _sample(order, partial.codes, rng)
    codes = partial.codes[order]
    evidence = gather_evidence(X[order], codes, by_class=by_class, rng=rng)
    if evidence is None:  # any label rate is possible
        most = n_known * (len(X) / sizes.sum() - 1)
        return CategoryCount(0.0, (0.0, most), level, 1.0, 0.0, n_known, 0)
    return _conclude(evidence, codes, level)


def _sample(order: Ints, codes: Ints, rng: np.random.Generator) -> Ints:
    """Some of the rows at random, in the same order, and a labelled row of every class."""
    taken = np.zeros(len(order), dtype=bool)
    taken[rng.permutation(len(order))[:MAX_ROWS]] = True
    names, first = np.unique(codes[order], return_index=True)
    taken[first[names >= 0]] = True
    return order[taken]


def _labelled_by_class(sizes: Ints) -> bool:
    """Whether the numbers of labels vary far less than if labels had been given at random.

    Their variance would be (1 - r) times their mean or more; r up to ½ is allowed for.
    """
    dispersion = float(sizes.var(ddof=1) / sizes.mean()) * (len(sizes) - 1)
    return bool(dispersion < 0.5 * stats.chi2.ppf(0.01, len(sizes) - 1))


class _Odds(NamedTuple):
    """Unlabelled over labelled rows of known classes, (1 - r) / r; it may come out negative."""

    value: float
    share: float  # known rows among the unlabelled ones, between 0 and 1
    of_classes: float  # variance of the mean score between hidden classes, in units of m_K - m_N
    of_rows: float  # variance of the scores of held-out rows within their classes, likewise
    scores: tuple[Doubles, Doubles, Doubles]  # of held-out, hidden and unlabelled rows


def _estimate_odds(evidence: Evidence, n_unlabelled: int) -> _Odds:
    """Score all rows and compare the mean scores of the three groups."""
    mean = evidence.held_out.affinity.mean(axis=0)
    spread = evidence.held_out.affinity.std(axis=0)
    spread = np.where(spread > 1e-6, spread, 1)
    groups = [
        (seen.affinity - mean) / spread
        for seen in (evidence.held_out, evidence.hidden, evidence.unlabelled)
    ]
    coefficients = _fit_logistic(groups[0], groups[1])
    # as if as many known rows were unlabelled as are labelled
    prior = float(np.clip(evidence.n_kept / n_unlabelled, 0.02, 0.98))
    coefficients[0] += np.log(_KNOWN_WEIGHT * prior / (1 - prior))
    known, novel, unlabelled = (_score(coefficients, rows) for rows in groups)
    gap = max(float(known.mean() - novel.mean()), 1e-6)
    share = float(unlabelled.mean() - novel.mean()) / gap
    class_means = _means_by_class(novel, evidence.hidden.own)
    class_means = class_means[np.isfinite(class_means)]
    within = known - _means_by_class(known, evidence.held_out.own)[evidence.held_out.own]
    return _Odds(
        value=share * n_unlabelled / evidence.n_kept,
        share=float(np.clip(share, 0, 1)),
        of_classes=float(class_means.var(ddof=min(1, len(class_means) - 1))) / gap**2,
        of_rows=float(np.square(within).mean()) / gap**2,
        scores=(known, novel, unlabelled),
    )


def _fit_logistic(known: Floats, novel: Floats) -> Doubles:
    """Ridge logistic regression of known against novel rows of equal weight, by Newton's method."""
    design = np.concatenate([known, novel]).astype(np.float64)
    design = np.concatenate([np.ones((len(design), 1)), design], axis=1)
    target = np.repeat([1.0, 0.0], [len(known), len(novel)])
    weights = np.repeat([0.5 / len(known), 0.5 / len(novel)], [len(known), len(novel)])
    ridge = 1e-3 * np.eye(design.shape[1])
    ridge[0, 0] = 1e-9
    coefficients = np.zeros(design.shape[1])
    for _ in range(30):
        p = expit(design @ coefficients)
        hessian = (design * (weights * np.maximum(p * (1 - p), 1e-6))[:, None]).T @ design + ridge
        step = np.linalg.solve(hessian, design.T @ (weights * (p - target)) + ridge @ coefficients)
        coefficients -= step
        if np.abs(step).max() < 1e-6:
            break
    return coefficients


def _score(coefficients: Doubles, rows: Floats) -> Doubles:
    return expit(np.clip(coefficients[0] + rows @ coefficients[1:], -30, 30))


def _means_by_class(values: Doubles, classes: Ints) -> Doubles:
    """Mean of the values of each class, NaN for a class without any."""
    counts, sums = np.bincount(classes), np.bincount(classes, values)
    return np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)


def _find_present(evidence: Evidence, odds: _Odds, n_known: int, n_unlabelled: int) -> Bools:
    """Which known classes have unlabelled rows.

    The odds of one class are the score that unlabelled rows bring to it, less what novel rows
    would bring, over the score of held-out rows. Absent is a class whose odds lie below half of
    the common odds and farther below these than chance explains; of many classes some lie low by
    chance, so that the share of false alarms is controlled (Benjamini and Hochberg).
    """
    seen = (evidence.held_out, evidence.hidden, evidence.unlabelled)
    sums: list[Doubles] = [
        np.bincount(group.nearest, scores, minlength=n_known).astype(np.float64)
        for group, scores in zip(seen, odds.scores, strict=True)
    ]
    seen_in = (evidence.n_hidings - 1) / evidence.n_hidings  # rounds that do not hide a class
    held_out = sums[0] / (N_REPEATS * seen_in)
    hidden = sums[1] / len(odds.scores[1]) * (1 - odds.share) * n_unlabelled / seen_in
    unlabelled = sums[2] / (N_REPEATS * N_FOLDS * seen_in)
    present = np.ones(n_known, dtype=bool)
    for _ in range(10):
        found = (unlabelled - hidden)[present].sum()
        common = max(0.0, found / max(held_out[present].sum(), 1e-12))
        expected = common * held_out
        missing = expected - (unlabelled - hidden)
        error = np.sqrt(expected + 2 * hidden + common * expected)
        by_chance = stats.norm.sf(missing / np.maximum(error, 1e-12))
        surprising = stats.false_discovery_control(by_chance) < _FALSE_ABSENCES
        now = ~((missing > 0.5 * expected) & surprising)
        if now.sum() < 2 or np.array_equal(now, present):
            break
        present = now
    return present


def _only_classes(evidence: Evidence, present: Bools, sizes: Ints) -> Evidence:
    """The evidence without classes that no unlabelled row belongs to: their labels say nothing."""

    def of(seen: Seen) -> Seen:
        return seen.only(present[seen.own])

    share = sizes[present].sum() / sizes.sum()
    return evidence._replace(
        held_out=of(evidence.held_out),
        hidden=of(evidence.hidden),
        n_kept=evidence.n_kept * float(share),
    )


def _conclude(evidence: Evidence, codes: Ints, level: float) -> CategoryCount:
    """From the evidence to K^n and its interval.

    The odds have a t distribution around the estimate, cut off where they would be negative;
    K^n is that distribution's median, and where it lies beyond "all unlabelled rows are known",
    there is no novel category.
    """
    sizes = np.bincount(codes[codes >= 0])
    n_known, n_unlabelled = len(sizes), int((codes < 0).sum())
    odds = _estimate_odds(evidence, n_unlabelled)
    present = _find_present(evidence, odds, n_known, n_unlabelled)
    if not present.all():
        evidence = _only_classes(evidence, present, sizes)
        odds = _estimate_odds(evidence, n_unlabelled)
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


def _standard_error(evidence: Evidence, odds: _Odds, n_novel: float, n_unlabelled: int) -> float:
    """Standard error of the odds.

    Two things were left to chance: which classes are known, so that they could be hidden, and
    which are novel; and which rows of the known classes are labelled. Neighbourhood being
    mutual, two classes or two labelled rows that lie close are seen from both ends: the terms of
    a mean come in equal pairs, and its variance is twice as large.
    """
    n_classes = len(np.unique(evidence.hidden.own))
    by_class = (1 - odds.share) ** 2 * odds.of_classes * (2 / n_classes + 1 / max(1.0, n_novel))
    by_row = odds.share**2 * odds.of_rows
    by_row *= 2 / evidence.n_kept + 1 / max(1.0, odds.share * n_unlabelled)
    scale = n_unlabelled / evidence.n_kept
    return max(scale * float(np.sqrt(by_class + by_row)), 1e-9)


def _size_error(sizes: Ints, rate: float, n_novel: float) -> float:
    """Relative error of K^n from novel classes that are larger or smaller than known ones.

    Chance alone gives equal classes different numbers of labels; that part is taken off.
    """
    mean = float(sizes.mean())
    by_chance = (1 - rate) * mean
    squared_cv = max(0.0, (float(sizes.var(ddof=1)) - by_chance) / mean**2)
    return float(np.sqrt(squared_cv * (1 / len(sizes) + 1 / max(1.0, n_novel))))


def _widen(
    n_novel: float, interval: tuple[float, float], error: float, level: float
) -> tuple[float, float]:
    """Add a relative error to an interval."""
    low, high = interval
    if n_novel <= 0:
        return 0.0, max(high, 0.0)
    reach = float(stats.norm.ppf(0.5 + level / 2)) * error
    high = n_novel * float(np.exp(np.hypot(np.log(max(high / n_novel, 1.0)), reach)))
    if low > 0:
        low = n_novel * float(np.exp(-np.hypot(np.log(max(n_novel / low, 1.0)), reach)))
    return min(low, n_novel), high
