"""Labels that were given elsewhere come home."""

import json

import pytest
from samples import Digits

from newfound.errors import InputError
from newfound.result.export import export
from newfound.result.store import read_result
from newfound.workflows.discover import discover
from newfound.workflows.labelling import label_items
from newfound.workflows.update import update


def write_tasks(path, labels):
    tasks = [
        {"data": {"item": i}, "annotations": [{"result": [{"value": {"choices": [label]}}]}]}
        for i, label in labels
    ]
    path.write_text(json.dumps(tasks))
    return path


def test_a_category_that_was_labelled_elsewhere_is_known(run, tmp_path):
    novel = run.table[run.table["category"] == "new-001"]["id"].tolist()
    file = write_tasks(tmp_path / "ls.json", [(i, "owl") for i in novel[:9]])
    result, changes = update(run.folder, labels=file)
    assert (result.n_known, result.n_novel) == (7, 1)
    assert set(result.table["id"][result.table["category"] == "owl"]) == set(novel)
    assert len(result) == len(run)
    assert changes.added == []
    with pytest.raises(InputError, match="no label that the run does not have"):
        update(run.folder, labels=file)


def test_a_person_decides_above_labels_from_elsewhere(run, tmp_path):
    item = run.table["id"][run.table["category"] == "new-001"].iloc[0]
    run.relabel(item, "class 0")
    update(run.folder)
    other = run.table["id"][run.table["category"] == "new-001"].iloc[1]
    result, _ = update(run.folder, labels=write_tasks(tmp_path / "l.json", [(other, "class 1")]))
    labels = result.table.set_index("id")["given_label"]
    assert (labels[item], labels[other]) == ("class 0", "class 1")


def test_problems_are_told_by_their_place(run, tmp_path):
    one = run.collection.ids[0]
    file = write_tasks(tmp_path / "l.json", [("nobody", "owl"), (one, "owl"), (one, "hawk")])
    with pytest.raises(InputError) as error:
        update(run.folder, labels=file)
    assert "Task 1: 'nobody' is no item of the run. Add it with MORE" in str(error.value)
    assert "Task 3: it gets 'hawk', but task 2 gives it 'owl'" in str(error.value)
    assert read_result(run.folder).record == run.record


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    root = tmp_path_factory.mktemp("pictures")
    Digits.write(root / "pictures", range(80))
    Digits.write_labels(root / "labels.csv", range(80))
    options = {"encoder": "pixels-8x8-grey", "n_categories": 8, "rehearse": False}
    discover(root / "pictures", root / "labels.csv", out=root / "run", **options)
    return read_result(root / "run")


@pytest.mark.parametrize(
    ("to", "name", "file"),
    [("label-studio", "ls.json", "ls.json"), ("coco", "c.json", "c.json"), ("fiftyone", "f", "f")],
)
def test_what_was_exported_comes_back_with_what_a_person_changed(
    pictures, tmp_path, to, name, file
):
    export(pictures, to, tmp_path / name)
    path = tmp_path / file
    with pytest.raises(InputError, match="no label that the run does not have"):
        label_items(pictures, path)  # nobody has changed anything
    json_file = path / "labels.json" if path.is_dir() else path
    text, category = json_file.read_text(), pictures.names[pictures.n_known]
    if to == "label-studio":  # somebody accepts the predictions of a category, under a new name
        tasks = json.loads(text)
        for task in tasks:
            if task["data"]["category"] == category:
                task["annotations"] = [{"result": [{"value": {"choices": ["owl"]}}]}]
        json_file.write_text(json.dumps(tasks))
    else:
        json_file.write_text(text.replace(f'"{category}"', '"owl"'))
    merged = label_items(pictures, path)
    members = pictures.assigned.labels == pictures.n_known
    changed = [a != b for a, b in zip(merged.collection.y, pictures.collection.y, strict=True)]
    assert changed == members.tolist()
