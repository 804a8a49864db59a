"""The one reader of Parquet: it looks at the sizes in the file before it unpacks anything.

Repeated values take next to no room in a Parquet file. A file of 540 kB can hold 7 GB.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from newfound.errors import require
from newfound.files import explained_errors
from newfound.limits import check_unpacked

#: The least that one value takes in a table of pandas.
_VALUE_BYTES = 8
#: Types of Parquet whose values have any length.
_TEXT = "BYTE_ARRAY"
#: Texts that cannot be longer than this together are not added up.
_HARMLESS_BYTES = 10**9


def load_parquet(path: Path, problem: str, advice: str) -> Any:
    """Read a Parquet file.

    Parameters
    ----------
    path : Path
        The file.
    problem, advice : str
        What to say if it cannot be read, see `explained_errors`.

    Returns
    -------
    DataFrame
        As pandas reads it.

    Raises
    ------
    InputError
        If the file is missing or damaged, or takes more memory than `check_unpacked` allows.
    """
    require("pyarrow", "report")
    parquet = require("pyarrow.parquet", "report")
    pandas = require("pandas", "report")
    with explained_errors(path, problem, advice), path.open("rb") as file:
        check_unpacked(path, _unpacked_bytes(parquet.ParquetFile(file), path))
        file.seek(0)
        return pandas.read_parquet(file, engine="pyarrow")


def _unpacked_bytes(file: Any, path: Path) -> int:
    """Bytes that the values of all columns take."""
    groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
    chunks = [group.column(i) for group in groups for i in range(group.num_columns)]
    total = sum(max(c.total_uncompressed_size, _VALUE_BYTES * c.num_values) for c in chunks)
    # A text that is repeated is stored once, so the header does not say how long all texts are.
    # They are added up only where they may be long enough to matter.
    repeated = {
        chunk.path_in_schema
        for chunk in chunks
        if chunk.physical_type == _TEXT
        and chunk.has_dictionary_page
        and chunk.num_values * chunk.total_uncompressed_size > _HARMLESS_BYTES
    }
    return int(total + sum(_text_bytes(path, name) for name in sorted(repeated)))


def _text_bytes(path: Path, name: str) -> int:
    """Length of all texts of a column together, without making them."""
    compute = require("pyarrow.compute", "report")
    parquet = require("pyarrow.parquet", "report")
    total = 0
    with parquet.ParquetFile(path, read_dictionary=[name]) as file:
        for batch in file.iter_batches(columns=[name]):
            column = batch.column(0)
            while hasattr(column, "flatten") and not hasattr(column, "dictionary"):
                column = column.flatten()  # lists of texts
            if not hasattr(column, "dictionary"):
                total += column.nbytes
                continue
            lengths = compute.binary_length(column.dictionary)
            total += compute.sum(lengths.take(column.indices.drop_null())).as_py() or 0
    return total
