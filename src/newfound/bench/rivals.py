"""The rivals: other people's ways to the number of categories, for comparison with ours.

Not part of the method of the paper. Each function takes the same X and partial labels y as
`SplitMergeMixture` and returns one number, K^n; `studies/find_k.py` puts them side by side.
All of them see what the mixture sees: unit-length rows on 128 principal directions (`Projection`).
Rows are put in the order of their content first, so that their order does not matter (rule R7).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import silhouette_score
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.utils import check_array, check_random_state

from newfound.arrays import ArrayLike, Doubles, Floats, Ints, LabelsLike, RandomStateLike
from newfound.errors import DiscoveryWarning, InputError
from newfound.labels import UNLABELLED, encode_labels
from newfound.metrics import discovery_scores
from newfound.mixture.alternatives import cut_tree, ward_merges
from newfound.mixture.clustering import check_positive_int
from newfound.mixture.estimator import SplitMergeMixture
from newfound.mixture.kmeans import SemiSupervisedKMeans, group_free_rows
from newfound.mixture.prior import NIWPrior
from newfound.mixture.projection import Projection
from newfound.mixture.rows import content_order, row_keys, squared_distances

#: Directions that the rows are projected on, as in `SplitMergeMixture`.
N_DIRECTIONS = 128
#: Largest total that is looked at by default, as in the code of Vaze et al. (2022).
LARGEST_TOTAL = 1000
#: Evaluations of Brent's search, and starts of k-means in each.
N_EVALUATIONS, N_STARTS = 15, 5
#: More rows than this are grouped by k-means before Ward's tree.
N_WARD_LEAVES = 6000
#: Rows that the silhouette is measured on.
N_SILHOUETTE_ROWS = 2000
#: Points of the coarse grid of K, and of the fine one around its best point.
N_COARSE, N_FINE = 16, 8
#: Points of the coarse grid that may be worse than the best before the BIC is taken to be past it.
N_WORSE = 3
#: Principal directions of scikit-learn's mixtures, with full and with diagonal covariances.
N_FULL, N_DIAGONAL = 16, 32
#: Rows that a component of theirs has at least, on average.
ROWS_EACH = 16
#: A component of the Dirichlet process with fewer rows than this is no category.
SMALLEST_COMPONENT = 5


class _Rows(NamedTuple):
    """What a rival works on, in the order of the rows' content."""

    X: Floats  # (n, d), as given
    V: Floats  # (n, q), projected; the directions are in order of their variance
    codes: Ints
    n_known: int
    n_max: int  # largest total K
    seed: int

    @property
    def labelled(self) -> Ints:
        """Which rows are labelled."""
        return np.flatnonzero(self.codes != UNLABELLED)

    def accuracy(self, labels: Ints) -> float:
        """Hungarian accuracy of a partition of all rows, measured on the labelled ones."""
        codes = self.codes[self.labelled]
        return discovery_scores(codes, labels[self.labelled], codes).all

    def novel(self, n_total: int) -> int:
        """K^n of a total."""
        return max(0, n_total - self.n_known)


def brent_search(
    X: ArrayLike,
    y: LabelsLike,
    *,
    n_max: int | None = None,
    random_state: RandomStateLike = None,
) -> int:
    """Search the K whose plain k-means agrees best with the labelled rows.

    Vaze et al., "Generalized Category Discovery" (CVPR 2022), Sec. 3.3: k-means of all rows
    without labels, its Hungarian accuracy on the labelled rows, Brent's bounded minimisation
    over K in [K^l, n_max]. Two things differ, both in its favour. The search runs over log K:
    over K, its first steps compare values of several hundreds, where noise decides, and it often
    stays there (133 for 8 on scikit-learn's digits). And of equally good K the largest is taken:
    nothing labelled speaks against it. Their k-means has 10 starts, here 5.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Features, labelled and unlabelled rows together.
    y : array-like of shape (n,)
        Partial labels; at least one row is labelled.
    n_max : int, optional
        Largest total K. By default 1,000, or half of the rows where that is less.
    random_state : int, RandomState or None, default=None
        Seed of the starts.

    Returns
    -------
    int
        K^n.
    """
    rows = _prepare(X, y, n_max, random_state)
    _require_labels(rows, "brent_search")
    accuracies: dict[int, float] = {}

    def loss(log_k: float) -> float:
        k = round(np.exp(log_k))
        if k not in accuracies:
            accuracies[k] = rows.accuracy(_k_means(rows, k, N_STARTS))
        return -accuracies[k]

    bounds = np.log([rows.n_known, rows.n_max])
    options = {"maxiter": N_EVALUATIONS, "xatol": 0.01}
    minimize_scalar(loss, bounds=bounds, method="bounded", options=options)
    return rows.novel(max(accuracies, key=lambda k: (accuracies[k], k)))


