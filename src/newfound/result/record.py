"""The record of a run: what was asked, what was found, how long it took, and how to repeat it.

It is what ``run.json`` holds, with the same keys, so that a folder of version 0.1.0 is read too.
Sentences are not part of it; `newfound.result.sentences` makes them where they are shown.
"""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, TypeAlias

from newfound._version import __version__
from newfound.errors import InputError
from newfound.mixture.counting.calibration import ConfidenceMap
from newfound.mixture.counting.novel_size import Sizes
from newfound.result.typed import check_types

Kind: TypeAlias = Literal["pictures", "features", "texts"]

#: Packages whose version may change a result.
PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "safetensors", "torch", "timm")
#: Packages that are imported under another name than they are installed.
_MODULES = {"scikit-learn": "sklearn"}


@dataclass(frozen=True)
class Request:
    """What a person asked for.

    Attributes
    ----------
    n_categories : int or None
        Number of categories, known and novel together, if it was given.
    train : bool
        Whether a network was trained.
    rehearse : bool
        Whether a rehearsal was asked for.
    training : dict or None
        Settings of the training by name, if there was one.
    min_confidence : float or None
        Unlabelled items with a lower confidence are marked as unsure; None marks nothing.
    encoder : str or None
        What to encode with, as it was asked for: "auto", or a name. None if nothing was encoded,
        or for runs of earlier versions.
    sizes : {"unknown", "alike"}, float or None
        What was said about the mean size of novel categories, see `SplitMergeMixture`.
    """

    n_categories: int | None = None
    train: bool = False
    rehearse: bool = True
    training: dict[str, Any] | None = None
    min_confidence: float | None = None
    encoder: str | None = None
    sizes: Sizes | None = "unknown"


@dataclass(frozen=True)
class NovelSizeRecord:
    """How large novel categories are, on average.

    Attributes
    ----------
    mean : float
        Mean number of items of a novel category.
    interval : tuple of float
        90 % interval of that mean.
    known_mean : float or None
        Mean number of items of a known category; None if it was not estimated.
    decided_by : {"data", "prior", "given"}
        Whether the items told it; or they did not, and the interval covers whatever is plausible;
        or a person gave the ratio of both means.
    """

    mean: float
    interval: tuple[float, float]
    known_mean: float | None
    decided_by: Literal["data", "prior", "given"]


@dataclass(frozen=True)
class RehearsalRecord:
    """What a rehearsal with hidden classes said.

    Attributes
    ----------
    n_draws : int
        Number of times that classes were hidden.
    ratios : tuple of float
        For each draw, the number of components found for each hidden class.
    """

    n_draws: int
    ratios: tuple[float, ...]


@dataclass(frozen=True)
class History:
    """Number of components K over time.

    Attributes
    ----------
    unit : {"pass", "epoch"}
        What one step is.
    n_components : tuple of int or None
        K after each step; None where a step had no components.
    """

    unit: Literal["pass", "epoch"] = "pass"
    n_components: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class RunFacts:
    """What only the workflow knows about a run; a result derives the rest of its record.

    Attributes
    ----------
    command : str
        The command of newfound: discover, train or update.
    rerun : str or None
        The whole command line that repeats the run; None if no command line can.
    settings : Request
        What was asked for.
    seed : int or None
        Seed of all random numbers.
    encoder : str or None
        Name of what made the features.
    rehearsal : RehearsalRecord or None
        None if there was no rehearsal.
    history : History or None
        Number of components over time; None takes the passes of the mixture.
    timings : dict
        Seconds by step.
    versions : dict
        Versions, see `installed_versions`.
    warnings : tuple of str
        What a person should know about the result.
    last_id : int
        Highest number that the id of a novel category had in earlier runs.
    calibration : ConfidenceMap or None
        How often a probability of the mixture is right; None leaves it as it is.
    content : str or None
        Fingerprint of the collection as it was read.
    """

    command: str = "discover"
    rerun: str | None = None
    settings: Request = Request()
    seed: int | None = None
    encoder: str | None = None
    rehearsal: RehearsalRecord | None = None
    history: History | None = None
    timings: dict[str, float] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    last_id: int = 0
    calibration: ConfidenceMap | None = None
    content: str | None = None


