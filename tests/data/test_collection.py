import os
import sys
import unicodedata
import warnings

import numpy as np
import pandas as pd
import pytest

from newfound.data.collection import Collection, Skipped, check_discoverable, read_collection
from newfound.errors import InputError, MissingExtraError

SOURCES = ["a.jpg", "b.PNG", "birds/c.jpeg", "birds/deep/d.webp"]


def place(folder, *names):
    """Files that look like pictures; nothing is opened while they are listed."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"not opened here")
    return folder


@pytest.fixture
def folder(tmp_path):
    return place(tmp_path / "pictures", *SOURCES)


def table(tmp_path, text, name="labels.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def by_id(collection):
    return dict(zip(collection.ids, collection.y.tolist(), strict=True))


def objects(values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


# A folder and a table


def test_a_folder_and_a_csv(folder, tmp_path):
    labels = table(tmp_path, "path,label\nbirds/c.jpeg,owl\na.jpg,cat\nb.PNG,\n")
    collection = read_collection(folder, labels)
    assert collection.ids == SOURCES
    assert collection.y.dtype == object
    assert collection.y.tolist() == ["cat", None, "owl", None]
    assert collection.paths == [folder / name for name in SOURCES]
    assert collection.kind == "pictures"
    assert collection.root == folder
    assert collection.skipped == []
    assert collection.features is None
    assert collection.texts is None
    assert len(collection) == 4
    assert collection.is_labelled.tolist() == [True, False, True, False]


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


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbfpath,label\na.jpg,cat\n",
        "path;label\na.jpg;cat\n",
        "path\tlabel\na.jpg\tcat\n",
        "path|label\na.jpg|cat\n",
        "Path , LABEL\n a.jpg , cat \n",
        "Path ; LABEL\n a.jpg ; cat \n",
        "\n  \npath;label\na.jpg;cat\n",
        'path, label\n"a.jpg", "cat"\n',
        "number,path,who,label\n1,a.jpg,me,cat\n",
        "path,label\r\na.jpg,cat\r\n",
        "\n\npath,label\n\na.jpg,cat\n\n",
        '"path","label"\n"a.jpg","cat"\n',
        "path,label\n./a.jpg,cat\n",
        "path,label\nbirds/../a.jpg,cat\n",
        "path,label\na.jpg,cat\na.jpg,cat\na.jpg,\n",
        "path,label\na.jpg,\na.jpg,cat\n",
    ],
)
def test_ways_to_write_a_csv(folder, tmp_path, text):
    assert read_collection(folder, table(tmp_path, text)).y.tolist() == ["cat", None, None, None]


def test_a_comma_in_quotes_does_not_hide_the_semicolon(folder, tmp_path):
    labels = table(tmp_path, 'path;label;"who, when, where"\na.jpg;cat;"me, now, here"\n')
    assert by_id(read_collection(folder, labels))["a.jpg"] == "cat"


@pytest.mark.parametrize("text", ["001", "1.0", "NA", "None", "True", "1e3", "0"])
def test_labels_stay_the_text_they_are(folder, tmp_path, text):
    labels = table(tmp_path, f"path,label\na.jpg,{text}\n")
    assert by_id(read_collection(folder, labels))["a.jpg"] == text


@pytest.mark.parametrize("text", ["", "  ", "nan", "NaN", "<NA>", "-1", '""'])
def test_texts_that_mean_no_label(folder, tmp_path, text):
    labels = table(tmp_path, f"path,label\na.jpg,{text}\nb.PNG,cat\n")
    assert by_id(read_collection(folder, labels))["a.jpg"] is None


def test_back_slashes(folder, tmp_path):
    labels = table(tmp_path, "path,label\nbirds\\deep\\d.webp,owl\n.\\a.jpg,cat\n")
    assert read_collection(folder, labels).y.tolist() == ["cat", None, None, "owl"]


def test_a_back_slash_in_a_name_is_found_first(folder, tmp_path):
    place(folder, "birds\\c.jpeg")
    labels = table(tmp_path, "path,label\nbirds\\c.jpeg,owl\n")
    assert by_id(read_collection(folder, labels))["birds\\c.jpeg"] == "owl"
    assert by_id(read_collection(folder, labels))["birds/c.jpeg"] is None


@pytest.mark.parametrize("prefix", ["", "{folder}/"])
@pytest.mark.parametrize("forms", [("NFC", "NFD"), ("NFD", "NFC")])
def test_accents_in_either_spelling(tmp_path, forms, prefix):
    on_disk, in_table = (unicodedata.normalize(form, "é.jpg") for form in forms)
    assert on_disk != in_table
    folder = place(tmp_path / "pictures", on_disk)
    path = prefix.format(folder=folder) + in_table
    collection = read_collection(folder, table(tmp_path, f"path,label\n{path},cat\n"))
    assert collection.ids == [on_disk]
    assert collection.y.tolist() == ["cat"]


def test_two_files_that_differ_in_the_spelling_of_accents(tmp_path):
    names = [unicodedata.normalize(form, "é.jpg") for form in ("NFC", "NFD")]
    folder = place(tmp_path / "pictures", *names)
    labels = table(tmp_path, f"path,label\n{names[0]},cat\n{names[1]},owl\n")
    assert by_id(read_collection(folder, labels)) == {names[0]: "cat", names[1]: "owl"}


def test_a_way_back_through_a_link(folder, tmp_path):
    """The folder above a link's target is not the folder above the link."""
    place(tmp_path / "store" / "pictures", "e.jpg")
    (tmp_path / "store" / "deep").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "store" / "deep")
    labels = table(tmp_path, f"path,label\n{tmp_path}/store/pictures/e.jpg,cat\n")
    collection = read_collection(tmp_path / "link" / ".." / "pictures", labels)
    assert by_id(collection) == {"e.jpg": "cat"}
    assert collection.paths[0].is_file()


