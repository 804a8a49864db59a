"""The table of items as CSV."""

from __future__ import annotations

from newfound.data.tables import write_csv
from newfound.result.export.targets import Target, check_new_file
from newfound.result.result import Result


def export_csv(result: Result, target: Target) -> None:
    """Write the table of items as a CSV file, with texts that no spreadsheet runs as formulas."""
    check_new_file(target.path)
    write_csv(result.table, target.path)
