"""The mean size of novel classes: a prior, the evidence, and what follows for K^n.

τ is the log of the mean size of known classes over that of novel classes. The prior has two parts.
Either novel classes are like the known ones: τ differs from 0 only as far as the sizes of known
classes themselves differ. Or it was no matter of chance which classes were labelled; the large ones
first, for instance. Then τ may be anything, and is within ±log 4 in two of three collections. The
evidence is that of `measure_reach`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from newfound.arrays import Doubles
from newfound.errors import InputError

if TYPE_CHECKING:  # settings read this module, and help must be quick
    from newfound.mixture.counting.reach import Reach

#: What is known about sizes: nothing, that they are alike, or the ratio novel : known of the means.
Sizes = Literal["unknown", "alike"] | float

#: Standard deviation of τ if sizes were no matter of chance.
_SPREAD = float(np.log(4))
#: Prior probability that sizes are alike.
_ALIKE = 0.6
#: Relative error of the slope: it is measured on known classes that lose up to half of their rows,
#: and used for novel classes that may be several times smaller or larger.
_SLOPE_ERROR = 0.5
#: Values of τ, from novel classes that are 20 times larger to 20 times smaller.
_GRID = np.linspace(-3, 3, 601)
#: The data decide if they leave less than this share of the prior's standard deviation.
_DECISIVE = 0.5


class SizeRatio(NamedTuple):
    """Distribution of τ."""

    values: Doubles
    weights: Doubles  # sum to 1
    alike: float  # probability that sizes are alike
    decided_by: Literal["data", "prior", "given"]


def check_sizes(sizes: object) -> None:
    """Refuse anything but "unknown", "alike" and a positive number."""
    if isinstance(sizes, str) and sizes in ("unknown", "alike"):
        return
    numbers = (int, float, np.integer, np.floating)
    if isinstance(sizes, numbers) and sizes is not True and 0 < sizes < np.inf:
        return
    raise InputError(
        'sizes must be "unknown", "alike", or a number: the mean size of novel categories over '
        f"that of known ones, such as 0.5; got {sizes!r}."
    )


def parse_sizes(text: str) -> Sizes | None:
    """Read what a command line or a settings file says: unknown, alike, none, or a ratio."""
    if text in ("unknown", "alike", "none"):
        return None if text == "none" else text  # type: ignore[return-value]
    try:
        ratio = float(text)
        check_sizes(ratio)
    except (ValueError, InputError) as error:
        raise InputError(
            f"sizes must be unknown, alike, or the mean size of novel categories over that of "
            f"known ones, such as 0.5; got {text!r}."
        ) from error
    return ratio


def sizes_as_text(sizes: Sizes | None) -> str:
    """What `parse_sizes` reads."""
    return "none" if sizes is None else str(sizes)


def ratio_with_hidden(ratio: float, n_hidden: int, n_novel: float) -> float:
    """The ratio of mean sizes, novel : known, when known classes are hidden among the novel ones.

    Hidden classes are as large as known ones: (n_hidden + ratio · K^n) / (n_hidden + K^n).

    Parameters
    ----------
    ratio : float
        The ratio without them.
    n_hidden : int
        Number of hidden classes.
    n_novel : float
        K^n.
    """
    return (n_hidden + ratio * n_novel) / (n_hidden + n_novel)


def judge_sizes(sizes: Sizes, reach: Reach | None, n_alike: float, spread: float) -> SizeRatio:
    """Combine what is known, the prior and the evidence.

    Parameters
    ----------
    sizes : {"unknown", "alike"} or float
        What is known about sizes.
    reach : Reach or None
        The evidence.
    n_alike : float
        K^n if sizes are alike.
    spread : float
        Standard deviation of τ if sizes are alike, from the sizes of the known classes.

    Returns
    -------
    SizeRatio
        The distribution of τ.
    """
    if sizes != "unknown":
        centre = 0.0 if sizes == "alike" else -float(np.log(sizes))
        weights = _bell(_GRID, spread)
        return SizeRatio(centre + _GRID, weights / weights.sum(), float(sizes == "alike"), "given")
    alike = _ALIKE * _bell(_GRID, spread)
    other = (1 - _ALIKE) * _bell(_GRID, _SPREAD)
    evidence = np.ones(len(_GRID)) if reach is None else _likelihood(reach, n_alike)
    weights = evidence * (alike + other)
    total = weights.sum()
    without_prior = _deviation(evidence * other)
    decided = without_prior < _DECISIVE * _deviation(other)
    return SizeRatio(
        _GRID,
        weights / total,
        float((evidence * alike).sum() / total),
        "data" if decided else "prior",
    )


def _likelihood(reach: Reach, n_alike: float) -> Doubles:
    """Student's density of the log ratio, for every τ; its variance comes from few classes."""
    n_novel = np.maximum(n_alike * np.exp(_GRID), 1)
    variance = reach.class_variance * (1 / reach.n_known + 1 / n_novel) + reach.own_variance
    variance += np.square(_SLOPE_ERROR * reach.slope * _GRID) + 1e-6
    freedom = max(1, reach.n_known - 1)
    squared = np.square(reach.log_ratio - reach.slope * _GRID) / variance
    logs = -0.5 * (freedom + 1) * np.log1p(squared / freedom) - 0.5 * np.log(variance)
    density: Doubles = np.exp(logs - logs.max())
    return density


def _bell(values: Doubles, deviation: float) -> Doubles:
    """Normal density, on a grid that may be coarser than its width."""
    width = float(np.hypot(deviation, values[1] - values[0]))
    density: Doubles = np.exp(-0.5 * np.square(values / width)) / width
    return density


def _deviation(weights: Doubles) -> float:
    """Standard deviation of τ under the weights."""
    shares = weights / weights.sum()
    return float(np.sqrt(shares @ np.square(_GRID - shares @ _GRID)))
