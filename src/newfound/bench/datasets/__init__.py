"""The data sets that the field is measured on, read from the disk as they are published.

Also as plain folders, one for each class, and any file of features with true classes. Class
numbers are the official ones in every layout. For CIFAR, CUB, Cars and Aircraft the order of the
*rows* in class folders is not the published one, and the draw of labels goes by row: other images
are labelled than in the field, though as many. `DataSet.layout` tells which it was. The checksum of
a split tells it for CIFAR and Cars, but not for CUB, which is published class by class as well: it
sees classes and labels, not files. ImageNet, Herbarium and Tiny ImageNet are published as class
folders; in Tiny ImageNet the first 100 of the sorted classes are known, which is our own choice.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from newfound.bench.datasets.dataset import DataSet, Progress
from newfound.bench.datasets.download import fetch_archive
from newfound.bench.datasets.feature_file import load_feature_file
from newfound.bench.datasets.listing import Listing
from newfound.bench.datasets.sources import SOURCES, Source, find_listing, looked_for
from newfound.errors import InputError

__all__ = ["DATASETS", "DataSet", "load_dataset"]

#: Ids of the data sets.
DATASETS = tuple(SOURCES)

_FEATURE_SUFFIXES = (".npz", ".npy")


def load_dataset(
    name: str,
    root: Path,
    *,
    download: bool = False,
    incomplete: bool = False,
    progress: Progress | None = None,
) -> DataSet:
    """Read a data set and check that all of it is there.

    Parameters
    ----------
    name : str
        One of `DATASETS`, or the path of a file of features (``.npz`` with ``X``, ``y`` and
        perhaps ``known``).
    root : Path
        Folder that the data sets lie in. Of CUB, for example, ``CUB_200_2011`` is looked for in
        ``root/cub`` and in ``root``, then class folders in ``root/cub/train`` and ``root/cub``.
    download : bool
        Whether to fetch what is not there: CIFAR-10, CIFAR-100, CUB and Aircraft only. It is put
        into ``root/name``.
    incomplete : bool
        Whether to take a data set that lacks images, or has too many; `DataSet.complete` is False
        then. Classes must all be there, for their numbers tell which are known.
    progress : callable, optional
        Called during a download with the bytes that are there, and of all (0: not known).

    Returns
    -------
    DataSet
        True classes, known classes, and images or features.

    Raises
    ------
    InputError
        If the data set is unknown, not found or not complete.
    """
    root = Path(root).expanduser()
    if name not in SOURCES:
        return load_feature_file(_feature_path(name, root))
    source = SOURCES[name]
    listing = find_listing(name, source, root)
    if listing is None and download and source.archive is not None:
        fetch_archive(source.archive, root / name, progress)
        listing = find_listing(name, source, root)
    if listing is None:
        raise InputError(_not_found(name, source, root, download))
    return _checked(name, source, listing, incomplete)


def _feature_path(name: str, root: Path) -> Path:
    """The file as given, or under the root."""
    if Path(name).suffix.lower() not in _FEATURE_SUFFIXES:
        raise InputError(
            f"There is no data set {name!r}. Give one of {', '.join(DATASETS)}, or the path of an "
            ".npz file of features."
        )
    given = Path(name).expanduser()
    return given if given.exists() or not (root / given).exists() else root / given


def _not_found(name: str, source: Source, root: Path, download: bool) -> str:
    if source.archive is None:
        how = f"It must be fetched by hand, from {source.page}."
    elif download:
        how = f"It was downloaded, but cannot be used. See {source.page}."
    else:
        how = f"Fetch it from {source.page}, or let it be downloaded (download=True)."
    pickles = [base / source.pickled for base in (root / name, root) if source.pickled]
    for folder in pickles:
        if folder.is_dir():
            how = f"{folder} is pickled, which is never opened here. {how}"
    return f"{source.title} was not found. Looked for:\n{looked_for(name, source, root)}\n{how}"


def _checked(name: str, source: Source, listing: Listing, incomplete: bool) -> DataSet:
    """The data set, if classes and images are as many as they must be."""
    n_found = len(np.unique(listing.truth))
    if n_found != source.n_classes or len(listing.class_names) != source.n_classes:
        raise InputError(
            f"{source.title} in {listing.where} has {n_found} classes with images; expected "
            f"{source.n_classes}. Fetch it again: {source.page}."
        )
    listing, missing = _without_missing_files(listing)
    expected = source.n_images
    complete = not missing and expected in (None, len(listing.truth))
    if not (complete or incomplete):
        lacks = f" {len(missing)} of its files are not there: {missing[0]}, …" if missing else ""
        raise InputError(
            f"{source.title} in {listing.where} has {len(listing.truth):,} training images; "
            f"expected {expected or len(listing.truth) + len(missing):,}.{lacks} Fetch it again: "
            f"{source.page}. To take it as it is, pass incomplete=True; its numbers are not those "
            "of the field then."
        )
    return DataSet(
        name=name,
        truth=listing.truth,
        class_names=listing.class_names,
        known=source.known(),
        paths=listing.paths,
        array=listing.array,
        layout=listing.layout,
        complete=complete,
        n_labelled=source.n_labelled,
        n_unlabelled=source.n_unlabelled,
    )


def _without_missing_files(listing: Listing) -> tuple[Listing, list[Path]]:
    """Drop rows whose files an official list names but the disk lacks."""
    if listing.paths is None or listing.layout != "official":
        return listing, []
    there = [path.is_file() for path in listing.paths]
    missing = [path for path, found in zip(listing.paths, there, strict=True) if not found]
    paths = [path for path, found in zip(listing.paths, there, strict=True) if found]
    return listing._replace(truth=listing.truth[there], paths=paths), missing
