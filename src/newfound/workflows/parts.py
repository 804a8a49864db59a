"""`discover` and `predict` on Parquet parts of any number of rows, here or on a Dask cluster.

The categories are those of all rows. A run folder, its tables and its report cannot show millions
of items, so they show a sample and say so; the categories of all rows are in ``RUN/labels``.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import glob
import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from newfound.arrays import Floats, Ints
from newfound.data.collection import Collection
from newfound.data.tables import as_objects
from newfound.errors import InputError, require
from newfound.files import check_new_folder, disk_errors, is_litter
from newfound.mixture.counting.drawing import sample_rows
from newfound.mixture.estimator import SplitMergeMixture
from newfound.mixture.sampling import RowSample, rows_and_sample, sample_size
from newfound.progress import Progress, no_progress
from newfound.result.build import result_from
from newfound.result.record import Request
from newfound.result.result import Result
from newfound.result.run_folder import LABELS, PASSES, open_run
from newfound.result.store import read_result
from newfound.scale import connect, from_parquet, write_labels
from newfound.scale.rows import Rows
from newfound.workflows.encoding import EncodedItems
from newfound.workflows.finished import NOT_REHEARSED, awaits, finished_result
from newfound.workflows.fitting import Fitted, facts_of, reporting_passes
from newfound.workflows.job import Job
from newfound.workflows.rehearsed import rehearsed_result
from newfound.workflows.rerun import discover_command
from newfound.workflows.source import check_number

#: Rows that the tables and the report of a run show.
ROWS_SHOWN = 20_000
_ENCODER = {"kind": "features", "name": "features"}


class Parts(NamedTuple):
    """Parquet parts that a person names, and where to work on them."""

    source: str  # a folder, a file or a pattern
    label_column: str | None = None
    scheduler: str | None = None  # address of a Dask scheduler
    workers: int | None = None  # or a number of processes on this machine

    @property
    def options(self) -> dict[str, Any]:
        """What the command line calls all but the source."""
        return {name: value for name, value in self._asdict().items() if name != "source"}

    @contextlib.contextmanager
    def connected(self) -> Iterator[None]:
        """With a client of the cluster, if there is one."""
        if self.scheduler is not None and self.workers is not None:
            raise InputError("Give a scheduler or a number of workers, not both.")
        if self.scheduler is None and self.workers is None:
            yield
            return
        client = connect(self.scheduler, self.workers)
        try:
            yield
        finally:
            client.close()
            if self.scheduler is None:
                client.cluster.close()


def names_parts(source: object) -> bool:
    """Whether a path is a pattern, or a folder that holds nothing but Parquet files."""
    if not isinstance(source, (str, Path)) or Path(source).is_file():
        return False
    if Path(source).is_dir():
        files = [path for path in Path(source).iterdir() if not is_litter(path.name)]
        return bool(files) and all(path.suffix.lower() == ".parquet" for path in files)
    return glob.has_magic(str(source))


def small_collection(parts: Parts) -> Collection | None:
    """All rows of the parts as a collection, if they are few enough to be searched as a whole."""
    rows = from_parquet(parts.source, label_column=parts.label_column)
    if len(rows) > sample_size(len(rows.classes)):
        return None
    X, codes = rows.read_all()
    return _collection(rows, X, codes, np.arange(len(X)), parts)


def discover_parts(parts: Parts, out: Path | str | None, job: Job) -> Result:
    """Find the categories of all rows of Parquet parts.

    Parameters
    ----------
    parts : Parts
        The rows, more than can be searched as a whole.
    out : path or None
        The run folder. An interrupted run resumes from its last pass over the rows.
    job : Job
        What else was asked for.

    Returns
    -------
    Result
        Of a sample of the rows. The categories of all rows are in ``out/labels``.
    """
    if out is None:
        raise InputError("Many rows need a run folder, for the categories of all of them: out=….")
    require("pyarrow", "report")
    folder = Path(out)
    rows = from_parquet(
        parts.source, label_column=parts.label_column, resume=folder / PASSES
    ).with_progress(job.progress)
    job.data = job.content = hashlib.sha256(rows.fingerprint.encode()).hexdigest()
    request = Request(
        job.n_categories,
        rehearse=job.rehearse,
        min_confidence=job.min_confidence,
        sizes=job.sizes,
    )
    stored = _finished(folder, request, job)
    if stored is not None:
        return stored
    with open_run(folder, command="discover", data=job.data, overwrite=job.overwrite):
        return _discover(rows, parts, folder, request, job)


def _finished(folder: Path, request: Request, job: Job) -> Result | None:
    """The result of the same request, if the run folder has it."""
    if job.overwrite or not (folder / LABELS).is_dir():
        return None
    try:
        collection = read_result(folder).collection
    except InputError:
        return None
    return finished_result(folder, collection, request, job, "discover")


def _discover(rows: Rows, parts: Parts, folder: Path, request: Request, job: Job) -> Result:
    """Fit to all rows, label them all, and make a result of a sample."""
    mixture = SplitMergeMixture(
        n_components=job.n_categories, sizes=job.sizes, random_state=int(job.seed)
    )
    with reporting_passes(mixture, job), job.timed("fit"), job.collecting_warnings():
        mixture.fit(rows)
    labels = None
    is_written = (folder / LABELS).is_dir() and awaits(folder, NOT_REHEARSED)
    if job.overwrite or not is_written:
        labels = folder / PASSES / LABELS  # joins the run together with the result
        with job.timed("label"), disk_errors(folder):
            _write_labels(mixture, labels, job)
    # the same passes as in the fit: the journal has their results
    state = check_random_state(int(job.seed))
    n_categories = job.n_categories or 0
    _, sample = rows_and_sample(rows, None, state, np.asarray, n_categories)
    items, shown = _items_shown(rows, sample, mixture, parts)
    check_number(items.collection, job.n_categories)
    job.warnings.append(
        "The tables, the report and the confidences are those of a sample of "
        f"{len(shown.labels_):,} of {len(rows):,} rows. The categories of all rows are in "
        f"{folder / LABELS}."
    )
    line = discover_command(parts.source, job=job, out=folder, **parts.options)

    def result_of(fitted: Fitted) -> Result:
        facts = facts_of(job, fitted, items, request, ("discover", line))
        known = items.collection, items.features, fitted.mixture, facts
        result = result_from(*known, encoder=_ENCODER)
        return replace(result, record=replace(result.record, n_rows=len(rows)))

    result = rehearsed_result(result_of, shown, items, job, folder, labels)
    shutil.rmtree(folder / PASSES, ignore_errors=True)
    return result


def _write_labels(mixture: SplitMergeMixture, folder: Path, job: Job) -> None:
    """Write the categories of all rows, in the place of what an interrupted run has left."""
    shutil.rmtree(folder, ignore_errors=True)
    step = functools.partial(job.progress, "Writing labels")
    names = np.array([str(name) for name in mixture.category_names_], dtype=object)
    write_labels(mixture.labels_, folder, names=names, progress=step)


def _items_shown(
    rows: Rows, sample: RowSample, mixture: SplitMergeMixture, parts: Parts
) -> tuple[EncodedItems, SplitMergeMixture]:
    """Some rows as items, and the mixture with the labels of these rows alone."""
    uniform = np.where(sample.is_uniform, sample.partial.codes, -1)
    taken = sample_rows(uniform, ROWS_SHOWN, np.random.default_rng(0)) & sample.is_uniform
    names, first = np.unique(sample.partial.codes, return_index=True)
    taken[first[names >= 0]] = True
    X, codes = sample.X[taken], sample.partial.codes[taken]
    shown = copy.copy(mixture)
    shown.labels_ = np.where(codes >= 0, codes, mixture.predict(X))
    collection = _collection(rows, X, codes, sample.positions[taken], parts)
    return EncodedItems(collection, X, _ENCODER), shown


def _collection(rows: Rows, X: Floats, codes: Ints, positions: Ints, parts: Parts) -> Collection:
    """Rows as items; an item is named by the number of its row."""
    classes = rows.classes.tolist()
    y = as_objects([None if code < 0 else classes[code] for code in codes.tolist()])
    ids = [str(position) for position in positions.tolist()]
    return Collection(ids, y, features=X, root=Path(parts.source).absolute())


def predict_parts(
    run: Path | str, parts: Parts, out: Path | str, *, progress: Progress | None = None
) -> int:
    """Put all rows of Parquet parts into the categories of a run, which stay as they are.

    Parameters
    ----------
    run : path
        The run folder.
    parts : Parts
        More rows, with the same features.
    out : path
        A new folder for the Parquet parts, see `write_labels`.
    progress : callable, optional
        As for `discover`.

    Returns
    -------
    int
        Number of rows.
    """
    progress = progress or no_progress
    check_new_folder(Path(out))  # before the work, not after it
    result = read_result(Path(run))
    if result.mixture is None:
        raise InputError(f"{run} has no model. Restore its folder 'model', or run discover again.")
    with parts.connected():
        rows = from_parquet(parts.source).with_progress(progress)
        labels: Any = result.mixture.predict(rows)
        names = np.array(result.names, dtype=object)
        step = functools.partial(progress, "Writing labels")
        with disk_errors(Path(out), resumes=False):
            write_labels(labels, out, names=names, progress=step)
    return len(rows)
