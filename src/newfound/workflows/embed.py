"""Encode a collection and stop there: what `newfound embed` does."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np

from newfound.data.collection import read_collection
from newfound.encode import Encoded, encode_pictures, encode_texts
from newfound.errors import InputError
from newfound.files import write_atomically


def embed(
    source: Path,
    labels: Path | None,
    out: Path,
    *,
    encoder: str = "auto",
    progress: Callable[[str, int, int], object] | None = None,
) -> Encoded:
    """Write the features of pictures or texts, with their labels, to an ``.npz``.

    Parameters
    ----------
    source, labels : Path
        As for `read_collection`.
    out : Path
        The archive: ``X``, ``y`` (an empty text where there is no label) and ``ids``. Features
        are kept beside it, in a folder of that name, so that a second run is quick.
    encoder : str, default="auto"
        For pictures, as for `encode_pictures`.
    progress : callable, optional
        Called with the step, how much of it is done and how much there is.

    Returns
    -------
    Encoded
        The features, with what was skipped.
    """
    collection = read_collection(source, labels)

    def tell(done: int, total: int) -> None:
        if progress is not None:
            progress("Encoding", done, total)

    cache = out.with_name(f"{out.stem}.cache")
    if collection.paths is not None:
        encoded = encode_pictures(collection.paths, encoder, cache=cache, progress=tell)
    elif collection.texts is not None:
        encoded = encode_texts(collection.texts, cache=cache, progress=tell)
    else:
        raise InputError(f"{source} holds features already; there is nothing to encode.")
    if len(encoded.kept) == 0:
        why = [f"{collection.ids[i]}: {reason}" for i, reason in encoded.skipped[:1]]
        raise InputError(f"{source} has nothing that can be encoded. {''.join(why)}")
    y = ["" if collection.y[i] is None else str(collection.y[i]) for i in encoded.kept]
    archive = io.BytesIO()
    ids = np.array([collection.ids[i] for i in encoded.kept], dtype=str)
    np.savez(archive, X=encoded.features, y=np.array(y, dtype=str), ids=ids)
    write_atomically(out, archive.getvalue())
    return encoded
