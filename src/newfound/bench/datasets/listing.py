"""What is found on the disk: rows with their classes, before anything is checked or counted."""

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

#: Names of class folders, sorted → the names of all classes in the official order, and the place
#: of each folder among them; -1 for a folder that is left out.
ClassOrder: TypeAlias = Callable[[Sequence[str]], tuple[tuple[str, ...], list[int]]]


class Listing(NamedTuple):
    """Rows of a data set.

    Attributes
    ----------
    truth : ndarray of int64, shape (n,)
        Class of each row, as a place in `class_names`.
    class_names : tuple of str
        All classes.
    where : Path
        The folder that was read.
    paths : list of Path or None
        Image files, one a row.
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
    """Rows from a folder for each class: classes in their order, files sorted by name.

    Parameters
    ----------
    folder : Path
        Where the class folders lie.
    order : callable
        Puts the classes in the official order.
    inner : str
        Folder within each class folder that holds the images, if not that folder itself.

    Returns
    -------
    Listing or None
        None where no folder with images is there. Hidden folders and those without images do not
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
    """Classes in the order of their names, as the field's code reads folders (10 before 2)."""
    return tuple(names), list(range(len(names)))


def by_name_or_number(names: Sequence[str]) -> tuple[tuple[str, ...], list[int]]:
    """Classes in the order of their names; where all are numbers, in the order of these."""
    numbered = all(name.isdecimal() for name in names)
    ordered = sorted(names, key=int) if numbered else list(names)
    return tuple(ordered), [ordered.index(name) for name in names]


def by_leading_number(names: Sequence[str]) -> tuple[tuple[str, ...], list[int]]:
    """Classes by the number that their names begin with, as in CUB: 001.Black_footed_Albatross."""
    found = [re.match(r"\d+", name) for name in names]
    without = [name for name, match in zip(names, found, strict=True) if match is None]
    numbers = [int(match[0]) for match in found if match is not None]
    if without or len(set(numbers)) < len(numbers):
        raise InputError(
            "The class folders must begin with the official class number, each with its own, as "
            "in 001.Black_footed_Albatross: which classes are known is told by it. "
            + (f"{_some(without)} does not." if without else "Some share a number.")
        )
    by_number = [name for _, name in sorted(zip(numbers, names, strict=True))]
    return tuple(by_number), [by_number.index(name) for name in names]


def by_official_names(official: Sequence[str]) -> ClassOrder:
    """Classes in an official order that is not that of their names; spelling is compared loosely.

    Parameters
    ----------
    official : sequence of str
        Class names in the official order. Letters and digits count, signs and case do not, for
        a slash cannot stand in the name of a folder.
    """
    places = {_letters(name): place for place, name in enumerate(official)}

    def order(names: Sequence[str]) -> tuple[tuple[str, ...], list[int]]:
        strange = [name for name in names if _letters(name) not in places]
        if strange:
            raise InputError(
                f"{len(strange)} of {len(names)} class folders have no official class name: "
                f"{_some(strange)}. Which classes are known is told by the name; rename them as "
                f"in {_some(official)}."
            )
        return tuple(official), [places[_letters(name)] for name in names]

    return order


def _letters(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())


def _some(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(map(repr, names[:3])) + (", …" if len(names) > 3 else "")


def read_ssb(name: str, what: str) -> list[Any]:
    """A list of the Semantic Shift Benchmark: the "known" places or the "classes" of a data set.

    Parameters
    ----------
    name : {"cub", "cars", "aircraft"}
        The data set.
    what : {"known", "classes"}
        Known classes as places in the official order, or names in that order (not for CUB, whose
        folders have their number).
    """
    file = importlib.resources.files("newfound.bench") / "ssb.json"
    return json.loads(file.read_text(encoding="utf-8"))[name][what]
