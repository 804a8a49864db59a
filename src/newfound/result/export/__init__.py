"""Exports: a result in the files that other tools read.

There is one module for each format: tables (csv, parquet), folders of pictures, and the formats of
FiftyOne, Label Studio and COCO. For all of them, nothing that exists is overwritten, the names of
categories are made safe before they become names of files, and pictures are hard links or copies,
never symbolic links.

To add a format, write a module with one `Exporter` and add it to `FORMATS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from newfound.errors import InputError
from newfound.result.result import Result
from newfound.words import any_of

#: Writes a result to a file or a folder, which is given as an absolute path.
Exporter: TypeAlias = Callable[[Result, Path], None]


def export(result: Result, to: str, out: Path) -> Path:
    """Write a result in the format of another tool.

    Parameters
    ----------
    result : Result
        As `discover` returns it or `read_result` reads it.
    to : str
        One of `FORMATS`:

        - ``csv``, ``parquet``: a file with the table of items, as it is;
        - ``folders``: a folder for each category with its pictures, ``categories.csv`` with the
          category of each folder, ``files.csv`` with the origin of each file;
        - ``fiftyone``: a folder to load as ``fiftyone.types.FiftyOneImageClassificationDataset``;
        - ``label-studio``: a folder with ``tasks.json``, ``label_config.xml`` and a
          ``README.txt`` that says where these go; for pictures and texts;
        - ``coco``: a JSON file in which each whole picture is one object.

        Pictures in folders are hard links where the file system has them, and copies elsewhere.
        If you delete a hard link, the original stays; if you edit one, the original changes too.
    out : Path
        The file or folder to write. It must not exist, or be empty.

    Returns
    -------
    Path
        What was written.

    Raises
    ------
    InputError
        If the format is unknown or cannot hold such items, if `out` is not empty or cannot be
        written to, or if a picture no longer exists.
    """
    if to not in FORMATS:
        raise InputError(f"There is no format {to!r} to export to. Give one of {any_of(FORMATS)}.")
    out = Path(os.path.abspath(out))
    write = FORMATS[to]()
    write(result, out)
    return out


# Each exporter is imported when it is asked for, so that one format needs no other's packages.


def _csv() -> Exporter:
    from newfound.result.export.csv import export_csv

    return export_csv


def _parquet() -> Exporter:
    from newfound.result.export.parquet import export_parquet

    return export_parquet


def _folders() -> Exporter:
    from newfound.result.export.folders import export_folders

    return export_folders


def _fiftyone() -> Exporter:
    from newfound.result.export.fiftyone import export_fiftyone

    return export_fiftyone


def _label_studio() -> Exporter:
    from newfound.result.export.label_studio import export_label_studio

    return export_label_studio


def _coco() -> Exporter:
    from newfound.result.export.coco import export_coco

    return export_coco


#: Name of each format → function that loads its exporter.
FORMATS: Mapping[str, Callable[[], Exporter]] = {
    "csv": _csv,
    "parquet": _parquet,
    "folders": _folders,
    "fiftyone": _fiftyone,
    "label-studio": _label_studio,
    "coco": _coco,
}
