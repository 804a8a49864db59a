"""What the tests of the mixture share: digits, a cloud of rows, and a fitted mixture."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from newfound import SplitMergeMixture


@pytest.fixture(scope="session")
def digits():
    """700 digits; about half of the rows of 0 to 4 are labelled."""
    X, truth = load_digits(return_X_y=True)
    X, truth = X[:700], truth[:700]
    rng = np.random.default_rng(0)
    y = np.where((truth < 5) & (rng.random(len(truth)) < 0.5), truth, -1)
    return X, truth, y


@pytest.fixture(scope="session")
def fitted():
    """A function: data (X, truth, y) and settings → the fitted mixture."""

    def fit(data, **settings):
        X, _, y = data
        return SplitMergeMixture(random_state=0, **settings).fit(X, y)

    return fit


@pytest.fixture
def cloud():
    """Rows without clear clusters, so that starts and iterations matter; two classes known."""
    rng = np.random.default_rng(21)
    X = rng.normal(size=(120, 3))
    y = np.full(120, -1)
    y[:20] = (X[:20, 0] > 0).astype(int)
    return X, y
