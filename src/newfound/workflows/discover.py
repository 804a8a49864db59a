"""The main job: from what a person has to a result, and on from there.

`discover` reads a collection, encodes it and finds its categories; `predict` puts more items into
the categories of a run; `update` finds the categories again with more items or more labels, from
where the run was, and the ids of novel categories stay.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import os
import shlex
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.base import clone

from newfound.arrays import Floats, Ints
from newfound.data.collection import (
    Collection,
    Labels,
    Skipped,
    check_discoverable,
    read_collection,
)
from newfound.encode import encode_pictures, encode_texts
from newfound.errors import DiscoveryWarning, InputError, require
from newfound.files import write_atomically
from newfound.labels import encode_labels
from newfound.mixture.clustering import check_positive_int
from newfound.mixture.counting.rehearsal import Rehearsal
from newfound.mixture.counting.rehearsal import rehearse as hide_and_seek
from newfound.mixture.estimator import SplitMergeMixture
from newfound.result.lineage import Changes, Partition, compare, keep_ids
from newfound.result.result import Result, predict_table, read_result, result_from, write_result
from newfound.result.run_folder import open_run, record_start, reopen_run

if TYPE_CHECKING:
    from newfound.deep.settings import Settings

Source: TypeAlias = Path | str | Collection
#: Called with the step, how much of it is done, and how much there is: 0 where nobody knows.
Progress: TypeAlias = Callable[[str, int, int], object]
Table: TypeAlias = Any  # a pandas.DataFrame

N_DRAWS = 19
#: Fewer known classes cannot be hidden by halves, and more rows take too long.
CLASSES_TO_REHEARSE = 4
ROWS_TO_REHEARSE = 100_000
#: Features of fewer numbers than this are rehearsed sooner than further processes have started.
_NUMBERS_FOR_PROCESSES = 500_000

_PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "safetensors", "torch", "timm")


def discover(
    source: Source,
    labels: Path | str | None = None,
    *,
    out: Path | str | None = None,
    encoder: str = "auto",
    n_categories: int | None = None,
    train: bool = False,
    settings: Settings | None = None,
    rehearse: bool = True,
    seed: int = 0,
    progress: Progress | None = None,
) -> Result:
    """Find the categories of a collection of which only a part is labelled.

    Parameters
    ----------
    source : path or Collection
        What `read_collection` reads: a folder of pictures, a file of features or of texts.
    labels : path, optional
        A table of labels, if the source has none.
    out : path, optional
        The run folder. The same command goes on there with what a stopped run has done already.
        Without it nothing is written.
    encoder : str, default="auto"
        For pictures, as for `encode_pictures`; with `train`, a network to begin with.
    n_categories : int, optional
        Number of categories, known and novel together, if it is known.
    train : bool, default=False
        Learn the representation and the categories together, with the deep loop. For pictures.
    settings : Settings, optional
        Of the deep loop. What is passed here as `seed`, `n_categories` or `encoder` goes first.
    rehearse : bool, default=True
        Hide known classes and see whether they are found, to know how far to trust the number.
        Not done if the number is given, with fewer than 4 known classes, or from 100,000 rows on.
    seed : int, default=0
        Of everything random.
    progress : callable, optional
        Called with the step, how much is done and how much there is; 0 if nobody knows.

    Returns
    -------
    Result
        Every item with its category. Labelled items keep theirs.

    Raises
    ------
    InputError
        If the data or a setting cannot be used; the message says what to do.
    """
    job = _Job(seed, n_categories, rehearse, progress or _say_nothing)
    job.check()
    plan = _plan_training(settings, encoder, job) if train else None
    if settings is not None and not train:
        raise InputError("settings are those of the deep loop; pass train=True with them.")
    with job.timed("read"):
        collection = _read(source, labels)
    check_discoverable(collection)
    _check_number(collection, n_categories)
    if out is not None:
        check_apart(Path(out), collection)
    with _in_folder(out, collection) as folder:
        if plan is None:
            prepared = _encode(collection, encoder, folder and folder / "cache", job)
            found = _cluster(prepared, job)
        else:
            prepared, found = _train(collection, plan, folder, job)
        n_asked = n_categories if plan is None else plan.estep.n_components
        request = {"n_categories": n_asked, "train": train, "rehearse": rehearse}
        run = {
            **job.as_run(found),
            "encoder": prepared.encoder["name"],
            "settings": {**request, "training": None if plan is None else plan.as_dict()},
            "rerun": _command(source, labels, out, prepared, job) if plan is None else None,
        }
        result = result_from(
            prepared.collection, prepared.features, found.mixture,
            run=run, encoder=prepared.encoder,
        )  # fmt: skip
        if folder is not None:
            write_result(result, folder)
    return result


def predict(run: Path | str, more: Source, *, progress: Progress | None = None) -> Table:
    """Put more items into the categories of a run, which stay as they are.

    Parameters
    ----------
    run : path
        The run folder.
    more : path or Collection
        Items of the kind that the run has. Labels are shown beside the category, and not used.
    progress : callable, optional
        As for `discover`.

    Returns
    -------
    DataFrame
        The columns of `Result.table`, one row for each item that could be read; the others are
        listed, with the reason, in its ``attrs["skipped"]``.
    """
    run = Path(run)
    result = read_result(run)
    job = _Job(0, None, False, progress or _say_nothing)
    prepared = _encode_like(result, run, _read(more, None), job)
    table = predict_table(result, prepared.collection, prepared.features)
    table.attrs["skipped"] = [[item.path, item.reason] for item in prepared.collection.skipped]
    return table


def update(
    run: Path | str,
    more: Source,
    labels: Path | str | None = None,
    *,
    out: Path | str | None = None,
    progress: Progress | None = None,
) -> tuple[Result, Changes]:
    """Find the categories again, with more items or more labels, from where a run was.

    Old items begin in their category and new ones in the nearest; then the mixture goes on.
    Labels that were given stay, and new ones go first. Novel categories keep their ids.

    Parameters
    ----------
    run : path
        The run folder.
    more : path or Collection
        New items, or the grown collection of the run itself.
    labels : path, optional
        A table of labels for `more`.
    out : path, optional
        Another run folder for the result. By default `run` is brought up to date.
    progress : callable, optional
        As for `discover`.

    Returns
    -------
    result : Result
        Of all items, old and new.
    changes : Changes
        What is otherwise than before.
    """
    run, target = Path(run), Path(run if out is None else out)
    with contextlib.ExitStack() as locks:
        if out is None:
            locks.enter_context(reopen_run(run))
        old = read_result(run)
        was_rehearsed = old.run["rehearsal"] is not None
        job = _Job(old.run["seed"], None, was_rehearsed, progress or _say_nothing)
        with job.timed("read"):
            collection = _read(more, labels)
        merged = _merge(old, _encode_like(old, run, collection, job))
        check_discoverable(merged.collection)
        data = _fingerprint(merged.collection)
        if out is not None:
            check_apart(target, merged.collection)
            locks.enter_context(open_run(target, command="update", data=data))
        found, names = _go_on(old, merged, job)
        details = {**old.run, **job.as_run(found), "command": "update", "rerun": None}
        result = result_from(
            merged.collection, merged.features, found.mixture,
            run=details, names=names, encoder=old.encoder,
        )  # fmt: skip
        changes = compare(old.table, result.table)
        _copy_network(old.encoder, run, target)
        write_result(result, target, changes=changes.as_dict())
        record_start(target, command="update", data=data)
    return result, changes


# ------------------------------------------------------------------------------------- the job


def _say_nothing(step: str, done: int, total: int) -> None:
    """Nobody listens."""


@dataclass
class _Job:
    """What a person asked for, and what there is to tell of how it went."""

    seed: int
    n_categories: int | None
    rehearse: bool
    tell: Progress
    timings: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Refuse numbers that mean nothing."""
        if not isinstance(self.seed, (int, np.integer)) or not 0 <= self.seed < 2**32:
            raise InputError(f"seed must be a whole number from 0 to 2**32 - 1; got {self.seed!r}.")
        if self.n_categories is not None:
            check_positive_int("n_categories", self.n_categories)

    @contextlib.contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Take the time of a step."""
        started = time.perf_counter()
        yield
        self.timings[step] = round(time.perf_counter() - started, 3)

    @contextlib.contextmanager
    def heeding(self) -> Iterator[None]:
        """Keep what the method warns of for the result; let other warnings pass."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DiscoveryWarning)
            yield
        for warning in caught:
            if issubclass(warning.category, DiscoveryWarning):
                self.warnings.append(str(warning.message))
            else:
                warnings.warn_explicit(
                    warning.message, warning.category, warning.filename, warning.lineno
                )

    def as_run(self, found: _Found) -> dict[str, Any]:
        """Plain values for ``run.json``."""
        rehearsal = found.rehearsal
        run: dict[str, Any] = {
            "command": "discover",
            "seed": int(self.seed),
            "rehearsal": None
            if rehearsal is None
            else {"n_draws": len(rehearsal.ratios), "ratios": rehearsal.ratios.tolist()},
            "timings": {**self.timings, "total": round(sum(self.timings.values()), 3)},
            "versions": _versions(),
            "warnings": list(dict.fromkeys([*self.warnings, *_assumptions(found.mixture)])),
        }
        passes = [done.n_components for done in found.mixture.history_]
        run["history"] = found.epochs or {"unit": "pass", "n_components": passes}
        return run


