"""Estimate the number of novel categories, K^n, without clustering (deviation D9).

K^n depends on two quantities: how much of the unlabelled part is novel, and how large a novel
category is.

**How much is novel.** Every row gets a score for how near it is to the labelled rows of some known
class, in a space that is learnt from these rows. Two groups of rows have a known answer. Labelled
rows that are held out behave like unlabelled rows of known classes. Labelled rows of known classes
that are hidden for a round behave like rows of novel classes. Let m_K and m_N be the mean scores of
these two groups, and m the mean score of the unlabelled rows. The share of known rows among the
unlabelled ones is (m - m_N) / (m_K - m_N). It gives the label rate r, the share of the rows of
known classes that is labelled. With N rows, N_l of them labelled, in K^l known classes, the known
classes have N_l / r rows in all.

**How large novel categories are.** If as large as known ones, on average, there are

    K^n = K^l (N r / N_l - 1)

of them; if 1/3 as large, there are three times as many. `measure_reach` finds the ratio of sizes,
with an error, and `judge_sizes` combines it with a prior.

Assumptions: labels are missing at random, with one label rate for all known classes. Known and
novel classes lie in the feature space in the same way.
"""

from __future__ import annotations

import functools
import warnings
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from sklearn.utils import check_array, check_random_state

from newfound.arrays import ArrayLike, Doubles, Floats, Ints, LabelsLike, RandomStateLike
from newfound.errors import DiscoveryWarning, InputError
from newfound.labels import UNLABELLED
from newfound.mixture.class_order import ClassOrder
from newfound.mixture.clustering import default_n_components
from newfound.mixture.counting.drawing import labelled_by_class, sample_rows
from newfound.mixture.counting.hiding import N_ROUNDS, gather_evidence
from newfound.mixture.counting.mass import Mass, weigh
from newfound.mixture.counting.neighbours import Surroundings, survey
from newfound.mixture.counting.novel_size import Sizes, check_sizes, judge_sizes
from newfound.mixture.counting.reach import Reach, reach_of
from newfound.mixture.rows import content_order, row_keys
from newfound.mixture.sampling import rows_and_sample

#: Larger collections are sampled: the label rate needs no more rows than this.
MAX_ROWS = 20_000
#: Quantiles by which the distribution of the odds is represented.
_N_QUANTILES = 200
_ONE_LABEL = (
    "Every known class has a single label, so that none can be held out to see what rows of known "
    "classes look like: the number of novel categories cannot be estimated. Label a second row of "
    "some classes."
)


@dataclass(frozen=True)
class CategoryCount:
    """Estimated number of novel categories.

    Attributes
    ----------
    n_novel : float
        Estimate of K^n, the number of novel categories. It need not be a whole number, and can
        be 0.
    interval : tuple of float
        Lower and upper end of the interval that holds K^n with the probability `level`.
    level : float
        Probability with which the interval contains K^n.
    label_rate : float
        Estimated share of the rows of known classes that are labelled; NaN if nothing can be
        held out to estimate it.
    novel_share : float
        Estimated share of the unlabelled rows that belong to novel categories, or NaN.
    n_known : int
        K^l, the number of known classes.
    n_absent : int
        Number of known classes that seem to have no unlabelled row.
    novel_size : float
        Mean number of rows of a novel category; NaN where K was given.
    novel_size_interval : tuple of float
        Lower and upper end of the interval that holds it with the probability `level`.
    sizes_from : {"data", "prior", "given"}
        Whether the rows told how large novel categories are; or they did not, and the interval
        covers whatever is plausible; or it was given.
    alike : float
        Probability that novel categories are as large as known ones.
    known_size : float
        Mean number of rows of a known class that has unlabelled rows; NaN if it is not known.
    """

    n_novel: float
    interval: tuple[float, float]
    level: float
    label_rate: float
    novel_share: float
    n_known: int
    n_absent: int
    novel_size: float = float("nan")
    novel_size_interval: tuple[float, float] = (float("nan"), float("nan"))
    sizes_from: Literal["data", "prior", "given"] = "given"
    alike: float = 1.0
    known_size: float = float("nan")

    def as_plain(self) -> dict[str, Any]:
        """The count for JSON, which has neither tuples nor NaN."""

        def plain(value: Any) -> Any:
            if isinstance(value, tuple):
                return [plain(entry) for entry in value]
            return None if isinstance(value, float) and np.isnan(value) else value

        return {name: plain(value) for name, value in asdict(self).items()}

    @classmethod
    def from_plain(cls, values: dict[str, Any]) -> CategoryCount:
        """Read what `as_plain` made."""

        def restore(value: Any) -> Any:
            if isinstance(value, list):
                return tuple(restore(entry) for entry in value)
            return float("nan") if value is None else value

        return cls(**{name: restore(value) for name, value in values.items()})


