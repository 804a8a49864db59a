"""One data set for a figure: its split, the outcomes of runs, and features before training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from newfound.array_files import read_archive
from newfound.arrays import Floats, Ints
from newfound.bench.case import Case
from newfound.bench.datasets import DataSet, load_dataset
from newfound.bench.figures.runs import NAMED_WEIGHTS, Runs, title_of
from newfound.bench.record import Record
from newfound.bench.results import results_file
from newfound.bench.run import rows_of
from newfound.bench.run_files import outcome_file, start_file
from newfound.bench.splits import Split, make_split
from newfound.bench.start import start_features
from newfound.deep.settings import Settings
from newfound.errors import InputError


class Outcome(NamedTuple):
    """Finished features (n, d) and the cluster of each row (n,)."""

    features: Floats
    labels: Ints


class FigureData:
    """One data set with its split, and the outcomes of runs on it.

    Parameters
    ----------
    source : str
        Id of the data set, or path of a feature file.
    runs : Runs
        Where data, runs and results are.
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
        """The true number of classes K of the split."""
        return self.split.n_known + self.split.n_novel

    def newest(self, method: str, like: Case | None = None) -> Record:
        """The newest run of a method on this split whose outcome file exists.

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
            # `bench run` skips what is in the results, so a repeated run needs another place
            again = replace(self.runs, results=results_file(self.runs.results).parent / "again")
            raise InputError(
                f"The run of {method} on {self.source} is in the results, but its outcome file "
                f"{file} is missing. Give the folder of the run as --work, or run it again with a "
                f"new results folder, {again.results}, and draw the figure from there:\n"
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
        found = read_archive(file, ("features", "labels"))
        # runs store features in half precision
        outcome = Outcome(found["features"].astype(np.float32), found["labels"])
        if len(outcome.labels) != len(self.split.y):
            raise InputError(
                f"{file} has {len(outcome.labels)} rows, but the split of {self.source} has "
                f"{len(self.split.y)}. The file is from another run; remove it and run again."
            )
        return outcome

    def pictures(self, settings: Settings) -> npt.NDArray[Any]:
        """Images of the rows of the split, uint8 of shape (n, 3, s, s), or features (n, d)."""
        return rows_of(self.dataset, self.split, settings, self.runs.work)

    def start(self, settings: Settings) -> Floats:
        """Features before training, shape (n, d), not normalised.

        They are read from the work folder if a run has stored them, and computed otherwise.

        Parameters
        ----------
        settings : Settings
            Backbone, weights, image size and seed.
        """
        if self.dataset.has_features:
            return self.pictures(settings)
        file = start_file(self.dataset.name, self.split, settings, self.runs.work)
        named = settings.network.weights in NAMED_WEIGHTS
        if not (file.exists() or named or Path(settings.network.weights).is_file()):
            command = f"newfound bench run kmeans {self.source} --model {settings.network.model}"
            raise InputError(
                f"The features of {self.source} before training need the weight file with the "
                f"checksum {settings.network.weights}. Give it as --weights FILE, or run first:\n"
                f"  {command} --weights FILE"
            )
        return start_features(self.pictures(settings), settings, file)

    def _has_outcome(self, record: Record) -> bool:
        return outcome_file(record.case, self.runs.work).is_file()
