"""Labels from other tools, as their files hold them."""

import json

import pytest

from newfound.data.annotations import Annotation, read_annotations
from newfound.errors import InputError


def choice(label):
    return {"result": [{"type": "choices", "value": {"choices": [label]}}]}


def found(tmp_path, content, name="labels.json"):
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_annotations(path)


def test_label_studio(tmp_path):
    tasks = [
        {
            "id": 7,
            "data": {"image": "/data/local-files/?d=birds/a%20b.jpg"},
            "annotations": [choice("owl")],
        },
        {"id": 8, "data": {"text": "hoo"}, "annotations": [choice("owl"), choice("hawk")]},
        {
            "id": 9,
            "data": {"text": "hi"},
            "annotations": [{**choice("owl"), "was_cancelled": True}],
        },
        {"data": {"text": "ho", "category": "new-001"}},
    ]
    one, two, three, four = found(tmp_path, tasks)
    assert one == Annotation("task 7", ("birds/a b.jpg",), "owl")
    assert (two.label, two.problem) == (
        None,
        "it has the labels 'owl' and 'hawk'. Keep one of them",
    )
    assert (three.label, four.label, four.where) == (None, None, "task 4")


def test_label_studio_in_its_short_form(tmp_path):
    (note,) = found(tmp_path, [{"id": 3, "text": "hoo", "choice": "owl", "annotator": 1}])
    assert (note.names[-1], note.label) == ("hoo", "owl")


def test_coco(tmp_path):
    content = {
        "images": [{"id": 1, "file_name": "birds/a.jpg"}, {"id": 2, "file_name": "b.jpg"}],
        "annotations": [{"image_id": 1, "category_id": 5, "attributes": {"item": "a"}}],
        "categories": [{"id": 5, "name": "owl"}],
    }
    one, two = found(tmp_path, content)
    assert one == Annotation("image 1", ("a", "birds/a.jpg"), "owl", by_person=False)
    assert two.label is None


@pytest.mark.parametrize("target", [1, "owl", {"label": 1, "confidence": 0.5}])
def test_fiftyone(tmp_path, target):
    content = {"classes": ["hawk", "owl"], "labels": {"a": target}}
    (note,) = found(tmp_path, content)
    assert read_annotations(tmp_path) == [note]  # the folder
    assert note == Annotation("sample a", ("a",), "owl", by_person=False)


def test_audits_and_tables(tmp_path):
    ours = "id,label,suggested_label,score\na,hawk,owl,0.9\nb,hawk,,0.8\n"
    assert found(tmp_path, ours, "audit.csv") == [Annotation("row 2", ("a",), "owl")]
    cleanlab = "is_label_issue,given_label,predicted_label\nFalse,1,2\nTrue,1,3\n"
    assert found(tmp_path, cleanlab, "cl.csv") == [Annotation("row 3", ("1",), "3")]
    table = "path,label\nx/a.jpg,owl\nx/b.jpg,\n"
    assert found(tmp_path, table, "t.csv") == [Annotation("row 2", ("x/a.jpg",), "owl")]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "cannot be read as JSON"),
        ({"x": 1}, "neither a Label Studio export"),
        ([3], "does not have the form"),
        ({"classes": ["a"], "labels": {"x": 7}}, "does not have the form"),
        ({"images": [], "annotations": [{}], "categories": []}, "does not have the form"),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path, content, words):
    with pytest.raises(InputError, match=words):
        found(tmp_path, content)