def test_hidden_and_other_files_are_left_out_unless_named(folder, tmp_path):
    place(folder, ".hidden.jpg", ".git/e.jpg", "notes.txt", "Thumbs.db", "scan.xyz")
    os.mkfifo(folder / "pipe.jpg")
    labels = table(tmp_path, "path,label\nscan.xyz,cat\n.hidden.jpg,owl\n", "labels.csv")
    assert read_collection(folder, labels).ids == sorted([*SOURCES, ".hidden.jpg", "scan.xyz"])
    assert read_collection(folder, table(tmp_path, "path,label\n")).ids == SOURCES


def test_absolute_paths_within_the_folder(folder, tmp_path):
    labels = table(tmp_path, f"path,label\n{folder}/a.jpg,cat\n")
    assert by_id(read_collection(folder, labels))["a.jpg"] == "cat"


def test_a_folder_that_is_a_link(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    text = f"path,label\n{tmp_path}/link/a.jpg,cat\n{folder}/b.PNG,cat\nbirds/c.jpeg,owl\n"
    collection = read_collection(tmp_path / "link", table(tmp_path, text))
    assert by_id(collection) == dict(zip(SOURCES, ["cat", "cat", "owl", None], strict=True))
    assert collection.skipped == []


@pytest.mark.parametrize(
    "path",
    [
        "../secret.jpg",
        "birds/../../secret.jpg",
        "..\\secret.jpg",
        "{tmp}/secret.jpg",
        "/etc/passwd",
        "C:\\pictures\\a.jpg",
        "\\\\server\\share\\a.jpg",
        "link.jpg",
        "linked/secret.jpg",
        "hop.jpg",
        "../pictures2/e.jpg",
        "..",
    ],
)
def test_paths_that_leave_the_folder(folder, tmp_path, path):
    place(tmp_path, "secret.jpg", "elsewhere/secret.jpg", "pictures2/e.jpg")
    (folder / "link.jpg").symlink_to(tmp_path / "secret.jpg")
    (folder / "hop.jpg").symlink_to("link.jpg")
    (folder / "linked").symlink_to(tmp_path / "elsewhere")
    labels = table(tmp_path, f"path,label\na.jpg,cat\n{path.format(tmp=tmp_path)},owl\n")
    with pytest.raises(InputError, match="names files outside of"):
        read_collection(folder, labels)


def test_links_in_the_folder(folder, tmp_path):
    place(tmp_path, "secret.jpg", "elsewhere/secret.jpg")
    (folder / "inside.jpg").symlink_to("birds/c.jpeg")
    (folder / "nothing.jpg").symlink_to("nothing at all")
    (folder / "outside.jpg").symlink_to(tmp_path / "secret.jpg")
    (folder / "ring.jpg").symlink_to("ring.jpg")
    (folder / "more").symlink_to(tmp_path / "elsewhere")
    (folder / "notes").symlink_to(tmp_path / "nothing at all")
    collection = read_collection(folder)
    assert collection.ids == sorted([*SOURCES, "inside.jpg"])
    assert collection.skipped == [
        Skipped("more", "a link to a folder, which is not followed; copy the folder"),
        Skipped("nothing.jpg", "a link to a file that is not there"),
        Skipped("outside.jpg", "a link that leads out of the folder; copy the file"),
        Skipped("ring.jpg", "a link to a file that is not there"),
    ]


def test_a_name_that_is_not_utf_8(folder):
    name = os.fsdecode(b"caf\xe9.jpg")
    (folder / name).touch()
    collection = read_collection(folder)
    assert collection.ids == SOURCES
    assert collection.skipped == [Skipped("caf\\xe9.jpg", "its name is not UTF-8; give it another")]


def unreadable(monkeypatch, name):
    real_scandir = os.scandir

    def scandir(path):
        if os.path.basename(os.path.normpath(path)) == name:
            raise PermissionError(13, "Permission denied", str(path))
        return real_scandir(path)

    monkeypatch.setattr(os, "scandir", scandir)


def test_folders_without_permission(folder, monkeypatch):
    """Root may read all, so the operating system's answer is played."""
    unreadable(monkeypatch, "deep")
    collection = read_collection(folder)
    assert collection.ids == SOURCES[:3]
    assert collection.skipped == [
        Skipped("birds/deep/", "the folder cannot be read: Permission denied")
    ]
    unreadable(monkeypatch, "pictures")
    with pytest.raises(InputError, match="cannot be read: Permission denied"):
        read_collection(folder)


@pytest.mark.parametrize(("n", "end"), [(1, "gone0.jpg"), (5, "gone4.jpg"), (7, "and 2 more")])
def test_labels_for_files_that_do_not_exist(folder, tmp_path, n, end):
    names = "".join(f"gone{i}.jpg,cat\n" for i in range(n))
    labels = table(tmp_path, f"path,label\na.jpg,cat\n{names}")
    message = f"{n} of {n + 1} paths in {labels} lead to no file: .*{end}. Paths are relative"
    with pytest.raises(InputError, match=message):
        read_collection(folder, labels)


def test_a_row_without_a_path(folder, tmp_path):
    with pytest.raises(InputError, match=r"1 of 2 paths .* lead to no file: \(empty\)"):
        read_collection(folder, table(tmp_path, "path,label\na.jpg,cat\n,owl\n"))


def test_a_folder_is_no_picture(folder, tmp_path):
    with pytest.raises(InputError, match="lead to no file: birds"):
        read_collection(folder, table(tmp_path, "path,label\nbirds,owl\n"))


@pytest.mark.parametrize("path", ["pictures/birds/c.jpeg", "data\\pictures\\birds\\c.jpeg"])
def test_the_commonest_mistake_is_named(folder, tmp_path, path):
    with pytest.raises(InputError, match=r"meant to be birds/c.jpeg\?"):
        read_collection(folder, table(tmp_path, f"path,label\n{path},owl\n"))


@pytest.mark.parametrize("second", ["a.jpg", "./a.jpg", ".\\a.jpg", "{folder}/a.jpg"])
def test_two_labels_for_one_file(folder, tmp_path, second):
    text = f"path,label\na.jpg,cat\n{second.format(folder=folder)},owl\n"
    with pytest.raises(InputError, match=r"gives a.jpg two labels, 'cat' and 'owl'"):
        read_collection(folder, table(tmp_path, text))


def test_the_order_of_the_file_system_changes_nothing(folder, monkeypatch):
    expected = read_collection(folder)
    real_scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: reversed(list(real_scandir(path))))
    assert read_collection(folder).ids == expected.ids
    assert read_collection(folder).y.tolist() == expected.y.tolist()


