"""Runs one case from beginning to end: data, split, method, scores, record."""

from __future__ import annotations

import hashlib
import json
import platform
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from newfound._version import __version__
from newfound.bench.case import Case
from newfound.bench.datasets import DataSet, load_dataset
from newfound.bench.datasets.feature_file import is_feature_file
from newfound.bench.method import BenchMethod
from newfound.bench.methods import find_method
from newfound.bench.protocol import without_training
from newfound.bench.record import Record
from newfound.bench.results import Results
from newfound.bench.rivals import brent_search
from newfound.bench.run_files import outcome_file, run_folder, start_file
from newfound.bench.splits import Split, make_split
from newfound.bench.start import start_features
from newfound.deep.gpc import stored_size
from newfound.deep.records import Epoch, Listener
from newfound.deep.settings import Settings
from newfound.errors import DiscoveryWarning
from newfound.files import read_json, whole_file, write_json
from newfound.metrics import discovery_scores
from newfound.mixture.estimator import SplitMergeMixture
from newfound.result.record import installed_versions

#: Methods in whose finished features the mixture counts novel categories, for Table 8.
COUNTED = frozenset({"rankstats", "dualrank", "gcd"})
_PACKAGES = ("numpy", "scikit-learn", "torch", "timm")


@dataclass(frozen=True)
class Place:
    """Where data and results are on this machine, and how to deal with missing data.

    Nothing here is part of a result: the same case gives the same record in any place.

    Attributes
    ----------
    root : Path
        Folder of the data sets.
    work : Path
        Folder for checkpoints and decoded images.
    results : Path
        Results file that records are added to, or a folder with ``bench.jsonl``.
    incomplete : bool
        Whether to accept a data set with missing images.
    download : bool
        Whether to download a data set that is missing.
    """

    root: Path
    work: Path
    results: Path
    incomplete: bool = False
    download: bool = False


def run_case(
    case: Case,
    settings: Settings,
    place: Place,
    source: str,
    *,
    listener: Callable[[Path], Listener] | None = None,
) -> Record | None:
    """Run a case and add its record to the results.

    Parameters
    ----------
    case : Case
        From `make_case`.
    settings : Settings
        Settings of the training.
    place : Place
        Folders.
    source : str
        Id of the data set, or path of a feature file.
    listener : callable, optional
        Gets the folder of the run and returns the listener that is called after every epoch.

    Returns
    -------
    Record or None
        The outcome; None if the results already contain the case.
    """
    case = without_training(case, source) if is_feature_file(source) else case
    results = Results(place.results)
    dataset = load_dataset(source, place.root, incomplete=place.incomplete, download=place.download)
    split = make_split(
        dataset, n_old=case.n_old, overlap=case.overlap, labelled_only=case.labelled_only
    )
    if results.find(case, split.checksum, dataset.layout) is not None:
        return None
    X = rows_of(dataset, split, settings, place.work)
    folder = run_folder(case, place.work)
    # the duration includes epochs that were trained earlier, by an interrupted run or by another
    # case with the same training
    started = time.perf_counter() - _seconds_of(folder)
    method, k_source = _prepare(case, settings, split, X, place.work, folder)
    method.fingerprint = f"{split.checksum} {dataset.layout}"
    # a training that depends on K must not resume one with another K
    if not method.learns_without_k:
        method.fingerprint += f" {method.n_components}"
    if listener is not None:
        method.listener = listener(folder)
    method.fit(X, split.y)
    seconds = time.perf_counter() - started
    record = _record(case, split, method, k_source or method.k_source_, seconds)
    record = replace(record, layout=dataset.layout)
    with whole_file(outcome_file(case, place.work)) as file:
        # half precision is enough for figures and halves the file
        np.savez(file, features=method.features_.astype(np.float16), labels=method.labels_)
    results.add(record)
    return record


def _seconds_of(folder: Path) -> float:
    """Total duration of the epochs that are already recorded in the folder."""
    file = folder / "epochs.jsonl"
    if not file.exists():
        return 0.0
    lines = file.read_text(encoding="utf-8").splitlines()
    return float(sum(json.loads(line)["seconds"] for line in lines))


def rows_of(dataset: DataSet, split: Split, settings: Settings, work: Path) -> npt.NDArray[Any]:
    """Images or features of the rows of a split.

    Parameters
    ----------
    dataset : DataSet
        Data set with the rows.
    split : Split
        Which rows take part.
    settings : Settings
        Size of the images.
    work : Path
        Folder in which decoded images are kept.

    Returns
    -------
    ndarray of shape (n, d) or (n, 3, s, s)
        In the order of the split.
    """
    size = stored_size(settings)
    if dataset.has_features:
        X = dataset.array
    elif dataset.array is not None and dataset.array.shape[-1] <= size:
        X = dataset.array  # the views are enlarged later
    else:
        X = dataset.pixels(size, work / f"pictures-{dataset.name}-{size}")
    assert X is not None
    return X if len(split.rows) == len(X) else X[split.rows]


def _prepare(
    case: Case, settings: Settings, split: Split, X: npt.NDArray[Any], work: Path, folder: Path
) -> tuple[BenchMethod, str | None]:
    """The method with its K, and the source of K where the runner found it."""
    cls = find_method(case.method)
    # a case counts novel categories only, the settings count all
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
        return cls(n_components, **options), "Brent search on the features before training"
    return method, None


def _search(X: npt.NDArray[Any], split: Split, settings: Settings, start: Path) -> int:
    """K^n by Brent's search on the features before training, kept in a file for other methods."""
    if X.ndim == 2:
        # other features of the same rows have the same split, so the file name also contains a
        # hash of the features
        content = hashlib.sha256(np.ascontiguousarray(X).data).hexdigest()[:12]
        start = start.with_name(f"start-{content}-{split.checksum}-{settings.run.seed}.npy")
    file = start.with_name(start.name.replace("start-", "brent-")).with_suffix(".json")
    if file.exists():
        return int(read_json(file)["n_novel"])
    Z = X if X.ndim == 2 else start_features(X, settings, start)
    n_novel = brent_search(Z, split.y, random_state=settings.run.seed)
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
    # without an E-step no epoch can be scored on held-out labels, so the last one is kept
    compares = method.settings.run.selection == "validation" and bool(_by_epoch(method.history_))
    return "best on held-out labels" if compares else "last epoch"


def _count_features(case: Case, split: Split, method: BenchMethod) -> int | None:
    """K^n that our mixture finds in the finished features of another method (Table 8)."""
    if case.method not in COUNTED or case.joint or not case.known_k:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscoveryWarning)
        mixture = SplitMergeMixture(n_init=1, random_state=case.seed, sizes=None)
        return int(mixture.fit(method.features_, split.y).n_novel_)


def _by_epoch(history: list[Epoch]) -> list[int]:
    return [epoch.n_novel for epoch in history if epoch.n_novel is not None]


def _e_step_share(history: list[Epoch]) -> float:
    total = sum(epoch.seconds for epoch in history)
    return round(sum(epoch.e_step_seconds for epoch in history) / total, 3) if total else 0.0


def machine() -> str:
    """Name of the GPU or processor."""
    if torch.cuda.is_available():
        return str(torch.cuda.get_device_name())
    return f"{platform.machine()} CPU"


def versions() -> dict[str, str]:
    """Versions of the packages that a result depends on."""
    return {"newfound": __version__, **installed_versions(_PACKAGES)}
