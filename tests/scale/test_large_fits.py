"""The same result from an array, a Dask array and files, whatever the chunks."""

import dask.array as da
import numpy as np
import pytest
import zarr
from sklearn.metrics import adjusted_rand_score

from newfound import SemiSupervisedKMeans, SplitMergeMixture, count_categories, scale
from newfound.errors import InputError
from newfound.labels import encode_labels
from newfound.mixture import sampling, settling
from newfound.scale.rows import held_rows


def assert_same(found, expected):
    np.testing.assert_array_equal(np.asarray(found.labels_), expected.labels_)
    np.testing.assert_array_equal(found.prototypes_, expected.prototypes_)
    np.testing.assert_array_equal(found.weights_, expected.weights_)


def test_categories_of_a_sample_settle_among_all_rows(collection):
    X, truth, y, _ = collection
    mixture = SplitMergeMixture(n_init=1, random_state=0).fit(X, y)
    assert mixture.n_novel_ == 4
    assert adjusted_rand_score(truth, mixture.labels_) > 0.99
    np.testing.assert_array_equal(mixture.labels_[y != -1], y[y != -1])
    np.testing.assert_array_equal(mixture.labels_[y == -1], mixture.predict(X[y == -1]))
    np.testing.assert_allclose(mixture.weights_, np.bincount(mixture.labels_) / len(X))
    V = mixture.projection_.transform(X)
    for code in range(12):
        rows = V[mixture.labels_ == code]
        np.testing.assert_allclose(mixture.means_[code], rows.mean(axis=0), atol=1e-6)
    for code in range(8):
        np.testing.assert_allclose(mixture.prototypes_[code], V[y == code].mean(axis=0), atol=1e-6)
    sizes = np.bincount(mixture.labels_)[8:]
    assert (np.diff(sizes) <= 0).all()  # the largest novel category comes first
    # the sample has the covariances, all rows have the counts
    for code in range(12):
        exact = np.cov(V[mixture.labels_ == code].T, bias=True)
        assert np.trace(mixture.covariances_[code]) == pytest.approx(np.trace(exact), rel=0.25)


@pytest.mark.parametrize("chunks", [(777, 5), (6000, 16)])
def test_a_dask_array_gives_the_same_labels_whatever_its_chunks(
    collection, mixture, in_memory, chunks
):
    expected = in_memory.labels_.copy(), in_memory.predict(collection.X)
    X, y = da.from_array(collection.X, chunks), da.from_array(collection.y, chunks[0])
    found = mixture.fit(X, y)
    assert isinstance(found.labels_, da.Array)
    np.testing.assert_array_equal(found.labels_.compute(), expected[0])
    predicted = found.predict(X)
    assert isinstance(predicted, da.Array)
    np.testing.assert_array_equal(predicted.compute(), expected[1])


@pytest.mark.parametrize("as_lists", [True, False])
def test_parquet_parts_give_the_same_labels(collection, in_memory, write_parts, as_lists):
    folder = write_parts(collection, as_lists=as_lists)
    rows = scale.from_parquet(folder, label_column="label")
    assert rows.shape == (6000, 16)
    assert rows.classes.tolist() == [f"class {code}" for code in range(8)]
    found = SplitMergeMixture(n_components=12, sizes="alike", n_init=1, random_state=0).fit(rows)
    assert_same(found, in_memory)
    np.testing.assert_array_equal(found.predict(rows), in_memory.predict(collection.X))


def test_npy_and_zarr_files_give_the_same_labels(collection, in_memory, tmp_path):
    np.save(tmp_path / "X.npy", collection.X)
    array = zarr.create_array(
        str(tmp_path / "X.zarr"), shape=collection.X.shape, chunks=(999, 7), dtype="float32"
    )
    array[:] = collection.X
    settings = {"n_components": 12, "sizes": "alike", "n_init": 1, "random_state": 0}
    for rows in (
        scale.from_npy(tmp_path / "X.npy", collection.y),
        scale.from_zarr(tmp_path / "X.zarr", collection.y),
    ):
        assert_same(SplitMergeMixture(**settings).fit(rows), in_memory)


def test_float16_is_read_as_float32(collection, write_parts):
    half = collection.X.astype(np.float16)
    settings = {"n_components": 12, "sizes": "alike", "n_init": 1, "random_state": 0}
    from_array = SplitMergeMixture(**settings).fit(half, collection.y)
    folder = write_parts(collection, dtype=np.float16)
    rows = scale.from_parquet(f"{folder}/*.parquet", label_column="label")
    assert_same(SplitMergeMixture(**settings).fit(rows), from_array)


