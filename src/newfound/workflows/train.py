"""`newfound train`: the paper's Algorithm 1 with all its settings. The result is a run."""

from __future__ import annotations

from pathlib import Path

from newfound.deep.settings import Settings
from newfound.progress import Progress, no_progress
from newfound.result.result import Result
from newfound.workflows.finished import finished_result
from newfound.workflows.job import Job
from newfound.workflows.rerun import train_command
from newfound.workflows.source import Source, read_for
from newfound.workflows.training import train_and_discover, training_request


def train(
    source: Source,
    labels: Path | str | None,
    settings: Settings,
    out: Path | str,
    *,
    min_confidence: float | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Result:
    """Train a network on pictures and find their categories; an interrupted run is resumed.

    Parameters
    ----------
    source : path or Collection
        The pictures.
    labels : path or None
        A table with the columns path and label; None for class folders.
    settings : Settings
        All settings, among them the seed and the number of categories, if it is known.
    out : path
        The run folder. If it holds the finished run of the same request, its result is returned.
    min_confidence : float, optional
        As for `discover`.
    overwrite : bool, default=False
        Replace the run in the folder, if there is one.
    progress : callable, optional
        As for `discover`.

    Returns
    -------
    Result
        Every picture with its category.
    """
    job = Job(
        settings.run.seed,
        settings.estep.n_components,
        settings.run.rehearse,
        progress or no_progress,
        min_confidence=min_confidence,
        overwrite=overwrite,
    )
    job.check()
    collection = read_for(job, source, labels)
    stored = finished_result(out, collection, training_request(settings, job), job, "train")
    if stored is not None:
        return stored
    line = train_command(source, labels, settings, out, min_confidence=min_confidence)
    return train_and_discover(collection, settings, out, job, ("train", line))
