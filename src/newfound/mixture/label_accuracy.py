"""How well features tell the known classes apart: a check that needs nothing but the labels.

Features that confuse known classes will confuse new ones too. The labels of one fifth of the
labelled rows are hidden, the others make one mean for each class in the mixture's space, and each
hidden row goes to the nearest mean. The mean over classes of the share that is right is 1 / K^l
for features that know nothing, whatever the sizes of the classes.
"""

from __future__ import annotations

import numpy as np

from newfound.arrays import Doubles, Floats, Ints, LabelsLike
from newfound.labels import UNLABELLED, encode_labels
from newfound.mixture.class_order import ClassOrder
from newfound.mixture.projection import Projection, unit_rows, within_class_whitening
from newfound.mixture.rows import content_order, nearest_centre, row_blocks, row_keys

_N_FOLDS = 5
#: More labelled rows than this change the answer by less than a percent.
_MAX_ROWS = 20_000


def label_accuracy(projection: Projection, X: Floats, y: LabelsLike) -> float | None:
    """Cross-validated accuracy of the nearest class mean, on the labelled rows.

    The principal directions come from all rows, as in the mixture, and use no label. Where the
    projection is whitened, the whitening is fitted again without the hidden rows. Rows are drawn
    and added up by their content, so neither the order of the rows nor the names of the classes
    matter.

    Parameters
    ----------
    projection : Projection
        Fitted, of the mixture.
    X : ndarray of shape (n, d)
        Features.
    y : array-like of shape (n,)
        Partial labels.

    Returns
    -------
    float or None
        Mean over classes of the share of their rows that is right, from 0 to 1. None if fewer than
        two classes have two labels.
    """
    partial, keys = encode_labels(y, len(X)), row_keys(X)
    codes = ClassOrder.of(partial, keys).number_by_content(partial.codes)
    rows = np.flatnonzero(codes != UNLABELLED)
    order = rows[content_order(keys[rows], codes[rows])][:_MAX_ROWS]
    codes = _numbered_by_appearance(codes[order])
    coordinates = _coordinates(projection, X, order)
    # The k-th row of each class is hidden in fold k mod 5; the only row of a class never is.
    fold = np.where(np.bincount(codes)[codes] > 1, _rank_within_class(codes) % _N_FOLDS, -1)
    right = np.zeros(len(codes), bool)
    for hidden in (fold == k for k in range(_N_FOLDS)):
        left, own = np.unique(codes[~hidden], return_inverse=True)
        if len(left) < 2 or not hidden.any():
            continue
        whiten = projection.whitening_ is not None and len(own) > len(left)
        space = within_class_whitening(coordinates[~hidden], own) if whiten else None
        means = _class_means(_in_space(coordinates[~hidden], space), own)
        nearest, _ = nearest_centre(_in_space(coordinates[hidden], space), means)
        right[hidden] = left[nearest] == codes[hidden]
    sizes = np.bincount(codes)
    if np.count_nonzero(sizes > 1) < 2:
        return None
    return float((np.bincount(codes, weights=right) / sizes)[sizes > 1].mean())


def _numbered_by_appearance(codes: Ints) -> Ints:
    """Classes numbered in the order of their first rows, so that their names don't matter."""
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    number: Ints = np.argsort(np.argsort(first))
    return number[inverse]


def _rank_within_class(codes: Ints) -> Ints:
    """For each row, how many rows of its class come before it."""
    by_class = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes)
    starts = np.cumsum(sizes) - sizes
    rank = np.empty(len(codes), np.int64)
    rank[by_class] = np.arange(len(codes)) - starts[codes[by_class]]
    return rank


def _coordinates(projection: Projection, X: Floats, order: Ints) -> Doubles:
    """Rows along the principal directions, before whitening and scaling, shape (n, q)."""
    coordinates = np.empty((len(order), projection.n_directions_))
    for block in row_blocks(len(order), X.shape[1]):
        units = unit_rows(X[order[block]].astype(np.float64))
        coordinates[block] = (units - projection.mean_) @ projection.components_.T
    return coordinates


def _in_space(coordinates: Doubles, whitening: Doubles | None) -> Doubles:
    return unit_rows(coordinates if whitening is None else coordinates @ whitening)


def _class_means(rows: Doubles, codes: Ints) -> Doubles:
    sums = np.zeros((int(codes.max()) + 1, rows.shape[1]))
    np.add.at(sums, codes, rows)
    return sums / np.bincount(codes)[:, None]
