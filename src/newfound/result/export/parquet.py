"""The table of items as Parquet."""

from __future__ import annotations

from newfound.data.tables import write_parquet
from newfound.errors import require
from newfound.result.export.targets import Target, check_new_file
from newfound.result.result import Result


def export_parquet(result: Result, target: Target) -> None:
    """Write the table of items as a Parquet file, with the types of its columns."""
    require("pyarrow", "report")  # first, so that a missing package is not taken for a bad target
    check_new_file(target.path)
    write_parquet(result.table, target.path)
