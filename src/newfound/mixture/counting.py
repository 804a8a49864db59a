"""How many novel categories are there? Hide some known classes, and see how novel rows look.

K^n is three questions in one: how much of the unlabelled part is novel, how large a category
is, and which row goes where. The first two need no clustering. Every row gets a score, how near
it is to the labelled rows of some known class. Two groups of rows have a known answer: labelled
rows that are held out behave like unlabelled rows of known classes, and labelled rows of known
classes that are hidden for a round behave like rows of novel classes. Their mean scores m_K and
m_N, and the mean score m of the unlabelled rows, give the share of known rows among these,
(m - m_N) / (m_K - m_N); hence the label rate r of the known classes, N_l / r rows of known
classes in all, and K^n = K^l (N r / N_l - 1).

Assumed: labels are missing at random, with one label rate for all known classes; known and
novel classes are exchangeable, in how they lie and in their mean size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse, stats
from scipy.special import expit
from sklearn.utils import check_array, check_random_state

from newfound.arrays import ArrayLike, Bools, Doubles, Floats, Ints, LabelsLike, RandomStateLike
from newfound.errors import InputError
from newfound.labels import UNLABELLED, encode_labels
from newfound.mixture.neighbours import balanced_graph, nearest_rows, whiten_by_neighbours
from newfound.mixture.rows import content_order, row_keys

#: More rows than this are sampled: the rate needs no more.
MAX_ROWS = 20_000
_N_DIRECTIONS = 128
_N_NEIGHBOURS = 30
_STEPS = (1, 2, 4)  # lengths of the walks on the graph
_N_FOLDS = 5  # parts that the labelled rows are held out in
_N_HIDINGS = 5  # rounds of hidden classes for each
_HIDDEN_SHARE = 0.2
#: How much a known row weighs in the score, against a novel one: less than its due, so that only
#: regions where known rows prevail count. There, hidden classes stand best for novel ones.
_KNOWN_WEIGHT = 0.1


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
    """

    n_novel: float
    interval: tuple[float, float]
    level: float
    label_rate: float
    novel_share: float
    n_known: int


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
    if partial.n_known and partial.is_labelled.all():
        return CategoryCount(0.0, (0.0, 0.0), level, 1.0, 0.0, partial.n_known)
    if partial.n_known < 2:
        raise InputError(
            f"Counting needs at least 2 known classes, since one is hidden to learn what a novel "
            f"one looks like; y names {partial.n_known}. Label rows of more classes."
        )
    sizes = np.bincount(partial.codes[partial.is_labelled])
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    order = content_order(row_keys(X), partial.codes)
    if len(order) > MAX_ROWS:
        order = order[np.sort(rng.permutation(len(order))[:MAX_ROWS])]
    evidence = _gather_evidence(X[order], partial.codes[order], rng)
    if evidence is None:  # any label rate is possible
        most = partial.n_known * (len(X) / sizes.sum() - 1)
        return CategoryCount(0.0, (0.0, most), level, 1.0, 0.0, partial.n_known)
    return _conclude(_estimate_odds(evidence), sizes, len(X), level)


class _Evidence(NamedTuple):
    """Affinities of rows to their nearest known class, in all rounds together."""

    unlabelled: Floats  # (rounds * n_u, f)
    held_out: Floats  # labelled rows held out of the references
    hidden: Floats  # labelled rows of hidden classes
    held_out_class: Ints
    hidden_class: Ints
    n_unlabelled: int
    n_kept: float  # labelled rows of classes not hidden, on average over the rounds
    n_rows: int
    n_labelled: int
    n_known: int


class _Odds(NamedTuple):
    """Unlabelled over labelled rows of known classes, (1 - r) / r."""

    value: float
    error: float  # standard error
    n_classes: int  # hidden classes that it rests on


