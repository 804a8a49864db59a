"""Training on a folder of pictures: what `newfound train` and `newfound pretrain` do."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from newfound.data.collection import Collection, check_discoverable, read_collection
from newfound.deep.settings import Settings
from newfound.errors import InputError, require
from newfound.workflows.discover import check_apart

if TYPE_CHECKING:
    from newfound.deep.images.cache import PictureCache
    from newfound.deep.records import Listener
    from newfound.deep.trainer import Trained


class Training(NamedTuple):
    """What was trained on, and what came out.

    Attributes
    ----------
    collection : Collection
        Without the files that could not be read, which it lists.
    trained : Trained
        Network, categories, history.
    """

    collection: Collection
    trained: Trained


def train_on_pictures(
    pictures: Path, labels: Path | None, settings: Settings, out: Path, *, pretraining: bool = False
) -> Training:
    """Train on a folder of pictures, with a bar on the terminal; an interrupted run goes on.

    Parameters
    ----------
    pictures : Path
        The folder.
    labels : Path or None
        Table with the columns path and label; None for class folders, or for pretraining.
    settings : Settings
        All settings.
    out : Path
        Folder of the run.
    pretraining : bool, default=False
        Learn from the pictures alone; labels are not read.

    Returns
    -------
    Training
        What was trained on, and what came out.
    """
    for package in ("torch", "lightning_fabric"):
        require(package, "train")
    from newfound.deep.engine import start_engine
    from newfound.deep.logs import draw_history
    from newfound.deep.pretrain import pretrain
    from newfound.deep.trainer import train

    collection = read_collection(pictures, labels)
    if collection.kind != "pictures":
        raise InputError(
            f"Training needs a folder of pictures; {pictures} holds {collection.kind}."
        )
    check_apart(out, collection)
    if not pretraining:
        check_discoverable(collection)
    fabric = start_engine(settings.run, settings.optimiser.batch_size)
    with fabric.rank_zero_first(local=True):  # one process decodes, the others find it done
        collection, cache = _decode(collection, settings, out)
    if not pretraining:
        check_discoverable(collection)  # labelled pictures may have been unreadable
    told: dict[str, Any] = {"fingerprint": cache.fingerprint, "fabric": fabric}
    if fabric.is_global_zero:
        told["listener"] = _listener(out)
    if pretraining:
        trained = pretrain(cache.pixels, settings, out, **told)
    else:
        trained = train(cache.pixels, collection.y, settings, out, **told)
    if fabric.is_global_zero:
        _write(collection, trained, settings, out)
        draw_history(trained.history, out / "history.png")
    return Training(collection, trained)


def _decode(
    collection: Collection, settings: Settings, out: Path
) -> tuple[Collection, PictureCache]:
    """Decode all pictures once; those that cannot be read are left out and listed."""
    from newfound.cli.progress import bar
    from newfound.deep.gpc import stored_size
    from newfound.deep.images.cache import cache_pictures

    assert collection.paths is not None
    with bar("Reading pictures") as tell:
        cache = cache_pictures(
            collection.paths,
            stored_size(settings),
            out / "pictures",
            ids=collection.ids,
            progress=tell,
        )
    return collection.without(cache.skipped), cache


def _listener(out: Path) -> Listener:
    from newfound.cli.progress import TrainingBar
    from newfound.deep.logs import Several, TensorBoard

    return Several([TrainingBar(), TensorBoard(out / "tensorboard")])


def _write(collection: Collection, trained: Trained, settings: Settings, out: Path) -> None:
    """Write what a person takes away: weights, categories of all pictures, what was skipped."""
    from newfound.deep.checkpoint import save_checkpoint
    from newfound.files import write_atomically

    network = trained.network.backbone.network
    made_by = {"model": settings.network.model, "image_size": settings.network.image_size}
    save_checkpoint(out / "backbone.safetensors", network.state_dict(), made_by)
    skipped = [(item.path, item.reason) for item in collection.skipped]
    write_atomically(out / "skipped.csv", _table(["path", "reason"], skipped))
    summary: dict[str, Any] = {
        "settings": settings.as_dict(),
        "selected_epoch": trained.selected_epoch,
        "n_pictures": len(collection),
    }
    mixture = trained.mixture
    if mixture is not None:
        names = mixture.category_names_
        kinds = ["known"] * mixture.n_known_ + ["novel"] * mixture.n_novel_
        rows = [
            (path, "" if given is None else given, names[label], kinds[label])
            for path, given, label in zip(
                collection.ids, collection.y, mixture.labels_, strict=True
            )
        ]
        heading = ["path", "given_label", "category", "kind"]
        write_atomically(out / "assignments.csv", _table(heading, rows))
        summary |= {
            "n_known": mixture.n_known_,
            "n_novel": mixture.n_novel_,
            "n_novel_interval": mixture.n_novel_interval_,
        }
        if trained.rehearsal is not None:
            summary["rehearsal_ratios"] = trained.rehearsal.ratios.tolist()
    write_atomically(out / "run.json", json.dumps(summary, indent=2).encode())


def _table(heading: list[str], rows: list[Any]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(heading)
    writer.writerows(rows)
    return text.getvalue().encode()
