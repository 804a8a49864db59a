"""The table of items as CSV."""

from __future__ import annotations

from pathlib import Path

from newfound.data.tables import write_csv
from newfound.result.export.targets import check_new_file
from newfound.result.result import Result


def export_csv(result: Result, out: Path) -> None:
    """Write the table of items as a CSV file, with texts that no spreadsheet runs as formulas."""
    check_new_file(out)
    write_csv(result.table, out)
