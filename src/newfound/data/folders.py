"""Folders of pictures: which files are pictures, and what their labels are.

Labels come from class folders (the first folder of each path is the class) or from a table of
paths. Files are listed here and opened later. Every file that is not used is listed with the
reason, except hidden files and what operating systems leave behind (``.DS_Store``, ``Thumbs.db``).
Items are sorted by id, because file systems list files in any order.
"""

from __future__ import annotations

import os
import posixpath
import unicodedata
from pathlib import Path, PureWindowsPath
from typing import Any

from newfound.data.collection import Collection, Metadata, Skipped
from newfound.data.label_tables import labels_by_id
from newfound.data.metadata import by_id, read_metadata
from newfound.data.pictures import (
    HEIC_SUFFIXES,
    NO_HEIC,
    PICTURE_SUFFIXES,
    RAW_SUFFIXES,
    has_heic,
)
from newfound.data.tables import Table, as_objects, column_texts, column_values, read_table
from newfound.errors import InputError
from newfound.files import is_litter
from newfound.words import first_few

_UNLABELLED_FOLDERS = ("unlabelled", "unlabeled", "unknown")
_NOT_A_PICTURE = "not a picture format that newfound reads"
_RAW = "a raw photo, not a picture format that newfound reads; export it as JPEG"


def read_folder(folder: Path, labels: Path | None, unlabelled_folder: str) -> Collection:
    """Read a folder of pictures.

    Parameters
    ----------
    folder : Path
        The folder; pictures in folders below it count too.
    labels : Path or None
        A table with the columns ``path`` and ``label``. None: the folders are the classes.
    unlabelled_folder : str
        Name of the folder whose pictures have no class.

    Returns
    -------
    Collection
        Pictures, by their paths within the folder.

    Raises
    ------
    InputError
        If the folder or the table cannot be read or don't fit together.
    """
    # Not resolve(), which follows links: messages keep the path that the person gave.
    root = folder.absolute()
    found, skipped = _list_pictures(root)
    further: Metadata = {}
    named: list[str] = []
    if labels is None:
        by_path = _labels_of_folders(root, found, unlabelled_folder)
    else:
        labels = Path(labels)
        table = read_table(labels)
        named, further = _locate_all(root, found, table, labels), read_metadata(table)
        by_path = labels_by_id(named, column_values(table, "label", labels), labels)
    # A table may also name a picture whose ending is unusual; it is used like the others.
    ids = sorted({*found, *by_path})
    return Collection(
        ids=ids,
        y=as_objects([by_path.get(name) for name in ids]),
        paths=[root / name for name in ids],
        skipped=sorted(_unused(skipped, root, by_path, labels), key=lambda item: item.path),
        root=root,
        metadata=by_id(further, named, ids),
    )


def folders_without_pictures(collection: Collection) -> list[str]:
    """Folders of which no file could be used: classes that a person expects and does not get.

    Parameters
    ----------
    collection : Collection
        As `read_folder` gives it.

    Returns
    -------
    list of str
        Names of first folders, sorted.
    """
    if collection.kind != "pictures":
        return []
    skipped = {item.path.partition("/")[0] for item in collection.skipped if "/" in item.path}
    return sorted(skipped - {name.partition("/")[0] for name in collection.ids})


def _unused(
    skipped: list[Skipped], root: Path, by_path: dict[str, Any], labels: Path | None
) -> list[Skipped]:
    """What is left out, without files that a table names, and without that table itself."""
    used = set(by_path)
    if labels is not None:
        used.add(os.path.relpath(os.path.realpath(labels), os.path.realpath(root)))
    return [item for item in skipped if item.path not in used]