def test_a_given_number_is_kept_among_all_rows(collection):
    """One more than there are: two prototypes share the rows of a class, and become one."""
    mixture = SplitMergeMixture(n_components=13, sizes="alike", random_state=0)
    labels = mixture.fit(collection.X, collection.y).labels_
    assert len(np.unique(labels)) == mixture.n_components_ == 13


def test_k_means_settles_among_all_rows(collection):
    X, truth, y, _ = collection
    found = SemiSupervisedKMeans(12, random_state=0).fit(X, y)
    assert adjusted_rand_score(truth, found.labels_) > 0.85
    np.testing.assert_array_equal(found.labels_[y != -1], y[y != -1])
    own = X - found.cluster_centers_[found.labels_]
    assert found.inertia_ == pytest.approx(float(np.square(own).sum()), rel=1e-5)
    other = SemiSupervisedKMeans(12, random_state=0).fit(da.from_array(X, 1234), y)
    np.testing.assert_array_equal(other.labels_.compute(), found.labels_)
    np.testing.assert_array_equal(other.predict(da.from_array(X)).compute(), found.predict(X))


def test_a_count_is_the_same_from_a_dask_array(collection):
    X, _, y, _ = collection
    expected = count_categories(X, y, random_state=0)
    found = count_categories(da.from_array(X, 999), da.from_array(y, 500), random_state=0)
    assert found == expected
    assert found.n_novel == pytest.approx(4, abs=0.5)
    assert found.known_size == pytest.approx(500, rel=0.1)  # of all rows, not of the sample


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_few_rows_need_no_sample(collection, mixture, dtype):
    X, y = collection.X[:1000].astype(dtype), collection.y[:1000]
    expected = mixture.fit(X, y).labels_.copy()
    means = mixture.means_
    found = mixture.fit(da.from_array(X, 300), y)
    assert isinstance(found.labels_, da.Array)
    np.testing.assert_array_equal(found.labels_.compute(), expected)
    np.testing.assert_array_equal(found.means_, means)


def test_the_order_of_rows_does_not_decide_the_sample(collection):
    X, _, y, _ = collection
    order = np.random.default_rng(1).permutation(len(X))
    state = np.random.RandomState
    _, sample = sampling.rows_and_sample(X, y, state(0), check=None)
    _, other = sampling.rows_and_sample(X[order], y[order], state(0), check=None)
    assert sorted(order[other.positions]) == sorted(sample.positions)
    assert sample.is_uniform.sum() == pytest.approx(1500, rel=0.1)


def test_a_row_that_is_given_often_is_drawn_as_often_as_others(collection):
    X = collection.X.copy()
    X[::2] = X[0]
    _, sample = sampling.rows_and_sample(X, None, np.random.RandomState(0), check=None)
    share = (X[0] == sample.X).all(axis=1).mean()
    assert share == pytest.approx(0.5, abs=0.1)


def test_rare_labels_are_in_the_sample(collection):
    X, truth, _, _ = collection
    y = np.full(len(X), -1)
    for code in range(8):
        y[np.flatnonzero(truth == code)[:40]] = code
    _, sample = sampling.rows_and_sample(X, y, np.random.RandomState(0), check=None)
    drawn = np.bincount(sample.partial.codes[sample.partial.codes >= 0])
    assert (drawn >= 20).all()  # about 32 of 40; a quarter of all rows would be 10
    uniform = sample.partial.codes[sample.is_uniform]
    assert (uniform >= 0).mean() == pytest.approx(320 / 6000, abs=0.02)


def test_prototypes_stay_when_all_rows_have_been_searched(collection, in_memory):
    """Further passes move prototypes less than the tolerance."""
    rows = held_rows(collection.X, encode_labels(collection.y, 6000))
    moved, _ = settling.settle(
        rows, in_memory.projection_.space, in_memory.prototypes_, in_memory.offsets_, pinned=True
    )
    np.testing.assert_allclose(moved, in_memory.prototypes_, atol=5e-3)


@pytest.mark.parametrize("setting", [{"acceptance": "literal"}, {"assign": "soft"}])
def test_what_needs_all_rows_at_once_takes_arrays_only(collection, setting):
    with pytest.raises(InputError, match="Pass an array in memory"):
        SplitMergeMixture(**setting).fit(da.from_array(collection.X), collection.y)


def test_weights_take_arrays_only(collection):
    with pytest.raises(InputError, match="sample_weight look at all rows together"):
        SemiSupervisedKMeans(12).fit(da.from_array(collection.X), None, np.ones(6000))
