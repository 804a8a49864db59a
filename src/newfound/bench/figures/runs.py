"""What figures are drawn from: the newest runs on a data set, and features before training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from newfound.arrays import Floats, Ints
from newfound.bench.case import Case, Record
from newfound.bench.datasets import DataSet, load_dataset
from newfound.bench.datasets.sources import SOURCES
from newfound.bench.methods import find_method
from newfound.bench.plan import (
    bench_settings,
    is_file_of_features,
    outcome_file,
    start_file,
    weights_id,
)
from newfound.bench.results import read_records
from newfound.bench.run import rows_of
from newfound.bench.splits import Split, make_split
from newfound.bench.start import start_features
from newfound.bench.tables.layout import PLAIN
from newfound.deep.settings import Settings
from newfound.errors import InputError

_NAMED_WEIGHTS = ("hub", "offline", "random")
#: Settings that features before training depend on.
_OF_START = frozenset({"image_size", "crop_max"})


class Outcome(NamedTuple):
    """Finished features (n, d) and the cluster of each row (n,)."""

    features: Floats
    labels: Ints


@dataclass(frozen=True)
class Runs:
    """The records of a results folder and the outcomes of a work folder.

    Attributes
    ----------
    root : Path
        Folder of the data sets.
    work : Path
        Folder of the runs.
    results : Path
        Folder of the records.
    model, weights : str or None
        Backbone that runs must have, as on the command line; by default that of the newest.
    incomplete : bool
        Whether a data set with missing images will do.
    """

    root: Path = Path("data")
    work: Path = Path("runs/bench")
    results: Path = Path("docs/results")
    model: str | None = None
    weights: str | None = None
    incomplete: bool = False

    @cached_property
    def records(self) -> list[Record]:
        """Plain runs with the backbone that was asked for: no run of an ablation."""
        wanted = {"model": self.model, "weights": self.weights and weights_id(self.weights)}
        asked = {**PLAIN, **{name: value for name, value in wanted.items() if value is not None}}
        return [
            record
            for record in read_records(self.results)
            if all(getattr(record.case, name) == value for name, value in asked.items())
        ]

    def newest(
        self,
        method: str,
        source: str,
        *,
        like: Case | None = None,
        where: Callable[[Record], bool] = lambda record: True,
    ) -> Record:
        """The newest run of a method on a data set, with PCA as the method has it by default.

        Parameters
        ----------
        method, source : str
            Ids, or the path of a file of features.
        like : Case, optional
            A run to compare with: the backbone must be its own, and of such runs those come
            first that have its epochs and changed settings, its seed, its knowledge of K.
        where : callable, optional
            What else must be so.

        Raises
        ------
        InputError
            If there is none; the message has the command that makes it.
        """
        pca = find_method(method).pca_by_default
        found = [
            record
            for record in self.records
            if (record.case.method, record.case.dataset) == (method, name_of(source))
            and record.case.pca == pca
            and (like is None or _backbone(record.case) == _backbone(like))
            and where(record)
        ]
        if not found:
            raise InputError(
                f"{find_method(method).title} was not run on {source} yet, as this figure needs "
                f"it. Run first:\n  {self.command(method, source, like)}"
            )
        return max(found, key=lambda record: (_likeness(record.case, like), record.date))

    def settings(self, source: str, case: Case | None = None) -> Settings:
        """Settings that a case was run with, or would be.

        Parameters
        ----------
        source : str
            Id of a data set.
        case : Case, optional
            By default the newest run on the data set, whichever it is, else what `bench run` has.
        """
        if case is None:
            found = [record for record in self.records if record.case.dataset == name_of(source)]
            newest = max(found, key=lambda record: record.date, default=None)
            case = None if newest is None else newest.case
        settings = bench_settings(source, (case and case.model) or self.model)
        if case is None:
            return settings.with_changes(weights=self.weights or settings.network.weights)
        changes = {name: value for name, value in case.changes.items() if name != "n_starts"}
        return settings.with_changes(
            **changes,
            weights=self.weights or case.weights or settings.network.weights,
            seed=case.seed,
            pca="all" if case.pca else "off",
        )

    def command(self, method: str, source: str, like: Case | None = None) -> str:
        """The command that makes a run, options that are the default left out.

        Parameters
        ----------
        method, source : str
            Ids.
        like : Case, optional
            A run to compare with.
        """
        learns = find_method(method).learns
        base = bench_settings(source, (like and like.model) or self.model)
        weights = self.weights or (like.weights if like is not None else base.network.weights)
        options: dict[str, tuple[object, object]] = {
            "model": (base.network.model, bench_settings(source).network.model),
            "weights": (weights, base.network.weights),
            "epochs": (
                like.epochs if like and learns else base.optimiser.epochs,
                base.optimiser.epochs,
            ),
            "seed": (like.seed if like else 0, 0),
            "root": (self.root, Runs.root),
            "work": (self.work, Runs.work),
            "results": (self.results / "bench.jsonl", Runs.results / "bench.jsonl"),
        }
        if weights not in _NAMED_WEIGHTS and self.weights is None:
            options["weights"] = ("FILE", base.network.weights)
        words = [f"--{name} {value}" for name, (value, usual) in options.items() if value != usual]
        changes = like.changes if like else {}
        words += [
            _option(name, value) for name, value in changes.items() if learns or name in _OF_START
        ]
        return " ".join([f"newfound bench run {method} {source}", *words])


class Study:
    """One data set with its split, and what was made of it.

    Parameters
    ----------
    source : str
        Id of the data set, or path of a file of features.
    runs : Runs
        Where everything lies.
    """

    def __init__(self, source: str, runs: Runs) -> None:
        self.source = source
        self.runs = runs
        self.dataset: DataSet = load_dataset(source, runs.root, incomplete=runs.incomplete)
        self.split: Split = make_split(self.dataset)

    @property
    def title(self) -> str:
        """Name of the data set."""
        return title_of(self.source)

    @property
    def n_classes(self) -> int:
        """The true K of the split."""
        return self.split.n_known + self.split.n_novel

    def newest(self, method: str, like: Case | None = None) -> Record:
        """The newest run of a method on this split whose outcome is there.

        Parameters
        ----------
        method : str
            Id.
        like : Case, optional
            A run to compare with.
        """
        checksum = self.split.checksum

        def on_this_split(record: Record) -> bool:
            return record.split == checksum

        record = self.runs.newest(method, self.source, like=like, where=on_this_split)
        if self._has_outcome(record):
            return record
        try:
            return self.runs.newest(
                method,
                self.source,
                like=like,
                where=lambda other: on_this_split(other) and self._has_outcome(other),
            )
        except InputError as error:
            file = outcome_file(record.case, self.runs.work)
            again = replace(self.runs, results=self.runs.results / "again")
            raise InputError(
                f"{method} on {self.source} is in the results, but what came out of it is not "
                f"there: {file}. Give the folder it was run in as --work, or run it again with "
                f"results in a new folder, {again.results}, and draw from that:\n"
                f"  {again.command(method, self.source, record.case)}"
            ) from error

    def outcome(self, record: Record) -> Outcome:
        """Finished features and clusters of a run.

        Parameters
        ----------
        record : Record
            From `newest`.
        """
        file = outcome_file(record.case, self.runs.work)
        with np.load(file, allow_pickle=False) as found:
            outcome = Outcome(found["features"].astype(np.float32), found["labels"])
        if len(outcome.labels) != len(self.split.y):
            raise InputError(
                f"{file} has {len(outcome.labels)} rows, but the split of {self.source} has "
                f"{len(self.split.y)}. It is of another run; remove it and run again."
            )
        return outcome

    def pictures(self, settings: Settings) -> npt.NDArray[Any]:
        """Images of the rows of the split, uint8 of shape (n, 3, s, s), or features (n, d)."""
        return rows_of(self.dataset, self.split, settings, self.runs.work)

    def start(self, settings: Settings) -> Floats:
        """Features before training, shape (n, d), not normalised.

        They are taken from the work folder, where runs keep them, else from the backbone.

        Parameters
        ----------
        settings : Settings
            Backbone, weights, size, seed.
        """
        if self.dataset.has_features:
            return self.pictures(settings)
        file = start_file(self.dataset.name, self.split, settings, self.runs.work)
        named = settings.network.weights in _NAMED_WEIGHTS
        if not (file.exists() or named or Path(settings.network.weights).is_file()):
            command = f"newfound bench run kmeans {self.source} --model {settings.network.model}"
            raise InputError(
                f"The features of {self.source} before training need the file of weights with the "
                f"checksum {settings.network.weights}. Give it as --weights FILE, or run first:\n"
                f"  {command} --weights FILE"
            )
        return start_features(self.pictures(settings), settings, file)

    def _has_outcome(self, record: Record) -> bool:
        return outcome_file(record.case, self.runs.work).is_file()


def name_of(source: str) -> str:
    """How a data set is called in records."""
    return Path(source).stem if is_file_of_features(source) else source


def title_of(source: str) -> str:
    """How a data set is called in titles."""
    return SOURCES[source].title if source in SOURCES else name_of(source)


def describe_k(record: Record) -> str:
    """K of a run, and whether it was found."""
    return f"K = {record.n_components} {'given' if record.case.known_k else 'found'}"


def describe(case: Case) -> str:
    """Backbone, epochs, seed and changed settings of a run, for the title of a figure.

    Parameters
    ----------
    case : Case
        What was run.
    """
    if not case.model:
        return f"finished features, seed {case.seed}"
    weights = "random weights" if case.weights == "random" else f"weights {case.weights}"
    words = f"{case.model} ({weights}), {case.epochs} epochs, seed {case.seed}"
    changes = ", ".join(f"{name} {value}" for name, value in sorted(case.changes.items()))
    return f"{words}, {changes}" if changes else words


def _backbone(case: Case) -> tuple[str, str]:
    return case.model, case.weights


def _likeness(case: Case, like: Case | None) -> tuple[bool, ...]:
    """Of two runs the one is preferred that has the epochs and changes, then seed, then K."""
    if like is None:
        return ()
    learns = find_method(case.method).learns
    alike = not learns or (case.epochs, case.changes) == (like.epochs, like.changes)
    return alike, case.seed == like.seed, case.known_k == like.known_k


def _option(name: str, value: object) -> str:
    word = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{word}" if value else f"--no-{word}"
    return f"--{word} {value}"
