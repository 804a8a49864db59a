"""Partial labels: from the labels that people give to integer codes.

People write "no label" as None, NaN, an empty text or -1; scikit-learn writes -1. Inside the
package, labels are integer codes: ``0 … K^l - 1`` for the known classes, sorted by name, and
``-1`` for an unlabelled row. K^l is the number of known classes.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from newfound.arrays import Bools, Ints, LabelsLike
from newfound.errors import InputError
from newfound.words import plural

UNLABELLED = -1  # as in sklearn.semi_supervised

#: Texts that mean "no label". numpy turns -1 and NaN into such texts in an array of texts.
_NO_LABEL_TEXTS = frozenset({"", "-1", "nan"})


@dataclass(frozen=True)
class PartialLabels:
    """Labels of a partly labelled collection.

    Attributes
    ----------
    codes : ndarray of shape (n,), int64
        Index into `classes`, -1 where a row is unlabelled.
    classes : ndarray of shape (K^l,)
        Names of the known classes, sorted, of the type that was given.
    """

    codes: Ints
    classes: npt.NDArray[Any]

    @property
    def is_labelled(self) -> Bools:
        """Which rows are labelled (the paper's D^l), shape (n,)."""
        return self.codes != UNLABELLED

    @property
    def n_known(self) -> int:
        """K^l, the number of known classes."""
        return len(self.classes)


def category_names(classes: npt.NDArray[Any], n_components: int) -> npt.NDArray[np.object_]:
    """Name every category: known classes as they were given, novel ones from ``new-001`` upwards.

    Parameters
    ----------
    classes : ndarray of shape (K^l,)
        The known classes.
    n_components : int
        Number of categories K, known and novel.

    Returns
    -------
    ndarray of object, shape (K,)
        ``category_names(...)[labels]`` names the category of each row.
    """
    names = np.empty(n_components, dtype=object)
    names[: len(classes)] = classes.tolist()
    names[len(classes) :] = [f"new-{i:03d}" for i in range(1, n_components - len(classes) + 1)]
    return names


def encode_labels(y: LabelsLike, n_rows: int | None = None) -> PartialLabels:
    """Turn partial labels of any common form into codes.

    Parameters
    ----------
    y : array-like of shape (n,), or None
        Labels as integers, texts or booleans. None, NaN, ``pandas.NA``, empty text and -1 (also
        as the texts ``"-1"`` and ``"nan"``, which numpy makes of them) mean unlabelled.
        ``y=None`` means that no row is labelled.
    n_rows : int, optional
        Number of rows of X, checked against the length of `y`.

    Returns
    -------
    PartialLabels
        Codes, and the classes that they stand for.

    Raises
    ------
    InputError
        If the length of `y` is not that of X, or if `y` is not one-dimensional, mixes texts with
        numbers or holds fractional numbers.
    """
    if y is None:
        if n_rows is None:
            raise InputError("y is None and n_rows was not given; pass one of the two.")
        return PartialLabels(np.full(n_rows, UNLABELLED, dtype=np.int64), np.empty(0, dtype=int))
    y = _as_column(y)
    if n_rows is not None and len(y) != n_rows:
        raise InputError(
            f"y has {plural(len(y), 'label')}, but X has {plural(n_rows, 'row')}. Give one label "
            "per row, with -1, None or an empty text where a row is unlabelled."
        )
    if y.dtype.kind in "iub":
        return _encode_numbers(y, is_missing=y == UNLABELLED)
    if y.dtype.kind == "f":
        return _encode_numbers(y, is_missing=np.isnan(y) | (y == UNLABELLED))
    return _encode_objects(y.tolist())


def _as_column(y: LabelsLike) -> npt.NDArray[Any]:
    """Make a one-dimensional array of `y`."""
    if hasattr(y, "to_numpy"):
        column = y.to_numpy()
    elif hasattr(y, "__array__"):
        column = np.asarray(y)
    elif isinstance(y, Iterable) and not isinstance(y, (str, bytes)):
        # An array of objects, because numpy would turn None and -1 beside texts into texts.
        items = list(y)
        column = np.empty(len(items), dtype=object)
        column[:] = items
    else:
        raise InputError(f"y must be a sequence of labels, one per row; got {type(y).__name__}.")
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise InputError(
            f"y must have one label per row, shape (n,); got shape {column.shape}. "
            "One-hot labels: pass y.argmax(axis=1)."
        )
    if column.dtype.kind == "c":
        raise InputError("Complex data not supported: y holds complex numbers.")
    return column


def _encode_numbers(y: npt.NDArray[Any], is_missing: Bools) -> PartialLabels:
    codes = np.full(len(y), UNLABELLED, dtype=np.int64)
    present = y[~is_missing]
    if present.dtype.kind == "f":  # pandas makes floats of whole numbers with gaps
        with np.errstate(invalid="ignore"):
            fractional = ~np.isfinite(present) | (present != np.round(present))
        if fractional.any():
            raise InputError(
                f"Unknown label type: y holds {present[fractional][0].item()!r}, "
                "which is not a class. Labels are whole numbers or texts, not measurements."
            )
        present = present.astype(np.int64)
    classes, codes[~is_missing] = np.unique(present, return_inverse=True)
    return PartialLabels(codes, classes)


def _encode_objects(items: list[Any]) -> PartialLabels:
    """Encode a list of Python objects: texts, numbers, None, NaN, pandas.NA."""
    is_missing = np.fromiter((_is_missing(item) for item in items), bool, len(items))
    present = [item for item, missing in zip(items, is_missing, strict=True) if not missing]
    texts = [item for item in present if isinstance(item, str)]
    others = [item for item in present if not isinstance(item, str)]
    if texts and others:
        raise InputError(
            f"y mixes texts (such as {texts[0]!r}) with other types (such as {others[0]!r}). "
            "Use one type for all labels, for instance [str(label) for label in y]."
        )
    not_numbers = [item for item in others if not isinstance(item, numbers.Real)]
    if not_numbers:
        raise InputError(
            f"Unknown label type: y holds {not_numbers[0]!r}, a {type(not_numbers[0]).__name__}. "
            "Labels are texts or whole numbers."
        )
    if others:
        # Truth values, integers and floats may be mixed; the widest type holds them all.
        column = np.zeros(len(items), dtype=np.result_type(*{type(item) for item in others}))
        column[~is_missing] = others
        return _encode_numbers(column, is_missing)
    codes = np.full(len(items), UNLABELLED, dtype=np.int64)
    classes, codes[~is_missing] = np.unique(np.array(texts, dtype=str), return_inverse=True)
    return PartialLabels(codes, classes)


def _is_missing(item: Any) -> bool:
    """Whether `item` means "no label"."""
    if isinstance(item, str):
        return item.strip() in _NO_LABEL_TEXTS
    # pandas.NA and pandas.NaT by the names of their types: pandas may not be installed.
    if item is None or type(item).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(item, numbers.Real):
        return bool(item != item or item == UNLABELLED)  # NaN differs from itself
    return False
