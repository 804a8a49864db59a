"""Files with one item per row: arrays and tables of features, and tables of texts.

Labels are in the same file or in a table beside it. Rows with ids are sorted by id; rows without
ids keep the order of the file and are numbered.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from newfound.array_files import read_array
from newfound.arrays import Floats
from newfound.data.collection import (
    Collection,
    Labels,
    Metadata,
    check_ids,
    without_unusable_rows,
)
from newfound.data.features import as_features, features_of_table, load_features
from newfound.data.label_tables import as_labels, labels_by_id
from newfound.data.metadata import by_id, read_metadata
from newfound.data.tables import (
    TABLE_SUFFIXES,
    Table,
    as_objects,
    column_texts,
    column_values,
    read_table,
)
from newfound.errors import InputError
from newfound.words import first_few, plural


class _FileRows(NamedTuple):
    """The rows of a file, before they become items."""

    ids: list[str] | None
    y: Labels | None
    content: Floats | list[str]  # features or texts
    metadata: Metadata


def read_row_file(source: Path, labels: Path | None) -> Collection:
    """Read a file of features or texts.

    Parameters
    ----------
    source : Path
        An ``.npz``, ``.npy``, ``.csv``, ``.tsv`` or ``.parquet`` file.
    labels : Path or None
        A table with the column ``label`` and optionally ``id``.

    Returns
    -------
    Collection
        Features or texts. Rows without a text, or with a feature that is not finite, are skipped.

    Raises
    ------
    InputError
        If a file cannot be read, or the two don't fit together.
    """
    rows = _read_rows(source)
    if labels is not None:
        rows = _with_labels(rows, Path(labels), source)
    return _as_collection(rows, source)


def _read_rows(source: Path) -> _FileRows:
    suffix = source.suffix.lower()
    if not source.is_file():
        raise InputError(f"There is no file or folder {source}.")
    if suffix == ".npz":
        X, y = load_features(source)
        features = as_features(X, source)
        return _FileRows(None, as_labels(y, len(features)), features, {})
    if suffix == ".npy":
        return _FileRows(None, None, as_features(read_array(source), source), {})
    if suffix in TABLE_SUFFIXES:
        return _rows_of_table(read_table(source), source)
    raise InputError(
        f"{source} is not a kind of file that newfound reads. Give a folder of pictures, "
        "embeddings as .npz, .npy or .parquet, or texts as .csv, .tsv or .parquet."
    )


def _rows_of_table(table: Table, source: Path) -> _FileRows:
    """Texts or features, whichever the table has; both at once would be ambiguous."""
    # A table of embeddings often names its rows by the pictures that they were made from.
    names = [name for name in ("id", "path") if name in table]
    ids = column_texts(table, names[0], source) if names else None
    y = as_labels(column_values(table, "label", source)) if "label" in table else None
    X = features_of_table(table, source)
    if X is not None and "text" in table:
        raise InputError(
            f"{source} has a column 'text' and {plural(X.shape[1], 'feature')}. Keep one of the "
            "two."
        )
    if X is not None:
        return _FileRows(ids, y, X, {})
    if "text" in table:
        return _FileRows(ids, y, column_texts(table, "text", source), read_metadata(table))
    hint = f" For pictures give their folder, and {source.name} as the labels." * ("path" in table)
    raise InputError(
        f"{source} has the columns {first_few(table.columns, 8)}, but no 'text' and no numbers to "
        f"use as features. Give texts in a column 'text', or embeddings as .parquet.{hint}"
    )


def _with_labels(rows: _FileRows, labels: Path, source: Path) -> _FileRows:
    """Take the labels from a table: in the order of the rows, or by id."""
    if rows.y is not None and any(label is not None for label in rows.y):
        raise InputError(f"Both {source} and {labels} have labels. Keep one of the two.")
    table = read_table(labels)
    given, further = column_values(table, "label", labels), read_metadata(table)
    n = len(rows.content)
    if "id" not in table:
        if len(given) != n:
            raise InputError(
                f"{labels} has {plural(len(given), 'label')}, but {source} has "
                f"{plural(n, 'row')}. Give a label for each row, empty where there is none, or a "
                "column 'id'."
            )
        return rows._replace(y=as_labels(given), metadata=rows.metadata | further)
    named = column_texts(table, "id", labels)
    ids = rows.ids or [str(i) for i in range(n)]
    unknown = sorted(set(named) - set(ids))
    if unknown and rows.ids is None and len(named) == n:
        # The rows have no ids, and the table has one line per row: its ids become the ids of the
        # rows. A table that names rows by their numbers is handled below.
        return rows._replace(ids=named, y=as_labels(given), metadata=rows.metadata | further)
    if unknown:
        counted = plural(len(unknown), f"id in {labels} is", f"ids in {labels} are")
        raise InputError(
            f"{counted} not in {source}: {first_few(unknown)}. "
            + ("Rows without ids are numbered from 0." if rows.ids is None else "Check the ids.")
        )
    label_of = labels_by_id(named, given, labels)
    y = as_objects([label_of.get(name) for name in ids])
    return rows._replace(y=y, metadata=rows.metadata | by_id(further, named, ids))


def _as_collection(rows: _FileRows, source: Path) -> Collection:
    """Sort the rows by id, and leave out those that are empty or not finite."""
    n, content = len(rows.content), rows.content
    if rows.ids is not None:
        check_ids(rows.ids, str(source))
    collection = Collection(
        ids=rows.ids or [str(i) for i in range(n)],
        y=as_objects([None] * n) if rows.y is None else rows.y,
        features=content if isinstance(content, np.ndarray) else None,
        texts=content if isinstance(content, list) else None,
        root=source.absolute(),
        metadata=rows.metadata,
    )
    collection = without_unusable_rows(collection)
    if rows.ids is None:  # row numbers as texts would be sorted 0, 1, 10, 11, 2
        return collection
    return collection.take(sorted(range(len(collection)), key=collection.ids.__getitem__))
