"""How large categories are expected to be, judged by the sizes of the known ones (D28).

Like the count of the categories, this assumes that known and novel classes are alike. If known
classes all have one size, so have novel ones; if known sizes have a long tail, so have novel ones.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2, rankdata

from newfound.arrays import Doubles, Floats, Ints
from newfound.labels import UNLABELLED
from newfound.mixture.rows import row_blocks, squared_distances

#: ε: how soft the assignment by sizes is, in squared distances of unit-length rows.
SOFTNESS = 0.04
#: Maximum number of rounds of `fit_sizes`, and the accepted relative error of a size.
_N_ROUNDS, _TOLERANCE = 80, 0.02
#: Fewer known classes than this do not show how sizes differ.
_LEAST_CLASSES = 5
#: Numbers of labels that are more even than chance allows at this level were not drawn at random.
_TOO_EVEN = 0.03
#: Largest coefficient of variation of sizes that count as alike.
_LARGEST_SPREAD = 0.3
#: Largest accepted ratio of unlabelled rows in known classes to the expected number, or inverse.
_FACTOR = 3.0
#: Smallest expected size of a component, as a share of the mean size, before scaling.
_LEAST_SHARE = 0.1


def expected_sizes(codes: Ints, labels: Ints, n_components: int) -> Doubles:
    """Expected number of unlabelled rows of each component.

    A class has n/K rows on average. For a known class, the number of its labelled rows over the
    label rate is a second estimate. The two are combined by empirical Bayes: the second counts as
    far as known classes differ by more than the random draw of labels explains. Novel components
    get the quantiles of the sizes of known classes, the largest component the highest.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Known class of each row or -1.
    labels : ndarray of shape (n,)
        Component of each row, known classes first; gives the order of the novel sizes.
    n_components : int
        K.

    Returns
    -------
    ndarray of shape (K,)
        Expected numbers; their sum is the number of unlabelled rows.
    """
    labelled = np.bincount(codes[codes != UNLABELLED], minlength=int(codes.max()) + 1)
    n_known, mean = len(labelled), len(codes) / n_components
    known = np.full(n_known, mean)
    if n_known > 1:
        rate = min(labelled.mean() / mean, 1.0)
        by_labels = labelled / rate
        by_chance, observed = mean * (1 - rate) / rate, by_labels.var(ddof=1)
        known += max(0.0, 1 - by_chance / observed if observed > 0 else 0) * (by_labels - mean)
    n_novel = n_components - n_known
    # components of equal size share the mean of their ranks, whatever their numbers are
    ranks = rankdata(np.bincount(labels, minlength=n_components)[n_known:])
    novel = np.quantile(known if n_known else [mean], (ranks - 0.5) / max(n_novel, 1))
    unlabelled = np.concatenate([known - labelled, novel]).clip(min=_LEAST_SHARE * mean)
    expected: Doubles = unlabelled * ((codes == UNLABELLED).sum() / unlabelled.sum())
    return expected


def sizes_are_alike(codes: Ints, labels: Ints, n_components: int) -> bool:
    """Whether labels suggest that categories have similar sizes, and are a random part of them.

    If labels are drawn at random, their numbers vary from class to class by chance. If they vary
    less, each class was given a quota, which says nothing about its size. If they vary much more,
    the sizes of the classes vary. Finally, known classes must hold about as many unlabelled rows as
    the labels suggest. They hold hardly any if all rows of known classes have been labelled.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Known class of each row or -1.
    labels : ndarray of shape (n,)
        Component of each row, known classes first, by the nearest prototype.
    n_components : int
        K.

    Returns
    -------
    bool
        Also False if fewer than five classes are known.
    """
    labelled = np.bincount(codes[codes != UNLABELLED], minlength=int(codes.max()) + 1)
    n_known, mean = len(labelled), len(codes) / n_components
    if n_known < _LEAST_CLASSES or labelled.mean() >= mean:
        return False
    by_chance = labelled.mean() * (1 - labelled.mean() / mean)
    spread, freedom = labelled.var(ddof=1), n_known - 1
    too_even = chi2.cdf(freedom * spread / by_chance, freedom) < _TOO_EVEN
    uneven = spread - by_chance > (_LARGEST_SPREAD * labelled.mean()) ** 2
    held = np.count_nonzero((codes == UNLABELLED) & (labels < n_known))
    expected = expected_sizes(codes, labels, n_components)[:n_known].sum()
    return bool(not too_even and not uneven and 1 / _FACTOR < held / expected < _FACTOR)


def fit_sizes(
    V: Floats, prototypes: Doubles, n_known: int, sizes: Doubles
) -> tuple[Doubles, Doubles]:
    r"""Move novel prototypes and adjust weights until components have the expected sizes.

    This is EM of equal spherical components, with one change: the weights are not the shares of
    rows that the components have, but are chosen such that they get the expected shares.

    .. math::
        r_{ik} ∝ w_k \exp(-|v_i - μ_k|^2/ε), \quad w_k ← w_k n_k / \sum_i r_{ik},
        \quad μ_k ← \sum_i r_{ik} v_i / \sum_i r_{ik}

    Parameters
    ----------
    V : ndarray of shape (n, q)
        Unlabelled rows, at unit length.
    prototypes : ndarray of shape (K, q)
        μ to start with.
    n_known : int
        K^l; the prototypes of known classes do not move.
    sizes : ndarray of shape (K,)
        n_k > 0; their sum is n.

    Returns
    -------
    prototypes : ndarray of shape (K, q)
        μ.
    offsets : ndarray of shape (K,)
        ε·log w, to be subtracted from the squared distances.
    """
    prototypes, log_weights = prototypes.copy(), np.zeros(len(sizes))
    labels = np.full(len(V), -1)
    for _ in range(_N_ROUNDS):
        held, sums, before = np.zeros(len(sizes)), np.zeros_like(prototypes), labels.copy()
        for block in row_blocks(len(V), max(prototypes.shape)):
            shares = squared_distances(V[block], prototypes.astype(V.dtype))
            shares *= -1 / SOFTNESS
            shares += log_weights.astype(V.dtype)
            labels[block] = shares.argmax(axis=1)
            shares -= shares.max(axis=1, keepdims=True)
            np.exp(shares, out=shares)
            shares /= shares.sum(axis=1, keepdims=True)
            held += shares.sum(axis=0, dtype=np.float64)
            sums += shares.T @ V[block]
        # a component that is far from all rows may hold exactly 0
        held = held.clip(min=np.finfo(V.dtype).tiny)
        step = np.log(sizes / held)
        log_weights += step
        prototypes[n_known:] = sums[n_known:] / held[n_known:, None]
        if np.abs(step).max() < _TOLERANCE and np.array_equal(labels, before):
            break
    return prototypes, SOFTNESS * log_weights
