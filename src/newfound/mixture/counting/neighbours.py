"""A graph of nearest neighbours without hubs, in a space that treats all classes alike.

Hubs are rows that are among the nearest neighbours of very many other rows.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.covariance import ledoit_wolf
from threadpoolctl import threadpool_limits

from newfound.arrays import Doubles, Floats, Ints
from newfound.mixture.eigen import eigh
from newfound.mixture.projection import Projection, unit_rows
from newfound.mixture.rows import row_blocks

#: Rows and nearest neighbours of each that show in which directions one class varies.
_N_SAMPLED = 4000
_N_NEAREST = 10
_SINKHORN_ROUNDS = 30
#: Nearest rows of a row, found once for all rounds: to search all rows each time is too slow.
_N_CANDIDATES = 100
_N_DIRECTIONS = 256


class Surroundings(NamedTuple):
    """The rows in a space that treats all classes alike, and what lies around each.

    No label enters, so one serves any number of counts with other labels.
    """

    V: Floats  # (n, q) rows of unit length, all 0 if the rows are equal
    candidates: Ints  # (n, m) the most similar rows of each row
    scale: float = 1.0  # rows of the collection for which each of these stands


def survey(X: Floats, rng: np.random.Generator, scale: float = 1.0) -> Surroundings:
    """Find the surroundings of rows that are sorted by content.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Features.
    rng : Generator
        Draws rows for `whiten_by_neighbours`.
    scale : float, default=1.0
        Rows of the collection for which each row stands.
    """
    V = whiten_by_neighbours(X, _N_DIRECTIONS, rng)
    candidates, _ = nearest_rows(V, min(_N_CANDIDATES, len(V) - 1))
    return Surroundings(V, candidates, scale)


def nearest_rows(V: Floats, n_neighbours: int, chosen: Ints | None = None) -> tuple[Ints, Floats]:
    """Find the most similar other rows of each chosen row, best first.

    Parameters
    ----------
    V : ndarray of shape (n, q)
        Rows of unit length.
    n_neighbours : int
        Number of neighbours.
    chosen : ndarray of int, shape (m,), optional
        Rows to find neighbours of; all by default.

    Returns
    -------
    neighbours : ndarray of int, shape (m, n_neighbours)
        Indices of rows.
    cosines : ndarray of shape (m, n_neighbours)
        Their cosine similarities.
    """
    chosen = np.arange(len(V)) if chosen is None else chosen
    neighbours = np.empty((len(chosen), n_neighbours), dtype=np.int64)
    cosines = np.empty((len(chosen), n_neighbours), dtype=V.dtype)

    def search(block: slice) -> None:
        similar = V[chosen[block]] @ V.T
        similar[np.arange(len(similar)), chosen[block]] = -np.inf
        best = np.argpartition(similar, -n_neighbours, axis=1)[:, -n_neighbours:]
        values = np.take_along_axis(similar, best, axis=1)
        order = np.argsort(-values, axis=1, kind="stable")
        neighbours[block] = np.take_along_axis(best, order, axis=1)
        cosines[block] = np.take_along_axis(values, order, axis=1)

    # threads help, because both the product and the partitioning, which takes most of the time,
    # release the interpreter lock
    with threadpool_limits(1), ThreadPoolExecutor(effective_n_jobs(-1)) as threads:
        for _ in threads.map(search, row_blocks(len(chosen), len(V))):
            pass
    return neighbours, cosines


def whiten_by_neighbours(X: Floats, n_directions: int, rng: np.random.Generator) -> Floats:
    """Project the rows and divide by the covariance of differences between neighbours.

    Neighbours are mostly of one class, so their differences show in which directions a class
    varies, without a label. Whitening by the labelled classes would make known classes more
    compact, but not novel ones; this treats both alike.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Features.
    n_directions : int
        Principal directions to keep.
    rng : Generator
        Draws the rows whose neighbours are used.

    Returns
    -------
    ndarray of shape (n, q), float32
        Rows of unit length.
    """
    projection = Projection(n_directions).fit_in_order(X, None, np.arange(len(X)))
    V = projection.transform_in_order(X, np.arange(len(X))).astype(np.float32)
    if not V.any():
        return V  # all rows are equal
    sampled = rng.permutation(len(V))[:_N_SAMPLED]
    neighbours, _ = nearest_rows(V, min(_N_NEAREST, len(V) - 1), sampled)
    differences = (V[sampled][:, None] - V[neighbours]).reshape(-1, V.shape[1])
    covariance, _ = ledoit_wolf(differences.astype(np.float64), assume_centered=True)
    values, vectors = eigh(covariance)
    floor = 1e-6 * values[-1] if values[-1] > 0 else 1.0
    whitened = V @ (vectors / np.sqrt(values.clip(min=floor))).astype(np.float32)
    whitened -= whitened.mean(axis=0)
    return unit_rows(whitened)


def whiten_by_classes(V: Floats, rows: Ints, classes: Ints) -> Floats:
    """Divide by the covariance of labelled rows within their classes.

    This makes the classes of these rows more compact, and other classes less so. The rows must
    therefore not be among those that are compared afterwards.

    Parameters
    ----------
    V : ndarray of shape (n, q)
        Rows of unit length.
    rows : ndarray of int, shape (m,)
        Labelled rows to learn from.
    classes : ndarray of int, shape (m,)
        Their classes.

    Returns
    -------
    ndarray of shape (n, q), float32
        Rows of unit length; V itself if no class has two different rows.
    """
    counts = np.bincount(classes)
    several = counts[classes] > 1
    if not several.any():
        return V
    means = class_sums(V, rows, classes) / np.maximum(counts, 1)[:, None]
    unbiased = np.sqrt(counts / np.maximum(counts - 1, 1))
    deviations = ((V[rows] - means[classes]) * unbiased[classes][:, None])[several]
    covariance, _ = ledoit_wolf(deviations, assume_centered=True)
    values, vectors = eigh(covariance)
    if values[-1] <= 0:
        return V
    whitened = V @ (vectors / np.sqrt(values.clip(min=1e-6 * values[-1]))).astype(np.float32)
    whitened -= whitened.mean(axis=0)
    return unit_rows(whitened)


def class_sums(V: Floats, rows: Ints, classes: Ints) -> Doubles:
    """Sum of the rows of each class, shape (n_classes, q)."""
    n_classes = int(classes.max(initial=-1)) + 1
    member = sparse.csr_array(
        (np.ones(len(rows)), (classes, np.arange(len(rows)))), shape=(n_classes, len(rows))
    )
    return np.asarray(member @ V[rows].astype(np.float64))


def nearest_of(V: Floats, candidates: Ints, n_neighbours: int) -> tuple[Ints, Floats]:
    """Find the most similar candidates of each row, best first.

    Parameters
    ----------
    V : ndarray of shape (n, q)
        Rows of unit length.
    candidates : ndarray of int, shape (n, c)
        Indices of rows to choose from.
    n_neighbours : int
        Number of neighbours to choose; at most c.

    Returns
    -------
    neighbours, cosines : ndarray of shape (n, n_neighbours)
        As in `nearest_rows`.
    """
    neighbours = np.empty((len(V), n_neighbours), dtype=np.int64)
    cosines = np.empty((len(V), n_neighbours), dtype=V.dtype)

    def search(block: slice) -> None:
        similar = (V[candidates[block]] @ V[block][:, :, None])[:, :, 0]
        order = np.argsort(-similar, axis=1, kind="stable")[:, :n_neighbours]
        neighbours[block] = np.take_along_axis(candidates[block], order, axis=1)
        cosines[block] = np.take_along_axis(similar, order, axis=1)

    with threadpool_limits(1), ThreadPoolExecutor(effective_n_jobs(-1)) as threads:
        for _ in threads.map(search, row_blocks(len(V), candidates.shape[1] * V.shape[1])):
            pass
    return neighbours, cosines


def balanced_graph(neighbours: Ints, cosines: Floats) -> sparse.csr_array:
    """Build a symmetric neighbour graph whose rows and columns sum to 1.

    In a plain neighbour graph much depends on whether a hub happens to be labelled. Sinkhorn's
    scaling gives every row the same weight.

    Parameters
    ----------
    neighbours : ndarray of int, shape (n, m)
        Neighbours of every row.
    cosines : ndarray of shape (n, m)
        Their cosine similarities, best first.

    Returns
    -------
    sparse array of shape (n, n), float32
        Weights of the edges.
    """
    n, m = neighbours.shape
    squared = np.maximum(2 - 2 * cosines.astype(np.float64), 0)
    scale = squared[:, -1] + 1e-9
    weights = np.exp(-squared / np.sqrt(scale[:, None] * scale[neighbours]))
    rows = np.repeat(np.arange(n), m)
    graph = sparse.csr_array((weights.ravel(), (rows, neighbours.ravel())), shape=(n, n))
    graph = (graph + graph.T) / 2
    factors: Doubles = np.ones(n)
    for _ in range(_SINKHORN_ROUNDS):
        factors = np.sqrt(factors / np.maximum(graph @ factors, 1e-12))
    balance = sparse.diags_array(factors)
    return (balance @ graph @ balance).astype(np.float32).tocsr()
