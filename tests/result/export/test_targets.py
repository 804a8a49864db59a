import os

import pytest

from newfound.errors import InputError
from newfound.result.export import FORMATS, export


@pytest.mark.parametrize("to", FORMATS)
def test_what_exists_is_left_alone(result, out_for, to):
    out = export(result, to, out_for(to))
    before = {path: path.stat().st_mtime_ns for path in [out, *out.rglob("*")]}
    with pytest.raises(InputError, match="Remove it"):
        export(result, to, out)
    assert before == {path: path.stat().st_mtime_ns for path in [out, *out.rglob("*")]}


@pytest.mark.parametrize("to", FORMATS)
def test_an_empty_target_is_used(result, out_for, to):
    out = out_for(to)
    if not FORMATS[to].is_folder:
        out.touch()
    else:
        out.mkdir()
        (out / ".DS_Store").touch()
    assert export(result, to, out) == out


@pytest.mark.parametrize("to", FORMATS)
def test_a_target_of_the_other_kind_is_refused(result, tmp_path, to):
    out = tmp_path / "out"
    is_folder = FORMATS[to].is_folder
    out.touch() if is_folder else out.mkdir()
    with pytest.raises(InputError, match="is a file, but" if is_folder else "is a folder, but"):
        export(result, to, out)


@pytest.mark.parametrize("to", ["folders", "fiftyone", "label-studio"])
@pytest.mark.parametrize(
    ("name", "folder"), [("sorted.csv", "sorted"), ("ls.XML", "ls"), ("data.tar.gz", "data")]
)
def test_the_name_of_a_file_is_refused_where_a_folder_is_written(
    result, tmp_path, to, name, folder
):
    with pytest.raises(InputError, match=f"'{to}' writes a folder.* is the name of a ") as raised:
        export(result, to, tmp_path / name)
    assert str(raised.value).endswith(f"Give, for example, {tmp_path / folder}.")
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("to", ["folders", "fiftyone", "label-studio"])
def test_a_folder_may_have_a_dot_in_its_name(result, tmp_path, to):
    assert export(result, to, tmp_path / "birds.v2").is_dir()
    (tmp_path / "birds.json").mkdir()  # a person made it, so it is meant as a folder
    assert export(result, to, tmp_path / "birds.json").is_dir()


@pytest.mark.parametrize("to", ["csv", "parquet", "coco"])
@pytest.mark.parametrize(("name", "stem"), [("f/", "f"), ("f.v2", "f.v2"), ("f.html", "f")])
def test_a_file_has_the_ending_of_its_format(result, tmp_path, to, name, stem):
    ending = FORMATS[to].endings[0]
    with pytest.raises(InputError) as raised:
        export(result, to, f"{tmp_path}/{name}")
    assert f"'{to}' writes a file that ends in {ending}" in str(raised.value)
    example = tmp_path / f"{stem}{ending}"
    assert str(raised.value).endswith(f"Give, for example, {example}.")
    assert export(result, to, example).is_file()
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "full")])
def test_a_folder_that_cannot_be_finished_is_removed(result, tmp_path, monkeypatch, error):
    def fail(*args):
        raise error

    monkeypatch.setattr("newfound.result.export.fiftyone.write_json", fail)
    (tmp_path / "was there").mkdir()
    (tmp_path / "was there" / ".keep").touch()
    message = r"run the same command again\.$|^$"  # no promise to resume
    for out in (tmp_path / "new", tmp_path / "was there"):
        with pytest.raises((KeyboardInterrupt, InputError), match=message):
            export(result, "fiftyone", out)
    assert not (tmp_path / "new").exists()
    assert os.listdir(tmp_path / "was there") == [".keep"]
