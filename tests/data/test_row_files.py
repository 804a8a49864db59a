import numpy as np
import pandas as pd
import pytest

from newfound.data.collection import Skipped
from newfound.data.reading import read_collection
from newfound.errors import InputError


def by_id(collection):
    return dict(zip(collection.ids, collection.y.tolist(), strict=True))


def objects(values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


X = np.arange(12.0).reshape(4, 3)


def test_npz(tmp_path):
    np.savez(tmp_path / "f.npz", X=X, y=np.array(["cat", "", "owl", "nan"]))
    collection = read_collection(tmp_path / "f.npz")
    assert collection.kind == "features"
    assert collection.ids == ["0", "1", "2", "3"]
    assert collection.y.tolist() == ["cat", None, "owl", None]
    assert collection.paths is None
    np.testing.assert_array_equal(collection.features, X)


def test_more_than_ten_rows_stay_in_their_order(tmp_path):
    np.savez(tmp_path / "f.npz", X=np.arange(12.0)[:, None], y=np.arange(12))
    collection = read_collection(tmp_path / "f.npz")
    assert collection.ids == [str(i) for i in range(12)]
    assert collection.y.tolist() == list(range(12))
    assert type(collection.y[0]) is int


def test_npz_with_another_number_of_labels(tmp_path):
    np.savez(tmp_path / "f.npz", X=X, y=[1, 2])
    with pytest.raises(InputError, match="y has 2 labels, but X has 4 rows"):
        read_collection(tmp_path / "f.npz")


class Trap:
    def __reduce__(self):
        return (pytest.fail, ("the file was unpickled",))


def test_objects_are_never_unpickled(tmp_path):
    np.save(tmp_path / "f.npy", np.array([[Trap()]]), allow_pickle=True)
    with pytest.raises(InputError, match="not Python objects"):
        read_collection(tmp_path / "f.npy")
    np.savez(tmp_path / "f.npz", X=X, y=objects([Trap()] * 4), allow_pickle=True)
    with pytest.raises(InputError, match="not Python objects"):
        read_collection(tmp_path / "f.npz")


def test_rows_that_are_not_finite_are_skipped(tmp_path):
    broken = X.copy()
    broken[1, 2], broken[2, 0] = np.nan, np.inf
    np.savez(tmp_path / "f.npz", X=broken, y=["a", "b", "c", ""])
    collection = read_collection(tmp_path / "f.npz")
    assert collection.ids == ["0", "3"]
    assert collection.y.tolist() == ["a", None]
    np.testing.assert_array_equal(collection.features, X[[0, 3]])
    reason = "a feature is not a finite number"
    assert collection.skipped == [Skipped("1", reason), Skipped("2", reason)]


@pytest.fixture
def array_file(tmp_path):
    np.save(tmp_path / "f.npy", X)
    return tmp_path / "f.npy"


def test_npy_alone_has_no_labels(array_file):
    assert read_collection(array_file).y.tolist() == [None] * 4


@pytest.mark.parametrize(
    ("text", "ids", "y", "order"),
    [
        ('label\ncat\n""\nowl\nnan\n', "0123", ["cat", None, "owl", None], [0, 1, 2, 3]),
        ("id,label\n2,owl\n0,cat\n", "0123", ["cat", None, "owl", None], [0, 1, 2, 3]),
        ("id,label\n3,d\n2,c\n1,b\n0,a\n", "0123", ["a", "b", "c", "d"], [0, 1, 2, 3]),
        ("id,label\nz,a\ny,b\nx,\nw,d\n", "wxyz", ["d", None, "b", "a"], [3, 2, 1, 0]),
        ("id,label\n4,a\n3,b\n2,c\n1,d\n", "1234", ["d", "c", "b", "a"], [3, 2, 1, 0]),
    ],
    ids=["in order", "some numbers", "all numbers", "names", "numbers from one"],
)
def test_npy_and_a_table(array_file, tmp_path, text, ids, y, order, table):
    collection = read_collection(array_file, table(tmp_path, text))
    assert collection.ids == list(ids)
    assert collection.y.tolist() == y
    np.testing.assert_array_equal(collection.features, X[order])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("label\ncat\nowl\n", r"has 2 labels, but .* has 4 rows"),
        (
            "id,label\n0,cat\n9,owl\n",
            r"1 id in .* is not in .*: 9. Rows without ids are numbered from 0",
        ),
        ("id,label\n0,cat\n0,owl\n", "gives 0 two labels"),
        ("id,label\na,1\na,2\nb,3\nc,4\n", r"must be unique; these are not: a\.$"),
        ("id,label\na,1\n,2\nb,3\nc,4\n", "is empty"),
        ("id\n0\n", "but no 'label'"),
    ],
)
def test_npy_and_a_table_that_does_not_fit(array_file, tmp_path, text, message, table):
    with pytest.raises(InputError, match=message):
        read_collection(array_file, table(tmp_path, text))


