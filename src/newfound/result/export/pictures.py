"""The pictures of a result: where they are, and copies of them or hard links to them."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Sequence
from pathlib import Path

from newfound.data.pictures import PictureError, upright_size
from newfound.errors import ExportWarning, InputError
from newfound.progress import StepProgress
from newfound.result.export.targets import Target
from newfound.result.result import Result
from newfound.words import any_of, file_size, plural

#: Files take whole blocks of a disk; 4 kB is the usual size.
_BLOCK = 4096


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


def pictures_to_write(result: Result, to: str, target: Target) -> list[Path]:
    """Paths of the pictures, after a check that they exist and that copies have room.

    A target among the pictures is refused.
    """
    paths = picture_paths(result, to)
    root, out = result.collection.root, target.path
    if root is not None and Path(os.path.realpath(out)).is_relative_to(os.path.realpath(root)):
        raise InputError(
            f"{out} lies in {root}, where the next run would find each picture twice. Choose a "
            "folder outside of it."
        )
    check_exist(paths)
    check_content(paths)
    if not target.link:
        _check_room(paths, target)
    return paths


def check_exist(paths: list[Path]) -> None:
    """Refuse to export pictures that were moved or deleted since the run."""
    gone = [path for path in paths if not path.is_file()]
    if gone:
        raise InputError(
            f"{len(gone)} of {len(paths)} pictures cannot be found. The first is {gone[0]}. Put "
            "them back, or run newfound discover on the folder as it is now."
        )


def check_content(paths: list[Path]) -> None:
    """Refuse to export what is not a picture.

    The paths come from the table of the run, which somebody else may have made. It must not bring
    any other file of this machine into an export.
    """
    for path in paths:
        upright_size(path)


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


def write_pictures(pictures: Sequence[tuple[Path, Path]], target: Target) -> None:
    """Copy pictures, or make hard links to them, as the target asks for.

    Parameters
    ----------
    pictures : sequence of tuple of Path
        Each picture, and the file to make of it.
    target : Target
        If it asks for links, a picture that cannot be linked is copied, with a warning.

    Raises
    ------
    InputError
        If there is too little room for the copies that take the place of links.
    PictureError
        If a picture cannot be read.
    """
    n = len(pictures)
    rest = list(pictures)
    if target.link:
        rest, reason = _link_pictures(pictures, target.progress)
        if rest:
            _check_room([source for source, _ in rest], target)
            warnings.warn(
                f"{plural(len(rest), 'picture was', 'pictures were')} copied, not linked, because "
                f"a hard link was not possible ({reason}).",
                ExportWarning,
                stacklevel=4,  # the caller of `export`
            )
    for done, (source, copy) in enumerate(rest, start=n - len(rest) + 1):
        _copy_picture(source, copy)
        target.progress(done, n)


def _check_room(paths: Sequence[Path], target: Target) -> None:
    """Refuse to copy pictures to a disk that has too little room for them."""
    needed = sum(-(-path.stat().st_size // _BLOCK) * _BLOCK for path in paths)
    out = target.path
    folder = next(folder for folder in (out, *out.parents) if folder.exists())
    free = shutil.disk_usage(folder).free
    if needed <= free:
        return
    links = (
        "choose a folder on the disk of the pictures, where they can be linked"
        if target.link
        else "use --link (in Python link=True) to make hard links on the disk of the pictures"
    )
    raise InputError(
        f"Copies of {plural(len(paths), 'picture')} need {file_size(needed)}, but the disk with "
        f"{folder} has only {file_size(free)} free. Nothing was written. Make room, choose a "
        f"folder on another disk, or {links}."
    )


def _link_pictures(
    pictures: Sequence[tuple[Path, Path]], progress: StepProgress
) -> tuple[list[tuple[Path, Path]], str]:
    """Make hard links; those that cannot be linked are returned, with the reason of the last."""
    rest, reason = [], ""
    for i, (source, link) in enumerate(pictures, start=1):
        try:
            # The file itself: a link to a symbolic link would be another symbolic link.
            os.link(os.path.realpath(source), link)
        # Another disk, a file system without links, another owner, or too many links.
        except OSError as error:
            rest.append((source, link))
            reason = error.strerror or str(error)
        else:
            progress(i - len(rest), len(pictures))
    return rest, reason


def _copy_picture(source: Path, target: Path) -> None:
    """Copy the content of a picture and the time of its last change, by which people sort."""
    try:
        file = open(source, "rb")  # noqa: SIM115
    except OSError as error:
        raise PictureError(source, f"cannot be read: {error.strerror}") from error
    with file, target.open("xb") as copy:
        shutil.copyfileobj(file, copy)
        times = os.fstat(file.fileno())
    os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))
