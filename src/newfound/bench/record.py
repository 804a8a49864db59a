"""A record is one line of a results file: the case, how it was run, and what came out."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from newfound.bench.case import Case, KSource
from newfound.errors import InputError


@dataclass(frozen=True)
class Record:
    """The outcome of one case.

    Attributes
    ----------
    case : Case
        What was run.
    split : str
        Checksum of labels and true classes.
    files : str
        Checksum of the content of the images, or features, and their labels; "" in older lines.
    settings : dict
        All settings of the training, and the method's own; empty in older lines.
    commit : str
        The commit of newfound that ran; "" if it is not known.
    clean : bool or None
        Whether the code was exactly that commit; None if that is not known.
    n_novel_interval : list of 2 float, or None
        90 % interval of K^n, where it was counted.
    layout : str
        How the data set was stored on disk, which decides the order of its rows: "official",
        "class folders" or "features".
    n_labelled, n_unlabelled : int
        |D^l| and |D^u|, the numbers of labelled and unlabelled images.
    n_known, n_novel_true : int
        K^l, the number of known classes, and the true K^n, the number of novel ones.
    n_components, n_novel : int
        K and K^n that were given or found.
    k_source : str
        Where K came from: "given", "Brent search on …", "mixture".
    checkpoint : str
        Which epoch is scored: "last epoch", "best on held-out labels" or "no training".
    all, old, new : float
        Accuracies in %, from one match over all of D^u. NaN where no row is of that kind.
    nmi, ari : float
        Normalised mutual information and adjusted Rand index in [0, 1], over D^u.
    n_novel_of_mixture : int or None
        K^n that our mixture finds in the finished features (Table 8).
    n_novel_by_epoch : list of int
        K^n after each epoch (Table 12); empty for methods without an E-step.
    seconds, seconds_per_epoch : float
        Duration of the whole run and of the median epoch.
    e_step_share : float
        Share of the E-step in the time of all epochs.
    machine : str
        GPU or processor.
    versions : dict
        Versions of newfound, Python, numpy, scikit-learn, torch and timm.
    date : str
        When the run ended, in UTC.
    protocol : str
        How rows are scored, in words.
    """

    case: Case
    split: str
    n_labelled: int
    n_unlabelled: int
    n_known: int
    n_novel_true: int
    n_components: int
    n_novel: int
    k_source: str
    checkpoint: str
    all: float
    old: float
    new: float
    nmi: float
    ari: float
    n_novel_of_mixture: int | None
    n_novel_by_epoch: list[int]
    seconds: float
    seconds_per_epoch: float
    e_step_share: float
    machine: str
    versions: dict[str, str]
    date: str
    # older lines do not have the following fields
    files: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    commit: str = ""
    clean: bool | None = None
    n_novel_interval: list[float] | None = None
    layout: str = "official"
    protocol: str = "transductive on the training split, one match over all unlabelled images"

    def as_dict(self) -> dict[str, Any]:
        """Plain values. Method and data set come first; the rest of the case is "setting"."""
        values = asdict(self)
        case = values.pop("case")
        return {"method": case.pop("method"), "dataset": case.pop("dataset"), **values} | {
            "setting": case
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Record:
        """The inverse of `as_dict`.

        Parameters
        ----------
        values : dict
            A line of a results file.
        """
        values = dict(values)
        try:
            method, dataset, setting = (values.pop(n) for n in ("method", "dataset", "setting"))
            if "known_k" in setting:
                setting = {n: value for n, value in setting.items() if n != "known_k"} | {
                    "k": _older_k(setting["known_k"], method, values["k_source"])
                }
            case = Case(method, dataset, **setting)
            return cls(case=case, **values)
        except (KeyError, TypeError) as error:
            raise InputError(
                f"This is not a line of a results file of the benchmark: {error}."
            ) from error


def _older_k(known_k: bool, method: str, k_source: str) -> KSource:
    """Where K came from in a line that only says whether it was given."""
    if known_k:
        return "known"
    if k_source.startswith("Brent"):
        return "brent"
    return "count" if (method, k_source) == ("gpc", "mixture") else "own"
