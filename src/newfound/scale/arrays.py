"""Features and labels in arrays that can be sliced: numpy, memory maps, zarr, Dask."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from newfound.arrays import Ints
from newfound.errors import InputError, require
from newfound.files import explained_errors
from newfound.labels import UNLABELLED, PartialLabels, encode_labels


@dataclass(frozen=True)
class HeldFeatures:
    """Rows of an array in memory, or of any array with a shape that can be sliced.

    Attributes
    ----------
    array : array of shape (m, d)
        The rows from number `first` on.
    first : int
        Number of the first row.
    fingerprint : str
        See `Features`.
    """

    array: Any
    first: int = 0
    fingerprint: str = ""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        n_rows, n_columns = self.array.shape
        return int(n_rows), int(n_columns)

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Read the rows from `start` to `stop`."""
        try:
            return np.asarray(self.array[start - self.first : stop - self.first])
        except ValueError as error:
            # Dask joins chunks with numpy, which says nothing about rows
            raise InputError(
                f"Rows {start} to {stop - 1} cannot be joined ({error}): all chunks need the same "
                "columns, and as many rows as they declare."
            ) from error

    def place(self, row: int) -> str:
        """Where a row is, for messages."""
        return f"row {row}"

    def cut(self, start: int, stop: int) -> Any:
        """What a worker needs to read these rows."""
        if not is_dask(self.array):
            return HeldFeatures(self.array[start:stop], start)
        # a Dask array in a delayed call becomes a plain array on the worker
        return require("dask", "scale").delayed(HeldFeatures)(self.array[start:stop], start)


@dataclass(frozen=True)
class FileFeatures:
    """Rows of an ``.npy`` file or a zarr array, opened where they are read.

    Attributes
    ----------
    path : Path
        The file or folder. Workers must see it under the same path.
    kind : {"npy", "zarr"}
        How to open it.
    """

    path: Path
    kind: str

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return HeldFeatures(_opened(self.path, self.kind)).shape

    @property
    def fingerprint(self) -> str:
        """Path, size and time of the file; of a zarr folder, those of its description."""
        return file_fingerprint([self.path])

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Read the rows from `start` to `stop`."""
        with explained_errors(self.path, f"cannot be read as {self.kind}", "Write it again."):
            return np.asarray(_opened(self.path, self.kind)[start:stop])

    def place(self, row: int) -> str:
        """Where a row is, for messages."""
        return f"row {row} of {self.path}"

    def cut(self, start: int, stop: int) -> FileFeatures:
        """What a worker needs to read these rows."""
        del start, stop
        return self


@functools.lru_cache(maxsize=4)
def _opened(path: Path, kind: str) -> Any:
    """The array, without its values; two-dimensional numbers."""
    with explained_errors(path, f"cannot be read as {kind}", "Check the path, or write it again."):
        if kind == "npy":
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        else:
            array = require("zarr", "scale").open_array(str(path), mode="r")
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise InputError(
            f"{path} has the shape {array.shape} and the type {array.dtype}. Give numbers, with a "
            "row for each item and a column for each feature."
        )
    return array


def file_fingerprint(paths: list[Path], *words: str) -> str:
    """Digest of the names, sizes and times of files."""
    digest = hashlib.sha256("\0".join(words).encode())
    for path in paths:
        status = path.stat()
        digest.update(f"{path.absolute()}:{status.st_size}:{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class HeldLabels:
    """Labels in memory, already encoded; from row `first` on."""

    partial: PartialLabels
    first: int = 0

    @functools.cached_property
    def fingerprint(self) -> str:
        """Digest of the labels."""
        return hashlib.sha256(self.partial.codes.tobytes()).hexdigest()

    def counted(self, start: int, stop: int) -> tuple[npt.NDArray[Any], Ints]:
        """Known classes, and the number of labels of each from row `start` to row `stop`."""
        return count_codes(self.codes(start, stop, self.partial.classes), self.partial.classes)

    def codes(self, start: int, stop: int, classes: npt.NDArray[Any]) -> Ints:
        """Indices into the classes, -1 where a row is unlabelled."""
        del classes
        return self.partial.codes[start - self.first : stop - self.first]

    def cut(self, start: int, stop: int) -> HeldLabels:
        """What a worker needs to read these labels; the labels themselves."""
        codes = self.partial.codes[start:stop].astype(np.int32)
        return HeldLabels(PartialLabels(codes, self.partial.classes), start)


@dataclass(frozen=True)
class RawLabels:
    """Labels of an array that can be sliced, as they were given; from row `first` on."""

    array: Any
    first: int = 0
    fingerprint: str = field(default="")

    def _encoded(self, start: int, stop: int) -> PartialLabels:
        return encode_labels(np.asarray(self.array[start - self.first : stop - self.first]))

    def counted(self, start: int, stop: int) -> tuple[npt.NDArray[Any], Ints]:
        """Known classes from row `start` to row `stop`, and the number of labels of each."""
        partial = self._encoded(start, stop)
        return count_codes(partial.codes, partial.classes)

    def codes(self, start: int, stop: int, classes: npt.NDArray[Any]) -> Ints:
        """Indices into `classes`, -1 where a row is unlabelled."""
        return as_codes(self._encoded(start, stop), classes)

    def cut(self, start: int, stop: int) -> Any:
        """What a worker needs to read these labels."""
        if not is_dask(self.array):
            return RawLabels(self.array[start:stop], start)
        return require("dask", "scale").delayed(RawLabels)(self.array[start:stop], start)


def as_codes(partial: PartialLabels, classes: npt.NDArray[Any]) -> Ints:
    """Codes of a part of the rows as indices into the classes of all rows."""
    number_of = np.searchsorted(classes, partial.classes).astype(np.int64)
    return np.append(number_of, UNLABELLED)[partial.codes]


def count_codes(codes: Ints, classes: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Ints]:
    """Classes, and how often each code occurs."""
    return classes, np.bincount(codes[codes != UNLABELLED], minlength=len(classes))


def is_dask(array: Any) -> bool:
    """Whether this is a Dask array, without importing Dask."""
    return hasattr(array, "__dask_graph__") and hasattr(array, "chunks")


def check_dask(array: Any, n_dimensions: int, name: str) -> None:
    """Refuse a Dask array of another number of dimensions or of chunks of unknown sizes."""
    if array.ndim != n_dimensions:
        shape = "(n, d)" if n_dimensions == 2 else "(n,)"
        raise InputError(f"{name} must have the shape {shape}; got {array.shape}.")
    if any(size != size for size in array.shape):  # NaN differs from itself
        raise InputError(
            f"{name} is a Dask array with chunks of unknown sizes. Call "
            f"{name}.compute_chunk_sizes() first."
        )
