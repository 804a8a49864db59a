import sys
import warnings

import pytest

from newfound.data.reading import read_collection
from newfound.data.tables import as_objects, make_table, read_table, unescape_formula, write_csv
from newfound.errors import InputError, MissingExtraError

SOURCES = ["a.jpg", "b.PNG", "birds/c.jpeg", "birds/deep/d.webp"]


def by_id(collection):
    return dict(zip(collection.ids, collection.y.tolist(), strict=True))


@pytest.mark.parametrize(
    "text",
    ["path,label," + "x" * 140_000 + "\na.jpg,cat,1\n", 'path,"label\na.jpg,cat\n'],
)
def test_a_header_that_cannot_be_read_is_reported(folder, tmp_path, text, table):
    with pytest.raises(InputError, match="cannot be read as a CSV"):
        read_collection(folder, table(tmp_path, text))


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
def test_ways_to_write_a_csv(folder, tmp_path, text, table):
    assert read_collection(folder, table(tmp_path, text)).y.tolist() == ["cat", None, None, None]


def test_a_comma_in_quotes_does_not_hide_the_semicolon(folder, tmp_path, table):
    labels = table(tmp_path, 'path;label;"who, when, where"\na.jpg;cat;"me, now, here"\n')
    assert by_id(read_collection(folder, labels))["a.jpg"] == "cat"


@pytest.mark.parametrize("text", ["001", "1.0", "NA", "None", "True", "1e3", "0"])
def test_labels_stay_the_text_they_are(folder, tmp_path, text, table):
    labels = table(tmp_path, f"path,label\na.jpg,{text}\n")
    assert by_id(read_collection(folder, labels))["a.jpg"] == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be read as a CSV"),
        ("a.jpg,cat\nb.PNG,owl\n", "has the columns a.jpg, cat, but no 'path'"),
        ("path\na.jpg\n", "has the columns path, but no 'label'"),
        ("path,label\na, b, c.jpg,cat\n", "Put texts that contain a comma in quotes"),
        ("path,label\na.jpg,cat\nb,c,cat\n", "Put texts that contain a comma in quotes"),
        ('path,label\n"a.jpg,cat\n', "cannot be read as a CSV"),
        ("path,label\na.jpg,café\n".encode("latin-1"), "not in UTF-8"),
        ("path,label\na.jpg,cat\n".encode("utf-16"), "not in UTF-8"),
        ("path,label,LABEL\na.jpg,cat,owl\n", "has more than one column named label"),
    ],
)
def test_bad_csv_files(folder, tmp_path, text, message, table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as a program may: a warning alone would not do
        with pytest.raises(InputError, match=message):
            read_collection(folder, table(tmp_path, text))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("labels.parquet", "cannot be read as Parquet"),
        ("labels.xlsx", "is not a table"),
    ],
)
def test_other_tables(folder, tmp_path, name, message, table):
    with pytest.raises(InputError, match=message):
        read_collection(folder, table(tmp_path, "path,label\na.jpg,cat\n", name))


def test_without_pandas_the_command_is_named(folder, tmp_path, monkeypatch, table):
    monkeypatch.setitem(sys.modules, "pandas", None)
    labels = table(tmp_path, "path,label\na.jpg,cat\n")
    with pytest.raises(MissingExtraError, match=r"pip install 'newfound\[report\]'"):
        read_collection(folder, labels)
    assert read_collection(folder).ids == SOURCES  # class folders need no table


def test_without_pyarrow_the_command_is_named(folder, tmp_path, monkeypatch, table):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"'pyarrow' could not .*newfound\[report\]'"):
        read_collection(folder, table(tmp_path, "", "labels.parquet"))


def test_a_written_table_can_be_read_whatever_its_texts_hold(tmp_path):
    names = as_objects(["a\0b", "=1+1", 'quo"te\r\n', "plain"])
    write_csv(make_table({"label": names}), tmp_path / "t.csv")
    assert b"\0" not in (tmp_path / "t.csv").read_bytes()
    read = [unescape_formula(text) for text in read_table(tmp_path / "t.csv")["label"]]
    assert read == ["a␀b", "=1+1", 'quo"te\r\n', "plain"]