def _versions() -> dict[str, str]:
    """Versions of Python and of the packages that are loaded."""
    found = {"python": sys.version.partition(" ")[0]}
    for name in _PACKAGES:
        module = {"scikit-learn": "sklearn"}.get(name, name)
        if module in sys.modules:
            found[name] = importlib.metadata.version(name)
    return found


class _Prepared(NamedTuple):
    """Items that could be encoded, their features, and where these came from."""

    collection: Collection
    features: Floats
    encoder: dict[str, Any]


class _Found(NamedTuple):
    """A fitted mixture and what its rehearsal said."""

    mixture: SplitMergeMixture
    rehearsal: Rehearsal | None
    epochs: dict[str, Any] | None = None  # K over epochs, if there were any


def _read(source: Source, labels: Path | str | None) -> Collection:
    if isinstance(source, Collection):
        if labels is not None:
            raise InputError("A Collection has labels of its own; pass no further ones.")
        return source
    return read_collection(Path(source), None if labels is None else Path(labels))


def _check_number(collection: Collection, n_categories: int | None) -> None:
    """Refuse fewer categories than have labels, and more than there are items."""
    n_known = encode_labels(collection.y).n_known
    if n_categories is None:
        return
    if n_categories < n_known:
        raise InputError(
            f"n_categories is {n_categories}, but {n_known} categories have labels. Give the total "
            "number, known and new categories together, or leave it out to have it found."
        )
    if n_categories > len(collection):
        raise InputError(
            f"n_categories is {n_categories}, but there are only {len(collection)} items."
        )


