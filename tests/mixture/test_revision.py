"""A partition that a person has changed: what was not touched stays."""

import numpy as np
import pytest
from samples import Blobs, objects

from newfound.mixture.estimator import SplitMergeMixture
from newfound.mixture.revision import revised

ROWS = np.flatnonzero(Blobs.truth != 8)
X, TRUTH = Blobs.X[ROWS], Blobs.truth[ROWS]
Y = objects([Blobs.y[i] for i in ROWS])


@pytest.fixture(scope="module")
def mixture():
    return SplitMergeMixture(n_components=8, random_state=0).fit(X, Y)


def nothing_held():
    return np.zeros(len(X), dtype=bool)


def test_the_same_partition_gives_the_same_mixture(mixture):
    again, number_of = revised(mixture, X, Y, mixture.labels_, nothing_held())
    assert number_of.tolist() == list(range(8))
    np.testing.assert_array_equal(again.labels_, mixture.labels_)
    np.testing.assert_allclose(again.prototypes_, mixture.prototypes_, atol=1e-5)
    np.testing.assert_array_equal(again.prototypes_[6:], mixture.prototypes_[6:])
    np.testing.assert_allclose(again.offsets_[6:], mixture.offsets_[6:])
    np.testing.assert_array_equal(again.predict(X), mixture.predict(X))


def test_a_changed_component_is_the_mean_of_its_rows_and_others_stay(mixture):
    start = np.where(mixture.labels_ == 7, 6, mixture.labels_)
    merged, number_of = revised(mixture, X, Y, start, nothing_held())
    assert (merged.n_components_, merged.n_novel_) == (7, 1)
    assert number_of.tolist() == list(range(7))
    V = mixture.projection_.transform(X)
    np.testing.assert_allclose(merged.prototypes_[6], V[start == 6].mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(merged.prototypes_[:6], mixture.prototypes_[:6], atol=1e-5)
    assert np.isnan(merged.stability_[6])
    assert mixture.n_components_ == 8  # the old one is not changed


def test_rows_without_a_place_go_to_the_nearest_prototype_and_held_ones_stay(mixture):
    start = mixture.labels_.copy()
    start[mixture.labels_ == 7] = -1
    one = int(np.flatnonzero(mixture.labels_ == 6)[0])
    start[one] = 0
    is_held = nothing_held()
    is_held[one] = True
    less, _ = revised(mixture, X, Y, start, is_held)
    assert less.n_components_ == 7
    assert less.labels_[one] == 0
    V = mixture.projection_.transform(X)
    lost = np.flatnonzero(mixture.labels_ == 7)
    squares = ((V[lost, None] - less.prototypes_[None]) ** 2).sum(axis=2) - less.offsets_
    np.testing.assert_array_equal(less.labels_[lost], squares.argmin(axis=1))


def test_labels_may_name_new_classes(mixture):
    y = Y.copy()
    y[mixture.labels_ == 7] = "a new class"  # sorted before the others
    start = np.where(mixture.labels_ == 7, 0, mixture.labels_ + 1)
    named, number_of = revised(mixture, X, y, start, nothing_held())
    assert named.classes_[0] == "a new class"
    assert (named.n_known_, named.n_novel_) == (7, 1)
    np.testing.assert_array_equal(named.labels_ == 0, mixture.labels_ == 7)
    assert number_of.tolist() == list(range(8))
