"""The record of a run: what was asked, what was found, how long it took, and how to repeat it.

It is what ``run.json`` holds, with the same keys, so that a folder of version 0.1.0 is read too.
Sentences are not part of it; `newfound.result.sentences` makes them where they are shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, TypeAlias

from newfound._version import __version__
from newfound.errors import InputError

Kind: TypeAlias = Literal["pictures", "features", "texts"]


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
    """

    n_categories: int | None = None
    train: bool = False
    rehearse: bool = True
    training: dict[str, Any] | None = None


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
    n_known, n_novel : int
        K^l and K^n: categories with labels and without.
    n_novel_interval : tuple of float or None
        90 % interval of K^n; None if nothing was counted.
    label_rate, novel_share : float or None
        Share of the items of known classes that are labelled, and share of the unlabelled items
        that belong to novel categories; None if nothing was counted.
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
    n_novel_interval: tuple[float, float] | None = None
    label_rate: float | None = None
    novel_share: float | None = None
    rehearsal: RehearsalRecord | None = None
    history: History = History()
    timings: dict[str, float] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    last_id: int = 0
    version: str = __version__

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
            interval, rehearsal = given.get("n_novel_interval"), given.get("rehearsal")
            if interval is not None:
                given["n_novel_interval"] = (float(interval[0]), float(interval[1]))
            if rehearsal is not None:
                ratios = tuple(float(ratio) for ratio in rehearsal["ratios"])
                given["rehearsal"] = RehearsalRecord(int(rehearsal["n_draws"]), ratios)
            if "history" in given:
                history = given["history"]
                given["history"] = History(history["unit"], tuple(history["n_components"]))
            asked = {item.name for item in fields(Request)}
            request = given.get("settings") or {}
            given["settings"] = Request(**{k: request[k] for k in asked & set(request)})
            given["warnings"] = tuple(str(text) for text in given.get("warnings") or ())
            return cls(**given)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise InputError(
                f"run.json is damaged ({error}). Run newfound again, into a new folder."
            ) from error
