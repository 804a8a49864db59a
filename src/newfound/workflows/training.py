"""Train a network on pictures and find their categories: `newfound train`.

The pictures are decoded once, Algorithm 1 runs in ``RUN/train``, and the result is written as for
every other run. With several processes each of them trains; the first one writes.
"""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from newfound.arrays import LabelsLike
from newfound.data.collection import Collection, check_discoverable
from newfound.data.tables import AGAIN, DAMAGED
from newfound.deep.settings import Settings
from newfound.errors import InputError, require
from newfound.files import explained_errors
from newfound.mixture.counting.novel_size import parse_sizes
from newfound.result.build import result_from
from newfound.result.model_file import WORDS
from newfound.result.record import History, Request
from newfound.result.result import Result
from newfound.result.run_folder import open_run
from newfound.result.store import write_result
from newfound.workflows.conversion import convert_training
from newfound.workflows.encoding import EncodedItems
from newfound.workflows.fitting import Fitted, facts_of
from newfound.workflows.job import Job
from newfound.workflows.source import check_number, check_outside, fingerprint, warn_of_lost_classes

if TYPE_CHECKING:
    from lightning_fabric import Fabric

    from newfound.deep.images.cache import PictureCache
    from newfound.deep.records import Listener
    from newfound.deep.trained import Trained

#: Folders and files inside a run folder.
TRAIN, PICTURES, BACKBONE = "train", "pictures", "backbone.safetensors"


#: Said where a rehearsal was made on trained features.
OPTIMISTIC = (
    "The features were trained with the labels of the classes that the rehearsal hid, so the "
    "rehearsal is too optimistic: new categories are harder to find than it says."
)
_ADVICE = (
    "Shorter: fewer epochs (--epochs), smaller pictures (--image-size), stored views "
    "(--n-stored-views 4) or a smaller network (--model). You can stop at any time (Ctrl-C): the "
    "same command resumes."
)


class TrainingPlace(NamedTuple):
    """Where a training runs.

    Attributes
    ----------
    folder : Path
        The run folder, or a temporary one.
    fabric : Fabric
        The engine.
    advice : str
        What a person can do if the training takes long.
    """

    folder: Path
    fabric: Fabric
    advice: str = _ADVICE


def training_request(settings: Settings, job: Job) -> Request:
    """What a person asks for with these settings."""
    return Request(
        n_categories=settings.estep.n_components,
        train=True,
        rehearse=settings.run.rehearse,
        training=settings.as_dict(),
        min_confidence=job.min_confidence,
        sizes=parse_sizes(settings.estep.sizes),
    )


def train_and_discover(
    collection: Collection,
    settings: Settings,
    out: Path | str | None,
    job: Job,
    rerun: tuple[str, str | None],
) -> Result:
    """Train a network on pictures, find their categories, and write the run.

    Parameters
    ----------
    collection : Collection
        Pictures, some of them labelled.
    settings : Settings
        All settings of the training.
    out : path or None
        The run folder; None to write nothing.
    job : Job
        Measures the time of each step, collects warnings, and reports progress.
    rerun : tuple of str and (str or None)
        The command, and the command line that repeats it.

    Returns
    -------
    Result
        Every picture with its category, in each process.
    """
    check_pictures(collection)
    check_discoverable(collection)
    check_number(collection, settings.estep.n_components)
    fabric = start_processes(settings)
    with open_training(out, collection, rerun[0], fabric, overwrite=job.overwrite) as folder:
        rest, cache = decode_pictures(collection, settings, folder, job, fabric)
        check_discoverable(rest)  # labelled pictures may have been unreadable
        check_number(rest, settings.estep.n_components)
        trained = train_network(cache, rest.y, settings, TrainingPlace(folder, fabric), job)
        assert trained.mixture is not None  # the method of the paper always has one
        items = trained_items(rest, trained, settings, folder)
        fitted = Fitted(trained.mixture, trained.rehearsal, history_of(trained))
        if fitted.rehearsal is not None:
            job.warnings.append(OPTIMISTIC)
        facts = facts_of(job, fitted, items, training_request(settings, job), rerun)
        result = result_from(rest, items.features, fitted.mixture, facts, encoder=items.encoder)
        if out is not None and fabric.is_global_zero:
            write_backbone(trained, settings, folder)
            write_result(result, folder)
    return result


def check_pictures(collection: Collection) -> None:
    """Refuse to train on anything but pictures."""
    if collection.kind != "pictures":
        where = f"; {collection.root} holds" if collection.root else ", but these are"
        raise InputError(f"Training needs a folder of pictures{where} {collection.kind}.")


def start_processes(settings: Settings) -> Fabric:
    """Open the devices that the settings ask for, and join the other processes, if any."""
    for package in ("torch", "lightning_fabric"):
        require(package, "train")
    from newfound.deep.engine import start_engine

    return start_engine(settings.run, settings.optimiser.batch_size)


