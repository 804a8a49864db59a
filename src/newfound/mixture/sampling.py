"""A bounded sample of a large collection, in which the categories are searched.

Rows are drawn by a hash of their content and the seed, so that neither their order nor the way in
which they are stored decides which rows are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from newfound.arrays import ArrayLike, Bools, Floats, Ints, Keys, LabelsLike
from newfound.errors import InputError
from newfound.labels import UNLABELLED, PartialLabels, encode_labels
from newfound.mixture.rows import mix, row_keys
from newfound.scale.blocks import Block, Statistics
from newfound.scale.rows import Rows, as_rows, held_rows

#: Larger collections are sampled: so many rows, or so many for each category that is known or
#: asked for, if that is more.
SAMPLE_ROWS, ROWS_PER_CATEGORY = 2**16, 64
#: Labelled rows of each known class that are in the sample at least, if it has so many.
LABELS_PER_CLASS = 32


class RowSample(NamedTuple):
    """Rows to search in: all of them, or a sample."""

    X: Floats  # (m, d)
    partial: PartialLabels  # labels of these rows; classes of all rows
    is_uniform: Bools  # (m,) rows drawn at random, without the additional labelled ones
    n_rows: int  # number of all rows
    positions: Ints  # (m,) number of each row among all rows

    @classmethod
    def of_all(cls, X: Floats, partial: PartialLabels) -> RowSample:
        """All rows of a collection that need no sample."""
        return cls(X, partial, np.ones(len(X), dtype=bool), len(X), np.arange(len(X)))

    def rows_to_count(self, codes: Ints, order: Ints) -> Ints:
        """The rows of `order` that represent all rows, and a labelled row of every class."""
        if self.is_uniform.all():
            return order
        counted = self.is_uniform[order]
        names, first = np.unique(codes[order], return_index=True)
        counted[first[names != UNLABELLED]] = True
        return order[counted]


def sample_size(n_categories: int) -> int:
    """Up to how many rows a collection is searched as a whole."""
    return max(SAMPLE_ROWS, ROWS_PER_CATEGORY * n_categories)


def rows_and_sample(
    X: ArrayLike,
    y: LabelsLike,
    random_state: np.random.RandomState,
    check: Callable[[ArrayLike], Floats],
    n_categories: int = 0,
    needs_all: bool = False,
) -> tuple[Rows | None, RowSample]:
    """Rows in blocks, if there are too many to be searched as a whole, and what to search.

    Parameters
    ----------
    X : array-like, Dask array or Rows
        Features.
    y : array-like or None
        Partial labels.
    random_state : RandomState
        Draws the seed of a sample.
    check : callable
        Checks an array in memory and returns it as float32 or float64.
    n_categories : int, default=0
        Number of categories that was asked for; known classes count anyway.
    needs_all : bool, default=False
        Whether all rows must be searched together, which only an array in memory allows.

    Returns
    -------
    rows : Rows or None
        None if the sample has all rows, and X is an array in memory.
    sample : RowSample
        All rows, or a sample of them.
    """
    rows = as_rows(X, y)
    if needs_all and rows is not None:
        raise InputError(
            "acceptance='literal', assign='soft' and sample_weight look at all rows together. Pass "
            "an array in memory, or leave them out."
        )
    if needs_all:
        X = check(X)
        return None, RowSample.of_all(X, encode_labels(y, len(X)))
    if rows is None:
        # large arrays are checked and converted block by block
        in_blocks = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f"
        in_blocks = in_blocks and len(X) > SAMPLE_ROWS
        X = X if in_blocks else check(X)
        partial = encode_labels(y, len(X))
        if len(X) <= sample_size(max(n_categories, partial.n_known)):
            return None, RowSample.of_all(check(X) if in_blocks else X, partial)
        rows = held_rows(X, partial)
    n_drawn = sample_size(max(n_categories, len(rows.classes)))
    if len(rows) <= n_drawn:
        X, codes = rows.read_all()
        return rows, RowSample.of_all(X, PartialLabels(codes, rows.classes))
    return rows, draw_sample(rows, n_drawn, int(random_state.randint(2**31)))


def draw_sample(rows: Rows, n_drawn: int, seed: int) -> RowSample:
    """Draw rows at random, and some labelled rows of each class beside them.

    Parameters
    ----------
    rows : Rows
        All rows.
    n_drawn : int
        How many to draw, about.
    seed : int
        Seed of the draw.

    Returns
    -------
    RowSample
        From one pass over all rows.
    """
    share = min(1.0, n_drawn / len(rows))
    # the last entry is for unlabelled rows, which have the code -1
    shares = np.append(np.maximum(share, LABELS_PER_CLASS / rows.n_labels), share)
    parts = rows.run(draw_rows, shares, seed, step="Drawing a sample")
    X, codes, hashes, positions = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    is_uniform = hashes < share
    return RowSample(X, PartialLabels(codes, rows.classes), is_uniform, len(rows), positions)


def draw_rows(blocks: Iterator[Block], shares: Floats, seed: int) -> Statistics:
    """Rows whose hash is below the share of their class; hashes are spread from 0 to 1."""
    parts = []
    for block in blocks:
        hashes = row_hashes(row_keys(block.X), seed)
        drawn = np.flatnonzero(hashes < shares[block.codes])
        parts.append((block.X[drawn], block.codes[drawn], hashes[drawn], block.start + drawn))
    return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))


def row_hashes(keys: Keys, seed: int) -> Floats:
    """A number from 0 to 1 for each row of a block, from its content and the seed.

    Equal rows get different numbers, so that a row given a thousand times is neither drawn a
    thousand times nor left out.
    """
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    is_first = np.append(True, ordered[1:] != ordered[:-1])
    starts = np.flatnonzero(is_first)
    nth = np.arange(len(keys)) - starts[np.cumsum(is_first) - 1]
    hashes = np.empty(len(keys))
    salt = mix(np.array([seed], dtype=np.uint64) + np.uint64(1))
    hashes[order] = mix(mix(ordered ^ salt) + nth.astype(np.uint64)) / 2.0**64
    return hashes