# Bad tables


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be read as a CSV"),
        ("a.jpg,cat\nb.PNG,owl\n", "has the columns a.jpg, cat, but no 'path'"),
        ("path\na.jpg\n", "has the columns path, but no 'label'"),
        ("path,label\na, b, c.jpg,cat\n", "put texts that have a comma in quotes"),
        ("path,label\na.jpg,cat\nb,c,cat\n", "put texts that have a comma in quotes"),
        ('path,label\n"a.jpg,cat\n', "cannot be read as a CSV"),
        ("path,label\na.jpg,café\n".encode("latin-1"), "not in UTF-8"),
        ("path,label\na.jpg,cat\n".encode("utf-16"), "not in UTF-8"),
        ("path,label,LABEL\na.jpg,cat,owl\n", "has several columns label"),
    ],
)
def test_bad_csv_files(folder, tmp_path, text, message):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as a program may: a warning alone would not do
        with pytest.raises(InputError, match=message):
            read_collection(folder, table(tmp_path, text))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("labels.parquet", "cannot be read as Parquet"),
        ("labels.xlsx", "no table that can be read"),
    ],
)
def test_other_tables(folder, tmp_path, name, message):
    with pytest.raises(InputError, match=message):
        read_collection(folder, table(tmp_path, "path,label\na.jpg,cat\n", name))


