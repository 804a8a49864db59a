"""The folders that the pictures of a run lie in: paths in its tables are checked against them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from newfound.data.collection import Collection
from newfound.errors import InputError

#: The name of the list in ``run.json``.
KEY = "roots"


def roots_of(collection: Collection) -> list[str]:
    """The folder that pictures were read from, and the deepest ones above all others.

    Parameters
    ----------
    collection : Collection
        Of any kind; only pictures have roots.

    Returns
    -------
    list of str
        Absolute paths. Pictures that were added later, from another folder, have a root of their
        own on each drive.
    """
    if not collection.paths:
        return []
    roots = [] if collection.root is None else [os.path.abspath(collection.root)]
    others: dict[str, str] = {}
    for folder in _folders_of(collection.paths):
        if not _is_below(folder, roots):
            drive = os.path.splitdrive(folder)[0]
            others[drive] = os.path.commonpath([others.get(drive, folder), folder])
    return roots + list(others.values())


def check_roots(paths: Sequence[Path], run: dict[str, Any], folder: Path) -> None:
    """Refuse a run whose table names files outside of the folders that it was made from.

    Parameters
    ----------
    paths : sequence of Path
        The pictures, from the table of the run.
    run : dict
        The content of ``run.json``. Without roots (earlier versions) its source is the root.
    folder : Path
        The run folder, for the message.

    Raises
    ------
    InputError
        With the first such file.
    """
    source = run.get("source")
    roots = run.get(KEY, None if source is None else [source])
    if roots is None:  # an earlier version, on a collection without a folder
        return
    if not (isinstance(roots, list) and all(isinstance(root, str) for root in roots)):
        raise InputError(f"{folder / 'run.json'} is damaged: {KEY!r} is not a list of folders.")
    roots = [os.path.abspath(root) for root in roots]
    outside = sorted(one for one in _folders_of(paths) if not _is_below(one, roots))
    if outside:
        raise InputError(
            f"The table of {folder} names pictures in {outside[0]}, but the run was made from "
            f"{', '.join(roots) or 'no folder'}. Files from elsewhere are not read: ask whoever "
            "gave you the run, or run newfound discover on your own folder."
        )


def _folders_of(paths: Sequence[Path]) -> set[str]:
    """Folders that hold the files, without dots and without a look at the disk."""
    return {os.path.dirname(os.path.abspath(path)) for path in paths}


def _is_below(folder: str, roots: Sequence[str]) -> bool:
    return any(Path(folder).is_relative_to(root) for root in roots)
