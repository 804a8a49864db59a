import os
from dataclasses import replace

import pytest

from newfound.errors import InputError
from newfound.result.export import export


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
def test_pictures_that_are_gone_are_named(result, root, tmp_path, to):
    (root / result.collection.ids[2]).unlink()
    with pytest.raises(
        InputError,
        match=r"1 of 7 pictures cannot be found\. The first is .*b/1.png\. Put them back",
    ):
        export(result, to, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("to", ["folders", "fiftyone", "coco"])
def test_what_is_no_picture_is_refused(texts, features, tmp_path, to):
    with pytest.raises(InputError, match=f"'{to}' is for pictures, .* on features.*csv or parquet"):
        export(features, to, tmp_path / "out")
    with pytest.raises(InputError, match=r"on texts\. Export it to csv, parquet or label-studio"):
        export(texts, to, tmp_path / "out")
    with pytest.raises(InputError, match=r"'label-studio' is for pictures, .* on features"):
        export(features, "label-studio", tmp_path / "out")
    assert os.listdir(tmp_path) == []