def _gather_evidence(X: Floats, codes: Ints, rng: np.random.Generator) -> _Evidence | None:
    """Hide classes and hold out rows, round by round, and see how near all rows are to the rest.

    None where that shows nothing: all rows are alike, or too few classes or rows are labelled.
    """
    V = whiten_by_neighbours(X, _N_DIRECTIONS, rng)
    if not V.any():
        return None
    graph = balanced_graph(*nearest_rows(V, min(_N_NEIGHBOURS, len(V) - 1)))
    labelled = np.flatnonzero(codes != UNLABELLED)
    free = np.flatnonzero(codes == UNLABELLED)
    names, classes = np.unique(codes[labelled], return_inverse=True)
    if len(names) < 2 or len(free) == 0:
        return None
    # Folds are drawn from all labelled rows alike, not class by class: so a labelled row has as
    # many labelled fellows, on average, as an unlabelled one.
    fold = rng.permutation(len(labelled)) % _N_FOLDS
    hidings = _hidings(len(names), rng)
    parts: list[tuple[Floats, Floats, Floats, Ints, Ints, int]] = []
    for number in range(_N_FOLDS):
        reference = fold != number
        rounds = [next(hidings) for _ in range(_N_HIDINGS)]
        affinities = _affinities(graph, labelled[reference], classes[reference], rounds)
        for hidden, affinity in zip(rounds, affinities, strict=True):
            is_hidden = hidden[classes]
            out = ~reference & ~is_hidden
            parts.append(
                (
                    affinity[free],
                    affinity[labelled[out]],
                    affinity[labelled[is_hidden]],
                    classes[out],
                    classes[is_hidden],
                    int((~is_hidden).sum()),
                )
            )
    unlabelled, held_out, hidden_rows, held_out_class, hidden_class = (
        np.concatenate([part[i] for part in parts]) for i in range(5)
    )
    if len(held_out) == 0:
        return None
    n_kept = float(np.mean([part[5] for part in parts]))
    return _Evidence(
        unlabelled,
        held_out,
        hidden_rows,
        held_out_class,
        hidden_class,
        len(free),
        n_kept,
        len(X),
        len(labelled),
        len(names),
    )


def _hidings(n_known: int, rng: np.random.Generator) -> Iterator[Bools]:
    """Yield which classes are hidden; all of them have had their turn before one has its next."""
    n_hidden = int(np.clip(round(_HIDDEN_SHARE * n_known), 1, n_known - 1))
    queue: list[int] = []
    while True:
        hidden = np.zeros(n_known, dtype=bool)
        while hidden.sum() < n_hidden:
            queue = queue or rng.permutation(n_known).tolist()
            hidden[queue.pop()] = True
        yield hidden


def _affinities(
    graph: sparse.csr_array, references: Ints, classes: Ints, rounds: list[Bools]
) -> list[Floats]:
    """Largest affinity of every row to a class that is not hidden; (n, 3) for each round.

    The affinity to a class is the chance that a walk of a few steps ends on a labelled row of
    it, one column for each length.
    """
    columns: list[list[Floats]] = [[] for _ in rounds]
    mass = np.zeros((graph.shape[0], len(rounds[0])), dtype=np.float32)
    mass[references, classes] = 1
    for step in range(1, _STEPS[-1] + 1):
        mass = graph @ mass
        if step in _STEPS:
            for column, hidden in zip(columns, rounds, strict=True):
                column.append(np.sqrt(mass[:, ~hidden].max(axis=1).clip(min=0)))
    return [np.stack(column, axis=1) for column in columns]


def _estimate_odds(evidence: _Evidence) -> _Odds:
    """Score all rows and compare the mean scores of the three groups."""
    evidence = _standardise(evidence)
    per_label = evidence.n_unlabelled / evidence.n_kept
    prior = float(np.clip(1 / per_label, 0.02, 0.98))  # as many unlabelled known rows as labelled
    weight = prior * _KNOWN_WEIGHT / (prior * _KNOWN_WEIGHT + 1 - prior)
    coefficients = _fit_logistic(evidence.held_out, evidence.hidden, weight)
    known, novel, unlabelled = (
        _score(coefficients, rows)
        for rows in (evidence.held_out, evidence.hidden, evidence.unlabelled)
    )
    gap = max(float(known.mean() - novel.mean()), 1e-6)
    share = float(np.clip((unlabelled.mean() - novel.mean()) / gap, 0, 1))
    variance = _share_variance(evidence, known, novel, share) / gap**2
    n_classes = len(np.unique(evidence.hidden_class))
    return _Odds(share * per_label, per_label * float(np.sqrt(variance)), n_classes)


