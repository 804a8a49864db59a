"""`discover --train`: the result before training first, then the training, then the better one.

A training may take hours, and with few pictures or few epochs it can make features worse. So the
mixture is fitted to the features of the untrained network first, and that result is written: from
then on the folder holds a finished run. After training both sets of features are compared on labels
that the training did not see, and the better result is kept.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from newfound.data.collection import Collection, check_discoverable
from newfound.deep.settings import Settings
from newfound.errors import InputError
from newfound.files import write_json
from newfound.progress import NOTE
from newfound.result.build import result_from
from newfound.result.record import Request
from newfound.result.result import Result
from newfound.result.run_folder import RUN
from newfound.result.store import write_result
from newfound.workflows.comparison import Comparison, SetAside, compare_features, set_aside
from newfound.workflows.encoding import EncodedItems, encode_items
from newfound.workflows.finished import NOT_TRAINED
from newfound.workflows.fitting import Fitted, check_on_hidden_classes, facts_of, fit_mixture
from newfound.workflows.job import Job
from newfound.workflows.source import check_number
from newfound.workflows.training import (
    OPTIMISTIC,
    TRAIN,
    TrainingPlace,
    check_pictures,
    decode_pictures,
    history_of,
    open_training,
    start_processes,
    train_network,
    trained_items,
    training_request,
    write_backbone,
)
from newfound.workflows.training_plan import encoder_of

if TYPE_CHECKING:
    from newfound.deep.trained import Trained

#: In the folder of a training: what the comparison said. It is there once all is done.
COMPARISON = "comparison.json"
_ADVICE = (
    "Shorter, with another --out: --quick (few epochs, stored views) or a "
    "smaller network (--encoder efficientnet-lite0). You can stop at any time (Ctrl-C): the result "
    "before training stays, and the same command resumes the training."
)


@dataclass(frozen=True)
class Ask:
    """What `discover --train` was asked for.

    Attributes
    ----------
    settings : Settings
        Of the training.
    rerun : tuple of str and (str or None)
        The command, and the command line that repeats it.
    quick : bool
        Whether the settings are the quick ones already.
    """

    settings: Settings
    rerun: tuple[str, str | None]
    quick: bool = False


def discover_by_training(
    collection: Collection, ask: Ask, out: Path | str | None, job: Job
) -> Result:
    """Find categories before and after training, and keep the better result.

    Parameters
    ----------
    collection : Collection
        Pictures, some of them labelled.
    ask : Ask
        Settings and command.
    out : path or None
        The run folder; None to write nothing.
    job : Job
        Takes the time, collects warnings, and reports progress.

    Returns
    -------
    Result
        Every picture with its category, in each process.
    """
    settings = ask.settings
    check_pictures(collection)
    check_discoverable(collection)
    check_number(collection, settings.estep.n_components)
    fabric = start_processes(settings)
    opened = open_training(out, collection, ask.rerun[0], fabric, overwrite=job.overwrite)
    with opened as folder, _encoder_advice():
        rest, cache = decode_pictures(collection, settings, folder, job, fabric)
        before = None
        if fabric.is_global_zero:
            before = _before_training(rest, ask, folder, job)
            _show(before, out, job)
        fabric.barrier()
        literal = settings.estep.acceptance == "literal"  # its K is that of the last epoch
        aside = set_aside(rest.y, settings.run.seed, whole_classes=not literal)
        place = TrainingPlace(folder, fabric, "" if ask.quick else _ADVICE)
        inner = settings.with_changes(rehearse=False)  # it comes when all labels are back
        trained = train_network(cache, aside.y, inner, place, job)
        result = None
        if before is not None:
            items = trained_items(rest, trained, settings, folder)
            result, comparison = _better_of(before, items, trained, aside, ask, job)
            if out is not None:
                if comparison.is_better:
                    write_backbone(trained, settings, folder)
                write_result(result, folder)
                write_json(folder / TRAIN / COMPARISON, comparison.as_json())
        shared: Result = fabric.broadcast(result)  # type: ignore[assignment]
    return shared


@contextlib.contextmanager
def _encoder_advice() -> Iterator[None]:
    """Name options of `discover` where the weights of a network are missing."""
    from newfound.deep.network.missing import MissingWeightsError

    try:
        yield
    except MissingWeightsError as error:
        raise error.for_encoder from error


def _before_training(collection: Collection, ask: Ask, folder: Path, job: Job) -> Result:
    """What `discover` finds without training, with the weights that the training starts from."""
    encoder = encoder_of(ask.settings.network)
    assert encoder is not None  # random weights have no features before training
    warnings = list(job.warnings)
    items = encode_items(collection, encoder, folder / "cache", job)
    if len(items.collection) != len(collection):
        raise InputError(
            f"{len(collection) - len(items.collection)} pictures could be read at first and then "
            "not any more. Check the disk, and run the same command again."
        )
    mixture = fit_mixture(items, job)
    fitted = check_on_hidden_classes(mixture, items.features, items.collection.y, job)
    request = Request(
        n_categories=job.n_categories,
        rehearse=job.rehearse,
        min_confidence=job.min_confidence,
        sizes=job.sizes,
    )
    facts = facts_of(job, fitted, items, request, ask.rerun)
    job.warnings[:] = warnings  # those of this mixture are in its facts
    return result_from(collection, items.features, fitted.mixture, facts, encoder=items.encoder)


def _show(before: Result, out: Path | str | None, job: Job) -> None:
    """Write the result before training, unless there is a result already, and report it."""
    where = ""
    if out is not None:
        if not (Path(out) / RUN).exists():
            record = before.record
            record = replace(record, warnings=(*record.warnings, NOT_TRAINED))
            write_result(replace(before, record=record), Path(out))
        where = f" This result is in {out}: `newfound report {out}` shows it."
    job.progress(f"{NOTE}Before training: {before.answer}{where}", 0, 0)


def _better_of(
    before: Result, items: EncodedItems, trained: Trained, aside: SetAside, ask: Ask, job: Job
) -> tuple[Result, Comparison]:
    """Compare both, and return the better result with what was compared."""
    job.progress("Comparing with the result before training", 0, 0)
    with job.timed("compare"):
        y = items.collection.y
        comparison = compare_features(before.features, items.features, y, aside)
    if comparison.is_better:
        fitted = _fit_trained(before, items, trained, ask.settings, job)
        if fitted.rehearsal is not None:
            job.warnings.append(OPTIMISTIC)
        job.warnings.append(comparison.sentence)
        facts = facts_of(job, fitted, items, training_request(ask.settings, job), ask.rerun)
        result = result_from(
            items.collection, items.features, fitted.mixture, facts, encoder=items.encoder
        )
        return result, comparison
    record = replace(
        before.record,
        settings=training_request(ask.settings, job),
        warnings=(*before.record.warnings, comparison.sentence),
        timings={**job.timings, "total": round(sum(job.timings.values()), 3)},
    )
    return replace(before, record=record), comparison


def _fit_trained(
    before: Result, items: EncodedItems, trained: Trained, settings: Settings, job: Job
) -> Fitted:
    """The mixture on the trained features, with all labels.

    The number of categories is that of the features before training: training with labels draws
    known classes together, and a count after it is misled.
    """
    from newfound.deep.final_mixture import (
        Finished,
        can_rehearse,
        fit_final_mixture,
        rehearse_final,
    )

    assert trained.mixture is not None
    assert before.mixture is not None
    finished = Finished(
        items.features,
        items.collection.y.tolist(),
        trained.mixture.labels_,
        before.mixture.count_,
        trained.mixture.sizes,
    )
    rehearsal = None
    with job.timed("fit"), job.collecting_warnings():
        mixture = fit_final_mixture(finished, settings)
    if can_rehearse(mixture, settings):
        job.progress("Rehearsing", 0, 0)
        with job.timed("rehearse"):
            rehearsal = rehearse_final(mixture, finished, settings)
    return Fitted(mixture, rehearsal, history_of(trained))
