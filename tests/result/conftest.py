"""A small result, and what it takes to make others."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from newfound import SplitMergeMixture
from newfound.data.collection import Collection, Skipped
from newfound.result.build import result_from
from newfound.result.record import Request, RunFacts


def objects(values):
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def make_collection(y, X, **changes):
    ids = [f"item {i:04d}" for i in range(len(y))]
    return Collection(**{"ids": ids, "y": objects(y), "features": X, **changes})


def fit_result(y, X, n_components, expect_sizes=None, **changes):
    collection = make_collection(y, X, **changes)
    settings = {"n_components": n_components, "expect_sizes": expect_sizes}
    mixture = SplitMergeMixture(random_state=0, n_init=2, **settings)
    facts = RunFacts(seed=5, settings=Request(n_categories=n_components))
    return result_from(collection, X, mixture.fit(X, collection.y), facts)


@pytest.fixture(name="make_collection", scope="session")
def make_collection_fixture():
    """A collection of features from labels and rows."""
    return make_collection


@pytest.fixture(name="fit", scope="session")
def fit_fixture():
    """The result of a mixture with a given number of components."""
    return fit_result


@pytest.fixture(scope="session")
def result():
    """400 digits of ten classes, five of them known."""
    X, truth = load_digits(return_X_y=True)
    X, truth = X[:400].astype(np.float32), truth[:400]
    half = np.random.default_rng(0).random(400) < 0.5
    y = [f"digit {t}" if t < 5 and h else None for t, h in zip(truth, half, strict=True)]
    return fit_result(y, X, 10, skipped=[Skipped("=broken.png", "the file is empty")])