@dataclass(frozen=True)
class RunRecord:
    """What a run was and what it found, without the items themselves.

    Attributes
    ----------
    command : str
        The command of newfound that made the run: discover, train or update.
    rerun : str or None
        The whole command line that repeats it; None if no command line can (data from Python).
    source : str or None
        Where the items came from.
    kind : {"pictures", "features", "texts"}
        What the items are.
    encoder : str or None
        What made the features.
    settings : Request
        What was asked for.
    seed : int or None
        Seed of all random numbers.
    n_items, n_labelled, n_skipped : int
        Number of items, of labelled items, and of files that could not be used.
    n_rows : int or None
        Number of rows of which the items are a sample; None if they are all.
    n_known, n_novel : int
        K^l and K^n: categories with labels and without.
    n_novel_interval : tuple of float or None
        90 % interval of K^n; None if nothing was counted.
    label_rate, novel_share : float or None
        Share of the items of known classes that are labelled, and share of the unlabelled items
        that belong to novel categories; None if nothing was counted.
    novel_size : NovelSizeRecord or None
        How large novel categories are; None if nothing was counted, or for runs of earlier
        versions.
    label_accuracy : float or None
        How well the features tell the known classes apart: cross-validated accuracy on the
        labelled items, as a mean over classes, so that chance is 1 / K^l. None if fewer than two
        classes have two labels, or for runs of earlier versions.
    rehearsal : RehearsalRecord or None
        None if there was no rehearsal.
    history : History
        Number of components over passes or epochs.
    timings : dict
        Seconds by step.
    versions : dict
        Versions of Python and of the packages that were loaded.
    warnings : tuple of str
        What a person should know about the result.
    last_id : int
        Highest number that the id of a novel category has had so far. Ids are never used twice.
    calibration : ConfidenceMap or None
        How often a probability of the mixture is right, learnt from hidden known classes; None if
        confidences are the probabilities of the mixture.
    content : str or None
        Fingerprint of the collection as it was read, by which the same request is recognised.
    version : str
        Version of newfound.
    """

    kind: Kind
    n_items: int
    n_labelled: int
    n_known: int
    n_novel: int
    command: str = "discover"
    rerun: str | None = None
    source: str | None = None
    encoder: str | None = None
    settings: Request = Request()
    seed: int | None = None
    n_skipped: int = 0
    n_rows: int | None = None
    n_novel_interval: tuple[float, float] | None = None
    label_rate: float | None = None
    novel_share: float | None = None
    novel_size: NovelSizeRecord | None = None
    label_accuracy: float | None = None
    rehearsal: RehearsalRecord | None = None
    history: History = History()
    timings: dict[str, float] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    last_id: int = 0
    calibration: ConfidenceMap | None = None
    content: str | None = None
    version: str = __version__

    @property
    def chance(self) -> float:
        """The `label_accuracy` of features that know nothing: 1 / K^l."""
        return 1 / max(1, self.n_known)

    @property
    def is_k_given(self) -> bool:
        """Whether a person gave the number of categories."""
        return self.settings.n_categories is not None

    def as_json(self) -> dict[str, Any]:
        """Plain values for ``run.json``."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> RunRecord:
        """Read what `as_json` wrote, also of version 0.1.0; unknown keys are ignored.

        Parameters
        ----------
        values : mapping
            Content of ``run.json``.

        Raises
        ------
        InputError
            If a value is missing or of the wrong kind.
        """
        names = {item.name for item in fields(cls)}
        given: dict[str, Any] = {name: values[name] for name in names & set(values)}
        try:
            record = cls(**{**given, **_typed_values(given)})
            check_types(record)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise InputError(
                f"run.json is damaged ({error}). Run newfound again, into a new folder."
            ) from error
        return record


def _typed_values(given: Mapping[str, Any]) -> dict[str, Any]:
    """Those values of ``run.json`` that must become a class or a tuple, converted."""
    # Version 0.1.0 wrote null for some of these, which means the same as a missing key.
    interval, rehearsal = given.get("n_novel_interval"), given.get("rehearsal")
    calibration, novel_size = given.get("calibration"), given.get("novel_size")
    history, request = (dict(given.get(name) or {}) for name in ("history", "settings"))
    asked = {item.name for item in fields(Request)}
    return {
        "n_novel_interval": None if interval is None else _interval(interval),
        "novel_size": None
        if novel_size is None
        else NovelSizeRecord(**{**novel_size, "interval": _interval(novel_size["interval"])}),
        "rehearsal": None
        if rehearsal is None
        else RehearsalRecord(
            int(rehearsal["n_draws"]), tuple(float(ratio) for ratio in rehearsal["ratios"])
        ),
        "history": History(history.get("unit", "pass"), tuple(history.get("n_components", ()))),
        "settings": Request(**{name: request[name] for name in asked & set(request)}),
        "warnings": tuple(str(text) for text in given.get("warnings") or ()),
        "calibration": None if calibration is None else ConfidenceMap(**calibration),
    }


def _interval(ends: Sequence[float]) -> tuple[float, float]:
    """Two plain numbers."""
    return float(ends[0]), float(ends[1])


def installed_versions(packages: Sequence[str] | None = None) -> dict[str, str]:
    """Versions of Python and of packages.

    Parameters
    ----------
    packages : sequence of str, optional
        Names of distributions. By default those of `PACKAGES` that this process has loaded: what
        was not loaded cannot have changed the result.

    Returns
    -------
    dict
        Name → version, "not installed" for a named package that is missing; ``python`` first.
    """
    if packages is None:
        packages = [name for name in PACKAGES if _MODULES.get(name, name) in sys.modules]
    versions = {"python": platform.python_version()}
    for name in packages:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return versions