def count_categories(
    X: ArrayLike,
    y: LabelsLike,
    *,
    level: float = 0.9,
    sizes: Sizes = "unknown",
    random_state: RandomStateLike = None,
) -> CategoryCount:
    """Estimate the number of novel categories, in seconds and without clustering.

    Known classes are hidden in turn, to learn what rows of a novel class look like.

    Parameters
    ----------
    X : array-like of shape (n, d), Dask array or rows from `newfound.scale`
        Features, labelled and unlabelled rows together.
    y : array-like of shape (n,)
        Partial labels of at least two known classes; -1, None, NaN or an empty text where a
        row is unlabelled.
    level : float, default=0.9
        Probability with which the interval contains K^n.
    sizes : {"unknown", "alike"} or float, default="unknown"
        What you know about the sizes of novel categories: nothing, that they are as large as
        known ones, or the ratio of the mean sizes, novel : known (0.5 if they are half as large).
        To say it makes the interval narrower; to say it wrongly makes it wrong.
    random_state : int, RandomState or None, default=None
        Seed of the draw of hidden classes. Neither the order of the rows nor the names of the
        classes matter.

    Returns
    -------
    CategoryCount
        K^n with its interval, the label rate and the share of novel rows.

    Raises
    ------
    InputError
        If fewer than two classes are known, or `level` is not a probability.
    """
    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1; got {level!r}.")
    check_sizes(sizes)
    random_state = check_random_state(random_state)
    check = functools.partial(check_array, dtype=[np.float64, np.float32], ensure_min_samples=2)
    _, sample = rows_and_sample(X, y, random_state, check)
    X, partial, keys = sample.X, sample.partial, row_keys(sample.X)
    codes = ClassOrder.of(partial, keys).number_by_content(partial.codes)
    order = sample.rows_to_count(codes, content_order(keys, codes))
    options: dict[str, Any] = {"level": level, "sizes": sizes, "random_state": random_state}
    return count_checked(X, codes, order, n_rows=sample.n_rows, **options)


def count_checked(
    X: Floats,
    codes: Ints,
    order: Ints,
    *,
    n_rows: int | None = None,
    level: float = 0.9,
    sizes: Sizes = "unknown",
    random_state: RandomStateLike = None,
) -> CategoryCount:
    """Do the work of `count_categories` on rows that were already checked and sorted.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Features, float32 or float64, finite.
    codes : ndarray of int, shape (n,)
        Known class of each row without gaps, numbered by `ClassOrder`; -1 if unlabelled.
    order : ndarray of int, shape (n,)
        The rows sorted by `content_order`.
    n_rows : int, optional
        Number of rows for which those of `order` stand; by default that of X.
    level, sizes, random_state
        As in `count_categories`.

    Returns
    -------
    CategoryCount
        K^n with its interval.
    """
    n_known = int(codes.max()) + 1
    is_labelled = codes != UNLABELLED
    if n_known and is_labelled.all():
        return CategoryCount(0.0, (0.0, 0.0), level, 1.0, 0.0, n_known, n_known)
    if n_known < 2:
        raise InputError(
            f"Counting needs at least 2 known classes, since one is hidden to learn what a novel "
            f"one looks like; y names {n_known}. Label rows of more classes."
        )
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    n_labels = np.bincount(codes[is_labelled])
    order = order[sample_rows(codes[order], MAX_ROWS, rng)]
    n_rows = len(X) if n_rows is None else n_rows
    near = survey(X[order], rng, n_rows / len(order))
    found = count_among(near, codes[order], rng, sizes=sizes, level=level)
    return _count_without_evidence(n_labels, len(X), level) if found is None else found


