"""Encode a collection, without looking for categories: what `newfound embed` does."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from newfound.data.reading import read_collection
from newfound.data.tables import write_skipped
from newfound.errors import InputError
from newfound.files import check_new_file, write_atomically
from newfound.progress import Progress, no_progress
from newfound.workflows.encoding import EncodedItems, encode_items
from newfound.workflows.job import Job


def embed(
    source: Path,
    labels: Path | None,
    out: Path,
    *,
    encoder: str = "auto",
    device: str | None = None,
    overwrite: bool = False,
    progress: Progress = no_progress,
) -> EncodedItems:
    """Write the features of pictures or texts, with their labels, to an ``.npz``.

    Parameters
    ----------
    source, labels : Path
        As for `read_collection`.
    out : Path
        The archive: ``X``, ``y`` (an empty text where there is no label) and ``ids``. Features
        are also stored in a folder beside it, ``NAME.cache``, so that a second run is fast. Files
        that could not be used are listed in ``NAME.skipped.csv``.
    encoder : str, default="auto"
        The encoder for pictures, as for `encode_pictures`.
    device : str, optional
        Where to compute, as for `encode_pictures`.
    overwrite : bool, default=False
        Replace the archive if it exists.
    progress : Progress, optional
        Called with the step, how much of it is done and how much there is.

    Returns
    -------
    EncodedItems
        The items that could be encoded, their features, and what made them.

    Raises
    ------
    InputError
        If the archive exists, the source holds features already, or nothing in it can be encoded.
    """
    check_new_file(out, overwrite)
    collection = read_collection(source, labels)
    if collection.kind == "features":
        raise InputError(f"{source} holds features already; there is nothing to encode.")
    job = Job(progress=progress, device=device)
    items = encode_items(collection, encoder, out.with_name(f"{out.stem}.cache"), job)
    rest = items.collection
    # Texts, not objects: `load_features` refuses arrays that have to be unpickled.
    y = np.array(["" if label is None else str(label) for label in rest.y], dtype=str)
    archive = io.BytesIO()
    np.savez(archive, X=items.features, y=y, ids=np.array(rest.ids, dtype=str))
    write_atomically(out, archive.getvalue())
    if rest.skipped:
        write_skipped(rest.skipped, skipped_file(out))
    return items


def skipped_file(out: Path) -> Path:
    """The table beside a file that lists what could not be used."""
    return out.with_name(f"{out.stem}.skipped.csv")
