"""How large categories may be expected to be, from the sizes of the known ones.

The count of the categories takes known and novel classes as alike; so does this. Where known
classes are of one size, all are; where they have a long tail, novel ones have the same.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from newfound.arrays import Doubles, Floats, Ints
from newfound.labels import UNLABELLED
from newfound.mixture.rows import row_blocks, squared_distances

#: ε: how soft the assignment by sizes is, in squared distances of unit-length rows.
SOFTNESS = 0.04
#: Most rounds of `fit_sizes`, and how near, as a share, sizes are to come.
_N_ROUNDS, _TOLERANCE = 80, 0.02
#: Fewer known classes do not tell how sizes differ.
_LEAST_CLASSES = 5
#: Labels that chance would make as even as this so seldom were not drawn at random.
_TOO_EVEN = 0.03
#: The most that sizes may differ to be alike, as a coefficient of variation.
_LARGEST_SPREAD = 0.3
#: By how much unlabelled rows in known classes may be more or fewer than expected.
_FACTOR = 3.0
#: The least that a component is expected to hold, as a share of a mean class, before scaling.
_LEAST_SHARE = 0.1


def expected_sizes(codes: Ints, labels: Ints, n_components: int) -> Doubles:
    """Unlabelled rows that each component may be expected to hold.

    A class has n/K rows in the mean. Its labelled rows tell more: their number over the label
    rate, as far as known classes differ by more than the draw of the labels explains
    (empirical Bayes). The novel components take the quantiles of these sizes, the largest
    the highest.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Known class of each row or -1.
    labels : ndarray of shape (n,)
        Component of each row, known classes first.
    n_components : int
        K.

    Returns
    -------
    ndarray of shape (K,)
        Expected numbers; their sum is that of the unlabelled rows.
    """
    labelled = np.bincount(codes[codes != UNLABELLED], minlength=int(codes.max()) + 1)
    n_known, mean = len(labelled), len(codes) / n_components
    known = np.full(n_known, mean)
    if n_known > 1:
        rate = min(labelled.mean() / mean, 1.0)
        by_labels = labelled / rate
        of_the_draw, observed = mean * (1 - rate) / rate, by_labels.var(ddof=1)
        known += max(0.0, 1 - of_the_draw / observed if observed > 0 else 0) * (by_labels - mean)
    n_novel = n_components - n_known
    ranks = np.argsort(np.argsort(np.bincount(labels, minlength=n_components)[n_known:]))
    novel = np.quantile(known if n_known else [mean], (ranks + 0.5) / max(n_novel, 1))
    unlabelled = np.concatenate([known - labelled, novel]).clip(min=_LEAST_SHARE * mean)
    expected: Doubles = unlabelled * ((codes == UNLABELLED).sum() / unlabelled.sum())
    return expected


def sizes_are_alike(codes: Ints, labels: Ints, n_components: int) -> bool:
    """Whether labels speak for categories of like sizes, of which they are a random part.

    Labels that were drawn at random vary from class to class by chance. If they vary less, they
    were given out by a quota and say nothing of sizes; if they vary much more, sizes do. And
    about as many unlabelled rows as labels let expect have to be in known classes: there are
    next to none where all that was known has been labelled.

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
        False with few known classes, too.
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
    r"""Move novel prototypes, and weigh all of them, until components have the expected sizes.

    EM of equal spherical components, but for the weights, which are not the shares that the
    components have, but such that they get the expected ones:

    .. math::
        r_{ik} ∝ w_k \exp(-|v_i - μ_k|^2/ε), \quad w_k ← w_k n_k / \sum_i r_{ik},
        \quad μ_k ← \sum_i r_{ik} v_i / \sum_i r_{ik}

    Parameters
    ----------
    V : ndarray of shape (n, q)
        Unlabelled rows, at unit length.
    prototypes : ndarray of shape (K, q)
        μ to start from.
    n_known : int
        K^l; the prototypes of known classes do not move.
    sizes : ndarray of shape (K,)
        n_k > 0, which sum up to n.

    Returns
    -------
    prototypes : ndarray of shape (K, q)
        μ.
    offsets : ndarray of shape (K,)
        ε·log w, to be taken off the squared distances.
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
        held = held.clip(min=np.finfo(V.dtype).tiny)
        step = np.log(sizes / held)
        log_weights += step
        prototypes[n_known:] = sums[n_known:] / held[n_known:, None]
        if np.abs(step).max() < _TOLERANCE and np.array_equal(labels, before):
            break
    return prototypes, SOFTNESS * log_weights
