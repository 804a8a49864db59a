"""Data sets whose classes have very different sizes, cut from those of the field.

The class of rank i among K gets ⌊n·r^(-i/(K-1))⌋ rows, where n is the size of the largest class
and r the imbalance. Which rows of a class stay is drawn with seed 0. Two orders of the classes
occur. At random, drawn with seed 0: this is the protocol of BaCon (Bai et al., NeurIPS 2023) for
CIFAR-100-LT, in which known and novel classes share one long tail. Or the known classes first, in
the order of their numbers: what people label first is what they have most of.

Departures from BaCon: its lists of images are pickled, so the order of classes is another draw;
its largest class has 450 images, because a tenth is held out; and it labels half of each known
class, while here half of all rows of known classes is labelled, as everywhere in the benchmark.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from newfound.arrays import Ints
from newfound.bench.datasets.dataset import DataSet


class LongTail(NamedTuple):
    """Which data set is cut, size of the largest class over the smallest, order of classes."""

    base: str
    imbalance: float
    known_first: bool


LONG_TAILS = {
    "cifar100-lt": LongTail("cifar100", 100, known_first=False),
    "cub-lt": LongTail("cub", 10, known_first=True),
    "cars-lt": LongTail("cars", 10, known_first=True),
    "tiny-imagenet-lt": LongTail("tiny-imagenet", 100, known_first=True),
    "digits-lt": LongTail("digits", 10, known_first=True),
}


def base_of(name: str) -> str:
    """The id of the data set that a long tail is cut from; other ids as they are."""
    return LONG_TAILS[name].base if name in LONG_TAILS else name


def cut_long_tail(dataset: DataSet, name: str) -> DataSet:
    """A data set with some rows left out.

    Parameters
    ----------
    dataset : DataSet
        The whole one, with images.
    name : str
        One of `LONG_TAILS`.

    Returns
    -------
    DataSet
        The rows that stay, in their order. Classes and known classes are the same.
    """
    tail = LONG_TAILS[name]
    kept = rows_to_keep(dataset, tail, np.random.RandomState(0))
    return replace(
        dataset,
        name=name,
        truth=dataset.truth[kept],
        paths=None if dataset.paths is None else [dataset.paths[row] for row in kept],
        array=None if dataset.array is None else dataset.array[kept],
        n_labelled=None,
        n_unlabelled=None,
    )


def rows_to_keep(dataset: DataSet, tail: LongTail, random: np.random.RandomState) -> Ints:
    """The rows that stay, in their order.

    Parameters
    ----------
    dataset : DataSet
        The whole one.
    tail : LongTail
        Imbalance, and the order of the classes.
    random : RandomState
        Draws rows, and the order of classes.
    """
    sizes = np.bincount(dataset.truth, minlength=dataset.n_classes)
    order = random.permutation(dataset.n_classes)
    if tail.known_first:
        novel = np.setdiff1d(np.arange(dataset.n_classes), dataset.known)
        order = np.concatenate([dataset.known, novel])
    kept = []
    for rank, number in enumerate(order):
        share = tail.imbalance ** (-rank / (dataset.n_classes - 1))
        rows = np.flatnonzero(dataset.truth == number)
        # a class may be smaller than the largest one already
        n = min(len(rows), max(1, int(sizes.max() * share + 1e-9)))
        kept.append(random.choice(rows, n, replace=False))
    return np.sort(np.concatenate(kept)).astype(np.int64)
