"""The data sets of the field, read from disk as they are published.

They can also be read from plain folders, one for each class, and any file of features with true
classes is a data set too. Class numbers are the official ones in every layout.

For CIFAR, CUB, Cars and Aircraft the order of the *rows* in class folders is not the published
one. Labels are drawn by row, so the same number of images is labelled as in the field, but not the
same images. `DataSet.layout` says how the data were stored. The checksum of a split also differs
for CIFAR and Cars, but not for CUB, which is published class by class: the checksum depends on
classes and labels, not on files. ImageNet, Herbarium and Tiny ImageNet are published as class
folders. In Tiny ImageNet the first 100 of the sorted classes are known, which is our own choice.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from newfound.bench.datasets.dataset import DataSet, Progress
from newfound.bench.datasets.download import fetch_archive
from newfound.bench.datasets.feature_file import load_feature_file
from newfound.bench.datasets.listing import Listing
from newfound.bench.datasets.long_tail import LONG_TAILS, base_of, cut_long_tail
from newfound.bench.datasets.sources import SOURCES, Source, find_listing, looked_for
from newfound.errors import InputError

__all__ = ["DATASETS", "DataSet", "load_dataset"]

#: Ids of the data sets.
DATASETS = (*SOURCES, *LONG_TAILS)

_FEATURE_SUFFIXES = (".npz", ".npy")


def load_dataset(
    name: str,
    root: Path,
    *,
    download: bool = False,
    incomplete: bool = False,
    progress: Progress | None = None,
) -> DataSet:
    """Read a data set and check that it is complete.

    Parameters
    ----------
    name : str
        One of `DATASETS`, or the path of a feature file (``.npz`` with ``X``, ``y`` and optionally
        ``known``).
    root : Path
        Folder of the data sets. For CUB, for example, it is searched for ``CUB_200_2011`` in
        ``root/cub`` and ``root``, then for class folders in ``root/cub/train`` and ``root/cub``.
    download : bool
        Whether to download a missing data set to ``root/name``. This works for CIFAR-10,
        CIFAR-100, CUB and Aircraft only.
    incomplete : bool
        Whether to accept a data set with missing or additional images; `DataSet.complete` is then
        False. All classes must exist, because their numbers decide which are known.
    progress : callable, optional
        Called during a download with the bytes so far and in total (0 if not known).

    Returns
    -------
    DataSet
        True classes, known classes, and images or features.

    Raises
    ------
    InputError
        If the data set is unknown, missing or incomplete.
    """
    root = Path(root).expanduser()
    if name in LONG_TAILS:
        whole = load_dataset(
            base_of(name), root, download=download, incomplete=incomplete, progress=progress
        )
        return cut_long_tail(whole, name)
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
    """The file as given, or in the root."""
    if Path(name).suffix.lower() not in _FEATURE_SUFFIXES:
        raise InputError(
            f"There is no data set {name!r}. Give one of {', '.join(DATASETS)}, or the path of an "
            ".npz file of features."
        )
    given = Path(name).expanduser()
    return given if given.exists() or not (root / given).exists() else root / given


def _not_found(name: str, source: Source, root: Path, download: bool) -> str:
    if source.archive is None:
        how = f"Download it by hand from {source.page}."
    elif download:
        how = f"It was downloaded, but cannot be read. See {source.page}."
    else:
        how = f"Download it from {source.page}, or with --download (in Python: download=True)."
    pickles = [base / source.pickled for base in (root / name, root) if source.pickled]
    for folder in pickles:
        if folder.is_dir():
            how = f"{folder} is a pickled version, which is never opened here. {how}"
    return f"{source.title} was not found. Looked for:\n{looked_for(name, source, root)}\n{how}"


def _checked(name: str, source: Source, listing: Listing, incomplete: bool) -> DataSet:
    """The data set, if it has the expected numbers of classes and images."""
    # a missing class would shift the numbers of the others, and so change which are known
    n_found = len(np.unique(listing.truth))
    if n_found != source.n_classes or len(listing.class_names) != source.n_classes:
        raise InputError(
            f"{source.title} in {listing.where} has {n_found} classes with images; expected "
            f"{source.n_classes}. Download it again: {source.page}."
        )
    listing, missing = _without_missing_files(listing)
    expected = source.n_images
    complete = not missing and expected in (None, len(listing.truth))
    if not (complete or incomplete):
        lacks = f" {len(missing)} of its files are missing: {missing[0]}, …" if missing else ""
        raise InputError(
            f"{source.title} in {listing.where} has {len(listing.truth):,} training images; "
            f"expected {expected or len(listing.truth) + len(missing):,}.{lacks} Download it "
            f"again: {source.page}. Or accept it as it is with --incomplete (in Python: "
            "incomplete=True); then its results do not compare with those of the field."
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
        side=source.side,
        n_labelled=source.n_labelled,
        n_unlabelled=source.n_unlabelled,
    )


def _without_missing_files(listing: Listing) -> tuple[Listing, list[Path]]:
    """Drop rows whose files are in an official list but not on disk."""
    # class folders list what is on disk; only an official list can name missing files
    if listing.paths is None or listing.layout != "official":
        return listing, []
    there = [path.is_file() for path in listing.paths]
    missing = [path for path, found in zip(listing.paths, there, strict=True) if not found]
    paths = [path for path, found in zip(listing.paths, there, strict=True) if found]
    return listing._replace(truth=listing.truth[there], paths=paths), missing
