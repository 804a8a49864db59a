"""More rows for a fitted mixture."""

import numpy as np
import pytest
from samples import Species

from newfound import SplitMergeMixture
from newfound.mixture.extension import extended


@pytest.fixture(scope="module")
def mixture():
    rows = Species.before
    return SplitMergeMixture(random_state=0).fit(Species.X[rows], Species.y[rows])


def extend(mixture, added, y=None):
    rows = np.append(Species.before, added)
    y = Species.y if y is None else y
    return extended(mixture, Species.X[rows], y[rows])


def test_a_new_class_becomes_one_component_and_old_rows_stay(mixture):
    n = len(Species.before)
    more = extend(mixture, np.append(Species.late, Species.hidden))
    assert more.n_components_ == mixture.n_components_ + 1
    place = more.labels_[-len(Species.hidden) :]
    new = np.bincount(place).argmax()
    assert (place == new).mean() > 0.8
    assert (more.labels_[:n] == new).mean() < 0.02
    # all others are the old components, perhaps with other numbers
    stayed = more.labels_[:n] != new
    pairs = set(zip(mixture.labels_[stayed], more.labels_[:n][stayed], strict=True))
    assert len(pairs) == mixture.n_components_
    low, high = mixture.n_novel_interval_
    assert more.n_novel_interval_ == (low + 1, high + 1)
    assert np.isnan(more.stability_[new])


def test_what_was_learnt_fits_together(mixture):
    more = extend(mixture, np.append(Species.late, Species.hidden))
    rows = np.concatenate([Species.before, Species.late, Species.hidden])
    free = Species.y[rows] == -1
    np.testing.assert_array_equal(more.predict(Species.X[rows])[free], more.labels_[free])
    np.testing.assert_array_equal(more.labels_[~free], Species.y[rows][~free])
    sizes = np.bincount(more.labels_)
    np.testing.assert_allclose(more.weights_, sizes / sizes.sum())
    assert (np.diff(sizes[more.n_known_ :]) <= 0).all()
    assert len(more.prototypes_) == len(more.offsets_) == len(more.covariances_) == len(sizes)
    assert mixture.n_components_ == len(mixture.prototypes_) == len(sizes) - 1


@pytest.mark.parametrize("n_added", [0, 1, 5, None])
def test_without_a_new_class_there_is_no_new_component(mixture, n_added):
    more = extend(mixture, Species.late[:n_added])
    n = len(Species.before)
    assert more.n_components_ == mixture.n_components_
    np.testing.assert_array_equal(
        np.sort(np.bincount(more.labels_[:n])), np.sort(np.bincount(mixture.labels_))
    )


def test_labelled_rows_of_known_classes_keep_their_class(mixture):
    added = Species.late[Species.truth[Species.late] < 8]
    y = Species.y.copy()
    y[added] = Species.truth[added]
    more = extend(mixture, added, y)
    np.testing.assert_array_equal(more.labels_[len(Species.before) :], y[added])
    rows = np.append(Species.before, added)
    k = y[added][0]
    mean = more.projection_.transform(Species.X[rows[y[rows] == k]]).mean(axis=0)
    np.testing.assert_allclose(more.prototypes_[k], mean, atol=1e-6)
    assert more.n_components_ == mixture.n_components_


def test_the_order_of_added_rows_does_not_matter(mixture):
    added = np.append(Species.late, Species.hidden)
    shuffled = np.random.default_rng(3).permutation(len(added))
    n = len(Species.before)
    one, other = extend(mixture, added), extend(mixture, added[shuffled])
    np.testing.assert_array_equal(one.labels_[n:][shuffled], other.labels_[n:])
