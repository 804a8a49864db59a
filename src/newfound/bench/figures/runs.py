"""The runs that figures are drawn from: which run of a method counts, and how to make it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from newfound.bench.case import Case
from newfound.bench.datasets.feature_file import is_feature_file
from newfound.bench.datasets.sources import SOURCES
from newfound.bench.methods import find_method
from newfound.bench.protocol import bench_settings
from newfound.bench.record import Record
from newfound.bench.results import RESULTS_FOLDER, read_records
from newfound.bench.tables.plan import PLAIN
from newfound.deep.network.identity import weights_id
from newfound.deep.settings import Settings
from newfound.errors import InputError

#: Weights that are not a file.
NAMED_WEIGHTS = ("hub", "offline", "random")
#: Settings that features before training depend on.
_OF_START = frozenset({"image_size", "crop_max"})


@dataclass(frozen=True)
class Runs:
    """The records of a results file, and the folders with data and outcomes.

    Attributes
    ----------
    root : Path
        Folder of the data sets.
    work : Path
        Folder of the runs.
    results : Path
        Results file, or a folder with ``bench.jsonl``.
    model, weights : str or None
        Backbone that runs must have, as on the command line. By default that of the newest run.
    incomplete : bool
        Whether to accept a data set with missing images.
    """

    root: Path = Path("data")
    work: Path = RESULTS_FOLDER
    results: Path = RESULTS_FOLDER
    model: str | None = None
    weights: str | None = None
    incomplete: bool = False

    @cached_property
    def records(self) -> list[Record]:
        """Runs with the chosen backbone; runs of ablations (Tables 5 to 11) are left out."""
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
        """The newest run of a method on a data set, with the method's default for PCA.

        Parameters
        ----------
        method, source : str
            Ids; a feature file is given by its path.
        like : Case, optional
            A run to compare with. Only runs with its backbone count. Among them, runs with the
            same epochs and changes are preferred, then the same seed, then K known or not.
        where : callable, optional
            A further condition on records.

        Raises
        ------
        InputError
            If there is no such run. The message has the command that makes it.
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
                f"This figure needs a run of {find_method(method).title} on {source}, and there "
                f"is none yet. Run first:\n  {self.command(method, source, like)}"
            )
        return max(found, key=lambda record: (_likeness(record.case, like), record.date))

    def settings(self, source: str, case: Case | None = None) -> Settings:
        """Settings of a run.

        Parameters
        ----------
        source : str
            Id of a data set.
        case : Case, optional
            The run. By default the newest run on the data set, of any method; without one, the
            settings that ``bench run`` would use.
        """
        if case is None:
            found = [record for record in self.records if record.case.dataset == name_of(source)]
            newest = max(found, key=lambda record: record.date, default=None)
            case = None if newest is None else newest.case
        settings = bench_settings(source, (case and case.model) or self.model)
        if case is None:
            return settings.with_changes(weights=self.weights or settings.network.weights)
        # n_starts and a method's own hyper-parameter are no settings
        names = settings.as_dict()
        changes = {name: value for name, value in case.changes.items() if name in names}
        return settings.with_changes(
            **changes,
            weights=self.weights or case.weights or settings.network.weights,
            seed=case.seed,
            pca="all" if case.pca else "off",
        )

    def command(self, method: str, source: str, like: Case | None = None) -> str:
        """The command that makes a run, without options that have their default value.

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
        epochs = base.optimiser.epochs
        options: dict[str, tuple[object, object]] = {
            "model": (base.network.model, bench_settings(source).network.model),
            "weights": (weights, base.network.weights),
            "epochs": (like.epochs if like and learns else epochs, epochs),
            "seed": (like.seed if like else 0, 0),
            "root": (self.root, Runs.root),
            "work": (self.work, Runs.work),
            "results": (self.results, Runs.results),
        }
        # records know a weight file by its checksum only, so the user must fill in the path
        if weights not in NAMED_WEIGHTS and self.weights is None:
            options["weights"] = ("FILE", base.network.weights)
        words = [f"--{name} {value}" for name, (value, usual) in options.items() if value != usual]
        changes = like.changes if like else {}
        # a value that is no setting is that of the method's own hyper-parameter
        names = {*base.as_dict(), "n_starts"}
        words += [
            _option(name if name in names else "knob", value)
            for name, value in changes.items()
            if learns or name in _OF_START
        ]
        return " ".join([f"newfound bench run {method} {source}", *words])


def name_of(source: str) -> str:
    """Name of a data set in records."""
    return Path(source).stem if is_feature_file(source) else source


def title_of(source: str) -> str:
    """Name of a data set in titles."""
    return SOURCES[source].title if source in SOURCES else name_of(source)


def describe_k(record: Record) -> str:
    """K of a run, and whether it was given or found."""
    return f"K = {record.n_components} {'given' if record.case.k == 'known' else 'found'}"


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
    """Sort key: runs with the same epochs and changes, then seed, then K known or not."""
    if like is None:
        return ()
    learns = find_method(case.method).learns
    alike = not learns or (case.epochs, case.changes) == (like.epochs, like.changes)
    same_k = (case.k == "known") == (like.k == "known")
    return alike, case.seed == like.seed, same_k


def _option(name: str, value: object) -> str:
    word = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{word}" if value else f"--no-{word}"
    return f"--{word} {value}"