@contextlib.contextmanager
def open_training(
    out: Path | str | None,
    collection: Collection,
    command: str,
    fabric: Fabric,
    *,
    overwrite: bool = False,
) -> Iterator[Path]:
    """The folder to train in: the run folder, or a temporary one.

    The first process opens and locks the run folder; the others wait until that is done.
    """
    with contextlib.ExitStack() as stack:
        if out is None:
            yield Path(stack.enter_context(tempfile.TemporaryDirectory()))
            return
        folder = Path(out)
        check_outside(folder, collection)
        require("pyarrow", "report")  # a missing package is reported before hours of work
        if fabric.is_global_zero:
            data = fingerprint(collection)
            convert_training(folder, command=command, data=data)
            opened = open_run(folder, command=command, data=data, overwrite=overwrite)
            stack.enter_context(opened)
        fabric.barrier()
        yield folder


def decode_pictures(
    collection: Collection, settings: Settings, folder: Path, job: Job, fabric: Fabric | None
) -> tuple[Collection, PictureCache]:
    """Decode all pictures once; those that cannot be read are skipped and listed."""
    require("torch", "train")
    from newfound.deep.gpc import stored_size
    from newfound.deep.images.cache import cache_pictures

    # One process on each machine decodes; the others find the work done.
    turn = contextlib.nullcontext() if fabric is None else fabric.rank_zero_first(local=True)
    with job.timed("decode"), turn:
        cache = cache_pictures(
            collection.paths or [],
            stored_size(settings),
            folder / PICTURES,
            ids=collection.ids,
            progress=functools.partial(job.progress, "Decoding"),
        )
    rest = collection.without(cache.skipped)
    warn_of_lost_classes(collection, rest, job)
    return rest, cache


def train_network(
    cache: PictureCache, y: LabelsLike, settings: Settings, place: TrainingPlace, job: Job
) -> Trained:
    """Algorithm 1, with its plot."""
    from newfound.deep.logs import draw_history
    from newfound.deep.trainer import train

    folder, fabric = place.folder, place.fabric
    with job.timed("train"), job.collecting_warnings():
        trained = train(
            cache.pixels,
            y,
            settings,
            folder / TRAIN,
            fingerprint=cache.fingerprint,
            listener=training_listener(place, job),
            fabric=fabric,
        )
    if fabric.is_global_zero:
        draw_history(trained.history, folder / TRAIN / "history.png")
    return trained


def training_listener(place: TrainingPlace, job: Job) -> Listener | None:
    """Progress and TensorBoard, from the first process only."""
    from newfound.deep.logs import ProgressListener, Several, TensorBoard

    if not place.fabric.is_global_zero:
        return None
    board = TensorBoard(place.folder / TRAIN / "tensorboard")
    return Several([ProgressListener(job.progress, place.advice), board])


def trained_items(
    collection: Collection, trained: Trained, settings: Settings, folder: Path
) -> EncodedItems:
    """Items with the features of the trained network."""
    from newfound.deep.checkpoint import BEST, LAST

    has_best = settings.run.selection == "validation" and (folder / TRAIN / BEST).exists()
    encoder = {
        "kind": "trained",
        "name": f"{settings.network.model}, trained",
        "settings": settings.as_dict(),
        "checkpoint": BEST if has_best else LAST,
    }
    return EncodedItems(collection, trained.features, encoder)


def history_of(trained: Trained) -> History:
    """Number of components over the epochs."""
    return History("epoch", tuple(epoch.n_components for epoch in trained.history))


def write_backbone(trained: Trained, settings: Settings, folder: Path) -> None:
    """Write all weights of the backbone, for ``--weights`` and for other programs."""
    from newfound.deep.checkpoint import save_checkpoint

    made_by = {"model": settings.network.model, "image_size": settings.network.image_size}
    save_checkpoint(folder / BACKBONE, trained.network.backbone.network.state_dict(), made_by)


def _settings_of(encoder: dict[str, Any]) -> Settings:
    """Settings with which a run was trained; before `sizes` there was `size_weight`."""
    values = dict(encoder["settings"])
    if "size_weight" in values:
        values["sizes"] = "unknown" if values.pop("size_weight") else "none"
    return Settings(**values)


def encode_with_trained(
    collection: Collection, encoder: dict[str, Any], run: Path, job: Job
) -> EncodedItems:
    """Features from the network that a run has trained."""
    with explained_errors(run / "model" / WORDS, DAMAGED, AGAIN):
        settings = _settings_of(encoder)
    checkpoint = run / TRAIN / encoder["checkpoint"]
    if not checkpoint.is_file():
        raise InputError(
            f"{checkpoint}, which holds the trained weights, is missing. Restore it, or run "
            "newfound discover again."
        )
    require("torch", "train")
    from newfound.deep.trained import load_trained

    network = load_trained(settings, checkpoint)
    with tempfile.TemporaryDirectory() as temporary:
        rest, cache = decode_pictures(collection, settings, Path(temporary), job, None)
        with job.timed("encode"):
            features = network.features(cache.pixels)
    return EncodedItems(rest, features, encoder)
