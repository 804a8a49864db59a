"""How large categories may be expected to be, from the sizes of the known ones.

The count of the categories takes known and novel classes as alike; so does this. Where known
classes are of one size, all are; where they have a long tail, novel ones have the same.
"""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from newfound.arrays import Doubles, Floats, Ints
from newfound.labels import UNLABELLED
from newfound.mixture.rows import row_blocks, squared_distances

#: ε: how soft the assignment by sizes is, in squared distances of unit-length rows.
SOFTNESS = 0.04
#: Most rounds of `size_offsets`, and how near, as a share, sizes are to come.
_N_ROUNDS, _TOLERANCE = 50, 0.02
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


def size_offsets(V: Floats, prototypes: Doubles, sizes: Doubles) -> Doubles:
    r"""What to take off the squared distance to each prototype, so that sizes come out as expected.

    The column potentials of an entropic transport: o = ε·log w, with w such that

    .. math:: \sum_i \frac{w_k \exp(-d_{ik}^2/ε)}{\sum_j w_j \exp(-d_{ij}^2/ε)} = n_k

    Parameters
    ----------
    V : ndarray of shape (n, q)
        Unit-length rows.
    prototypes : ndarray of shape (K, q)
        μ.
    sizes : ndarray of shape (K,)
        n_k > 0, which sum up to n.

    Returns
    -------
    ndarray of shape (K,)
        o; a row is nearest to the k with the least d² - o.
    """
    centres, log_weights = prototypes.astype(V.dtype), np.zeros(len(sizes))
    for _ in range(_N_ROUNDS):
        held = np.zeros(len(sizes))
        for block in row_blocks(len(V), max(centres.shape)):
            cost = squared_distances(V[block], centres).astype(np.float64)
            held += softmax(log_weights - cost / SOFTNESS, axis=1).sum(axis=0)
        step = np.log(sizes / held)
        log_weights += step
        if np.abs(step).max() < _TOLERANCE:
            break
    offsets: Doubles = SOFTNESS * log_weights
    return offsets
