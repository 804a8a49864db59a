"""`newfound pretrain`: features of pictures from nothing, without any label."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from newfound.data.collection import Collection
from newfound.deep.settings import Settings
from newfound.files import write_json
from newfound.progress import Progress, no_progress
from newfound.result.store import write_skipped
from newfound.workflows.job import Job
from newfound.workflows.source import Source, read_source
from newfound.workflows.training import (
    TRAIN,
    TrainingPlace,
    check_pictures,
    decode_pictures,
    open_training,
    start_processes,
    training_listener,
    write_backbone,
)

if TYPE_CHECKING:
    from newfound.deep.trained import Trained


class Pretraining(NamedTuple):
    """What was trained on, and what came out.

    Attributes
    ----------
    collection : Collection
        The pictures that could be read; the others are in its list of skipped ones.
    trained : Trained
        Network and history. There are no categories.
    """

    collection: Collection
    trained: Trained


def pretrain(
    source: Source, settings: Settings, out: Path | str, *, progress: Progress | None = None
) -> Pretraining:
    """Learn features from pictures alone; an interrupted run is resumed.

    Parameters
    ----------
    source : path or Collection
        The pictures. Labels are not read.
    settings : Settings
        `Settings.pretraining()` is a good start for small pictures.
    out : path
        The folder for ``backbone.safetensors`` and checkpoints.
    progress : callable, optional
        As for `discover`.

    Returns
    -------
    Pretraining
        What was trained on, and what came out.
    """
    job = Job(settings.run.seed, progress=progress or no_progress)
    collection = read_source(source, None)
    check_pictures(collection)
    fabric = start_processes(settings)
    from newfound.deep import pretrain as deep
    from newfound.deep.logs import draw_history

    with open_training(out, collection, "pretrain", fabric) as folder:
        rest, cache = decode_pictures(collection, settings, folder, job, fabric)
        trained = deep.pretrain(
            cache.pixels,
            settings,
            folder / TRAIN,
            fingerprint=cache.fingerprint,
            listener=training_listener(TrainingPlace(folder, fabric), job),
            fabric=fabric,
        )
        if fabric.is_global_zero:
            draw_history(trained.history, folder / TRAIN / "history.png")
            write_backbone(trained, settings, folder)
            _write_summary(rest, settings, folder)
    return Pretraining(rest, trained)


def _write_summary(collection: Collection, settings: Settings, folder: Path) -> None:
    """Write what was trained on, and which files could not be read."""
    write_skipped(collection.skipped, folder / "skipped.csv")
    summary = {"settings": settings.as_dict(), "n_pictures": len(collection)}
    write_json(folder / "pretraining.json", summary)
