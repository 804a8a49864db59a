"""What all clusterings of partially labelled rows share: names, defaults and checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import validate_data

from newfound.arrays import ArrayLike, Floats, Ints, LabelsLike
from newfound.errors import InputError
from newfound.labels import category_names


class PartiallyLabelledClusterMixin(ClusterMixin):
    """A clusterer whose first K^l clusters are the K^l known classes, in sorted order."""

    classes_: npt.NDArray[Any]
    labels_: Ints
    n_components_: int

    def fit_predict(
        self,
        X: ArrayLike,
        y: LabelsLike = None,
        **fit_params: Any,
    ) -> Ints:
        """Fit and return `labels_`. Unlike scikit-learn's default, `y` is read."""
        self.fit(X, y, **fit_params)
        return self.labels_

    @property
    def category_names_(self) -> npt.NDArray[np.object_]:
        """Name of each category: the class as it was given, or ``new-001`` … if novel."""
        return category_names(self.classes_, self.n_components_)


def check_rows(
    estimator: BaseEstimator, X: ArrayLike, *, reset: bool = True, ensure_min_samples: int = 1
) -> Floats:
    """Return X as a dense, finite float32 or float64 array; check its number of columns."""
    if issparse(X):
        raise InputError(
            "Sparse data was passed for X, but dense data is required. "
            "Use '.toarray()' to convert to a dense numpy array."
        )
    rows: Floats = validate_data(
        estimator,
        X,
        reset=reset,
        dtype=[np.float64, np.float32],
        ensure_min_samples=ensure_min_samples,
    )
    return rows


def default_n_components(n_known: int) -> int:
    """K_init of the paper, K^l + K^l / 2, at least one novel component; 10 without labels."""
    return n_known + max(1, n_known // 2) if n_known else 10


def check_choice(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    """Raise unless `value` is one of the allowed texts."""
    if value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(allowed)}; got {value!r}.")


def check_positive_int(name: str, value: Any) -> None:
    """Raise unless `value` is a whole number of at least 1."""
    # True is an int in Python, but not a number of anything
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise InputError(f"{name} must be a whole number of at least 1; got {value!r}.")
