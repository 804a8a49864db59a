"""What the tests of the deep loop share: one thread, and pictures of digits."""

from typing import NamedTuple

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

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
