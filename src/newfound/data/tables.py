"""Tables: every CSV and Parquet file that newfound reads or writes passes through here."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from newfound.errors import InputError, require
from newfound.files import write_atomically

Table: TypeAlias = Any  # a pandas.DataFrame

#: A spreadsheet takes a cell that begins with one of these for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def make_table(columns: Mapping[str, npt.NDArray[Any]]) -> Table:
    """A table whose texts are plain objects, with None for a missing one, in every pandas."""
    pandas = require("pandas", "report")
    return pandas.DataFrame(
        {name: pandas.Series(values, dtype=values.dtype) for name, values in columns.items()}
    )


def as_objects(values: Sequence[Any]) -> npt.NDArray[np.object_]:
    """A column of plain objects."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def write_parquet(table: Table, path: Path) -> None:
    """Write a table, whole or not at all."""
    require("pyarrow", "report")
    write_atomically(path, table.to_parquet(engine="pyarrow", index=False))


def write_csv(table: Table, path: Path) -> None:
    """Write a table in which no spreadsheet takes a text for a formula."""
    safe = table.map(lambda cell: escape_formula(cell) if isinstance(cell, str) else cell)
    # The standard's line end: with any other, pandas does not quote a text that holds \r.
    text = safe.to_csv(index=False, float_format="%.6g", lineterminator="\r\n")
    write_atomically(path, text.encode())


def escape_formula(cell: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would run as a formula."""
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def unescape_formula(cell: str) -> str:
    """Undo `escape_formula`."""
    return cell[1:] if cell[:1] == "'" and cell[1:].startswith(_FORMULA) else cell


def read_parquet(path: Path) -> Table:
    """Read a table that newfound wrote, with plain objects for texts.

    Parameters
    ----------
    path : Path
        The Parquet file.

    Returns
    -------
    DataFrame
        Numbers as they are, everything else as objects, None where a value is missing.

    Raises
    ------
    InputError
        If the file is missing or damaged.
    """
    pandas = require("pandas", "report")
    require("pyarrow", "report")
    try:
        table = pandas.read_parquet(io.BytesIO(path.read_bytes()), engine="pyarrow")
    except (OSError, ValueError) as error:
        raise damaged(path, error) from error
    columns = {}
    for name in table:
        column = table[name]
        is_number = pandas.api.types.is_numeric_dtype(column)
        columns[str(name)] = column.to_numpy() if is_number else _plain_texts(column)
    return make_table(columns)


def _plain_texts(column: Any) -> npt.NDArray[np.object_]:
    missing = column.isna().to_numpy()
    texts: npt.NDArray[np.object_] = column.astype(object).to_numpy(dtype=object, copy=True)
    texts[missing] = None
    return texts


def damaged(path: Path, error: object) -> InputError:
    """The error for a file of a run folder that cannot be read."""
    return InputError(
        f"{path} is missing or damaged ({error}). Run newfound discover again, into a new folder."
    )
