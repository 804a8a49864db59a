"""Which rows come in which batch."""

import math

import numpy as np
import pytest

from newfound.deep.images.batches import epoch_batches


def some_labelled(n_rows, n_labelled, seed=0):
    return np.random.default_rng(seed).permutation(n_rows) < n_labelled


def drawn(is_labelled, n_labelled=64, n_unlabelled=64, seed=0, epoch=0):
    return epoch_batches(is_labelled, n_labelled, n_unlabelled, seed=seed, epoch=epoch)


@pytest.mark.parametrize(
    ("n_rows", "n_labelled"), [(1000, 300), (1000, 3), (1000, 999), (129, 64), (5, 2), (2, 1)]
)
@pytest.mark.parametrize("shares", [(64, 64), (1, 3), (10, 2)])
def test_every_batch_has_its_numbers_of_either_side(n_rows, n_labelled, shares):
    is_labelled = some_labelled(n_rows, n_labelled)
    batches = drawn(is_labelled, *shares)
    assert batches.shape == (math.ceil(n_rows / sum(shares)), sum(shares))
    assert batches.dtype.kind == "i"
    assert is_labelled[batches[:, : shares[0]]].all()
    assert not is_labelled[batches[:, shares[0] :]].any()


@pytest.mark.parametrize(
    ("n_rows", "n_steps"), [(1, 1), (127, 1), (128, 1), (129, 2), (1280, 10), (1281, 11)]
)
def test_an_epoch_has_as_many_steps_as_128_goes_into_the_rows(n_rows, n_steps):
    assert len(drawn(some_labelled(n_rows, n_rows // 3))) == n_steps


@pytest.mark.parametrize(("n_rows", "n_labelled"), [(500, 100), (500, 7), (300, 290)])
def test_all_rows_of_a_side_come_once_before_any_comes_again(n_rows, n_labelled):
    is_labelled = some_labelled(n_rows, n_labelled)
    batches = drawn(is_labelled, 16, 16)
    for side, columns in ((is_labelled, slice(0, 16)), (~is_labelled, slice(16, 32))):
        rows = np.flatnonzero(side)
        stream = batches[:, columns].ravel()
        for start in range(0, len(stream), len(rows)):
            round_of_rows = stream[start : start + len(rows)]
            assert len(set(round_of_rows)) == len(round_of_rows)
            assert set(round_of_rows) <= set(rows)
            if len(round_of_rows) == len(rows):
                assert set(round_of_rows) == set(rows)


def test_a_side_of_few_rows_repeats_them_within_a_batch():
    batches = drawn(np.arange(100) < 3, 8, 8)
    for batch in batches:
        counts = np.bincount(batch[:8], minlength=3)
        assert counts.sum() == 8
        assert counts.max() - counts.min() <= 2


@pytest.mark.parametrize("n_labelled", [0, 50])
def test_one_side_alone_fills_the_batch(n_labelled):
    batches = drawn(np.arange(50) < n_labelled, 6, 4)
    assert batches.shape == (5, 10)
    np.testing.assert_array_equal(np.sort(batches.ravel()), np.arange(50))


def test_each_round_is_in_an_order_of_its_own():
    stream = drawn(np.zeros(10, dtype=bool), 5, 25).reshape(-1, 10)
    assert len({tuple(row) for row in stream}) == 3


def test_seed_and_epoch_decide():
    is_labelled = some_labelled(300, 100)
    first = drawn(is_labelled, seed=1, epoch=2)
    np.testing.assert_array_equal(drawn(is_labelled, seed=1, epoch=2), first)
    for other in ({"seed": 2, "epoch": 1}, {"seed": 1, "epoch": 3}, {"seed": 0, "epoch": 2}):
        assert (drawn(is_labelled, **other) != first).any()


def test_the_generator_of_the_process_has_no_say():
    is_labelled = some_labelled(300, 100)
    np.random.seed(0)  # noqa: NPY002
    first = drawn(is_labelled)
    np.random.seed(1)  # noqa: NPY002
    np.testing.assert_array_equal(drawn(is_labelled), first)