def check_apart(out: Path, collection: Collection) -> None:
    """Refuse a run folder among the pictures, where the next run would take it for pictures."""
    root = collection.root
    if collection.kind != "pictures" or root is None:
        return
    if Path(os.path.realpath(out)).is_relative_to(os.path.realpath(root)):
        raise InputError(
            f"The run folder {out} lies in the folder of pictures {root}. Choose one outside."
        )


@contextlib.contextmanager
def _in_folder(out: Path | str | None, collection: Collection) -> Iterator[Path | None]:
    """The run folder, if there is to be one."""
    if out is None:
        yield None
        return
    require("pyarrow", "report")  # before hours of work, not after
    with open_run(Path(out), command="discover", data=_fingerprint(collection)) as folder:
        yield folder


def _fingerprint(collection: Collection) -> str:
    """Identity of a collection: its ids, and features or texts; files may change or move."""
    digest = hashlib.sha256(collection.kind.encode())
    for text in (*collection.ids, *(collection.texts or ())):
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    if collection.features is not None:
        digest.update(np.ascontiguousarray(collection.features).data)
    return digest.hexdigest()


def _command(
    source: Source,
    labels: Path | str | None,
    out: Path | str | None,
    prepared: _Prepared,
    job: _Job,
) -> str | None:
    """The command that does the same again; None for a Collection, which no command can name."""
    if isinstance(source, Collection):
        return None
    options = {
        "--labels": labels,
        "--out": out,
        "--encoder": prepared.encoder["name"] if prepared.collection.kind == "pictures" else None,
        "--n-categories": job.n_categories,
        "--seed": job.seed,
    }
    words = ["newfound", "discover", str(source)]
    for name, value in options.items():
        words += [] if value is None else [name, str(value)]
    return shlex.join([*words, *([] if job.rehearse else ["--no-rehearse"])])


