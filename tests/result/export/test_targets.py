import os

import pytest

from newfound.errors import InputError
from newfound.result.export import FORMATS, export


@pytest.mark.parametrize("to", FORMATS)
def test_what_exists_is_left_alone(result, tmp_path, to):
    out = export(result, to, tmp_path / "out")
    before = {path: path.stat().st_mtime_ns for path in [out, *out.rglob("*")]}
    with pytest.raises(InputError, match="Remove it"):
        export(result, to, out)
    assert before == {path: path.stat().st_mtime_ns for path in [out, *out.rglob("*")]}


@pytest.mark.parametrize("to", FORMATS)
def test_an_empty_target_is_used(result, tmp_path, to):
    out = tmp_path / "out"
    if to in ("csv", "parquet", "coco"):
        out.touch()
    else:
        out.mkdir()
        (out / ".DS_Store").touch()
    assert export(result, to, out) == out


@pytest.mark.parametrize("to", FORMATS)
def test_a_target_of_the_other_kind_is_refused(result, tmp_path, to):
    out = tmp_path / "out"
    is_file = to in ("csv", "parquet", "coco")
    out.mkdir() if is_file else out.touch()
    with pytest.raises(InputError, match="is a folder, but" if is_file else "is a file, but"):
        export(result, to, out)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "full")])
def test_a_folder_that_cannot_be_finished_is_removed(result, tmp_path, monkeypatch, error):
    def fail(*args):
        raise error

    monkeypatch.setattr("newfound.result.export.fiftyone.write_json", fail)
    (tmp_path / "was there").mkdir()
    (tmp_path / "was there" / ".keep").touch()
    for out in (tmp_path / "new", tmp_path / "was there"):
        with pytest.raises((KeyboardInterrupt, InputError), match=r"full|^$"):
            export(result, "fiftyone", out)
    assert not (tmp_path / "new").exists()
    assert os.listdir(tmp_path / "was there") == [".keep"]