def test_no_such_file(folder, tmp_path):
    with pytest.raises(InputError, match=r"There is no file .*labels.csv"):
        read_collection(folder, tmp_path / "labels.csv")
    with pytest.raises(InputError, match="There is no file or folder"):
        read_collection(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["a.jpg", "a.pkl", "a"])
def test_other_sources(tmp_path, name):
    with pytest.raises(InputError, match="of no kind that can be read"):
        read_collection(table(tmp_path, "", name))


def test_without_pandas_the_command_is_named(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    labels = table(tmp_path, "path,label\na.jpg,cat\n")
    with pytest.raises(MissingExtraError, match=r"pip install 'newfound\[report\]'"):
        read_collection(folder, labels)
    assert read_collection(folder).ids == SOURCES  # class folders need no table


def test_without_pyarrow_the_command_is_named(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"'pyarrow' could not .*newfound\[report\]'"):
        read_collection(folder, table(tmp_path, "", "labels.parquet"))


# Class folders


@pytest.mark.parametrize("name", ["unlabelled", "unlabeled", "unknown", "Unlabelled"])
def test_class_folders(tmp_path, name):
    place(tmp_path, "cat/1.jpg", "cat/old/2.jpg", "owl/3.jpg", f"{name}/4.jpg", "5.jpg")
    (tmp_path / "empty").mkdir()
    collection = read_collection(tmp_path)
    assert by_id(collection) == {
        "cat/1.jpg": "cat",
        "cat/old/2.jpg": "cat",
        "owl/3.jpg": "owl",
        f"{name}/4.jpg": None,
        "5.jpg": None,
    }


def test_another_name_for_the_unlabelled(tmp_path):
    place(tmp_path, "ToDo/1.jpg", "cat/2.jpg", "unknown/3.jpg")
    collection = read_collection(tmp_path, unlabelled_folder="ToDo")
    assert collection.y.tolist() == [None, "cat", "unknown"]
    with pytest.raises(InputError, match="no folder 'other'"):
        read_collection(tmp_path, unlabelled_folder="other")


def test_a_table_wins_over_folders(folder, tmp_path):
    collection = read_collection(folder, table(tmp_path, "path,label\na.jpg,cat\n"))
    assert by_id(collection)["birds/c.jpeg"] is None


# Features


X = np.arange(12.0).reshape(4, 3)


def test_npz(tmp_path):
    np.savez(tmp_path / "f.npz", X=X, y=np.array(["cat", "", "owl", "nan"]))
    collection = read_collection(tmp_path / "f.npz")
    assert collection.kind == "features"
    assert collection.ids == ["0", "1", "2", "3"]
    assert collection.y.tolist() == ["cat", None, "owl", None]
    assert collection.paths is None
    np.testing.assert_array_equal(collection.features, X)


def test_endings_in_capitals(tmp_path):
    np.savez(tmp_path / "f.npz", X=X, y=[0, 1, -1, -1])
    (tmp_path / "f.npz").rename(tmp_path / "F.NPZ")
    labels = table(tmp_path, "path,label\n", "LABELS.CSV")
    assert len(read_collection(tmp_path / "F.NPZ")) == 4
    parquet(tmp_path, f0=[1.0]).rename(tmp_path / "F.PARQUET")
    assert len(read_collection(tmp_path / "F.PARQUET")) == 1
    assert len(read_collection(tmp_path, labels)) == 0


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


@pytest.mark.parametrize("content", [b"", b"no array", b"\x93NUMPY\x01\x00"])
def test_files_that_are_no_arrays(tmp_path, content):
    with pytest.raises(InputError, match="cannot be read as a plain array"):
        read_collection(table(tmp_path, content, "f.npy"))


def test_an_archive_under_the_name_of_an_array(tmp_path):
    np.savez(tmp_path / "f.npz", X=X)
    (tmp_path / "f.npz").rename(tmp_path / "f.npy")
    with pytest.raises(InputError, match=r"Name it .npz"):
        read_collection(tmp_path / "f.npy")


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
def test_npy_and_a_table(array_file, tmp_path, text, ids, y, order):
    collection = read_collection(array_file, table(tmp_path, text))
    assert collection.ids == list(ids)
    assert collection.y.tolist() == y
    np.testing.assert_array_equal(collection.features, X[order])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("label\ncat\nowl\n", r"has 2 labels, but .* has 4 rows"),
        ("id,label\n0,cat\n9,owl\n", r"1 ids .*: 9. Rows without ids are numbered from 0"),
        ("id,label\n0,cat\n0,owl\n", "gives 0 two labels"),
        ("id,label\na,1\na,2\nb,3\nc,4\n", r"must be unique; these are not: a\.$"),
        ("id,label\na,1\n,2\nb,3\nc,4\n", "is empty"),
        ("id\n0\n", "but no 'label'"),
    ],
)
def test_npy_and_a_table_that_does_not_fit(array_file, tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_collection(array_file, table(tmp_path, text))


def test_labels_in_two_places(tmp_path):
    np.savez(tmp_path / "f.npz", X=X, y=[1, -1, -1, -1])
    labels = table(tmp_path, "label\na\nb\nc\nd\n")
    with pytest.raises(InputError, match="has labels of its own"):
        read_collection(tmp_path / "f.npz", labels)
    np.savez(tmp_path / "f.npz", X=X, y=[-1, -1, -1, -1])
    assert read_collection(tmp_path / "f.npz", labels).y.tolist() == list("abcd")


def parquet(tmp_path, **columns):
    pd.DataFrame(columns).to_parquet(tmp_path / "f.parquet")
    return tmp_path / "f.parquet"


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "Float64"])
def test_parquet_of_numbers(tmp_path, dtype):
    columns = {f"f{j}": pd.Series(X[:, j]).astype(dtype) for j in range(3)}
    y = ["cat", None, "", "owl"]
    source = parquet(tmp_path, id=list("cbad"), note=["x"] * 4, ok=[True] * 4, label=y, **columns)
    collection = read_collection(source)
    assert collection.kind == "features"
    assert collection.ids == ["a", "b", "c", "d"]
    assert collection.y.tolist() == [None, None, "cat", "owl"]
    np.testing.assert_array_equal(collection.features, X[[2, 1, 0, 3]])
    assert collection.features.dtype == ("float32" if dtype == "float32" else "float64")