# ------------------------------------------------------------------------------------- encoding


def _encode(collection: Collection, encoder: str, cache: Path | None, job: _Job) -> _Prepared:
    """Features of a collection; what cannot be encoded is skipped."""
    if collection.features is not None:
        return _Prepared(collection, collection.features, {"kind": "features", "name": "features"})
    tell = functools.partial(job.tell, "Encoding")
    with job.timed("encode"):
        if collection.texts is not None:
            encoded = encode_texts(collection.texts, cache=cache, progress=tell)
        else:
            encoder = _with_whole_path(encoder)
            paths = collection.paths or []
            encoded = encode_pictures(paths, encoder, cache=cache, progress=tell)
    rest = collection.without(encoded.skipped)
    if len(rest) == 0:
        check_discoverable(rest)  # says what was wrong with the first one
    described = {"kind": "network" if collection.paths else "texts", "name": encoded.encoder}
    return _Prepared(rest, encoded.features, {**described, **_file_identity(encoded.encoder)})


def _with_whole_path(encoder: str) -> str:
    """NAME=FILE with a path that means the same from everywhere."""
    model, is_file, file = encoder.partition("=")
    return f"{model}={Path(file).absolute()}" if is_file else encoder


def _file_identity(encoder: str) -> dict[str, str]:
    """What the weights in a file are, so that other weights under its name are noticed."""
    file = encoder.partition("=")[2]
    return {"sha256": hashlib.sha256(Path(file).read_bytes()).hexdigest()} if file else {}


def _encode_like(result: Result, run: Path, collection: Collection, job: _Job) -> _Prepared:
    """Features of more items, from the encoder of a run."""
    kind, encoder = result.run["kind"], result.encoder
    if collection.kind != kind:
        raise InputError(
            f"The run in {run} is on {kind}, but these are {collection.kind}. Give {kind}."
        )
    if len(collection) == 0:
        raise InputError(f"There are no {kind} in {collection.root or 'the collection'}.")
    if result.mixture is None:
        raise InputError(
            f"{run} has no folder 'model', so that nothing can be predicted from it. Restore it, "
            "or run newfound discover again."
        )
    cache = run / "cache" if os.access(run, os.W_OK) else None
    if encoder["kind"] == "trained":
        return _encode_trained(collection, encoder, run, job)
    if (known := encoder.get("sha256")) and _file_identity(encoder["name"])["sha256"] != known:
        raise InputError(
            f"The weights of {encoder['name']} are not those that the run in {run} was made with. "
            "Put the old file back, or run newfound discover again."
        )
    prepared = _encode(collection, encoder["name"], cache, job)
    if prepared.features.shape[1] != result.features.shape[1]:
        raise InputError(
            f"The items have {prepared.features.shape[1]} features, but the run in {run} was made "
            f"with {result.features.shape[1]}. Give features from the same encoder."
        )
    return prepared


# ------------------------------------------------------------------------------------ clustering


def _assumptions(mixture: SplitMergeMixture) -> list[str]:
    """What was taken for granted and should be known."""
    if not mixture.offsets_.any():
        return []
    return [
        "The numbers of labels look like a random part of classes of like sizes, so new categories "
        "were taken to be about as large as known ones."
    ]


