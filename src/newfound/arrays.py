"""Names for the kinds of arrays that functions take and give; the shapes are in the docstrings."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[Any]  # float32 or float64
Doubles: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[Any]  # any signed integer type
Bools: TypeAlias = npt.NDArray[np.bool_]
Keys: TypeAlias = npt.NDArray[np.uint64]  # hashes of what rows hold

#: What users may pass; checked by scikit-learn's validation or by `encode_labels`.
ArrayLike: TypeAlias = Any
LabelsLike: TypeAlias = Any
RandomStateLike: TypeAlias = Any