def ward_labelled_score(
    X: ArrayLike,
    y: LabelsLike,
    *,
    n_max: int | None = None,
    random_state: RandomStateLike = None,
) -> int:
    """Cut Ward's tree where the labelled rows agree best with it.

    Choi et al., "Contrastive Mean-Shift Learning for Generalized Category Discovery" (CVPR
    2024), choose the K of agglomerative clustering by its score on rows with labels. Here these
    are the labelled rows only: no label of the unlabelled part is looked at, as their code does.
    Of equally good K the largest is taken, as in `brent_search`.

    Parameters
    ----------
    X, y, n_max
        As in `brent_search`.
    random_state : int, RandomState or None, default=None
        Seed of the grouping that comes first when there are more than 6,000 rows.

    Returns
    -------
    int
        K^n.
    """
    rows = _prepare(X, y, n_max, random_state)
    _require_labels(rows, "ward_labelled_score")
    free = np.full(len(rows.V), UNLABELLED)
    generator = np.random.RandomState(rows.seed)
    leaves = group_free_rows(rows.V, free, 0, N_WARD_LEAVES, generator)
    best, best_accuracy = rows.n_known, -1.0
    for n_total, groups in _nested_partitions(rows.V, leaves, rows.n_max):
        if n_total < rows.n_known:
            break
        accuracy = rows.accuracy(groups[leaves])
        if accuracy > best_accuracy:
            best, best_accuracy = n_total, accuracy
    return rows.novel(best)


def silhouette(
    X: ArrayLike,
    y: LabelsLike,
    *,
    n_max: int | None = None,
    random_state: RandomStateLike = None,
) -> int:
    """Choose the K whose k-means has the best silhouette.

    Rousseeuw (1987), "Silhouettes". K-means of all rows without labels over a geometric grid
    of K from max(2, K^l) to n_max and a finer one around its best point; the silhouette is
    measured on 2,000 rows.

    Parameters
    ----------
    X, n_max
        As in `brent_search`.
    y : array-like of shape (n,), optional
        Partial labels; only their number of classes K^l is used.
    random_state : int, RandomState or None, default=None
        Seed of the starts and of the rows that are measured.

    Returns
    -------
    int
        K^n.
    """
    rows = _prepare(X, y, n_max, random_state)
    drawn = np.random.RandomState(rows.seed).permutation(len(rows.V))[:N_SILHOUETTE_ROWS]
    distances = np.sqrt(squared_distances(rows.V[drawn], rows.V[drawn]))
    np.fill_diagonal(distances, 0)

    def score(n_clusters: int) -> float:
        labels = _k_means(rows, n_clusters, n_starts=1)[drawn]
        if not 1 < len(np.unique(labels)) < len(labels):
            return -1.0  # the least a silhouette can be: it is not defined here
        return float(silhouette_score(distances, labels, metric="precomputed"))

    return rows.novel(_best_on_grid(score, max(2, rows.n_known), rows.n_max))


