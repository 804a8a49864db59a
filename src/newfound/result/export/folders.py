"""Pictures sorted into one folder for each category."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from newfound.data.tables import write_csv
from newfound.errors import require
from newfound.result.export.names import distinct, safe_name, split_name
from newfound.result.export.pictures import pictures_to_write, write_pictures
from newfound.result.export.targets import Target, new_folder
from newfound.result.result import Result


def export_folders(result: Result, target: Target) -> None:
    """Write a folder for each category, ``categories.csv`` and ``files.csv``.

    Names of folders and files may differ from those of categories and pictures, which need not be
    valid or distinct as file names. The two tables say which is which.
    """
    pandas = require("pandas", "report")
    paths, out = pictures_to_write(result, "folders", target), target.path
    folders = _folder_names(result.categories["category"])
    places = [folders[name] for name in result.table["category"]]
    names = _file_names(paths, places)
    files = [f"{folder}/{name}" for folder, name in zip(places, names, strict=True)]
    columns = ["id", "path", "category", "confidence", "is_unsure"]
    of_files = result.table[[name for name in columns if name in result.table]]
    of_folders = result.categories[["category", "kind", "size"]]
    with new_folder(out):
        for folder in folders.values():
            (out / folder).mkdir()
        write_pictures(
            [(path, out / file) for path, file in zip(paths, files, strict=True)], target
        )
        categories = pandas.concat([_column("folder", folders.values()), of_folders], axis=1)
        write_csv(categories, out / "categories.csv")
        write_csv(pandas.concat([_column("file", files), of_files], axis=1), out / "files.csv")


def _folder_names(categories: Iterable[str]) -> dict[str, str]:
    """The name of the folder for each category."""
    categories = list(categories)
    parts = [(safe_name(name), "") for name in categories]
    # A category may be called like one of the two tables that lie beside the folders.
    names = distinct(parts, taken=("categories.csv", "files.csv"))
    return dict(zip(categories, names, strict=True))


def _file_names(paths: list[Path], places: list[str]) -> list[str]:
    """The original names, with a number where two of them would meet in one folder."""
    pairs = zip(places, map(split_name, paths), strict=True)
    names = distinct((f"{folder}/{stem}", ending) for folder, (stem, ending) in pairs)
    return [name.rpartition("/")[2] for name in names]


def _column(name: str, values: Iterable[str]) -> Any:
    return require("pandas", "report").Series(list(values), name=name, dtype=object)
