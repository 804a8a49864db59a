"""How large categories may be expected to be, from the sizes of the known ones.

The count of the categories takes known and novel classes as alike; so does this. Where known
classes are of one size, all are; where they have a long tail, novel ones have the same.
"""

from __future__ import annotations

import numpy as np

from newfound.arrays import Doubles, Ints
from newfound.labels import UNLABELLED

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
