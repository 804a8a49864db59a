"""`trust_report`: how far to believe a result, measured on the data themselves."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.utils import check_random_state

from newfound.arrays import ArrayLike, Bools, Doubles, Floats, Ints, LabelsLike, RandomStateLike
from newfound.errors import DiscoveryWarning
from newfound.labels import UNLABELLED, encode_labels
from newfound.mixture.class_order import ClassOrder
from newfound.mixture.counting.calibration import ConfidenceMap
from newfound.mixture.estimator import SplitMergeMixture
from newfound.mixture.rows import content_order, row_keys
from newfound.mixture.trust.drawing import Design, Draw, Task, best_jaccards, draw_once
from newfound.mixture.trust.verdict import (
    CategoryStability,
    ClassCheck,
    ConfidenceCheck,
    DesignCheck,
    Measures,
    TrustReport,
    judge,
)

#: With fewer known classes, too few are left when some are hidden.
MIN_CLASSES = 4
#: Draws and further fits take at most this many rows: enough to see, and done in a minute or two.
MAX_ROWS = 5_000
#: Share of the rows in a subsample.
_SHARE = 0.8
_BINS = 10


@dataclass(frozen=True)
class Effort:
    """How much is measured; each draw and each further fit takes seconds.

    Attributes
    ----------
    n_draws : int
        Draws of hidden classes in each of the two designs.
    n_fits : int
        Further fits with other seeds, and as many of subsamples.
    """

    n_draws: int = 10
    n_fits: int = 3


def trust_report(
    X: ArrayLike,
    y: LabelsLike,
    *,
    mixture: SplitMergeMixture | None = None,
    calibration: ConfidenceMap | None = None,
    effort: Effort | None = None,
    n_jobs: int | None = None,
    random_state: RandomStateLike = 0,
    progress: Callable[[int, int], object] | None = None,
) -> TrustReport:
    """Measure how far a result can be believed.

    Known classes are hidden, to see whether they are found again; the mixture is fitted with other
    seeds and on subsamples, to see whether its novel categories come back; and confidences are
    compared with how often they are right.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Features.
    y : array-like of shape (n,)
        Partial labels.
    mixture : SplitMergeMixture, optional
        Fitted to X and y; by default one with the default settings is fitted.
    calibration : ConfidenceMap, optional
        From probabilities to the confidences of the result. By default they are the probabilities
        of the mixture.
    effort : Effort, optional
        How much to measure.
    n_jobs : int, optional
        Number of fits in parallel, as in joblib.
    random_state : int, RandomState or None, default=0
        Seed of the draws.
    progress : callable, optional
        Called after each fit as ``progress(done, total)``.

    Returns
    -------
    TrustReport
        One word, the reasons, and the numbers behind it.
    """
    X, effort = np.asarray(X), effort or Effort()
    rng = check_random_state(random_state)
    if mixture is None:
        mixture = SplitMergeMixture(random_state=rng.randint(2**31)).fit(X, y)
    partial = encode_labels(y, len(X))
    keys = row_keys(X)
    codes = ClassOrder.of(partial, keys).number_by_content(partial.codes)
    order = content_order(keys, codes)
    names = _names_by_content(partial.classes, partial.codes, codes)
    work: list[Any] = _draw_tasks(mixture, X, codes, order, effort, rng)
    n_draws = len(work)
    work += _fit_tasks(mixture, X, np.asarray(partial.codes), order, effort, rng)
    done = []
    for answer in Parallel(n_jobs=n_jobs, return_as="generator")(work):
        done.append(answer)
        if progress is not None:
            progress(len(done), len(work))
    draws = done[:n_draws]
    measures = Measures(
        n_known=mixture.n_known_,
        n_novel=mixture.n_novel_,
        interval=mixture.n_novel_interval_,
        hidden=_design_check(draws, "hidden"),
        labelled=_design_check(draws, "labelled"),
        classes=_class_checks(draws, names),
        categories=_stabilities(mixture, done[n_draws:], effort.n_fits),
        confidence=_confidence_check(draws, calibration),
    )
    return judge(measures)


def _names_by_content(classes: Iterable[object], codes: Ints, by_content: Ints) -> list[str]:
    """Name of each class in the order of its content number."""
    names = [str(name) for name in classes]
    number_of = dict(zip(by_content.tolist(), codes.tolist(), strict=True))
    return [names[number_of[number]] for number in range(len(names))]


def _draw_tasks(
    mixture: SplitMergeMixture,
    X: Floats,
    codes: Ints,
    order: Ints,
    effort: Effort,
    rng: np.random.RandomState,
) -> list[Callable[..., Draw]]:
    """Draws of both designs; none with too few known classes."""
    if mixture.n_known_ < MIN_CLASSES:
        return []
    settings = clone(mixture).set_params(
        n_init=1, verbose=0, callback=None, count=None, n_components=None
    )
    count = mixture.count_
    rate = 1.0 if count is None or np.isnan(count.label_rate) else count.label_rate
    n_novel = float(mixture.n_novel_) if count is None else count.n_novel
    work = []
    for design in ("hidden", "labelled"):
        among = order if design == "hidden" else order[codes[order] != UNLABELLED]
        for _ in range(effort.n_draws):
            rows = _some(among, MAX_ROWS, rng)
            kept = np.unique(codes[rows][codes[rows] != UNLABELLED])
            if len(kept) < mixture.n_known_:  # a sample that has lost a class is no fair test
                rows = among
            task = Task(
                settings, X[rows], codes[rows], rate, n_novel if design == "hidden" else 0.0
            )
            work.append(delayed(draw_once)(design, task, int(rng.randint(2**31))))
    return work


def _some(rows: Ints, most: int, rng: np.random.RandomState) -> Ints:
    """At most so many of the rows, in their order."""
    if len(rows) <= most:
        return rows
    chosen: Ints = rows[np.sort(rng.permutation(len(rows))[:most])]
    return chosen


def _fit_tasks(
    mixture: SplitMergeMixture,
    X: Floats,
    codes: Ints,
    order: Ints,
    effort: Effort,
    rng: np.random.RandomState,
) -> list[Callable[..., Doubles]]:
    """Fits with other seeds, then fits of subsamples; K is that of the result."""
    if mixture.n_novel_ == 0:
        return []
    # as many starts as the result had: it is the stability of the result that counts
    settings = clone(mixture).set_params(verbose=0, callback=None)
    if mixture.count_ is None:
        settings.set_params(n_components=mixture.n_components_)
    else:  # nothing is counted again, which would take most of the time
        settings.set_params(count=replace(mixture.count_, n_novel=float(mixture.n_novel_)))
    work = []
    for fit in range(2 * effort.n_fits):
        n_rows = len(X) if fit < effort.n_fits else round(_SHARE * len(X))
        rows = _some(order, min(n_rows, MAX_ROWS), rng)
        if set(codes[rows].tolist()) != set(codes.tolist()):
            rows = order
        reference = mixture.labels_[rows]
        work.append(
            delayed(_fit_again)(
                *(settings, X[rows], codes[rows], reference),
                range(mixture.n_known_, mixture.n_components_),
                int(rng.randint(2**31)),
            )
        )
    return work


def _fit_again(
    settings: SplitMergeMixture,
    X: Floats,
    y: Ints,
    reference: Ints,
    novel: range,
    seed: int,
) -> Doubles:
    """How similar each novel category is to its like in another fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscoveryWarning)
        mixture = clone(settings).set_params(random_state=seed).fit(X, y)
    return best_jaccards(reference, mixture.labels_, novel)


