"""Types of the arrays that functions take and return; docstrings give the shapes."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[Any]  # float32 or float64
Doubles: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[Any]  # any signed integer type
Bools: TypeAlias = npt.NDArray[np.bool_]
Keys: TypeAlias = npt.NDArray[np.uint64]  # hashes of the content of rows

#: What users may pass. scikit-learn's validation or `encode_labels` checks it.
ArrayLike: TypeAlias = Any
LabelsLike: TypeAlias = Any
RandomStateLike: TypeAlias = Any
