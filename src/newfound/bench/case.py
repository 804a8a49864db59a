"""A case says what one run is: a method on a data set in a setting. `record` says what came out."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

#: What finds the prototypes of GPC: our mixture, or a clustering of the paper's Table 7a.
PrototypeSource = Literal["mixture", "dbscan", "ward", "kmeans"]
#: Where K comes from: the truth, Brent's search, our count, or the method itself in another way.
KSource = Literal["known", "brent", "count", "own"]
#: What clusters the finished features: the method itself, or our mixture.
Clustering = Literal["own", "mixture"]
#: Deviations of `docs/deviations.md` that GPC can do without.
PARTS = ("D25", "D26", "D27", "D28", "D30")


@dataclass(frozen=True)
class Case:
    """What one run is. Two runs with equal cases are the same run.

    Attributes
    ----------
    method, dataset : str
        Ids, as on the command line.
    seed : int
        Seed of the training. The split does not depend on it, as in the field.
    draw : int
        Seed of the draw of labels; 0 is the field's.
    k : {"known", "brent", "count", "own"}
        Where K comes from: the true number of categories, Brent's search, our count, or, for
        methods that find K in another way (literal GPC, joint training, DBSCAN), the method.
    pca : bool
        Whether features are projected on 128 principal directions. GPC does so throughout
        training, GCD and k-means only before clustering.
    epochs : int
        Number of training epochs; 0 for finished features.
    model, weights : str
        Name of the backbone in timm, and "hub", "offline", "random" or the checksum of a weight
        file. A file of features has "" as model and its own checksum as weights.
    pretraining : str
        What the weights were trained on: "ImageNet", "Target" (the data set's own images, without
        labels) or "none".
    k_init : int or None
        K^n_init, the number of novel categories that the mixture starts with (Table 5).
    overlap : int or None
        How many known classes occur in the unlabelled part; None for all of them (Table 9).
    n_old : int or None
        Number of known classes; None for the field's number (Table 10).
    labelled_only : str or None
        "K^l/K^n": use labelled images only, and hide the labels of K^n classes (Table 11).
    prototypes : {"mixture", "dbscan", "ward", "kmeans"}
        What finds GPC's prototypes (Table 7a).
    joint : bool
        Whether the mixture splits and merges during the training of another method (Table 7b).
    clustering : {"own", "mixture"}
        What clusters the finished features: the method itself, or our mixture, after training.
    without : str or None
        One of `PARTS`, which GPC does without.
    hidden : bool
        Whether half of the known classes are hidden, and the run is judged by them (tuning).
    trial : int or None
        Number of the tuning trial that this is, or whose values were taken; None: not tuned.
    changes : dict
        Training settings that differ from those of the benchmark.
    """

    method: str
    dataset: str
    seed: int = 0
    draw: int = 0
    k: KSource = "count"
    pca: bool = True
    epochs: int = 200
    model: str = "vit_base_patch16_224.dino"
    weights: str = "hub"
    pretraining: str = "ImageNet"
    k_init: int | None = None
    overlap: int | None = None
    n_old: int | None = None
    labelled_only: str | None = None
    prototypes: PrototypeSource = "mixture"
    joint: bool = False
    clustering: Clustering = "own"
    without: str | None = None
    hidden: bool = False
    trial: int | None = None
    changes: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


#: Fields that make a run another than the usual one of its method, with their usual values.
USUAL: dict[str, Any] = {
    item.name: item.default
    for item in fields(Case)
    if item.name
    in (
        *("k_init", "overlap", "n_old", "labelled_only"),
        *("prototypes", "joint", "clustering", "without"),
    )
}


def case_key(case: Case, *, without: tuple[str, ...] = ()) -> str:
    """A text that is equal for two cases if and only if they are the same run.

    Parameters
    ----------
    case : Case
        What is run.
    without : tuple of str
        Fields that may differ.
    """
    values = {name: value for name, value in case.as_dict().items() if name not in without}
    return json.dumps(values, sort_keys=True)
