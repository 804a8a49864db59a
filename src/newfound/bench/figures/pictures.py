"""The images nearest to some prototypes: of k-means before training, and of GPC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from newfound.arrays import Bools, Doubles, Floats, Ints
from newfound.bench.figures.canvas import new_figure
from newfound.bench.figures.figure_data import FigureData
from newfound.bench.figures.runs import Runs, describe, describe_k
from newfound.bench.record import Record
from newfound.bench.start import to_cluster
from newfound.deep.partition import mixture_space
from newfound.labels import encode_labels
from newfound.mixture.assignment import prototypes_of
from newfound.mixture.rows import squared_distances

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

N_PROTOTYPES, N_PICTURES = 5, 10
#: Seed of the choice of prototypes, so that a figure can be drawn again.
_SEED = 0
#: Distance from image to image, in sides of an image.
_STEP = 1.15
#: Frames of images of the prototype's class (True) and of other classes: colour and line style.
_FRAMES: dict[bool, tuple[str, Literal["-", "--"]]] = {
    True: ("#009E73", "-"),
    False: ("#D55E00", "--"),
}


class Gallery(NamedTuple):
    """Some prototypes and the rows nearest to them.

    Attributes
    ----------
    clusters : ndarray of int, shape (m,)
        Numbers of the prototypes.
    rows : ndarray of int, shape (m, p)
        Nearest rows of the whole data set, the nearest first.
    classes : ndarray of int, shape (m,)
        Most frequent true class in the cluster.
    shares : ndarray of shape (m,)
        Share of this class in the cluster.
    is_right : ndarray of bool, shape (m, p)
        Whether an image is of this class.
    """

    clusters: Ints
    rows: Ints
    classes: Ints
    shares: Doubles
    is_right: Bools


def draw_prototypes(source: str, runs: Runs) -> Figure:
    """Draw the nearest images of prototypes, of k-means at the top and of GPC at the bottom.

    Parameters
    ----------
    source : str
        Id of the data set.
    runs : Runs
        Where data, runs and results are.
    """
    data = FigureData(source, runs)
    gpc = data.newest("gpc")
    k_means = data.newest("kmeans", like=gpc.case)
    pictures = data.pictures(runs.settings(source, gpc.case))
    blocks = [
        (f"k-means before training, {describe_k(k_means)}", k_means, _of_k_means),
        (f"GPC, {describe_k(gpc)}", gpc, _of_gpc),
    ]
    title = f"{data.title}, images nearest to prototypes; {describe(gpc.case)}"
    figure = new_figure(8, 8.6, f"{title}; true K = {data.n_classes}")
    for place, (name, record, space) in enumerate(blocks, start=1):
        V, centres, labels = space(data, record)
        gallery = nearest_pictures(V, centres, labels, data.split.truth)
        axes = figure.add_subplot(2, 1, place)
        axes.set_title(name, fontsize=9)
        _draw_gallery(axes, gallery, pictures, _names(data))
    _add_legend(figure)
    return figure


def nearest_pictures(
    V: Floats,
    centres: Floats,
    labels: Ints,
    truth: Ints,
    *,
    n_prototypes: int = N_PROTOTYPES,
    n_pictures: int = N_PICTURES,
) -> Gallery:
    """Choose prototypes at random and find the rows nearest to each.

    Parameters
    ----------
    V : ndarray of shape (n, q)
        Rows in the space of the prototypes.
    centres : ndarray of shape (K, q)
        Prototypes. A prototype with NaN is not chosen.
    labels : ndarray of int, shape (n,)
        Cluster of each row. A prototype without rows is not chosen.
    truth : ndarray of int, shape (n,)
        True class of each row.
    n_prototypes, n_pictures : int
        Largest numbers of prototypes, and of images for each.

    Returns
    -------
    Gallery
        Prototypes in ascending order.
    """
    filled = np.bincount(labels, minlength=len(centres)) > 0
    usable = np.flatnonzero(filled & np.isfinite(centres).all(axis=1))
    clusters = np.sort(np.random.default_rng(_SEED).permutation(usable)[:n_prototypes])
    distances = squared_distances(V, centres[clusters].astype(V.dtype))
    rows = np.argsort(distances, axis=0, kind="stable")[:n_pictures].T
    counts = [np.bincount(truth[labels == cluster]) for cluster in clusters]
    classes = np.array([count.argmax() for count in counts], dtype=np.int64)
    shares = np.array([count.max() / count.sum() for count in counts])
    return Gallery(clusters, rows, classes, shares, truth[rows] == classes[:, None])


def _of_k_means(data: FigureData, record: Record) -> tuple[Floats, Floats, Ints]:
    """Rows in the space of k-means, its centres, and the clusters."""
    X, labels = data.outcome(record)
    V = to_cluster(X, data.runs.settings(data.source, record.case))
    every = np.full(len(labels), -1)
    return V, prototypes_of(V, every, labels, 0), labels


def _of_gpc(data: FigureData, record: Record) -> tuple[Floats, Floats, Ints]:
    """Rows in the space of the mixture, its prototypes, and the components."""
    X, labels = data.outcome(record)
    codes = encode_labels(data.split.y, len(X)).codes
    V, _ = mixture_space(X, codes, data.runs.settings(data.source, record.case).estep)
    return V, prototypes_of(V, codes, labels, int(codes.max()) + 1), labels


def _names(data: FigureData) -> list[str]:
    """Names of the classes, each marked as known or novel."""
    known = set(data.split.known)
    return [
        f"{name.replace('_', ' ')[:24]}, {'known' if number in known else 'novel'}"
        for number, name in enumerate(data.dataset.class_names)
    ]


def _draw_gallery(
    axes: Axes, gallery: Gallery, pictures: npt.NDArray[Any], names: list[str]
) -> None:
    """Draw one line of images per prototype, with the most frequent class of its cluster."""
    n_lines, n_pictures = gallery.rows.shape
    for line in range(n_lines):
        middle = -line * _STEP + 0.5
        share = f"{100 * gallery.shares[line]:.0f} % of its cluster"
        text = f"mostly {names[gallery.classes[line]]}\n({share})"
        axes.text(-0.15, middle, text, ha="right", va="center", fontsize=7)
        for place in range(n_pictures):
            picture = np.asarray(pictures[gallery.rows[line, place]]).transpose(1, 2, 0)
            is_right = bool(gallery.is_right[line, place])
            _draw_picture(axes, picture, place * _STEP, -line * _STEP, is_right)
    axes.set(xlim=(-2.2, n_pictures * _STEP), ylim=(-(n_lines - 1) * _STEP - 0.1, 1.1))
    axes.set_aspect("equal")
    axes.axis("off")


def _draw_picture(axes: Axes, picture: npt.NDArray[Any], x: float, y: float, right: bool) -> None:
    from matplotlib.patches import Rectangle

    axes.imshow(picture, extent=(x, x + 1, y, y + 1), interpolation="nearest")
    colour, line = _FRAMES[right]
    axes.add_patch(
        Rectangle((x, y), 1, 1, fill=False, edgecolor=colour, linestyle=line, linewidth=1.3)
    )


def _add_legend(figure: Figure) -> None:
    from matplotlib.patches import Patch

    words = {True: "most frequent class of the cluster", False: "another class"}
    frames = [
        Patch(fill=False, edgecolor=colour, linestyle=line, linewidth=1.3, label=words[right])
        for right, (colour, line) in _FRAMES.items()
    ]
    figure.legend(handles=frames, loc="outside lower center", ncols=2, fontsize=8, frameon=False)
