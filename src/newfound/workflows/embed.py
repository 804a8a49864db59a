"""Encode a collection, without looking for categories: what `newfound embed` does."""

from __future__ import annotations

import io
from functools import partial
from pathlib import Path

import numpy as np

from newfound.data.reading import read_collection
from newfound.encode import Encoded, encode_pictures, encode_texts
from newfound.errors import InputError
from newfound.files import write_atomically
from newfound.progress import Progress, no_progress


def embed(
    source: Path,
    labels: Path | None,
    out: Path,
    *,
    encoder: str = "auto",
    progress: Progress = no_progress,
) -> Encoded:
    """Write the features of pictures or texts, with their labels, to an ``.npz``.

    Parameters
    ----------
    source, labels : Path
        As for `read_collection`.
    out : Path
        The archive: ``X``, ``y`` (an empty text where there is no label) and ``ids``. Features
        are also stored in a folder beside it, ``NAME.cache``, so that a second run is fast.
    encoder : str, default="auto"
        The encoder for pictures, as for `encode_pictures`.
    progress : Progress, optional
        Called with the step, how much of it is done and how much there is.

    Returns
    -------
    Encoded
        The features, and the items that were skipped.

    Raises
    ------
    InputError
        If the source holds features already, or nothing in it can be encoded.
    """
    collection = read_collection(source, labels)
    encoding = partial(progress, "Encoding")
    cache = out.with_name(f"{out.stem}.cache")
    if collection.paths is not None:
        encoded = encode_pictures(collection.paths, encoder, cache=cache, progress=encoding)
    elif collection.texts is not None:
        encoded = encode_texts(collection.texts, cache=cache, progress=encoding)
    else:
        raise InputError(f"{source} holds features already; there is nothing to encode.")
    if len(encoded.kept) == 0:
        first = [f"{collection.ids[i]}: {reason}" for i, reason in encoded.skipped[:1]]
        raise InputError(f"{source} has nothing that can be encoded. {''.join(first)}")
    # Texts, not objects: `load_features` refuses arrays that have to be unpickled.
    y = ["" if collection.y[i] is None else str(collection.y[i]) for i in encoded.kept]
    archive = io.BytesIO()
    ids = np.array([collection.ids[i] for i in encoded.kept], dtype=str)
    np.savez(archive, X=encoded.features, y=np.array(y, dtype=str), ids=ids)
    write_atomically(out, archive.getvalue())
    return encoded
