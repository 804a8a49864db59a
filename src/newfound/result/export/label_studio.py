"""A project for Label Studio: tasks with predictions, and the labelling interface."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from newfound.files import write_atomically, write_json
from newfound.result.export.attributes import attributes_of
from newfound.result.export.names import distinct
from newfound.result.export.pictures import folder_above, picture_paths, relative
from newfound.result.export.targets import Target, new_files, new_folder
from newfound.result.result import Result

_URL = "/data/local-files/?d="
_HOW_TO_SERVE = """\
Before you start Label Studio, allow it to read the pictures where they are:

    LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true
    LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT={root}

In the project: Settings > Cloud Storage > Add Source Storage > Local files, with the absolute
local path {folder}
Save it, but do not sync it: the tasks come from {tasks}.

"""
_HOW_TO_IMPORT = """\
Paste {config} into Settings > Labeling Interface > Code. Then import {tasks}.
The categories that newfound found are predictions, with their confidence as the score. The labels
that were given are annotations.
"""

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def export_label_studio(result: Result, target: Target) -> None:
    """Write ``tasks.json``, ``label_config.xml`` and ``README.txt`` to a folder.

    If the target is the name of a JSON file, the tasks are written to that file, and the other two
    beside it: ``birds.json``, ``birds.label_config.xml`` and ``birds.README.txt``.

    The format is described at https://labelstud.io/guide/predictions, and for annotations at
    https://labelstud.io/guide/tasks. A category whose name XML cannot hold gets another name among
    the choices; its own name is in the data of the task.
    """
    shown = _choice_names(result.categories["category"])
    field, contents, folder = _task_contents(result)
    model = f"newfound {result.record.version}"
    tasks = [
        _task(row, {field: content}, shown[row.category], model)
        for row, content in zip(result.table.itertuples(), contents, strict=True)
    ]
    with _new_files(target.path) as files:
        write_atomically(files.config, _label_config(field, shown.values()).encode())
        write_atomically(files.instructions, _instructions(files, folder).encode())
        write_json(files.tasks, tasks)


class _Files(NamedTuple):
    """The files of a project."""

    tasks: Path
    config: Path
    instructions: Path


@contextlib.contextmanager
def _new_files(out: Path) -> Iterator[_Files]:
    """The files to write: in a new folder, or beside each other with a name in common."""
    if out.suffix.lower() == ".json" and not out.is_dir():
        files = _Files(out, out.with_suffix(".label_config.xml"), out.with_suffix(".README.txt"))
        with new_files(files):
            yield files
    else:
        with new_folder(out):
            yield _Files(out / "tasks.json", out / "label_config.xml", out / "README.txt")


def _task_contents(result: Result) -> tuple[str, list[str], Path | None]:
    """What a task shows: the name of the field, a value for each item, the folder of pictures."""
    collection = result.collection
    if collection.texts is not None:
        return "text", collection.texts, None
    paths = picture_paths(result, "label-studio")
    folder = folder_above(paths, collection.root)
    # Label Studio wants the folder of a storage to lie below its root, not to be the root.
    return "image", [_URL + quote(relative(path, folder.parent)) for path in paths], folder


def _instructions(files: _Files, folder: Path | None) -> str:
    """Where the files go; for pictures also how Label Studio finds them in their folder."""
    names = {"tasks": files.tasks.name, "config": files.config.name}
    text = _HOW_TO_IMPORT.format(**names)
    if folder is None:
        return text
    return _HOW_TO_SERVE.format(root=folder.parent, folder=folder, **names) + text


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
