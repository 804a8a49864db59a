"""Tables: every CSV and Parquet file that newfound reads or writes passes through here.

There are two kinds of tables. Those of people come with columns in any order and names in any
case (`read_table`). Those of run folders were written by newfound itself (`read_parquet`).
"""

from __future__ import annotations

import csv
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from newfound.data.collection import Skipped
from newfound.data.parquet_files import load_parquet
from newfound.errors import InputError, require
from newfound.files import explained_errors, write_atomically
from newfound.words import first_few

Table: TypeAlias = Any  # a pandas.DataFrame

#: Endings of the files that `read_table` reads.
TABLE_SUFFIXES = (".csv", ".tsv", ".parquet", ".pq")
_PARQUET_SUFFIXES = (".parquet", ".pq")

#: Columns that have a meaning; all others are features or are ignored.
COLUMNS = ("id", "label", "path", "text")

#: What is said about a file of a run folder that cannot be read.
DAMAGED, AGAIN = "is missing or damaged", "Run newfound again, into a new folder."

#: A spreadsheet takes a cell that begins with one of these for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def make_table(columns: Mapping[str, npt.NDArray[Any]]) -> Table:
    """A table of plain objects, None where a text is missing, in every version of pandas."""
    pandas = require("pandas", "report")
    return pandas.DataFrame(
        {name: pandas.Series(values, dtype=values.dtype) for name, values in columns.items()}
    )


def as_objects(values: Sequence[Any]) -> npt.NDArray[np.object_]:
    """A column of plain objects."""
    # Not np.array(values, dtype=object), which makes two dimensions of a list of lists.
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def write_parquet(table: Table, path: Path) -> None:
    """Write a table, whole or not at all."""
    require("pyarrow", "report")
    write_atomically(path, table.to_parquet(engine="pyarrow", index=False))


def write_csv(table: Table, path: Path) -> None:
    """Write a table in which no spreadsheet takes a text for a formula."""
    safe = table.map(lambda cell: _for_csv(cell) if isinstance(cell, str) else cell)
    # The standard's line end: with any other, pandas does not quote a text that holds \r.
    text = safe.to_csv(index=False, float_format="%.6g", lineterminator="\r\n")
    write_atomically(path, text.encode())


def write_skipped(skipped: Sequence[Skipped], path: Path) -> None:
    """Write what was left out, with the reasons, as a CSV."""
    columns = {
        "path": as_objects([item.path for item in skipped]),
        "reason": as_objects([item.reason for item in skipped]),
    }
    write_csv(make_table(columns), path)


def _for_csv(cell: str) -> str:
    """A text without formulas and zero characters, which readers of CSV refuse."""
    return escape_formula(cell.replace("\0", "\N{SYMBOL FOR NULL}"))


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
    table = load_parquet(path, DAMAGED, AGAIN)
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
    return InputError(f"{path} {DAMAGED} ({error}). {AGAIN}")


def read_table(path: Path) -> Table:
    """Read a table that a person made.

    Parameters
    ----------
    path : Path
        A ``.csv``, ``.tsv`` or ``.parquet`` file.

    Returns
    -------
    DataFrame
        The table, with the names of `COLUMNS` in lower case. The cells of a CSV are all texts.

    Raises
    ------
    InputError
        If the file is missing or cannot be read, or has one of `COLUMNS` twice.
    """
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    if path.suffix.lower() not in TABLE_SUFFIXES:
        raise InputError(f"{path} is not a table. Give a .csv, .tsv or .parquet file.")
    if path.suffix.lower() in _PARQUET_SUFFIXES:
        table = load_parquet(path, "cannot be read as Parquet", "Write it again.")
    else:
        table = _read_csv(path)
    lower = {name: str(name).strip().lower() for name in table}
    special = {name: to for name, to in lower.items() if to in COLUMNS}
    repeated = [to for to, count in Counter(special.values()).items() if count > 1]
    if repeated:
        raise InputError(
            f"{path} has more than one column named {first_few(repeated)}. Keep one of each."
        )
    return table.rename(columns=special)


def _read_csv(path: Path) -> Table:
    """Read a CSV as texts: no cell becomes a number or a missing value (001 and NA stay)."""
    pandas = require("pandas", "report")
    advice = (
        "It needs a header and the same number of cells in each line. Put texts that contain a "
        "comma in quotes."
    )
    with explained_errors(path, "cannot be read as a CSV", advice), warnings.catch_warnings():
        # pandas only warns when a line has too many cells, and drops the last ones.
        warnings.simplefilter("error", pandas.errors.ParserWarning)
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                header = next((line for line in file if line.strip()), "")
            return pandas.read_csv(
                path,
                sep=_separator(header),
                dtype=str,
                na_filter=False,  # a class may be called NA or None
                index_col=False,  # else a surplus cell per line makes the first column an index
                skipinitialspace=True,
                encoding="utf-8-sig",  # Excel begins its files with a byte order mark
            )
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is not in UTF-8. Save it as 'CSV UTF-8'.") from error


def _separator(header: str) -> str:
    """The character that splits the header into the most names of `COLUMNS`."""

    def n_known(separator: str) -> int:
        names = next(csv.reader([header], delimiter=separator), [])
        return sum(name.strip().lower() in COLUMNS for name in names)

    return max(",;\t|", key=n_known)


def column_values(table: Table, name: str, path: Path) -> list[Any]:
    """The cells of a column, None where one is missing; `path` is the table's file."""
    if name not in table:
        raise InputError(
            f"{path} has the columns {first_few(table.columns, 8)}, but no {name!r}. "
            "Its first line must name the columns."
        )
    return [
        None if missing else value
        for value, missing in zip(table[name].tolist(), table[name].isna(), strict=True)
    ]


def column_texts(table: Table, name: str, path: Path) -> list[str]:
    """The cells of a column as texts without space around them; empty where one is missing."""
    values = column_values(table, name, path)
    return ["" if value is None else str(value).strip() for value in values]
