"""What all clusterings of partially labelled rows share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClusterMixin

from newfound.arrays import ArrayLike, Ints, LabelsLike
from newfound.errors import InputError
from newfound.labels import category_names


class PartiallyLabelledClusterMixin(ClusterMixin):
    """A clusterer whose first K^l clusters are the known classes, in sorted order."""

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


def check_positive_int(name: str, value: Any) -> None:
    """Raise unless `value` is a whole number of at least 1."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise InputError(f"{name} must be a whole number of at least 1; got {value!r}.")
