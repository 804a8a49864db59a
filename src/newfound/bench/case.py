"""What is run: one method on one data set in one setting, and the record of how it went."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from newfound.errors import InputError

Prototypes = Literal["mixture", "dbscan", "ward", "kmeans"]


@dataclass(frozen=True)
class Case:
    """One run; two runs with the same case are the same run.

    Attributes
    ----------
    method, dataset : str
        Ids, as on the command line.
    seed : int
        Of the training; the split is the same for all seeds, as in the field.
    known_k : bool
        Whether the method is told K.
    pca : bool
        Whether features are projected on 128 principal directions: in GPC all along, in GCD and
        k-means before clustering.
    epochs : int
        Of training; 0 for finished features.
    model, weights : str
        Backbone in timm's name; "hub", "offline", "random" or the checksum of a file; "" and ""
        for a file of features.
    pretraining : str
        What the weights were trained on: "ImageNet", "Target" (the data set's own images, without
        labels) or "none".
    k_init : int or None
        K^n_init, the novel categories that the mixture starts with (Table 5).
    overlap : int or None
        How many known classes the unlabelled part holds, if not all (Table 9).
    n_old : int or None
        Number of known classes, if not the field's (Table 10).
    labelled_only : str or None
        "K^l/K^n": labelled images alone, with the labels of K^n classes dropped (Table 11).
    prototypes : {"mixture", "dbscan", "ward", "kmeans"}
        What GPC's prototypes are found by (Table 7a).
    joint : bool
        Whether the mixture splits and merges during the training of another method (Table 7b).
    changes : dict
        Settings of the training that are not those of the benchmark.
    """

    method: str
    dataset: str
    seed: int = 0
    known_k: bool = False
    pca: bool = True
    epochs: int = 200
    model: str = "vit_base_patch16_224.dino"
    weights: str = "hub"
    pretraining: str = "ImageNet"
    k_init: int | None = None
    overlap: int | None = None
    n_old: int | None = None
    labelled_only: str | None = None
    prototypes: Prototypes = "mixture"
    joint: bool = False
    changes: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Record:
    """A line of a results file: the case, how it was run, and what came out.

    Attributes
    ----------
    case : Case
        What was run.
    split : str
        Checksum of labels and true classes.
    layout : str
        How the data set was stored, which decides the order of its rows: "official",
        "class folders" or "features".
    n_labelled, n_unlabelled : int
        |D^l| and |D^u|.
    n_known, n_novel_true : int
        K^l and the true K^n.
    n_components, n_novel : int
        K and K^n that were used or found.
    k_source : str
        Where K came from: "given", "Brent search on …", "mixture".
    checkpoint : str
        Which epoch counts: "last epoch", "best on held-out labels" or "no training".
    all, old, new : float
        Accuracies in %, one match over all of D^u. NaN where there is no such row.
    nmi, ari : float
        In [0, 1], over D^u.
    n_novel_of_mixture : int or None
        K^n that our mixture finds in the finished features (Table 8).
    n_novel_by_epoch : list of int
        K^n over the epochs (Table 12); empty for methods without.
    seconds, seconds_per_epoch : float
        Of the whole run, and of the median epoch.
    e_step_share : float
        Of the time of all epochs.
    machine : str
        GPU or processor.
    versions : dict
        Of newfound, Python, numpy, scikit-learn, torch, timm.
    date : str
        When it ended, UTC.
    protocol : str
        The rules, in words.
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
    layout: str = "official"
    protocol: str = "transductive on the training split, one match over all unlabelled images"

    def as_dict(self) -> dict[str, Any]:
        """Plain values; method and data set stand at the top, the rest of the case beside."""
        values = asdict(self)
        case = values.pop("case")
        return {"method": case.pop("method"), "dataset": case.pop("dataset"), **values} | {
            "setting": case
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Record:
        """Undo `as_dict`.

        Parameters
        ----------
        values : dict
            A line of a results file.
        """
        values = dict(values)
        try:
            case = Case(values.pop("method"), values.pop("dataset"), **values.pop("setting"))
            return cls(case=case, **values)
        except (KeyError, TypeError) as error:
            raise InputError(f"This is no line of a results file of the benchmark: {error}.") from (
                error
            )
