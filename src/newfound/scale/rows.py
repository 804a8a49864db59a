"""`Rows`: the rows of a large collection, and passes over them."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from newfound.arrays import ArrayLike, Ints, LabelsLike
from newfound.errors import InputError, require
from newfound.labels import PartialLabels, encode_labels
from newfound.progress import Progress, no_progress
from newfound.scale import blocks
from newfound.scale.arrays import HeldFeatures, HeldLabels, RawLabels, check_dask, is_dask
from newfound.scale.blocks import Features, Labels, Statistics, group_bounds
from newfound.scale.journal import Journal
from newfound.scale.passes import Call, PassFunction, count_labels, read_group, run_group
from newfound.scale.workers import active_client, lazy_vector, run_on_workers
from newfound.words import plural


@dataclass(frozen=True)
class Rows:
    """Rows that are read in blocks. Made by `newfound.scale.from_parquet` and the like.

    Attributes
    ----------
    features : Features
        Where the features are read.
    labels : Labels
        Where the labels are read.
    is_lazy : bool
        Whether vectors with an entry per row are returned as Dask arrays, even without a client.
    journal : Journal or None
        Where the results of finished passes are kept.
    progress : callable
        Called with the step, the groups that are done, and their number.
    """

    features: Features
    labels: Labels
    is_lazy: bool = False
    journal: Journal | None = None
    progress: Progress = no_progress

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows n and of columns d."""
        return self.features.shape

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def classes(self) -> npt.NDArray[Any]:
        """The known classes, sorted."""
        return self._counted[0]

    @property
    def n_labels(self) -> Ints:
        """Number of labels of each known class."""
        return self._counted[1]

    @cached_property
    def _counted(self) -> tuple[npt.NDArray[Any], Ints]:
        """Known classes and their numbers of labels, from one pass over the labels."""
        if isinstance(self.labels, HeldLabels):
            return self.labels.counted(0, len(self))
        groups = self.run(count_labels, step="Reading labels", classes=np.empty(0))
        # integers and texts of different lengths have a common type; both together are refused
        names = [name for classes, _ in groups for name in classes.tolist()]
        partial = encode_labels(names, len(names))
        counts = np.concatenate([counts for _, counts in groups])
        return partial.classes, np.bincount(partial.codes, counts).astype(np.int64)

    def with_progress(self, progress: Progress) -> Rows:
        """The same rows, with passes that report progress."""
        return dataclasses.replace(self, progress=progress)

    def run(
        self,
        function: PassFunction,
        *arguments: Any,
        step: str,
        classes: npt.NDArray[Any] | None = None,
    ) -> list[Statistics]:
        """Make one pass over all rows.

        Parameters
        ----------
        function : callable
            Called with the blocks of a group and the arguments; returns a tuple of arrays. It must
            be importable, because it may be called in another process.
        *arguments
            Small: they travel to each worker.
        step : str
            Name of the pass, for the progress.
        classes : ndarray, optional
            Known classes; by default `classes`.

        Returns
        -------
        list of tuple of ndarray
            What the function returned for each group, in the order of the groups.
        """
        classes = self.classes if classes is None else classes
        bounds = group_bounds(len(self))
        call = Call(function, arguments, classes, blocks.BLOCK_ROWS)
        results = [] if self.journal is None else self.journal.look_up(call, self.fingerprint)
        if len(results) == len(bounds):
            return results
        client = active_client() if self._can_travel else None
        self.progress(step, len(results), len(bounds))
        if client is not None:
            results = run_on_workers(client, self, call, functools.partial(self.progress, step))
        for group in bounds[len(results) :]:
            results.append(run_group(call, self.features, self.labels, group))
            self.progress(step, len(results), len(bounds))
            self._keep(call, results, is_done=False)
        self._keep(call, results, is_done=True)
        return results

    def _keep(self, call: Call, results: list[Statistics], *, is_done: bool) -> None:
        if self.journal is not None:
            self.journal.add(call, self.fingerprint, results, is_done=is_done)

    def vector(self, function: PassFunction, *arguments: Any, step: str) -> Any:
        """One number for each row: a Dask array if there is a client, else an array in memory.

        `function` is as in `run`, and returns a single array with an entry for each of its rows.
        """
        client = active_client() if self._can_travel else None
        if client is None and not self.is_lazy:
            parts = self.run(function, *arguments, step=step)
            return np.concatenate([part[0] for part in parts])
        call = Call(function, arguments, self.classes, blocks.BLOCK_ROWS)
        return lazy_vector(self, call)

    def as_vector(self, values: npt.NDArray[Any]) -> Any:
        """A vector in memory, in the form in which `vector` returns one."""
        if not self.is_lazy and (not self._can_travel or active_client() is None):
            return values
        return require("dask.array", "scale").from_array(values)

    @property
    def fingerprint(self) -> str:
        """Text that differs if the rows or labels may differ."""
        return f"{self.features.fingerprint}:{self.labels.fingerprint}:{self.shape}"

    @property
    def _can_travel(self) -> bool:
        """Whether workers are better than this process; not for an array in its memory."""
        features = self.features
        return not isinstance(features, HeldFeatures) or is_dask(features.array)

    def read_all(self) -> tuple[npt.NDArray[Any], Ints]:
        """All features and codes, for a collection that fits into memory."""
        plain = dataclasses.replace(self, journal=None)
        groups = plain.run(read_group, step="Reading rows", classes=self.classes)
        X, codes = (np.concatenate(arrays) for arrays in zip(*groups, strict=True))
        if self.features.read(0, 1).dtype == np.float16:  # as scikit-learn converts an array
            X = X.astype(np.float64)
        return X, codes


def as_rows(X: ArrayLike, y: LabelsLike = None) -> Rows | None:
    """Rows in blocks, if X is a source of blocks or a Dask array; else None.

    Parameters
    ----------
    X : Rows, Dask array or anything else
        Features.
    y : array-like or Dask array of shape (n,), optional
        Partial labels, if the source has none of its own.
    """
    if isinstance(X, Rows):
        if y is None:
            return X
        if not _has_no_labels(X):
            raise InputError("X was read with a column of labels, and y is given too. Keep one.")
        return dataclasses.replace(X, labels=labels_of(y, len(X)))
    if not is_dask(X):
        return None
    check_dask(X, 2, "X")
    features = HeldFeatures(X, fingerprint=str(X.name))
    return Rows(features, labels_of(y, len(X)), is_lazy=True)


def labels_of(y: LabelsLike, n_rows: int) -> Labels:
    """Where the labels of y are read; y may be a Dask array."""
    if not is_dask(y):
        return HeldLabels(encode_labels(y, n_rows))
    check_dask(y, 1, "y")
    if len(y) != n_rows:
        raise InputError(
            f"y has {plural(len(y), 'label')}, but X has {plural(n_rows, 'row')}. Give one label "
            "per row, with -1, None or an empty text where a row is unlabelled."
        )
    return RawLabels(y, fingerprint=str(y.name))


def held_rows(X: npt.NDArray[Any], partial: PartialLabels) -> Rows:
    """Rows of an array in memory."""
    return Rows(HeldFeatures(X), HeldLabels(partial))


def _has_no_labels(rows: Rows) -> bool:
    return isinstance(rows.labels, HeldLabels) and rows.labels.partial.n_known == 0