def _list_pictures(root: Path) -> tuple[list[str], list[Skipped]]:
    """Paths of the pictures below a folder, relative to it, and what is left out."""
    found: list[str] = []
    skipped: list[Skipped] = []
    pending = [""]
    while pending:
        prefix = pending.pop()
        try:
            entries = list(os.scandir(root / prefix))
        except OSError as error:
            if not prefix:
                raise InputError(f"The folder {root} cannot be read: {error.strerror}.") from error
            skipped.append(
                Skipped(_printable(prefix), f"the folder cannot be read: {error.strerror}")
            )
            continue
        for entry in entries:
            name = prefix + entry.name
            # A table may still name a hidden picture.
            if is_litter(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                pending.append(name + "/")
            elif reason := _reason_to_skip(root, name, entry.is_symlink()):
                skipped.append(Skipped(_printable(name), reason))
            else:
                found.append(name)
    return found, skipped


def _reason_to_skip(root: Path, name: str, is_link: bool) -> str:
    """Why a file or a link is left out; empty if it is a picture to be read."""
    path = root / name
    suffix = posixpath.splitext(name)[1].lower()
    if is_link and path.is_dir():
        # Links can lead in circles, and out of the folder that the person gave.
        return "a link to a folder, which is not followed; copy the folder"
    if is_link and not os.path.isfile(path):
        return "a link to a file that does not exist"
    if suffix in RAW_SUFFIXES:
        return _RAW
    if suffix not in PICTURE_SUFFIXES | HEIC_SUFFIXES:
        return _NOT_A_PICTURE
    if suffix in HEIC_SUFFIXES and not has_heic():
        return NO_HEIC
    if _printable(name) != name:
        return "its name is not UTF-8; rename it"
    if is_link and not _is_within(root, path):
        return "a link that leads out of the folder; copy the file"
    # A pipe may be named like a picture: opening one would wait for ever.
    return "" if os.path.isfile(path) else "is not a file"


def _is_within(root: Path, path: Path) -> bool:
    """Whether a file lies in the folder when all links are followed."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def _printable(name: str) -> str:
    """A file name with escapes for bytes that are not UTF-8, so that it can be written."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _labels_of_folders(root: Path, found: list[str], unlabelled_folder: str) -> dict[str, Any]:
    """Use the first folder of each path as its class."""
    without_class = [unlabelled_folder.lower()]
    if unlabelled_folder in _UNLABELLED_FOLDERS:
        without_class.extend(_UNLABELLED_FOLDERS)
    elif not (root / unlabelled_folder).is_dir():
        raise InputError(
            f"There is no folder {unlabelled_folder!r} in {root}. Give the name of the folder that "
            "holds the pictures without a class."
        )
    classes = {name: name.partition("/")[0] for name in found if "/" in name}
    return {
        name: None if folder.lower() in without_class else folder
        for name, folder in classes.items()
    }


def _locate_all(root: Path, found: list[str], table: Table, labels: Path) -> list[str]:
    """The id of the picture in each row of a table of paths."""
    given = column_texts(table, "path", labels)
    known = {_composed(name): name for name in found} | {name: name for name in found}
    located = [_locate(root, path, known) for path in given]
    outside = [path for path, name in zip(given, located, strict=True) if name == _OUTSIDE]
    if outside:
        raise InputError(
            f"{labels} names files outside of {root}: {first_few(outside)}. Only pictures in the "
            "folder are read. Copy them there, or give a folder that holds them all."
        )
    missing = [path for path, name in zip(given, located, strict=True) if name == _MISSING]
    if missing:
        raise InputError(
            f"No file was found for {len(missing)} of {len(given)} paths in {labels}: "
            f"{first_few(missing)}. Paths are relative to {root}.{_near_miss(missing[0], known)}"
        )
    return located


_OUTSIDE, _MISSING = "..", "."  # no file can have these names


def _locate(root: Path, given: str, known: dict[str, str]) -> str:
    """The id of a path in a table, or `_OUTSIDE`, or `_MISSING`."""
    with_slashes = given.replace("\\", "/")
    # The path is first tried exactly as written: on Unix, a backslash may be part of a name.
    if listed := _look_up(given, known) or _look_up(with_slashes, known):
        return listed
    name = _relative_to(root, with_slashes)
    if listed := _look_up(name, known):
        return listed
    if not _is_within(root, root / name):
        return _OUTSIDE
    return name if os.path.isfile(root / name) else _MISSING


def _look_up(path: str, known: dict[str, str]) -> str | None:
    name = posixpath.normpath(path)
    return known.get(name) or known.get(_composed(name))


def _relative_to(root: Path, given: str) -> str:
    """A path relative to the folder, which may itself be reached by way of a link."""
    if PureWindowsPath(given).drive and os.name != "nt":
        return _OUTSIDE
    for base in (root, Path(os.path.realpath(root))):
        name = os.path.relpath(base / given, base).replace(os.sep, "/")
        if name.partition("/")[0] != "..":
            return name
    return _OUTSIDE


def _composed(name: str) -> str:
    """The composed form of letters with accents; macOS writes the decomposed form on disks."""
    return unicodedata.normalize("NFC", name)


def _near_miss(path: str, known: dict[str, str]) -> str:
    """Help with the most common mistake: a path that begins with the folder's own name."""
    parts = path.replace("\\", "/").split("/")
    tails = ["/".join(parts[i:]) for i in range(1, len(parts))]
    return next((f" Is {path} meant to be {tail}?" for tail in tails if tail in known), "")
