"""Runs one case from beginning to end: data, split, method, scores, record."""

from __future__ import annotations

import json
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

from newfound.bench.case import Case
from newfound.bench.datasets import DataSet, load_dataset
from newfound.bench.datasets.feature_file import is_feature_file
from newfound.bench.finding_k import FoundK, find_k
from newfound.bench.method import BenchMethod
from newfound.bench.methods import find_method
from newfound.bench.methods.frozen_mixture import FrozenMixture
from newfound.bench.protocol import own_k, without_training
from newfound.bench.provenance import code_commit, files_checksum, machine, versions
from newfound.bench.record import Record
from newfound.bench.results import Results, RowsId
from newfound.bench.run_files import outcome_file, run_folder, start_file
from newfound.bench.splits import Split, hide_known, make_split
from newfound.deep.gpc import stored_size
from newfound.deep.records import Epoch, Listener
from newfound.deep.settings import Settings
from newfound.errors import DiscoveryWarning, InputError
from newfound.files import whole_file
from newfound.metrics import discovery_scores
from newfound.mixture.estimator import SplitMergeMixture

#: Methods in whose finished features the mixture counts novel categories, for Table 8.
COUNTED = frozenset({"rankstats", "dualrank", "gcd"})


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
    commit : str or None
        The commit of the code, where there is no repository; see `code_commit`.
    """

    root: Path
    work: Path
    results: Path
    incomplete: bool = False
    download: bool = False
    commit: str | None = None


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
    commit, clean = code_commit(place.commit)
    dataset = load_dataset(source, place.root, incomplete=place.incomplete, download=place.download)
    split = _split_of(case, dataset)
    rows = RowsId(split.checksum, dataset.layout, files_checksum(dataset, split))
    method = _prepare(case, settings, split, place.work)
    trains = not dataset.has_features
    if results.find(case, rows, method.resolved(trains=trains)) is not None:
        return None
    X = rows_of(dataset, split, settings, place.work)
    found = _find_k(method, case, split, X)
    method = _prepare(case, settings, split, place.work, found.n_components)
    method.fingerprint = f"{rows.split} {rows.layout} {rows.files}"
    # a training that depends on K must not resume one with another K
    if not method.learns_without_k:
        method.fingerprint += f" {method.n_components}"
    if listener is not None and case.clustering == "own":
        method.listener = listener(method.folder)
    # the duration includes epochs that were trained earlier, by an interrupted run or by another
    # case with the same training
    started = time.perf_counter() - _seconds_of(method.folder)
    resolved = method.resolved(trains=trains)
    if case.clustering == "mixture":
        method = _recluster(case, method, split, place.work)
    else:
        method.fit(X, split.y)
    record = _record(case, split, method, found, time.perf_counter() - started)
    record = replace(record, settings=resolved, commit=commit, clean=clean)
    record = replace(record, layout=rows.layout, files=rows.files)
    with whole_file(outcome_file(case, place.work)) as file:
        # half precision is enough for figures and halves the file
        np.savez(file, features=method.features_.astype(np.float16), labels=method.labels_)
    return record if results.add(record, unless=rows) else None


def _split_of(case: Case, dataset: DataSet) -> Split:
    """The labels of a case; for tuning, with half of the known classes hidden."""
    split = make_split(
        dataset,
        n_old=case.n_old,
        overlap=case.overlap,
        labelled_only=case.labelled_only,
        draw=case.draw,
    )
    return hide_known(split) if case.hidden else split


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
        size = size if dataset.side is None else min(size, dataset.side)
        X = dataset.pixels(size, work / f"pictures-{dataset.name}-{size}")
    assert X is not None
    return X if len(split.rows) == len(X) else X[split.rows]


def _prepare(
    case: Case, settings: Settings, split: Split, work: Path, n_components: int | None = None
) -> BenchMethod:
    """The method with all its settings, and its K where it is given."""
    cls = find_method(case.method)
    # a case counts novel categories only, the settings count all
    init = None if case.k_init is None else split.n_known + case.k_init
    settings = settings.with_changes(pca="all" if case.pca else "off", n_components_init=init)
    start = start_file(case.dataset, split, settings, work)
    folder = run_folder(case, work, n_components)
    options: dict[str, Any] = {"settings": settings, "folder": folder, "start_file": start}
    if case.prototypes != "mixture":
        options["prototypes"] = case.prototypes
    if case.joint:
        options["joint"] = True
    if case.without is not None:
        options["without"] = case.without
    if "n_starts" in case.changes:
        options["n_starts"] = case.changes["n_starts"]
    if cls.knob is not None and cls.knob.name in case.changes:
        options["knob_value"] = case.changes[cls.knob.name]
    return cls(n_components, **options)


def _find_k(method: BenchMethod, case: Case, split: Split, X: npt.NDArray[Any]) -> FoundK:
    """K for the method; none if it finds K itself in the way that the case asks for."""
    if method.finds_k and (case.k, case.clustering, case.hidden) == (own_k(case), "own", False):
        return FoundK(None)
    assert method.start_file is not None
    return find_k(case, split, X, method.settings, method.start_file)


def _recluster(case: Case, method: BenchMethod, split: Split, work: Path) -> BenchMethod:
    """Our mixture on the finished features of a run that was made before."""
    file = outcome_file(replace(case, clustering="own"), work)
    if not file.is_file():
        raise InputError(
            f"--clustering mixture clusters the finished features of a run that is in the work "
            f"folder {work}, but {file.name} is not there. Run the same command first without "
            "--clustering mixture."
        )
    mixture = FrozenMixture(method.n_components, settings=method.settings, folder=work)
    mixture.settings = mixture.settings.with_changes(pca="all")
    with np.load(file, allow_pickle=False) as outcome:
        return mixture.fit(outcome["features"].astype(np.float32), split.y)


def _record(case: Case, split: Split, method: BenchMethod, found: FoundK, seconds: float) -> Record:
    free = split.is_scored
    scores = discovery_scores(split.truth[free], method.labels_[free], split.known)
    times = [epoch.seconds for epoch in method.history_]
    interval = found.interval if found.n_components else method.n_novel_interval_
    return Record(
        case=case,
        split=split.checksum,
        n_labelled=split.n_labelled,
        n_unlabelled=split.n_unlabelled,
        n_known=split.n_known,
        n_novel_true=split.n_novel,
        n_components=method.n_components_,
        n_novel=method.n_components_ - split.n_known,
        k_source=found.source or method.k_source_,
        checkpoint=_checkpoint(case, method),
        all=round(100 * scores.all, 2),
        old=round(100 * scores.old, 2),
        new=round(100 * scores.new, 2),
        nmi=round(scores.nmi, 4),
        ari=round(scores.ari, 4),
        n_novel_of_mixture=_count_features(case, split, method),
        n_novel_by_epoch=_by_epoch(method.history_),
        n_novel_interval=None if interval is None else [round(end, 2) for end in interval],
        seconds=round(seconds, 1),
        seconds_per_epoch=round(median(times), 3) if times else 0.0,
        e_step_share=_e_step_share(method.history_),
        machine=machine(),
        versions=versions(),
        date=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )


def _checkpoint(case: Case, method: BenchMethod) -> str:
    if case.clustering == "mixture":
        return "features of the finished run"
    if not method.history_:
        return "no training"
    # without an E-step no epoch can be scored on held-out labels, so the last one is kept
    compares = method.settings.run.selection == "validation" and bool(_by_epoch(method.history_))
    return "best on held-out labels" if compares else "last epoch"


def _count_features(case: Case, split: Split, method: BenchMethod) -> int | None:
    """K^n that our mixture finds in the finished features of another method (Table 8)."""
    if case.method not in COUNTED or case.clustering != "own" or case.joint or case.k != "known":
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
