"""Which rows make up each batch: exactly N^l labelled and N^u unlabelled ones.

Draws depend on (seed, epoch) alone, so that an epoch can be drawn again when a run is resumed, and
by any number of processes.
"""

from __future__ import annotations

import math

import numpy as np

from newfound.arrays import Bools, Ints


def epoch_seed(seed: int, epoch: int) -> int:
    """A seed for one epoch, the same whether or not the run was interrupted before it.

    Parameters
    ----------
    seed : int
        Seed of the run.
    epoch : int
        Counted from 0.
    """
    return int(np.random.default_rng([seed, epoch]).integers(2**31))


def batch_seed(seed: int, epoch: int, batch: int) -> int:
    """A seed for one batch, the same whether or not the run was interrupted before it.

    Parameters
    ----------
    seed : int
        Seed of the run.
    epoch, batch : int
        Counted from 0.
    """
    # 2: apart from the views, which are drawn for (seed, epoch, batch), too
    return int(np.random.default_rng([seed, epoch, batch, 2]).integers(2**31))


def epoch_batches(
    is_labelled: Bools, n_labelled: int, n_unlabelled: int, *, seed: int, epoch: int
) -> Ints:
    """Draw the batches of one epoch.

    Labelled and unlabelled rows are each taken in random order; no row comes a second time before
    all others of its kind have come once. If there are fewer rows than a batch needs, rows are
    repeated within a batch. If one kind is missing, the other fills the batch.

    Parameters
    ----------
    is_labelled : ndarray of bool, shape (n,)
        Rows of D^l.
    n_labelled, n_unlabelled : int
        N^l and N^u.
    seed, epoch : int
        What the draw depends on.

    Returns
    -------
    ndarray of int, shape (⌈n / (N^l + N^u)⌉, N^l + N^u)
        Row numbers; in each batch the labelled ones come first.
    """
    size = n_labelled + n_unlabelled
    n_batches = math.ceil(len(is_labelled) / size)
    sides = [np.flatnonzero(is_labelled), np.flatnonzero(~is_labelled)]
    if not is_labelled.any():
        n_labelled = 0
    elif is_labelled.all():
        n_labelled = size
    shares = [n_labelled, size - n_labelled]
    rng = np.random.default_rng([seed, epoch])
    return np.concatenate(
        [
            _take_in_turns(rows, n_batches * share, rng).reshape(n_batches, share)
            for rows, share in zip(sides, shares, strict=True)
        ],
        axis=1,
    )


def _take_in_turns(rows: Ints, n_draws: int, rng: np.random.Generator) -> Ints:
    """Take `n_draws` rows in random order, all of them before any is repeated."""
    if n_draws == 0:
        return np.empty(0, dtype=np.int64)
    n_rounds = math.ceil(n_draws / len(rows))
    return np.concatenate([rng.permutation(rows) for _ in range(n_rounds)])[:n_draws]
