"""What the tests of the benchmark share: one thread, and pictures of digits."""

from typing import NamedTuple

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from newfound.bench import run
from newfound.bench.datasets import DataSet, load_dataset
from newfound.bench.methods import pim

# the last bits of a sum depend on the number of threads
torch.set_num_threads(1)


class Pictures(NamedTuple):
    """Pictures of seven digits, of which five are known."""

    pixels: np.ndarray  # uint8 (n, 3, 8, 8)
    truth: np.ndarray
    y: np.ndarray  # half of the pictures of classes 0 to 4 are labelled


def take(n_each):
    X, truth = load_digits(return_X_y=True)
    rows = np.sort(np.concatenate([np.flatnonzero(truth == digit)[:n_each] for digit in range(7)]))
    grey = (X[rows].reshape(-1, 1, 8, 8) * 255 / 16).astype(np.uint8)
    truth = truth[rows].astype(np.int64)
    half = np.random.default_rng(0).random(len(truth)) < 0.5
    return Pictures(np.repeat(grey, 3, axis=1), truth, np.where((truth < 5) & half, truth, -1))


@pytest.fixture(scope="session")
def seven_digits():
    """As many as can be learnt from in seconds."""
    return take(40)


@pytest.fixture(scope="session")
def few_digits():
    """As few as there can be: for whatever does not ask how well it is learnt."""
    return take(20)


@pytest.fixture(scope="session")
def small_set(few_digits):
    """The few digits as a data set of the benchmark."""
    names = tuple("0123456")
    return DataSet("digits", few_digits.truth, names, tuple(range(5)), array=few_digits.pixels)


@pytest.fixture(scope="module")
def few_pictures(small_set):
    """Runs on the digits have these few only."""

    def load(name, root, **options):
        return small_set if name == "digits" else load_dataset(name, root, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "load_dataset", load)
        patch.setattr(pim, "N_STEPS", 5)  # of 1,000, for each of some hundred heads
        yield
