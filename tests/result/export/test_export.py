import json
from dataclasses import replace
from pathlib import Path

import pandas
import pytest

from newfound.errors import InputError
from newfound.result.export import FORMATS, export
from newfound.result.store import read_result, write_result


def test_an_unknown_format_is_refused(result, tmp_path):
    expected = "no format 'xlsx' .* csv, parquet, folders, fiftyone, label-studio or coco"
    with pytest.raises(InputError, match=expected):
        export(result, "xlsx", tmp_path / "out")


@pytest.mark.parametrize("to", ["csv", "parquet"])
def test_tables_are_for_all_kinds(texts, features, out_for, to):
    assert export(texts, to, out_for(to, "1")).stat().st_size > 0
    assert export(features, to, out_for(to, "2")).stat().st_size > 0


def test_what_was_read_from_a_run_folder_can_be_exported(result, tmp_path, files_in, out_for):
    write_result(result, tmp_path / "run")
    again = read_result(tmp_path / "run")
    for to in FORMATS:
        one = export(result, to, out_for(to, f"1-{to}"))
        two = export(again, to, out_for(to, f"2-{to}"))
        if one.is_file():
            assert one.read_bytes() == two.read_bytes()
        else:
            assert files_in(one) == files_in(two)
            assert all(
                (one / name).read_bytes() == (two / name).read_bytes() for name in files_in(one)
            )


def test_a_relative_target_becomes_absolute(result, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert export(result, "csv", Path("x.csv")) == tmp_path / "x.csv"


def test_unsure_items_are_marked_in_every_format(result, out_for, read_csv):
    settings = replace(result.record.settings, min_confidence=0.8)
    marked = replace(result, record=replace(result.record, settings=settings))
    expected = marked.table["is_unsure"].tolist()
    assert expected == [False, False, True, True, True, False, False]  # two have labels

    def attributes(to, found, stem):
        """What the format says besides the category of each item, in their order."""
        out = export(found, to, out_for(to, f"{stem}-{to}"))
        if to == "csv":
            return read_csv(out)
        if to == "parquet":
            return pandas.read_parquet(out).to_dict("records")
        if to == "folders":
            return read_csv(out / "files.csv")
        if to == "coco":
            return [item["attributes"] for item in json.loads(out.read_text())["annotations"]]
        if to == "label-studio":
            return [task["data"] for task in json.loads((out / "tasks.json").read_text())]
        labels = json.loads((out / "labels.json").read_text())["labels"]
        return [label["attributes"] for label in labels.values()]

    for to in FORMATS:
        marks = [item["is_unsure"] for item in attributes(to, marked, "marked")]
        assert [str(mark) for mark in marks] == [str(mark) for mark in expected]
        assert isinstance(marks[0], str if to in ("csv", "folders") else bool)
        assert not any("is_unsure" in item for item in attributes(to, result, "plain"))
