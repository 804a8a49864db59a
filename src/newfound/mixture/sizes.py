"""How large components are expected to be, and a partition that heeds it (D28).

The known classes show how much sizes differ, and the count shows how many rows are novel. A
component of the nearest prototypes may be far larger or smaller than that, because it holds two
categories or a part of one. How much the expectation counts is no setting: it is the share of the
differences between found and expected sizes that true sizes do not explain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

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
#: Maximum number of rounds of `fit_sizes`, and the accepted relative error of a size.
_N_ROUNDS, _TOLERANCE = 400, 0.02
#: Rounds of the weights for each move of the prototypes. If both change in every round, they may
#: go round in circles.
_ROUNDS_PER_MOVE = 3

#: An array of float64: of numpy, or of torch on the device of the rows.
Array = Any
#: From prototypes (K, q) and log weights (K,): the shares of rows that the components hold, summed
#: over the rows (K,), and the rows weighted by these shares (K, q).
ShareRows = Callable[[Array, Array], tuple[Array, Array]]


class ExpectedSizes(NamedTuple):
    """Expected numbers of unlabelled rows."""

    unlabelled: Array  # (K,)
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

    prototypes: Array  # (K, q)
    offsets: Array  # (K,) ε·log w, to be subtracted from the squared distances
    sizes: Array  # (K,) numbers of unlabelled rows, by shares
    converged: bool


def fit_sizes(
    share_rows: ShareRows, prototypes: Array, n_known: int, expected: ExpectedSizes, xp: Any = np
) -> FittedSizes:
    r"""Move novel prototypes and adjust weights until components have about the expected sizes.

    This is EM of equal spherical components with other weights, those of unbalanced optimal
    transport. With the sizes h that the components hold:

    .. math::
        r_{ik} ∝ w_k \exp(-|v_i - μ_k|^2/ε), \quad h_k = \sum_i r_{ik},
        \quad w_k ← (w_k n_k / h_k)^g, \quad μ_k ← \sum_i r_{ik} v_i / h_k

    g = 1 - s²/δ² is the gain of the expectation: s² is the variance of true sizes around the
    expected ones, and δ² that of the sizes that nearest prototypes give, both on a log scale. If
    all classes are of one size, s² = 0 and the expected sizes are reached; if sizes differ as much
    as those that are found, g = 0 and nothing is changed. Prototypes move in every third round.

    Parameters
    ----------
    share_rows : callable
        Shares the rows among the components; see `ShareRows`, and `share_by_distance`.
    prototypes : ndarray of shape (K, q)
        μ to start with, of float64.
    n_known : int
        K^l; the prototypes of known classes do not move.
    expected : ExpectedSizes
        n_k > 0, and s².
    xp : module, default=numpy
        numpy, or torch if all arrays are tensors on one device.

    Returns
    -------
    FittedSizes
        Prototypes, offsets and sizes.
    """
    prototypes, log_weights = prototypes + 0.0, 0.0 * expected.unlabelled  # copies
    held, sums = share_rows(prototypes, log_weights)
    found = float(xp.square(xp.log(expected.unlabelled / held)).mean())
    gain = max(0.0, 1 - expected.log_variance / found) if found > 0 else 0.0
    converged = gain == 0
    for number in range(_N_ROUNDS if gain > 0 else 0):
        wanted = gain * (log_weights + xp.log(expected.unlabelled / held))
        step, log_weights = xp.abs(wanted - log_weights).max(), wanted
        if number % _ROUNDS_PER_MOVE == 0:
            prototypes[n_known:] = sums[n_known:] / held[n_known:, None]
        held, sums = share_rows(prototypes, log_weights)
        # a round after a move shows what it has changed; only then a GPU has to be waited for
        if number % _ROUNDS_PER_MOVE == 1 and float(step) < _TOLERANCE:
            converged = True
            break
    return FittedSizes(prototypes, SOFTNESS * log_weights, held, converged)


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