def bic_mixture(
    X: ArrayLike,
    y: LabelsLike,
    *,
    n_max: int | None = None,
    random_state: RandomStateLike = None,
) -> int:
    """Choose the K whose Gaussian mixture has the least Bayesian information criterion.

    Schwarz (1978). Scikit-learn's `GaussianMixture` with full covariances on 16 principal
    directions, without labels, over a geometric grid of K from max(1, K^l) up and a finer one
    around its best point. The grid ends at n_max, or after three points in a row that are worse
    than the best.

    Parameters
    ----------
    X : array-like of shape (n, d)
        As in `brent_search`.
    y : array-like of shape (n,), optional
        Partial labels; only their number of classes K^l is used.
    n_max : int, optional
        Largest total K. By default 1,000, or a 16th of the rows where that is less: a full
        covariance needs a row per direction.
    random_state : int, RandomState or None, default=None
        Seed of the starts.

    Returns
    -------
    int
        K^n.
    """
    rows = _prepare(X, y, n_max, random_state, rows_each=ROWS_EACH)
    V = rows.V[:, :N_FULL].astype(np.float64)

    def score(n_components: int) -> float:
        mixture = GaussianMixture(
            n_components,
            covariance_type="full",
            reg_covar=_ridge(V),
            max_iter=50,
            random_state=rows.seed,
        )
        with _quiet(ConvergenceWarning):
            return -float(mixture.fit(V).bic(V))

    return rows.novel(_best_on_grid(score, max(1, rows.n_known), rows.n_max, N_WORSE))


def dirichlet_process(
    X: ArrayLike,
    y: LabelsLike,
    *,
    n_max: int | None = None,
    random_state: RandomStateLike = None,
) -> int:
    """Count the components that a truncated Dirichlet-process mixture uses.

    Blei and Jordan (2006), as scikit-learn's `BayesianGaussianMixture` has it, with its default
    concentration; diagonal covariances on 32 principal directions, without labels (with full
    ones it empties almost none of its components). One with fewer than 5 rows is not counted.

    Parameters
    ----------
    X, y
        As in `bic_mixture`.
    n_max : int, optional
        The truncation. By default as in `bic_mixture`.
    random_state : int, RandomState or None, default=None
        Seed of the start.

    Returns
    -------
    int
        K^n.
    """
    rows = _prepare(X, y, n_max, random_state, rows_each=ROWS_EACH)
    V = rows.V[:, :N_DIAGONAL].astype(np.float64)
    mixture = BayesianGaussianMixture(
        n_components=rows.n_max,
        covariance_type="diag",
        weight_concentration_prior_type="dirichlet_process",
        reg_covar=_ridge(V),
        max_iter=100,
        random_state=rows.seed,
    )
    with _quiet(ConvergenceWarning):
        sizes = np.bincount(mixture.fit_predict(V))
    return rows.novel(int(np.count_nonzero(sizes >= SMALLEST_COMPONENT)))


def deep_dpm_rule(
    X: ArrayLike,
    y: LabelsLike,
    *,
    n_max: int | None = None,
    random_state: RandomStateLike = None,
) -> int:
    """Split and merge by the literal Hastings ratios with DeepDPM's prior, without labels.

    Ronen et al., "DeepDPM: Deep Clustering With an Unknown Number of Clusters" (CVPR 2022):
    K_init = 10, m the mean of the rows, κ = 1e-4, ν = d + 2 and νΨ = 0.005 I (the scale that
    they put directly where the paper's νΨ stands). Their network is left out: the features are
    what they are.

    Parameters
    ----------
    X : array-like of shape (n, d)
        As in `brent_search`.
    y : array-like of shape (n,), optional
        Partial labels; only their number of classes K^l is used.
    n_max : int, optional
        A larger total than this is cut down to it. By default there is no bound.
    random_state : int, RandomState or None, default=None
        Seed of the start and the moves.

    Returns
    -------
    int
        K^n.
    """
    rows = _prepare(X, y, n_max, random_state)
    d = rows.V.shape[1]
    nu = d + 2.0
    mean = rows.V.mean(axis=0, dtype=np.float64)
    mixture = SplitMergeMixture(
        min(10, len(rows.V)),
        n_directions=N_DIRECTIONS,
        acceptance="literal",
        prior=NIWPrior(mean, np.asarray(1e-4), np.asarray(nu), 0.005 / nu * np.eye(d)),
        n_init=1,
        random_state=rows.seed,
    )
    with _quiet(DiscoveryWarning):
        n_total = mixture.fit(rows.X).n_components_
    return rows.novel(n_total if n_max is None else min(n_total, n_max))


#: Name → estimate of K^n.
RIVALS: dict[str, Callable[..., int]] = {
    rival.__name__: rival
    for rival in (
        brent_search,
        ward_labelled_score,
        silhouette,
        bic_mixture,
        dirichlet_process,
        deep_dpm_rule,
    )
}


