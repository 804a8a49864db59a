"""The main job, `newfound discover` and `newfound.discover`: from a folder or file to a result."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from newfound.data.collection import Collection, check_discoverable
from newfound.errors import InputError, require
from newfound.mixture.counting.novel_size import Sizes, parse_sizes
from newfound.progress import Progress, no_progress
from newfound.result.build import result_from
from newfound.result.record import Request
from newfound.result.result import Result
from newfound.result.run_folder import open_run
from newfound.workflows.encoding import encode_items, with_absolute_path
from newfound.workflows.finished import NOT_TRAINED, awaits, finished_result
from newfound.workflows.fitting import Fitted, facts_of, fit_mixture
from newfound.workflows.job import Job
from newfound.workflows.parts import Parts, discover_parts, names_parts, small_collection
from newfound.workflows.rehearsed import rehearsed_result
from newfound.workflows.rerun import discover_command, train_command
from newfound.workflows.source import (
    Source,
    check_number,
    check_outside,
    read_for,
)

if TYPE_CHECKING:
    from newfound.deep.settings import Settings


def discover(
    source: Source,
    labels: Path | str | None = None,
    *,
    out: Path | str | None = None,
    encoder: str = "auto",
    n_categories: int | None = None,
    sizes: Sizes | None = "unknown",
    train: bool = False,
    quick: bool = False,
    settings: Settings | None = None,
    rehearse: bool = True,
    min_confidence: float | None = None,
    seed: int = 0,
    device: str | None = None,
    overwrite: bool = False,
    label_column: str | None = None,
    scheduler: str | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """Find the categories of a collection in which only some items are labelled.

    Parameters
    ----------
    source : path or Collection
        What `read_collection` reads: a folder of pictures, or a file of features or texts. Or
        features in Parquet parts: a folder of them, or a pattern such as ``"PARTS/*.parquet"``.
    labels : path, optional
        A table of labels, if the source has none.
    out : path, optional
        The run folder. The same call resumes an interrupted run there, and returns the result of
        a finished one without computing it again. By default nothing is written.
    encoder : str, default="auto"
        What to encode pictures with, see `encode_pictures`; with `train`, the network to start
        from.
    n_categories : int, optional
        Number of known and novel categories together, if you know it.
    sizes : {"unknown", "alike"}, float or None, default="unknown"
        What you know about the sizes of novel categories: nothing, that they are as large as known
        ones on average ("alike"), or the ratio of the mean sizes, novel : known (0.5 if they are
        half as large). To say it makes the interval of their number narrower; to say it wrongly
        makes the number wrong. None counts as "alike" does, and the borders between categories
        take no account of sizes.
    train : bool, default=False
        Train the network and find the categories together (the paper's Algorithm 1). Pictures only.
        The result before training is found and written first, and it is kept if training does not
        make it better.
    quick : bool, default=False
        Train for minutes instead of hours: few epochs, stored views, a low learning rate.
    settings : Settings, optional
        Settings of the training. `seed`, `n_categories`, `sizes` and `encoder` override theirs.
    rehearse : bool, default=True
        Hide some known classes and see whether they are found, to say how far the number can be
        trusted. Skipped if the number is given, with fewer than 4 known classes, and from 100,000
        rows on. The result is written to `out` before this starts, and again with what it says.
    min_confidence : float, optional
        Mark unlabelled items whose confidence is lower, from 0 to 1, in the column ``is_unsure``
        of the tables, in the report and in exports. They keep their category. By default nothing
        is marked, and there is no such column.
    seed : int, default=0
        Seed of all random numbers.
    device : str, optional
        Where networks compute: ``cpu``, ``cuda``, ``cuda:1``, ``mps``. By default on a GPU if
        there is one.
    overwrite : bool, default=False
        Replace the run in `out`, if there is one. Without it, a finished run with other data,
        labels or settings is an error.
    label_column : str, optional
        For Parquet parts: the column of labels.
    scheduler : str, optional
        For Parquet parts: address of the scheduler of a Dask cluster to work on.
    workers : int, optional
        For Parquet parts: number of processes on this machine to work with instead.
    progress : callable, optional
        Called with the step, how much of it is done, and how much there is (0 if unknown).

    Returns
    -------
    Result
        Every item with its category. Labelled items keep their class.

    Raises
    ------
    InputError
        If the data or a setting cannot be used; the message says what to do.
    """
    job = Job(
        seed,
        n_categories,
        rehearse,
        progress or no_progress,
        min_confidence=min_confidence,
        sizes=sizes,
        device=device,
        overwrite=overwrite,
    )
    job.check()
    if settings is not None and not train:
        raise InputError("`settings` are for training; pass train=True with them.")
    if quick and not train:
        raise InputError("`quick` is for training; give `train` (--train) with it.")
    parts = Parts(str(source), label_column, scheduler, workers)
    if names_parts(source) or any(value is not None for value in parts[1:]):
        if train or labels is not None:
            raise InputError(
                "Parquet parts hold features and a column of labels: leave --train and --labels "
                "out, and name the column with --label-column."
            )
        with parts.connected():
            collection = small_collection(parts)
            if collection is None:
                return discover_parts(parts, out, job)
        return _discover_on_frozen_features(collection, None, out, encoder, job, parts)
    if train:
        return _discover_by_training(source, labels, out, (settings, encoder, quick), job)
    return _discover_on_frozen_features(source, labels, out, encoder, job)


def _discover_on_frozen_features(
    source: Source,
    labels: Path | str | None,
    out: Path | str | None,
    encoder: str,
    job: Job,
    parts: Parts | None = None,
) -> Result:
    """Encode the items once, and fit the mixture; the collection may have been read from parts."""
    collection = read_for(job, source, labels)
    check_discoverable(collection)
    check_number(collection, job.n_categories)
    asked = None if collection.kind == "features" else with_absolute_path(encoder)
    request = Request(
        job.n_categories,
        rehearse=job.rehearse,
        min_confidence=job.min_confidence,
        encoder=asked,
        sizes=job.sizes,
    )
    stored = finished_result(out, collection, request, job, "discover")
    if stored is not None:
        return stored
    with _run_folder(out, collection, job) as folder:
        items = encode_items(collection, encoder, folder and folder / "cache", job)
        mixture = fit_mixture(items, job)
        name = items.encoder["name"] if items.collection.kind == "pictures" else None
        named, more = (source, {}) if parts is None else (parts.source, parts.options)
        line = discover_command(named, job=job, labels=labels, out=out, encoder=name, **more)

        def result_of(fitted: Fitted) -> Result:
            facts = facts_of(job, fitted, items, request, ("discover", line))
            known = items.collection, items.features, fitted.mixture, facts
            return result_from(*known, encoder=items.encoder)

        return rehearsed_result(result_of, mixture, items, job, folder)


def _discover_by_training(
    source: Source,
    labels: Path | str | None,
    out: Path | str | None,
    ask: tuple[Settings | None, str, bool],
    job: Job,
) -> Result:
    """Train a network and find the categories with it."""
    from newfound.workflows.trained_discovery import Ask, discover_by_training
    from newfound.workflows.training import (
        check_pictures,
        train_and_discover,
        training_request,
    )
    from newfound.workflows.training_plan import encoder_of, plan_training

    settings, encoder, quick = ask
    collection = read_for(job, source, labels)
    check_pictures(collection)
    plan = plan_training(settings, encoder, job, quick=quick)
    job.sizes = parse_sizes(plan.estep.sizes)  # for the result before training
    network = encoder_of(plan.network)
    if not awaits(out, NOT_TRAINED):
        stored = finished_result(out, collection, training_request(plan, job), job, "discover")
        if stored is not None:
            return stored
    if settings is None:
        words = ["--train", *(["--quick"] if quick else [])]
        line = discover_command(source, *words, job=job, labels=labels, out=out, encoder=network)
    else:
        # `newfound discover` has no options for these settings, so the command recorded is the
        # equivalent `newfound train`.
        line = train_command(source, labels, plan, None, min_confidence=job.min_confidence)
    if network is None:  # random weights: there is nothing to compare with
        return train_and_discover(collection, plan, out, job, ("discover", line))
    return discover_by_training(collection, Ask(plan, ("discover", line), quick), out, job)


@contextlib.contextmanager
def _run_folder(out: Path | str | None, collection: Collection, job: Job) -> Iterator[Path | None]:
    """The run folder, open and locked; None if nothing is to be written."""
    if out is None:
        yield None
        return
    check_outside(Path(out), collection)
    require("pyarrow", "report")  # a missing package is reported before hours of work, not after
    assert job.data is not None  # `read_for` has set it
    with open_run(Path(out), command="discover", data=job.data, overwrite=job.overwrite) as folder:
        yield folder
