"""Features and labels in the parts of a Parquet data set."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from newfound.arrays import Ints
from newfound.errors import InputError, require
from newfound.files import explained_errors
from newfound.labels import UNLABELLED, PartialLabels, encode_labels
from newfound.scale.arrays import as_codes, count_codes, file_fingerprint
from newfound.words import first_few

#: Columns that are never features.
_NOT_FEATURES = frozenset(["id", "label", "path", "text"])
_ADVICE = "Write this part again, or leave it out."


@dataclass(frozen=True)
class ParquetParts:
    """The parts, and which of their rows are where.

    Attributes
    ----------
    paths : tuple of Path
        The files, in the order of their names. Workers must see them under the same paths.
    starts : tuple of int
        Number of the first row of each part; the last entry is the number of all rows.
    """

    paths: tuple[Path, ...]
    starts: tuple[int, ...]

    @classmethod
    def open(cls, paths: list[Path]) -> ParquetParts:
        """Read the headers of all parts."""
        sizes = [_opened(path, _stamp(path)).metadata.num_rows for path in paths]
        return cls(tuple(paths), tuple(np.cumsum([0, *sizes]).tolist()))

    def pieces(self, start: int, stop: int) -> Iterator[tuple[Path, int, int]]:
        """The parts that hold the rows from `start` to `stop`, and these rows within each."""
        first = int(np.searchsorted(self.starts, start, side="right")) - 1
        for index in range(first, len(self.paths)):
            low, high = self.starts[index], self.starts[index + 1]
            if low >= stop:
                return
            if high > start:
                yield self.paths[index], max(start, low) - low, min(stop, high) - low

    def between(self, start: int, stop: int) -> ParquetParts:
        """Only the parts that hold the rows from `start` to `stop`, with the same numbers."""
        first = int(np.searchsorted(self.starts, start, side="right")) - 1
        last = int(np.searchsorted(self.starts, stop, side="left"))
        return ParquetParts(self.paths[first:last], self.starts[first : last + 1])

    def place(self, row: int) -> str:
        """File and row in the file."""
        path, within, _ = next(self.pieces(row, row + 1))
        return f"row {within} of {path}"


@dataclass(frozen=True)
class ParquetFeatures:
    """Features in one column of lists, or in columns of numbers.

    Attributes
    ----------
    parts : ParquetParts
        The files.
    columns : tuple of str
        The column of lists, or the columns of numbers.
    n_columns : int
        Number of features.
    """

    parts: ParquetParts
    columns: tuple[str, ...]
    n_columns: int

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return self.parts.starts[-1], self.n_columns

    @property
    def fingerprint(self) -> str:
        """Names, sizes and times of the files."""
        return file_fingerprint(list(self.parts.paths), *self.columns)

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Read the rows from `start` to `stop`."""
        pieces = [
            self._as_array(piece, path)
            for path, low, high in self.parts.pieces(start, stop)
            for piece in _read(path, self.columns, low, high)
        ]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def _as_array(self, table: Any, path: Path) -> npt.NDArray[Any]:
        if len(self.columns) > 1 or self.n_columns == 1:
            columns = [table.column(name).to_numpy() for name in self.columns]
            return np.column_stack(columns)
        column = table.column(0).combine_chunks()
        values = column.flatten().to_numpy(zero_copy_only=False)
        if len(values) != len(column) * self.n_columns:
            raise InputError(
                f"{path} has lists of other lengths than {self.n_columns}, or rows without a list, "
                f"in the column {self.columns[0]!r}. All rows need the same number of features."
            )
        return np.asarray(values.reshape(len(column), self.n_columns))

    def place(self, row: int) -> str:
        """File and row in the file."""
        return self.parts.place(row)

    def cut(self, start: int, stop: int) -> ParquetFeatures:
        """What a worker needs to read these rows."""
        return dataclasses.replace(self, parts=self.parts.between(start, stop))


