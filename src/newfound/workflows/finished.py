"""A finished run that is asked for again: it is not computed twice, and never replaced unasked.

Some results are written before all of the work is done, because the rest takes long. They can be
used like any other, and say in a warning what is missing; the same command adds it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from newfound.data.collection import Collection
from newfound.deep.settings import HARDWARE
from newfound.errors import InputError
from newfound.files import read_json
from newfound.result.record import Request, RunRecord
from newfound.result.result import Result
from newfound.result.run_folder import RUN, check_same, is_finished
from newfound.result.store import read_result
from newfound.words import plural
from newfound.workflows.job import Job

#: Warnings of a result that is written before all of the work is done.
NOT_TRAINED = "This is the result before training; the training has not finished."
NOT_REHEARSED = (
    "The rehearsal with hidden categories has not finished. Run the same command again to add it."
)


def is_complete(out: Path) -> bool:
    """Whether a run folder holds a run with nothing left to do."""
    return is_finished(out) and not awaits(out, NOT_TRAINED) and not awaits(out, NOT_REHEARSED)


def awaits(out: Path | str | None, what: str) -> bool:
    """Whether a run folder holds a result that was written before `what` was done."""
    if out is None or not is_finished(Path(out)):
        return False
    return what in (read_json(Path(out) / RUN).get("warnings") or ())


def finished_result(
    out: Path | str | None, collection: Collection, request: Request, job: Job, command: str
) -> Result | None:
    """The result of the same request, if the run folder has it.

    Parameters
    ----------
    out : path or None
        The run folder.
    collection : Collection
        The items and their labels, as they were read.
    request : Request
        What is asked for.
    job : Job
        With the seed, the fingerprint of the data, and whether to overwrite.
    command : str
        The command, "discover" or "train".

    Returns
    -------
    Result or None
        None if there is no finished run, if it is to be replaced, or if its rehearsal is missing.

    Raises
    ------
    InputError
        If the folder holds a finished run of another request; the message says what differs.
    """
    if out is None or job.overwrite or not is_finished(Path(out)):
        return None
    assert job.data is not None  # `read_for` has set it
    check_same(Path(out), command=command, data=job.data)
    result = read_result(Path(out))
    is_rehearsed = NOT_REHEARSED not in result.record.warnings
    if not is_rehearsed:  # whoever does not want to wait for it may leave it out
        request = replace(request, rehearse=True)
    differences = [
        *_other_settings(result.record, request, job),
        *_other_labels(result.collection, collection),
    ]
    if differences:
        raise InputError(
            f"{out} holds a finished run with another request: {'; '.join(differences)}. Choose "
            "another folder, or pass --overwrite (in Python overwrite=True) to replace it."
        )
    return result if is_rehearsed else None


def _other_settings(record: RunRecord, request: Request, job: Job) -> list[str]:
    """Settings in which a run differs from what is asked for now."""
    before, now = record.settings, request
    pairs = {
        "seed": (record.seed, int(job.seed)),
        "n_categories": (before.n_categories, now.n_categories),
        "train": (before.train, now.train),
        "rehearse": (before.rehearse, now.rehearse),
        **_training_pairs(before.training, now.training),
    }
    if now.training is None:  # otherwise it is among the settings of the training
        pairs["sizes"] = (before.sizes, now.sizes)
    changed = []
    if record.content not in (None, job.content):
        changed.append("the content of the items differs")
    # The name that "auto" stood for is the same request.
    if record.kind == "pictures" and now.encoder not in (None, before.encoder, record.encoder):
        pairs["encoder"] = (before.encoder or record.encoder, now.encoder)
    changed += [f"{name} {old} (now {new})" for name, (old, new) in pairs.items() if old != new]
    return changed


def _training_pairs(
    before: dict[str, Any] | None, now: dict[str, Any] | None
) -> dict[str, tuple[Any, Any]]:
    """Settings of the training, before and now, that can change a result."""
    if before is None or now is None:
        return {}
    # A setting that is missing is newer than the run.
    names = [name for name in now if name in before and name not in HARDWARE]
    return {name: (before[name], now[name]) for name in names}


def _other_labels(before: Collection, now: Collection) -> list[str]:
    """How labels differ from those of a run, in words; nothing if they don't."""
    old = dict(zip(before.ids, before.y, strict=True))
    new = {name: None if y is None else str(y) for name, y in zip(now.ids, now.y, strict=True)}
    # Items that could not be read are in the old run's list of skipped ones.
    changed = [name for name in old if old[name] != new.get(name)]
    if not changed:
        return []
    first = changed[0]
    was, is_now = (label or "no label" for label in (old[first], new.get(first)))
    words = plural(len(changed), "label differs", "labels differ")
    return [f"{words} (first {first}: {was}, now {is_now})"]
