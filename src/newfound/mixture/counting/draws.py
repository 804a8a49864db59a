"""Draws that hide known classes and fit the mixture again, each at a small part of a fit's cost.

A count of the categories takes most of a fit. What it finds out about the rows without labels, the
surroundings of each row, is found once for all draws. A draw then counts in fewer rounds, and runs
one start instead of three. Large collections are sampled.
"""

from __future__ import annotations

import functools
import itertools
import os
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from newfound.arrays import ArrayLike, Floats, Ints, LabelsLike
from newfound.errors import DiscoveryWarning
from newfound.files import is_alive
from newfound.labels import UNLABELLED, PartialLabels
from newfound.mixture.class_order import ClassOrder
from newfound.mixture.counting.count import MAX_ROWS, count_among
from newfound.mixture.counting.drawing import sample_rows
from newfound.mixture.counting.neighbours import Surroundings, survey
from newfound.mixture.counting.novel_size import Sizes
from newfound.mixture.rows import content_order, row_keys

#: Rounds of the count in a draw; a fit has three times as many.
_N_ROUNDS = 5
#: Rows of a draw: at least this many, and up to `MAX_ROWS` if classes would have few labels.
_LEAST_ROWS = 3_000
_LABELS_PER_CLASS = 30
_N_SAMPLES = 4
#: How often a process looks whether the one that started it still lives.
_SECONDS_BETWEEN_LOOKS = 1.0

T = TypeVar("T")


class CategoryFinder(Protocol):
    """What a draw needs of the mixture: settings, a fit, and its results.

    The settings are ``n_init``, ``verbose``, ``callback`` and ``random_state``, and perhaps
    ``count`` and ``sizes``. This is a protocol because the mixture itself imports from this room,
    to count categories.
    """

    labels_: Ints
    n_known_: int
    n_novel_: int
    n_components_: int

    def fit(self, X: ArrayLike, y: LabelsLike = None) -> Any:
        """Find the categories."""
        ...

    def set_params(self, **params: Any) -> Any:
        """Change settings, as scikit-learn's estimators do."""
        ...


class DrawRows(NamedTuple):
    """The rows of all draws, sorted by content."""

    X: Floats
    codes: Ints  # known classes, numbered by content; -1 if unlabelled
    near: Surroundings


def samples_of_rows(X: Floats, partial: PartialLabels) -> list[DrawRows]:
    """Sort the rows, find the surroundings of each, and sample them if there are many.

    Draws take turns with the samples: what is peculiar to one of them does not decide.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Features.
    partial : PartialLabels
        Their labels.

    Returns
    -------
    list of DrawRows
        One, with all rows, if there are not many.
    """
    keys = row_keys(X)
    codes = ClassOrder.of(partial, keys).number_by_content(partial.codes)
    order = content_order(keys, codes)
    n_rows, samples = n_rows_of_draw(codes), []
    for seed in range(_N_SAMPLES if n_rows < len(X) else 1):
        rng = np.random.default_rng(seed)
        rows = order[sample_rows(codes[order], n_rows, rng)]
        near = survey(X[rows], rng, len(X) / len(rows))
        samples.append(DrawRows(X[rows], codes[rows], near))
    return samples


def n_rows_of_draw(codes: Ints) -> int:
    """How many rows a draw takes: enough that most known classes have several labels."""
    n_labelled, n_known = int((codes != UNLABELLED).sum()), int(codes.max()) + 1
    share = _LABELS_PER_CLASS * n_known / max(1, n_labelled)
    return min(len(codes), MAX_ROWS, max(_LEAST_ROWS, int(np.ceil(share * len(codes)))))


def settings_of_draw(mixture: CategoryFinder) -> Any:
    """A copy of the mixture with one start: the draws themselves show how much chance matters."""
    return clone(mixture).set_params(n_init=1, verbose=0, callback=None)


def fit_visible(settings: CategoryFinder, rows: DrawRows, visible: Ints, seed: int) -> Any:
    """Fit a copy of the mixture to the labels that are left.

    Parameters
    ----------
    settings : SplitMergeMixture
        From `settings_of_draw`.
    rows : DrawRows
        The rows.
    visible : ndarray of int, shape (n,)
        The labels that are left, -1 where there is none.
    seed : int
        Seed of the fit.
    """
    mixture = clone(settings).set_params(random_state=seed)
    if _counts(mixture):
        names, codes = np.unique(visible, return_inverse=True)
        codes = codes - (names[0] == UNLABELLED)  # known classes without gaps, from 0
        rng = np.random.default_rng(seed)
        sizes: Sizes = mixture.sizes or "alike"
        count = count_among(rows.near, codes, rng, sizes=sizes, n_rounds=_N_ROUNDS)
        mixture.set_params(count=count)
    return fit_quietly(mixture, rows.X, visible)


def fit_quietly(mixture: CategoryFinder, X: Floats, y: Ints) -> Any:
    """Fit without the warning that few classes are known: classes were hidden on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscoveryWarning)
        return mixture.fit(X, y)


def _counts(mixture: Any) -> bool:
    """Whether the mixture would count the categories itself."""
    return (
        getattr(mixture, "acceptance", None) == "calibrated"
        and mixture.n_components is None
        and mixture.count is None
    )


def run_draws(
    draw: Callable[[DrawRows, int], T],
    samples: Sequence[DrawRows],
    seeds: Sequence[int],
    n_jobs: int | None,
    progress: Callable[[int, int], object] | None,
) -> list[T]:
    """Call ``draw(rows, seed)`` for each seed, in several processes, and report progress."""
    results = []
    turns = zip(itertools.cycle(samples), seeds, strict=False)
    calls = (delayed(_draw_for)(os.getpid(), draw, rows, int(seed)) for rows, seed in turns)
    for result in Parallel(n_jobs=n_jobs, return_as="generator")(calls):
        results.append(result)
        if progress is not None:
            progress(len(results), len(seeds))
    return results


def _draw_for(owner: int, draw: Callable[[DrawRows, int], T], rows: DrawRows, seed: int) -> T:
    """One draw; in another process, one that ends when the process that wants it is killed."""
    if os.getpid() != owner:
        _end_with(owner)
    return draw(rows, seed)


@functools.cache
def _end_with(owner: int) -> None:
    """Watch over the process that wants the draws, from a thread, and end this one after it."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent and is_alive(owner):
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
