"""How large novel classes are, by the number of rows within reach of a row.

Let d be the number of rows within a given distance of a row, itself included. In a small class d
is small, so the mean of log d over the rows of novel classes, compared with that over the rows of
known classes, tells how sizes compare.

How much this mean depends on size is measured, not assumed: labelled rows of some known classes
are dropped, all other rows stay, and the mean changes. How much it differs between classes of like
sizes shows in known classes, too. Distances at which known classes make about one cluster each
tell most; the sum of 1/d is the number of clusters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from newfound.arrays import Doubles, Floats, Ints
from newfound.labels import UNLABELLED
from newfound.mixture.counting.drawing import sample_rows
from newfound.mixture.counting.hiding import Affinities
from newfound.mixture.counting.mass import Mass
from newfound.mixture.rows import row_blocks

#: Larger collections are sampled.
MAX_ROWS = 6_000
#: Clusters per known class at the smallest and largest distance, and the number of distances.
_CLUSTERS_PER_CLASS = (2.8, 0.7)
_N_DISTANCES = 8
#: Distances to choose from, and labelled rows by which they are chosen.
_N_CANDIDATES, _N_SAMPLED = 48, 800
#: How often known classes are divided in two halves, to compare one half with the other.
_N_SPLITS = 60
#: Smallest and largest share of the labelled rows that is dropped from half of the classes.
_DROPPED = (0.4, 0.85)
#: A smaller slope tells nothing.
_LEAST_SLOPE = 0.02


class Novelty(NamedTuple):
    """How novel rows look on average over the rounds, between 0 and 1; each of shape (n,)."""

    as_unlabelled: Doubles  # unlabelled rows
    of_known: Doubles  # labelled rows, as if they were unlabelled rows of known classes
    as_hidden: Doubles  # labelled rows, as if they were rows of novel classes


class Reach(NamedTuple):
    """What the numbers of rows within reach say about sizes.

    Let τ be the log of the mean size of known classes over that of novel classes. The ratio is
    log_ratio = slope · τ + noise. The variance of the noise is
    ``class_variance · (1 / K^l + 1 / K^n) + own_variance``.
    """

    log_ratio: float  # mean of log d over known rows, less that over novel rows
    slope: float
    class_variance: float
    own_variance: float
    n_known: int


def measure_reach(
    V: Floats,
    codes: Ints,
    novelty: Novelty,
    *,
    odds: float,
    odds_error: float,
    rng: np.random.Generator,
) -> Reach | None:
    """Compare the numbers of rows within reach of novel and of known rows.

    Parameters
    ----------
    V : ndarray of shape (n, q)
        Rows of unit length.
    codes : ndarray of int, shape (n,)
        Known classes without gaps, all of which have unlabelled rows; -1 where a row is
        unlabelled, -2 for labelled rows of other classes.
    novelty : Novelty
        How novel the rows look.
    odds, odds_error : float
        Unlabelled over labelled rows of known classes, with the standard error.
    rng : Generator
        Draws the sample, the halves of the known classes, and the rows to drop.

    Returns
    -------
    Reach or None
        None if there are too few novel rows to tell.
    """
    n_known = int(codes.max()) + 1
    taken = sample_rows(codes, MAX_ROWS, rng)
    V, codes, novelty = V[taken], codes[taken], Novelty(*(values[taken] for values in novelty))
    labelled, free = np.flatnonzero(codes >= 0), np.flatnonzero(codes == UNLABELLED)
    classes = codes[labelled]
    n_novel = len(free) - odds * len(labelled)
    own_error = odds_error * len(labelled) / max(n_novel, 1.0)
    if n_novel < 2 or own_error > 1 or len(np.unique(classes)) < n_known or n_known < 2:
        return None
    unlabelled, known, hidden = (
        novelty.as_unlabelled[free],
        novelty.of_known[labelled],
        novelty.as_hidden[labelled],
    )
    # rows that look known count little, so that it matters little which of them have labels
    weight = unlabelled.sum() - odds * known.sum()
    if weight <= odds_error * known.sum():
        return None
    distances = _choose_distances(V, labelled, (1 + odds) / n_known, rng)
    of_free = np.log(_count_within(V[free], V, distances))
    within = _count_within(V[labelled], V, distances)
    of_labelled = np.log(within)
    of_known = known @ of_labelled
    novel = (unlabelled @ of_free - odds * of_known) / weight
    by_odds = (novel * known.sum() - of_known) / weight  # derivative of `novel` by the odds
    splits = _Splits.draw(classes, n_known, rng)
    return Reach(
        log_ratio=float((hidden @ of_labelled / hidden.sum() - novel).mean()),
        slope=_slope(V[labelled], within, distances, splits, odds),
        class_variance=_class_variance(of_labelled, hidden, n_known, splits),
        own_variance=float(odds_error * by_odds.mean()) ** 2,
        n_known=n_known,
    )


def _choose_distances(
    V: Floats, labelled: Ints, weight: float, rng: np.random.Generator
) -> Doubles:
    """Squared distances at which known classes make about one cluster each.

    The sum of 1/d over the rows of known classes is their number of clusters; `weight` is what
    a labelled row stands for, over the number of classes.
    """
    rows = V[rng.permutation(labelled)[:_N_SAMPLED]]
    squared = np.maximum(2 - 2 * (rows @ rows.T), 0)[np.triu_indices(len(rows), 1)]
    candidates = np.quantile(squared, np.geomspace(1e-4, 0.5, _N_CANDIDATES)).astype(np.float64)
    clusters = (1 / _count_within(rows, V, candidates)).mean(axis=0) * len(labelled) * weight
    wanted = np.geomspace(*_CLUSTERS_PER_CLASS, _N_DISTANCES)
    # clusters become fewer as the distance grows; np.interp wants growing numbers
    chosen: Doubles = np.interp(-np.log(wanted), -np.log(clusters), candidates)
    return chosen


def _count_within(rows: Floats, V: Floats, distances: Doubles) -> Ints:
    """Number of rows of V within each squared distance of each row, at least 1."""
    counts = np.empty((len(rows), len(distances)), dtype=np.int64)
    cosines = (1 - distances / 2).astype(np.float32)
    for block in row_blocks(len(rows), len(V)):
        similar = rows[block] @ V.T
        for place, least in enumerate(cosines):
            counts[block, place] = np.count_nonzero(similar >= least, axis=1)
    return np.maximum(counts, 1)


class _Splits(NamedTuple):
    """Halves of the known classes, and labelled rows to drop; one column for each split."""

    in_half: Floats  # (n_labelled, n_splits)
    dropped: Floats  # (n_labelled, n_splits), of both halves

    @classmethod
    def draw(cls, classes: Ints, n_known: int, rng: np.random.Generator) -> _Splits:
        ranks = np.argsort(rng.random((_N_SPLITS, n_known)), axis=1)
        in_half = (ranks < n_known // 2).T[classes]
        dropped = rng.random(in_half.shape) < rng.uniform(*_DROPPED, size=_N_SPLITS)
        return cls(in_half.astype(np.float32), dropped.astype(np.float32))


def _slope(V: Floats, within: Ints, distances: Doubles, splits: _Splits, odds: float) -> float:
    """Change of the log ratio for each unit of τ, when half of the known classes lose rows.

    The same rows are compared before and after, those of the half that stay and all of the other.
    """
    similar = V @ V.T
    products = squares = 0.0
    for half in (splits.in_half, 1 - splits.in_half):
        drop, stay = half * splits.dropped, half * (1 - splits.dropped)
        # few labels: a split may drop all rows of the half, or none
        usable = (stay.sum(axis=0) >= 2) & (drop.sum(axis=0) >= 1)
        drop, stay, other = drop[:, usable], stay[:, usable], 1 - half[:, usable]
        size = half[:, usable].sum(axis=0) * (1 + odds)
        tau = np.log(size / (size - drop.sum(axis=0)))
        changes = []
        for place, distance in enumerate(distances):
            near = (similar >= np.float32(1 - distance / 2)).astype(np.float32)
            before = within[:, place, None]
            loss = np.log(before / np.maximum(before - near @ drop, 1))
            changes.append(_mean(loss, stay) - _mean(loss, other))
        products += float(np.mean(changes, axis=0) @ tau)
        squares += float(tau @ tau)
    return max(products / squares, _LEAST_SLOPE) if squares > 0 else _LEAST_SLOPE


def _class_variance(of_labelled: Doubles, weights: Doubles, n_known: int, splits: _Splits) -> float:
    """Variance of the log ratio for one class against one, from halves of the known classes."""
    half = splits.in_half.astype(np.float64)
    n_half = n_known // 2
    mean = of_labelled.mean(axis=1, keepdims=True)  # over the distances, as the ratio itself
    ratios = _mean(mean, half * weights[:, None]) - _mean(mean, (1 - half) * weights[:, None])
    return float(np.square(ratios).mean()) / (1 / n_half + 1 / (n_known - n_half))


def _mean(values: Doubles, weights: Floats | Doubles) -> Doubles:
    """Weighted mean over the rows, for each split."""
    mean: Doubles = (weights * values).sum(axis=0) / weights.sum(axis=0)
    return mean


def reach_of(mass: Mass, V: Floats, codes: Ints, rng: np.random.Generator) -> Reach | None:
    """Measure the rows within reach, with absent classes as mere background.

    Parameters
    ----------
    mass : Mass
        How many rows are novel, and the evidence for it.
    V : ndarray of shape (n, q)
        Rows of unit length.
    codes : ndarray of int, shape (n,)
        Known classes, -1 where a row is unlabelled.
    rng : Generator
        Draws rows.
    """
    number = np.where(mass.present, np.cumsum(mass.present) - 1, -2)
    shown = np.where(codes == UNLABELLED, UNLABELLED, number[codes])
    evidence, (known, hidden, free) = mass.evidence, mass.odds.scores
    held_out = _mean_novelty(evidence.held_out, known, len(codes))
    covered = _mean_novelty(evidence.hidden, hidden, len(codes))
    # unlabelled rows of a known class look novel, too, in the rounds that hide their class
    share = 1 / evidence.n_hidings
    novelty = Novelty(
        as_unlabelled=_mean_novelty(evidence.unlabelled, free, len(codes)),
        of_known=(1 - share) * held_out + share * covered,
        as_hidden=covered,
    )
    odds = float(mass.quantiles(np.array(0.5)))
    return measure_reach(V, shown, novelty, odds=odds, odds_error=mass.odds_error, rng=rng)


def _mean_novelty(group: Affinities, scores: Doubles, n_rows: int) -> Doubles:
    """Mean over the rounds of how novel each row looked; the mean of all for the others."""
    times = np.bincount(group.row, minlength=n_rows)
    sums = np.bincount(group.row, 1 - scores, minlength=n_rows)
    return np.divide(sums, times, out=np.full(n_rows, float((1 - scores).mean())), where=times > 0)
