"""One case from beginning to end: data, split, method, scores, record."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import torch

import newfound
from newfound.bench.case import Case, Prototypes, Record
from newfound.bench.datasets import DataSet, load_dataset
from newfound.bench.method import BenchMethod
from newfound.bench.methods import find_method
from newfound.bench.results import Results
from newfound.bench.splits import Split, make_split
from newfound.bench.start import start_features
from newfound.deep.gpc import stored_size
from newfound.deep.records import Epoch, Listener
from newfound.deep.settings import Settings
from newfound.demo import DIGITS
from newfound.errors import DiscoveryWarning, InputError
from newfound.files import read_json, whole_file, write_json
from newfound.metrics import discovery_scores
from newfound.mixture.estimator import SplitMergeMixture
from newfound.mixture.rivals import brent_search

#: Where a table asks what the mixture finds in the features of others (Table 8).
COUNTED = frozenset({"rankstats", "dualrank", "gcd"})
#: Small pictures and a network of their size: what differs from the settings for 224 pixels.
SMALL = {"image_size": 32, "crop_min": 0.45, "crop_max": 1.0, "color_jitter": 0.5}
_PACKAGES = ("numpy", "scikit-learn", "torch", "timm")
#: Settings that matter without training, and those that matter for finished features.
_OF_START = frozenset({"image_size", "crop_max", "n_directions"})
_OF_CLUSTERING = frozenset({"n_directions", "acceptance", "count_term", "whiten", "n_starts"})
#: Settings that are fields of a case, that the runner sets, or that do not change the result.
_NOT_CHANGES = frozenset(
    {"seed", "epochs", "model", "weights", "pca", "n_components", "n_components_init"}
    | {"devices", "num_nodes", "compile", "token_cache", "precision"}
)


@dataclass(frozen=True)
class Place:
    """Where things are on this machine; no part of a result.

    Attributes
    ----------
    root : Path
        Folder of the data sets.
    work : Path
        Folder for checkpoints and decoded pictures.
    results : Path
        The file that records are added to; the other ``.jsonl`` files beside it are read.
    """

    root: Path
    work: Path
    results: Path


def bench_settings(dataset: str, model: str | None = None) -> Settings:
    """The settings that all methods share on a data set.

    Parameters
    ----------
    dataset : str
        Id.
    model : str, optional
        timm's name of the backbone; by default the field's ViT-B/16 with DINO weights, for digits
        a small network from nothing. A ResNet gets pictures of CIFAR at their own size.

    Returns
    -------
    Settings
        The last epoch counts, all labels are used for training; 200 epochs, 80 for digits.
    """
    if dataset == "digits" and model in (None, DIGITS.model):
        return DIGITS.with_changes(rehearse=False, epochs=80)
    base = Settings(selection="last", rehearse=False)
    base = base if model is None else base.with_changes(model=model)
    if dataset in ("cifar10", "cifar100") and base.model.startswith("resnet"):
        return base.with_changes(**SMALL)
    return base


def make_case(method: str, dataset: str, settings: Settings, **options: Any) -> Case:
    """The case of a run: settings that differ from the benchmark's are listed in it.

    Parameters
    ----------
    method, dataset : str
        Ids; the path of a feature file stands for itself.
    settings : Settings
        Of the training.
    **options
        Other fields of `Case`; ``pca=None`` is the method's default, ``n_starts`` the starts of
        semi-supervised k-means; ``pretraining=None`` is "ImageNet", or "none" for random weights.
    """
    cls = find_method(method)
    n_starts = options.pop("n_starts", 100)
    pca = options.pop("pca", None)
    pretraining = options.pop("pretraining", None)
    if pretraining is None:
        pretraining = "none" if settings.weights == "random" else "ImageNet"
    base = bench_settings(dataset, settings.model)
    changes = {
        item.name: getattr(settings, item.name)
        for item in fields(Settings)
        if item.name not in _NOT_CHANGES
        and getattr(settings, item.name) != getattr(base, item.name)
    }
    if n_starts != 100 and cls.learns_without_k:
        changes["n_starts"] = n_starts
    if not cls.learns:
        changes = _only(changes, _OF_START)
    case = Case(
        method,
        Path(dataset).stem if is_file_of_features(dataset) else dataset,
        seed=settings.seed,
        pca=cls.uses_pca and (cls.pca_by_default if pca is None else pca),
        epochs=settings.epochs if cls.learns else 0,
        model=settings.model,
        weights=weights_id(settings.weights),
        pretraining=pretraining,
        changes=changes,
        **options,
    )
    if is_file_of_features(dataset) and not cls.takes_features:
        raise InputError(f"{cls.title} learns from images; it cannot use features.")
    if case.prototypes not in get_args(Prototypes):
        choices = ", ".join(get_args(Prototypes))
        raise InputError(f"prototypes are found by one of {choices}; got {case.prototypes!r}.")
    for variant in ("joint", "prototypes"):
        if getattr(case, variant) not in (False, "mixture") and variant not in cls.variants:
            raise InputError(f"{cls.title} has no variant {variant}={getattr(case, variant)!r}.")
    return case


def weights_id(weights: str) -> str:
    """How weights are called in a record: a file by its checksum, so that no path is in it.

    Parameters
    ----------
    weights : str
        "hub", "offline", "random", a path, or such a checksum itself.
    """
    if weights in ("hub", "offline", "random"):
        return weights
    path = Path(weights)
    if not path.is_file() and re.fullmatch("[0-9a-f]{12}", weights):
        return weights
    if not path.is_file():
        raise InputError(f"There is no file of weights {weights}; give hub, offline or a file.")
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def run_case(
    case: Case,
    settings: Settings,
    place: Place,
    source: str,
    *,
    listener: Callable[[Path], Listener] | None = None,
    incomplete: bool = False,
    download: bool = False,
) -> Record | None:
    """Run a case and add its record to the results.

    Parameters
    ----------
    case : Case
        From `make_case`.
    settings : Settings
        Of the training.
    place : Place
        Folders.
    source : str
        Id of the data set, or path of its features.
    listener : callable, optional
        Makes who is told of every epoch, given the folder of the run.
    incomplete : bool, default=False
        Whether a data set with missing images will do.
    download : bool, default=False
        Whether to fetch a data set that is not there.

    Returns
    -------
    Record or None
        What came out; None if the results have the case already.
    """
    case = _without_training(case) if is_file_of_features(source) else case
    results = Results(place.results)
    if results.find(case) is not None:
        return None
    dataset = load_dataset(source, place.root, incomplete=incomplete, download=download)
    split = make_split(
        dataset, n_old=case.n_old, overlap=case.overlap, labelled_only=case.labelled_only
    )
    X = rows_of(dataset, split, settings, place.work)
    folder = run_folder(case, place.work)
    method, k_source = _prepare(case, settings, split, X, place.work, folder)
    if listener is not None:
        method.listener = listener(folder)
    started = time.perf_counter()
    method.fit(X, split.y)
    seconds = time.perf_counter() - started
    record = _record(case, split, method, k_source or method.k_source_, seconds)
    record = replace(record, layout=dataset.layout)
    with whole_file(outcome_file(case, place.work)) as file:
        np.savez(file, features=method.features_.astype(np.float16), labels=method.labels_)
    results.add(record)
    return record


def rows_of(dataset: DataSet, split: Split, settings: Settings, work: Path) -> npt.NDArray[Any]:
    """Images or features of the rows of a split.

    Parameters
    ----------
    dataset : DataSet
        Where they are.
    split : Split
        Which rows take part.
    settings : Settings
        Size of the pictures.
    work : Path
        Where decoded pictures are kept.

    Returns
    -------
    ndarray of shape (n, d) or (n, 3, s, s)
        In the order of the split.
    """
    size = stored_size(settings)
    if dataset.has_features:
        X = dataset.array
    elif dataset.array is not None and dataset.array.shape[-1] <= size:
        X = dataset.array  # views enlarge
    else:
        X = dataset.pixels(size, work / f"pictures-{dataset.name}-{size}")
    assert X is not None
    return X if len(split.rows) == len(X) else X[split.rows]


def run_folder(case: Case, work: Path) -> Path:
    """Folder of the training of a case; cases that differ in what comes after it share one.

    Parameters
    ----------
    case : Case
        What is run.
    work : Path
        Folder of all runs.
    """
    if find_method(case.method).learns_without_k:
        changes = {name: value for name, value in case.changes.items() if name != "n_starts"}
        case = replace(case, known_k=False, pca=False, joint=False, changes=changes)
    return work / f"{case.method}-{_key(case.as_dict())}"


def outcome_file(case: Case, work: Path) -> Path:
    """The finished features and the cluster of each row of a case, for figures.

    Parameters
    ----------
    case : Case
        What was run.
    work : Path
        Folder of all runs.
    """
    return work / "outcomes" / f"{case.method}-{case.dataset}-{_key(case.as_dict())}.npz"


def is_file_of_features(dataset: str) -> bool:
    """Whether a data set is the path of a file, not an id."""
    return dataset.lower().endswith((".npz", ".npy"))


def _without_training(case: Case) -> Case:
    """The case on finished features: nothing that training is described by."""
    changes = _only(case.changes, _OF_CLUSTERING)
    return replace(case, epochs=0, model="", weights="", pretraining="none", changes=changes)


def _only(changes: dict[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in changes.items() if name in names}


def _prepare(
    case: Case, settings: Settings, split: Split, X: npt.NDArray[Any], work: Path, folder: Path
) -> tuple[BenchMethod, str | None]:
    """The method with its K, and where K came from if the method cannot tell."""
    cls = find_method(case.method)
    init = None if case.k_init is None else split.n_known + case.k_init
    settings = settings.with_changes(pca="all" if case.pca else "off", n_components_init=init)
    start = start_file(case.dataset, split, settings, work)
    options: dict[str, Any] = {"settings": settings, "folder": folder, "start_file": start}
    if case.prototypes != "mixture":
        options["prototypes"] = case.prototypes
    if case.joint:
        options["joint"] = True
    if "n_starts" in case.changes:
        options["n_starts"] = case.changes["n_starts"]
    if case.known_k:
        return cls(split.n_known + split.n_novel, **options), None
    method = cls(**options)
    if not method.finds_k:
        n_components = split.n_known + _search(X, split, settings, start)
        return cls(n_components, **options), "Brent search on the features of the start"
    return method, None


def start_file(dataset: str, split: Split, settings: Settings, work: Path) -> Path:
    """Where features before training are kept.

    Parameters
    ----------
    dataset : str
        Name of the data set in records.
    split : Split
        Which rows take part.
    settings : Settings
        Backbone, weights (a file, or its checksum), size, seed.
    work : Path
        Folder of all runs.
    """
    shape = {
        "model": settings.model,
        "weights": weights_id(settings.weights),
        "size": settings.image_size,
        "crop": settings.crop_max,
        "seed": settings.seed,
        "split": split.checksum,
    }
    return work / f"start-{dataset}-{_key(shape)}.npy"


def _search(X: npt.NDArray[Any], split: Split, settings: Settings, start: Path) -> int:
    """K^n by Brent's search on the features before training; looked up if it was done before."""
    if X.ndim == 2:  # other features of the same rows have the same split
        content = hashlib.sha256(np.ascontiguousarray(X).data).hexdigest()[:12]
        start = start.with_name(f"start-{content}-{split.checksum}-{settings.seed}.npy")
    file = start.with_name(start.name.replace("start-", "brent-")).with_suffix(".json")
    if file.exists():
        return int(read_json(file)["n_novel"])
    Z = X if X.ndim == 2 else start_features(X, settings, start)
    n_novel = brent_search(Z, split.y, random_state=settings.seed)
    write_json(file, {"n_novel": n_novel})
    return n_novel


