"""Exports: a result in the files that other tools read.

There is one module for each format: tables (csv, parquet), folders of pictures, and the formats of
FiftyOne, Label Studio and COCO. For all of them, nothing that exists is overwritten, the names of
categories are made safe before they become names of files, and pictures are copies or, if asked
for, hard links, never symbolic links.

To add a format, write a module with one `Exporter` and add it to `FORMATS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

from newfound.errors import InputError
from newfound.progress import StepProgress, no_progress
from newfound.result.export.targets import Target, check_name
from newfound.result.result import Result
from newfound.words import any_of

#: Writes a result to a file or a folder.
Exporter: TypeAlias = Callable[[Result, Target], None]


class Format(NamedTuple):
    """A format to export to.

    Attributes
    ----------
    load : callable
        Imports the exporter and returns it.
    endings : tuple of str
        Endings of the file that it writes, the usual one first; empty if it writes no file.
    is_folder : bool
        Whether it writes a folder.
    has_pictures : bool
        Whether that folder holds the pictures themselves.
    """

    load: Callable[[], Exporter]
    endings: tuple[str, ...] = ()
    is_folder: bool = False
    has_pictures: bool = False


def export(
    result: Result,
    to: str,
    out: Path,
    *,
    link: bool = False,
    progress: StepProgress | None = None,
) -> Path:
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
          ``README.txt`` that says where these go; if `out` ends in ``.json``, the tasks are
          written to that file, and the other two beside it, with its name in front; for pictures
          and texts;
        - ``coco``: a JSON file in which each whole picture is one object.
    out : Path
        The file or folder to write. It must not exist, or be empty. The name of a file has the
        ending of its format.
    link : bool, default=False
        Make hard links to the pictures instead of copies, for ``folders`` and ``fiftyone``. They
        take no space, but if you edit a linked picture, the original changes too. A picture that
        cannot be linked, because it is on another disk, is copied, with an `ExportWarning`.
    progress : callable, optional
        Called with the number of pictures done so far and their total number.

    Returns
    -------
    Path
        What was written.

    Raises
    ------
    InputError
        If the format is unknown or cannot hold such items, if `out` is not empty, cannot be
        written to or has the wrong ending, if a picture no longer exists, or if the disk has too
        little room for the copies.
    """
    if to not in FORMATS:
        raise InputError(f"There is no format {to!r} to export to. Give one of {any_of(FORMATS)}.")
    kind = FORMATS[to]
    if link and not kind.has_pictures:
        others = any_of(name for name, other in FORMATS.items() if other.has_pictures)
        raise InputError(
            f"{to!r} writes no pictures, so there is nothing to link. Links are for {others}."
        )
    out = Path(os.path.abspath(out))
    check_name(out, to, kind.endings, may_be_folder=kind.is_folder)
    write = kind.load()
    write(result, Target(out, link, progress or no_progress))
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


#: The formats by name.
FORMATS: Mapping[str, Format] = {
    "csv": Format(_csv, endings=(".csv",)),
    "parquet": Format(_parquet, endings=(".parquet", ".pq")),
    "folders": Format(_folders, is_folder=True, has_pictures=True),
    "fiftyone": Format(_fiftyone, is_folder=True, has_pictures=True),
    "label-studio": Format(_label_studio, endings=(".json",), is_folder=True),
    "coco": Format(_coco, endings=(".json",)),
}
