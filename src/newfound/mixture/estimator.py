"""`SplitMergeMixture`: the E-step of the paper as a scikit-learn estimator.

`search` runs one start, `outcome` makes one result of several starts, `prediction` has what a
fitted mixture says about rows.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import check_random_state

from newfound.arrays import ArrayLike, Floats, Ints, LabelsLike, RandomStateLike
from newfound.errors import DiscoveryWarning, InputError
from newfound.labels import UNLABELLED, encode_labels
from newfound.mixture.assignment import mixture_parameters
from newfound.mixture.class_order import ClassOrder
from newfound.mixture.clustering import (
    PartiallyLabelledClusterMixin,
    check_choice,
    check_positive_int,
    check_rows,
)
from newfound.mixture.counting.count import CategoryCount, count_checked
from newfound.mixture.counting.novel_size import Sizes, check_sizes
from newfound.mixture.hastings import CountTerm
from newfound.mixture.kmeans import fit_labels
from newfound.mixture.lloyd import PinnedRows
from newfound.mixture.outcome import best_start, conclude
from newfound.mixture.prediction import MixturePredictionMixin
from newfound.mixture.prior import NIWPrior
from newfound.mixture.projection import Projection, enough_to_whiten
from newfound.mixture.refill import give_up_smallest
from newfound.mixture.rows import SortedRows, content_order, row_keys
from newfound.mixture.sampling import RowSample, rows_and_sample
from newfound.mixture.search import Assignment, FinishedStart, Pass, SearchSettings, search
from newfound.mixture.settling import settle_components
from newfound.mixture.sizes import LEAST_CLASSES
from newfound.mixture.split_merge import number_components
from newfound.mixture.target import (
    count_for_moves,
    resolve_start,
    warn_if_missed,
    warn_if_not_kept,
)
from newfound.scale.rows import Rows


class SplitMergeMixture(
    MixturePredictionMixin, PartiallyLabelledClusterMixin, DensityMixin, BaseEstimator
):
    """Semi-supervised Gaussian mixture that finds its number of components.

    Rows are scaled to unit length and projected on `n_directions` principal directions. Then
    components split and merge, while labelled rows stay with their class. The first K^l
    components are the K^l known classes in sorted order. The other K^n components are the novel
    categories, the largest first. K = K^l + K^n.

    The paper accepts each move with the probability min(1, H), where H is its Hastings ratio
    (Eq. 5 and 6). In 128 dimensions this does not find K. By default, the novel categories are
    therefore counted first, with `count_categories` (deviation D9 in ``docs/deviations.md``).
    Moves are then ranked by the gap between the means of the two parts, and carried out until the
    counted K^n is reached (deviation D8). Hastings ratios decide nothing in this mode: log H is
    only recorded in `history_`, for the moves that are made. With ``acceptance="literal"`` the
    ratios decide, as in the paper.

    Parameters
    ----------
    n_components_init : int, optional
        K to start from. If the count is larger, the count is used. By default
        K^l + max(1, K^l // 2), and 10 without any label.
    n_components : int, optional
        Total number of categories K, if it is known. The mixture then makes no moves. If X has
        too few distinct rows for K components, there are fewer, with a `DiscoveryWarning`.
    n_directions : int, default=128
        Number of principal directions q, reduced to ``min(n - 1, d)`` if that is smaller.
    acceptance : {"calibrated", "literal"}, default="calibrated"
        Which moves are made: "calibrated" those that lead to the K^n of `count_categories`,
        "literal" each with the paper's probability min(1, H). With fewer than two known classes
        nothing can be counted, and "literal" is used with a warning.
    count : CategoryCount, optional
        A count to use instead, for instance of other features of the same rows. By default the
        categories are counted in X.
    whiten : bool, optional
        Measure distances in units of the labelled classes' within-class covariance. By default
        this is done with at least 10 known classes, unless the acceptance is literal.
    prior : NIWPrior, optional
        θ, in the projected space. By default it is fitted to the labelled classes.
    assign : {"nearest", "soft"}, default="nearest"
        Whether rows go to the nearest prototype, as in the paper, or to the most probable
        component of the mixture with full covariances (slower).
    count_term : {"gamma", "factorial"}, default="gamma"
        Whether Γ(n) in Eq. 5 and 6 is (n - 1)!, or n! as the paper prints.
    sizes : {"unknown", "alike"}, float or None, default="unknown"
        What you know about the sizes of novel categories: nothing, that they are as large as known
        ones on average, or the ratio of the mean sizes, novel : known. It enters the count, and
        the borders between components (deviation D28). With None, or if the acceptance is literal,
        the borders take no account of sizes; with None, the count takes them to be alike.
    max_passes : int, default=30
        Maximum number of passes of split and merge moves.
    n_init : int, default=3
        Number of starts. K is that of the best start; the category of each row is decided by a
        majority vote of all starts.
    random_state : int, RandomState or None, default=None
        Seed. Draws depend on what rows hold, not on their order or the names of classes.
    verbose : int, default=0
        With 1, one line per pass is printed.
    callback : callable, optional
        Called with the `Pass` after each pass.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Component of each row; labelled rows have their class. Never -1.
    n_known_, n_novel_, n_components_ : int
        K^l, K^n and K.
    classes_ : ndarray of shape (K^l,)
        The known classes, as they were given.
    category_names_ : ndarray of object, shape (K,)
        Name of each component: its class, or ``new-001`` … for novel ones.
    means_, covariances_, weights_ : ndarray
        μ (K, q), Σ (K, q, q) shrunk by the prior, and π (K,) of Eq. 4.
    prototypes_ : ndarray of shape (K, q)
        The paper's prototypes: the mean of the labelled rows of a known class, and of all rows of
        a novel component. With expected sizes the latter is a weighted mean.
    offsets_ : ndarray of shape (K,)
        Subtracted from the squared distance to each prototype before the nearest is chosen; 0
        unless sizes are expected.
    prior_ : NIWPrior
        The prior that was used.
    projection_ : Projection
        From X to the space of the mixture.
    n_directions_ : int
        Number of directions that were used.
    count_ : CategoryCount or None
        The count that moves led to; None if K was given or the acceptance was literal.
    n_novel_interval_ : tuple of float or None
        90 % interval of K^n, from `count_`.
    stability_ : ndarray of shape (K,)
        How far the starts agree on each component, between 0 and 1; NaN for a single start.
    history_ : list of Pass
        K, log-likelihood and moves of each pass of the best start.
    converged_ : bool
        Whether a further pass would have changed or improved nothing. True if K was given.
    n_iter_ : int
        Number of passes.
    n_features_in_ : int
        Number of columns of X.

    See Also
    --------
    SemiSupervisedKMeans : Clusters with a number of categories that is given.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from newfound import SplitMergeMixture
    >>> X, y = load_digits(return_X_y=True)
    >>> mixture = SplitMergeMixture(n_components=10, random_state=0)
    >>> mixture.fit(X, [digit if digit < 5 else -1 for digit in y]).n_novel_
    5
    """

    def __init__(
        self,
        n_components_init: int | None = None,
        *,
        n_components: int | None = None,
        n_directions: int = 128,
        acceptance: Literal["calibrated", "literal"] = "calibrated",
        count: CategoryCount | None = None,
        whiten: bool | None = None,
        prior: NIWPrior | None = None,
        assign: Assignment = "nearest",
        count_term: CountTerm = "gamma",
        sizes: Sizes | None = "unknown",
        max_passes: int = 30,
        n_init: int = 3,
        random_state: RandomStateLike = None,
        verbose: int = 0,
        callback: Callable[[Pass], object] | None = None,
    ) -> None:
        self.n_components_init = n_components_init
        self.n_components = n_components
        self.n_directions = n_directions
        self.acceptance = acceptance
        self.count = count
        self.whiten = whiten
        self.prior = prior
        self.assign = assign
        self.count_term = count_term
        self.sizes = sizes
        self.max_passes = max_passes
        self.n_init = n_init
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: ArrayLike, y: LabelsLike = None) -> SplitMergeMixture:
        """Find the categories.

        Parameters
        ----------
        X : array-like of shape (n, d), Dask array or rows from `newfound.scale`
            Features, labelled and unlabelled rows together. From 65,536 rows on, categories are
            searched in a sample, and then settle among all rows (deviation D29).
        y : array-like of shape (n,), optional
            Partial labels; -1, None, NaN or an empty text where a row is unlabelled. Without
            any label the mixture works unsupervised, with a warning.

        Returns
        -------
        SplitMergeMixture
            This estimator.
        """
        random_state = check_random_state(self.random_state)
        self._check_settings()
        every, sample = rows_and_sample(
            X,
            y,
            random_state,
            functools.partial(check_rows, self, ensure_min_samples=2),
            n_categories=self.n_components or 0,
            needs_all=self.acceptance == "literal" or self.assign == "soft",
        )
        self.n_features_in_ = sample.X.shape[1]
        rows, n_novel_rows = self._prepare(sample, random_state)
        asked = self.n_components, self.n_components_init
        n_start = resolve_start(*asked, self.count_, rows.n_known, len(rows.V))
        pinned = PinnedRows.of(rows.V, rows.codes, rows.n_known, order=np.arange(len(rows.V)))
        # each start draws its k-means and then its passes, all from one stream of random numbers
        starts = []
        for _ in range(self.n_init):
            labels = fit_labels(pinned, n_start, random_state)
            # k-means leaves clusters empty if too few rows are distinct
            labels = number_components(labels, rows.n_known)[labels]
            starts.append(self._search(rows, labels, random_state))
        self._finish(rows, starts, n_novel_rows)
        if every is not None:
            self._settle(every, rows)
        return self

    def refit(self, X: ArrayLike, y: LabelsLike, labels: ArrayLike) -> SplitMergeMixture:
        """Find the categories from a given partition instead of a k-means start.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features; they may have changed since `labels` were found.
        y : array-like of shape (n,)
            Partial labels.
        labels : array-like of int, shape (n,)
            Component of each row: the first K^l numbers are the known classes in sorted order.
            Labelled rows are put back into their class. If there are more components than a given
            `n_components`, the smallest are given up; if there are fewer, some are divided.

        Returns
        -------
        SplitMergeMixture
            This estimator.
        """
        random_state = check_random_state(self.random_state)
        self._check_settings()
        X = check_rows(self, X, ensure_min_samples=2)
        sample = RowSample.of_all(X, encode_labels(y, len(X)))
        rows, n_novel_rows = self._prepare(sample, random_state)
        start = np.asarray(labels)
        if start.shape != (len(rows.V),) or start.dtype.kind not in "iu" or start.min() < 0:
            raise InputError(
                f"labels must hold one component number >= 0 for each of the {len(rows.V)} rows; "
                f"got shape {start.shape}, type {start.dtype}."
            )
        # numbers may have gaps, and labels may have changed since the partition was made
        start = rows.classes.number_by_content(start)[rows.order]
        start = np.where(rows.codes == UNLABELLED, start, rows.codes)
        start = number_components(start, rows.n_known)[start]
        if self.n_components is not None:
            k = resolve_start(self.n_components, None, None, rows.n_known, len(rows.V))
            start = give_up_smallest(rows.V, rows.codes, start, rows.n_known, k)
        return self._finish(rows, [self._search(rows, start, random_state)], n_novel_rows)

    def _prepare(
        self, sample: RowSample, random_state: np.random.RandomState
    ) -> tuple[SortedRows, float]:
        """Count the categories and novel rows, and project the rows.

        Labels are encoded and rows hashed here only; the steps below take the results.
        """
        X, partial = sample.X, sample.partial
        keys = row_keys(X)
        classes = ClassOrder.of(partial, keys)
        codes = classes.number_by_content(partial.codes)
        order = content_order(keys, codes)
        counted = sample.rows_to_count(codes, order)
        self.count_ = count_for_moves(
            X,
            codes,
            counted,
            is_needed=self.acceptance == "calibrated" and self.n_components is None,
            given=self.count,
            sizes=self.sizes or "alike",
            random_state=random_state,
            n_rows=sample.n_rows,
        )
        n_novel_rows = self._count_novel_rows(X, codes, counted)
        self.n_novel_interval_ = None if self.count_ is None else self.count_.interval
        whiten = self.whiten
        if whiten is None:
            whiten = self.acceptance == "calibrated" and enough_to_whiten(codes)
        self.projection_ = Projection(self.n_directions, whiten=whiten)
        self.projection_.fit_in_order(X, codes, order)
        self.n_directions_ = self.projection_.n_directions_
        self.classes_ = partial.classes
        self.n_known_ = partial.n_known
        V = self.projection_.transform_in_order(X, order)
        rows = SortedRows(V, codes[order], partial.n_known, keys[order], order, classes)
        return rows, n_novel_rows

    def _check_settings(self) -> None:
        for name in ("n_directions", "max_passes", "n_init"):
            check_positive_int(name, getattr(self, name))
        for name in ("n_components_init", "n_components"):
            if getattr(self, name) is not None:
                check_positive_int(name, getattr(self, name))
        if self.sizes is not None:
            check_sizes(self.sizes)
        check_choice("acceptance", self.acceptance, ("calibrated", "literal"))
        check_choice("assign", self.assign, ("nearest", "soft"))
        check_choice("count_term", self.count_term, ("gamma", "factorial"))

    def _search(
        self, rows: SortedRows, labels: Ints, random_state: np.random.RandomState
    ) -> FinishedStart:
        """Run one start from its first partition to its end."""
        settings = SearchSettings(
            n_novel=None if self.count_ is None else round(self.count_.n_novel),
            n_components=self._given_k(rows),
            max_passes=self.max_passes,
            assign=self.assign,
            count_term=self.count_term,
            prior=self.prior,
            verbose=bool(self.verbose),
            callback=self.callback,
        )
        return search(rows, labels, settings, random_state)

    def _finish(
        self, rows: SortedRows, starts: list[FinishedStart], n_novel_rows: float
    ) -> SplitMergeMixture:
        """Make one result of the starts and set the attributes."""
        same_k = self.n_components is not None or self.count_ is not None
        lead = best_start(starts, same_k=same_k)
        starts = [lead, *(start for start in starts if start is not lead)]
        partitions = [start.components.labels for start in starts]
        outcome = conclude(
            rows,
            partitions,
            n_components=self._given_k(rows),
            assign=self.assign,
            sizes=self._sizes_of_result(rows),
            n_novel_rows=n_novel_rows,
        )
        self.labels_, self.stability_ = outcome.labels, outcome.stability
        # scikit-learn reads `_n_features_out` for the column names of `transform`
        self.n_components_ = self._n_features_out = len(outcome.stats)
        self.n_novel_ = self.n_components_ - rows.n_known
        self.prior_ = lead.prior
        parameters = mixture_parameters(outcome.stats, lead.prior)
        self.means_, self.covariances_, self.weights_ = parameters
        self.prototypes_, self.offsets_ = outcome.prototypes, outcome.offsets
        self._spherical_variance = outcome.spherical_variance
        self.history_ = lead.history
        self.converged_ = lead.converged
        self.n_iter_ = max(1, len(lead.history))
        warn_if_missed(self.count_, self.n_novel_)
        warn_if_not_kept(self._given_k(rows), self.n_components_, rows.V[rows.free])
        return self

    def _settle(self, every: Rows, rows: SortedRows) -> None:
        """Let the components of the sample settle among all rows, and describe them anew."""
        if len(rows.V) == len(every):  # there was no need for a sample
            self.labels_ = every.as_vector(self.labels_)
            return
        known = self.prototypes_, self.offsets_
        settled = settle_components(every, rows, self.projection_.space, *known)
        self.labels_, self.stability_ = settled.labels, self.stability_[settled.order]
        self.n_components_ = self._n_features_out = len(settled.order)
        self.n_novel_ = self.n_components_ - rows.n_known
        parameters = mixture_parameters(settled.stats, self.prior_)
        self.means_, self.covariances_, self.weights_ = parameters
        self.prototypes_, self.offsets_ = settled.prototypes, settled.offsets
        self._spherical_variance = settled.spherical_variance

    def _given_k(self, rows: SortedRows) -> int | None:
        """K if it was given; two known classes never share a component."""
        return None if self.n_components is None else max(self.n_components, rows.n_known)

    def _count_novel_rows(self, X: Floats, codes: Ints, order: Ints) -> float:
        """Estimate how many rows are novel, for the expected sizes; NaN if that is not needed."""
        sizes_count = self.acceptance == "calibrated" and self.assign == "nearest"
        n_known, n_free = int(codes.max()) + 1, int((codes == UNLABELLED).sum())
        if not sizes_count or self.sizes != "unknown" or n_known < LEAST_CLASSES or n_free == 0:
            return float("nan")
        count = self.count_
        if count is None:
            with warnings.catch_warnings():
                # K is given: nobody waits for a number of categories
                warnings.simplefilter("ignore", DiscoveryWarning)
                # a fixed seed: the share of novel rows describes the data, and draws nothing else
                count = count_checked(X, codes, order, sizes="alike", random_state=0)
        return count.novel_share * n_free

    def _sizes_of_result(self, rows: SortedRows) -> Sizes | None:
        """What to expect of the sizes of components; None if nothing can be expected."""
        some_labelled = 0 < len(rows.free) < len(rows.codes)
        # a known class without unlabelled rows has no size that could be expected
        all_present = self.count_ is None or self.count_.n_absent == 0
        able = self.acceptance == "calibrated" and self.assign == "nearest"
        return self.sizes if able and some_labelled and all_present else None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
