import tracemalloc

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from newfound import SplitMergeMixture


@pytest.mark.parametrize("assign", ["nearest", "soft"])
def test_probabilities_agree_with_predictions(digits, assign, fitted):
    X, _, _ = digits
    settings = {"n_components": 10, "n_directions": 20, "sizes": None}
    mixture = fitted(digits, assign=assign, **settings)
    probabilities = mixture.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), mixture.predict(X))
    if assign == "nearest":
        free = digits[2] == -1
        np.testing.assert_array_equal(mixture.predict(X)[free], mixture.labels_[free])
        np.testing.assert_array_equal(mixture.predict(X), mixture.nearest_prototype(X))
        np.testing.assert_array_equal(mixture.transform(X).argmin(axis=1), mixture.predict(X))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("random_state", [1, 3, 4])  # nearest prototypes have uneven sizes
def test_with_expected_sizes_predictions_labels_and_numbers_agree(digits, dtype, random_state):
    X, _, y = digits
    X, free = X.astype(dtype), y == -1
    mixture = SplitMergeMixture(
        n_components=10, sizes="alike", n_init=1, random_state=random_state
    ).fit(X, y)
    assert mixture.offsets_.shape == (10,)
    assert (mixture.offsets_ != 0).all()
    predicted = mixture.predict(X)
    np.testing.assert_array_equal(predicted[free], mixture.labels_[free])
    np.testing.assert_array_equal(predicted, mixture.nearest_prototype(X))
    probabilities = mixture.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), predicted)
    np.testing.assert_array_equal(mixture.labels_[~free], y[~free])
    sizes = np.bincount(mixture.labels_)
    assert (np.diff(sizes[5:]) <= 0).all()
    np.testing.assert_allclose(mixture.weights_, sizes / len(X))
    # distances are true ones, whatever the offsets
    V = mixture.projection_.transform(X)
    distances = np.linalg.norm(V[:, None] - mixture.prototypes_, axis=2)
    np.testing.assert_allclose(mixture.transform(X), distances, rtol=1e-4)
    assert (distances.argmin(axis=1) != predicted).any()


def test_score_is_the_mean_log_density(digits, fitted):
    X, _, _ = digits
    mixture = fitted(digits, n_components=10, n_directions=20)
    assert mixture.score(X) == pytest.approx(mixture.score_samples(X).mean())
    noise = np.random.default_rng(0).normal(size=X.shape)
    assert mixture.score(X) > mixture.score(noise)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("assign", ["nearest", "soft"])
def test_rows_that_are_already_projected_have_the_same_probabilities(digits, assign, dtype):
    X, _, y = digits
    settings = {"n_components": 10, "n_directions": 20, "n_init": 1, "random_state": 0}
    mixture = SplitMergeMixture(assign=assign, **settings).fit(X.astype(dtype), y)
    V = mixture.projection_.transform(X.astype(dtype))
    np.testing.assert_array_equal(
        mixture.proba_of_projected(V), mixture.predict_proba(X.astype(dtype))
    )


def test_an_unfitted_mixture_has_no_probabilities():
    with pytest.raises(NotFittedError):
        SplitMergeMixture().proba_of_projected(np.eye(3))


@pytest.mark.parametrize("assign", ["nearest", "soft"])
def test_chunks_give_the_same_numbers_and_take_less_memory(digits, fitted, monkeypatch, assign):
    mixture = fitted(digits, assign=assign, n_components=10, n_directions=20, sizes=None)
    X = np.tile(digits[0], (8, 1))
    V = mixture.projection_.transform(X)
    whole, density = mixture.proba_of_projected(V), mixture.score_samples(X)
    monkeypatch.setattr("newfound.mixture.prediction._CHUNK_BYTES", 1)
    monkeypatch.setattr("newfound.mixture.rows.BLOCK_BYTES", 2**14)
    np.testing.assert_allclose(mixture.proba_of_projected(V), whole, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(mixture.score_samples(X), density, rtol=1e-9)
    tracemalloc.start()
    mixture.proba_of_projected(V)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * whole.nbytes  # the answer itself, and little beside it
