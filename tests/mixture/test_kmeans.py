"""Semi-supervised k-means: pinned classes, invariances, starts, what comes after fit."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from newfound import SemiSupervisedKMeans
from newfound.mixture.kmeans import fit_labels, group_free_rows
from newfound.mixture.lloyd import PinnedRows, run_lloyd

DTYPES = [np.float64, np.float32]


# The checks label all rows, with fewer or more classes than n_clusters; both rightly warn.
@pytest.mark.filterwarnings("ignore:n_clusters=")
@parametrize_with_checks([SemiSupervisedKMeans()])
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


def same_partition(a, b):
    return adjusted_rand_score(a, b) == 1.0


# The algorithm


def test_without_labels_it_is_as_good_as_scikit_learn(blobs):
    ours = SemiSupervisedKMeans(5, n_init=5, random_state=0).fit(blobs.X)
    theirs = KMeans(5, n_init=5, random_state=0).fit(blobs.X)
    assert same_partition(ours.labels_, theirs.labels_)
    assert ours.inertia_ == pytest.approx(theirs.inertia_)


def test_known_and_novel_classes_are_found(blobs):
    found = SemiSupervisedKMeans(5, random_state=0).fit(blobs.X, blobs.y)
    known = blobs.truth < 3
    assert found.labels_[known].tolist() == blobs.truth[known].tolist()
    assert same_partition(found.labels_, blobs.truth)
    assert (found.n_known_, found.n_novel_, found.n_components_) == (3, 2, 5)


@pytest.mark.parametrize("seed", range(5))
def test_labelled_rows_are_pinned_to_their_class_whatever_they_look_like(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(80, 2)), rng.integers(-1, 4, size=80)
    labels = SemiSupervisedKMeans(6, random_state=seed).fit(X, y).labels_
    assert (labels[y >= 0] == y[y >= 0]).all()


def test_two_classes_never_share_a_cluster():
    """Not even when their rows are the same."""
    X = np.repeat([[0.0, 0.0], [9.0, 9.0]], 4, axis=0)
    y = ["cat", "dog", None, None, None, None, None, None]
    labels = SemiSupervisedKMeans(3, random_state=0).fit(X, y).labels_
    assert labels[:2].tolist() == [0, 1]
    assert len(set(labels.tolist())) == 3


def test_the_first_clusters_are_the_classes_in_sorted_order(blobs):
    names = np.array(["wren", "auk", "jay"])
    y = [names[code] if code >= 0 else None for code in blobs.y]
    found = SemiSupervisedKMeans(5, random_state=0).fit(blobs.X, y)
    assert found.classes_.tolist() == ["auk", "jay", "wren"]
    assert found.category_names_.tolist() == ["auk", "jay", "wren", "new-001", "new-002"]
    known = blobs.truth < 3
    assert (found.category_names_[found.labels_][known] == names[blobs.truth[known]]).all()


def test_centres_are_the_means_of_their_rows(blobs):
    found = SemiSupervisedKMeans(5, tol=0, random_state=0).fit(blobs.X, blobs.y)
    means = [blobs.X[found.labels_ == k].mean(axis=0) for k in range(5)]
    np.testing.assert_allclose(found.cluster_centers_, means, atol=1e-12)
    np.testing.assert_array_equal(found.prototypes_, found.cluster_centers_)


def test_a_row_of_weight_zero_fills_no_cluster():
    X = np.array([[0.0], [1.0], [100.0], [101.0], [5000.0]])
    found = SemiSupervisedKMeans(2, random_state=0).fit(X, sample_weight=[1, 1, 1, 1, 0])
    assert sorted(found.cluster_centers_.ravel().tolist()) == [0.5, 100.5]


# What must not matter


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_rows_does_not_matter(cloud, dtype, seed):
    X, y = cloud[0].astype(dtype), cloud[1]
    order = np.random.default_rng(seed).permutation(len(X))
    straight = SemiSupervisedKMeans(8, random_state=seed).fit(X, y)
    shuffled = SemiSupervisedKMeans(8, random_state=seed).fit(X[order], y[order])
    assert shuffled.labels_.tolist() == straight.labels_[order].tolist()
    assert shuffled.cluster_centers_.tobytes() == straight.cluster_centers_.tobytes()


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_rows_does_not_matter_to_which_start_is_the_best(blobs, seed):
    """Most starts find the same clusters under other numbers: a tie but for rounding."""
    order = np.random.default_rng(seed).permutation(len(blobs.X))
    straight = SemiSupervisedKMeans(5, n_init=8, random_state=seed).fit(blobs.X, blobs.y)
    shuffled = SemiSupervisedKMeans(5, n_init=8, random_state=seed).fit(
        blobs.X[order], blobs.y[order]
    )
    assert shuffled.labels_.tolist() == straight.labels_[order].tolist()
    assert shuffled.inertia_ == straight.inertia_


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_rows_does_not_matter_among_equal_rows_and_distances(cloud, seed):
    X, y = np.round(cloud[0]), cloud[1]
    order = np.random.default_rng(seed).permutation(len(X))
    straight = SemiSupervisedKMeans(6, random_state=seed).fit(X, y)
    shuffled = SemiSupervisedKMeans(6, random_state=seed).fit(X[order], y[order])
    assert shuffled.labels_.tolist() == straight.labels_[order].tolist()


def test_the_names_of_classes_do_not_matter(cloud):
    X, y = cloud
    renamed = np.where(y >= 0, 1 - y, -1)
    found = SemiSupervisedKMeans(8, random_state=0).fit(X, y)
    other = SemiSupervisedKMeans(8, random_state=0).fit(X, renamed)
    assert other.labels_.tolist() == np.array([1, 0, 2, 3, 4, 5, 6, 7])[found.labels_].tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(3))
def test_a_weight_is_the_same_as_repeated_rows(cloud, dtype, seed):
    X, y = cloud[0].astype(dtype), cloud[1]
    weights = np.random.default_rng(seed).integers(1, 4, size=len(X))
    weighted = SemiSupervisedKMeans(6, random_state=seed).fit(X, y, sample_weight=weights)
    repeated = SemiSupervisedKMeans(6, random_state=seed).fit(
        np.repeat(X, weights, axis=0), np.repeat(y, weights)
    )
    assert np.repeat(weighted.labels_, weights).tolist() == repeated.labels_.tolist()
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, atol=1e-5)
    assert weighted.inertia_ == pytest.approx(repeated.inertia_, rel=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_blocks_do_not_matter(cloud, dtype, request):
    X, y = cloud[0].astype(dtype), cloud[1]
    whole = SemiSupervisedKMeans(6, random_state=0).fit(X, y)
    request.getfixturevalue("tiny_blocks")
    blocked = SemiSupervisedKMeans(6, random_state=0).fit(X, y)
    assert blocked.labels_.tolist() == whole.labels_.tolist()
    np.testing.assert_allclose(blocked.cluster_centers_, whole.cluster_centers_, atol=1e-5)


def test_an_offset_does_not_matter_for_clear_clusters(blobs):
    far = SemiSupervisedKMeans(5, random_state=0).fit(blobs.X + 1e6, blobs.y)
    assert same_partition(far.labels_, blobs.truth)


def test_the_layout_in_memory_does_not_matter(cloud):
    X, y = cloud
    columns_first = SemiSupervisedKMeans(6, random_state=0).fit(np.asfortranarray(X), y)
    rows_first = SemiSupervisedKMeans(6, random_state=0).fit(X, y)
    assert columns_first.labels_.tolist() == rows_first.labels_.tolist()


def test_same_seed_same_bits(cloud):
    first = SemiSupervisedKMeans(8, n_init=3, random_state=4).fit(*cloud)
    again = SemiSupervisedKMeans(8, n_init=3, random_state=4).fit(*cloud)
    assert first.cluster_centers_.tobytes() == again.cluster_centers_.tobytes()
    assert first.labels_.tobytes() == again.labels_.tobytes()


def test_fitting_leaves_data_and_labels_as_they_were(cloud):
    X, y = cloud
    before = X.tobytes(), y.tobytes()
    SemiSupervisedKMeans(8, random_state=0).fit(X, y)
    assert (X.tobytes(), y.tobytes()) == before


# Starts and iterations


def test_the_best_of_several_starts_is_kept(cloud):
    shared = np.random.RandomState(0)  # single starts that continue one stream of draws
    single = [SemiSupervisedKMeans(8, random_state=shared).fit(*cloud).inertia_ for _ in range(5)]
    several = SemiSupervisedKMeans(8, n_init=5, random_state=0).fit(*cloud)
    assert len(set(single)) > 1
    assert several.inertia_ == min(single)


def test_seeds_differ(cloud):
    inertias = {SemiSupervisedKMeans(8, random_state=s).fit(*cloud).inertia_ for s in range(5)}
    assert len(inertias) > 1


@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_n_iter_is_the_number_of_iterations(cloud, max_iter):
    cut = SemiSupervisedKMeans(8, tol=0, max_iter=max_iter, random_state=0).fit(*cloud)
    full = SemiSupervisedKMeans(8, tol=0, random_state=0).fit(*cloud)
    assert cut.n_iter_ == max_iter < full.n_iter_
    assert cut.inertia_ > full.inertia_


def test_a_larger_tolerance_ends_earlier(cloud):
    rough = SemiSupervisedKMeans(8, tol=0.5, random_state=0).fit(*cloud)
    fine = SemiSupervisedKMeans(8, tol=0, random_state=0).fit(*cloud)
    assert rough.n_iter_ < fine.n_iter_


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_tolerance_is_relative_to_the_variance_of_the_data(cloud, scale, monkeypatch):
    thresholds = []

    def spy(pinned, centres, max_iter, threshold):
        thresholds.append(threshold)
        return run_lloyd(pinned, centres, max_iter, threshold)

    monkeypatch.setattr("newfound.mixture.kmeans.run_lloyd", spy)
    X = cloud[0] * scale
    SemiSupervisedKMeans(4, tol=0.01, random_state=0).fit(X)
    assert thresholds == [pytest.approx(0.01 * X.var(axis=0).mean())]


def test_one_start_on_checked_rows_is_the_estimator(cloud):
    X, y = cloud
    labels = fit_labels(PinnedRows.of(X, y, 2), 6, np.random.RandomState(3))
    assert labels.tolist() == SemiSupervisedKMeans(6, random_state=3).fit(X, y).labels_.tolist()


def test_coarse_groups_leave_few_free_rows_alone(cloud):
    X, y = cloud
    groups = group_free_rows(X, y, 2, n_groups=100, random_state=np.random.RandomState(0))
    assert groups[:20].tolist() == y[:20].tolist()
    assert groups[20:].tolist() == list(range(2, 102))


def test_coarse_groups_are_neighbourhoods_of_free_rows(cloud):
    X, y = cloud
    groups = group_free_rows(X, y, 2, n_groups=12, random_state=np.random.RandomState(0))
    assert groups[:20].tolist() == y[:20].tolist()
    assert np.unique(groups).tolist() == list(range(14))
    rows, groups = X[20:], groups[20:]
    means = np.array([rows[groups == group].mean(axis=0) for group in range(2, 14)])
    within = ((rows - means[groups - 2]) ** 2).sum()
    assert within < 0.4 * ((rows - rows.mean(axis=0)) ** 2).sum()


def test_coarse_groups_do_not_depend_on_the_order_of_rows(cloud):
    X, y = cloud
    order = np.random.default_rng(1).permutation(len(X))
    straight = group_free_rows(X, y, 2, 12, np.random.RandomState(0))
    shuffled = group_free_rows(X[order], y[order], 2, 12, np.random.RandomState(0))
    assert shuffled.tolist() == straight[order].tolist()


# What comes after fit


@pytest.mark.parametrize("dtype", DTYPES)
def test_predict_goes_to_the_nearest_centre(blobs, dtype):
    X = blobs.X.astype(dtype)
    found = SemiSupervisedKMeans(5, random_state=0).fit(X, blobs.y)
    free = blobs.y == -1
    assert found.predict(X[free]).tolist() == found.labels_[free].tolist()
    assert found.predict(found.cluster_centers_).tolist() == [0, 1, 2, 3, 4]


def test_predict_does_not_know_the_labels():
    X = np.array([[0.0], [0.1], [9.0], [9.1]])
    found = SemiSupervisedKMeans(2, random_state=0).fit(X, [0, -1, 1, 0])
    assert found.labels_.tolist() == [0, 0, 1, 0]
    assert found.predict(X)[3] == 1


def test_transform_gives_distances(blobs):
    found = SemiSupervisedKMeans(5, random_state=0).fit(blobs.X, blobs.y)
    distances = found.transform(blobs.X)
    slow = np.linalg.norm(blobs.X[:, None] - found.cluster_centers_, axis=2)
    np.testing.assert_allclose(distances, slow, rtol=1e-7)
    assert distances.argmin(axis=1).tolist() == found.predict(blobs.X).tolist()


@pytest.mark.parametrize("weights", [None, np.linspace(0, 3, 120)], ids=["equal", "weighted"])
def test_score_is_minus_the_inertia_when_nothing_is_pinned(cloud, weights):
    X, _ = cloud
    found = SemiSupervisedKMeans(6, random_state=0).fit(X, sample_weight=weights)
    assert found.score(X, sample_weight=weights) == pytest.approx(-found.inertia_)


def test_inertia_counts_pinned_rows_at_their_own_centre(cloud):
    X, y = cloud
    found = SemiSupervisedKMeans(6, random_state=0).fit(X, y)
    slow = ((X - found.cluster_centers_[found.labels_]) ** 2).sum()
    assert found.inertia_ == pytest.approx(slow)
    assert -found.score(X) < found.inertia_


def test_fit_predict_reads_y(blobs):
    labels = SemiSupervisedKMeans(5, random_state=0).fit_predict(blobs.X, blobs.y)
    expected = SemiSupervisedKMeans(5, random_state=0).fit(blobs.X, blobs.y).labels_
    assert labels.tolist() == expected.tolist()


def test_fit_transform_reads_y(blobs):
    model = SemiSupervisedKMeans(5, random_state=0)
    distances = model.fit_transform(blobs.X, blobs.y)
    assert model.n_known_ == 3
    np.testing.assert_array_equal(distances, model.transform(blobs.X))


@pytest.mark.parametrize("dtype", DTYPES)
def test_precision_is_kept(blobs, dtype):
    X = blobs.X.astype(dtype)
    found = SemiSupervisedKMeans(5, random_state=0).fit(X, blobs.y)
    assert found.cluster_centers_.dtype == dtype
    assert found.transform(X).dtype == dtype
    assert same_partition(found.labels_, blobs.truth)


def test_transform_to_pandas(blobs):
    model = SemiSupervisedKMeans(5, random_state=0).set_output(transform="pandas")
    frame = model.fit_transform(pd.DataFrame(blobs.X, columns=list("abcd")), blobs.y)
    assert frame.columns.tolist() == [f"semisupervisedkmeans{k}" for k in range(5)]
    assert model.feature_names_in_.tolist() == list("abcd")


def test_clone_takes_the_settings_and_leaves_the_result(blobs):
    settings = {"n_clusters": 5, "n_init": 2, "max_iter": 7, "tol": 0.1, "random_state": 3}
    copy = clone(SemiSupervisedKMeans(**settings).fit(blobs.X, blobs.y))
    assert copy.get_params() == settings
    assert not hasattr(copy, "labels_")


def test_pickle_predicts_the_same(blobs):
    found = SemiSupervisedKMeans(5, random_state=0).fit(blobs.X, blobs.y)
    thawed = pickle.loads(pickle.dumps(found))
    assert thawed.predict(blobs.X).tolist() == found.predict(blobs.X).tolist()
    assert thawed.category_names_.tolist() == found.category_names_.tolist()