@dataclass(frozen=True)
class ParquetLabels:
    """Labels in a column of the same parts."""

    parts: ParquetParts
    column: str

    @property
    def fingerprint(self) -> str:
        """Name of the column; the files are in the fingerprint of the features."""
        return self.column

    def _encoded(self, start: int, stop: int) -> Iterator[PartialLabels]:
        for path, low, high in self.parts.pieces(start, stop):
            for table in _read(path, (self.column,), low, high):
                column = table.column(0).combine_chunks().dictionary_encode()
                # a few names are encoded instead of a label per row
                names = encode_labels([*column.dictionary.to_pylist(), None])
                indices = column.indices.fill_null(len(column.dictionary)).to_numpy()
                yield PartialLabels(names.codes[indices], names.classes)

    def counted(self, start: int, stop: int) -> tuple[npt.NDArray[Any], Ints]:
        """Known classes from row `start` to row `stop`, and the number of labels of each."""
        parts = list(self._encoded(start, stop))
        names = [name for part in parts for name in part.classes.tolist()]
        classes = encode_labels(names, len(names)).classes
        return count_codes(np.concatenate([as_codes(part, classes) for part in parts]), classes)

    def codes(self, start: int, stop: int, classes: npt.NDArray[Any]) -> Ints:
        """Indices into `classes`, -1 where a row is unlabelled."""
        if len(classes) == 0:
            return np.full(stop - start, UNLABELLED, dtype=np.int64)
        return np.concatenate([as_codes(part, classes) for part in self._encoded(start, stop)])

    def cut(self, start: int, stop: int) -> ParquetLabels:
        """What a worker needs to read these labels."""
        return dataclasses.replace(self, parts=self.parts.between(start, stop))


def find_columns(
    paths: list[Path], columns: list[str] | None, label: str | None
) -> tuple[Any, int]:
    """Names of the columns of features, and the number of features; the same in all parts."""
    schema = _opened(paths[0], _stamp(paths[0])).schema_arrow
    chosen = columns or _columns_of(schema, label, paths[0])
    wanted = [*chosen, *([label] if label else [])]
    for path in paths:
        found = _opened(path, _stamp(path)).schema_arrow
        missing = [name for name in wanted if name not in found.names]
        other = [
            n for n in wanted if n in found.names and found.field(n).type != schema.field(n).type
        ]
        extra = [] if columns else [n for n in _columns_of(found, label, path) if n not in chosen]
        if missing or other or extra:
            names = first_few(missing or other or extra)
            raise InputError(
                f"{path} has other columns than {paths[0]}: {names}. All parts need the same "
                "columns of the same types."
            )
    kind = schema.field(chosen[0]).type
    if not hasattr(kind, "value_type"):
        return tuple(chosen), len(chosen)
    if hasattr(kind, "list_size"):
        return tuple(chosen), int(kind.list_size)
    for path in paths:  # lists of any length: the first one decides
        for table in _read(path, tuple(chosen), 0, 1):
            return tuple(chosen), len(table.column(0)[0].as_py() or [])
    raise InputError(f"{paths[0]} and the other parts have no rows.")


def _columns_of(schema: Any, label: str | None, path: Path) -> list[str]:
    """The one column of lists, or all columns of numbers."""
    types = require("pyarrow", "scale").types
    fields = [field for field in schema if field.name not in _NOT_FEATURES | {label}]
    lists = [
        field.name
        for field in fields
        if hasattr(field.type, "value_type") and not types.is_dictionary(field.type)
    ]
    if len(lists) > 1:
        raise InputError(f"{path} has several columns of lists: {first_few(lists)}. Name one.")
    numbers = [
        field.name
        for field in fields
        if types.is_floating(field.type) or types.is_integer(field.type)
    ]
    if not lists and not numbers:
        raise InputError(
            f"{path} has the columns {first_few(schema.names, 8)}, but no numbers to use as "
            "features. Give embeddings in one column of lists, or in columns of numbers."
        )
    return lists or numbers


def _stamp(path: Path) -> tuple[int, int]:
    """Size and time of a file; another stamp means another file."""
    with explained_errors(path, "cannot be read as Parquet", _ADVICE):
        status = path.stat()
    return status.st_size, status.st_mtime_ns


@functools.lru_cache(maxsize=256)
def _opened(path: Path, stamp: tuple[int, int]) -> Any:
    """An open part; its header is read once."""
    del stamp  # part of the key of the cache
    parquet = require("pyarrow.parquet", "scale")
    with explained_errors(path, "cannot be read as Parquet", _ADVICE):
        return parquet.ParquetFile(path)


@functools.lru_cache(maxsize=2)
def _row_group(path: Path, stamp: tuple[int, int], index: int, columns: tuple[str, ...]) -> Any:
    """One row group; the last ones are kept, because several blocks may lie in one."""
    with explained_errors(path, "cannot be read as Parquet", _ADVICE):
        return _opened(path, stamp).read_row_group(index, columns=list(columns))


def _read(path: Path, columns: tuple[str, ...], start: int, stop: int) -> Iterator[Any]:
    """Tables with the rows from `start` to `stop` of one part."""
    stamp = _stamp(path)
    metadata, low = _opened(path, stamp).metadata, 0
    for index in range(metadata.num_row_groups):
        high = low + metadata.row_group(index).num_rows
        if high > start and low < stop:
            table = _row_group(path, stamp, index, columns)
            yield table.slice(max(start, low) - low, min(stop, high) - max(start, low))
        low = high
