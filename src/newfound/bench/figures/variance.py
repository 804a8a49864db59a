"""The variance of features before training that the first principal directions explain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from newfound.arrays import Doubles, Floats
from newfound.bench.figures.canvas import COLOURS, DASHES, mark_directions, new_figure
from newfound.bench.figures.figure_data import FigureData
from newfound.bench.figures.runs import Runs
from newfound.mixture.projection import Projection

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_variance(sources: list[str], runs: Runs) -> Figure:
    """Draw explained variance over the number of principal directions, one line per data set.

    Parameters
    ----------
    sources : list of str
        Ids of data sets, or paths of feature files.
    runs : Runs
        Where data, runs and results are.
    """
    lines, backbones, marks = [], [], []
    for source in sources:
        data, settings = FigureData(source, runs), runs.settings(source)
        X = data.start(settings)
        lines.append((f"{data.title} (d = {X.shape[1]})", explained_variance(X)))
        has_network = not data.dataset.has_features
        network = f"{settings.network.model}, seed {settings.run.seed}"
        backbones.append(network if has_network else "as given")
        marks.append(settings.estep.n_directions)
    title = f"Features before training: {'; '.join(dict.fromkeys(backbones))}"
    figure = new_figure(6, 4, title)
    axes = figure.add_subplot()
    for number, (name, shares) in enumerate(lines):
        axes.plot(
            np.arange(1, len(shares) + 1),
            100 * shares,
            label=name,
            color=COLOURS[number % len(COLOURS)],
            linestyle=DASHES[number % len(DASHES)],
            linewidth=1.8,
        )
    for q in sorted(set(marks)):
        mark_directions(axes, q)
    axes.set(xlabel="number of principal directions", ylabel="explained variance in %")
    axes.set(ylim=(0, 103), xlim=(0, None))
    axes.legend(loc="lower right", fontsize=8)
    axes.grid(alpha=0.3)
    return figure


def explained_variance(X: Floats) -> Doubles:
    """Share of the variance of unit-length rows along the first 1, 2, … directions.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Features.

    Returns
    -------
    ndarray of shape (min(n - 1, d),)
        Cumulative shares, up to 1.
    """
    return np.cumsum(Projection(X.shape[1]).fit(X).explained_variance_ratio_)
