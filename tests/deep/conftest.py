"""What the tests of the deep loop share: one thread, pictures of digits, and a run on them."""

import math
from typing import NamedTuple

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from trainer_runs import Notes, reached_sizes, run

from newfound.deep import partial_epoch

# the last bits of a sum depend on the number of threads
torch.set_num_threads(1)


class Pictures(NamedTuple):
    """Pictures of seven digits, of which five are known."""

    pixels: np.ndarray  # uint8 (n, 3, 8, 8)
    truth: np.ndarray
    y: np.ndarray  # half of the pictures of classes 0 to 4 are labelled


@pytest.fixture(scope="session")
def digits():
    X, truth = load_digits(return_X_y=True)
    rows = np.sort(np.concatenate([np.flatnonzero(truth == digit)[:16] for digit in range(7)]))
    X, truth = X[rows], truth[rows]
    grey = (X.reshape(-1, 1, 8, 8) * 255 / 16).astype(np.uint8)
    half = np.random.default_rng(0).random(len(truth)) < 0.5
    return Pictures(np.repeat(grey, 3, axis=1), truth, np.where((truth < 5) & half, truth, -1))


@pytest.fixture(scope="session")
def photographs():
    """Colours without any order, and smooth ones: uint8 (6, 3, 16, 16)."""
    rng = np.random.default_rng(3)
    noise = rng.integers(0, 256, size=(3, 3, 16, 16))
    slopes = np.linspace(0, 200, 16)[:, None] * rng.random((3, 3, 1, 16)) + 30
    return torch.from_numpy(np.concatenate([noise, slopes]).astype(np.uint8))


@pytest.fixture(scope="session")
def undisturbed(digits, tmp_path_factory):
    """A run of three epochs from beginning to end, with its folder and what was heard of it."""
    folder = tmp_path_factory.mktemp("undisturbed")
    notes = Notes()
    return run(digits, folder, listener=notes), folder, notes.heard


@pytest.fixture
def sizes_are_reached():
    with reached_sizes():
        yield


@pytest.fixture
def saving_within_epochs(monkeypatch):
    """A checkpoint after every step of the optimiser."""
    monkeypatch.setattr(partial_epoch, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(partial_epoch, "SAVE_SHARE", math.inf)
