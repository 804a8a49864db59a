"""A small result, and what it takes to make others."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from newfound import SplitMergeMixture
from newfound.data.collection import Collection, Skipped
from newfound.result.assign import Assigned
from newfound.result.build import result_from
from newfound.result.profiles import CategoryProfiles
from newfound.result.record import Request, RunFacts, RunRecord
from newfound.result.result import Result


def objects(values):
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def make_collection(y, X, **changes):
    ids = [f"item {i:04d}" for i in range(len(y))]
    return Collection(**{"ids": ids, "y": objects(y), "features": X, **changes})


def fit_result(y, X, n_components, sizes="unknown", **changes):
    collection = make_collection(y, X, **changes)
    settings = {"n_components": n_components, "sizes": sizes}
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


def result_of_codes(collection, codes, names=("cat", "dog", "new-001", "new-002"), n_known=2):
    """A result with categories that are given by their codes, without a model."""
    n, K = len(collection), len(names)
    codes = np.asarray(codes)
    is_labelled = collection.is_labelled
    assigned = Assigned(codes, np.linspace(0.25, 1, n), (codes + 1) % K, np.full(n, np.nan))
    profiles = CategoryProfiles(
        sizes=np.bincount(codes, minlength=K),
        n_labelled=np.bincount(codes[is_labelled], minlength=K),
        stability=np.full(K, np.nan),
        mean_confidence=np.full(K, np.nan),
        nearest=np.full(K, -1),
        exemplars=tuple(np.flatnonzero(codes == code) for code in range(K)),
        borderline=tuple(np.flatnonzero(codes == code) for code in range(K)),
        evidence=None,
    )
    record = RunRecord(
        kind=collection.kind,
        n_items=n,
        n_labelled=int(is_labelled.sum()),
        n_known=n_known,
        n_novel=K - n_known,
        source=None if collection.root is None else str(collection.root),
    )
    no_columns = np.zeros((n, 0), np.float32)
    return Result(
        collection=collection,
        features=no_columns,
        mixture=None,
        names=tuple(names),
        assigned=assigned,
        outlier_scores=np.linspace(0, 1, n),
        profiles=profiles,
        record=record,
        prototypes=np.zeros((K, 0)),
        V=no_columns,
    )


@pytest.fixture(scope="session")
def make_result():
    """A result of given codes."""
    return result_of_codes


@pytest.fixture(scope="session")
def result():
    """400 digits of ten classes, five of them known."""
    X, truth = load_digits(return_X_y=True)
    X, truth = X[:400].astype(np.float32), truth[:400]
    half = np.random.default_rng(0).random(400) < 0.5
    y = [f"digit {t}" if t < 5 and h else None for t, h in zip(truth, half, strict=True)]
    return fit_result(y, X, 10, skipped=[Skipped("=broken.png", "the file is empty")])
