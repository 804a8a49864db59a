"""Listings: the rows that are found on disk with their classes, before any check."""

from __future__ import annotations

import importlib.resources
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from newfound.arrays import Ints
from newfound.data.pictures import PICTURE_SUFFIXES
from newfound.errors import InputError

#: Sorted names of class folders → the names of all classes in the official order, and the index
#: of each folder among them; -1 for a folder that is left out.
ClassOrder: TypeAlias = Callable[[Sequence[str]], tuple[tuple[str, ...], list[int]]]


class Listing(NamedTuple):
    """Rows of a data set.

    Attributes
    ----------
    truth : ndarray of int64, shape (n,)
        Class of each row, as an index of `class_names`.
    class_names : tuple of str
        Names of all classes.
    where : Path
        The folder that was read.
    paths : list of Path or None
        Image files, one per row.
    array : ndarray of uint8, shape (n, 3, s, s), or None
        Images in memory.
    layout : str
        "official" or "class folders".
    """

    truth: Ints
    class_names: tuple[str, ...]
    where: Path
    paths: list[Path] | None = None
    array: npt.NDArray[Any] | None = None
    layout: str = "official"


def read_class_folders(folder: Path, order: ClassOrder, inner: str = "") -> Listing | None:
    """Read class folders: classes in the official order, files sorted by name.

    Parameters
    ----------
    folder : Path
        Folder that contains the class folders.
    order : callable
        Puts the classes in the official order.
    inner : str
        Sub-folder of each class folder with the images, if not the class folder itself.

    Returns
    -------
    Listing or None
        None if there is no folder with images. Hidden folders and those without images do not
        count.
    """
    if not folder.is_dir():
        return None
    files = {
        entry.name: _pictures_in(Path(entry.path) / inner)
        for entry in os.scandir(folder)
        if entry.is_dir() and not entry.name.startswith((".", "__"))
    }
    names = sorted(name for name, pictures in files.items() if pictures)
    if not names:
        return None
    try:
        class_names, places = order(names)
    except InputError as error:
        raise InputError(f"{folder}: {error}") from error
    by_place = sorted(pair for pair in zip(places, names, strict=True) if pair[0] >= 0)
    truth = np.repeat([place for place, _ in by_place], [len(files[name]) for _, name in by_place])
    paths = [path for _, name in by_place for path in files[name]]
    return Listing(truth.astype(np.int64), class_names, folder, paths, layout="class folders")


def _pictures_in(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    names = [entry.name for entry in os.scandir(folder) if entry.is_file()]
    return [folder / name for name in sorted(names) if _is_picture(name)]


def _is_picture(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in PICTURE_SUFFIXES and not name.startswith(".")


def by_name(names: Sequence[str]) -> tuple[tuple[str, ...], list[int]]:
    """Classes in the order of their names, as in the field's code (10 comes before 2)."""
    return tuple(names), list(range(len(names)))


def by_name_or_number(names: Sequence[str]) -> tuple[tuple[str, ...], list[int]]:
    """Classes in the order of their names, or in numeric order if all names are numbers."""
    # folders 0 … 99 are class numbers, and sorting by name would put 10 before 2
    numbered = all(name.isdecimal() for name in names)
    ordered = sorted(names, key=int) if numbered else list(names)
    return tuple(ordered), [ordered.index(name) for name in names]


def by_leading_number(names: Sequence[str]) -> tuple[tuple[str, ...], list[int]]:
    """Classes by the number at the start of their names, as in 001.Black_footed_Albatross."""
    found = [re.match(r"\d+", name) for name in names]
    without = [name for name, match in zip(names, found, strict=True) if match is None]
    numbers = [int(match[0]) for match in found if match is not None]
    if without or len(set(numbers)) < len(numbers):
        raise InputError(
            "The name of each class folder must begin with its official class number, as in "
            "001.Black_footed_Albatross, because the number decides which classes are known. "
            + (f"These do not: {_some(without)}." if without else "Some share a number.")
        )
    by_number = [name for _, name in sorted(zip(numbers, names, strict=True))]
    return tuple(by_number), [by_number.index(name) for name in names]


def by_official_names(official: Sequence[str]) -> ClassOrder:
    """Classes in an official order that differs from that of their names.

    Parameters
    ----------
    official : sequence of str
        Class names in the official order. Only letters and digits are compared, without case,
        because a class name may contain a slash and the name of a folder cannot.
    """
    places = {_letters(name): place for place, name in enumerate(official)}

    def order(names: Sequence[str]) -> tuple[tuple[str, ...], list[int]]:
        strange = [name for name in names if _letters(name) not in places]
        if strange:
            raise InputError(
                f"{len(strange)} of {len(names)} class folders have no official class name: "
                f"{_some(strange)}. The name decides which classes are known; rename them as in "
                f"{_some(official)}."
            )
        return tuple(official), [places[_letters(name)] for name in names]

    return order


def _letters(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())


def _some(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(map(repr, names[:3])) + (", …" if len(names) > 3 else "")


def read_ssb(name: str, what: str) -> list[Any]:
    """A list of the Semantic Shift Benchmark: the known classes or all classes of a data set.

    Parameters
    ----------
    name : {"cub", "cars", "aircraft"}
        The data set.
    what : {"known", "classes"}
        Indices of the known classes in the official order, or names in that order (not for CUB,
        whose folder names contain the number).
    """
    file = importlib.resources.files("newfound.bench") / "ssb.json"
    return json.loads(file.read_text(encoding="utf-8"))[name][what]
