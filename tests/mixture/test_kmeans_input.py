"""Semi-supervised k-means on input at the edge: few rows, equal rows, bad values."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from newfound import SemiSupervisedKMeans
from newfound.errors import DiscoveryWarning, InputError

DTYPES = [np.float64, np.float32]


def test_a_class_with_one_row():
    X = np.array([[0.0], [0.2], [9.0], [9.2]])
    found = SemiSupervisedKMeans(2, random_state=0).fit(X, [None, "cat", None, None])
    assert found.labels_.tolist() == [0, 0, 1, 1]
    assert found.category_names_.tolist() == ["cat", "new-001"]


def test_all_rows_labelled(blobs):
    found = SemiSupervisedKMeans(5, random_state=0).fit(blobs.X, blobs.truth)
    assert found.labels_.tolist() == blobs.truth.tolist()
    assert found.n_novel_ == 0


def test_all_rows_labelled_leave_nothing_for_novel_clusters(blobs):
    with pytest.warns(DiscoveryWarning, match=r"n_clusters=7, .* only 5 .*the 0 unlabelled rows"):
        found = SemiSupervisedKMeans(7, random_state=0).fit(blobs.X, blobs.truth)
    assert np.isfinite(found.cluster_centers_).all()
    assert found.n_components_ == len(found.cluster_centers_) == 5
    assert found.labels_.tolist() == blobs.truth.tolist()


@pytest.mark.parametrize("n_clusters", [1, 200])
def test_one_cluster_and_as_many_as_rows(blobs, n_clusters):
    found = SemiSupervisedKMeans(n_clusters, random_state=0).fit(blobs.X)
    assert len(set(found.labels_.tolist())) == n_clusters
    if n_clusters == 200:
        assert found.inertia_ == pytest.approx(0, abs=1e-20)


@pytest.mark.parametrize("y", [None, [0] + 9 * [-1]], ids=["unlabelled", "labelled"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_duplicate_rows_only(dtype, y):
    X = np.full((10, 3), 0.1, dtype=dtype)
    with pytest.warns(DiscoveryWarning, match=r"n_clusters=4, .* only 1 .*have 1 distinct values"):
        found = SemiSupervisedKMeans(4, random_state=0).fit(X, y)
    assert np.isfinite(found.cluster_centers_).all()
    assert found.labels_.tolist() == [0] * 10


@pytest.mark.parametrize("y", [None, [0, 1] + 58 * [-1]], ids=["unlabelled", "labelled"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_fewer_distinct_rows_than_clusters(dtype, y):
    distinct = np.random.default_rng(0).normal(size=(6, 4)).astype(dtype)
    X = distinct[np.arange(60) % 6]
    with pytest.warns(DiscoveryWarning, match=r"n_clusters=15, .* only 6 .*have 6 distinct values"):
        found = SemiSupervisedKMeans(15, random_state=0).fit(X, y)
    assert found.n_components_ == len(found.cluster_centers_) == len(found.category_names_) == 6
    assert adjusted_rand_score(found.labels_, np.arange(60) % 6) == 1
    assert set(found.predict(X)) == set(range(6))


def test_fewer_clusters_than_known_classes(blobs):
    model = SemiSupervisedKMeans(2, random_state=0)
    with pytest.warns(DiscoveryWarning, match=r"n_clusters=2.*3 known classes.*to at least 3"):
        model.fit(blobs.X, blobs.y)
    assert model.n_components_ == len(model.cluster_centers_) == 3
    assert model.n_novel_ == 0


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_nan_and_infinity(blobs, value, word):
    blobs.X[3, 1] = value
    with pytest.raises(ValueError, match=f"Input X contains {word}"):
        SemiSupervisedKMeans(5).fit(blobs.X, blobs.y)


def test_fewer_rows_than_clusters():
    with pytest.raises(InputError, match=r"n_samples=3 .*n_clusters=8.*Lower n_clusters or give"):
        SemiSupervisedKMeans(8).fit(np.eye(3))


def test_labels_of_the_wrong_length(blobs):
    with pytest.raises(InputError, match=r"y has 199 labels, but X has 200 rows.*one label per"):
        SemiSupervisedKMeans(5).fit(blobs.X, blobs.y[:-1])


def test_an_empty_array():
    with pytest.raises(ValueError, match=r"0 sample\(s\) .*minimum of 1 is required"):
        SemiSupervisedKMeans(2).fit(np.empty((0, 3)))


def test_an_array_without_columns():
    with pytest.raises(ValueError, match=r"0 feature\(s\) .*minimum of 1 is required"):
        SemiSupervisedKMeans(2).fit(np.empty((3, 0)))


def test_a_sparse_matrix(blobs):
    with pytest.raises(ValueError, match=r"[Ss]parse.*dense.*toarray"):
        SemiSupervisedKMeans(5).fit(sparse.csr_matrix(blobs.X))


@pytest.mark.parametrize("dtype", [object, str])
def test_an_array_of_text(dtype):
    X = np.array([["cat", "dog"], ["elk", "fox"]], dtype=dtype)
    with pytest.raises(ValueError, match=r"could not convert string to float.*'cat'"):
        SemiSupervisedKMeans(2).fit(X)


def test_an_object_array_of_numbers_works(blobs):
    found = SemiSupervisedKMeans(5, random_state=0).fit(blobs.X.astype(object), blobs.y)
    assert adjusted_rand_score(found.labels_, blobs.truth) == 1.0


@pytest.mark.parametrize("name", ["n_clusters", "n_init", "max_iter"])
@pytest.mark.parametrize("value", [0, -3, 2.5, True, "5", None], ids=repr)
def test_counts_must_be_positive_whole_numbers(blobs, name, value):
    model = SemiSupervisedKMeans(5).set_params(**{name: value})
    with pytest.raises(InputError, match=f"{name} must be a whole number.*got {value!r}"):
        model.fit(blobs.X)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(199), r"sample_weight\.shape == \(199,\), expected \(200,\)"),
        (-np.ones(200), r"Negative values in data passed to `sample_weight`"),
        (np.full(200, np.nan), r"Input sample_weight contains NaN"),
    ],
    ids=["length", "negative", "NaN"],
)
def test_bad_sample_weights(blobs, weights, message):
    with pytest.raises(ValueError, match=message):
        SemiSupervisedKMeans(5).fit(blobs.X, sample_weight=weights)


def test_rows_with_another_number_of_columns(blobs):
    found = SemiSupervisedKMeans(5, random_state=0).fit(blobs.X)
    with pytest.raises(ValueError, match=r"3 features.*expecting 4 features"):
        found.predict(blobs.X[:, :3])
