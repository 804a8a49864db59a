"""Splits: which rows take part and which of them are labelled. The field's, and three variants.

The field draws labels once, with seed 0, from all rows of the Old classes together, in the order
of the data set. The seed of a run changes only the training. The same data with another order of
rows (class folders instead of CIFAR's binary files) give another draw of the same size.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

import numpy as np

from newfound.arrays import Bools, Ints
from newfound.bench.datasets import DataSet
from newfound.errors import InputError

#: Share of the rows of Old classes that are labelled in the field.
_SHARE = 0.5
#: In place of the class of a row of a novel class, where it must not be known.
WITHHELD = -1


@dataclass(frozen=True, eq=False)
class Split:
    """The rows of a data set that take part, in the order of the data set, and their labels.

    Attributes
    ----------
    rows : ndarray of int64, shape (n,)
        Row numbers in the data set, ascending.
    y : ndarray of int64, shape (n,)
        Class of each labelled row, -1 for the others.
    truth : ndarray of int64, shape (n,)
        True class of each row.
    known : tuple of int
        The Old classes, from which labels are drawn, in ascending order. A small class may end up
        without a labelled row; it is Old all the same, as in the field.
    shown : ndarray of int64, shape (n,), or None
        The labels before known classes were hidden (`hide_known`); None: none were.
    """

    rows: Ints
    y: Ints
    truth: Ints
    known: tuple[int, ...]
    shown: Ints | None = None

    @property
    def is_unlabelled(self) -> Bools:
        """Which rows are unlabelled (D^u), shape (n,)."""
        return self.y == -1

    @property
    def is_scored(self) -> Bools:
        """Which rows are scored, shape (n,): the unlabelled ones whose class is not withheld."""
        return self.is_unlabelled & (self.truth != WITHHELD)

    @property
    def all_labels(self) -> Ints:
        """All labels that the data set gives, also those that are hidden for a while."""
        return self.y if self.shown is None else self.shown

    @property
    def n_labelled(self) -> int:
        """|D^l|, the number of labelled rows."""
        return int(np.sum(self.y != -1))

    @property
    def n_unlabelled(self) -> int:
        """|D^u|, the number of unlabelled rows."""
        return len(self.y) - self.n_labelled

    @property
    def n_known(self) -> int:
        """K^l, the number of known classes."""
        return len(self.known)

    @property
    def n_novel(self) -> int:
        """K^n, the number of classes of scored rows that are not known."""
        return len(np.setdiff1d(self.truth[self.is_scored], self.known))

    @property
    def checksum(self) -> str:
        """12 hexadecimal digits that depend on true classes, labels and known classes.

        They do not depend on the images, so two orders of rows can have the same checksum.
        """
        digest = hashlib.sha256()
        for values in (self.truth, self.y, self.known):
            digest.update(np.asarray(values).astype("<i8").tobytes())
        return digest.hexdigest()[:12]


def make_split(
    dataset: DataSet,
    *,
    n_old: int | None = None,
    overlap: int | None = None,
    labelled_only: str | None = None,
    label_share: float = _SHARE,
    draw: int = 0,
) -> Split:
    """Hide labels. Without options this is exactly the field's split.

    Parameters
    ----------
    dataset : DataSet
        Data set with the true class of each row.
    n_old : int, optional
        Keep only the first `n_old` of the field's known classes; the others become novel, with all
        their rows unlabelled (Table 10). Labels are drawn from the classes that stay known. All
        rows take part.
    overlap : int, optional
        Let only the first `overlap` known classes occur in D^u: unlabelled rows of the other known
        classes are left out (Table 9). The labelled rows do not change. With 0, D^u holds novel
        classes only. Can be combined with `n_old`.
    labelled_only : str, optional
        "K^l/K^n", such as "50/50": a smaller problem from labelled rows only (Table 11). The rows
        that the field labels take part, if they belong to the first K^l + K^n known classes. The
        first K^l classes stay known, and a share of their rows is labelled (one draw with seed 0).
        The next K^n classes lose all labels and count as novel. Cannot be combined with `n_old`
        or `overlap`.
    label_share : float
        Share of the rows of known classes that are labelled, more than 0 and at most 1. With
        `labelled_only` it applies to the second draw; the first is the field's half.
    draw : int
        Seed of the draw of labels; 0 is the field's.

    Returns
    -------
    Split
        Rows, labels, true classes, known classes.

    Raises
    ------
    InputError
        If a value is impossible, or the sizes for a complete data set differ from the field's.
    """
    if not 0 < label_share <= 1:
        raise InputError(f"label_share is {label_share}; give more than 0 and at most 1.")
    if labelled_only is not None:
        if n_old is not None or overlap is not None:
            raise InputError(
                f"labelled_only={labelled_only!r} already says which classes are known. Give it "
                "without n_old and overlap."
            )
        return _labelled_only(dataset, labelled_only, label_share, draw)
    known = dataset.known if n_old is None else _first_known(dataset, n_old)
    rows = np.arange(len(dataset), dtype=np.int64)
    split = _draw(dataset.truth, rows, known, label_share, draw)
    # other known classes or shares have other sizes than the field's
    if n_old is None and label_share == _SHARE:
        _check_sizes(dataset, split)
    return split if overlap is None else _with_overlap(split, overlap)


def hide_known(split: Split) -> Split:
    """The same rows, where half of the known classes play novel: for tuning.

    The classes are drawn with seed 0; of an odd number, the smaller half is hidden. Their rows
    lose all labels. The true class of every row that is not of a known class is withheld, before
    anything else is done, so that nothing in a run that is judged by this split can depend on it.

    Parameters
    ----------
    split : Split
        With the known classes of the benchmark.

    Raises
    ------
    InputError
        If there are fewer than two known classes.
    """
    if split.n_known < 2:
        raise InputError(f"Tuning hides half of the known classes; there is {split.n_known}.")
    truth = np.where(np.isin(split.truth, split.known), split.truth, WITHHELD)
    order = np.random.RandomState(0).permutation(split.known)
    hidden = order[: split.n_known // 2]
    y = np.where(np.isin(split.y, hidden), -1, split.y)
    visible = tuple(sorted(int(known) for known in order[len(hidden) :]))
    return Split(split.rows, y, truth, visible, shown=split.y)


def _draw(truth: Ints, rows: Ints, known: tuple[int, ...], share: float, seed: int = 0) -> Split:
    """One draw from the rows of all known classes together, as in the field's code."""
    old = np.flatnonzero(np.isin(truth[rows], known))
    n = int(share * len(old))
    if n == 0:
        raise InputError(
            f"A share of {share} of the {len(old)} rows of the {len(known)} known classes is less "
            "than one row. Give a larger label_share, or more data."
        )
    # exactly the call of the field's code: any other draw would be another benchmark
    chosen = old[np.random.RandomState(seed).choice(len(old), n, replace=False)]
    y = np.full(len(rows), -1, dtype=np.int64)
    y[chosen] = truth[rows][chosen]
    return Split(rows, y, truth[rows], known)