def _design_check(draws: list[Draw], design: Design) -> DesignCheck | None:
    of_design = [draw for draw in draws if draw.design == design]
    if not of_design:
        return None
    return DesignCheck(
        n_hidden=[draw.n_hidden for draw in of_design],
        n_found=[round(draw.n_found, 2) for draw in of_design],
        inside=float(np.mean([draw.is_inside for draw in of_design])),
        accuracy=float(np.mean([draw.accuracy for draw in of_design])),
    )


def _class_checks(draws: list[Draw], names: list[str]) -> list[ClassCheck]:
    """How often each class was hidden in either design, and what became of it, the worst first."""
    fates: dict[int, list[tuple[str, int]]] = {}
    for draw in draws:
        for code, fate, by in draw.fates:
            fates.setdefault(code, []).append((fate, by))
    checks = []
    for code, seen in fates.items():
        counts = Counter(fate for fate, _ in seen)
        eaters = Counter(names[by] if by >= 0 else "" for fate, by in seen if fate == "swallowed")
        eater = eaters.most_common(1)[0][0] if eaters else None
        checks.append(
            ClassCheck(
                names[code], len(seen), counts["found"], counts["split"], counts["swallowed"], eater
            )
        )
    return sorted(checks, key=lambda check: (check.n_found / check.n_hidden, check.name))


def _stabilities(
    mixture: SplitMergeMixture, fits: list[Doubles], n_fits: int
) -> list[CategoryStability]:
    if not fits:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a category that no sample has
        seeds, samples = (np.nanmean(part, axis=0) for part in (fits[:n_fits], fits[n_fits:]))
    return [
        CategoryStability(mixture.n_known_ + place, _number(one), _number(other))
        for place, (one, other) in enumerate(zip(seeds, samples, strict=True))
    ]


def _number(value: float) -> float | None:
    return None if np.isnan(value) else round(float(value), 3)


def _confidence_check(draws: list[Draw], given: ConfidenceMap | None) -> ConfidenceCheck | None:
    """Compare confidences with how often they are right, on rows whose label was hidden."""
    usable = [draw for draw in draws if draw.design == "hidden"]
    if not usable:
        return None
    probability, is_right = _pooled(usable)
    confidence = probability if given is None else given(probability)
    places = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
    bins, error = [], 0.0
    for place in np.unique(places):
        inside = places == place
        said, was = float(confidence[inside].mean()), float(is_right[inside].mean())
        bins.append((round(said, 3), round(was, 3), int(inside.sum())))
        error += inside.mean() * abs(said - was)
    return ConfidenceCheck(
        round(float(confidence.mean()), 3),
        round(float(is_right.mean()), 3),
        round(float(error), 3),
        bins,
    )


def _pooled(draws: list[Draw]) -> tuple[Doubles, Bools]:
    return (
        np.concatenate([draw.probability for draw in draws]),
        np.concatenate([draw.is_right for draw in draws]),
    )
