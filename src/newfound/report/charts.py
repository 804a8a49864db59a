"""The numbers behind the charts; the template draws them with CSS and one SVG line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from newfound.arrays import Bools, Doubles, Ints
from newfound.result.record import History
from newfound.words import plural, things

N_BINS = 20


@dataclass(frozen=True)
class Bin:
    """A column of the histogram: counts, and heights in percent of the tallest column."""

    low: int
    high: int
    n_known: int
    n_novel: int
    known_height: float
    novel_height: float


@dataclass(frozen=True)
class Line:
    """K over passes or epochs: an SVG path in a square of side 100, and its main numbers."""

    path: str
    unit: str
    n_steps: int
    first: int
    last: int
    low: int
    high: int


@dataclass(frozen=True)
class Range:
    """An interval on an axis; all positions are in percent of the axis."""

    left: float
    width: float
    mark: float
    ticks: list[tuple[float, int]]
    low: float
    high: float


@dataclass(frozen=True)
class Dots:
    """Ratios of the rehearsal on an axis: positions in percent, and heights where dots stack."""

    dots: list[tuple[float, int, float]]
    ticks: list[tuple[float, str]]
    one: float
    tallest: int


def confidence_bins(confidence: Doubles, is_novel: Bools) -> list[Bin]:
    """Count items by confidence, separately for known and novel categories.

    Parameters
    ----------
    confidence : ndarray of shape (n,)
        From 0 to 1.
    is_novel : ndarray of bool, shape (n,)
        Items in novel categories.

    Returns
    -------
    list of Bin
        Twenty columns, each 5 % wide.
    """
    bins = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
    known = np.bincount(bins[~is_novel], minlength=N_BINS)
    novel = np.bincount(bins[is_novel], minlength=N_BINS)
    # Both kinds share a column, so its height is their sum.
    tallest = max(1, int((known + novel).max()))
    width = 100 // N_BINS
    return [
        Bin(
            low=width * i,
            high=width * (i + 1),
            n_known=int(known[i]),
            n_novel=int(novel[i]),
            known_height=round(100 * known[i] / tallest, 2),
            novel_height=round(100 * novel[i] / tallest, 2),
        )
        for i in range(N_BINS)
    ]


def history_line(history: History) -> Line | None:
    """Number of components K over passes or epochs, as a line.

    Parameters
    ----------
    history : History
        K after each step.

    Returns
    -------
    Line or None
        None if the number never changed: a flat line says less than `steady_sentence`.
    """
    values = [n for n in history.n_components if n is not None]
    if len(set(values)) < 2:
        return None
    low, high = min(values), max(values)
    span = high - low
    # 8 % of the height stays free above and below, so that the line is not cut at the edge.
    places = [
        (round(100 * i / (len(values) - 1), 2), round(8 + 84 * (high - value) / span, 2))
        for i, value in enumerate(values)
    ]
    path = "M" + " L".join(f"{x} {y}" for x, y in places)
    return Line(path, history.unit, len(values), values[0], values[-1], low, high)


def steady_sentence(history: History) -> str | None:
    """What there is to say about K if it never changed, in one sentence.

    Parameters
    ----------
    history : History
        K after each step.

    Returns
    -------
    str or None
        None if K changed, or if nothing was kept.
    """
    values = [n for n in history.n_components if n is not None]
    if not values or len(set(values)) > 1:
        return None
    steps = plural(len(values), "epoch") if history.unit == "epoch" else _passes(len(values))
    return f"The number of categories, known and new, was {values[0]} in all of {steps}."


def _passes(n: int) -> str:
    return plural(n, "pass", "passes")


def interval_range(n_novel: int, interval: Sequence[float | None] | None) -> Range | None:
    """The 90 % interval for the number of novel categories, on an axis that starts at 0.

    Parameters
    ----------
    n_novel : int
        Number that was found.
    interval : sequence of two numbers, optional
        The interval; the upper end may be None or infinite.

    Returns
    -------
    Range or None
        None without an interval.
    """
    if interval is None or len(interval) != 2:
        return None
    low = max(0.0, float(interval[0] or 0.0))
    high = math.inf if interval[1] is None else float(interval[1])
    # An open interval is drawn up to twice the number found; some room is left on the right.
    top = math.ceil(1.2 * max(n_novel, low, high if math.isfinite(high) else 2 * n_novel, 1))
    end = min(high, top)
    step = _round_up(top / 6)
    ticks = [(100 * tick / top, tick) for tick in range(0, top + 1, step)]
    return Range(100 * low / top, 100 * (end - low) / top, 100 * n_novel / top, ticks, low, high)


def rehearsal_dots(ratios: Sequence[float]) -> Dots | None:
    """Ratios of the rehearsal on a logarithmic axis around 1.

    Parameters
    ----------
    ratios : sequence of float
        Categories found for each hidden class: 1 is right, 2 is twice too many.

    Returns
    -------
    Dots or None
        None without ratios.
    """
    known = sorted(float(ratio) for ratio in ratios if ratio is not None and math.isfinite(ratio))
    if not known:
        return None
    reach = max(2.0, *(max(ratio, 1 / max(ratio, 0.1)) for ratio in known))

    # Logarithmic, because 2 and ½ are equally wrong and should lie equally far from 1.
    def place(ratio: float) -> float:
        logarithm = math.log(max(ratio, 1 / reach)) / math.log(reach)
        return round(50 + 46 * logarithm, 1)

    heights: dict[int, int] = {}
    dots = []
    for ratio in known:
        column = round(place(ratio) / 2.5)  # dots are 2.5 % wide; those in one column stack
        dots.append((column * 2.5, heights.get(column, 0), ratio))
        heights[column] = heights.get(column, 0) + 1
    ticks = [(place(tick), text) for tick, text in _TICKS if 1 / reach <= tick <= reach]
    return Dots(dots, ticks, place(1.0), max(heights.values()))


_TICKS = ((0.1, "⅒"), (0.25, "¼"), (0.5, "½"), (1.0, "1"), (2.0, "2"), (4.0, "4"), (8.0, "8"))


def balance_sentence(sizes: Ints, kind: str = "features") -> str:
    """How unequal the sizes of the categories are, in one sentence.

    Parameters
    ----------
    sizes : ndarray of int, shape (K,)
        Number of items in each category.
    kind : {"pictures", "texts", "features"}
        What the items are, for the words.

    Returns
    -------
    str
        A sentence.
    """
    sizes = np.sort(sizes[sizes > 0])[::-1]
    if len(sizes) < 2:
        return "There is one category."
    ratio = sizes[0] / sizes[-1]
    half = int(np.searchsorted(np.cumsum(sizes), sizes.sum() / 2)) + 1
    times = f"{ratio:.0f} times" if ratio >= 9.5 else f"{ratio:.1f} times"
    return (
        f"The largest category has {times} as many {things(kind)} as the smallest; half of all "
        f"{things(kind)} are in the {half} largest of {len(sizes)}."
    )


def _round_up(value: float) -> int:
    """The next larger number among 1, 2, 5, 10, 20, 50 and so on."""
    power = 10.0 ** math.floor(math.log10(max(value, 1.0)))
    return int(next(m * power for m in (1, 2, 5, 10) if m * power >= value * (1 - 1e-9)))
