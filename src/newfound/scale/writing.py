"""Labels of all rows as Parquet parts, written where they are computed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from newfound.errors import InputError, require
from newfound.files import whole_folder
from newfound.progress import StepProgress, no_progress
from newfound.scale.arrays import is_dask
from newfound.scale.workers import active_client, as_completed

#: Rows of a part of a vector that is in memory.
_PART_ROWS = 2**20


def write_labels(
    labels: Any,
    folder: Path | str,
    *,
    names: npt.NDArray[Any] | None = None,
    progress: StepProgress = no_progress,
) -> list[Path]:
    """Write one label for each row to the parts of a Parquet data set.

    A Dask array is not gathered: each chunk is computed and written by a worker, which must see
    the folder under the same path.

    Parameters
    ----------
    labels : ndarray or Dask array of int, shape (n,)
        ``labels_`` of an estimator, or what `predict` returned.
    folder : path
        A new folder for the files ``part-00000.parquet`` …; it appears when all are written. They
        have the columns ``row``, the number of the row, ``label``, and ``category``, its name, if
        there are names.
    names : ndarray of shape (K,), optional
        ``category_names_`` of the estimator.
    progress : callable, optional
        Called with the number of parts that are written, and of all.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    InputError
        If the folder is not empty, or workers do not see it.
    OSError
        If the disk is full, or the folder cannot be written to. Nothing is left there.
    """
    folder = Path(folder).absolute()
    texts = None if names is None else np.array([str(name) for name in names])
    write = _write_chunks if is_dask(labels) else _write_slices
    with whole_folder(folder) as temporary:
        try:
            n_parts = write(labels, temporary, texts, progress)
        except FileNotFoundError as error:
            raise InputError(
                f"Workers do not see the folder of {folder} ({error}). Give one on a file system "
                "that all workers share, under the same path."
            ) from error
    return [_path(folder, index) for index in range(n_parts)]


def _write_slices(
    labels: npt.NDArray[Any], folder: Path, names: npt.NDArray[Any] | None, progress: StepProgress
) -> int:
    """Write a vector that is in memory; returns the number of parts."""
    starts = range(0, len(labels), _PART_ROWS)
    for index, start in enumerate(starts):
        write_part(labels[start : start + _PART_ROWS], start, _path(folder, index), names)
        progress(index + 1, len(starts))
    return len(starts)


def _path(folder: Path, index: int) -> Path:
    return folder / f"part-{index:05d}.parquet"


def _write_chunks(
    labels: Any, folder: Path, names: npt.NDArray[Any] | None, progress: StepProgress
) -> int:
    """Write the chunks of a Dask array where they are computed; returns their number."""
    delayed = require("dask", "scale").delayed
    starts = np.cumsum([0, *labels.chunks[0]])
    tasks = [
        delayed(write_part, pure=False)(chunk, int(starts[index]), _path(folder, index), names)
        for index, chunk in enumerate(labels.to_delayed().ravel())
    ]
    client = active_client()
    if client is None:
        for done, task in enumerate(tasks, start=1):
            task.compute(scheduler="synchronous")
            progress(done, len(tasks))
        return len(tasks)
    futures = client.compute(tasks)
    for done, future in enumerate(as_completed(client, futures), start=1):
        future.result()
        progress(done, len(tasks))
    return len(tasks)


def write_part(
    labels: npt.NDArray[Any], start: int, path: Path, names: npt.NDArray[Any] | None
) -> None:
    """Write the labels of consecutive rows, the first of which has the number `start`."""
    arrow = require("pyarrow", "scale")
    columns = {
        "row": np.arange(start, start + len(labels)),
        "label": np.asarray(labels, dtype=np.int32),
    }
    if names is not None:
        codes = arrow.array(columns["label"])
        columns["category"] = arrow.DictionaryArray.from_arrays(codes, arrow.array(names.tolist()))
    with path.open("wb") as file:  # an error of the folder is one of the call, see `write_labels`
        require("pyarrow.parquet", "scale").write_table(arrow.table(columns), file)
        file.flush()
        os.fsync(file.fileno())