def _first_known(dataset: DataSet, n_old: int) -> tuple[int, ...]:
    if not 1 <= n_old <= len(dataset.known):
        raise InputError(
            f"n_old is {n_old}, but {dataset.name} has {len(dataset.known)} known classes. Give 1 "
            "up to that number: classes that are novel in the field stay novel."
        )
    return dataset.known[:n_old]


def _with_overlap(split: Split, overlap: int) -> Split:
    """Leave out the unlabelled rows of all but the first known classes."""
    if not 0 <= overlap <= split.n_known:
        raise InputError(
            f"overlap is {overlap}, but there are {split.n_known} known classes. Give 0 up to "
            "that number."
        )
    kept = ~(split.is_unlabelled & np.isin(split.truth, split.known[overlap:]))
    return Split(split.rows[kept], split.y[kept], split.truth[kept], split.known)


def _labelled_only(dataset: DataSet, text: str, share: float, draw: int) -> Split:
    """A smaller problem of the same kind, made from the rows that the field labels."""
    match = re.fullmatch(r"\s*(\d+)\s*/\s*(\d+)\s*", text)
    n_known, n_novel = (int(match[1]), int(match[2])) if match else (0, 0)
    if n_known < 1 or n_novel < 1 or n_known + n_novel > len(dataset.known):
        raise InputError(
            f"labelled_only is {text!r}; expected two numbers of classes, such as '25/25', each "
            f"at least 1, together at most the {len(dataset.known)} known classes of "
            f"{dataset.name}."
        )
    # two draws: first the rows that the field labels, then a share of them
    given = make_split(dataset, draw=draw)
    takes_part = np.isin(given.y, dataset.known[: n_known + n_novel])
    return _draw(dataset.truth, given.rows[takes_part], dataset.known[:n_known], share, draw)


def _check_sizes(dataset: DataSet, split: Split) -> None:
    """Raise if the sizes differ from the field's: then some images are in a wrong class."""
    expected = (dataset.n_labelled, dataset.n_unlabelled)
    found = (split.n_labelled, split.n_unlabelled)
    if dataset.complete and None not in expected and found != expected:
        raise InputError(
            f"{dataset.name} splits into {found[0]:,} labelled and {found[1]:,} unlabelled images; "
            f"the field has {expected[0]:,} and {expected[1]:,}. No image is missing, so some must "
            "be in the wrong class. Download the data set again."
        )