def _prepare(
    X: ArrayLike,
    y: LabelsLike,
    n_max: int | None,
    random_state: RandomStateLike,
    rows_each: int = 2,
) -> _Rows:
    """Check the data, project and sort the rows; by default K goes up to n / `rows_each`."""
    X = check_array(X, dtype=[np.float64, np.float32], ensure_min_samples=2)
    partial = encode_labels(y, len(X))
    if n_max is None:
        n_max = max(1, partial.n_known, min(LARGEST_TOTAL, len(X) // rows_each))
    check_positive_int("n_max", n_max)
    if n_max < partial.n_known:
        raise InputError(
            f"n_max={n_max}, but y names {partial.n_known} known classes, and n_max is the "
            f"largest total of known and novel ones. Set n_max to at least {partial.n_known}."
        )
    order = content_order(row_keys(X), partial.codes)
    V = Projection(N_DIRECTIONS).fit_in_order(X, None, order).transform_in_order(X, order)
    seed = int(check_random_state(random_state).randint(2**31))
    codes = partial.codes[order]
    return _Rows(X[order], V, codes, partial.n_known, min(n_max, len(X)), seed)


def _require_labels(rows: _Rows, name: str) -> None:
    if rows.n_known == 0:
        raise InputError(
            f"{name} measures partitions on the labelled rows, but y labels none of the "
            f"{len(rows.V)} rows. Label some rows, or use a rival that needs no label: "
            "silhouette, bic_mixture, dirichlet_process or deep_dpm_rule."
        )


def _k_means(rows: _Rows, n_clusters: int, n_starts: int) -> Ints:
    """Labels of plain k-means of all rows; no label is looked at."""
    k_means = SemiSupervisedKMeans(n_clusters, n_init=n_starts, random_state=rows.seed)
    with _quiet(ConvergenceWarning):
        return k_means.fit(rows.V).labels_


def _nested_partitions(V: Floats, leaves: Ints, n_max: int) -> Iterator[tuple[int, Ints]]:
    """Cut Ward's tree over groups of rows at every K from `n_max` down to 1: K, groups' labels."""
    counts = np.bincount(leaves).astype(np.float64)
    means = np.zeros((len(counts), V.shape[1]))
    np.add.at(means, leaves, V)
    merges = sorted(ward_merges(means / counts[:, None], counts, 0))
    n_total = min(n_max, len(counts))
    labels = cut_tree(merges, len(counts), n_total)
    for _, first, second in merges[len(counts) - n_total :]:
        yield n_total, labels
        labels = np.where(labels == labels[second], labels[first], labels)
        n_total -= 1
    yield n_total, labels


def _best_on_grid(
    score: Callable[[int], float], low: int, high: int, n_worse: int | None = None
) -> int:
    """K of the highest score on a geometric grid, refined once between the best's neighbours.

    The coarse grid is left after `n_worse` points in a row that do not improve on the best.
    """
    scores: dict[int, float] = {}
    best = low
    for k in _grid(low, high, N_COARSE):
        scores[k] = score(k)
        best = max(scores, key=scores.__getitem__)
        if n_worse is not None and len(scores) - list(scores).index(best) > n_worse:
            break
    tried = list(scores)
    place = tried.index(best)
    for k in _grid(tried[max(0, place - 1)], tried[min(len(tried) - 1, place + 1)], N_FINE + 2):
        if k not in scores:
            scores[k] = score(k)
    return max(sorted(scores), key=scores.__getitem__)


def _grid(low: int, high: int, n_points: int) -> list[int]:
    """Whole numbers from low to high in about equal ratios."""
    points = np.geomspace(low, max(low, high), n_points).round().astype(int)
    grid: list[int] = np.unique(points).tolist()
    return grid


def _ridge(V: Doubles) -> float:
    """What is added to the variances: a thousandth of the mean variance of a column."""
    return 1e-3 * float(V.var(axis=0).mean()) or 1e-6


@contextmanager
def _quiet(category: type[Warning]) -> Iterator[None]:
    """Drop warnings of one category: a rival's troubles are part of its result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category)
        yield
