import numpy as np
import pytest

from newfound.data.features import load_features
from newfound.errors import InputError


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
    with pytest.raises(InputError, match=r"is no \.npz archive"):
        load_features(tmp_path / "f.npz")


def test_no_file(tmp_path):
    with pytest.raises(InputError, match="There is no file"):
        load_features(tmp_path / "f.npz")
