"""`newfound predict`: assign more items to the categories of a run, which do not change."""

from __future__ import annotations

from pathlib import Path

from newfound.data.tables import Table
from newfound.progress import Progress, no_progress
from newfound.result.build import predict_table
from newfound.result.store import read_result
from newfound.workflows.encoding import encode_like
from newfound.workflows.job import Job
from newfound.workflows.source import Source, read_source


def predict(
    run: Path | str,
    more: Source,
    *,
    min_confidence: float | None = None,
    progress: Progress | None = None,
) -> Table:
    """Assign more items to the categories of a run, without changing the categories.

    Parameters
    ----------
    run : path
        The run folder.
    more : path or Collection
        Items of the same kind as those of the run. Labels are shown beside the category and are
        not used.
    min_confidence : float, optional
        As for `discover`. By default that of the run.
    progress : callable, optional
        As for `discover`.

    Returns
    -------
    DataFrame
        The columns of `Result.table`, with one row for each item that could be read. The other
        items are listed, with the reason, in its ``attrs["skipped"]``; ``attrs["kind"]`` is
        the kind of the items.
    """
    run = Path(run)
    job = Job(progress=progress or no_progress, min_confidence=min_confidence)
    job.check()
    result = read_result(run)
    items = encode_like(result, run, read_source(more, None), job)
    table = predict_table(result, items.collection, items.features, min_confidence=min_confidence)
    table.attrs["kind"] = items.collection.kind
    table.attrs["skipped"] = [[item.path, item.reason] for item in items.collection.skipped]
    return table