def test_labels_in_two_places(tmp_path, table):
    np.savez(tmp_path / "f.npz", X=X, y=[1, -1, -1, -1])
    labels = table(tmp_path, "label\na\nb\nc\nd\n")
    with pytest.raises(InputError, match=r"Both .* have labels"):
        read_collection(tmp_path / "f.npz", labels)
    np.savez(tmp_path / "f.npz", X=X, y=[-1, -1, -1, -1])
    assert read_collection(tmp_path / "f.npz", labels).y.tolist() == list("abcd")


def test_parquet_with_paths_takes_them_for_ids(tmp_path, parquet):
    source = parquet(tmp_path, path=["b.jpg", "a.jpg"], f0=[1.0, 2.0])
    assert read_collection(source).ids == ["a.jpg", "b.jpg"]


def test_parquet_with_gaps(tmp_path, parquet):
    collection = read_collection(parquet(tmp_path, v=[[1.0, 2.0], None, [3.0, 4.0]]))
    assert collection.ids == ["0", "2"]
    assert [item.path for item in collection.skipped] == ["1"]
    assert read_collection(parquet(tmp_path, v=[None, [1.0, 2.0]])).ids == ["1"]
    collection = read_collection(parquet(tmp_path, f0=pd.Series([1, None, 3], dtype="Int64")))
    assert collection.features.tolist() == [[1.0], [3.0]]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"v": [[1.0], [1.0, 2.0]]}, "different lengths: 1, 2"),
        ({"v": [[1.0]], "w": [[2.0]]}, "several columns of lists: v, w"),
        ({"v": [["a"]]}, "a row for each item"),
        ({"note": ["a"], "label": ["b"]}, "no 'text' and no numbers"),
        ({"path": ["a.jpg"], "label": ["b"]}, r"give their folder, and f.parquet as the labels"),
        ({"text": ["a"], "f0": [1.0]}, "has a column 'text' and 1 feature"),
        (
            {"id": ["a", "a", "b"], "f0": [1.0, 2.0, 3.0]},
            r"Ids in .*f.parquet must .* are not: a\.$",
        ),
        ({"id": ["a", None], "f0": [1.0, 2.0]}, "is empty"),
    ],
)
def test_parquet_that_cannot_be_used(tmp_path, columns, message, parquet):
    with pytest.raises(InputError, match=message):
        read_collection(parquet(tmp_path, **columns))


def test_parquet_with_ids_and_a_table(tmp_path, table, parquet):
    source = parquet(tmp_path, id=["b", "a"], f0=[1.0, 2.0])
    collection = read_collection(source, table(tmp_path, "id,label\na,cat\n"))
    assert by_id(collection) == {"a": "cat", "b": None}
    assert collection.features.tolist() == [[2.0], [1.0]]
    with pytest.raises(InputError, match=r"1 id in .* is not in .*: c. Check the ids"):
        read_collection(source, table(tmp_path, "id,label\na,cat\nc,owl\n"))


def test_a_csv_of_texts(tmp_path, table):
    text = 'text,label\n"where, please, is my card",card\n  hello  ,\n007,agent\n'
    collection = read_collection(table(tmp_path, text, "intents.csv"))
    assert collection.kind == "texts"
    assert collection.texts == ["where, please, is my card", "hello", "007"]
    assert collection.y.tolist() == ["card", None, "agent"]
    assert collection.ids == ["0", "1", "2"]
    assert collection.features is None


def test_texts_with_ids_and_gaps(tmp_path, table):
    text = "id;label;text\nc;x;third\nb;;\na;y;first\n"
    collection = read_collection(table(tmp_path, text, "intents.csv"))
    assert collection.ids == ["a", "c"]
    assert collection.texts == ["first", "third"]
    assert collection.y.tolist() == ["y", "x"]
    assert collection.skipped == [Skipped("b", "the text is empty")]


def test_texts_and_a_table_of_labels(tmp_path, table):
    source = table(tmp_path, "text\none\ntwo\n", "t.csv")
    assert read_collection(source, table(tmp_path, "label\na\n-1\n")).y.tolist() == ["a", None]


def test_parquet_of_texts(tmp_path, parquet):
    collection = read_collection(parquet(tmp_path, text=["one", None], label=["a", None]))
    assert collection.texts == ["one"]
    assert collection.skipped == [Skipped("1", "the text is empty")]


def test_a_table_of_paths_is_not_a_source(tmp_path, table):
    with pytest.raises(InputError, match=r"give their folder, and labels.csv as the labels"):
        read_collection(table(tmp_path, "path,label\na.jpg,cat\n"))