def _cluster(prepared: _Prepared, job: _Job) -> _Found:
    """Fit the mixture to features, and rehearse."""
    y = prepared.collection.y
    check_discoverable(prepared.collection)
    _check_number(prepared.collection, job.n_categories)
    mixture = SplitMergeMixture(n_components=job.n_categories, random_state=int(job.seed))
    with _listening(mixture, job), job.timed("fit"), job.heeding():
        mixture.fit(prepared.features, y)
    return _Found(mixture, _rehearse(mixture, prepared.features, y, job))


@contextlib.contextmanager
def _listening(mixture: SplitMergeMixture, job: _Job) -> Iterator[None]:
    """Tell of every pass of a mixture."""
    n_passes = 0

    def tell(done: object) -> None:
        nonlocal n_passes
        n_passes += 1
        job.tell("Finding categories", n_passes, 0)

    job.tell("Finding categories", 0, 0)
    mixture.set_params(callback=tell)
    try:
        yield
    finally:
        mixture.set_params(callback=None)


def _rehearse(mixture: SplitMergeMixture, X: Floats, y: Labels, job: _Job) -> Rehearsal | None:
    """Hide known classes, where that is asked for and can tell something."""
    possible = mixture.n_known_ >= CLASSES_TO_REHEARSE and len(X) < ROWS_TO_REHEARSE
    if not job.rehearse or not possible or mixture.count_ is None:
        return None
    job.tell("Rehearsing", 0, N_DRAWS)
    with job.timed("rehearse"), job.heeding():
        return hide_and_seek(
            mixture,
            X,
            y,
            n_draws=N_DRAWS,
            n_jobs=-1 if X.size > _NUMBERS_FOR_PROCESSES else 1,
            random_state=int(job.seed),
            callback=lambda done: job.tell("Rehearsing", done, N_DRAWS),
        )


# ------------------------------------------------------------------------------------ training


def _plan_training(settings: Settings | None, encoder: str, job: _Job) -> Settings:
    """Settings of the deep loop, with what was asked for outside of them."""
    from newfound.deep.settings import Settings

    changes: dict[str, Any] = {"seed": int(job.seed)}
    if job.n_categories is not None:
        changes["n_components"] = job.n_categories
    if not job.rehearse:
        changes["rehearse"] = False
    model, is_file, file = _with_whole_path(encoder).partition("=")
    if encoder.startswith("pixels"):
        raise InputError("Pixels cannot be trained. Name a network as the encoder, or leave it.")
    if encoder.startswith("efficientnet-lite"):
        model = f"tf_efficientnet_lite{encoder.removeprefix('efficientnet-lite')}"
        changes |= {"model": model, "weights": "offline"}
    elif encoder != "auto":
        changes |= {"model": model, "weights": file if is_file else "hub"}
    return (settings or Settings()).with_changes(**changes)


def _train(
    collection: Collection, settings: Settings, folder: Path | None, job: _Job
) -> tuple[_Prepared, _Found]:
    """Learn representation and categories together."""
    if collection.paths is None:
        raise InputError(
            f"train=True needs pictures, but these are {collection.kind}. Leave it out."
        )
    require("torch", "train")
    trainer = require("newfound.deep.trainer", "train")
    checkpoint = require("newfound.deep.checkpoint", "train")
    with contextlib.ExitStack() as stack:
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        rest, pixels, fingerprint = _decode(collection, settings, folder / "pictures", job)
        check_discoverable(rest)
        _check_number(rest, settings.estep.n_components)
        with job.timed("train"), job.heeding():
            trained = trainer.train(
                pixels, rest.y, settings, folder / "train",
                fingerprint=fingerprint, listener=_listener(job),
            )  # fmt: skip
        has_best = (
            settings.run.selection == "validation" and (folder / "train" / checkpoint.BEST).exists()
        )
    if trained.rehearsal is not None:
        job.warnings.append(
            "The features were trained with the labels of the classes that the rehearsal hid: it "
            "flatters, and new categories are harder to find than it says."
        )
    encoder = {
        "kind": "trained",
        "name": f"{settings.network.model}, trained",
        "settings": settings.as_dict(),
        "checkpoint": checkpoint.BEST if has_best else checkpoint.LAST,
    }
    counts = [epoch.n_components for epoch in trained.history]
    found = _Found(trained.mixture, trained.rehearsal, {"unit": "epoch", "n_components": counts})
    return _Prepared(rest, trained.features, encoder), found


