"""newfound finds the categories that your labels don't have yet.

>>> from newfound import SplitMergeMixture
>>> mixture = SplitMergeMixture(random_state=0).fit(X, y)  # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from newfound.assignments import Result
    from newfound.collection import Collection, read_collection
    from newfound.discovery import discover
    from newfound.mixture.alternatives import ConstrainedDBSCAN, ConstrainedWard
    from newfound.mixture.counting import CategoryCount, count_categories
    from newfound.mixture.estimator import SplitMergeMixture
    from newfound.mixture.kmeans import SemiSupervisedKMeans
    from newfound.mixture.rehearsal import Rehearsal, rehearse
    from newfound.projection import Projection

#: Public name → module. Resolved on first use, so that `import newfound` stays light.
_HOMES = {
    "CategoryCount": "newfound.mixture.counting",
    "Collection": "newfound.collection",
    "ConstrainedDBSCAN": "newfound.mixture.alternatives",
    "ConstrainedWard": "newfound.mixture.alternatives",
    "Projection": "newfound.projection",
    "Rehearsal": "newfound.mixture.rehearsal",
    "Result": "newfound.assignments",
    "SemiSupervisedKMeans": "newfound.mixture.kmeans",
    "SplitMergeMixture": "newfound.mixture.estimator",
    "count_categories": "newfound.mixture.counting",
    "discover": "newfound.discovery",
    "read_collection": "newfound.collection",
    "rehearse": "newfound.mixture.rehearsal",
}

__all__ = [
    "CategoryCount",
    "Collection",
    "ConstrainedDBSCAN",
    "ConstrainedWard",
    "Projection",
    "Rehearsal",
    "Result",
    "SemiSupervisedKMeans",
    "SplitMergeMixture",
    "__version__",
    "count_categories",
    "discover",
    "read_collection",
    "rehearse",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'newfound' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
