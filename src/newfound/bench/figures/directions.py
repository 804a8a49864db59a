"""How accuracy depends on the number of principal directions q, on finished features."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

from newfound.arrays import Floats
from newfound.bench.figures.canvas import COLOURS, DASHES, mark_directions, new_figure
from newfound.bench.figures.figure_data import FigureData
from newfound.bench.figures.runs import Runs, describe
from newfound.bench.splits import Split
from newfound.bench.start import to_cluster
from newfound.deep.partition import mixture_for
from newfound.deep.settings import Settings
from newfound.errors import DiscoveryWarning
from newfound.metrics import DiscoveryScores, discovery_scores
from newfound.mixture.kmeans import SemiSupervisedKMeans

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MIXTURE, K_MEANS = "mixture", "semi-supervised k-means"
#: Number of starts of each.
_N_STARTS = 3
_FIRST = 8
#: Numbers in one array of covariances, K·q²: half a GB. A mixture holds several at once.
_MOST_NUMBERS = 2**26


def draw_directions(source: str, runs: Runs) -> Figure:
    """Draw All, Old and New over q, on features before training and after GPC's training.

    Parameters
    ----------
    source : str
        Id of the data set. A feature file has one panel only.
    runs : Runs
        Where data, runs and results are.
    """
    data = FigureData(source, runs)
    if data.dataset.has_features:
        settings, words = runs.settings(source), "finished features"
        panels = [("features as given", data.start(settings))]
    else:
        gpc = data.newest("gpc")
        settings, words = runs.settings(source, gpc.case), describe(gpc.case)
        panels = [
            ("features before training", data.start(settings)),
            ("features of GPC", data.outcome(gpc).features),
        ]
    title = f"{data.title}, principal directions; {words}; K = {data.n_classes} given"
    figure = new_figure(5.2 * len(panels), 4.3, title)
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for place, (name, X) in zip(axes, panels, strict=True):
        sizes = direction_sizes(len(X), X.shape[1], data.n_classes)
        place.set_title(name, fontsize=9)
        _draw_scores(place, sizes, accuracy_over_directions(X, data.split, settings, sizes))
        mark_directions(place, settings.estep.n_directions)
    axes[0].set_ylabel("accuracy on the unlabelled images in %")
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=2,
        fontsize=8,
        frameon=False,
    )
    return figure


def direction_sizes(n_rows: int, n_columns: int, n_classes: int) -> list[int]:
    """Numbers of directions to try: 8, 16, 32 … and the largest possible one.

    Parameters
    ----------
    n_rows, n_columns : int
        Shape of the features.
    n_classes : int
        K. The covariances of many components take too much memory with all directions.
    """
    most, room = min(n_rows - 1, n_columns), math.isqrt(_MOST_NUMBERS // n_classes)
    sizes = [_FIRST]
    while 2 * sizes[-1] < most:
        sizes.append(2 * sizes[-1])
    return [q for q in [*(q for q in sizes if q < most), most] if q <= room]


def accuracy_over_directions(
    X: Floats, split: Split, settings: Settings, sizes: list[int]
) -> dict[str, list[DiscoveryScores]]:
    """Scores of the mixture and of semi-supervised k-means, with the true K given, for each q.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Features of the rows of the split.
    split : Split
        Labels and true classes.
    settings : Settings
        Settings of the mixture, and the seed.
    sizes : list of int
        Values of q.

    Returns
    -------
    dict
        `MIXTURE` and `K_MEANS` → scores in the order of `sizes`.
    """
    k, seed, free = split.n_known + split.n_novel, settings.run.seed, split.is_unlabelled
    scores: dict[str, list[DiscoveryScores]] = {MIXTURE: [], K_MEANS: []}
    for q in sizes:
        changed = settings.with_changes(pca="all", n_directions=q, n_components=k)
        mixture = mixture_for(changed.estep, X.shape[1], n_init=_N_STARTS, random_state=seed)
        k_means = SemiSupervisedKMeans(k, n_init=_N_STARTS, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DiscoveryWarning)
            found = {
                MIXTURE: mixture.fit(X, split.y).labels_,
                K_MEANS: k_means.fit(to_cluster(X, changed), split.y).labels_,
            }
        for name, labels in found.items():
            truth = split.truth[free]
            scores[name].append(discovery_scores(truth, labels[free], split.known))
    return scores


def _draw_scores(axes: Axes, sizes: list[int], scores: dict[str, list[DiscoveryScores]]) -> None:
    for name, colour, marker in ((MIXTURE, COLOURS[0], "o"), (K_MEANS, COLOURS[1], "s")):
        for show, dashes in zip(("all", "old", "new"), DASHES, strict=True):
            axes.plot(
                sizes,
                [100 * getattr(score, show) for score in scores[name]],
                color=colour,
                linestyle=dashes,
                marker=marker,
                markersize=5 if show == "all" else 3,
                linewidth=2 if show == "all" else 1.2,
                label=f"{show.capitalize()}: {name}",
            )
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(q) for q in sizes])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("number of principal directions q")
    axes.grid(alpha=0.3)
