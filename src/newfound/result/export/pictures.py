"""The pictures of a result: where they are, and copies of them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from newfound.data.pictures import PictureError
from newfound.errors import InputError
from newfound.result.result import Result
from newfound.words import any_of


def picture_paths(result: Result, to: str) -> list[Path]:
    """Absolute paths of the pictures; `to` is the format, for the message if there are none."""
    collection = result.collection
    if collection.paths is None:
        others = ["csv", "parquet", *(["label-studio"] if collection.kind == "texts" else [])]
        raise InputError(
            f"{to!r} is for pictures, but this run is on {collection.kind}. Export it to "
            f"{any_of(others)}."
        )
    return [Path(os.path.abspath(path)) for path in collection.paths]


def pictures_to_copy(result: Result, to: str, out: Path) -> list[Path]:
    """Paths of the pictures, after a check that they exist and that `out` is not among them."""
    paths = picture_paths(result, to)
    root = result.collection.root
    if root is not None and Path(os.path.realpath(out)).is_relative_to(os.path.realpath(root)):
        raise InputError(
            f"{out} lies in {root}, where the next run would find each picture twice. Choose a "
            "folder outside of it."
        )
    check_exist(paths)
    return paths


def check_exist(paths: list[Path]) -> None:
    """Refuse to export pictures that were moved or deleted since the run."""
    gone = [path for path in paths if not path.is_file()]
    if gone:
        raise InputError(
            f"{len(gone)} of {len(paths)} pictures cannot be found. The first is {gone[0]}. Put "
            "them back, or run newfound discover on the folder as it is now."
        )


def folder_above(paths: list[Path], root: Path | None) -> Path:
    """The folder that the items were read from, or the deepest one that holds them all."""
    if root is not None:
        folder = Path(os.path.abspath(root))
        if all(path.is_relative_to(folder) for path in paths):
            return folder
    try:
        return Path(os.path.commonpath([path.parent for path in paths]))
    except ValueError as error:
        raise InputError(
            f"The pictures have no folder in common ({error}). Copy them into one folder, and run "
            "newfound discover on that."
        ) from error


def relative(path: Path, folder: Path) -> str:
    """A path relative to a folder above it, with ``/`` on every system."""
    return path.relative_to(folder).as_posix()


def place(source: Path, target: Path) -> None:
    """Make a hard link to a picture, or copy it where that is not possible."""
    origin = os.path.realpath(source)  # the file itself, also where the source is a symbolic link
    try:
        os.link(origin, target)
        return
    except OSError:  # another disk, a file system without links, another owner, too many links
        pass
    try:
        file = open(origin, "rb")  # noqa: SIM115
    except OSError as error:
        raise PictureError(source, f"cannot be read: {error.strerror}") from error
    with file, target.open("xb") as copy:
        shutil.copyfileobj(file, copy)
