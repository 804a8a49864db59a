import numpy as np
import pandas as pd
import pytest

from newfound.data.reading import read_collection
from newfound.errors import InputError


def by_id(collection):
    return dict(zip(collection.ids, collection.y.tolist(), strict=True))


@pytest.mark.parametrize("values", [["cat", None, "owl"], [7, 7, 3]])
def test_a_folder_and_parquet(folder, tmp_path, values):
    frame = pd.DataFrame({"path": ["a.jpg", "b.PNG", "birds/c.jpeg"], "label": values})
    frame.to_parquet(tmp_path / "labels.parquet")
    collection = read_collection(folder, tmp_path / "labels.parquet")
    assert collection.y.tolist() == [*values, None]
    assert [type(label) for label in collection.y] == [*map(type, values), type(None)]


@pytest.mark.parametrize("dtype", ["object", "string", "category"])
def test_missing_labels_of_every_type_in_parquet(folder, tmp_path, dtype):
    labels = pd.Series(["cat", None], dtype=dtype)
    frame = pd.DataFrame({"path": ["a.jpg", "b.PNG"], "label": labels})
    frame.to_parquet(tmp_path / "labels.parquet")
    assert read_collection(folder, tmp_path / "labels.parquet").y.tolist()[:2] == ["cat", None]


def test_numbers_with_gaps_in_parquet(folder, tmp_path):
    frame = pd.DataFrame({"path": ["a.jpg", "b.PNG"], "label": [3.0, np.nan]})
    frame.to_parquet(tmp_path / "labels.parquet")
    assert read_collection(folder, tmp_path / "labels.parquet").y.tolist()[:2] == [3, None]


@pytest.mark.parametrize("text", ["", "  ", "nan", "NaN", "<NA>", "-1", '""'])
def test_texts_that_mean_no_label(folder, tmp_path, text, table):
    labels = table(tmp_path, f"path,label\na.jpg,{text}\nb.PNG,cat\n")
    assert by_id(read_collection(folder, labels))["a.jpg"] is None


@pytest.mark.parametrize("second", ["a.jpg", "./a.jpg", ".\\a.jpg", "{folder}/a.jpg"])
def test_two_labels_for_one_file(folder, tmp_path, second, table):
    text = f"path,label\na.jpg,cat\n{second.format(folder=folder)},owl\n"
    with pytest.raises(InputError, match=r"gives a.jpg two labels, 'cat' and 'owl'"):
        read_collection(folder, table(tmp_path, text))
