"""Labels that were given in other tools: Label Studio, COCO, FiftyOne, or a table.

A file is read into `Annotation`: where it stands in the file, by which names the item is called
there, and its label. `newfound.workflows.labelling` finds the items.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from newfound.data.label_tables import as_labels
from newfound.data.tables import TABLE_SUFFIXES, read_table
from newfound.errors import InputError
from newfound.files import explained_errors

#: Columns of an audit, ours and cleanlab's, that hold the label that an item should have.
_SUGGESTED = ("suggested_label", "predicted_label")
_FLAG = "is_label_issue"
_NAMES = ("item", "id", "path", "image", "filepath", "file_name")


class Annotation(NamedTuple):
    """A label from elsewhere.

    Attributes
    ----------
    where : str
        Its place in the file, such as "row 3" or "task 12".
    names : tuple of str
        What the item may be called, the most certain first: an id, a path, a text.
    label : str or None
        The label; None if it cannot be used.
    problem : str
        Why it cannot be used; else empty.
    by_person : bool
        Whether a person gave it. COCO and FiftyOne files hold a category for every item, also
        those that a model has found.
    """

    where: str
    names: tuple[str, ...]
    label: str | None
    problem: str = ""
    by_person: bool = True


def read_annotations(path: Path) -> list[Annotation]:
    """Read labels from a file of another tool.

    Parameters
    ----------
    path : Path
        Label Studio's JSON export (full or "JSON-MIN"), a COCO file, a FiftyOne image
        classification data set (its folder or ``labels.json``), a table with the columns ``id`` or
        ``path`` and ``label``, or the CSV of a label audit, in which ``suggested_label`` is taken.

    Raises
    ------
    InputError
        If it is none of these.
    """
    path = Path(path)
    if path.is_dir():
        path = path / "labels.json"
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    if path.suffix.lower() in TABLE_SUFFIXES:
        return list(_from_table(path))
    advice = "Export it again, as JSON."
    with explained_errors(path, "cannot be read as JSON", advice):
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    with explained_errors(path, "does not have the form that its format has", advice):
        if isinstance(content, list):
            return [_from_task(task, i) for i, task in enumerate(content, start=1)]
        if isinstance(content, dict) and {"images", "annotations", "categories"} <= set(content):
            return list(_from_coco(content))
        if isinstance(content, dict) and isinstance(content.get("labels"), dict):
            return list(_from_fiftyone(content))
    raise InputError(
        f"{path} is neither a Label Studio export (a list of tasks), nor a COCO file (images, "
        "annotations, categories), nor a FiftyOne data set (classes, labels)."
    )


def _from_table(path: Path) -> Iterator[Annotation]:
    table = read_table(path)
    lower = {str(name).strip().lower(): name for name in table}
    suggested = next((lower[name] for name in _SUGGESTED if name in lower), None)
    column = suggested if suggested is not None else lower.get("label")
    key = next((lower[name] for name in _NAMES if name in lower), None)
    if column is None:
        raise InputError(
            f"{path} has the columns {', '.join(map(str, table))}, but neither 'label' nor "
            "'suggested_label'."
        )
    labels = as_labels(table[column].tolist())
    flags = table[lower[_FLAG]].tolist() if _FLAG in lower else [True] * len(table)
    # cleanlab's table has no ids: its rows are those of the collection
    names = map(str, range(len(table))) if key is None else map(str, table[key].tolist())
    for row, (name, label, flag) in enumerate(zip(names, labels, flags, strict=True), start=2):
        if label is not None and str(flag).strip().lower() in ("true", "1"):
            yield Annotation(f"row {row}", (name,), str(label))


def _from_task(task: Any, number: int) -> Annotation:
    """A task of Label Studio: the choice of its annotations."""
    where = f"task {task.get('id', number)}"
    data = task.get("data", task)  # JSON-MIN has the data beside the choice
    names = (*_named(data, ("item",)), *_named(data, _NAMES[1:]), *_named(data, ("text",)))
    names = tuple(_path_in(name) for name in names)
    if "annotations" not in task and "completions" not in task:
        chosen = [task[key] for key in ("choice", "category", "label") if task.get(key)]
        # our own tasks carry the category that was found, which nobody chose
        chosen = [] if "data" in task else chosen[:1]
    else:
        made = task.get("annotations", task.get("completions")) or []
        chosen = [
            choice
            for one in made
            if not one.get("was_cancelled")
            for result in one.get("result", [])
            for choice in result.get("value", {}).get("choices", [])
        ]
    return _one_of(where, names, [str(choice) for choice in chosen])


def _path_in(address: str) -> str:
    """The path in an address of Label Studio's local files; anything else as it is."""
    head, found, path = address.partition("?d=")
    return unquote(path) if found and head.endswith("/data/local-files/") else address


def _from_coco(content: Mapping[str, Any]) -> Iterator[Annotation]:
    category = {entry["id"]: str(entry["name"]) for entry in content["categories"]}
    labels: dict[Any, list[str]] = {}
    items: dict[Any, tuple[str, ...]] = {}
    for entry in content["annotations"]:
        labels.setdefault(entry["image_id"], []).append(category[entry["category_id"]])
        items[entry["image_id"]] = _named(entry.get("attributes", {}), ("item",))
    for image in content["images"]:
        number = image["id"]
        names = (*items.get(number, ()), str(image["file_name"]))
        found = _one_of(f"image {number}", names, labels.get(number, []))
        yield found._replace(by_person=False)


def _from_fiftyone(content: Mapping[str, Any]) -> Iterator[Annotation]:
    classes = content.get("classes") or []
    for stem, target in content["labels"].items():
        entry = target if isinstance(target, dict) else {"label": target}
        label = entry.get("label")
        if isinstance(label, int):
            label = classes[label]
        names = (*_named(entry.get("attributes", {}), ("item",)), str(stem))
        found = _one_of(f"sample {stem}", names, [] if label is None else [str(label)])
        yield found._replace(by_person=False)


def _named(values: Mapping[str, Any], keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(str(values[key]) for key in keys if isinstance(values.get(key), str | int))


def _one_of(where: str, names: tuple[str, ...], labels: list[str]) -> Annotation:
    """An annotation with the one label that is given; several that differ are a problem."""
    different = list(dict.fromkeys(labels))
    if len(different) > 1:
        told = " and ".join(repr(label) for label in different[:3])
        return Annotation(where, names, None, f"it has the labels {told}. Keep one of them")
    return Annotation(where, names, different[0] if different else None)
