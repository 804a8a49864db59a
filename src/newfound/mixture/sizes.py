"""How large components are expected to be, and a partition that heeds it (D28).

The known classes show how much sizes differ, and the count shows how many rows are novel. A
component of the nearest prototypes may be far larger or smaller than that, because it holds two
categories or a part of one. How much the expectation counts is no setting: it is the share of the
differences between found and expected sizes that true sizes do not explain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from newfound.arrays import Doubles, Floats, Ints
from newfound.labels import UNLABELLED
from newfound.mixture.counting.drawing import labelled_by_class
from newfound.mixture.counting.novel_size import Sizes
from newfound.mixture.rows import row_blocks, squared_distances

#: ε: how soft the assignment by sizes is, in squared distances of unit-length rows.
SOFTNESS = 0.04
#: Fewer known classes than this do not show how sizes differ.
LEAST_CLASSES = 5
#: With a higher label rate, too few rows of known classes are unlabelled to expect a number.
_LARGEST_RATE = 0.9
#: Smallest expected size of a component, as a share of the mean of its kind.
_LEAST_SHARE = 0.1
#: Maximum number of times that `fit_sizes` shares the rows, and the accepted relative error of a
#: size.
_N_ROUNDS, _TOLERANCE = 1000, 0.02
#: Rounds that a step of the weights looks back on.
_MEMORY = 5

#: From prototypes (K, q) and log weights (K,): the shares of rows that the components hold, summed
#: over the rows (K,), and the rows weighted by these shares (K, q).
ShareRows = Callable[[Doubles, Doubles], tuple[Doubles, Doubles]]


class ExpectedSizes(NamedTuple):
    """Expected numbers of unlabelled rows."""

    unlabelled: Doubles  # (K,)
    log_variance: float  # of the true sizes around them, on a log scale


def expect_sizes(
    codes: Ints, labels: Ints, n_components: int, sizes: Sizes | None, n_novel_rows: float
) -> ExpectedSizes | None:
    """Expect a number of unlabelled rows in each component.

    The size of a known class is the number of its labels over the label rate, drawn to the mean as
    far as the random draw of labels explains the differences. Novel components have the same
    relative sizes as known classes, the largest component the largest; their mean is the number of
    novel rows over the number of novel components.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Known class of each row or -1.
    labels : ndarray of shape (n,)
        Component of each row, known classes first; gives the order of the novel sizes.
    n_components : int
        K.
    sizes : {"unknown", "alike"}, float or None
        What is known about the mean size of novel categories; None to expect nothing.
    n_novel_rows : float
        How many rows are novel; NaN if nobody has counted. Used if the sizes are unknown.

    Returns
    -------
    ExpectedSizes or None
        None if nothing can be expected: there are no novel components, fewer than five known
        classes, hardly an unlabelled row of known classes, or each class was given the same number
        of labels, which hides its size.
    """
    n_labels = np.bincount(codes[codes != UNLABELLED], minlength=int(codes.max()) + 1)
    n_known, n_novel = len(n_labels), n_components - len(n_labels)
    n_free = int((codes == UNLABELLED).sum())
    if sizes is None or n_known < LEAST_CLASSES or n_novel < 1:
        return None
    if sizes != "unknown":
        ratio = 1.0 if sizes == "alike" else float(sizes)
        n_novel_rows = len(codes) * ratio * n_novel / (ratio * n_novel + n_known)
    elif np.isnan(n_novel_rows):
        n_novel_rows = float(((labels >= n_known) & (codes == UNLABELLED)).sum())
    n_novel_rows = min(n_novel_rows, n_free)
    rate = n_labels.sum() / (len(codes) - n_novel_rows)
    if n_novel_rows < n_novel or rate > _LARGEST_RATE or labelled_by_class(n_labels, rate):
        return None
    known, log_variance = _known_sizes(n_labels, rate)
    ranks = np.argsort(np.argsort(np.bincount(labels, minlength=n_components)[n_known:]))
    novel = np.quantile(known, (ranks + 0.5) / n_novel)
    novel *= n_novel_rows / novel.sum()
    unlabelled = np.concatenate(
        [
            (known - n_labels).clip(min=_LEAST_SHARE * known.mean()),
            novel.clip(min=_LEAST_SHARE * novel.mean()),
        ]
    )
    return ExpectedSizes(unlabelled * (n_free / unlabelled.sum()), log_variance)


def _known_sizes(n_labels: Ints, rate: float) -> tuple[Doubles, float]:
    """Sizes of the known classes, labelled rows included, and their variance on a log scale."""
    by_labels, mean = n_labels / rate, n_labels.mean() / rate
    observed, by_chance = by_labels.var(ddof=1), mean * (1 - rate) / rate
    real = max(0.0, observed - by_chance)
    drawn = real / observed if observed > 0 else 0.0
    return mean + drawn * (by_labels - mean), float(np.log1p(real / mean**2))


class FittedSizes(NamedTuple):
    """A partition that heeds the expected sizes."""

    prototypes: Doubles  # (K, q)
    offsets: Doubles  # (K,) ε·log w, to be subtracted from the squared distances
    sizes: Doubles  # (K,) numbers of unlabelled rows, by shares
    converged: bool
    n_rounds: int  # how often the rows were shared


def fit_sizes(
    share_rows: ShareRows,
    prototypes: Doubles,
    n_known: int,
    expected: ExpectedSizes,
    start: Doubles | None = None,
) -> FittedSizes:
    r"""Move novel prototypes and adjust weights until components have about the expected sizes.

    This is EM of equal spherical components with other weights, those of unbalanced optimal
    transport. With the sizes h that the components hold:

    .. math::
        r_{ik} ∝ w_k \exp(-|v_i - μ_k|^2/ε), \quad h_k = \sum_i r_{ik},
        \quad w_k = (w_k n_k / h_k)^g, \quad μ_k = \sum_i r_{ik} v_i / h_k

    g = 1 - s²/δ² is the gain of the expectation: s² is the variance of true sizes around the
    expected ones, and δ² that of the sizes that nearest prototypes give, both on a log scale. If
    all classes are of one size, s² = 0 and the expected sizes are reached; if sizes differ as much
    as those that are found, g = 0 and nothing is changed.

    For fixed prototypes the weights are found first, and only then the prototypes move. Each of the
    two lowers the same cost of transport, so it ends; with weights that are only half found,
    prototypes may go round in circles.

    Parameters
    ----------
    share_rows : callable
        Shares the rows among the components; see `ShareRows`, and `share_by_distance`.
    prototypes : ndarray of shape (K, q)
        μ of a partition that knows nothing of sizes, of float64; δ² is measured there.
    n_known : int
        K^l; the prototypes of known classes do not move.
    expected : ExpectedSizes
        n_k > 0, and s².
    start : ndarray of shape (K, q), optional
        μ to start from, if a partition with such sizes was found before; else `prototypes`.

    Returns
    -------
    FittedSizes
        Prototypes, offsets and sizes.
    """
    prototypes, log_weights = prototypes.copy(), np.zeros(len(prototypes))
    held, sums = share_rows(prototypes, log_weights)
    found = float(np.square(np.log(expected.unlabelled / held)).mean())
    gain = max(0.0, 1 - expected.log_variance / found) if found > 0 else 0.0
    n_rounds, converged, has_moved = 1, gain == 0, False
    if start is not None and not converged:
        prototypes[n_known:], n_rounds = start[n_known:], 2
        held, sums = share_rows(prototypes, log_weights)
    steps = _Steps()
    while not converged and n_rounds < _N_ROUNDS:
        error = gain * (log_weights + np.log(expected.unlabelled / held)) - log_weights
        if np.abs(error).max() >= _TOLERANCE:
            log_weights = steps.next(log_weights, error)
        elif has_moved and not steps.errors:  # the move has changed nothing
            converged = True
            break
        else:
            prototypes[n_known:] = sums[n_known:] / held[n_known:, None]
            steps, has_moved = _Steps(), True
        held, sums = share_rows(prototypes, log_weights)
        n_rounds += 1
    return FittedSizes(prototypes, SOFTNESS * log_weights, held, converged, n_rounds)


class _Steps:
    """Steps to a point x with f(x) = x, from points and their errors f(x) - x.

    A plain step goes to f(x). Anderson's acceleration goes to the combination of the last points
    whose errors, if f were linear, would cancel. After a step that made the error larger, it starts
    anew with a plain one.
    """

    def __init__(self) -> None:
        self.points: list[Doubles] = []
        self.errors: list[Doubles] = []

    def next(self, point: Doubles, error: Doubles) -> Doubles:
        """The point to try next."""
        if self.errors and np.abs(error).max() > np.abs(self.errors[-1]).max():
            self.points, self.errors = [], []
        ahead = point + error
        if self.errors:
            errors = np.stack(self.errors) - error
            shares = np.linalg.lstsq(errors.T, -error, rcond=1e-6)[0]
            ahead = ahead + shares @ (np.stack(self.points) + np.stack(self.errors) - ahead)
        self.points = [*self.points, point][-_MEMORY:]
        self.errors = [*self.errors, error][-_MEMORY:]
        return ahead


def share_by_distance(V: Floats) -> ShareRows:
    """Share rows by their distances from the prototypes."""

    def share(prototypes: Doubles, log_weights: Doubles) -> tuple[Doubles, Doubles]:
        held, sums = np.zeros(len(prototypes)), np.zeros_like(prototypes)
        for block in row_blocks(len(V), max(prototypes.shape)):
            shares = squared_distances(V[block], prototypes.astype(V.dtype))
            shares *= -1 / SOFTNESS
            shares += log_weights.astype(V.dtype)
            shares -= shares.max(axis=1, keepdims=True)
            np.exp(shares, out=shares)
            shares /= shares.sum(axis=1, keepdims=True)
            held += shares.sum(axis=0, dtype=np.float64)
            sums += shares.T @ V[block]
        # a component that is far from all rows may hold exactly 0
        return held.clip(min=np.finfo(np.float32).tiny), sums

    return share
