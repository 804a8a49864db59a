"""Further columns of a person's tables, such as site or camera: they may say what a category is.

They have no part in finding categories. They are shown beside those that were found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from newfound.data.collection import Metadata
from newfound.data.tables import COLUMNS, Table


def read_metadata(table: Table) -> Metadata:
    """The columns of a table that may tell something about groups of its rows.

    Parameters
    ----------
    table : DataFrame
        As `read_table` gives it.

    Returns
    -------
    dict
        All columns but those that have a meaning of their own. Columns of numbers with a fraction
        or of lists are left out, and so are those in which hardly any value occurs twice.
    """
    found = {str(name): _values(table[name]) for name in table if name not in COLUMNS}
    return {name: values for name, values in found.items() if _has_groups(values)}


def by_id(metadata: Metadata, named: Sequence[str], ids: Sequence[str]) -> Metadata:
    """Metadata of the items `ids`, from those of the rows that are named `named`."""
    row_of = {name: row for row, name in enumerate(named)}
    rows = [row_of.get(name) for name in ids]
    return {
        name: [None if row is None else values[row] for row in rows]
        for name, values in metadata.items()
    }


def joined(parts: Sequence[tuple[Metadata, int]]) -> Metadata:
    """Metadata of several collections one after the other, each with its number of items."""
    names = dict.fromkeys(name for metadata, _ in parts for name in metadata)
    return {
        name: [v for metadata, n in parts for v in metadata.get(name, [None] * n)] for name in names
    }


def _values(column: Any) -> list[str | None]:
    """Cells as texts; None for what is missing or no plain value."""
    cells = zip(column.tolist(), column.isna(), strict=True)
    plain = ["" if missing or not isinstance(v, str | int) else str(v) for v, missing in cells]
    return [text.strip() or None for text in plain]


def _has_groups(values: Sequence[str | None]) -> bool:
    given = [value for value in values if value is not None]
    return 2 * len(set(given)) <= len(given) and bool(given)
