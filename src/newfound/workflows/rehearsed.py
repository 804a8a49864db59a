"""A result is written before the rehearsal, which takes long, and again with what that says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from newfound.deep.pace import duration
from newfound.mixture.estimator import SplitMergeMixture
from newfound.progress import NOTE
from newfound.result.result import Result
from newfound.result.store import write_result
from newfound.workflows.encoding import EncodedItems
from newfound.workflows.finished import NOT_REHEARSED
from newfound.workflows.fitting import (
    Fitted,
    can_check,
    check_on_hidden_classes,
    seconds_of_check,
)
from newfound.workflows.job import Job


def rehearsed_result(
    result_of: Callable[[Fitted], Result],
    mixture: SplitMergeMixture,
    items: EncodedItems,
    job: Job,
    folder: Path | None,
    labels: Path | None = None,
) -> Result:
    """Write a result, rehearse, and write it again with what the rehearsal says.

    Parameters
    ----------
    result_of : callable
        Makes the result of what was found, with a rehearsal or without one.
    mixture : SplitMergeMixture
        Fitted to the items.
    items : EncodedItems
        The items.
    job : Job
        What was asked for.
    folder : Path or None
        The run folder; None if nothing is to be written.
    labels : Path, optional
        As for `write_result`.
    """
    if can_check(mixture, items.features, job):
        _show(result_of(Fitted(mixture, None)), job, folder, labels)
        labels = None  # the run folder has them
    checked = check_on_hidden_classes(mixture, items.features, items.collection.y, job)
    result = result_of(checked)
    if folder is not None:
        write_result(result, folder, labels=labels)
    return result


def _show(result: Result, job: Job, folder: Path | None, labels: Path | None) -> None:
    """Write and report the result before the rehearsal."""
    record = result.record
    where = "" if folder is None else f" It is in {folder}: Ctrl-C keeps it as it is."
    if folder is not None:
        warned = replace(record, warnings=(*record.warnings, NOT_REHEARSED))
        write_result(replace(result, record=warned), folder, labels=labels)
    # The fit says how long it takes only if it was one of these items.
    seconds = seconds_of_check(result.features, result.collection.y, job)
    how_long = "" if record.n_rows is not None else f", for about {duration(seconds)}"
    job.progress(
        f"{NOTE}{result.answer}{where} Now known categories are hidden to see how far this can be "
        f"trusted{how_long}.",
        0,
        0,
    )
