"""From the evidence of hidden classes to the share of unlabelled rows that is known.

All rows get a score between 0 and 1, by logistic regression of held-out rows (known) against rows
of hidden classes (novel). The mean scores of these two groups and of the unlabelled rows give the
odds (1 - r) / r, where r is the label rate: the share of the rows of known classes that is
labelled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.special import expit

from newfound.arrays import Bools, Doubles, Floats, Ints
from newfound.mixture.counting.hiding import Affinities, Evidence

#: Weight of a known row in the score, relative to a novel one. It is smaller than its fair weight,
#: so that only regions in which known rows prevail count. There, rows of hidden classes are most
#: like rows of novel classes.
_KNOWN_WEIGHT = 0.1
#: Accepted share of false alarms among the classes that are taken to be absent.
_FALSE_ABSENCES = 0.1


class Odds(NamedTuple):
    """Unlabelled over labelled rows of known classes, (1 - r) / r.

    Variances are in units of (m_K - m_N)², where m_K and m_N are the mean scores of held-out
    rows and of rows of hidden classes.
    """

    value: float  # may come out negative
    share: float  # share of the unlabelled rows that is known, between 0 and 1
    class_variance: float  # of the mean score between hidden classes
    row_variance: float  # of the scores of held-out rows within their classes
    scores: tuple[Doubles, Doubles, Doubles]  # of held-out, hidden and unlabelled rows


def estimate_odds(evidence: Evidence, n_unlabelled: int) -> Odds:
    """Score all rows and compare the mean scores of the three groups.

    Parameters
    ----------
    evidence : Evidence
        From `gather_evidence`.
    n_unlabelled : int
        Number of unlabelled rows.

    Returns
    -------
    Odds
        The odds, with the variances that their standard error needs.
    """
    mean = evidence.held_out.affinity.mean(axis=0)
    spread = evidence.held_out.affinity.std(axis=0)
    spread = np.where(spread > 1e-6, spread, 1)
    groups = [
        (group.affinity - mean) / spread
        for group in (evidence.held_out, evidence.hidden, evidence.unlabelled)
    ]
    coefficients = _fit_logistic(groups[0], groups[1])
    # the regression gives both groups equal weight; here we assume that the known classes have as
    # many unlabelled rows as labelled ones
    prior = float(np.clip(evidence.n_kept / n_unlabelled, 0.02, 0.98))
    coefficients[0] += np.log(_KNOWN_WEIGHT * prior / (1 - prior))
    known, novel, unlabelled = (_score(coefficients, rows) for rows in groups)
    gap = max(float(known.mean() - novel.mean()), 1e-6)
    share = float(unlabelled.mean() - novel.mean()) / gap
    class_means = _means_by_class(novel, evidence.hidden.own)
    class_means = class_means[np.isfinite(class_means)]
    within = known - _means_by_class(known, evidence.held_out.own)[evidence.held_out.own]
    return Odds(
        value=share * n_unlabelled / evidence.n_kept,
        share=float(np.clip(share, 0, 1)),
        class_variance=float(class_means.var(ddof=min(1, len(class_means) - 1))) / gap**2,
        row_variance=float(np.square(within).mean()) / gap**2,
        scores=(known, novel, unlabelled),
    )


def _fit_logistic(known: Floats, novel: Floats) -> Doubles:
    """Ridge logistic regression of known against novel rows of equal weight, by Newton's method."""
    design = np.concatenate([known, novel]).astype(np.float64)
    design = np.concatenate([np.ones((len(design), 1)), design], axis=1)
    target = np.repeat([1.0, 0.0], [len(known), len(novel)])
    weights = np.repeat([0.5 / len(known), 0.5 / len(novel)], [len(known), len(novel)])
    ridge = 1e-3 * np.eye(design.shape[1])
    ridge[0, 0] = 1e-9  # the intercept is free; this only keeps the matrix invertible
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
    """Score of each row between 0 (novel) and 1 (known)."""
    return expit(np.clip(coefficients[0] + rows @ coefficients[1:], -30, 30))


def _means_by_class(values: Doubles, classes: Ints) -> Doubles:
    """Mean of the values of each class, NaN for a class without any."""
    counts, sums = np.bincount(classes), np.bincount(classes, values)
    return np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)


def find_present(evidence: Evidence, odds: Odds, n_known: int, n_unlabelled: int) -> Bools:
    """Find the known classes that have unlabelled rows.

    Every row adds its score to the class that it is nearest to. The odds of a class are a quotient:
    the sum of the scores of unlabelled rows, minus what novel rows would contribute, over the sum
    of the scores of held-out rows. A class is taken to be absent if its odds are
    less than half of the common odds, and lower than chance explains. Of many classes, some are
    low by chance, so the share of false alarms is controlled (Benjamini and Hochberg).

    Parameters
    ----------
    evidence : Evidence
        From `gather_evidence`.
    odds : Odds
        The common odds of all classes.
    n_known, n_unlabelled : int
        K^l and the number of unlabelled rows.

    Returns
    -------
    ndarray of bool, shape (K^l,)
        Whether each known class has unlabelled rows.
    """
    groups = (evidence.held_out, evidence.hidden, evidence.unlabelled)
    sums: list[Doubles] = [
        np.bincount(group.nearest, scores, minlength=n_known).astype(np.float64)
        for group, scores in zip(groups, odds.scores, strict=True)
    ]
    visible = (evidence.n_hidings - 1) / evidence.n_hidings  # share of rounds that show a class
    held_out = sums[0] / (evidence.n_repeats * visible)
    hidden = sums[1] / len(odds.scores[1]) * (1 - odds.share) * n_unlabelled / visible
    unlabelled = sums[2] / (evidence.n_repeats * evidence.n_folds * visible)
    present = np.ones(n_known, dtype=bool)
    # absent classes lower the common odds, so these are estimated again without them
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


def without_absent(evidence: Evidence, present: Bools, sizes: Ints) -> Evidence:
    """Leave out classes without unlabelled rows: their labels say nothing about the label rate."""

    def keep_present(group: Affinities) -> Affinities:
        return group.select(present[group.own])

    share = sizes[present].sum() / sizes.sum()
    return evidence._replace(
        held_out=keep_present(evidence.held_out),
        hidden=keep_present(evidence.hidden),
        n_kept=evidence.n_kept * float(share),
    )
