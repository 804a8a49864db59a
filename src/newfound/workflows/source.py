"""The source of a run: the collection that a person names, checked before hours of work."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TypeAlias

import numpy as np

from newfound.data.collection import Collection, check_discoverable, without_unusable_rows
from newfound.data.folders import folders_without_pictures
from newfound.data.reading import read_collection
from newfound.errors import InputError
from newfound.labels import encode_labels
from newfound.words import first_few, plural
from newfound.workflows.job import Job

#: Bytes at each end of a picture that tell it from others.
_END = 2048

Source: TypeAlias = Path | str | Collection


def read_source(source: Source, labels: Path | str | None) -> Collection:
    """Read what a person names; a collection is taken as it is."""
    if isinstance(source, Collection):
        if labels is not None:
            raise InputError("A Collection has labels of its own. Leave `labels` out.")
        return without_unusable_rows(source)
    return read_collection(Path(source), None if labels is None else Path(labels))


def read_features(source: Path | str, labels: Path | str | None) -> Collection:
    """Read a file of features of which some rows are labelled; anything else is refused."""
    collection = read_source(source, labels)
    if collection.kind != "features":
        raise InputError(
            f"{source} holds {collection.kind}, but features are needed. Make them with `newfound "
            f"embed {source}`, or give .npz, .npy or .parquet."
        )
    check_discoverable(collection)
    return collection


def read_for(job: Job, source: Source, labels: Path | str | None) -> Collection:
    """Read the source of a run, and note its fingerprints."""
    collection = read_and_warn(job, source, labels)
    job.data, job.content = fingerprint(collection), content_fingerprint(collection)
    return collection


def read_and_warn(job: Job, source: Source, labels: Path | str | None) -> Collection:
    """Read a source, take the time, and warn of folders of which nothing is used."""
    with job.timed("read"):
        collection = read_source(source, labels)
    unused = folders_without_pictures(collection)
    if unused:
        folders = plural(len(unused), "folder has", "folders have")
        job.warnings.append(
            f"{folders} no file that could be used, and no part in the result: "
            f"{first_few(unused)}. skipped.csv has the reasons."
        )
    return collection


def warn_of_lost_classes(before: Collection, after: Collection, job: Job) -> None:
    """Warn of classes whose labelled items were all skipped while they were read."""
    left = set(after.y)
    lost = sorted({str(label) for label in before.y if label not in left})
    if lost and len(after):
        n = plural(len(lost), "class", "classes")
        job.warnings.append(
            f"{n} lost all labelled items, because none of them could be read: {first_few(lost)}. "
            "skipped.csv has the reasons."
        )


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


def content_fingerprint(collection: Collection) -> str:
    """Identity of a collection with the content of its pictures: their sizes and both ends.

    Hashing whole files would take minutes for a large collection of photos. Two pictures whose
    lengths and ends are the same are the same picture in practice.
    """
    digest = hashlib.sha256(fingerprint(collection).encode())
    for path in collection.paths or ():
        try:
            with path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(0)
                digest.update(b"%d:" % size + file.read(_END))
                file.seek(max(0, size - _END))
                digest.update(file.read(_END))
        except OSError:
            digest.update(b"unreadable")
    return digest.hexdigest()


def fingerprint(collection: Collection) -> str:
    """Identity of a collection: its ids, its features or texts, and its metadata.

    The content of picture files is not part of it, so that they may be moved or improved between
    two runs; features are cached by content anyway.
    """
    digest = hashlib.sha256(collection.kind.encode())
    for text in (*collection.ids, *(collection.texts or ())):
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    if collection.features is not None:
        digest.update(np.ascontiguousarray(collection.features).data)
    if collection.metadata:
        digest.update(json.dumps(collection.metadata).encode())
    return digest.hexdigest()
