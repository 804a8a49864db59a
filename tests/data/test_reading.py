import numpy as np
import pytest

from newfound.data.reading import read_collection
from newfound.errors import InputError

X = np.arange(12.0).reshape(4, 3)


def test_no_such_file(folder, tmp_path):
    with pytest.raises(InputError, match=r"There is no file .*labels.csv"):
        read_collection(folder, tmp_path / "labels.csv")
    with pytest.raises(InputError, match="There is no file or folder"):
        read_collection(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["a.jpg", "a.pkl", "a"])
def test_other_sources(tmp_path, name, table):
    with pytest.raises(InputError, match="is not a kind of file that newfound reads"):
        read_collection(table(tmp_path, "", name))


def test_endings_in_capitals(tmp_path, table, parquet):
    np.savez(tmp_path / "f.npz", X=X, y=[0, 1, -1, -1])
    (tmp_path / "f.npz").rename(tmp_path / "F.NPZ")
    labels = table(tmp_path, "path,label\n", "LABELS.CSV")
    assert len(read_collection(tmp_path / "F.NPZ")) == 4
    parquet(tmp_path, f0=[1.0]).rename(tmp_path / "F.PARQUET")
    assert len(read_collection(tmp_path / "F.PARQUET")) == 1
    assert len(read_collection(tmp_path, labels)) == 0
