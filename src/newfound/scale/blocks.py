"""The row-block protocol: what an algorithm needs to know about rows that it cannot hold.

Rows are divided into groups and groups into blocks, by the number of rows alone. A pass over the
rows is one function of the blocks of a group; its results are joined in the order of the groups.
So neither the chunks of a source nor the number of workers changes a single bit of a result.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from newfound.arrays import Floats, Ints
from newfound.errors import InputError
from newfound.words import first_few, plural

#: Rows of a block, the unit that is read and computed at once; more would not fit into a cache.
BLOCK_ROWS = 2**14
#: Groups of more rows than a block, so that what travels does not grow with the rows; and the most
#: rows of a group, so that one group of a Dask array fits into the memory of a worker.
N_GROUPS, GROUP_ROWS = 64, 2**20

#: Results of one group: a tuple of arrays, which can be stored without pickle.
Statistics = tuple[npt.NDArray[Any], ...]


class Block(NamedTuple):
    """Consecutive rows."""

    start: int  # number of the first row
    X: Floats  # (m, d) float32 or float64, finite
    codes: Ints  # (m,) known class of each row, sorted by name; -1 if unlabelled


class Features(Protocol):
    """Where the features of rows are read; it travels to workers, so it holds no rows itself."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        ...

    @property
    def fingerprint(self) -> str:
        """Text that differs if the rows may differ; empty if the rows have no identity."""
        ...

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Read the rows from `start` to `stop`."""
        ...

    def place(self, row: int) -> str:
        """Where a row is, for messages."""
        ...

    def cut(self, start: int, stop: int) -> Any:
        """What a worker needs to read these rows; may hold parts of a Dask graph."""
        ...


class Labels(Protocol):
    """Where the labels of rows are read."""

    @property
    def fingerprint(self) -> str:
        """As for `Features`."""
        ...

    def counted(self, start: int, stop: int) -> tuple[npt.NDArray[Any], Ints]:
        """Known classes from row `start` to row `stop`, and the number of labels of each."""
        ...

    def codes(self, start: int, stop: int, classes: npt.NDArray[Any]) -> Ints:
        """Indices into `classes`, -1 where a row is unlabelled."""
        ...

    def cut(self, start: int, stop: int) -> Any:
        """What a worker needs to read these rows; may hold parts of a Dask graph."""
        ...


def group_bounds(n_rows: int) -> list[tuple[int, int]]:
    """First row of each group, and the row after its last; they depend on nothing else."""
    if n_rows <= BLOCK_ROWS:
        return [(0, n_rows)]
    n_groups = max(N_GROUPS, -(-n_rows // GROUP_ROWS))
    edges = [i * n_rows // n_groups for i in range(n_groups + 1)]
    return list(itertools.pairwise(edges))


def read_blocks(
    features: Features,
    labels: Labels,
    bounds: tuple[int, int],
    classes: npt.NDArray[Any],
    block_rows: int,
) -> Iterator[Block]:
    """Read the blocks of a group, one after the other.

    Parameters
    ----------
    features, labels : Features, Labels
        Where to read.
    bounds : tuple of int
        One of `group_bounds`.
    classes : ndarray of shape (K^l,)
        The known classes of all rows.
    block_rows : int
        Rows of a block.
    """
    for start in range(*bounds, block_rows):
        stop = min(start + block_rows, bounds[1])
        X = features.read(start, stop)
        if X.shape != (stop - start, features.shape[1]):
            raise InputError(
                f"Rows {start} to {stop - 1} have the shape {X.shape}, but "
                f"{(stop - start, features.shape[1])} was expected: all parts need the same "
                "columns, and as many rows as they declare."
            )
        yield Block(start, _finite(X, features, start), labels.codes(start, stop, classes))


def _finite(X: npt.NDArray[Any], features: Features, start: int) -> Floats:
    """The rows as float32 or float64; rows that are not finite are named."""
    rows: Floats = X.astype(np.float32) if X.dtype == np.float16 else X
    if rows.dtype not in (np.float32, np.float64):
        rows = rows.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        is_fine = np.isfinite(rows.sum())  # one number for the whole block; an overflow is rare
    if is_fine or np.isfinite(rows).all():
        return rows
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    places = first_few([features.place(start + int(row)) for row in bad])
    hint = ""
    if X.dtype == np.float16 and np.isinf(rows).any():
        hint = " Values beyond 65,504 become inf in float16: store these as float32."
    raise InputError(
        f"Input X contains NaN or infinity in {plural(len(bad), 'row')} of one block: {places}. "
        f"Remove or correct these rows.{hint}"
    )
