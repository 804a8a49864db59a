"""A job: what a person asked for, and a diary of how the work went."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from newfound.errors import DiscoveryWarning, InputError
from newfound.mixture.clustering import check_positive_int
from newfound.mixture.counting.novel_size import Sizes, check_sizes
from newfound.progress import Progress, no_progress


@dataclass
class Job:
    """What a person asked for, with the seconds and the warnings of the steps so far.

    Attributes
    ----------
    seed : int
        Seed of all random numbers.
    n_categories : int or None
        Number of categories, known and novel together, if it is given.
    rehearse : bool
        Whether to hide known classes and see whether they are found.
    progress : callable
        Called with the step, how much of it is done, and how much there is.
    min_confidence : float or None
        Unlabelled items with a lower confidence are marked as unsure; None marks nothing.
    sizes : {"unknown", "alike"}, float or None
        What is known about the mean size of novel categories, see `SplitMergeMixture`.
    device : str or None
        Where networks compute; None for a GPU if there is one.
    overwrite : bool
        Whether to replace a finished run.
    data, content : str or None
        Fingerprints of the collection, once it is read: without and with the content of pictures.
    timings : dict
        Seconds by step.
    warnings : list of str
        What a person should know about the result.
    """

    seed: int = 0
    n_categories: int | None = None
    rehearse: bool = False
    progress: Progress = no_progress
    min_confidence: float | None = None
    sizes: Sizes | None = "unknown"
    device: str | None = None
    overwrite: bool = False
    data: str | None = None
    content: str | None = None
    timings: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Refuse a seed, a number, a confidence or sizes that make no sense."""
        if not isinstance(self.seed, (int, np.integer)) or not 0 <= self.seed < 2**32:
            raise InputError(f"seed must be a whole number from 0 to 2**32 - 1; got {self.seed!r}.")
        if self.n_categories is not None:
            check_positive_int("n_categories", self.n_categories)
        if self.sizes is not None:
            check_sizes(self.sizes)
        share = self.min_confidence
        is_number = isinstance(share, (int, float)) and not isinstance(share, bool)
        if share is not None and not (is_number and 0 <= share <= 1):
            raise InputError(
                f"min_confidence must be a number from 0 to 1, such as 0.8; got {share!r}."
            )

    @contextlib.contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Measure the seconds of a step."""
        started = time.perf_counter()
        yield
        self.timings[step] = round(time.perf_counter() - started, 3)

    @contextlib.contextmanager
    def collecting_warnings(self) -> Iterator[None]:
        """Keep the warnings of the method for the result, and pass all others on."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DiscoveryWarning)
            yield
        for warning in caught:
            if issubclass(warning.category, DiscoveryWarning):
                self.warnings.append(str(warning.message))
            else:
                warnings.warn_explicit(
                    warning.message, warning.category, warning.filename, warning.lineno
                )
