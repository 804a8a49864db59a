"""How often a confidence is right, learnt from known classes that are hidden for a moment.

The probabilities of a mixture say how clearly a row lies in its component. They cannot know that a
component may hold two categories, or half of one, so they are too sure. Here some known classes
and some labels of the others are hidden, the mixture is fitted again, and the rows with a hidden
label show how often a row of a given probability is in the right category.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.optimize import linear_sum_assignment, minimize
from scipy.special import expit, logit
from sklearn.utils import check_random_state

from newfound.arrays import ArrayLike, Bools, Doubles, Ints, LabelsLike, RandomStateLike
from newfound.labels import UNLABELLED, encode_labels
from newfound.mixture.counting.draws import (
    CategoryFinder,
    DrawRows,
    fit_visible,
    run_draws,
    samples_of_rows,
    settings_of_draw,
)
from newfound.mixture.counting.novel_size import Sizes, ratio_with_hidden

#: Share of the known classes, and of the labels of the others, that are hidden in a draw. Hiding
#: more makes the task harder than the real one, and confidences too low.
SHARE_HIDDEN = 0.2
#: With fewer known classes, too few are left to learn from.
MIN_CLASSES = 4
#: Probabilities are kept this far from 0 and 1, whose logits are infinite.
_MARGIN = 1e-6
#: Weight of the pull towards the unchanged probability; it decides if there are few hidden rows.
_PULL = 1e-3


class ProbabilisticFinder(CategoryFinder, Protocol):
    """What the calibration needs of the mixture."""

    sizes: Sizes | None
    classes_: Any

    def predict_proba(self, X: ArrayLike) -> Doubles:
        """Probability of each component."""
        ...


@dataclass(frozen=True)
class ConfidenceMap:
    """From the probability of a component to the probability that its category is right.

    The map is ceiling · σ(slope · logit(p) + shift): it keeps the order of probabilities.

    Attributes
    ----------
    slope, shift : float
        1 and 0 leave the probability as it is.
    ceiling : float
        The most that any row can reach. Below 1 where even clear rows are often wrong, because
        components hold more than one category.
    """

    slope: float
    shift: float
    ceiling: float

    def __call__(self, probability: Doubles) -> Doubles:
        """Map probabilities of any shape."""
        scores = logit(np.clip(probability, _MARGIN, 1 - _MARGIN))
        mapped: Doubles = self.ceiling * expit(self.slope * scores + self.shift)
        return mapped


class _Checked(NamedTuple):
    """Rows with a hidden label after a draw."""

    probability: Doubles
    is_right: Bools
    was_class_hidden: Bools


def calibrate_confidence(
    mixture: ProbabilisticFinder,
    X: ArrayLike,
    y: LabelsLike,
    *,
    n_draws: int = 6,
    n_jobs: int | None = None,
    random_state: RandomStateLike = None,
    progress: Callable[[int, int], object] | None = None,
) -> ConfidenceMap | None:
    """Learn how often a probability of the mixture is right.

    Parameters
    ----------
    mixture : SplitMergeMixture
        Fitted to X and y. It is not changed.
    X : array-like of shape (n, d)
        Features.
    y : array-like of shape (n,)
        Partial labels.
    n_draws : int, default=6
        Number of times that classes and labels are hidden.
    n_jobs : int, optional
        Number of draws that run in parallel, as in joblib.
    random_state : int, RandomState or None, default=None
        Seed of the draws. They depend on what rows hold, not on their order or on names.
    progress : callable, optional
        Called after each draw as ``progress(done, total)``.

    Returns
    -------
    ConfidenceMap or None
        None with fewer than 4 known classes.
    """
    X = np.asarray(X)
    partial = encode_labels(y, len(X))
    if partial.n_known < MIN_CLASSES:
        return None
    settings = settings_of_draw(mixture).set_params(count=None)
    if isinstance(mixture.sizes, (int, float)):
        n_novel = mixture.n_components_ - mixture.n_known_
        ratio = ratio_with_hidden(mixture.sizes, _n_hidden(partial.n_known), n_novel)
        settings.set_params(sizes=ratio)
    seeds = check_random_state(random_state).randint(2**31, size=n_draws)
    draw = functools.partial(_check_once, settings)
    checked = run_draws(draw, samples_of_rows(X, partial), seeds, n_jobs, progress)
    whole = _Checked(*(np.concatenate(parts) for parts in zip(*checked, strict=True)))
    free = mixture.labels_[partial.codes == UNLABELLED]
    return fit_map(whole.probability, whole.is_right, _weights(whole, free, mixture.n_known_))


def fit_map(probability: Doubles, is_right: Bools, weights: Doubles) -> ConfidenceMap:
    """The map under which what was right is most likely, with a slight pull to no change.

    Parameters
    ----------
    probability : ndarray of shape (n,)
        Probabilities of the mixture.
    is_right : ndarray of bool, shape (n,)
        Whether the category was right.
    weights : ndarray of shape (n,)
        Weights of the rows.
    """
    scores = logit(np.clip(probability, _MARGIN, 1 - _MARGIN))
    shares = weights / weights.sum()

    def loss(values: Doubles) -> float:
        log_slope, shift, ceiling = values
        right = expit(ceiling) * expit(np.exp(log_slope) * scores + shift)
        right = np.clip(right, _MARGIN, 1 - _MARGIN)
        likelihood = shares @ np.where(is_right, np.log(right), np.log1p(-right))
        pull = log_slope**2 + shift**2 + 0.1 * (ceiling - 4) ** 2
        return float(_PULL * pull - likelihood)

    found = minimize(loss, [0.0, 0.0, 3.0], method="Nelder-Mead", options={"maxiter": 2000}).x
    return ConfidenceMap(float(np.exp(found[0])), float(found[1]), float(expit(found[2])))


def _check_once(settings: ProbabilisticFinder, rows: DrawRows, seed: int) -> _Checked:
    """Hide classes and labels, fit again, and look at the rows with a hidden label."""
    rng, codes = np.random.default_rng(seed), rows.codes
    hidden = _draw_classes(codes, rng)
    was_class_hidden = np.isin(codes, hidden)
    drawn = rng.random(len(codes))
    is_label_hidden = (codes != UNLABELLED) & (was_class_hidden | (drawn < SHARE_HIDDEN))
    mixture = fit_visible(settings, rows, np.where(is_label_hidden, UNLABELLED, codes), seed)
    labels = mixture.labels_[is_label_hidden]
    own = codes[is_label_hidden]
    component = _component_of(mixture, codes, hidden)
    probability = mixture.predict_proba(rows.X[is_label_hidden])[np.arange(len(labels)), labels]
    return _Checked(probability, component[own] == labels, was_class_hidden[is_label_hidden])


def _draw_classes(codes: Ints, rng: np.random.Generator) -> Ints:
    """Draw known classes, which are numbered by content."""
    n_known = int(codes.max()) + 1
    return rng.permutation(n_known)[: _n_hidden(n_known)]


def _n_hidden(n_known: int) -> int:
    """Number of classes that a draw hides."""
    return max(1, round(SHARE_HIDDEN * n_known))


def _component_of(mixture: ProbabilisticFinder, codes: Ints, hidden: Ints) -> Ints:
    """Component that stands for each known class; -1 for a hidden class that has none.

    A visible class has its own. Hidden classes are matched one to one with novel components, so
    that as many rows as possible are right.
    """
    component = np.full(int(codes.max()) + 1, -1)
    component[np.asarray(mixture.classes_, dtype=np.int64)] = np.arange(mixture.n_known_)
    n_novel = mixture.n_components_ - mixture.n_known_
    if n_novel == 0:
        return component
    shared = np.zeros((len(hidden), n_novel))
    for place, code in enumerate(hidden):
        novel = mixture.labels_[codes == code] - mixture.n_known_
        shared[place] = np.bincount(novel[novel >= 0], minlength=n_novel)
    places, matches = linear_sum_assignment(-shared)
    component[hidden[places]] = mixture.n_known_ + matches
    return component


def _weights(checked: _Checked, free: Ints, n_known: int) -> Doubles:
    """Weights that give rows of hidden classes the share that novel categories really have."""
    share = float(np.mean(free >= n_known)) if len(free) else 0.0
    hidden = checked.was_class_hidden
    n_hidden, n_visible = max(1, int(hidden.sum())), max(1, int((~hidden).sum()))
    # A little of each group stays, so that no row counts for nothing.
    share = min(max(share, 0.05), 0.95)
    return np.where(hidden, share / n_hidden, (1 - share) / n_visible)
