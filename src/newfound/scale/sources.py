"""Public ways to make `Rows`: from Parquet, npy and zarr files and from Dask arrays."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from pathlib import Path

from newfound.arrays import ArrayLike, LabelsLike
from newfound.errors import InputError
from newfound.scale.arrays import FileFeatures, is_dask
from newfound.scale.blocks import Features, Labels
from newfound.scale.journal import Journal
from newfound.scale.parquet import ParquetFeatures, ParquetLabels, ParquetParts, find_columns
from newfound.scale.rows import Rows, as_rows, labels_of


def from_parquet(
    source: Path | str | Iterable[Path | str],
    *,
    label_column: str | None = None,
    columns: list[str] | None = None,
    resume: Path | str | None = None,
) -> Rows:
    """Rows of a Parquet data set of any number of parts.

    Parameters
    ----------
    source : path, text or list of paths
        A file, a folder of ``.parquet`` files, a pattern such as ``"PARTS/*.parquet"``, or a list
        of files. Files that a pattern or a folder names are read in the order of their names. With
        a Dask cluster, all workers must see them under the same paths.
    label_column : str, optional
        Column of partial labels, of texts or whole numbers; null, -1 or an empty text where a row
        is unlabelled. By default no row is labelled, and labels may be given as ``y``.
    columns : list of str, optional
        Columns of features. By default the one column of lists, or all columns of numbers except
        ``id`` and the labels.
    resume : path, optional
        A folder that keeps the results of finished passes. A fit that was interrupted resumes from
        there if it is started again with the same files, settings and whole-number seed.

    Returns
    -------
    Rows
        To be given to `fit`, `predict` or `count_categories` in the place of X.
    """
    paths = part_paths(source)
    parts = ParquetParts.open(paths)
    features = ParquetFeatures(parts, *find_columns(paths, columns, label_column))
    labels = (
        ParquetLabels(parts, label_column) if label_column else labels_of(None, parts.starts[-1])
    )
    return _rows(features, labels, resume)


def from_npy(path: Path | str, y: LabelsLike = None, *, resume: Path | str | None = None) -> Rows:
    """Rows of an ``.npy`` file, which is read block by block through a memory map.

    Parameters
    ----------
    path : path
        The file, with an array of shape (n, d).
    y : array-like of shape (n,), optional
        Partial labels.
    resume : path, optional
        As for `from_parquet`.

    Returns
    -------
    Rows
        As for `from_parquet`.
    """
    features = FileFeatures(Path(path).absolute(), "npy")
    return _rows(features, labels_of(y, features.shape[0]), resume)


def from_zarr(path: Path | str, y: LabelsLike = None, *, resume: Path | str | None = None) -> Rows:
    """Rows of a zarr array, which is read block by block. Needs the package zarr.

    Parameters are those of `from_npy`; `path` is the folder of the array.
    """
    features = FileFeatures(Path(path).absolute(), "zarr")
    return _rows(features, labels_of(y, features.shape[0]), resume)


def from_dask(X: ArrayLike, y: LabelsLike = None, *, resume: Path | str | None = None) -> Rows:
    """Rows of a Dask array. Estimators take the array itself as well; this adds `resume`.

    Parameters
    ----------
    X : Dask array of shape (n, d)
        Features, in chunks of any size.
    y : array-like or Dask array of shape (n,), optional
        Partial labels. A Dask array stays on the workers; any other travels with each pass.
    resume : path, optional
        As for `from_parquet`. The array must have the same name when it is made again, as arrays
        from files have.

    Returns
    -------
    Rows
        As for `from_parquet`.
    """
    if not is_dask(X):
        raise InputError(f"X must be a Dask array; got {type(X).__name__}.")
    rows = as_rows(X, y)
    assert rows is not None  # X is a Dask array
    return Rows(rows.features, rows.labels, is_lazy=True, journal=_journal(resume))


def _rows(features: Features, labels: Labels, resume: Path | str | None) -> Rows:
    if features.shape[0] == 0 or features.shape[1] == 0:
        raise InputError(f"There are no rows or no columns: the shape is {features.shape}.")
    return Rows(features, labels, journal=_journal(resume))


def _journal(resume: Path | str | None) -> Journal | None:
    return None if resume is None else Journal(Path(resume))


def part_paths(source: Path | str | Iterable[Path | str]) -> list[Path]:
    """Files that a path, a folder, a pattern or a list names, in the order of their names."""
    if not isinstance(source, (str, Path)):
        paths = [Path(path) for path in source]
    elif Path(source).is_dir():
        paths = sorted(Path(source).glob("*.parquet"))
    elif Path(source).is_file() or not glob.has_magic(str(source)):
        paths = [Path(source)]
    else:
        paths = sorted(Path(path) for path in glob.glob(str(source)))
    if not paths:
        raise InputError(f"There is no Parquet file {source}. Check the path or the pattern.")
    missing = [path for path in paths if not path.is_file()]
    if missing:
        raise InputError(f"There is no file {missing[0]}.")
    return [path.absolute() for path in paths]
