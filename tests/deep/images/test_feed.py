"""Rows of an array, batch by batch, as tensors."""

import threading

import numpy as np
import pytest
import torch

from newfound.deep.images.feed import Feed

CPU = torch.device("cpu")


@pytest.fixture
def pixels():
    return np.random.default_rng(0).integers(0, 256, size=(20, 3, 4, 4)).astype(np.uint8)


BATCHES = [np.array([3, 1, 4]), np.array([1, 5]), np.array([9]), np.array([2, 2, 2, 0])]


def test_rows_are_those_asked_for_in_their_order(pixels):
    feed = Feed(pixels, CPU)
    assert len(feed) == 20
    for indices in BATCHES:
        rows = feed.rows(indices)
        assert rows.dtype == torch.uint8
        np.testing.assert_array_equal(rows.numpy(), pixels[indices])


def test_batches_are_the_rows_of_one_after_the_other(pixels):
    batches = list(Feed(pixels, CPU).batches(BATCHES))
    assert len(batches) == len(BATCHES)
    for batch, indices in zip(batches, BATCHES, strict=True):
        np.testing.assert_array_equal(batch.numpy(), pixels[indices])


@pytest.mark.parametrize("n_batches", [0, 1, 2])
def test_any_number_of_batches(pixels, n_batches):
    assert len(list(Feed(pixels, CPU).batches(BATCHES[:n_batches]))) == n_batches


def test_indices_may_come_one_by_one(pixels):
    batches = Feed(pixels, CPU).batches(indices for indices in BATCHES)
    np.testing.assert_array_equal(next(batches).numpy(), pixels[BATCHES[0]])
    batches.close()


def test_a_memory_mapped_array_gives_the_same(pixels, tmp_path):
    np.save(tmp_path / "pixels.npy", pixels)
    feed = Feed(np.load(tmp_path / "pixels.npy", mmap_mode="r"), CPU)
    for batch, indices in zip(feed.batches(BATCHES), BATCHES, strict=True):
        np.testing.assert_array_equal(batch.numpy(), pixels[indices])


def test_writing_into_a_batch_leaves_the_stored_pictures(pixels):
    before = pixels.copy()
    for batch in Feed(pixels, CPU).batches(BATCHES):
        batch.zero_()
    np.testing.assert_array_equal(pixels, before)


class Watched:
    """An array that tells which rows were read, and when."""

    def __init__(self, pixels):
        self.pixels, self.nbytes = pixels, pixels.nbytes
        self.reads = []
        self.came = threading.Semaphore(0)

    def __len__(self):
        return len(self.pixels)

    def __getitem__(self, indices):
        self.reads.append(list(indices))
        self.came.release()
        return self.pixels[indices]


def test_the_next_batch_is_read_while_one_is_worked_on(pixels):
    watched = Watched(pixels)
    batches = Feed(watched, CPU).batches(BATCHES)
    next(batches)
    for _ in range(2):
        assert watched.came.acquire(timeout=30)
    assert watched.reads == [list(indices) for indices in BATCHES[:2]]  # one ahead, no more
    rest = list(batches)
    assert len(rest) == 3
    assert watched.reads == [list(indices) for indices in BATCHES]


def test_an_error_in_reading_reaches_the_caller(pixels):
    with pytest.raises(IndexError):
        list(Feed(pixels, CPU).batches([np.array([1]), np.array([99])]))
