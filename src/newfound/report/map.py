"""The map: every item as a point in the plane, near the items that are similar to it."""

from __future__ import annotations

import importlib
import importlib.util
import os
from dataclasses import dataclass
from typing import Literal

import numpy as np

from newfound.arrays import Doubles, Floats, Ints
from newfound.mixture.eigen import eigh

#: Coordinates are whole numbers from 0 to this: finer than any screen, and few bytes in the page.
EXTENT = 4095

_PERPLEXITY = 30
_FEWEST_FOR_TSNE = 10
_N_DIRECTIONS = 50

#: With more items than this, interpolation on a grid is faster than a tree of points.
_MANY = 2500


@dataclass(frozen=True)
class Map:
    """Items in the plane.

    Attributes
    ----------
    points : ndarray of int, shape (m, 2)
        Coordinates from 0 to `EXTENT`; the longer side is filled, the shorter one centred.
    method : {"t-SNE", "PCA"}
        How the points were found.
    """

    points: Ints
    method: Literal["t-SNE", "PCA"]


def draw_map(V: Floats, *, seed: int = 0, n_jobs: int = 2) -> Map:
    """Place items in the plane: by openTSNE if it is installed, otherwise by PCA.

    Parameters
    ----------
    V : ndarray of shape (m, q)
        Items in the mixture's space.
    seed : int, default=0
        Seed of the search for neighbours.
    n_jobs : int, default=2
        Number of threads.

    Returns
    -------
    Map
        A point for each item.
    """
    V = np.asarray(V, dtype=np.float64)
    axes = _principal_axes(V)
    if len(V) < _FEWEST_FOR_TSNE or not _has_tsne():
        return Map(_fit_to_page(axes[:, :2]), "PCA")
    return Map(_fit_to_page(_neighbour_embedding(axes, seed, n_jobs)), "t-SNE")


def sample_rows(codes: Ints, must: Ints, at_most: int, *, seed: int = 0) -> Ints:
    """Choose the items to show if there are too many for a page.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        Category of each item.
    must : ndarray of int
        Rows that are always shown.
    at_most : int
        Number of rows to choose, including those of `must`.
    seed : int, default=0
        Seed of the draw.

    Returns
    -------
    ndarray of int
        Rows in ascending order. Every category has a share of the draw, and a small one more than
        its size would give it.
    """
    ranks = np.empty(len(codes))
    for rows in np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1]):
        shuffled = np.random.default_rng([seed, len(rows)]).permutation(len(rows))
        # The k-th item of a category gets rank k / √size: between equal numbers and equal shares.
        ranks[rows] = shuffled / np.sqrt(max(1, len(rows)))
    ranks[must] = -1
    n_rows = max(at_most, len(np.unique(must)))
    return np.sort(np.argsort(ranks, kind="stable")[:n_rows])


def _has_tsne() -> bool:
    return importlib.util.find_spec("openTSNE") is not None


def _principal_axes(V: Floats) -> Doubles:
    """Items along their first principal axes, with at least two columns."""
    # t-SNE on the first axes is much faster than on all of them and looks nearly the same.
    centred = V - V.mean(axis=0)
    d = centred.shape[1]
    kept = min(_N_DIRECTIONS, d)
    directions = eigh(centred.T @ centred, kept)[1]
    axes: Doubles = centred @ directions[:, ::-1]
    return np.pad(axes, ((0, 0), (0, max(0, 2 - kept))))


def _neighbour_embedding(axes: Doubles, seed: int, n_jobs: int) -> Doubles:
    """t-SNE that starts from the principal axes, which preserves the overall arrangement."""
    opentsne = importlib.import_module("openTSNE")
    start = axes[:, :2] / max(float(axes[:, 0].std()), 1e-12) * 1e-4
    embedding = opentsne.TSNE(
        perplexity=min(_PERPLEXITY, (len(axes) - 1) / 3),
        initialization=start,
        negative_gradient_method="bh" if len(axes) < _MANY else "fft",
        early_exaggeration_iter=150,
        n_iter=300,
        n_jobs=min(n_jobs, _threads_allowed()),
        random_state=seed,
    ).fit(axes)
    return np.asarray(embedding, dtype=np.float64)


def _fit_to_page(plane: Doubles) -> Ints:
    """Rotate the longest direction to x, and scale both axes alike to 0 … `EXTENT`."""
    centred = plane - plane.mean(axis=0)
    plane = centred @ eigh(centred.T @ centred)[1][:, ::-1]
    low, high = plane.min(axis=0), plane.max(axis=0)
    span = max(float((high - low).max()), 1e-12)
    return np.round(((plane - (low + high) / 2) / span + 0.5) * EXTENT).astype(np.int64)


def _threads_allowed() -> int:
    """Number of threads that OpenMP may use; more would compete with each other."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, int(limit)) if limit.isdigit() else os.cpu_count() or 1