def count_among(
    near: Surroundings,
    codes: Ints,
    rng: np.random.Generator,
    *,
    sizes: Sizes,
    level: float = 0.9,
    n_rounds: int = N_ROUNDS,
) -> CategoryCount | None:
    """Count categories in rows whose surroundings are known.

    Parameters
    ----------
    near : Surroundings
        The rows.
    codes : ndarray of int, shape (n,)
        Their known classes, without gaps; -1 if unlabelled. At least two classes.
    rng : Generator
        Draws the hidden classes.
    sizes, level
        As in `count_categories`.
    n_rounds : int, default=15
        Least number of rounds of hiding; fewer are faster, and their count varies more.

    Returns
    -------
    CategoryCount or None
        None if nothing could be hidden or held out.
    """
    if not near.V.any():
        return None
    # a sample of rows has random numbers of labels, even if each class was given the same number
    by_class = near.scale == 1 and labelled_by_class(np.bincount(codes[codes != UNLABELLED]))
    evidence = gather_evidence(near, codes, by_class=by_class, rng=rng, n_rounds=n_rounds)
    if evidence is None:
        return None
    mass = weigh(evidence, codes)
    reach = reach_of(mass, near.V, codes, rng) if sizes == "unknown" else None
    return _conclude(mass, reach, sizes, level, near.scale)


def _count_without_evidence(n_labels: Ints, n_rows: int, level: float) -> CategoryCount:
    """Any label rate is possible: guess as many novel categories as the mixture starts with."""
    if n_labels.max() == 1:
        warnings.warn(_ONE_LABEL, DiscoveryWarning, stacklevel=4)
    n_known = len(n_labels)
    most = n_known * (n_rows / int(n_labels.sum()) - 1)
    guess = min(most, float(default_n_components(n_known) - n_known))
    return CategoryCount(
        n_novel=guess,
        interval=(0.0, most),
        level=level,
        label_rate=float("nan"),
        novel_share=float("nan"),
        n_known=n_known,
        n_absent=0,
        novel_size=(n_rows - int(n_labels.sum())) / max(guess, 1.0),
        novel_size_interval=(1.0, float(n_rows)),
        sizes_from="prior",
        alike=float("nan"),
    )


def _conclude(
    mass: Mass, reach: Reach | None, sizes: Sizes, level: float, scale: float
) -> CategoryCount:
    """Combine the distributions of the odds and of the ratio of sizes.

    `scale` is the number of rows that each row of the sample stands for.
    """
    odds = mass.quantiles((np.arange(_N_QUANTILES) + 0.5) / _N_QUANTILES)
    median = float(mass.quantiles(np.array(0.5)))
    n_labelled = int(mass.n_labels.sum())
    known = min(median * n_labelled, mass.n_unlabelled)
    rate = n_labelled / (n_labelled + known)
    n_alike = float(mass.n_alike(median))
    ratio = judge_sizes(sizes, reach, n_alike, _size_error(mass.n_labels, rate, n_alike))
    n_novel = mass.n_alike(odds)[:, None] * np.exp(ratio.values)
    shares = np.broadcast_to(ratio.weights / _N_QUANTILES, n_novel.shape)
    tails = np.array([0.5, 0.5 - level / 2, 0.5 + level / 2])
    middle, low, high = _quantiles(n_novel.ravel(), shares.ravel(), tails)
    known_size = scale * (n_labelled + known) / len(mass.n_labels)
    novel_sizes = known_size * np.exp(-ratio.values[::-1])
    size, least, most = _quantiles(novel_sizes, ratio.weights[::-1], tails)
    return CategoryCount(
        n_novel=middle,
        interval=(low, high),
        level=level,
        label_rate=rate,
        novel_share=1 - known / mass.n_unlabelled,
        n_known=len(mass.present),
        n_absent=int((~mass.present).sum()),
        novel_size=size,
        novel_size_interval=(least, most),
        sizes_from=ratio.decided_by,
        alike=ratio.alike,
        known_size=known_size,
    )


def _quantiles(values: Doubles, weights: Doubles, at: Doubles) -> list[float]:
    """Quantiles of weighted values."""
    order = np.argsort(values, kind="stable")
    shares = np.cumsum(weights[order]) - weights[order] / 2
    return [float(found) for found in np.interp(at, shares / weights.sum(), values[order])]


def _size_error(sizes: Ints, rate: float, n_novel: float) -> float:
    """Relative error of K^n if novel classes are larger or smaller than known ones.

    Equal classes get different numbers of labels by chance; that part of the variance is removed.
    """
    mean = float(sizes.mean())
    by_chance = (1 - rate) * mean
    squared_cv = max(0.0, (float(sizes.var(ddof=1)) - by_chance) / mean**2)
    return float(np.sqrt(squared_cv * (1 / len(sizes) + 1 / max(1.0, n_novel))))
