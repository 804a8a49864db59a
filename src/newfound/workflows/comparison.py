"""Compare the features before and after training: which ones find categories better.

Training draws the classes together whose labels it sees. On those classes trained features look
good in any case, so they say nothing. `set_aside` therefore hides some known classes from the
training altogether. To the training they are novel. Their labels then show in which features items
of one class lie nearer to each other than to others.

The score is a mean average precision, not the accuracy of a clustering: with two hidden classes the
latter depends on the chance of single moves, and preferred features that were worse for truly novel
classes (docs/training.md has the figures).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from newfound.arrays import Bools, Doubles, Floats, Ints
from newfound.deep.holdout import hold_out
from newfound.labels import UNLABELLED, PartialLabels, encode_labels
from newfound.mixture.projection import unit_rows

#: Share of the known classes that are set aside; at most so many, because more are not needed.
_SHARE, _MOST = 0.2, 10
#: With fewer known classes none is set aside, but labels of each class.
_FEWEST_CLASSES = 3
#: With fewer known classes only one is set aside, so that the training has some left.
_FEWEST_FOR_TWO = 5
#: Standard errors by which trained features must be better.
_MARGIN = 2.0


@dataclass(frozen=True)
class SetAside:
    """Labels that the training does not see.

    Attributes
    ----------
    y : list
        Names of the classes for the training, None where a row is unlabelled or set aside.
    rows : ndarray of bool, shape (n,)
        Rows whose label was set aside.
    n_classes : int
        Number of classes of which all labels were set aside; 0 if it is some labels of each class.
    """

    y: list[Any]
    rows: Bools
    n_classes: int


def set_aside(y: Any, seed: int, *, whole_classes: bool = True) -> SetAside:
    """Choose labels that the training does not see.

    Parameters
    ----------
    y : array-like of shape (n,)
        Partial labels.
    seed : int
        Seed of the draw. The names of the classes do not matter.
    whole_classes : bool, default=True
        Whether whole classes may be set aside: a fifth of the known ones, at least two if there
        are five or more. With fewer than three known classes, a fifth of the labels of each class
        is set aside instead.

    Returns
    -------
    SetAside
        The labels for the training, and which rows were set aside.
    """
    partial = encode_labels(y)
    n_known, n_classes = partial.n_known, 0
    if whole_classes and n_known >= _FEWEST_CLASSES:
        least = 2 if n_known >= _FEWEST_FOR_TWO else 1
        n_classes = min(_MOST, max(least, round(_SHARE * n_known)))
    if n_classes:
        first_rows = np.unique(partial.codes[partial.is_labelled], return_index=True)[1]
        drawn = np.random.default_rng([seed, n_known]).permutation(n_known)[:n_classes]
        chosen = np.argsort(first_rows)[drawn]  # in the order of the rows, not of the names
        rows = np.isin(partial.codes, chosen)
    else:
        rows = hold_out(partial.codes, _SHARE, seed)
    return SetAside(_names(partial, rows), rows, n_classes)


def _names(partial: PartialLabels, without: Bools) -> list[Any]:
    names = [*partial.classes.tolist(), None]
    return [names[code] for code in np.where(without, UNLABELLED, partial.codes)]


@dataclass(frozen=True)
class Comparison:
    """How near items of one class lie to each other, before and after training.

    Attributes
    ----------
    n_items, n_classes : int
        Items that were judged, and number of classes that were hidden as a whole.
    before, after : float
        Mean average precision, between 0 and 1.
    standard_error : float
        Of the difference, over the items.
    """

    n_items: int
    n_classes: int
    before: float
    after: float
    standard_error: float

    @property
    def is_better(self) -> bool:
        """Whether the trained features are better by more than chance explains."""
        return self.n_items > 0 and self.after - self.before > _MARGIN * self.standard_error

    @property
    def sentence(self) -> str:
        """Which result was kept, and why."""
        if self.n_items == 0:
            return (
                "There were too few labels to compare the trained network with the untrained one, "
                "so the result before training was kept."
            )
        classes = f" of {self.n_classes} known classes" if self.n_classes else ""
        score = (
            f"of the {self.n_items} items{classes} whose labels the training did not see, the "
            f"nearest items were of the same class in {self.after:.0%} (mean average precision), "
            f"against {self.before:.0%} before training"
        )
        if self.is_better:
            return f"The trained network was kept: {score}."
        return f"The result before training was kept, because training did not improve it: {score}."

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "kept": "trained" if self.is_better else "untrained"}


def compare_features(before: Floats, after: Floats, y: Any, aside: SetAside) -> Comparison:
    """Compare two sets of features on the labels that were set aside.

    Each item that was set aside ranks all other labelled items by similarity. Its average precision
    is the mean share of its own class among the first k items, over the ranks k at which one of
    its class stands. 1: all items of its class come first.

    Parameters
    ----------
    before, after : ndarray of shape (n, d)
        Features before and after training.
    y : array-like of shape (n,)
        All labels.
    aside : SetAside
        What the training did not see.

    Returns
    -------
    Comparison
        With the verdict.
    """
    codes = encode_labels(y).codes
    first, second = (average_precisions(X, codes, aside.rows) for X in (before, after))
    judged = ~np.isnan(first)  # an item that is alone in its class has no average precision
    n_items, gain = int(judged.sum()), (second - first)[judged]
    return Comparison(
        n_items=n_items,
        n_classes=aside.n_classes,
        before=float(first[judged].mean()) if n_items else 0.0,
        after=float(second[judged].mean()) if n_items else 0.0,
        standard_error=float(gain.std(ddof=1) / np.sqrt(n_items)) if n_items > 1 else 0.0,
    )


def average_precisions(X: Floats, codes: Ints, rows: Bools) -> Doubles:
    """Average precision of each of the rows among the labelled ones, by cosine similarity.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Features.
    codes : ndarray of shape (n,)
        Class of each row or -1.
    rows : ndarray of bool, shape (n,)
        Labelled rows to judge.

    Returns
    -------
    ndarray of shape (number of rows,)
        Between 0 and 1; NaN where no other row has the same class.
    """
    labelled = np.flatnonzero(codes != UNLABELLED)
    V = unit_rows(np.asarray(X, dtype=np.float64))
    V = unit_rows(V - V.mean(axis=0))
    result = np.full(int(rows.sum()), np.nan)
    for i, row in enumerate(np.flatnonzero(rows)):
        others = labelled[labelled != row]
        nearest = others[np.argsort(-(V[others] @ V[row]), kind="stable")]
        ranks = np.flatnonzero(codes[nearest] == codes[row]) + 1
        if len(ranks):
            result[i] = (np.arange(1, len(ranks) + 1) / ranks).mean()
    return result
