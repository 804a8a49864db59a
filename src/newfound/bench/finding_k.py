"""K of a run: the truth, Brent's search or our count, on the features before training.

The answers of searches are kept in the work folder, because all methods ask for the same ones.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from newfound.arrays import Floats
from newfound.bench.case import Case
from newfound.bench.rivals import brent_search
from newfound.bench.splits import Split
from newfound.bench.start import start_features
from newfound.deep.settings import Settings
from newfound.errors import DiscoveryWarning
from newfound.files import read_json, write_json
from newfound.mixture.counting.count import count_categories
from newfound.mixture.counting.novel_size import parse_sizes


class FoundK(NamedTuple):
    """K (None if the method finds it), where it was found, and the interval of a counted K^n."""

    n_components: int | None
    source: str = ""
    interval: tuple[float, float] | None = None


def find_k(
    case: Case, split: Split, X: npt.NDArray[Any], settings: Settings, start: Path
) -> FoundK:
    """K for a method that does not find it in the way that the case asks for.

    Parameters
    ----------
    case : Case
        What is run. When known classes are hidden, K is the number of all known classes plus the
        K^n that Brent's search finds with all labels: the same for all methods, and without a
        look at the novel classes.
    split : Split
        Labels, and the true classes for a case with K known.
    X : ndarray
        Images, or features.
    settings : Settings
        Backbone and seed.
    start : Path
        File for the features before training.
    """
    if case.k == "known" and not case.hidden:
        return FoundK(split.n_known + split.n_novel)
    labels = split.all_labels
    if case.k == "count" and not case.hidden:
        found = _kept("count", _count, X, labels, settings, start)
        source = "count on the features before training"
    else:
        found = _kept("brent", _brent, X, labels, settings, start)
        source = "Brent search on the features before training"
    low_high = found.get("interval")
    interval = None if low_high is None else (float(low_high[0]), float(low_high[1]))
    n_known = len(np.unique(labels[labels != -1])) if case.hidden else split.n_known
    return FoundK(n_known + int(found["n_novel"]), source, interval)


def _kept(
    kind: str,
    search: Callable[[Floats, Any, Settings], dict[str, Any]],
    X: npt.NDArray[Any],
    y: npt.NDArray[np.int64],
    settings: Settings,
    start: Path,
) -> dict[str, Any]:
    """The answer of a search on the features before training, from its file if there is one."""
    # the answer depends on the rows, the labels, the seed and what is said about sizes
    digest = hashlib.sha256(f"{start.name} {settings.run.seed} {settings.estep.sizes}".encode())
    digest.update(y.astype("<i8").tobytes())
    if X.ndim == 2:
        digest.update(np.ascontiguousarray(X).data)
    file = start.with_name(f"{kind}-{digest.hexdigest()[:12]}.json")
    if file.exists():
        kept: dict[str, Any] = read_json(file)
        return kept
    found = search(X if X.ndim == 2 else start_features(X, settings, start), y, settings)
    write_json(file, found)
    return found


def _brent(Z: Floats, y: Any, settings: Settings) -> dict[str, Any]:
    return {"n_novel": brent_search(Z, y, random_state=settings.run.seed)}


def _count(Z: Floats, y: Any, settings: Settings) -> dict[str, Any]:
    sizes = parse_sizes(settings.estep.sizes) or "unknown"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscoveryWarning)  # the interval says how far to trust it
        count = count_categories(Z, y, sizes=sizes, random_state=settings.run.seed)
    return {"n_novel": round(count.n_novel), "interval": list(count.interval)}
