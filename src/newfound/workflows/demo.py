"""The demonstration: a run on real pictures whose true categories are known, without a download."""

from __future__ import annotations

import io
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits

from newfound.arrays import Ints
from newfound.deep.settings import Settings
from newfound.errors import require
from newfound.files import write_atomically
from newfound.metrics import discovery_scores
from newfound.progress import Progress, no_progress
from newfound.result.result import Result
from newfound.workflows.discover import discover

_KNOWN_DIGITS = (0, 1, 2, 3, 4)

#: A small network with random weights, for pictures of 8 × 8 pixels. They are not flipped, because
#: a mirrored digit is not a digit.
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
    """A category that was found, and what it really holds.

    Attributes
    ----------
    name, kind : str
        Its name, and whether it is known or novel.
    size : int
        Number of pictures in it.
    mostly : str
        The digit that most of them show.
    share : float
        The share of the pictures that show it.
    """

    name: str
    kind: str
    size: int
    mostly: str
    share: float


class Demo(NamedTuple):
    """What the demonstration shows.

    Attributes
    ----------
    run : Path
        The run folder.
    result : Result
        What was found.
    categories : list of Category
        Each category beside the truth.
    accuracy : float
        Share of the unlabelled pictures that are in the right category.
    sentence : str
        The comparison with the truth, in words.
    """

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
    progress: Progress = no_progress,
) -> Demo:
    """Discover handwritten digits.

    The digits are written as pictures. Half of the pictures of 0 to 4 keep their labels; the
    labels of the others, and all labels of 5 to 9, are hidden. So five categories are novel.

    Parameters
    ----------
    folder : Path
        The folder to which pictures, labels and the run are written.
    seed : int, default=0
        Seed of the choice of labels and of the training.
    epochs : int, default=80
        Epochs of training.
    progress : Progress, optional
        Called with the step, how much of it is done and how much there is.

    Returns
    -------
    Demo
        The result, and how it compares with the truth.
    """
    truth = write_digits(folder, seed)
    # One folder for each seed and number of epochs: repeating a demo resumes its own run.
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
    # The table is sorted by id, and the id of a picture is its row number.
    digits = truth[[int(Path(name).stem) for name in table["id"]]]
    # The protocol scores unlabelled items only.
    hidden = table["given_label"].isna().to_numpy()
    codes = table["category"].astype("category").cat.codes.to_numpy().astype(np.int64)
    scores = discovery_scores(digits[hidden], codes[hidden], _KNOWN_DIGITS)
    sentence = (
        f"There are really 5 new categories. {scores.all:.1%} of the unlabelled pictures are in "
        f"the right category (known digits {scores.old:.1%}, new digits {scores.new:.1%})."
    )
    return Demo(run, result, _compare(result, digits), scores.all, sentence)


def write_digits(folder: Path, seed: int) -> Ints:
    """Write scikit-learn's digits as PNG files with a table of labels, and return the truth.

    Parameters
    ----------
    folder : Path
        The folder to write to; pictures that are there already stay as they are.
    seed : int
        Seed of the choice of the pictures that keep their labels.

    Returns
    -------
    ndarray of shape (n,), int64
        The digit on each picture.
    """
    image = require("PIL.Image", "train")
    digits = load_digits()
    pictures = folder / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    for number, values in enumerate(digits.images):
        path = pictures / f"{number:04d}.png"
        # The digits have 17 shades of grey, from 0 to 16.
        content = io.BytesIO()
        shades = np.clip(values * 16, 0, 255).astype(np.uint8)
        image.fromarray(shades).save(content, format="PNG")
        # A kill may have left a part of the file.
        if not path.exists() or path.read_bytes() != content.getvalue():
            path.write_bytes(content.getvalue())
    rng = np.random.default_rng(seed)
    is_labelled = np.isin(digits.target, _KNOWN_DIGITS) & (rng.random(len(digits.target)) < 0.5)
    rows = [f"{row:04d}.png,{digits.target[row]}\r\n" for row in np.flatnonzero(is_labelled)]
    write_atomically(folder / f"labels-{seed}.csv", "".join(["path,label\r\n", *rows]).encode())
    truth: Ints = digits.target.astype(np.int64)
    return truth


def _compare(result: Result, digits: Ints) -> list[Category]:
    """Each category with the digit that most of its pictures show."""
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