def test_numbers_that_are_ids_and_labels_are_no_features(tmp_path):
    source = parquet(tmp_path, ID=[30, 10, 20], Label=[0, 1, -1], f0=[1.0, 2.0, 3.0])
    collection = read_collection(source)
    assert collection.features.tolist() == [[2.0], [3.0], [1.0]]
    assert by_id(collection) == {"10": 1, "20": None, "30": 0}


def test_parquet_of_lists(tmp_path):
    rows = [row.astype(np.float32) for row in X]
    source = parquet(tmp_path, embedding=rows, year=[1, 2, 3, 4], label=[0, -1, 1, -1])
    collection = read_collection(source)
    np.testing.assert_array_equal(collection.features, X)
    assert collection.features.dtype == np.float32
    assert collection.ids == ["0", "1", "2", "3"]
    assert collection.y.tolist() == [0, None, 1, None]


def test_parquet_with_paths_takes_them_for_ids(tmp_path):
    source = parquet(tmp_path, path=["b.jpg", "a.jpg"], f0=[1.0, 2.0])
    assert read_collection(source).ids == ["a.jpg", "b.jpg"]


def test_parquet_with_gaps(tmp_path):
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
        ({"text": ["a"], "f0": [1.0]}, "has a column 'text' and 1 features"),
        (
            {"id": ["a", "a", "b"], "f0": [1.0, 2.0, 3.0]},
            r"Ids in .*f.parquet must .* are not: a\.$",
        ),
        ({"id": ["a", None], "f0": [1.0, 2.0]}, "is empty"),
    ],
)
def test_parquet_that_cannot_be_used(tmp_path, columns, message):
    with pytest.raises(InputError, match=message):
        read_collection(parquet(tmp_path, **columns))


