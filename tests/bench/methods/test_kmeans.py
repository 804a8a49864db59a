"""k-means of the start: what it clusters, and that it reads no labels."""

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans as ScikitKMeans

from newfound.bench.methods.kmeans import KMeansMethod
from newfound.bench.start import start_features
from newfound.metrics import discovery_scores
from newfound.mixture.projection import Projection
from newfound.workflows.demo import DIGITS

torch.set_num_threads(1)

SETTINGS = DIGITS.with_changes(pca="off", n_directions=8, seed=2)


def fit(X, y, folder, n_components=7, **changes):
    settings = SETTINGS.with_changes(**changes)
    return KMeansMethod(n_components, settings=settings, folder=folder).fit(X, y)


def inertia(V, labels):
    """Squared distances to the mean of each cluster, row by row."""
    means = {k: V[labels == k].mean(axis=0) for k in set(labels)}
    return sum(((row - means[k]) ** 2).sum() for row, k in zip(V, labels, strict=True))


@pytest.mark.parametrize("pca", ["all", "off"])
def test_it_is_k_means_of_unit_rows(few_digits, tmp_path, pca):
    X = few_digits.pixels[:, 0].reshape(len(few_digits.truth), -1) / 255
    method = fit(X, few_digits.y, tmp_path, pca=pca)
    V = X / np.linalg.norm(X, axis=1, keepdims=True)
    V = Projection(8).fit(X).transform(X) if pca == "all" else V
    theirs = ScikitKMeans(7, n_init=10, random_state=2).fit(V)
    assert inertia(V, method.labels_) <= theirs.inertia_ * 1.01
    means = np.stack([V[method.labels_ == k].mean(axis=0) for k in range(7)])
    nearest = ((V[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == method.labels_).mean() > 0.98  # at rest, up to the tolerance
    assert method.n_components_ == 7
    assert method.history_ == []


def test_images_are_clustered_by_the_features_of_the_start(few_digits, tmp_path):
    method = fit(few_digits.pixels, few_digits.y, tmp_path)
    Z = start_features(few_digits.pixels, SETTINGS)
    np.testing.assert_array_equal(method.features_, Z)
    np.testing.assert_array_equal(method.labels_, fit(Z, few_digits.y, tmp_path).labels_)
    assert list(tmp_path.iterdir()) == []  # nothing is trained


def test_labels_are_not_read(few_digits, tmp_path):
    without = np.full(len(few_digits.y), -1)
    with_labels = fit(few_digits.pixels, few_digits.y, tmp_path)
    np.testing.assert_array_equal(
        fit(few_digits.pixels, without, tmp_path).labels_, with_labels.labels_
    )


def test_it_is_better_than_chance(seven_digits, tmp_path):
    method = fit(seven_digits.pixels, seven_digits.y, tmp_path)
    free = seven_digits.y == -1
    truth = seven_digits.truth[free]
    shuffled = np.random.default_rng(0).permutation(method.labels_)
    chance = discovery_scores(truth, shuffled[free], range(5)).all
    assert discovery_scores(truth, method.labels_[free], range(5)).all > chance + 0.2
