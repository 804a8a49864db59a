"""`SplitMergeMixture`: the E-step as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    DensityMixin,
    TransformerMixin,
)
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from newfound.arrays import ArrayLike, Doubles, Floats, Ints, Keys, LabelsLike, RandomStateLike
from newfound.errors import DiscoveryWarning, InputError
from newfound.labels import UNLABELLED, encode_labels
from newfound.mixture.acceptance import SteeredAcceptance, accept_literal
from newfound.mixture.assignment import (
    N_ROUNDS,
    N_ROUNDS_TO_SETTLE,
    assign_soft,
    log_joint,
    mixture_parameters,
    nearest_labels,
    prototypes_of,
    spherical_variance,
)
from newfound.mixture.clustering import (
    PartiallyLabelledClusterMixin,
    check_positive_int,
    check_rows,
)
from newfound.mixture.counting.count import CategoryCount, count_categories
from newfound.mixture.hastings import CountTerm
from newfound.mixture.kmeans import fit_labels
from newfound.mixture.outcome import agree
from newfound.mixture.prior import NIWPrior
from newfound.mixture.projection import Projection
from newfound.mixture.rows import content_order, nearest_centre, row_keys, squared_distances
from newfound.mixture.sizes import expected_sizes, fit_sizes, sizes_are_alike
from newfound.mixture.split_merge import (
    Components,
    Move,
    Rules,
    number_components,
    split_merge_pass,
)
from newfound.mixture.stats import GaussianStats

#: Fewer known classes than this say too little of the directions in which classes vary.
_CLASSES_TO_WHITEN = 10
#: Labelled rows that are enough to fit the one variance of `predict_proba`.
_ROWS_FOR_VARIANCE = 4000
#: Fewer known classes than this say little of novel ones.
_CLASSES_TO_TRUST = 5


@dataclass(frozen=True)
class Pass:
    """What one pass of split and merge moves did.

    Attributes
    ----------
    n_components : int
        K after the pass.
    log_likelihood : float
        Σ log [Γ(N_i) h(Z_i; θ)] over the components after the pass: the quantity whose
        difference between two partitions is log H.
    n_reassigned : int
        Rows whose component changed in the re-assignment that followed the moves.
    moves : list of Move
        All proposals, accepted or not.
    """

    n_components: int
    log_likelihood: float
    n_reassigned: int
    moves: list[Move]


class _Rows(NamedTuple):
    """The projected rows, sorted by what they hold, so that no sum depends on their order."""

    V: Floats
    codes: Ints
    n_known: int
    keys: Keys  # content of each row
    order: Ints  # where each row stood


class _Run(NamedTuple):
    """One start carried to its end."""

    components: Components
    prior: NIWPrior
    history: list[Pass]
    converged: bool


class SplitMergeMixture(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    PartiallyLabelledClusterMixin,
    DensityMixin,
    BaseEstimator,
):
    """Semi-supervised Gaussian mixture that finds its number of components.

    Rows are scaled to unit length and projected on `n_directions` principal directions; then
    components split and merge by the Hastings ratios of the paper (Eq. 5 and 6) while labelled
    rows stay with their class. The first K^l components are the known classes in sorted order,
    the others are novel, the largest first.

    Taken literally, the ratios do not find K in 128 dimensions. By default they rank the moves,
    and how many are made is set by `count_categories`, which learns from the known classes what
    a novel one looks like.

    Parameters
    ----------
    n_components_init : int, optional
        K to start from; the count is the least, where there is one. By default
        K^l + max(1, K^l // 2), and 10 without any label.
    n_components : int, optional
        Total number of categories K, if it is known: the mixture then makes no moves.
    n_directions : int, default=128
        Number of principal directions q, reduced to ``min(n - 1, d)`` where that is less.
    acceptance : {"calibrated", "literal"}, default="calibrated"
        How moves are accepted: "calibrated" such that K^n agrees with `count_categories`, or
        "literal" with the paper's probability min(1, H). With fewer than two known classes
        there is nothing to calibrate by, and "literal" is used with a warning.
    count : CategoryCount, optional
        A count to steer by, for instance of other features of the same rows. By default the
        categories are counted in X.
    whiten : bool, optional
        Measure distances in units of the labelled classes' within-class covariance. By default
        with at least 10 known classes, unless the acceptance is literal.
    prior : NIWPrior, optional
        θ, in the projected space. By default it is fitted to the labelled classes.
    assign : {"nearest", "soft"}, default="nearest"
        Rows go to the nearest prototype, as in the paper, or to the most probable component
        of the mixture with full covariances (slower).
    count_term : {"gamma", "factorial"}, default="gamma"
        Whether Γ(n) in Eq. 5 and 6 is (n - 1)! or n! as the paper prints.
    expect_sizes : bool, optional
        Shift prototypes and borders until novel categories are as large as known ones, as far as
        the numbers of labels tell. It helps where categories are of like sizes and labels are
        a random part of their classes, and does harm where they are not; by default it is done
        where the numbers of labels look like that, unless the acceptance is literal.
    max_passes : int, default=30
        Most passes of split and merge.
    n_init : int, default=3
        Number of starts. They vote over the rows; the best one decides on K.
    random_state : int, RandomState or None, default=None
        Seed. Draws depend on what rows hold, not on their order.
    verbose : int, default=0
        With 1, a line per pass is printed.
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
        The paper's prototypes: mean of the labelled rows of a known class, of all rows of a
        novel one, weighted by their shares in it where sizes are expected.
    offsets_ : ndarray of shape (K,)
        What is taken off the squared distance to each prototype before the nearest is chosen:
        0, unless sizes are expected.
    prior_ : NIWPrior
        The prior that was used.
    projection_ : Projection
        From X to the space of the mixture.
    n_directions_ : int
        Directions that were used.
    count_ : CategoryCount or None
        The count that steered the moves; None if K was given or the acceptance is literal.
    n_novel_interval_ : tuple of float or None
        90 % interval of K^n, from `count_`.
    stability_ : ndarray of shape (K,)
        How far the starts agree on each component, between 0 and 1; NaN for a single start.
    history_ : list of Pass
        K, log-likelihood and moves of each pass of the best start.
    converged_ : bool
        Whether no further pass would have changed or bettered the partition. True when K was
        given.
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
        assign: Literal["nearest", "soft"] = "nearest",
        count_term: CountTerm = "gamma",
        expect_sizes: bool | None = None,
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
        self.expect_sizes = expect_sizes
        self.max_passes = max_passes
        self.n_init = n_init
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: ArrayLike, y: LabelsLike = None) -> SplitMergeMixture:
        """Find the categories.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features, labelled and unlabelled rows together.
        y : array-like of shape (n,), optional
            Partial labels; -1, None, NaN or an empty text where a row is unlabelled. Without
            any label the mixture works unsupervised, and warns.

        Returns
        -------
        SplitMergeMixture
            This estimator.
        """
        random_state = check_random_state(self.random_state)
        rows = self._prepare(X, y, random_state)
        n_start = self._resolve_start(len(rows.V), rows.n_known)
        runs = [
            self._run(
                rows,
                fit_labels(rows.V, rows.codes, rows.n_known, n_start, random_state),
                random_state,
            )
            for _ in range(self.n_init)
        ]
        return self._finish(rows, runs)

    def refit(
        self,
        X: ArrayLike,
        y: LabelsLike,
        labels: ArrayLike,
    ) -> SplitMergeMixture:
        """Find the categories from a given partition instead of a k-means start.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features; they may have changed since `labels` were found.
        y : array-like of shape (n,)
            Partial labels.
        labels : array-like of int, shape (n,)
            Component of each row: the first K^l numbers are the known classes in sorted order.
            Labelled rows are put back into their class.

        Returns
        -------
        SplitMergeMixture
            This estimator.
        """
        random_state = check_random_state(self.random_state)
        rows = self._prepare(X, y, random_state)
        start = np.asarray(labels)
        if start.shape != (len(rows.V),) or start.dtype.kind not in "iu" or start.min() < 0:
            raise InputError(
                f"labels must hold one component number >= 0 for each of the {len(rows.V)} rows; "
                f"got shape {start.shape}, type {start.dtype}."
            )
        start = np.where(rows.codes == UNLABELLED, start[rows.order], rows.codes)
        start = number_components(start, rows.n_known)[start]
        return self._finish(rows, [self._run(rows, start, random_state)])

    def predict(self, X: ArrayLike) -> Ints:
        """Component of each row of X, the argmax of `predict_proba`; labels are not looked at."""
        if self.assign == "soft":
            return self.predict_proba(X).argmax(axis=1)
        return self.nearest_prototype(X)

    def predict_proba(self, X: ArrayLike) -> Doubles:
        """Probability of each component for each row of X, shape (n, K).

        With ``assign="soft"`` the responsibilities of the mixture; with ``assign="nearest"``
        those of equally probable spherical components of one common variance, of which the
        nearest prototype is the most probable. The variance is the one that predicts the labelled
        rows best, so that of rows with a probability of 0.9 about 9 in 10 are right.
        """
        return self.proba_of_projected(self._project(X))

    def proba_of_projected(self, V: Floats) -> Doubles:
        """`predict_proba` of rows that are already projected."""
        if self.assign == "soft":
            logits = log_joint(V, self.means_, self.covariances_, self.weights_)
        else:
            logits = squared_distances(V, self.prototypes_.astype(V.dtype)).astype(np.float64)
            logits -= self.offsets_
            logits *= -0.5 / self._spherical_variance
        probabilities: Doubles = softmax(logits, axis=1)
        return probabilities

    def nearest_prototype(self, X: ArrayLike) -> Ints:
        """Index of the prototype of least squared distance, less `offsets_`: the paper's way."""
        V = self._project(X)
        return nearest_centre(V, self.prototypes_.astype(V.dtype), self.offsets_)[0]

    def transform(self, X: ArrayLike) -> Floats:
        """Distances of the rows to the prototypes in the projected space, shape (n, K).

        The nearest is the one that `predict` chooses, unless sizes are expected.
        """
        V = self._project(X)
        return np.sqrt(squared_distances(V, self.prototypes_.astype(V.dtype)))

    def score_samples(self, X: ArrayLike) -> Doubles:
        """Log density of each row under the mixture (Eq. 4), in the projected space."""
        joint = log_joint(self._project(X), self.means_, self.covariances_, self.weights_)
        density: Doubles = logsumexp(joint, axis=1)
        return density

    def score(self, X: ArrayLike, y: LabelsLike = None) -> float:
        """Mean log density of the rows of X; `y` is not used."""
        return float(self.score_samples(X).mean())

    def _prepare(self, X: ArrayLike, y: LabelsLike, random_state: np.random.RandomState) -> _Rows:
        """Check the settings and the data, count the categories, project the rows."""
        self._check_settings()
        X = check_rows(self, X, ensure_min_samples=2)
        partial = encode_labels(y, len(X))
        self.count_ = self._count(X, partial.codes, random_state)
        self.n_novel_interval_ = None if self.count_ is None else self.count_.interval
        keys = row_keys(X)
        order = content_order(keys, partial.codes)
        whiten = self.whiten
        if whiten is None:
            whiten = self.acceptance == "calibrated" and enough_to_whiten(partial.codes)
        self.projection_ = Projection(self.n_directions, whiten=whiten)
        self.projection_.fit_in_order(X, partial.codes, order)
        self.n_directions_ = self.projection_.n_directions_
        self.classes_ = partial.classes
        self.n_known_ = partial.n_known
        V = self.projection_.transform_in_order(X, order)
        return _Rows(V, partial.codes[order], partial.n_known, keys[order], order)

    def _count(
        self, X: Floats, codes: Ints, random_state: np.random.RandomState
    ) -> CategoryCount | None:
        """Count the categories, where the moves are to be steered by that and can be."""
        n_known = int(codes.max()) + 1
        if n_known == 0:
            warnings.warn(
                "No row is labelled: the mixture works unsupervised, and nothing tells it what "
                "counts as a category. Label some rows of a few classes for a result to trust.",
                DiscoveryWarning,
                stacklevel=4,
            )
        if self.acceptance == "literal" or self.n_components is not None or n_known == 0:
            return None
        if n_known == 1 and (codes == UNLABELLED).any():
            warnings.warn(
                "Only one class is known, so nothing tells how much novel ones differ: moves are "
                "accepted by the paper's min(1, H), which seldom finds K. Label rows of a second "
                "class, better of five or more.",
                DiscoveryWarning,
                stacklevel=4,
            )
            return None
        if n_known < _CLASSES_TO_TRUST and (codes == UNLABELLED).any():
            warnings.warn(
                f"Only {n_known} classes are known, and what a novel one looks like is learnt from "
                "them: K may well lie outside its interval. Label rows of five classes or more.",
                DiscoveryWarning,
                stacklevel=4,
            )
        if self.count is not None:
            return self.count
        return count_categories(X, codes, random_state=random_state)

    def _check_settings(self) -> None:
        for name in ("n_directions", "max_passes", "n_init"):
            check_positive_int(name, getattr(self, name))
        for name in ("n_components_init", "n_components"):
            if getattr(self, name) is not None:
                check_positive_int(name, getattr(self, name))
        choices = {
            "acceptance": ("calibrated", "literal"),
            "assign": ("nearest", "soft"),
            "count_term": ("gamma", "factorial"),
        }
        if self.expect_sizes not in (None, True, False):
            raise InputError(
                f"expect_sizes must be True, False or None; got {self.expect_sizes!r}."
            )
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise InputError(
                    f"{name} must be one of {', '.join(allowed)}; got {getattr(self, name)!r}."
                )

    def _resolve_start(self, n_rows: int, n_known: int) -> int:
        """K to start from: what was asked for or the paper's K^l + K^l / 2, at least the count."""
        counted = n_known if self.count_ is None else n_known + round(self.count_.n_novel)
        asked = self.n_components if self.n_components is not None else self.n_components_init
        if asked is None:
            default = n_known + max(1, n_known // 2) if n_known else 10
            return min(max(default, counted), n_rows)
        name = "n_components_init" if self.n_components is None else "n_components"
        if asked > n_rows:
            raise InputError(
                f"{name}={asked} is more than the n_samples={n_rows} rows of X; "
                "there cannot be more categories than rows."
            )
        if asked < n_known:
            warnings.warn(
                f"{name}={asked}, but y names {n_known} known classes: "
                f"{n_known} components are used.",
                DiscoveryWarning,
                stacklevel=3,
            )
        return max(asked, min(counted, n_rows))

    def _run(self, rows: _Rows, labels: Ints, random_state: np.random.RandomState) -> _Run:
        """Carry one start to its end: moves, then re-assignment, until they change no row.

        At the number it is steered to, a partition is also done when a pass has not made it
        fit better: at the same K, inertias compare.
        """
        target = None if self.count_ is None else round(self.count_.n_novel)
        accept = accept_literal if target is None else SteeredAcceptance(target)
        rules = Rules(self._fit_prior(rows, labels), accept, self.count_term)
        components = self._components(rows, self._assign(rows, labels, rules.prior), rules)
        history: list[Pass] = []
        best: Components | None = None
        converged = self.n_components is not None
        while not converged and len(history) < self.max_passes:
            seed = int(random_state.randint(2**31))
            moved, moves = split_merge_pass(rows.V, components, rules, seed)
            labels = self._assign(rows, moved, rules.prior)
            n_reassigned = int(np.count_nonzero(labels != moved))
            converged = n_reassigned == 0 and not any(move.accepted for move in moves)
            components = self._components(rows, labels, rules)
            history.append(
                Pass(len(components.stats), components.log_likelihood, n_reassigned, moves)
            )
            self._tell(history[-1])
            if len(components.stats) - rows.n_known == target:
                if best is None or components.inertia < best.inertia:
                    best = components
                else:
                    converged = True
        return _Run(best or components, rules.prior, history, converged)

    def _components(self, rows: _Rows, labels: Ints, rules: Rules) -> Components:
        return Components.of(rows.V, labels, rows.n_known, rules, rows.keys)

    def _tell(self, done: Pass) -> None:
        """Tell whoever listens that a pass is over."""
        if self.verbose:
            n_accepted = sum(move.accepted for move in done.moves)
            print(
                f"K = {done.n_components}, {n_accepted} moves, "
                f"log-likelihood {done.log_likelihood:.6g}"
            )
        if self.callback is not None:
            self.callback(done)

    def _settle(self, rows: _Rows, labels: Ints, stability: Doubles) -> tuple[Ints, Doubles]:
        """Let rows find their nearest prototypes for good, so that `predict` repeats `labels_`."""
        number_of = number_components(labels, rows.n_known, len(stability))
        labels, stability = number_of[labels], stability[number_of >= 0]
        if self.assign == "nearest":
            labels = nearest_labels(rows.V, rows.codes, labels, rows.n_known, N_ROUNDS_TO_SETTLE)
            number_of = number_components(labels, rows.n_known, len(stability))
            labels, stability = number_of[labels], stability[number_of >= 0]
        return labels, stability

    def _fit_sizes(self, rows: _Rows, labels: Ints) -> tuple[Ints, Doubles, Doubles]:
        """Labels, prototypes and offsets, such that components have sizes to be expected."""
        prototypes = prototypes_of(rows.V, rows.codes, labels, rows.n_known)
        nearest = labels, prototypes, np.zeros(len(prototypes))
        if not self._expects_sizes(rows, labels, len(prototypes)):
            return nearest
        free = np.flatnonzero(rows.codes == UNLABELLED)
        V, sizes = rows.V[free], expected_sizes(rows.codes, labels, len(prototypes))
        prototypes, offsets = fit_sizes(V, prototypes, rows.n_known, sizes)
        labels = rows.codes.copy()
        labels[free] = nearest_centre(V, prototypes.astype(V.dtype), offsets)[0]
        if len(np.unique(labels)) < len(prototypes):  # none is given up for its size
            return nearest
        return labels, prototypes, offsets

    def _expects_sizes(self, rows: _Rows, labels: Ints, n_components: int) -> bool:
        """Whether categories are to be as large as known ones."""
        some_labelled = 0 < np.count_nonzero(rows.codes == UNLABELLED) < len(rows.codes)
        if self.assign == "soft" or not some_labelled:
            return False
        if self.expect_sizes is not None:
            return self.expect_sizes
        # a known class that no unlabelled row is of has no size to expect
        all_there = self.count_ is None or self.count_.n_absent == 0
        calibrated = self.acceptance == "calibrated"
        return calibrated and all_there and sizes_are_alike(rows.codes, labels, n_components)

    def _assign(self, rows: _Rows, labels: Ints, prior: NIWPrior) -> Ints:
        if self.assign == "soft":
            return assign_soft(rows.V, rows.codes, labels, rows.n_known, prior)
        labels = nearest_labels(rows.V, rows.codes, labels, rows.n_known, N_ROUNDS)
        return number_components(labels, rows.n_known)[labels]

    def _fit_prior(self, rows: _Rows, labels: Ints) -> NIWPrior:
        """Take the prior that was given, or fit one to the labelled classes."""
        if self.prior is not None:
            if self.prior.n_features != self.n_directions_:
                raise InputError(
                    f"prior has {self.prior.n_features} dimensions, but the rows are projected "
                    f"on {self.n_directions_} directions; give a prior of that size."
                )
            return self.prior
        codes = rows.codes if rows.n_known else labels
        n_classes = int(codes.max()) + 1
        classes = GaussianStats.from_labels(rows.V, codes, n_classes)
        return NIWPrior.from_classes(classes, GaussianStats.from_points(rows.V))

    def _finish(self, rows: _Rows, runs: list[_Run]) -> SplitMergeMixture:
        """Let the starts vote, number the novel components by size, derive all from the labels."""
        n_known = rows.n_known
        # with one K for all starts the best fit leads, otherwise the most likely partition
        same_k = self.n_components is not None or self.count_ is not None
        run = max(
            runs,
            key=lambda run: -run.components.inertia if same_k else run.components.log_likelihood,
        )
        others = [other.components.labels for other in runs if other is not run]
        labels, stability = agree(run.components.labels, others, n_known)
        labels, stability = self._settle(rows, labels, stability)
        labels, prototypes, offsets = self._fit_sizes(rows, labels)
        number_of, order = _largest_first(labels, n_known, rows.keys)
        labels, self.stability_ = number_of[labels], stability[order]
        self.labels_ = np.empty_like(labels)
        self.labels_[rows.order] = labels
        stats = GaussianStats.from_labels(rows.V, labels, len(order))
        self.n_components_ = self._n_features_out = len(stats)
        self.n_novel_ = self.n_components_ - n_known
        self.prior_ = run.prior
        self.means_, self.covariances_, self.weights_ = mixture_parameters(stats, run.prior)
        self.prototypes_, self.offsets_ = prototypes[order], offsets[order]
        centres = self.prototypes_.astype(rows.V.dtype)
        mean_square = nearest_centre(rows.V, centres, self.offsets_)[1].mean()
        labelled = np.flatnonzero(rows.codes != UNLABELLED)
        some = labelled[:: max(1, -(-len(labelled) // _ROWS_FOR_VARIANCE))]  # rows lie in no order
        self._spherical_variance = spherical_variance(
            squared_distances(rows.V[some], centres),
            rows.codes[some],
            np.bincount(rows.codes[labelled], minlength=n_known),
            float(mean_square) / self.n_directions_ or 1.0,
            self.offsets_,
        )
        self.history_ = run.history
        self.converged_ = run.converged
        self.n_iter_ = max(1, len(run.history))
        self._compare_with_count()
        return self

    def _compare_with_count(self) -> None:
        """Say so if the partition did not come to the number that it was steered to."""
        if self.count_ is None or self.n_novel_ == round(self.count_.n_novel):
            return
        low, high = self.count_.interval
        if not low - 0.5 <= self.n_novel_ <= high + 0.5:
            warnings.warn(
                f"The count speaks for {self.count_.n_novel:.1f} novel categories ({low:.1f} to "
                f"{high:.1f}), but the rows divide into {self.n_novel_}: trust neither number.",
                DiscoveryWarning,
                stacklevel=4,
            )

    def _project(self, X: ArrayLike) -> Floats:
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        return self.projection_.transform(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def enough_to_whiten(codes: Ints) -> bool:
    """Whether the labels say in which directions a class varies: classes enough, 2 rows each."""
    n_known = int(codes.max()) + 1
    n_labelled = np.count_nonzero(codes != UNLABELLED)
    return bool(n_known >= _CLASSES_TO_WHITEN and n_labelled >= 2 * n_known)


def _largest_first(labels: Ints, n_known: int, keys: Keys) -> tuple[Ints, Ints]:
    """Number of each component and the components in that order.

    Known ones first, then novel ones by falling size, ties by content; empty novel ones get -1.
    """
    sizes = np.bincount(labels, minlength=n_known)
    content = np.zeros(len(sizes), dtype=np.uint64)
    np.add.at(content, labels, keys)
    novel = np.lexsort((content[n_known:], -sizes[n_known:])) + n_known
    order = np.concatenate([np.arange(n_known), novel[sizes[novel] > 0]])
    number_of = np.full(len(sizes), -1)
    number_of[order] = np.arange(len(order))
    return number_of, order