def test_parquet_with_ids_and_a_table(tmp_path):
    source = parquet(tmp_path, id=["b", "a"], f0=[1.0, 2.0])
    collection = read_collection(source, table(tmp_path, "id,label\na,cat\n"))
    assert by_id(collection) == {"a": "cat", "b": None}
    assert collection.features.tolist() == [[2.0], [1.0]]
    with pytest.raises(InputError, match=r"1 ids in .*: c. Check the ids"):
        read_collection(source, table(tmp_path, "id,label\na,cat\nc,owl\n"))


# Texts


def test_a_csv_of_texts(tmp_path):
    text = 'text,label\n"where, please, is my card",card\n  hello  ,\n007,agent\n'
    collection = read_collection(table(tmp_path, text, "intents.csv"))
    assert collection.kind == "texts"
    assert collection.texts == ["where, please, is my card", "hello", "007"]
    assert collection.y.tolist() == ["card", None, "agent"]
    assert collection.ids == ["0", "1", "2"]
    assert collection.features is None


def test_texts_with_ids_and_gaps(tmp_path):
    text = "id;label;text\nc;x;third\nb;;\na;y;first\n"
    collection = read_collection(table(tmp_path, text, "intents.csv"))
    assert collection.ids == ["a", "c"]
    assert collection.texts == ["first", "third"]
    assert collection.y.tolist() == ["y", "x"]
    assert collection.skipped == [Skipped("b", "the text is empty")]


def test_texts_and_a_table_of_labels(tmp_path):
    source = table(tmp_path, "text\none\ntwo\n", "t.csv")
    assert read_collection(source, table(tmp_path, "label\na\n-1\n")).y.tolist() == ["a", None]


def test_parquet_of_texts(tmp_path):
    collection = read_collection(parquet(tmp_path, text=["one", None], label=["a", None]))
    assert collection.texts == ["one"]
    assert collection.skipped == [Skipped("1", "the text is empty")]


def test_a_table_of_paths_is_not_a_source(tmp_path):
    with pytest.raises(InputError, match=r"give their folder, and labels.csv as the labels"):
        read_collection(table(tmp_path, "path,label\na.jpg,cat\n"))


