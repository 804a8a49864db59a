"""Which row belongs to which component: by the nearest prototype, or by EM of the mixture."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from newfound.arrays import Doubles, Floats, Ints
from newfound.labels import UNLABELLED
from newfound.mixture.prior import NIWPrior
from newfound.mixture.rows import assign_and_sum, row_blocks, sum_by_label
from newfound.mixture.split_merge import number_components
from newfound.mixture.stats import GaussianStats

#: Rounds of assignment and re-estimation between two passes of moves (deviation D12).
N_ROUNDS = 5
#: Maximum number of rounds at the end, when rows are re-assigned until none moves.
N_FINAL_ROUNDS = 300


def prototypes_of(
    V: Floats,
    codes: Ints,
    labels: Ints,
    n_known: int,
    own: slice = slice(None),
    total: Callable[[Doubles], Doubles] = lambda sums: sums,
) -> Doubles:
    """Prototypes μ: mean of the labelled rows of a known class, of all rows of a novel one.

    The prototype of a component without such rows is 0. If V has only a part of the rows that codes
    and labels describe, `own` says which, and `total` adds up the sums of all parts.
    """
    n_components = max(int(labels.max()) + 1, n_known)
    counted = ((codes != UNLABELLED) | (labels >= n_known)).astype(V.dtype)
    sums = total(sum_by_label(V, labels[own], n_components, counted[own]))
    return sums / np.bincount(labels, counted, minlength=n_components).clip(min=1)[:, None]


def nearest_labels(V: Floats, codes: Ints, labels: Ints, n_known: int, n_rounds: int) -> Ints:
    """Assign rows to the nearest prototype and re-estimate prototypes; labelled rows stay.

    Parameters
    ----------
    V : ndarray of shape (n, q)
        Rows.
    codes : ndarray of int, shape (n,)
        Known class of each row, -1 if unlabelled.
    labels : ndarray of int, shape (n,)
        Component of each row, known classes first; no component may be empty.
    n_known : int
        K^l, the number of known classes.
    n_rounds : int
        Maximum number of rounds; fewer if no row moves.

    Returns
    -------
    ndarray of shape (n,)
        Component of each row. Novel components may have lost all their rows.
    """
    free = np.flatnonzero(codes == UNLABELLED)
    prototypes = prototypes_of(V, codes, labels, n_known)
    for _ in range(n_rounds):
        nearest = codes.copy()
        nearest[free], sums, counts = assign_and_sum(V, free, prototypes)
        if np.array_equal(nearest, labels):
            break
        labels = nearest
        # prototypes of known classes are means of labelled rows, which do not move
        filled = (counts > 0) & (np.arange(len(counts)) >= n_known)
        prototypes[filled] = sums[filled] / counts[filled, None]
    return labels


def assign_soft(V: Floats, codes: Ints, labels: Ints, n_known: int, prior: NIWPrior) -> Ints:
    """Assign rows by EM of the mixture, with covariances shrunk by the prior.

    The first M-step takes the given partition, the later ones take the responsibilities. Labelled
    rows always have the responsibility 1 for their class. Each row goes to the component with the
    largest responsibility.
    """
    n_components = max(int(labels.max()) + 1, n_known)
    stats = GaussianStats.from_labels(V, labels, n_components)
    for _ in range(N_ROUNDS):
        means, covariances, weights = mixture_parameters(stats, prior)
        joint = log_joint(V, means, covariances, weights)
        joint -= logsumexp(joint, axis=1, keepdims=True)
        responsibilities = np.exp(joint, out=joint)
        labelled = np.flatnonzero(codes != UNLABELLED)
        responsibilities[labelled] = 0
        responsibilities[labelled, codes[labelled]] = 1
        stats = _weighted_stats(V, responsibilities)
    labels = responsibilities.argmax(axis=1)
    return number_components(labels, n_known)[labels]


def mixture_parameters(stats: GaussianStats, prior: NIWPrior) -> tuple[Doubles, Doubles, Doubles]:
    """μ, Σ and π of Eq. 4: means of the rows, covariances shrunk by the prior, shares of rows."""
    covariances = prior.update(stats).expected_covariance()
    # an empty component has no mean of its own
    means = np.where(stats.count[:, None] > 0, stats.mean, prior.m)
    return means, covariances, stats.count / stats.count.sum()


def log_joint(V: Floats, means: Doubles, covariances: Doubles, weights: Doubles) -> Doubles:
    r"""Log [π_i N(z | μ_i, Σ_i)] for all rows and components, shape (n, K).

    The mixture density of Eq. 4 is the sum of its exponentials over i.
    """
    n_components, q = means.shape
    joint = np.empty((len(V), n_components))
    with np.errstate(divide="ignore"):  # an empty component has the log weight -inf
        log_weights = np.log(weights)
    for component in range(n_components):
        factor = cholesky(covariances[component], lower=True, check_finite=False)
        half_log_determinant = np.log(np.diagonal(factor)).sum()
        constant = log_weights[component] - 0.5 * q * np.log(2 * np.pi) - half_log_determinant
        whitening = solve_triangular(factor, np.eye(q), lower=True, check_finite=False).T
        for block in row_blocks(len(V), q):
            scaled = (V[block] - means[component]) @ whitening
            joint[block, component] = constant - 0.5 * np.einsum("ij,ij->i", scaled, scaled)
    return joint


def _weighted_stats(V: Floats, responsibilities: Doubles) -> GaussianStats:
    """Statistics of soft components: every row is weighted by its responsibility."""
    count = responsibilities.sum(axis=0)
    mean = (responsibilities.T @ V) / np.maximum(count, np.finfo(float).tiny)[:, None]
    scatter = np.zeros((len(count), V.shape[1], V.shape[1]))
    for component in range(len(count)):
        for block in row_blocks(len(V), V.shape[1]):
            # most responsibilities are nearly 0; leaving these rows out saves most of the time
            share = responsibilities[block, component]
            rows = np.flatnonzero(share > 1e-12)
            centred = V[block][rows] - mean[component]
            scatter[component] += (centred * share[rows, None]).T @ centred
    return GaussianStats(count, mean, scatter)


def spherical_variance(
    squared: Doubles, codes: Ints, sizes: Ints, fallback: float, offsets: Doubles
) -> float:
    """Find the variance of equal spherical components that predicts the labelled rows best.

    If the components were spherical, the mean square distance would be the answer. In many
    dimensions they are not, and with that variance nearly every row would get a probability close
    to 1. So the variance maximises the likelihood of the labelled rows' own classes. For each row,
    the prototype of its class is computed as if the row had not taken part in it.

    Parameters
    ----------
    squared : ndarray of shape (n_l, K)
        Squared distances of labelled rows to the prototypes.
    codes : ndarray of shape (n_l,)
        Class of each of these rows.
    sizes : ndarray of shape (K^l,)
        Number of labelled rows of each class.
    fallback : float
        Returned if labels say nothing: with a single component, or no class of two rows.
    offsets : ndarray of shape (K,)
        Subtracted from the squared distance to each prototype.

    Returns
    -------
    float
        The variance.
    """
    n = sizes[codes]
    rows = np.flatnonzero(n > 1)
    if len(rows) == 0 or squared.shape[1] < 2:
        return fallback
    distances = squared[rows].astype(np.float64)
    own = (np.arange(len(rows)), codes[rows])
    # the distance to the mean of the other rows of the class
    distances[own] *= (n[rows] / (n[rows] - 1)) ** 2
    distances -= offsets
    # relative to the smallest, so that not all exponentials of a row underflow
    distances -= distances.min(axis=1, keepdims=True)
    mean_own = distances[own].mean()

    def loss(log_factor: float) -> float:
        scale = -0.5 / (fallback * np.exp(log_factor))
        return float(np.log(np.exp(distances * scale).sum(axis=1)).mean() - scale * mean_own)

    best = minimize_scalar(loss, bounds=(-2.0, 8.0), method="bounded", options={"xatol": 1e-3}).x
    return float(fallback * np.exp(best))
