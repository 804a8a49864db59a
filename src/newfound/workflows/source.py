"""The source of a run: the collection that a person names, checked before hours of work."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TypeAlias

import numpy as np

from newfound.data.collection import Collection
from newfound.data.reading import read_collection
from newfound.errors import InputError
from newfound.labels import encode_labels

Source: TypeAlias = Path | str | Collection


def read_source(source: Source, labels: Path | str | None) -> Collection:
    """Read what a person names; a collection is taken as it is."""
    if isinstance(source, Collection):
        if labels is not None:
            raise InputError("A Collection has labels of its own. Leave `labels` out.")
        return source
    return read_collection(Path(source), None if labels is None else Path(labels))


def check_number(collection: Collection, n_categories: int | None) -> None:
    """Refuse fewer categories than there are labelled classes, and more than there are items."""
    if n_categories is None:
        return
    n_known = encode_labels(collection.y).n_known
    if n_categories < n_known:
        raise InputError(
            f"n_categories is {n_categories}, but {n_known} categories have labels. Give the total "
            "number of known and new categories, or leave it out to have it found."
        )
    if n_categories > len(collection):
        raise InputError(
            f"n_categories is {n_categories}, but there are only {len(collection)} items."
        )


def check_outside(out: Path, collection: Collection) -> None:
    """Refuse a run folder inside the folder of pictures.

    The next run would read its files as pictures.
    """
    root = collection.root
    if collection.kind != "pictures" or root is None:
        return
    if Path(os.path.realpath(out)).is_relative_to(os.path.realpath(root)):
        raise InputError(
            f"The run folder {out} is inside the folder of pictures {root}. Choose one outside it."
        )


def fingerprint(collection: Collection) -> str:
    """Identity of a collection: its ids, and its features or texts.

    The content of picture files is not part of it, so that they may be moved or improved between
    two runs; features are cached by content anyway.
    """
    digest = hashlib.sha256(collection.kind.encode())
    for text in (*collection.ids, *(collection.texts or ())):
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    if collection.features is not None:
        digest.update(np.ascontiguousarray(collection.features).data)
    return digest.hexdigest()
