"""Draw the pictures of docs/how-many.md from scikit-learn's digits.

python studies/how_many.py docs/how-many
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from newfound import Projection, count_categories
from newfound.mixture.label_accuracy import label_accuracy

X, DIGITS = load_digits(return_X_y=True)
RNG = np.random.default_rng(0)
BLUE, ORANGE, GREY = "#2563a8", "#d97706", "#6b7280"


def labels(n_known, rows=slice(None), rate=0.5):
    """Labels of a share of the first classes; -1 elsewhere."""
    classes = DIGITS[rows]
    return np.where((classes < n_known) & (RNG.random(len(classes)) < rate), classes, -1)


def save(figure, folder, name):
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(folder / name, dpi=130, metadata={"Software": None})
    plt.close(figure)


def nearness(folder):
    """How near rows are to the nearest known class: held-out, hidden, and unlabelled rows."""
    Z, y = normalize(X - X.mean(axis=0)), labels(5)
    held_out, hidden, unlabelled = [], [], []
    for hide in range(5):
        fold = RNG.random(len(y)) < 0.2
        seen = [k for k in range(5) if k != hide]
        means = normalize([Z[(y == k) & ~fold].mean(axis=0) for k in seen])
        score = (Z @ means.T).max(axis=1)
        held_out.append(score[np.isin(y, seen) & fold])
        hidden.append(score[y == hide])
        unlabelled.append(score[y == -1])
    figure, axes = plt.subplots(figsize=(7, 3))
    bins = np.linspace(-0.1, 1, 34)
    for scores, colour, name in (
        (held_out, BLUE, "labelled, held out: how items of known classes look"),
        (hidden, ORANGE, "labelled, class hidden: how items of new categories look"),
    ):
        axes.hist(np.concatenate(scores), bins, density=True, alpha=0.6, color=colour, label=name)
    axes.hist(
        *(np.concatenate(unlabelled), bins),
        density=True,
        histtype="step",
        color="black",
        label="without a label: a mixture of the two",
    )
    axes.set(xlabel="similarity to the nearest known class", yticks=[], ylim=(0, 6))
    axes.legend(frameon=False, fontsize=8, loc="upper left")
    save(figure, folder, "nearness.png")


def reach(folder):
    """How many items lie close to an item of a category of full size, and of a third of it."""
    figure, axes = plt.subplots(figsize=(7, 2.6))
    for share, colour in ((1, BLUE), (1 / 3, ORANGE)):
        rows = np.flatnonzero((DIGITS < 5) | (RNG.random(len(DIGITS)) < share))
        Z = normalize(X[rows] - X.mean(axis=0))
        near = (Z @ Z.T > 0.6).sum(axis=1)[DIGITS[rows] >= 5]
        name = "new categories as large as known ones" if share == 1 else "a third as large"
        axes.hist(near, np.arange(0, 160, 5), density=True, alpha=0.6, color=colour, label=name)
    axes.set(xlabel="items close to an item of a new category, itself included", yticks=[])
    axes.legend(frameon=False, fontsize=8)
    save(figure, folder, "reach.png")


def counts(folder):
    """The count and its interval: for several truths, and for worse and worse features."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.2))
    left.plot([0, 6], [0, 6], color=GREY, lw=1, label="truth")
    for truth in range(7):
        rows = np.flatnonzero(truth > DIGITS - 4)
        _draw(left, truth, count_categories(X[rows], labels(4, rows), random_state=0))
    left.set(
        xlabel="true number of new categories", ylabel="counted, 90 % interval", ylim=(-0.5, 14)
    )
    left.legend(frameon=False, fontsize=8)
    right.axhline(5, color=GREY, lw=1)
    noises = (0, 5, 10, 15, 20)
    ticks = []
    for place, noise in enumerate(noises):
        noisy, y = X + RNG.normal(scale=noise, size=X.shape), labels(5)
        _draw(right, place, count_categories(noisy, y, random_state=0))
        ticks.append(f"{label_accuracy(Projection().fit(noisy, y), noisy, y):.0%}")
    right.set(xlabel="how often hidden labels are found again", ylim=(-0.5, 14))
    right.set_xticks(range(len(noises)), ticks)
    save(figure, folder, "counts.png")


def _draw(axes, place, count):
    low, high = count.interval
    axes.plot([place, place], [low, high], color=BLUE, lw=5, alpha=0.4, solid_capstyle="butt")
    axes.plot(place, count.n_novel, "o", color=BLUE, ms=5)
    print(place, round(count.n_novel, 1), low, high)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(exist_ok=True)
    nearness(target)
    reach(target)
    counts(target)
