"""Labels as people write them in tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy.typing as npt

from newfound.data.collection import Labels
from newfound.data.tables import as_objects
from newfound.errors import InputError
from newfound.labels import encode_labels

#: How tables write "no label", in addition to what `encode_labels` knows.
_NO_LABEL = frozenset(["", "nan", "<na>", "-1"])


def as_labels(values: list[Any] | npt.NDArray[Any], n_rows: int | None = None) -> Labels:
    """Labels as they were given, None where there is none.

    Parameters
    ----------
    values : list or ndarray of shape (n,)
        Cells of a column, or an array in any form that `encode_labels` knows.
    n_rows : int, optional
        The number of labels that there should be.

    Returns
    -------
    ndarray of object, shape (n,)
        Texts, numbers and None.

    Raises
    ------
    InputError
        If `encode_labels` refuses them.
    """
    y = [_label(value) for value in values] if isinstance(values, list) else values
    partial = encode_labels(y, n_rows)
    names = [*partial.classes.tolist(), None]  # the code of "no label" is -1: the last entry
    return as_objects([names[code] for code in partial.codes])


def _label(value: Any) -> Any:
    """One cell: text without space around it, None if it means "no label"."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    return None if text.lower() in _NO_LABEL else text


def labels_by_id(ids: list[str], values: list[Any], path: Path) -> dict[str, Any]:
    """Map each id to its label; an item may have several rows, but only one label.

    Parameters
    ----------
    ids : list of str
        The id in each row of the table.
    values : list
        The cell in the column ``label`` of each row.
    path : Path
        The file of the table, for the message.

    Returns
    -------
    dict
        Id → label, None where there is none.

    Raises
    ------
    InputError
        If an item has two labels.
    """
    by_id: dict[str, Any] = {}
    for name, label in zip(ids, as_labels(values), strict=True):
        known = by_id.get(name)
        if known is not None and label is not None and known != label:
            raise InputError(
                f"{path} gives {name} two labels, {known!r} and {label!r}. Keep one of them."
            )
        by_id[name] = label if known is None else known
    return by_id