def _share_variance(evidence: _Evidence, known: Doubles, novel: Doubles, share: float) -> float:
    """Variance of the difference of mean scores that the share is read from.

    Two things were left to chance: which classes are known, so that they could be hidden, and
    which are novel; and which rows of the known classes are labelled. Neighbourhood being
    symmetric, a pair of rows or classes that lie close is seen from both ends: hence the factor
    2 before the variance of a mean.
    """
    odds = share * evidence.n_unlabelled / evidence.n_kept
    n_novel = evidence.n_known * (evidence.n_rows / evidence.n_labelled / (1 + odds) - 1)
    of_hidden = _class_means(novel, evidence.hidden_class, evidence.n_known)
    of_hidden = of_hidden[np.isfinite(of_hidden)]
    by_class = float(np.square(of_hidden - novel.mean()).sum()) / max(1, len(of_hidden) - 1)
    by_class *= (1 - share) ** 2 * (1 / len(of_hidden) + 1 / max(1.0, n_novel))
    of_known = _class_means(known, evidence.held_out_class, evidence.n_known)
    by_row = float(np.square(known - of_known[evidence.held_out_class]).mean())
    by_row *= share**2 * (1 / evidence.n_kept + 1 / max(1.0, share * evidence.n_unlabelled))
    return 2 * (by_class + by_row)


def _standardise(evidence: _Evidence) -> _Evidence:
    """Affinities in units of their spread among the held-out rows."""
    mean, spread = evidence.held_out.mean(axis=0), evidence.held_out.std(axis=0)
    spread = np.where(spread > 1e-6, spread, 1)
    return evidence._replace(
        unlabelled=(evidence.unlabelled - mean) / spread,
        held_out=(evidence.held_out - mean) / spread,
        hidden=(evidence.hidden - mean) / spread,
    )


def _class_means(values: Doubles, classes: Ints, n_classes: int) -> Doubles:
    """Mean of the values of each class, NaN for a class without any."""
    counts = np.bincount(classes, minlength=n_classes)
    sums = np.bincount(classes, values, minlength=n_classes)
    return np.divide(sums, counts, out=np.full(n_classes, np.nan), where=counts > 0)


def _fit_logistic(known: Floats, novel: Floats, weight: float) -> Doubles:
    """Ridge logistic regression of known against novel rows, by Newton's method.

    The known rows weigh `weight` in all, the novel rows the rest.
    """
    design = np.concatenate([known, novel]).astype(np.float64)
    design = np.concatenate([np.ones((len(design), 1)), design], axis=1)
    target = np.repeat([1.0, 0.0], [len(known), len(novel)])
    weights = np.repeat([weight / len(known), (1 - weight) / len(novel)], [len(known), len(novel)])
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


def _conclude(odds: _Odds, sizes: Ints, n_rows: int, level: float) -> CategoryCount:
    """From the odds to K^n and its interval.

    Parameters
    ----------
    odds : _Odds
        (1 - r) / r with its standard error.
    sizes : ndarray of int, shape (K^l,)
        Labelled rows of each known class.
    n_rows : int
        Number of all rows N.
    level : float
        Probability of the interval.
    """
    n_known, n_labelled = len(sizes), int(sizes.sum())

    def rate_of(inverse: float) -> float:
        return float(np.clip(1 / max(inverse, 1.0), n_labelled / n_rows, 1))

    def novel_of(inverse: float) -> float:
        return n_known * (n_rows * rate_of(inverse) / n_labelled - 1)

    inverse = 1 + odds.value  # 1 / r
    reach = float(stats.t.ppf(0.5 + level / 2, max(1, odds.n_classes - 1))) * odds.error
    n_novel, rate = novel_of(inverse), rate_of(inverse)
    low, high = novel_of(inverse + reach), novel_of(inverse - reach)
    # unequal classes: the novel ones need not be as large on average as the known ones
    mean = float(sizes.mean())
    squared_cv = max(0.0, (float(sizes.var(ddof=1)) - (1 - rate) * mean) / mean**2)
    size_error = np.sqrt(squared_cv * (1 / n_known + 1 / max(1.0, n_novel)))
    size_reach = float(stats.norm.ppf(0.5 + level / 2) * size_error)
    if n_novel > 0:
        high = n_novel * float(np.exp(np.hypot(np.log(max(high / n_novel, 1.0)), size_reach)))
        if low > 0:
            low = n_novel * float(np.exp(-np.hypot(np.log(max(n_novel / low, 1.0)), size_reach)))
    n_unlabelled = n_rows - n_labelled
    return CategoryCount(
        n_novel=n_novel,
        interval=(min(low, n_novel), max(high, n_novel)),
        level=level,
        label_rate=rate,
        novel_share=float(np.clip((n_rows - n_labelled / rate) / n_unlabelled, 0, 1)),
        n_known=n_known,
    )
