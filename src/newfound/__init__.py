"""newfound finds the categories that your labels don't have yet.

>>> from newfound import SplitMergeMixture
>>> mixture = SplitMergeMixture(random_state=0).fit(X, y)  # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from newfound._version import __version__

if TYPE_CHECKING:
    from newfound.data.collection import Collection
    from newfound.data.reading import read_collection
    from newfound.mixture.alternatives import ConstrainedDBSCAN, ConstrainedWard
    from newfound.mixture.counting.count import CategoryCount, count_categories
    from newfound.mixture.counting.rehearsal import Rehearsal, rehearse
    from newfound.mixture.estimator import SplitMergeMixture
    from newfound.mixture.kmeans import SemiSupervisedKMeans
    from newfound.mixture.projection import Projection
    from newfound.mixture.trust.report import trust_report
    from newfound.mixture.trust.verdict import TrustReport
    from newfound.result.result import Result
    from newfound.workflows.discover import discover

#: Public name → module. Resolved on first use, so that `import newfound` stays light.
_HOMES = {
    "CategoryCount": "newfound.mixture.counting.count",
    "Collection": "newfound.data.collection",
    "ConstrainedDBSCAN": "newfound.mixture.alternatives",
    "ConstrainedWard": "newfound.mixture.alternatives",
    "Projection": "newfound.mixture.projection",
    "Rehearsal": "newfound.mixture.counting.rehearsal",
    "Result": "newfound.result.result",
    "SemiSupervisedKMeans": "newfound.mixture.kmeans",
    "SplitMergeMixture": "newfound.mixture.estimator",
    "TrustReport": "newfound.mixture.trust.verdict",
    "count_categories": "newfound.mixture.counting.count",
    "discover": "newfound.workflows.discover",
    "read_collection": "newfound.data.reading",
    "rehearse": "newfound.mixture.counting.rehearsal",
    "trust_report": "newfound.mixture.trust.report",
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
    "TrustReport",
    "__version__",
    "count_categories",
    "discover",
    "read_collection",
    "rehearse",
    "trust_report",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'newfound' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
