"""The decisions of a person in a result: what ``edits.csv`` says is done, whatever the model says.

Items that a person has put into a class get its label. Others that were moved, or that belong to a
judged pair, are held in their place. Everything else is as the mixture says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from newfound.arrays import Bools, Ints
from newfound.data.collection import Collection
from newfound.data.tables import as_objects
from newfound.errors import InputError
from newfound.labels import encode_labels
from newfound.mixture.revision import revised
from newfound.result.build import result_from, with_held_rows
from newfound.result.edits.decisions import Decisions
from newfound.result.edits.pairs import rows_to_move
from newfound.result.edits.state import NOWHERE
from newfound.result.lineage import highest_number, novel_ids
from newfound.result.record import RunFacts, installed_versions
from newfound.result.result import Result
from newfound.workflows.job import Job


def obey(old: Result, decisions: Decisions, job: Job, line: str | None) -> Result:
    """The result in which all edits are obeyed.

    Parameters
    ----------
    old : Result
        The result so far, with its model.
    decisions : Decisions
        Its edits, replayed and without problems.
    job : Job
        Measures the time and reports progress.
    line : str or None
        The command line that repeats the run.

    Returns
    -------
    Result
        Categories that no edit concerns keep their prototypes, ids and names.
    """
    if old.mixture is None:
        raise InputError(
            "The run folder has no model, so edits cannot be obeyed. Restore its folder 'model', "
            "or run newfound discover again."
        )
    state, ids = decisions.state, old.collection.ids
    collection = replace(old.collection, y=as_objects([state.labels[item] for item in ids]))
    if not collection.is_labelled.any():
        raise InputError("After these edits no item would have a label. Keep at least one.")
    is_held: Bools = np.array([item in state.held for item in ids], dtype=bool)
    result = rearranged(old, collection, [state.place[i] for i in ids], is_held, job, line)
    assert result.mixture is not None
    held = {row: int(result.mixture.labels_[row]) for row in np.flatnonzero(is_held).tolist()}
    result = with_held_rows(result, held)
    moved = rows_to_move(result, state)
    return with_held_rows(result, {**held, **moved}) if moved else result


def rearranged(
    old: Result,
    collection: Collection,
    places: Sequence[str],
    is_held: Bools,
    job: Job,
    line: str | None,
) -> Result:
    """The result with other categories; those that are the same keep their prototypes and names.

    Parameters
    ----------
    old : Result
        The result so far, with its model.
    collection : Collection
        Its items, perhaps with other labels.
    places : sequence of str
        For each item the name of its category, or `NOWHERE`.
    is_held : ndarray of bool, shape (n,)
        Items that stay there; other unlabelled ones go to the nearest category.
    job, line
        As for `obey`.
    """
    assert old.mixture is not None
    job.progress("Obeying the edits", 0, 0)
    with job.timed("edits"), job.collecting_warnings():
        classes = [str(name) for name in encode_labels(collection.y).classes.tolist()]
        names = [*classes, *sorted(set(places) - {*classes, NOWHERE})]
        code_of = {name: code for code, name in enumerate(names)} | {NOWHERE: -1}
        start: Ints = np.array([code_of[place] for place in places], dtype=np.int64)
        mixture, number_of = revised(old.mixture, old.features, collection.y, start, is_held)
    used = {number: names[code] for code, number in enumerate(number_of) if number >= 0}
    ordered = _with_ids([used[number] for number in range(len(used))], old.record.last_id)
    facts = facts_like(old, job, line, ordered)
    result = result_from(
        collection, old.features, mixture, facts, names=ordered, encoder=old.encoder
    )
    # Labels that follow from the categories say nothing about how well features tell classes apart.
    record = replace(result.record, label_accuracy=old.record.label_accuracy)
    return replace(result, record=record, folder=old.folder)


def _with_ids(names: list[str], last_id: int) -> list[str]:
    """Names in which a category that was kept apart from another one gets an id of its own."""
    fresh = [name for name in names if name.endswith(" (2)") and name[:-4] in names]
    after = max(last_id, highest_number(names))
    new = dict(zip(fresh, novel_ids(len(fresh), names, after), strict=True))
    return [new.get(name, name) for name in names]


def facts_like(old: Result, job: Job, line: str | None, names: list[str]) -> RunFacts:
    """The record of the old result, with what is new. Nothing was counted or rehearsed again."""
    record = old.record
    # A number that a person gave changes with what the person merges and splits.
    given = None if record.settings.n_categories is None else len(names)
    settings = replace(record.settings, n_categories=given, min_confidence=job.min_confidence)
    return RunFacts(
        command="update",
        rerun=line,
        settings=settings,
        seed=record.seed,
        encoder=record.encoder,
        rehearsal=record.rehearsal,
        history=record.history,
        timings={**job.timings, "total": round(sum(job.timings.values()), 3)},
        versions=installed_versions(),
        warnings=tuple(dict.fromkeys([*record.warnings, *job.warnings])),
        last_id=max(record.last_id, highest_number(names)),
        calibration=record.calibration,
        content=record.content,
    )
