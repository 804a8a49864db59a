"""Features for a run: from the encoder that a person names, or from that of an earlier run."""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path
from typing import Any, NamedTuple

from newfound.arrays import Floats
from newfound.data.collection import Collection, check_discoverable, why_empty
from newfound.encode import encode_pictures, encode_texts
from newfound.errors import InputError
from newfound.result.result import Result
from newfound.workflows.job import Job
from newfound.workflows.source import warn_of_lost_classes


class EncodedItems(NamedTuple):
    """Items with their features.

    Attributes
    ----------
    collection : Collection
        The items that could be encoded; the others are in its list of skipped ones.
    features : ndarray of shape (n, d)
        One row for each item.
    encoder : dict
        What made the features, in plain values: ``kind`` and ``name``, and what is needed to
        encode more items the same way.
    """

    collection: Collection
    features: Floats
    encoder: dict[str, Any]


def encode_items(
    collection: Collection, encoder: str, cache: Path | None, job: Job
) -> EncodedItems:
    """Features of a collection; items that cannot be encoded are skipped.

    Parameters
    ----------
    collection : Collection
        Pictures, texts, or features, which are taken as they are.
    encoder : str
        For pictures: what to encode them with, see `encode_pictures`.
    cache : Path or None
        Folder that keeps the features of each file, so that an interrupted run resumes.
    job : Job
        Measures the time of each step and reports progress.
    """
    if collection.features is not None:
        described = {"kind": "features", "name": "features"}
        return EncodedItems(collection, collection.features, described)
    progress = functools.partial(job.progress, "Encoding")
    with job.timed("encode"):
        if collection.texts is not None:
            encoded = encode_texts(collection.texts, cache=cache, progress=progress)
        else:
            paths = collection.paths or []
            encoder = with_absolute_path(encoder)
            encoded = encode_pictures(
                paths, encoder, cache=cache, device=job.device, progress=progress
            )
    rest = collection.without(encoded.skipped)
    warn_of_lost_classes(collection, rest, job)
    if len(rest) == 0:
        check_discoverable(rest)  # its message says what was wrong with the first item
    described = {"kind": "network" if collection.paths else "texts", "name": encoded.encoder}
    return EncodedItems(rest, encoded.features, {**described, **weights_identity(encoded.encoder)})


def encode_like(result: Result, run: Path, collection: Collection, job: Job) -> EncodedItems:
    """Features of more items, from the encoder of an earlier run.

    Parameters
    ----------
    result : Result
        The earlier run, with its model.
    run : Path
        Its folder, which may hold a trained network and a cache.
    collection : Collection
        Items of the same kind.
    job : Job
        Measures the time of each step and reports progress.
    """
    kind, encoder = result.record.kind, result.encoder
    if collection.kind != kind:
        raise InputError(
            f"The run in {run} is on {kind}, but these are {collection.kind}. Give {kind}."
        )
    if len(collection) == 0:
        raise InputError(
            f"There are no {kind} in {collection.root or 'the collection'}.{why_empty(collection)}"
        )
    if result.mixture is None:
        raise InputError(
            f"{run} has no folder 'model', so nothing can be predicted from it. Restore the "
            "folder, or run newfound discover again."
        )
    if encoder["kind"] == "trained":
        # Torch is loaded here only: runs on frozen features do without it.
        from newfound.workflows.training import encode_with_trained

        return encode_with_trained(collection, encoder, run, job)
    known = encoder.get("sha256")
    if known and weights_identity(encoder["name"])["sha256"] != known:
        raise InputError(
            f"The weights of {encoder['name']} are not those that the run in {run} was made with. "
            "Put the old file back, or run newfound discover again."
        )
    cache = run / "cache" if os.access(run, os.W_OK) else None
    encoded = encode_items(collection, encoder["name"], cache, job)
    if encoded.features.shape[1] != result.features.shape[1]:
        raise InputError(
            f"The items have {encoded.features.shape[1]} features, but the run in {run} was made "
            f"with {result.features.shape[1]}. Give features from the same encoder."
        )
    return encoded


def with_absolute_path(encoder: str) -> str:
    """NAME=FILE with a path that means the same from every folder."""
    model, is_file, file = encoder.partition("=")
    return f"{model}={Path(file).absolute()}" if is_file else encoder


def weights_identity(encoder: str) -> dict[str, str]:
    """Checksum of the weights in NAME=FILE, so that other weights in that file are noticed."""
    file = encoder.partition("=")[2]
    return {"sha256": hashlib.sha256(Path(file).read_bytes()).hexdigest()} if file else {}
