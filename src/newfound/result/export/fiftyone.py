"""A data set that FiftyOne loads."""

from __future__ import annotations

import os

from newfound.files import write_json
from newfound.result.export.attributes import attributes_of
from newfound.result.export.names import distinct, same_stem, split_name
from newfound.result.export.pictures import pictures_to_write, write_pictures
from newfound.result.export.targets import Target, new_folder
from newfound.result.result import Result


def export_fiftyone(result: Result, target: Target) -> None:
    """Write a folder to load as ``fiftyone.types.FiftyOneImageClassificationDataset``.

    The format is described at https://docs.voxel51.com/user_guide/import_datasets.html, under
    FiftyOneImageClassificationDataset. This is its form for predictions, with a confidence and
    attributes.
    """
    paths, out = pictures_to_write(result, "fiftyone", target), target.path
    classes = result.categories["category"].tolist()
    code_of = {name: code for code, name in enumerate(classes)}
    # FiftyOne identifies a picture by its name without the ending.
    names = distinct([split_name(path) for path in paths], same_stem)
    labels = {
        os.path.splitext(name)[0]: {
            "label": code_of[row.category],
            "confidence": float(row.confidence),
            "attributes": attributes_of(row),
        }
        for name, row in zip(names, result.table.itertuples(), strict=True)
    }
    with new_folder(out):
        (out / "data").mkdir()
        write_pictures(
            [(path, out / "data" / name) for path, name in zip(paths, names, strict=True)], target
        )
        write_json(out / "labels.json", {"classes": classes, "labels": labels})
