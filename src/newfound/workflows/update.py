"""`newfound update`: a person's edits, more items or labels, and the categories they bring."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from sklearn.base import clone

from newfound.data.collection import Collection, check_discoverable
from newfound.data.tables import AGAIN, DAMAGED
from newfound.errors import InputError
from newfound.files import explained_errors, read_json, write_atomically
from newfound.labels import encode_labels
from newfound.mixture.estimator import SplitMergeMixture
from newfound.mixture.extension import extended
from newfound.progress import Progress, no_progress
from newfound.result.build import result_from
from newfound.result.digests import CheckedFiles
from newfound.result.edits.log import EDITS, add_edit
from newfound.result.lineage import Changes, Partition, compare, keep_ids
from newfound.result.result import Result
from newfound.result.run_folder import LABELS, RUN, is_finished, open_run, reopen_run, start_of
from newfound.result.store import read_result, write_result
from newfound.workflows.edit_plan import EditPlan
from newfound.workflows.encoding import EncodedItems, encode_like
from newfound.workflows.fitting import Fitted, check_on_hidden_classes, facts_of, reporting_passes
from newfound.workflows.job import Job
from newfound.workflows.labelling import label_items
from newfound.workflows.merging import MergedItems, merge_items, start_partition
from newfound.workflows.rerun import command_line
from newfound.workflows.source import (
    Source,
    check_outside,
    content_fingerprint,
    fingerprint,
    read_and_warn,
)


def update(
    run: Path | str,
    more: Source | None = None,
    labels: Path | str | None = None,
    *,
    out: Path | str | None = None,
    granularity: int | None = None,
    min_confidence: float | None = None,
    progress: Progress | None = None,
) -> tuple[Result, Changes]:
    """Obey the edits of a run, add items or labels to it, and find the categories that these bring.

    What ``edits.csv`` in the run folder says is done first, and nothing overrides it. Categories
    that it does not speak of stay as they are.

    New items go to the nearest category. Where they are far more frequent among their neighbours
    than the growth of the categories explains, they become a new category. Old items stay in
    their category, unless they are nearer to a new one.

    The mixture is fitted again, with the old partition as its start, if labels of old items have
    changed, if new items have labels of new classes, or if there are more new items than old ones.
    Old items may then move. Labels that were given stay, and new labels override them. Novel
    categories keep their ids in any case.

    Parameters
    ----------
    run : path
        The run folder.
    more : path or Collection, optional
        New items, or the run's own collection after items were added to it. By default only the
        edits are obeyed.
    labels : path, optional
        A table of labels for `more`. Without `more`, labels of the run's own items: a table, Label
        Studio's JSON export, a COCO file, a FiftyOne data set, or the CSV of a label audit.
    out : path, optional
        Another run folder for the result. By default `run` itself is updated.
    granularity : int, optional
        Make the level with this number of categories the result, see `Result.at`. It is written
        to ``edits.csv``, so that it holds from then on and can be undone. Not with `more`.
    min_confidence : float, optional
        As for `discover`. By default that of the run.
    progress : callable, optional
        As for `discover`.

    Returns
    -------
    result : Result
        All items, old and new.
    changes : Changes
        What differs from the run.

    Raises
    ------
    InputError
        If the data cannot be used, or if edits contradict each other. Nothing is changed then.
    """
    run, target = Path(run), Path(run if out is None else out)
    with contextlib.ExitStack() as locks:
        if out is None:
            locks.enter_context(reopen_run(run))
        old = read_result(run)
        job = _job_like(old, min_confidence, progress)
        if (run / LABELS).is_dir():
            job.warnings.append(
                f"This updates the sample. {run / LABELS} holds the categories of all rows before "
                f"it; `newfound predict {target} PARTS` writes those after it."
            )
        asked = {"labels": labels, "out": out, "granularity": granularity}
        line = _command_line(run, more, **asked, min_confidence=job.min_confidence)
        if granularity is not None and more is not None:
            raise InputError(
                "`granularity` chooses a level of the run as it is. Add the items first, then "
                "choose."
            )
        plan = EditPlan.read(run, old, granularity)
        _check_work(run, more or labels, plan)
        result = plan.obey_now(old, job, line)
        merged = _merge_given(result, run, more, labels, job)
        collection = result.collection if merged is None else merged.collection
        data = fingerprint(collection)
        if out is not None:
            check_outside(target, collection)
            locks.enter_context(open_run(target, command="update", data=data))
            _copy_edits(run, target)
        done = old if out is None else read_result(target) if is_finished(target) else None
        if merged is not None:
            if not plan.decisions.is_new and _is_done(done, merged, job):
                return done, _stored_changes(target)
            result = _updated_result(result, merged, job, line)
        result, obeyed = plan.obey_later(result, job, line, has_changed=merged is not None)
        changes = compare(old.table, result.table)
        _copy_network(old, run, target)
        for edit in plan.level:
            add_edit(target, replace(edit, id=""))
        more_files: dict[str, Any] = {"decisions": obeyed, "started": start_of("update", data)}
        write_result(result, target, changes=changes.as_dict(), **more_files)
    return result, changes


def _check_work(run: Path, given: Source | None, plan: EditPlan) -> None:
    """Refuse an update that has nothing to do, because something was forgotten."""
    if given is None and not plan.edits and not plan.obeyed.effects:
        raise InputError(
            f"There is nothing to do: no more items or labels were given, and {run / EDITS} has no "
            f"edits. Give more items, or decide something with `newfound review {run}`."
        )


def _merge_given(
    old: Result, run: Path, more: Source | None, labels: Path | str | None, job: Job
) -> MergedItems | None:
    """Join more items, or labels of the old ones, with the old result; None if none are given."""
    if more is not None:
        collection = read_and_warn(job, more, labels)
        job.content = content_fingerprint(collection)
        merged = merge_items(old, encode_like(old, run, collection, job))
    elif labels is not None:
        merged, job.content = label_items(old, Path(labels)), old.record.content
    else:
        return None
    check_discoverable(merged.collection)
    return merged


def _is_done(done: Result | None, merged: MergedItems, job: Job) -> TypeGuard[Result]:
    """Whether a result is that of the same update, which may have been killed after its commit."""
    return (
        done is not None
        and done.record.command == "update"
        and done.record.content == job.content
        and done.record.settings.min_confidence == job.min_confidence
        and done.collection.ids == merged.collection.ids
        and done.collection.y.tolist() == merged.collection.y.tolist()
        and np.array_equal(done.features, merged.features)
    )


def _stored_changes(run: Path) -> Changes:
    """What the last update of a run has changed."""
    path = CheckedFiles(run, read_json(run / RUN)).file("changes.json")
    with explained_errors(path, DAMAGED, AGAIN):
        return Changes.from_dict(read_json(path))


def _job_like(old: Result, min_confidence: float | None, progress: Progress | None) -> Job:
    """A job with the settings of the old run, checked."""
    record = old.record
    job = Job(
        record.seed or 0,
        rehearse=record.rehearsal is not None,
        progress=progress or no_progress,
        min_confidence=record.settings.min_confidence if min_confidence is None else min_confidence,
        sizes=record.settings.sizes,
    )
    job.check()
    return job


def _updated_result(old: Result, merged: MergedItems, job: Job, line: str | None) -> Result:
    """The result of all items, with the names and the settings of the old one."""
    record = old.record
    fitted, names = _fit_more(old, merged, job)
    items = EncodedItems(merged.collection, merged.features, old.encoder)
    request = replace(record.settings, min_confidence=job.min_confidence)
    facts = facts_of(job, fitted, items, request, ("update", line))
    return result_from(
        merged.collection,
        merged.features,
        fitted.mixture,
        replace(facts, last_id=record.last_id, encoder=record.encoder),
        names=names,
        encoder=old.encoder,
    )


def _fit_more(old: Result, merged: MergedItems, job: Job) -> tuple[Fitted, list[str]]:
    """Fit the mixture to all items; novel categories keep their old ids."""
    assert old.mixture is not None  # `encode_like` has refused a run without a model
    collection, features = merged.collection, merged.features
    with job.timed("fit"), job.collecting_warnings():
        if _can_be_extended(old, merged):
            job.progress("Finding categories", 0, 0)
            mixture = extended(old.mixture, features, collection.y)
        else:
            mixture = _refit(old, merged, job)
    fitted = check_on_hidden_classes(mixture, features, collection.y, job)
    is_novel = old.assigned.labels >= old.n_known
    before = {
        name: old.names[code]
        for name, code, novel in zip(old.collection.ids, old.assigned.labels, is_novel, strict=True)
        if novel
    }
    known = [str(name) for name in mixture.classes_.tolist()]
    now = Partition(collection.ids, mixture.labels_, known)
    return fitted, keep_ids(before, now, old.record.last_id)


def _can_be_extended(old: Result, merged: MergedItems) -> bool:
    """Whether the mixture of the run can stay as it is, with new components for new items.

    If there are more new items than old ones, the old ones say too little about where new items
    are in excess.
    """
    assert old.mixture is not None  # `encode_like` has refused a run without a model
    classes = [str(name) for name in encode_labels(merged.collection.y).classes.tolist()]
    return (
        not merged.old_changed
        and len(merged.collection) <= 2 * len(old.collection)
        and classes == list(old.names[: old.n_known])
        and old.record.settings.n_categories is None
        and old.mixture.assign == "nearest"
    )


def _refit(old: Result, merged: MergedItems, job: Job) -> SplitMergeMixture:
    """Fit the mixture again from the old partition."""
    # The novel categories are counted again: more items may hold more of them.
    n_given = old.record.settings.n_categories
    mixture = clone(old.mixture).set_params(n_components=n_given, count=None)
    with reporting_passes(mixture, job):
        return mixture.refit(merged.features, merged.collection.y, start_partition(old, merged))


def _command_line(run: Path, more: Source | None, **options: Any) -> str | None:
    if more is None:
        return command_line("update", run, **options)
    if isinstance(more, Collection):  # made in Python: no command line can name it
        return None
    return command_line("update", run, more, **options)


def _copy_edits(run: Path, out: Path) -> None:
    """Copy the edits into a new run folder, where they go on."""
    if (run / EDITS).is_file() and out.resolve() != run.resolve():
        write_atomically(out / EDITS, (run / EDITS).read_bytes())


def _copy_network(old: Result, run: Path, out: Path) -> None:
    """Copy the trained network into a new run folder."""
    if old.encoder["kind"] != "trained" or out.resolve() == run.resolve():
        return
    name = old.encoder["checkpoint"]
    write_atomically(out / "train" / name, (run / "train" / name).read_bytes())
