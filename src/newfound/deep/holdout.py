"""Labels that training does not see, kept to choose the best epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from newfound.arrays import Bools, Ints
from newfound.labels import UNLABELLED, PartialLabels


@dataclass(frozen=True)
class LabelSplit:
    """Labels for training and labels that are held out.

    Attributes
    ----------
    codes : ndarray of shape (n,)
        Known class of each row, -1 where it is unlabelled or held out: what training sees.
    all_codes : ndarray of shape (n,)
        Known class of each row or -1, including held-out rows.
    held_out : ndarray of bool, shape (n,)
        Which rows are held out.
    y : list
        Names of the classes, None where a row is unlabelled. Held-out rows have their name: the
        mixture that is fitted after training sees all labels.
    """

    codes: Ints
    all_codes: Ints
    held_out: Bools
    y: list[Any]


def split_labels(partial: PartialLabels, share: float, seed: int) -> LabelSplit:
    """Hold out a share of the labels.

    Parameters
    ----------
    partial : PartialLabels
        All labels.
    share : float
        Share of the labelled rows of each class; with 0 nothing is held out.
    seed : int
        Seed of the draw.

    Returns
    -------
    LabelSplit
        The labels for training, and those that are held out.
    """
    held_out = hold_out(partial.codes, share, seed)
    names = [*partial.classes.tolist(), None]
    return LabelSplit(
        codes=np.where(held_out, UNLABELLED, partial.codes),
        all_codes=partial.codes,
        held_out=held_out,
        y=[names[code] for code in partial.codes],  # code -1 is the last name: None
    )


def hold_out(codes: Ints, share: float, seed: int) -> Bools:
    """Choose labelled rows that training does not see: a share of each class, never all of one.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Known class of each row or -1.
    share : float
        Share of the labelled rows of each class, rounded to the nearest number of rows.
    seed : int
        Seed of the draw.

    Returns
    -------
    ndarray of bool, shape (n,)
        Rows that are held out.
    """
    held_out = np.zeros(len(codes), dtype=bool)
    # one draw for each row, so that neither names nor numbers of classes matter
    draws = np.random.default_rng(seed).random(len(codes))
    for code in range(int(codes.max()) + 1):
        rows = np.flatnonzero(codes == code)
        rows = rows[np.argsort(draws[rows])]
        held_out[rows[: min(round(share * len(rows)), len(rows) - 1)]] = True
    return held_out
