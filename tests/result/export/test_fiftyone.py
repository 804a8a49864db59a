"""FiftyOne brings a database, so it is not a dependency of the tests: `check_fiftyone` follows its
documentation and the steps of its importer.
"""

import json
import os
from pathlib import Path

from newfound.result.export import export

CATEGORIES = ["cat", "dog", "new-001", "new-002"]


def check_fiftyone(folder):
    """Read as https://docs.voxel51.com/user_guide/import_datasets.html says, by path.

    Section FiftyOneImageClassificationDataset, the form with confidences and attributes, with
    the steps of `FiftyOneImageClassificationDatasetImporter` (1.22): a UUID is a path below
    ``data`` without its ending, and attributes become keyword arguments of `Classification`.
    """
    assert sorted(os.listdir(folder)) == ["data", "labels.json"]
    content = json.loads((folder / "labels.json").read_text(encoding="utf-8"))
    assert set(content) == {"classes", "labels"}
    assert all(isinstance(name, str) for name in content["classes"])
    files = [path for path in (folder / "data").rglob("*") if path.is_file()]
    by_uuid = {os.path.splitext(path.relative_to(folder / "data"))[0]: path for path in files}
    assert len(by_uuid) == len(files)
    assert set(by_uuid) == set(content["labels"])
    read = {}
    for uuid, target in content["labels"].items():
        assert set(target) == {"label", "confidence", "attributes"}
        assert type(target["label"]) is int
        assert type(target["confidence"]) is float
        assert not set(target["attributes"]) & {"id", "label", "confidence", "tags", "logits"}
        read[by_uuid[uuid]] = (content["classes"][target["label"]], target)
    return content["classes"], read


def test_fiftyone_reads_it(result, tmp_path):
    classes, read = check_fiftyone(export(result, "fiftyone", tmp_path / "out"))
    assert classes == CATEGORIES
    by_item = {target["attributes"]["item"]: (path, name, target)
               for path, (name, target) in read.items()}  # fmt: skip
    for row in result.table.itertuples():
        path, name, target = by_item[row.id]
        assert path.read_bytes() == Path(row.path).read_bytes()
        assert (name, target["confidence"]) == (row.category, row.confidence)
        assert target["attributes"].get("given_label") == row.given_label
    assert {path.name for path in read} == {
        *["1.png", "2.png", "1-2.png", "1-3.PNG", "ü & _#%=+;3.png", "top.jpg", "top-2.png"]
    }


def test_fiftyone_reads_hostile_names(tmp_path, hostile):
    names = hostile.categories["category"].tolist()
    classes, read = check_fiftyone(export(hostile, "fiftyone", tmp_path / "out"))
    assert classes == names
    assert sorted(name for name, _ in read.values()) == sorted(names)
