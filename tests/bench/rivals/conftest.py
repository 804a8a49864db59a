"""Rows that every rival can count."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def sphere():
    """Six tight blobs on the unit sphere; half of the rows of three of them are labelled."""
    rng = np.random.default_rng(6)
    centres = rng.normal(size=(6, 8))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    truth = rng.permutation(np.repeat(np.arange(6), 40))
    X = centres[truth] + 0.2 * rng.normal(size=(240, 8)) / np.sqrt(8)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.where((truth < 3) & (rng.random(240) < 0.5), truth, -1)
