"""Maps of features side by side: before training, of GCD and of GPC."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from newfound.arrays import Floats, Ints
from newfound.bench.figures.canvas import COLOURS, GREY, new_figure
from newfound.bench.figures.figure_data import FigureData
from newfound.bench.figures.runs import Runs, describe, describe_k
from newfound.bench.splits import Split
from newfound.errors import InputError, require
from newfound.mixture.projection import unit_rows
from newfound.report.map import EXTENT, draw_map, sample_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Largest number of points. In larger data sets every class keeps its share.
_MOST_POINTS = 6000
#: Markers of known and of novel classes.
_MARKERS = ("o", "^")
_LONGEST_NAME = 22


class Group(NamedTuple):
    """The points of one class: its name, known or novel, its colour, and indices of its points."""

    name: str
    is_known: bool
    colour: str
    rows: Ints


def draw_maps(source: str, runs: Runs) -> Figure:
    """Draw t-SNE maps of features before training, of GCD and of GPC, coloured by true class.

    Parameters
    ----------
    source : str
        Id of the data set.
    runs : Runs
        Where data, runs and results are.
    """
    require("openTSNE", "report")
    data = FigureData(source, runs)
    if data.dataset.has_features:
        raise InputError(f"{source} holds finished features, so there is no training to compare.")
    gpc = data.newest("gpc")
    gcd = data.newest("gcd", like=gpc.case)
    rows = map_rows(data.split)
    panels = [
        ("before training", data.start(runs.settings(source, gpc.case))),
        *(
            (f"{name}: {describe_k(run)}, All {run.all:.1f} %", data.outcome(run).features)
            for name, run in (("GCD", gcd), ("GPC", gpc))
        ),
    ]
    groups, others = colour_groups(data.split, rows, data.dataset.class_names)
    title = f"{data.title}, t-SNE of {len(rows):,} images; {describe(gpc.case)}"
    figure = new_figure(10, 4.4, f"{title}; true K = {data.n_classes}")
    for place, (name, features) in enumerate(panels, start=1):
        axes = figure.add_subplot(1, len(panels), place)
        axes.set_title(name, fontsize=9)
        _draw_points(axes, draw_map(unit_rows(features[rows]), n_jobs=1).points, groups, others)
    _add_legend(figure, groups, len(others) > 0)
    return figure


def map_rows(split: Split, at_most: int = _MOST_POINTS) -> Ints:
    """Rows of a split that a map shows, in ascending order.

    Parameters
    ----------
    split : Split
        Split with the true class of each row.
    at_most : int
        Largest number of points.
    """
    return sample_rows(split.truth, np.array([], dtype=np.int64), at_most)


def colour_groups(
    split: Split, rows: Ints, names: tuple[str, ...], *, seed: int = 0
) -> tuple[list[Group], Ints]:
    """Choose the classes that get a colour at random: at most 10 known and 10 novel ones.

    A known and a novel class may share a colour; their markers differ.

    Parameters
    ----------
    split : Split
        True classes, known classes.
    rows : ndarray of int, shape (m,)
        Rows of the split that are shown.
    names : tuple of str
        Names of the classes.
    seed : int
        Seed of the choice.

    Returns
    -------
    groups : list of Group
        Classes, known ones first. Their `rows` are indices of `rows`.
    others : ndarray of int
        Indices of all other points.
    """
    truth = split.truth[rows]
    generator = np.random.default_rng(seed)
    groups = []
    for is_known in (True, False):
        classes = np.unique(truth[np.isin(truth, split.known) == is_known])
        chosen = np.sort(generator.permutation(classes)[: len(COLOURS)])
        groups += [
            Group(names[number], is_known, colour, np.flatnonzero(truth == number))
            for number, colour in zip(chosen.tolist(), COLOURS, strict=False)
        ]
    # with hundreds of classes colours cannot be told apart; the others become grey
    shown = np.concatenate([group.rows for group in groups])
    return groups, np.setdiff1d(np.arange(len(rows)), shown)


def _draw_points(axes: Axes, points: Floats, groups: list[Group], others: Ints) -> None:
    size = float(np.clip(30_000 / len(points), 3, 24))
    x, y = points.T
    axes.scatter(
        x[others], y[others], s=size / 2, c=GREY, marker=".", linewidths=0, rasterized=True
    )
    for group in groups:
        axes.scatter(
            x[group.rows],
            y[group.rows],
            s=size,
            c=group.colour,
            marker=_MARKERS[not group.is_known],
            linewidths=0,
            alpha=0.85,
            rasterized=True,
        )
    margin = 0.02 * EXTENT
    axes.set(xlim=(-margin, EXTENT + margin), ylim=(-margin, EXTENT + margin), aspect="equal")
    axes.set(xticks=[], yticks=[])


def _add_legend(figure: Figure, groups: list[Group], has_others: bool) -> None:
    """Known classes on the left, novel ones on the right, followed by the other classes."""
    from matplotlib.lines import Line2D

    def entry(name: str, marker: str, colour: str) -> Line2D:
        return Line2D([], [], linestyle="", marker=marker, color=colour, markersize=5, label=name)

    for is_known in (True, False):
        marker = _MARKERS[not is_known]
        lines = [
            entry(_short(group.name), marker, group.colour)
            for group in groups
            if group.is_known == is_known
        ]
        if has_others and not is_known:
            lines.append(entry("other classes", ".", GREY))
        figure.legend(
            handles=lines,
            title="known classes" if is_known else "novel classes",
            loc="outside lower left" if is_known else "outside lower right",
            ncols=3,
            fontsize=7,
            title_fontsize=8,
            handletextpad=0.1,
            columnspacing=1.0,
            frameon=False,
        )


def _short(name: str) -> str:
    name = name.replace("_", " ")
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
