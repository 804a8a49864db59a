"""One draw: hide known classes, fit the mixture again, and look where their rows went.

There are two designs, as in `newfound.mixture.counting.rehearsal`. "hidden" takes all rows: the
truly novel categories are among them, so the task is the real one, only harder. "labelled" takes
the labelled rows only: the truth is known completely, so the interval can be checked, too.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone

from newfound.arrays import Bools, Doubles, Floats, Ints
from newfound.errors import DiscoveryWarning
from newfound.labels import UNLABELLED
from newfound.mixture.estimator import SplitMergeMixture

Design = Literal["hidden", "labelled"]
Fate = Literal["found", "split", "swallowed"]

#: Share of the known classes that a draw hides: half as in the paper, where all rows are labelled;
#: few among all rows, where more would make the task harder than the real one.
SHARE_HIDDEN: dict[Design, float] = {"hidden": 0.2, "labelled": 0.5}
#: Share of the labels of the other classes that are hidden to check confidences.
SHARE_CHECKED = 0.2
#: A class is split if at least two new components hold this share of it.
_PART = 0.25
_LEAST_LABELS = 2


@dataclass(frozen=True)
class Draw:
    """What became of the hidden classes in one draw.

    Attributes
    ----------
    design : {"hidden", "labelled"}
        Which rows took part.
    n_hidden : int
        Number of hidden classes.
    n_found : float
        Number of components found in their place. It need not be whole where novel categories are
        among the rows.
    is_inside : bool
        Whether the true number is in the interval of the count. Among all rows the true number is
        that of the hidden classes and of the categories that the run itself has counted.
    fates : list of (int, str, int)
        Hidden class, what became of it, and the class that swallowed it; -1 for none, or for a
        novel category.
    accuracy : float
        Share of the rows of hidden classes that are in the component of their class, as a mean
        over classes.
    probability, is_right : ndarray of shape (m,)
        Rows with a hidden label: the probability of their component, and whether it is right.
    """

    design: Design
    n_hidden: int
    n_found: float
    is_inside: bool
    fates: list[tuple[int, Fate, int]]
    accuracy: float
    probability: Doubles
    is_right: Bools


@dataclass(frozen=True)
class Task:
    """What a draw needs.

    Attributes
    ----------
    settings : SplitMergeMixture
        Settings to fit with.
    X : ndarray of shape (n, d)
        The rows that take part, in an order that depends on their content.
    codes : ndarray of int, shape (n,)
        Their known classes, -1 if unlabelled.
    rate : float
        Share of the rows of known classes that are labelled.
    n_novel : float
        Number of novel categories that the run has counted; 0 if only labelled rows take part.
    """

    settings: SplitMergeMixture
    X: Floats
    codes: Ints
    rate: float
    n_novel: float


def draw_once(design: Design, task: Task, seed: int) -> Draw:
    """Hide classes, fit, and look.

    Parameters
    ----------
    design : {"hidden", "labelled"}
        What to hide.
    task : Task
        The rows.
    seed : int
        Seed of the draw and of the fit.
    """
    rng = np.random.default_rng(seed)
    codes = task.codes
    n_known = int(codes.max()) + 1
    hidden = rng.permutation(n_known)[: max(1, round(SHARE_HIDDEN[design] * n_known))]
    was_hidden = np.isin(codes, hidden)
    share_kept = 1 - SHARE_CHECKED if design == "hidden" else task.rate
    is_visible = ~was_hidden & _kept_labels(codes, share_kept, rng)
    y = np.where(is_visible, codes, UNLABELLED)
    with warnings.catch_warnings():
        # classes were hidden on purpose: there is nothing that a person could do about it
        warnings.simplefilter("ignore", DiscoveryWarning)
        mixture = clone(task.settings).set_params(random_state=seed).fit(task.X, y)
    component = _components_of(mixture, codes, hidden)
    checked = np.flatnonzero((codes != UNLABELLED) & ~is_visible)
    labels = mixture.labels_[checked]
    is_right = component[codes[checked]] == labels
    probability = mixture.predict_proba(task.X[checked])[np.arange(len(checked)), labels]
    truth = len(hidden) + task.n_novel
    in_class = [is_right[codes[checked] == code].mean() for code in hidden]
    return Draw(
        design,
        len(hidden),
        _n_found(mixture, was_hidden, task.rate) if design == "hidden" else mixture.n_novel_,
        _is_inside(mixture, truth),
        [(int(code), *_fate_of(code, mixture, codes, component)) for code in hidden],
        float(np.mean(in_class)),
        probability,
        is_right,
    )


def _kept_labels(codes: Ints, share: float, rng: np.random.Generator) -> Bools:
    """A share of the labels, and at least two of each class: one tells nothing about a class."""
    luck = rng.random(len(codes))
    kept: Bools = (codes != UNLABELLED) & (luck < share)
    for code in range(int(codes.max()) + 1):
        rows = np.flatnonzero(codes == code)
        kept[rows[np.argsort(luck[rows])[:_LEAST_LABELS]]] = True
    return kept


def _is_inside(mixture: SplitMergeMixture, truth: float) -> bool:
    """Whether the interval holds the truth, both as whole numbers, as a report shows them."""
    if mixture.count_ is None:  # nothing could be counted
        return False
    low, high = mixture.count_.interval
    return round(low) <= round(truth) <= round(high)


def _components_of(mixture: SplitMergeMixture, codes: Ints, hidden: Ints) -> Ints:
    """Component that stands for each known class; -1 for one that has none."""
    component = np.full(int(codes.max()) + 1, -1)
    component[np.asarray(mixture.classes_, dtype=np.int64)] = np.arange(mixture.n_known_)
    if mixture.n_novel_ == 0:
        return component
    shared = np.zeros((len(hidden), mixture.n_novel_))
    for place, code in enumerate(hidden):
        novel = mixture.labels_[codes == code] - mixture.n_known_
        shared[place] = np.bincount(novel[novel >= 0], minlength=mixture.n_novel_)
    places, matches = linear_sum_assignment(-shared)
    component[hidden[places]] = mixture.n_known_ + matches
    return component


def _n_found(mixture: SplitMergeMixture, was_hidden: Bools, rate: float) -> float:
    """Number of novel components that belong to hidden classes.

    h rows with a hidden label stand for h / rate rows of hidden classes.
    """
    k = mixture.n_components_
    sizes = np.bincount(mixture.labels_, minlength=k)
    n_hidden = np.bincount(mixture.labels_[was_hidden], minlength=k)
    novel = slice(mixture.n_known_, None)
    return float(np.minimum(1, n_hidden[novel] / (rate * np.maximum(sizes[novel], 1))).sum())


def _fate_of(
    code: int, mixture: SplitMergeMixture, codes: Ints, component: Ints
) -> tuple[Fate, int]:
    """What became of a hidden class, and the class that swallowed it."""
    counts = np.bincount(mixture.labels_[codes == code], minlength=mixture.n_components_)
    largest = int(counts.argmax())
    owners = np.flatnonzero(component == largest)
    if largest != component[code]:
        return "swallowed", int(owners[0]) if len(owners) else -1
    n_parts = int((counts[mixture.n_known_ :] >= _PART * counts.sum()).sum())
    return ("split" if n_parts > 1 else "found"), -1


def best_jaccards(reference: Ints, other: Ints, wanted: Sequence[int]) -> Doubles:
    """For some groups of a partition, the Jaccard index with the most similar group of another.

    Parameters
    ----------
    reference, other : ndarray of int, shape (n,)
        Two partitions of the same rows.
    wanted : sequence of int
        Groups of `reference`.

    Returns
    -------
    ndarray of shape (len(wanted),)
        From 0 to 1; NaN for a group without rows.
    """
    found = []
    sizes = np.bincount(other)
    for group in wanted:
        inside = other[reference == group]
        shared = np.bincount(inside, minlength=len(sizes))
        union = len(inside) + sizes - shared
        found.append(float((shared / union).max()) if len(inside) else np.nan)
    return np.array(found)