# The collection itself


@pytest.fixture
def collection():
    return Collection(
        ids=["a", "b", "c"],
        y=objects(["x", None, 3]),
        features=np.eye(3),
        skipped=[Skipped("z", "was broken")],
    )


@pytest.mark.parametrize("indices", [[2, 0], np.array([2, 0])])
def test_take(collection, indices):
    part = collection.take(indices)
    assert part.ids == ["c", "a"]
    assert part.y.tolist() == [3, "x"]
    np.testing.assert_array_equal(part.features, np.eye(3)[[2, 0]])
    assert part.skipped == collection.skipped


def test_take_of_everything_that_a_collection_has(tmp_path):
    y = objects(["x", None])
    pictures = Collection(ids=["a", "b"], y=y, paths=[tmp_path / "a", tmp_path / "b"])
    assert pictures.take([1]).paths == [tmp_path / "b"]
    texts = Collection(ids=["a", "b"], y=y, texts=["first", "second"])
    assert texts.take([1]).texts == ["second"]


def test_take_by_a_mask_and_nothing(collection):
    assert collection.take(np.array([True, False, True])).ids == ["a", "c"]
    assert len(collection.take([])) == 0
    assert collection.take([]).features.shape == (0, 3)


def test_without(collection):
    rest = collection.without([(2, "is empty"), (0, "is broken")])
    assert rest.ids == ["b"]
    assert rest.skipped == [
        Skipped("z", "was broken"),
        Skipped("a", "is broken"),
        Skipped("c", "is empty"),
    ]
    assert collection.without([]).ids == collection.ids


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ids": ["a", "b"]}, r"the lengths \[2, 3, 3\]"),
        ({"y": objects(["x"])}, r"the lengths \[3, 1, 3\]"),
        ({"features": np.eye(2)}, r"the lengths \[3, 3, 2\]"),
        ({"features": None}, "Got 0 of them"),
        ({"texts": ["1", "2", "3"]}, "Got 2 of them"),
        ({"ids": ["a", "b", "a"]}, "must be unique"),
        ({"ids": ["a", "b", ""]}, "is empty"),
    ],
)
def test_collections_that_do_not_fit_together(change, message):
    fields = {"ids": ["a", "b", "c"], "y": objects(["x", None, 3]), "features": np.eye(3)}
    with pytest.raises(InputError, match=message):
        Collection(**{**fields, **change})


# Is there anything to discover?


def test_something_to_discover(collection):
    check_discoverable(collection)


@pytest.mark.parametrize(
    ("content", "thing", "hint"),
    [
        ({"features": np.eye(2)}, "rows of features", "y beside X"),
        ({"texts": ["one", "two"]}, "texts", "column 'label'"),
        ({"paths": ["a.jpg", "b.jpg"]}, "pictures", "class folders"),
    ],
)
def test_no_labels_at_all(content, thing, hint):
    collection = Collection(ids=["a", "b"], y=objects([None, None]), **content)
    message = f"None of the 2 {thing} has a label.*needs some labels.*{hint}"
    with pytest.raises(InputError, match=message):
        check_discoverable(collection)


def test_all_labelled(tmp_path):
    place(tmp_path, "cat/1.jpg", "cat/2.jpg", "owl/3.jpg")
    message = r"All 3 pictures have a label \(most often 'cat': 2, 'owl': 1\).*'unlabelled'"
    with pytest.raises(InputError, match=message):
        check_discoverable(read_collection(tmp_path))


def test_an_empty_folder(tmp_path):
    with pytest.raises(InputError, match=f"There are no pictures in {tmp_path}. Check the path"):
        check_discoverable(read_collection(tmp_path))


def test_a_folder_in_which_all_is_skipped(tmp_path):
    (tmp_path / "a.jpg").symlink_to("nothing")
    with pytest.raises(InputError, match=r"1 were skipped, the first a.jpg: a link to a file"):
        check_discoverable(read_collection(tmp_path))
