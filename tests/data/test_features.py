import numpy as np
import pandas as pd
import pytest

from newfound.data.features import load_features
from newfound.data.reading import read_collection
from newfound.errors import InputError

X = np.arange(12.0).reshape(4, 3)


def by_id(collection):
    return dict(zip(collection.ids, collection.y.tolist(), strict=True))


def test_round_trip(tmp_path):
    X, y = np.arange(6.0).reshape(3, 2), np.array(["cat", "", "dog"])
    np.savez(tmp_path / "f.npz", X=X, y=y)
    loaded_X, loaded_y = load_features(tmp_path / "f.npz")
    np.testing.assert_array_equal(loaded_X, X)
    np.testing.assert_array_equal(loaded_y, y)


def test_half_precision_is_widened(tmp_path):
    np.savez(tmp_path / "f.npz", X=np.ones((2, 2), np.float16), y=[0, -1])
    assert load_features(tmp_path / "f.npz")[0].dtype == np.float32


def test_objects_are_never_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("the file was unpickled",))

    labels = np.array(["cat", Trap()], dtype=object)
    np.savez(tmp_path / "f.npz", X=np.ones((2, 2)), y=labels, allow_pickle=True)
    with pytest.raises(InputError, match="not Python objects"):
        load_features(tmp_path / "f.npz")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [({"X": [[1.0]]}, "but no y"), ({"features": [[1.0]]}, "no X and no y")],
)
def test_missing_arrays_are_named(tmp_path, arrays, message):
    np.savez(tmp_path / "f.npz", **arrays)
    with pytest.raises(InputError, match=message):
        load_features(tmp_path / "f.npz")


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 broken"])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "f.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"is not an \.npz archive"):
        load_features(tmp_path / "f.npz")


def test_no_file(tmp_path):
    with pytest.raises(InputError, match="There is no file"):
        load_features(tmp_path / "f.npz")


@pytest.mark.parametrize(
    ("given", "kept"),
    [("float16", "float32"), ("float64", "float64"), ("uint8", "float32"), ("int64", "float64")],
)
def test_features_are_floating_point(tmp_path, given, kept):
    np.save(tmp_path / "f.npy", X.astype(given))
    features = read_collection(tmp_path / "f.npy").features
    assert features.dtype == kept
    np.testing.assert_array_equal(features, X)


@pytest.mark.parametrize(
    "array",
    [np.ones(3), np.ones((2, 2, 2)), np.array([["a"]]), np.ones((2, 0)), np.ones((1, 1)) * 1j],
)
def test_arrays_that_are_no_features(tmp_path, array):
    np.save(tmp_path / "f.npy", array)
    with pytest.raises(InputError, match="a row for each item"):
        read_collection(tmp_path / "f.npy")


@pytest.mark.parametrize("content", [b"", b"no array", b"\x93NUMPY\x01\x00"])
def test_files_that_are_no_arrays(tmp_path, content, table):
    with pytest.raises(InputError, match="cannot be read as a plain array"):
        read_collection(table(tmp_path, content, "f.npy"))


def test_an_archive_under_the_name_of_an_array(tmp_path):
    np.savez(tmp_path / "f.npz", X=X)
    (tmp_path / "f.npz").rename(tmp_path / "f.npy")
    with pytest.raises(InputError, match=r"Name it .npz"):
        read_collection(tmp_path / "f.npy")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "Float64"])
def test_parquet_of_numbers(tmp_path, dtype, parquet):
    columns = {f"f{j}": pd.Series(X[:, j]).astype(dtype) for j in range(3)}
    y = ["cat", None, "", "owl"]
    source = parquet(tmp_path, id=list("cbad"), note=["x"] * 4, ok=[True] * 4, label=y, **columns)
    collection = read_collection(source)
    assert collection.kind == "features"
    assert collection.ids == ["a", "b", "c", "d"]
    assert collection.y.tolist() == [None, None, "cat", "owl"]
    np.testing.assert_array_equal(collection.features, X[[2, 1, 0, 3]])
    assert collection.features.dtype == ("float32" if dtype == "float32" else "float64")


def test_numbers_that_are_ids_and_labels_are_no_features(tmp_path, parquet):
    source = parquet(tmp_path, ID=[30, 10, 20], Label=[0, 1, -1], f0=[1.0, 2.0, 3.0])
    collection = read_collection(source)
    assert collection.features.tolist() == [[2.0], [3.0], [1.0]]
    assert by_id(collection) == {"10": 1, "20": None, "30": 0}


def test_parquet_of_lists(tmp_path, parquet):
    rows = [row.astype(np.float32) for row in X]
    source = parquet(tmp_path, embedding=rows, year=[1, 2, 3, 4], label=[0, -1, 1, -1])
    collection = read_collection(source)
    np.testing.assert_array_equal(collection.features, X)
    assert collection.features.dtype == np.float32
    assert collection.ids == ["0", "1", "2", "3"]
    assert collection.y.tolist() == [0, None, 1, None]
