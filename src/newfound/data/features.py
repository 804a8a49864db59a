"""Features from files: NumPy archives and arrays, and the columns of a table."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from newfound.array_files import read_archive
from newfound.arrays import Floats, LabelsLike
from newfound.data.tables import COLUMNS, Table
from newfound.errors import InputError, require
from newfound.words import first_few


def load_features(path: Path) -> tuple[Floats, LabelsLike]:
    """Read features and partial labels.

    Parameters
    ----------
    path : Path
        An ``.npz`` archive with the arrays ``X`` of shape (n, d) and ``y`` of shape (n,).
        Arrays of Python objects are refused, because reading them would run code in the file.

    Returns
    -------
    X : ndarray of shape (n, d)
        Features.
    y : ndarray of shape (n,)
        Partial labels; -1 or an empty text where a row is unlabelled.

    Raises
    ------
    InputError
        If the file is not such an archive, lacks an array, or an array holds objects.
    """
    arrays = read_archive(path, ("X", "y"))
    X, y = arrays["X"], arrays["y"]
    if X.dtype == np.float16:  # good enough to store features, not to add them up
        X = X.astype(np.float32)
    return X, y


def as_features(X: npt.NDArray[Any], source: Path) -> Floats:
    """Floating point numbers of shape (n, d), in single precision where that is exact."""
    if X.ndim != 2 or X.dtype.kind not in "fiub" or X.shape[1] == 0:
        raise InputError(
            f"The features in {source} have the shape {X.shape} and the type {X.dtype}. "
            "Give numbers, with a row for each item and a column for each feature."
        )
    return X.astype(np.result_type(X.dtype, np.float32), copy=False)


def features_of_table(table: Table, source: Path) -> Floats | None:
    """Features from a table: one column of lists, or all columns of numbers.

    Parameters
    ----------
    table : DataFrame
        As `read_table` gives it. The columns id, label, path and text are never features.
    source : Path
        Its file, for messages.

    Returns
    -------
    ndarray of shape (n, d), or None
        None if there is neither a column of lists nor one of numbers.

    Raises
    ------
    InputError
        If there are several columns of lists, or lists of different lengths.
    """
    types = require("pandas", "report").api.types
    others = table[[name for name in table if name not in COLUMNS]]
    lists = [name for name in others if _holds_lists(others[name])]
    if len(lists) > 1:
        raise InputError(f"{source} has several columns of lists: {first_few(lists)}. Keep one.")
    if lists:
        return as_features(_stacked(others[lists[0]].tolist(), source), source)
    numbers = [
        name
        for name in others
        # pandas counts truth values among the numbers
        if types.is_numeric_dtype(others[name]) and not types.is_bool_dtype(others[name])
    ]
    if not numbers:
        return None
    single = all(others[name].dtype in (np.float32, np.float16) for name in numbers)
    # A gap becomes NaN; rows with one are skipped later.
    X = others[numbers].to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan)
    return as_features(X, source)


def _holds_lists(column: Any) -> bool:
    first = next((value for value in column if value is not None), None)
    return isinstance(first, (list, tuple, np.ndarray))


def _stacked(lists: list[Any], source: Path) -> npt.NDArray[Any]:
    """Lists of one length as rows; a missing one as a row of NaN, which is skipped later."""
    lengths = Counter(len(value) for value in lists if value is not None)
    if len(lengths) > 1:
        raise InputError(
            f"The lists in {source} have different lengths: {first_few(sorted(lengths))}. "
            "Every row needs the same number of features."
        )
    missing = np.full(max(lengths), np.nan, dtype=np.float32)
    return np.array([missing if value is None else value for value in lists])
