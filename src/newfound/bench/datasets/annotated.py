"""CUB, Stanford Cars and FGVC-Aircraft as published: a folder of images and annotation files.

Rows are in the order of the annotation files, in which the field draws its labels. Whether the
image files exist is checked later.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from newfound.bench.datasets.listing import Listing, read_ssb
from newfound.errors import InputError


def read_cub(base: Path) -> Listing | None:
    """The 5,994 training images of CUB-200-2011, in the order of images.txt.

    Parameters
    ----------
    base : Path
        Folder that may hold ``CUB_200_2011``.
    """
    folder = base / "CUB_200_2011"
    files = ["images.txt", "image_class_labels.txt", "train_test_split.txt"]
    if not _has(folder, [*files, "images"]):
        return None
    images, labels, is_train = (_table(folder / name) for name in files)
    kept = [row for row in images if is_train.get(row) == "1"]
    if any(row not in labels for row in kept):
        raise InputError(f"{folder / files[1]} lacks some images of images.txt. Unpack it again.")
    folders = {int(labels[row]): images[row].split("/")[0] for row in kept}
    places = {number: place for place, number in enumerate(sorted(folders))}
    truth = np.array([places[int(labels[row])] for row in kept], dtype=np.int64)
    names = tuple(folders[number] for number in places)
    return Listing(truth, names, folder, [folder / "images" / images[row] for row in kept])


def read_cars(base: Path) -> Listing | None:
    """The 8,144 training images of Stanford Cars, in the order of cars_train_annos.mat.

    Parameters
    ----------
    base : Path
        Folder that may hold ``devkit`` and ``cars_train``.
    """
    parts = ["devkit/cars_train_annos.mat", "cars_train"]
    if not any((base / part).exists() for part in parts) or not _has(base, parts):
        return None
    classes, names = _annotations(base / "devkit" / "cars_train_annos.mat")
    class_names = tuple(read_ssb("cars", "classes"))
    if classes.size and not (classes.min() >= 1 and classes.max() <= len(class_names)):
        raise InputError(
            f"{base}/devkit/cars_train_annos.mat has the classes {classes.min()} … {classes.max()};"
            f" expected 1 … {len(class_names)}. Download it again."
        )
    return Listing(classes - 1, class_names, base, [base / "cars_train" / name for name in names])


def read_aircraft(base: Path) -> Listing | None:
    """The 6,667 images for training and validation, in the order of images_variant_trainval.txt.

    Parameters
    ----------
    base : Path
        Folder that may hold ``fgvc-aircraft-2013b``.
    """
    folder = base / "fgvc-aircraft-2013b" / "data"
    if not _has(folder, ["images_variant_trainval.txt", "variants.txt", "images"]):
        return None
    # the field numbers classes in the order of sorted names, which is also the order of the file
    variants = sorted(filter(None, map(str.strip, _lines(folder / "variants.txt"))))
    places = {name: place for place, name in enumerate(variants)}
    images = _table(folder / "images_variant_trainval.txt")
    strange = sorted(set(images.values()) - places.keys())
    if strange:
        raise InputError(f"{folder}/variants.txt lacks {', '.join(strange[:3])}. Unpack it again.")
    truth = np.array([places[name] for name in images.values()], dtype=np.int64)
    paths = [folder / "images" / f"{image}.jpg" for image in images]
    return Listing(truth, tuple(variants), folder, paths)


def _has(folder: Path, names: list[str]) -> bool:
    """Whether all parts of a layout exist; raise if only some of them do."""
    missing = [name for name in names if not (folder / name).exists()]
    if missing and folder.is_dir():
        raise InputError(f"{folder} lacks {', '.join(missing)}. Download and unpack it again.")
    return not missing


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _table(path: Path) -> dict[str, str]:
    """Lines of a key and a value; the value may contain spaces."""
    pairs = [line.strip().split(" ", 1) for line in _lines(path) if line.strip()]
    if any(len(pair) < 2 for pair in pairs):
        raise InputError(f"{path} has lines without a space. Download and unpack it again.")
    return {key: value.strip() for key, value in pairs}


def _annotations(path: Path) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], list[str]]:
    """Class (from 1) and file name of each image. Reading a .mat file runs no code from it."""
    from scipy.io import loadmat

    try:
        rows = np.atleast_1d(loadmat(path, squeeze_me=True)["annotations"])
        classes = np.array([int(row["class"]) for row in rows], dtype=np.int64)
        names = [str(row["fname"]) for row in rows]
    except Exception as error:  # scipy raises many kinds of errors for damaged files
        raise InputError(
            f"{path} cannot be read as the annotations of Stanford Cars ({error}). Download it "
            "again."
        ) from error
    return classes, names
