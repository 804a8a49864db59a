import os

import pytest

from newfound.data.pictures import PictureError
from newfound.result.export import export
from newfound.result.export.names import same_file


def test_a_folder_for_each_category(result, tmp_path, read_csv, files_in):
    out = export(result, "folders", tmp_path / "out")
    assert files_in(out) == [
        *["cat/1-2.png", "cat/1-3.PNG", "cat/1.png", "categories.csv", "dog/2.png", "files.csv"],
        *["new-001/ü & _#%=+;3.png", "new-002/top.jpg", "new-002/top.png"],
    ]
    for row, path in zip(read_csv(out / "files.csv"), result.collection.paths, strict=True):
        assert (out / row["file"]).read_bytes() == path.read_bytes()
        assert not (out / row["file"]).is_symlink()
        assert (row["path"], row["file"].split("/")[0]) == (str(path), row["category"])
    folders = read_csv(out / "categories.csv")
    assert [(row["folder"], row["category"], row["kind"], row["size"]) for row in folders] == [
        *[("cat", "cat", "known", "3"), ("dog", "dog", "known", "1")],
        *[("new-001", "new-001", "novel", "1"), ("new-002", "new-002", "novel", "2")],
    ]


def assert_is_safe(name):
    """One part of a path, on any system."""
    assert name not in ("", ".", "..")
    assert len(name.encode()) <= 200
    assert not set(name) & set('<>:"/\\|?*')
    assert name.isprintable()
    assert name == name.strip(" ").rstrip(".")
    assert name[0] != "."
    stem = name.split(".")[0].upper()
    assert stem not in {"CON", "PRN", "AUX", "NUL"}
    assert not (stem[:3] in ("COM", "LPT") and stem[3:] and stem[3:] in "0123456789¹²³")


def test_hostile_categories_stay_in_the_folder(tmp_path, read_csv, files_in, hostile):
    names = hostile.categories["category"].tolist()
    (tmp_path / "outer").mkdir()
    out = export(hostile, "folders", tmp_path / "outer" / "out")
    assert os.listdir(tmp_path / "outer") == ["out"]
    assert len(files_in(out)) == len(names) + 2
    rows = read_csv(out / "categories.csv")
    folders = [row["folder"] for row in rows]
    for folder in folders:
        assert_is_safe(folder.removeprefix("'"))  # write_csv escapes "-rf"
    assert len({same_file(name, "") for name in [*folders, "files.csv"]}) == len(rows) + 1
    undo = [row["category"].removeprefix("'") if row["category"][1:] in names else row["category"]
            for row in rows]  # fmt: skip
    assert undo == [name.replace("\0", "␀") for name in names]
    for folder, path in zip(folders, hostile.collection.paths, strict=True):
        copy = out / folder.removeprefix("'") / path.name
        assert copy.read_bytes() == path.read_bytes()


def test_hostile_file_names(root, tmp_path, make_result, make_pictures, read_csv):
    names = ["con.png", "a:b.png", "x" * 240 + ".png", "y.png" + "z" * 100, "1.", "-.png"]
    found = make_result(make_pictures(root, names), [0] * len(names))
    out = export(found, "folders", tmp_path / "out")
    written = [row["file"].removeprefix("cat/") for row in read_csv(out / "files.csv")]
    for name in written:
        assert_is_safe(name)
    assert written[:2] == ["_con.png", "a_b.png"]
    assert written[2] == "x" * 120 + ".png"


@pytest.mark.parametrize("link", [False, True])
def test_a_file_that_is_no_picture_is_not_brought_into_an_export(result, tmp_path, link):
    (tmp_path / "secret.png").write_text("password")
    result.collection.paths[0] = tmp_path / "secret.png"
    with pytest.raises(PictureError, match=r"secret\.png: not a picture"):
        export(result, "folders", tmp_path / "out", link=link)
    assert not (tmp_path / "out").exists()
