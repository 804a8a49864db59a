"""The demonstration: real pictures that need no download, of which the truth is known."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits

from newfound.arrays import Ints
from newfound.deep.settings import Settings
from newfound.errors import require
from newfound.metrics import discovery_scores
from newfound.result.result import Result
from newfound.workflows.discover import discover

_KNOWN_DIGITS = (0, 1, 2, 3, 4)

#: A small network from nothing, for pictures of 8 × 8 pixels in which left and right differ.
DIGITS = Settings(
    model="test_resnet",
    weights="random",
    image_size=12,
    crop_min=0.6,
    crop_max=1.0,
    flip=False,
    rotation=15.0,
    n_labelled_per_batch=32,
    n_unlabelled_per_batch=96,
    weight_decay=5e-4,
    n_directions=32,
    warmup_epochs=65,
    selection="last",
)


class Category(NamedTuple):
    """One row of the table: what was found, and what it really holds."""

    name: str
    kind: str
    size: int
    mostly: str
    share: float


class Demo(NamedTuple):
    """What the demonstration shows."""

    run: Path
    result: Result
    categories: list[Category]
    accuracy: float
    sentence: str


def run_demo(
    folder: Path,
    *,
    seed: int = 0,
    epochs: int = 80,
    progress: Callable[[str, int, int], object] | None = None,
) -> Demo:
    """Write the digits as pictures, hide 5 to 9 and half of the other labels, look for them.

    Parameters
    ----------
    folder : Path
        Where pictures, labels and the run go.
    seed : int, default=0
        Seed of the labels that are kept and of the training.
    epochs : int, default=80
        Of training.
    progress : callable, optional
        As for `discover`.

    Returns
    -------
    Demo
        The result, and how it compares with the truth.
    """
    truth = write_digits(folder, seed)
    run = folder / f"run-{seed}-{epochs}"
    result = discover(
        folder / "pictures",
        folder / f"labels-{seed}.csv",
        out=run,
        train=True,
        settings=DIGITS.with_changes(epochs=epochs),
        seed=seed,
        progress=progress,
    )
    table = result.table
    digits = truth[[int(Path(name).stem) for name in table["id"]]]
    hidden = table["given_label"].isna().to_numpy()
    codes = table["category"].astype("category").cat.codes.to_numpy().astype(np.int64)
    scores = discovery_scores(digits[hidden], codes[hidden], _KNOWN_DIGITS)
    sentence = (
        f"In truth there are 5 new ones, and {scores.all:.1%} of the unlabelled pictures are where "
        f"they belong (known digits {scores.old:.1%}, new digits {scores.new:.1%})."
    )
    return Demo(run, result, _compare(result, digits), scores.all, sentence)


def write_digits(folder: Path, seed: int) -> Ints:
    """Write scikit-learn's digits as PNG files and a table of labels; returns the digits."""
    image = require("PIL.Image", "train")
    digits = load_digits()
    pictures = folder / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    for number, values in enumerate(digits.images):
        path = pictures / f"{number:04d}.png"
        if not path.exists():
            image.fromarray(np.clip(values * 16, 0, 255).astype(np.uint8)).save(path)
    rng = np.random.default_rng(seed)
    is_labelled = np.isin(digits.target, _KNOWN_DIGITS) & (rng.random(len(digits.target)) < 0.5)
    with open(folder / f"labels-{seed}.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["path", "label"])
        for labelled in np.flatnonzero(is_labelled):
            writer.writerow([f"{labelled:04d}.png", str(digits.target[labelled])])
    truth: Ints = digits.target.astype(np.int64)
    return truth


def _compare(result: Result, digits: Ints) -> list[Category]:
    """Each category with the digit that it mostly holds."""
    rows = []
    for name, kind in zip(result.categories["category"], result.categories["kind"], strict=True):
        members = np.bincount(digits[(result.table["category"] == name).to_numpy()], minlength=10)
        rows.append(
            Category(
                name=str(name),
                kind=str(kind),
                size=int(members.sum()),
                mostly=f"digit {members.argmax()}",
                share=float(members.max() / max(1, members.sum())),
            )
        )
    return rows
