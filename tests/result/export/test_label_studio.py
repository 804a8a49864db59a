"""Label Studio's SDK brings 40 packages, so it is not a dependency of the tests:
`check_label_studio` follows its documentation.
"""

import json
import os
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import PurePosixPath
from urllib.parse import parse_qs, urlsplit

import pytest

import newfound
from newfound.errors import InputError
from newfound.result.export import export

CATEGORIES = ["cat", "dog", "new-001", "new-002"]


def check_label_studio(folder):
    """Hold the files against https://labelstud.io/guide/predictions and /guide/task_format.

    A task has `data` with the field that the object tag names, `predictions` with a result, a
    score and a version, `annotations` with a result; ids of results are all different, and a
    result names a control and an object tag of the configuration and one of its choices.
    """
    config = ElementTree.fromstring((folder / "label_config.xml").read_bytes())
    (control,), (seen,) = config.findall("Choices"), [e for e in config if e.tag != "Choices"]
    assert (config.tag, control.get("toName")) == ("View", seen.get("name"))
    choices = [choice.get("value") for choice in control]
    assert len(set(choices)) == len(choices)
    tasks = json.loads((folder / "tasks.json").read_text(encoding="utf-8"))
    ids = []
    for task in tasks:
        assert set(task) == {"data", "predictions", "annotations"}
        assert isinstance(task["data"][seen.get("value").removeprefix("$")], str)
        (prediction,) = task["predictions"]
        assert set(prediction) == {"model_version", "score", "result"}
        assert 0 <= prediction["score"] <= 1
        assert all(set(annotation) == {"result"} for annotation in task["annotations"])
        for region in [part["result"] for part in (prediction, *task["annotations"])]:
            ids.append(region[0]["id"])
            assert [(r["from_name"], r["to_name"], r["type"]) for r in region] == [
                (control.get("name"), seen.get("name"), "choices")
            ]
            (choice,) = region[0]["value"]["choices"]
            assert choice in choices
    assert len(set(ids)) == len(ids)
    return seen.tag, choices, tasks


def test_label_studio_reads_it(result, tmp_path, root):
    out = export(result, "label-studio", tmp_path / "out")
    tag, choices, tasks = check_label_studio(out)
    assert (tag, choices) == ("Image", CATEGORIES)
    for task, row in zip(tasks, result.table.itertuples(), strict=True):
        (prediction,) = task["predictions"]
        assert prediction["result"][0]["value"]["choices"] == [row.category]
        assert prediction["score"] == row.confidence
        assert prediction["model_version"] == f"newfound {newfound.__version__}"
        assert len(task["annotations"]) == (row.given_label is not None)
        assert (task["data"]["item"], task["data"]["category"]) == (row.id, row.category)
    readme = (out / "README.txt").read_text(encoding="utf-8")
    assert f"DOCUMENT_ROOT={root.parent}\n" in readme
    assert f"local path {root}\n" in readme


def test_label_studio_finds_the_pictures(result, tmp_path):
    """As its view of local files does: the value of d, decoded once, below the document root."""
    _, _, tasks = check_label_studio(export(result, "label-studio", tmp_path / "out"))
    for task, path in zip(tasks, result.collection.paths, strict=True):
        url = urlsplit(task["data"]["image"])
        assert url.path == "/data/local-files/"
        assert not url.fragment
        (relative,) = parse_qs(url.query, strict_parsing=True)["d"]
        assert not PurePosixPath(relative).is_absolute()
        assert os.path.samefile(tmp_path / relative, path)


def test_label_studio_reads_hostile_names(tmp_path, hostile):
    names = hostile.categories["category"].tolist()
    _, choices, tasks = check_label_studio(export(hostile, "label-studio", tmp_path / "o"))
    assert [task["data"]["category"] for task in tasks] == names
    assert [task["predictions"][0]["result"][0]["value"]["choices"][0] for task in tasks] == choices
    for name, choice in zip(names, choices, strict=True):
        if name.isprintable() and name == name.strip() != "":
            assert choice == name


def test_label_studio_reads_texts(texts, tmp_path):
    out = export(texts, "label-studio", tmp_path / "out")
    tag, _, tasks = check_label_studio(out)
    assert tag == "Text"
    assert [task["data"]["text"] for task in tasks] == ["miau <b>", "“?”\n"]
    assert "LOCAL_FILES" not in (out / "README.txt").read_text()


def test_pictures_from_several_folders_are_named_from_the_one_above(
    result, tmp_path, make_pictures
):
    make_pictures(tmp_path, ["elsewhere/x.png"])
    paths = [*result.collection.paths[:-1], tmp_path / "elsewhere" / "x.png"]
    found = replace(result, collection=replace(result.collection, paths=paths))
    _, _, tasks = check_label_studio(export(found, "label-studio", tmp_path / "out"))
    assert tasks[-1]["data"]["image"].endswith(f"?d={tmp_path.name}/elsewhere/x.png")
    content = json.loads(export(found, "coco", tmp_path / "coco.json").read_text())
    assert content["images"][-1]["file_name"] == "elsewhere/x.png"
    assert content["images"][0]["file_name"] == "my pictures/a/1.png"


def test_the_name_of_a_json_file_is_that_of_the_tasks(result, texts, tmp_path, root):
    """In Label Studio a person imports one JSON file, so its name is the natural target."""
    out = export(result, "label-studio", tmp_path / "ls" / "birds.json")
    assert out == tmp_path / "ls" / "birds.json"
    files = ["birds.README.txt", "birds.json", "birds.label_config.xml"]
    assert sorted(os.listdir(tmp_path / "ls")) == files
    folder = export(result, "label-studio", tmp_path / "folder")
    assert out.read_bytes() == (folder / "tasks.json").read_bytes()
    config = (tmp_path / "ls" / "birds.label_config.xml").read_bytes()
    assert config == (folder / "label_config.xml").read_bytes()
    readme = (tmp_path / "ls" / "birds.README.txt").read_text(encoding="utf-8")
    assert "Paste birds.label_config.xml into" in readme
    assert "import birds.json." in readme
    assert "tasks come from birds.json." in readme
    assert f"local path {root}\n" in readme
    assert isinstance(
        json.loads(export(texts, "label-studio", tmp_path / "t.JSON").read_text()), list
    )


def test_files_beside_the_tasks_are_left_alone(result, tmp_path):
    (tmp_path / "birds.label_config.xml").write_text("mine")
    with pytest.raises(InputError, match=r"birds\.label_config\.xml exists already"):
        export(result, "label-studio", tmp_path / "birds.json")
    assert (tmp_path / "birds.label_config.xml").read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == ["birds.label_config.xml", "my pictures"]


def test_half_a_project_is_removed(result, tmp_path, monkeypatch):
    def fail(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("newfound.result.export.label_studio.write_json", fail)
    with pytest.raises(KeyboardInterrupt):
        export(result, "label-studio", tmp_path / "birds.json")
    assert os.listdir(tmp_path) == ["my pictures"]


def test_braces_in_the_path_of_the_pictures(tmp_path, make_result, make_pictures):
    root = tmp_path / "{tasks} {x}"
    out = export(make_result(make_pictures(root, ["a.png"]), [0]), "label-studio", tmp_path / "o")
    assert f"local path {root}\n" in (out / "README.txt").read_text(encoding="utf-8")