def _decode(
    collection: Collection, settings: Settings, folder: Path, job: _Job
) -> tuple[Collection, Any, str]:
    """Pixels of the pictures, and which could be read."""
    cache = require("newfound.deep.images.cache", "train")
    stored_size = require("newfound.deep.gpc", "train").stored_size
    with job.timed("decode"):
        decoded = cache.cache_pictures(
            collection.paths,
            stored_size(settings),
            folder,
            ids=collection.ids,
            progress=functools.partial(job.tell, "Decoding"),
        )
    return collection.without(decoded.skipped), decoded.pixels, decoded.fingerprint


def _listener(job: _Job) -> Any:
    """Tells of every batch."""
    from newfound.deep.records import Listener

    class Telling(Listener):
        """Hands the batches on."""

        n_epochs = 1

        def start(self, n_epochs: int, first_epoch: int) -> None:
            self.n_epochs = n_epochs
            job.tell("Training", first_epoch, n_epochs)

        def batch(self, epoch: int, n_done: int, n_batches: int) -> None:
            job.tell("Training", epoch * n_batches + n_done, self.n_epochs * n_batches)

        def say(self, text: str) -> None:
            job.tell(text, 0, 0)

    return Telling()


def _encode_trained(
    collection: Collection, encoder: dict[str, Any], run: Path, job: _Job
) -> _Prepared:
    """Features from the network that a run has trained."""
    from newfound.deep.settings import Settings

    settings = Settings(**encoder["settings"])
    checkpoint = run / "train" / encoder["checkpoint"]
    if not checkpoint.is_file():
        raise InputError(
            f"{checkpoint}, with the weights that were trained, is missing. Restore it, or run "
            "newfound discover again."
        )
    network = require("newfound.deep.trained", "train").load_trained(settings, checkpoint)
    with tempfile.TemporaryDirectory() as temporary:
        rest, pixels, _ = _decode(collection, settings, Path(temporary), job)
        with job.timed("encode"):
            features = network.features(pixels)
    return _Prepared(rest, features, encoder)


def _copy_network(encoder: dict[str, Any], run: Path, out: Path) -> None:
    """Bring the trained network into a new run folder."""
    if encoder["kind"] != "trained" or out.resolve() == run.resolve():
        return
    name = encoder["checkpoint"]
    write_atomically(out / "train" / name, (run / "train" / name).read_bytes())


# ------------------------------------------------------------------------------------- going on


class _Merged(NamedTuple):
    """Old and new items together."""

    collection: Collection
    features: Floats
    start: list[str]  # category that each item begins in


def _merge(old: Result, more: _Prepared) -> _Merged:
    """Add items to those of a result; one that is there already is brought up to date."""
    ids = _names_for(old, more)
    place = {name: row for row, name in enumerate(old.collection.ids)}
    new = np.array([i for i, name in enumerate(ids) if name not in place], dtype=np.int64)
    again = np.array([i for i, name in enumerate(ids) if name in place], dtype=np.int64)
    rows = np.array([place[ids[i]] for i in again], dtype=np.int64)
    features = np.concatenate([old.features, more.features[new].astype(old.features.dtype)])
    features[rows] = more.features[again]
    merged = replace(more.collection, ids=ids)
    y = [*old.collection.y, *merged.y[new]]
    for row, label in zip(rows, merged.y[again], strict=True):
        y[row] = y[row] if label is None else label
    collection = _joined(old.collection, merged.take(new), features, y)
    start = [*old.table["category"]]
    if len(new):
        start += predict_table(old, merged.take(new), more.features[new])["category"].tolist()
    return _Merged(collection, features, start)


