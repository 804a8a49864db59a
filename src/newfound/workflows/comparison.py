"""Compare the features before and after training: which ones find categories better.

Training draws the classes together whose labels it sees. On those classes trained features look
good in any case, so they say nothing. `set_aside` therefore hides some known classes from the
training altogether. To the training they are novel. Afterwards both sets of features are asked to
find them, and their labels show which one does it better.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from newfound.arrays import Bools, Floats, Ints
from newfound.deep.holdout import hold_out
from newfound.deep.settings import Settings
from newfound.errors import DiscoveryWarning
from newfound.labels import UNLABELLED, PartialLabels, encode_labels
from newfound.metrics import match_clusters
from newfound.mixture.estimator import SplitMergeMixture

#: Share of the known classes that are set aside; at most so many, because more are not needed.
_SHARE, _MOST = 0.2, 10
#: With fewer known classes none is set aside, but labels of each class.
_FEWEST_CLASSES = 3
#: With fewer known classes only one is set aside, so that the training has some left.
_FEWEST_FOR_TWO = 5


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
        Seed of the draw.
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
        chosen = np.random.default_rng([seed, n_known]).permutation(n_known)[:n_classes]
        rows = np.isin(partial.codes, chosen)
    else:
        rows = hold_out(partial.codes, _SHARE, seed)
    return SetAside(_names(partial, rows), rows, n_classes)


def _names(partial: PartialLabels, without: Bools) -> list[Any]:
    names = [*partial.classes.tolist(), None]
    return [names[code] for code in np.where(without, UNLABELLED, partial.codes)]


@dataclass(frozen=True)
class Comparison:
    """How well both sets of features find what was set aside.

    Attributes
    ----------
    n_rows, n_classes : int
        Labelled items that were judged, and number of hidden classes among theirs.
    n_right_before, n_right_after : int
        Items in the right category, by the features before and after training.
    is_better : bool
        Whether the trained features are better, by more than one standard error.
    """

    n_rows: int
    n_classes: int
    n_right_before: int
    n_right_after: int
    is_better: bool

    @property
    def sentence(self) -> str:
        """Which result was kept, and why."""
        before, after = (n / max(1, self.n_rows) for n in (self.n_right_before, self.n_right_after))
        what = (
            f"of {self.n_classes} known classes whose labels the training did not see"
            if self.n_classes
            else "of known classes whose labels the training did not see"
        )
        if self.n_rows == 0:
            return (
                "There were too few labels to compare the result with the one before training, "
                "so the result before training was kept."
            )
        words = f"of {self.n_rows} items {what}, it put {after:.0%} in the right category"
        if self.is_better:
            return f"The trained network was kept: {words}, against {before:.0%} before training."
        return (
            "The result before training was kept, because training did not make it better: "
            f"{words}, against {before:.0%} before training."
        )

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "kept": "trained" if self.is_better else "untrained"}


def compare_features(
    before: Floats, after: Floats, y: Any, aside: SetAside, settings: Settings
) -> Comparison:
    """Find what was set aside by both sets of features, and see which one does it better.

    Both mixtures get the same labels and the same number of categories, so that only the features
    differ. An item of a hidden class is right if its component is novel and the one that is
    matched to its class. An item of another class is right if it is in its class.

    Parameters
    ----------
    before, after : ndarray of shape (n, d)
        Features before and after training.
    y : array-like of shape (n,)
        All labels.
    aside : SetAside
        What the training did not see.
    settings : Settings
        Of the training; labels that it held out to select an epoch are judged, too.

    Returns
    -------
    Comparison
        With the verdict.
    """
    partial, seen = encode_labels(y), encode_labels(aside.y)
    rows = aside.rows.copy()
    if settings.run.selection == "validation":
        rows |= hold_out(seen.codes, settings.run.validation_share, settings.run.seed)
    shown = _names(partial, rows)
    first = _fit(before, shown, settings)
    options = {"count": first.count_} if first.count_ else {"n_components": first.n_components_}
    second = _fit(after, shown, settings, **options)
    right = [_right_rows(mixture, partial, rows) for mixture in (first, second)]
    n_won, n_lost = int((right[1] & ~right[0]).sum()), int((right[0] & ~right[1]).sum())
    return Comparison(
        n_rows=int(rows.sum()),
        n_classes=aside.n_classes,
        n_right_before=int(right[0].sum()),
        n_right_after=int(right[1].sum()),
        # McNemar: the difference has a standard error of √(won + lost)
        is_better=bool(n_won - n_lost > np.sqrt(n_won + n_lost)),
    )


def _fit(X: Floats, y: list[Any], settings: Settings, **options: Any) -> SplitMergeMixture:
    n_components = settings.estep.n_components
    parameters = {"n_components": n_components, "random_state": settings.run.seed, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscoveryWarning)  # about the comparison, not the result
        return SplitMergeMixture(**parameters).fit(X, y)


def _right_rows(mixture: SplitMergeMixture, partial: PartialLabels, rows: Bools) -> Bools:
    """Which of the rows are in the right component, shape (number of rows,)."""
    names, found = partial.classes[partial.codes[rows]], mixture.labels_[rows]
    place = {name: code for code, name in enumerate(mixture.classes_.tolist())}
    target = np.array([place.get(name, UNLABELLED) for name in names.tolist()], dtype=np.int64)
    right: Ints = (found == target).astype(np.int64)
    novel = (target == UNLABELLED) & (found >= mixture.n_known_)
    if novel.any():
        match = match_clusters(partial.codes[rows][novel], found[novel])
        own = [match.get(component) for component in found[novel].tolist()]
        right[novel] = np.array(own, dtype=object) == partial.codes[rows][novel]
    return right.astype(bool)
