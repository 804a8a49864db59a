"""Annotations in the format of COCO."""

from __future__ import annotations

from typing import Any

from newfound.data.pictures import upright_size
from newfound.files import write_json
from newfound.result.export.attributes import attributes_of
from newfound.result.export.pictures import check_exist, folder_above, picture_paths, relative
from newfound.result.export.targets import Target, check_new_file
from newfound.result.result import Result


def export_coco(result: Result, target: Target) -> None:
    """Write a JSON file in which each whole picture is one object.

    The format is described at https://cocodataset.org/#format-data. It is made for objects within
    pictures, so a category that is given to a picture becomes a box as large as the picture.
    """
    check_new_file(target.path)
    paths = picture_paths(result, "coco")
    check_exist(paths)
    folder = folder_above(paths, result.collection.root)
    names = result.categories["category"].tolist()
    # COCO counts from 1; many of its readers take 0 for the background.
    code_of = {name: code for code, name in enumerate(names, start=1)}
    images, annotations = [], []
    for row, path in zip(result.table.itertuples(), paths, strict=True):
        number, (width, height) = row.Index + 1, upright_size(path)
        sizes = {"width": width, "height": height}
        images.append({"id": number, "file_name": relative(path, folder), **sizes})
        annotations.append(_annotation(row, number, code_of[row.category], (width, height)))
        target.progress(number, len(paths))
    kinds = zip(code_of.items(), result.categories["kind"], strict=True)
    content = {
        "info": {"description": result.answer, "folder": str(folder)},
        "licenses": [],
        "images": images,
        "annotations": annotations,
        "categories": [{"id": i, "name": name, "supercategory": kind} for (name, i), kind in kinds],
    }
    write_json(target.path, content)


def _annotation(row: Any, number: int, code: int, size: tuple[int, int]) -> dict[str, Any]:
    """One object, as large as the picture."""
    score = float(row.confidence)
    width, height = size
    return {
        "id": number,
        "image_id": number,
        "category_id": code,
        "bbox": [0, 0, width, height],
        "area": width * height,
        "segmentation": [[0, 0, width, 0, width, height, 0, height]],
        "iscrowd": 0,
        "score": score,  # COCO's own results have the score here; CVAT reads the attributes
        "attributes": {"score": score, **attributes_of(row)},
    }
