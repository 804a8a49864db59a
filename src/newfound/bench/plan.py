"""What a run is: its settings, its case, and what its files are called."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from newfound.bench.case import Case, Prototypes
from newfound.bench.datasets import DATASETS
from newfound.bench.methods import find_method
from newfound.bench.splits import Split
from newfound.deep.settings import Settings
from newfound.errors import InputError
from newfound.workflows.demo import DIGITS

#: Small pictures and a network of their size: what differs from the settings for 224 pixels.
SMALL = {"image_size": 32, "crop_min": 0.45, "crop_max": 1.0, "color_jitter": 0.5}
#: Settings that matter without training, and those that matter for finished features.
_OF_START = frozenset({"image_size", "crop_max", "n_directions"})
_OF_CLUSTERING = frozenset({"n_directions", "acceptance", "count_term", "whiten", "n_starts"})
#: Settings that are fields of a case, that the runner sets, or that do not change the result.
_NOT_CHANGES = frozenset(
    {"seed", "epochs", "model", "weights", "pca", "n_components", "n_components_init"}
    | {"devices", "num_nodes", "compile", "token_cache"}
)


def bench_settings(dataset: str, model: str | None = None) -> Settings:
    """The settings that all methods share on a data set.

    Parameters
    ----------
    dataset : str
        Id.
    model : str, optional
        timm's name of the backbone; by default the field's ViT-B/16 with DINO weights, for digits
        a small network from nothing. A ResNet gets pictures of CIFAR at their own size.

    Returns
    -------
    Settings
        The last epoch counts, all labels are used for training; 200 epochs, 80 for digits.
    """
    if dataset == "digits" and model in (None, DIGITS.network.model):
        return DIGITS.with_changes(rehearse=False, epochs=80)
    base = Settings(selection="last", rehearse=False)
    base = base if model is None else base.with_changes(model=model)
    if dataset in ("cifar10", "cifar100") and base.network.model.startswith("resnet"):
        return base.with_changes(**SMALL)
    return base


def make_case(method: str, dataset: str, settings: Settings, **options: Any) -> Case:
    """The case of a run: settings that differ from the benchmark's are listed in it.

    Parameters
    ----------
    method, dataset : str
        Ids; the path of a feature file stands for itself.
    settings : Settings
        Of the training.
    **options
        Other fields of `Case`; ``pca=None`` is the method's default, ``n_starts`` the starts of
        semi-supervised k-means; ``pretraining=None`` is "ImageNet", or "none" for random weights.
    """
    cls = find_method(method)
    name = dataset
    if is_file_of_features(dataset):
        name = Path(dataset).stem
        if name in DATASETS:
            raise InputError(f"{dataset} has the name of a data set. Give the file another name.")
    n_starts = options.pop("n_starts", 100)
    pca = options.pop("pca", None)
    pretraining = options.pop("pretraining", None)
    if pretraining is None:
        pretraining = "none" if settings.network.weights == "random" else "ImageNet"
    base = bench_settings(dataset, settings.network.model).as_dict()
    changes = {
        name: value
        for name, value in settings.as_dict().items()
        if name not in _NOT_CHANGES and value != base[name]
    }
    if n_starts != 100 and cls.learns_without_k:
        changes["n_starts"] = n_starts
    if not cls.learns:
        changes = _only(changes, _OF_START)
    case = Case(
        method,
        name,
        seed=settings.run.seed,
        pca=cls.uses_pca and (cls.pca_by_default if pca is None else pca),
        epochs=settings.optimiser.epochs if cls.learns else 0,
        model=settings.network.model,
        weights=weights_id(settings.network.weights),
        pretraining=pretraining,
        changes=changes,
        **options,
    )
    if is_file_of_features(dataset) and not cls.takes_features:
        raise InputError(f"{cls.title} learns from images; it cannot use features.")
    if case.prototypes not in get_args(Prototypes):
        choices = ", ".join(get_args(Prototypes))
        raise InputError(f"prototypes are found by one of {choices}; got {case.prototypes!r}.")
    for variant in ("joint", "prototypes"):
        if getattr(case, variant) not in (False, "mixture") and variant not in cls.variants:
            raise InputError(f"{cls.title} has no variant {variant}={getattr(case, variant)!r}.")
    return case


def weights_id(weights: str) -> str:
    """How weights are called in a record: a file by its checksum, so that no path is in it.

    Parameters
    ----------
    weights : str
        "hub", "offline", "random", a path, or such a checksum itself.
    """
    if weights in ("hub", "offline", "random"):
        return weights
    path = Path(weights)
    if not path.is_file() and re.fullmatch("[0-9a-f]{12}", weights):
        return weights
    if not path.is_file():
        raise InputError(f"There is no file of weights {weights}; give hub, offline or a file.")
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def is_file_of_features(dataset: str) -> bool:
    """Whether a data set is the path of a file, not an id."""
    return dataset.lower().endswith((".npz", ".npy"))


def without_training(case: Case, source: str) -> Case:
    """The case on finished features: nothing that training is described by.

    Parameters
    ----------
    case : Case
        As it would be with training.
    source : str
        The file of features, which stands in the place of weights.
    """
    changes = _only(case.changes, _OF_CLUSTERING)
    return replace(
        case, epochs=0, model="", weights=weights_id(source), pretraining="none", changes=changes
    )


def _only(changes: dict[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in changes.items() if name in names}


def run_folder(case: Case, work: Path) -> Path:
    """Folder of the training of a case; cases that differ in what comes after it share one.

    Parameters
    ----------
    case : Case
        What is run.
    work : Path
        Folder of all runs.
    """
    if find_method(case.method).learns_without_k:
        changes = {name: value for name, value in case.changes.items() if name != "n_starts"}
        case = replace(case, known_k=False, pca=False, joint=False, changes=changes)
    return work / f"{case.method}-{_key(case.as_dict())}"


def outcome_file(case: Case, work: Path) -> Path:
    """The finished features and the cluster of each row of a case, for figures.

    Parameters
    ----------
    case : Case
        What was run.
    work : Path
        Folder of all runs.
    """
    return work / "outcomes" / f"{case.method}-{case.dataset}-{_key(case.as_dict())}.npz"


def start_file(dataset: str, split: Split, settings: Settings, work: Path) -> Path:
    """Where features before training are kept.

    Parameters
    ----------
    dataset : str
        Name of the data set in records.
    split : Split
        Which rows take part.
    settings : Settings
        Backbone, weights (a file, or its checksum), size, seed.
    work : Path
        Folder of all runs.
    """
    shape = {
        "model": settings.network.model,
        "weights": weights_id(settings.network.weights),
        "size": settings.network.image_size,
        "crop": settings.views.crop_max,
        "seed": settings.run.seed,
        "split": split.checksum,
    }
    return work / f"start-{dataset}-{_key(shape)}.npy"


def _key(values: dict[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