def _record(case: Case, split: Split, method: BenchMethod, k_source: str, seconds: float) -> Record:
    free = split.is_unlabelled
    scores = discovery_scores(split.truth[free], method.labels_[free], split.known)
    times = [epoch.seconds for epoch in method.history_]
    return Record(
        case=case,
        split=split.checksum,
        n_labelled=split.n_labelled,
        n_unlabelled=split.n_unlabelled,
        n_known=split.n_known,
        n_novel_true=split.n_novel,
        n_components=method.n_components_,
        n_novel=method.n_components_ - split.n_known,
        k_source=k_source,
        checkpoint=_checkpoint(method),
        all=round(100 * scores.all, 2),
        old=round(100 * scores.old, 2),
        new=round(100 * scores.new, 2),
        nmi=round(scores.nmi, 4),
        ari=round(scores.ari, 4),
        n_novel_of_mixture=_count_features(case, split, method),
        n_novel_by_epoch=_by_epoch(method.history_),
        seconds=round(seconds, 1),
        seconds_per_epoch=round(median(times), 3) if times else 0.0,
        e_step_share=_e_step_share(method.history_),
        machine=machine(),
        versions=versions(),
        date=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )


def _checkpoint(method: BenchMethod) -> str:
    if not method.history_:
        return "no training"
    # without an E-step there is nothing to compare epochs by: the last one counts anyway
    compares = method.settings.selection == "validation" and bool(_by_epoch(method.history_))
    return "best on held-out labels" if compares else "last epoch"


def _count_features(case: Case, split: Split, method: BenchMethod) -> int | None:
    """K^n that our mixture finds in the features of another method."""
    if case.method not in COUNTED or case.joint or not case.known_k:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscoveryWarning)
        mixture = SplitMergeMixture(n_init=1, random_state=case.seed)
        return int(mixture.fit(method.features_, split.y).n_novel_)


def _by_epoch(history: list[Epoch]) -> list[int]:
    return [epoch.n_novel for epoch in history if epoch.n_novel is not None]


def _e_step_share(history: list[Epoch]) -> float:
    total = sum(epoch.seconds for epoch in history)
    return round(sum(epoch.e_step_seconds for epoch in history) / total, 3) if total else 0.0


def machine() -> str:
    """GPU or processor."""
    if torch.cuda.is_available():
        return str(torch.cuda.get_device_name())
    return f"{platform.machine()} CPU"


def versions() -> dict[str, str]:
    """Versions of what decides a result."""
    found = {"newfound": newfound.__version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _key(values: dict[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
