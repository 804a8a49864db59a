"""Feature files: features with the true class of every row, as a data set of the benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from newfound.array_files import read_archive
from newfound.bench.datasets.dataset import DataSet
from newfound.data.features import load_features
from newfound.errors import InputError


def is_feature_file(dataset: str) -> bool:
    """Whether a data set is given as the path of a feature file, not as an id."""
    return dataset.lower().endswith((".npz", ".npy"))


def load_feature_file(path: Path) -> DataSet:
    """Read finished features and their true classes.

    Parameters
    ----------
    path : Path
        An ``.npz`` archive with ``X`` of shape (n, d), ``y`` of shape (n,), which is the true class
        of every row as whole numbers or texts, and optionally ``known``, the known classes. Without
        ``known``, the first half of the sorted classes is known, rounded down.

    Returns
    -------
    DataSet
        A data set with classes in sorted order.

    Raises
    ------
    InputError
        If the file is not such an archive, a row has no class, or `known` names another class.
    """
    X, y = load_features(path)
    if X.ndim != 2 or y.shape != (len(X),) or not len(X):
        raise InputError(
            f"{path} has X of shape {X.shape} and y of shape {y.shape}; expected (n, d) and (n,)."
        )
    if X.dtype.kind not in "fiu" or not np.isfinite(X).all():
        raise InputError(f"{path}: X must contain finite numbers only.")
    classes, truth = np.unique(_as_classes(y, path), return_inverse=True)
    names = tuple(str(name) for name in classes)
    return DataSet(
        name=path.stem,
        truth=truth.astype(np.int64),
        class_names=names,
        known=_known_classes(path, names),
        array=X if X.dtype.kind == "f" else X.astype(np.float64),
        layout="features",
    )


def _as_classes(values: npt.NDArray[Any], path: Path) -> npt.NDArray[Any]:
    """Whole numbers or texts. A benchmark needs every class, so none may mean "no label"."""
    # class numbers are often stored as floats
    if values.dtype.kind == "f" and np.array_equal(values, np.rint(values)):
        values = values.astype(np.int64)
    if values.dtype.kind not in "iuU":
        raise InputError(
            f"{path}: the classes have the type {values.dtype}; expected whole numbers or texts."
        )
    without = int(np.sum(values == "") if values.dtype.kind == "U" else np.sum(values < 0))
    if without:
        raise InputError(
            f"{path} has {without} of {len(values)} rows without a class (negative or empty). The "
            "benchmark hides labels itself: give the true class of every row."
        )
    return values


def _known_classes(path: Path, names: tuple[str, ...]) -> tuple[int, ...]:
    stored = read_archive(path, (), optional=("known",)).get("known")
    given = None if stored is None else _as_classes(np.atleast_1d(stored), path)
    if given is None:
        if len(names) < 2:
            raise InputError(f"{path} has one class. Give at least two: one known and one novel.")
        return tuple(range(len(names) // 2))
    strange = sorted(set(map(str, given.tolist())) - set(names))
    if strange or not len(given):
        raise InputError(
            f"{path}: known names {', '.join(strange) or 'no class'}, but y has the classes "
            f"{', '.join(names[:10])}{', …' if len(names) > 10 else ''}. Name classes of y, as "
            "they are written there."
        )
    return tuple(sorted({names.index(str(name)) for name in given.tolist()}))
