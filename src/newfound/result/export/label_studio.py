"""A project for Label Studio: tasks with predictions, and the labelling interface."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from newfound.files import write_atomically, write_json
from newfound.result.export.attributes import attributes_of
from newfound.result.export.names import distinct
from newfound.result.export.pictures import folder_above, picture_paths, relative
from newfound.result.export.targets import new_folder
from newfound.result.result import Result

_URL = "/data/local-files/?d="
_HOW_TO_SERVE = """\
Before you start Label Studio, allow it to read the pictures where they are:

    LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true
    LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT={root}

In the project: Settings > Cloud Storage > Add Source Storage > Local files, with the absolute
local path {folder}
Save it, but do not sync it: the tasks come from tasks.json.

"""
_HOW_TO_IMPORT = """\
Paste label_config.xml into Settings > Labeling Interface > Code. Then import tasks.json.
The categories that newfound found are predictions, with their confidence as the score. The labels
that were given are annotations.
"""

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def export_label_studio(result: Result, out: Path) -> None:
    """Write a folder with ``tasks.json``, ``label_config.xml`` and ``README.txt``.

    The format is described at https://labelstud.io/guide/predictions, and for annotations at
    https://labelstud.io/guide/tasks. A category whose name XML cannot hold gets another name among
    the choices; its own name is in the data of the task.
    """
    shown = _choice_names(result.categories["category"])
    field, contents, instructions = _task_contents(result)
    model = f"newfound {result.record.version}"
    tasks = [
        _task(row, {field: content}, shown[row.category], model)
        for row, content in zip(result.table.itertuples(), contents, strict=True)
    ]
    with new_folder(out):
        write_atomically(out / "label_config.xml", _label_config(field, shown.values()).encode())
        write_atomically(out / "README.txt", instructions.encode())
        write_json(out / "tasks.json", tasks)


def _task_contents(result: Result) -> tuple[str, list[str], str]:
    """What a task shows: the name of the field, a value for each item, and what to set up."""
    collection = result.collection
    if collection.texts is not None:
        return "text", collection.texts, _HOW_TO_IMPORT
    paths = picture_paths(result, "label-studio")
    folder = folder_above(paths, collection.root)
    # Label Studio wants the folder of a storage to lie below its root, not to be the root.
    urls = [_URL + quote(relative(path, folder.parent)) for path in paths]
    return "image", urls, _HOW_TO_SERVE.format(root=folder.parent, folder=folder) + _HOW_TO_IMPORT


def _choice_names(categories: Iterable[str]) -> dict[str, str]:
    """How each category is shown: on one line, in characters that XML has."""
    categories = list(categories)
    parts = [(" ".join(_NOT_IN_XML.sub("\ufffd", name).split()) or "_", "") for name in categories]
    # Choices are compared as they are written: here, upper and lower case differ.
    names = distinct(parts, lambda stem, ending: stem + ending)
    return dict(zip(categories, names, strict=True))


def _label_config(field: str, choices: Iterable[str]) -> str:
    """The labelling interface: the item and the categories to choose from."""
    tag = {"image": "Image", "text": "Text"}[field]
    lines = [f"    <Choice value={quoteattr(choice)}/>" for choice in choices]
    return "\n".join(
        [
            "<View>",
            f'  <{tag} name="item" value="${field}"/>',
            '  <Choices name="category" toName="item" choice="single" showInline="true">',
            *lines,
            "  </Choices>",
            "</View>\n",
        ]
    )


def _task(row: Any, content: dict[str, str], choice: str, model: str) -> dict[str, Any]:
    """One item: its data, the found category as a prediction, a given label as an annotation."""

    def chosen(by: str) -> list[dict[str, Any]]:
        names = {"from_name": "category", "to_name": "item", "type": "choices"}
        return [{"id": f"{by}-{row.Index}", **names, "value": {"choices": [choice]}}]

    score = float(row.confidence)
    predictions = [{"model_version": model, "score": score, "result": chosen("newfound")}]
    # A labelled item keeps its class, so its category is also the label that was given.
    annotations = [] if row.given_label is None else [{"result": chosen("given")}]
    data = {**content, "category": row.category, **attributes_of(row)}
    return {"data": data, "predictions": predictions, "annotations": annotations}