def _joined(old: Collection, new: Collection, features: Floats, y: Sequence[Any]) -> Collection:
    """Two collections as one, with texts for labels."""
    labels = np.empty(len(y), dtype=object)
    labels[:] = [None if label is None else str(label) for label in y]
    skipped: dict[str, Skipped] = {item.path: item for item in (*old.skipped, *new.skipped)}
    return Collection(
        ids=[*old.ids, *new.ids],
        y=labels,
        paths=None if old.paths is None else [*old.paths, *(new.paths or [])],
        features=None if old.features is None else features,
        texts=None if old.texts is None else [*old.texts, *(new.texts or [])],
        skipped=list(skipped.values()),
        root=old.root,
    )


def _names_for(old: Result, more: _Prepared) -> list[str]:
    """Ids for more items: their own, or with the folder's or file's name before it if taken."""
    place = {name: row for row, name in enumerate(old.collection.ids)}
    paths = old.collection.paths or []
    by_path = {str(path): old.collection.ids[row] for row, path in enumerate(paths)}
    root = more.collection.root
    stem = "more" if root is None else root.name
    ids = []
    for row, name in enumerate(more.collection.ids):
        path = "" if more.collection.paths is None else str(more.collection.paths[row])
        choices = [by_path[path]] if path in by_path else [name, f"{stem}/{name}"]
        free = [c for c in choices if c not in place or _is_same(old, place[c], more, row)]
        if not free:
            raise InputError(
                f"The run has an item {name!r} already, with other content. Give new items ids of "
                "their own."
            )
        ids.append(free[0])
    return ids


def _is_same(old: Result, place: int, more: _Prepared, row: int) -> bool:
    """Whether an item of the same id is the same item."""
    before, now = old.collection, more.collection
    if before.paths is not None and now.paths is not None:
        return before.paths[place] == now.paths[row]
    if before.root is not None and before.root == now.root:
        return True
    if before.texts is not None and now.texts is not None:
        return before.texts[place] == now.texts[row]
    return np.array_equal(old.features[place], more.features[row])


def _go_on(old: Result, merged: _Merged, job: _Job) -> tuple[_Found, list[str]]:
    """Fit again from the old partition, and name the categories by it."""
    collection, features = merged.collection, merged.features
    n_asked = old.run["settings"].get("n_categories")
    mixture = clone(old.mixture).set_params(n_components=n_asked, count=None)  # counted anew
    start = _start(old, merged)
    with _listening(mixture, job), job.timed("fit"), job.heeding():
        mixture.refit(features, collection.y, start)
    found = _Found(mixture, _rehearse(mixture, features, collection.y, job))
    novel = old.table[old.table["kind"] == "novel"]
    before = dict(zip(novel["id"], novel["category"], strict=True))
    known = [str(name) for name in mixture.classes_.tolist()]
    now = Partition(collection.ids, mixture.labels_, known)
    return found, keep_ids(before, now, old.run["last_id"])


def _start(old: Result, merged: _Merged) -> Ints:
    """The partition to begin with, as numbers: known classes in sorted order, then the others."""
    known = [str(name) for name in encode_labels(merged.collection.y).classes.tolist()]
    start = _promote(old, merged)
    names = [*known, *sorted(set(start) - set(known))]
    number = {name: i for i, name in enumerate(names)}
    return np.array([number[name] for name in start], dtype=np.int64)


def _promote(old: Result, merged: _Merged) -> list[str]:
    """Let all items of a novel category that now has labels of a new class begin in that class."""
    categories = old.categories
    were_known = set(categories["category"][categories["kind"] == "known"])
    labels: dict[str, Counter[str]] = {}
    for category, label in zip(merged.start, merged.collection.y, strict=True):
        if category not in were_known and label is not None and label not in were_known:
            labels.setdefault(category, Counter())[label] += 1
    promoted = {category: given.most_common(1)[0][0] for category, given in labels.items()}
    return [promoted.get(category, category) for category in merged.start]
