import os
import shutil
import warnings
from dataclasses import replace
from types import SimpleNamespace

import pytest

from newfound.data.pictures import PictureError
from newfound.errors import ExportWarning, InputError
from newfound.result.export import export

WITH_PICTURES = ["folders", "fiftyone"]


def pictures_in(folder):
    return [path for path in folder.rglob("*") if path.suffix.lower() in (".png", ".jpg")]


def no_links(*args, **kwargs):
    raise OSError(18, "Invalid cross-device link")


@pytest.fixture
def free(monkeypatch):
    """Set the free space of every disk."""

    def free(n_bytes):
        monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=n_bytes))

    return free


@pytest.mark.parametrize("to", WITH_PICTURES)
def test_pictures_are_copies_unless_links_are_asked_for(result, root, tmp_path, to):
    """To crop, rotate or tag an exported picture must not change the original."""
    os.utime(root / "a/1.png", ns=(1_000_000_000, 2_000_000_000))
    out = export(result, to, tmp_path / "out")
    copies = pictures_in(out)
    assert len(copies) == len(result)
    assert {path.stat().st_nlink for path in [*copies, *pictures_in(root)]} == {1}
    assert min(path.stat().st_mtime_ns for path in copies) == 2_000_000_000  # dates stay
    for path in copies:
        path.write_bytes(b"edited")
    assert not any(path.read_bytes() == b"edited" for path in pictures_in(root))


@pytest.mark.parametrize("to", WITH_PICTURES)
def test_links_on_request(result, root, tmp_path, to, free):
    free(0)  # links need no room
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = export(result, to, tmp_path / "out", link=True, progress=lambda *n: seen.append(n))
    assert {path.stat().st_nlink for path in pictures_in(out)} == {2}
    assert len({path.stat().st_ino for path in [*pictures_in(out), *pictures_in(root)]}) == 7
    assert seen == [(i, 7) for i in range(1, 8)]


@pytest.mark.parametrize("to", WITH_PICTURES)
def test_where_links_are_not_possible_copies_are_made_and_announced(
    result, tmp_path, to, monkeypatch
):
    link, calls = os.link, []

    def two_links(source, target):
        calls.append(target)
        link(source, target) if len(calls) <= 2 else no_links()

    monkeypatch.setattr(os, "link", two_links)
    seen = []
    expected = r"5 pictures were copied, not linked, .* \(Invalid cross-device link\)"
    with pytest.warns(ExportWarning, match=expected):
        out = export(result, to, tmp_path / "out", link=True, progress=lambda *n: seen.append(n))
    assert sorted(path.stat().st_nlink for path in pictures_in(out)) == [1] * 5 + [2] * 2
    assert seen == [(i, 7) for i in range(1, 8)]


@pytest.mark.parametrize("to", WITH_PICTURES)
def test_too_little_room_is_said_before_anything_is_written(result, tmp_path, to, free):
    free(7 * 4096 - 1)  # small files take a block each
    expected = (
        r"Copies of 7 pictures need 28\.7 kB, but the disk with .* has only 28\.7 kB free\. "
        r"Nothing was written\. .* --link"
    )
    with pytest.raises(InputError, match=expected):
        export(result, to, tmp_path / "new" / "out")
    assert not (tmp_path / "new").exists()
    free(7 * 4096)
    assert len(pictures_in(export(result, to, tmp_path / "new" / "out"))) == 7


def test_too_little_room_for_copies_in_place_of_links(result, tmp_path, free, monkeypatch):
    monkeypatch.setattr(os, "link", no_links)
    free(0)
    with pytest.raises(InputError, match=r"has only 0 B free\..* on the disk of the pictures"):
        export(result, "folders", tmp_path / "out", link=True)
    assert not (tmp_path / "out").exists()


def test_copies_report_progress(result, tmp_path):
    seen = []
    export(result, "folders", tmp_path / "out", progress=lambda *n: seen.append(n))
    assert seen == [(i, 7) for i in range(1, 8)]


@pytest.mark.parametrize("to", ["csv", "parquet", "label-studio", "coco"])
def test_there_is_nothing_to_link_without_pictures(result, out_for, to):
    with pytest.raises(InputError, match=f"'{to}' writes no pictures.* folders or fiftyone"):
        export(result, to, out_for(to), link=True)


def test_a_picture_that_cannot_be_read_is_named(result, tmp_path, root, monkeypatch):
    def refuse(path, *args):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("newfound.result.export.pictures.open", refuse, raising=False)
    with pytest.raises(PictureError, match=r"a/1.png: cannot be read: Permission denied"):
        export(result, "folders", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("to", ["folders", "fiftyone"])
def test_a_symbolic_link_becomes_a_file(root, tmp_path, to, make_result, make_pictures):
    pictures = make_pictures(root, ["a.png"])
    (root / "b.png").symlink_to("a.png")
    found = make_result(replace(pictures, ids=["b.png"], paths=[root / "b.png"]), [0])
    out = export(found, to, tmp_path / "out")
    (copy,) = out.rglob("b.png")
    assert not copy.is_symlink()
    assert copy.read_bytes() == (root / "a.png").read_bytes()


def test_a_folder_among_the_pictures_is_refused(result, root):
    for to in ("folders", "fiftyone"):
        with pytest.raises(InputError, match="find each picture twice"):
            export(result, to, root / "out")
    assert not (root / "out").exists()


@pytest.mark.parametrize("to", ["folders", "fiftyone", "coco"])
def test_pictures_that_are_gone_are_named(result, root, out_for, to):
    (root / result.collection.ids[2]).unlink()
    with pytest.raises(
        InputError,
        match=r"1 of 7 pictures cannot be found\. The first is .*b/1.png\. Put them back",
    ):
        export(result, to, out_for(to))
    assert not out_for(to).exists()


@pytest.mark.parametrize("to", ["folders", "fiftyone", "coco"])
def test_what_is_no_picture_is_refused(texts, features, tmp_path, to, out_for):
    with pytest.raises(InputError, match=f"'{to}' is for pictures, .* on features.*csv or parquet"):
        export(features, to, out_for(to))
    with pytest.raises(InputError, match=r"on texts\. Export it to csv, parquet or label-studio"):
        export(texts, to, out_for(to))
    with pytest.raises(InputError, match=r"'label-studio' is for pictures, .* on features"):
        export(features, "label-studio", tmp_path / "out")
    assert os.listdir(tmp_path) == []
