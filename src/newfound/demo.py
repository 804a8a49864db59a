"""The demonstration: a real data set that needs no download, of which the truth is known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits

from newfound.metrics import discovery_scores
from newfound.mixture.estimator import SplitMergeMixture

_KNOWN_DIGITS = (0, 1, 2, 3, 4)


class Category(NamedTuple):
    """One row of the table: what was found, and what it really holds."""

    name: str
    kind: str
    size: int
    mostly: str
    share: float


class Demo(NamedTuple):
    """What the demonstration shows."""

    categories: list[Category]
    n_novel: int
    accuracy: float
    sentence: str


def run_demo(seed: int = 0) -> Demo:
    """Hide the classes 5 to 9 and half of the other labels, then look for them.

    Parameters
    ----------
    seed : int, default=0
        Seed of the labels that are kept and of the mixture.

    Returns
    -------
    Demo
        The categories, and how they compare with the truth.
    """
    X, truth = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    is_labelled = np.isin(truth, _KNOWN_DIGITS) & (rng.random(len(truth)) < 0.5)
    y = np.where(is_labelled, truth, -1)
    mixture = SplitMergeMixture(random_state=seed).fit(X, y)
    scores = discovery_scores(truth[y == -1], mixture.labels_[y == -1], _KNOWN_DIGITS)
    categories = []
    for code, name in enumerate(mixture.category_names_):
        members = np.bincount(truth[mixture.labels_ == code], minlength=10)
        categories.append(
            Category(
                name=str(name),
                kind="known" if code < mixture.n_known_ else "novel",
                size=int(members.sum()),
                mostly=f"digit {members.argmax()}",
                share=float(members.max() / max(1, members.sum())),
            )
        )
    sentence = (
        f"{mixture.n_known_} categories were known, {mixture.n_novel_} new ones were found "
        f"(in truth there are 5); {scores.all:.1%} of the unlabelled pictures are where they "
        f"belong (known digits {scores.old:.1%}, new digits {scores.new:.1%})."
    )
    return Demo(categories, mixture.n_novel_, scores.all, sentence)
