"""What several test files share: a small collection, tiny blocks, a quiet hypothesis."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import settings

# No deadline and no stored examples: a test passes or fails by its inputs, not by the clock.
settings.register_profile(
    "newfound", deadline=None, derandomize=True, database=None, max_examples=50
)
settings.load_profile("newfound")


class Blobs(NamedTuple):
    """A collection of five well separated classes, three of them known."""

    X: np.ndarray
    truth: np.ndarray
    y: np.ndarray  # about half of the rows of classes 0, 1 and 2 are labelled


@pytest.fixture
def blobs():
    rng = np.random.default_rng(7)
    centres = 12 * np.eye(5, 4) + rng.normal(size=(5, 4))
    truth = rng.permutation(np.repeat(np.arange(5), 40))
    X = centres[truth] + rng.normal(size=(200, 4))
    y = np.where((truth < 3) & (rng.random(200) < 0.5), truth, -1)
    return Blobs(X, truth, y)


@pytest.fixture
def tiny_blocks(monkeypatch):
    """Blocks of 16 rows, the smallest there are, so that small data takes many of them."""
    monkeypatch.setattr("newfound.mixture.rows.BLOCK_BYTES", 1)
