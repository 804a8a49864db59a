"""The protocol: the settings that all methods share, and the case that a request leads to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from newfound.bench.case import PARTS, Case, Clustering, KSource, PrototypeSource
from newfound.bench.datasets import DATASETS
from newfound.bench.datasets.feature_file import is_feature_file
from newfound.bench.datasets.long_tail import base_of
from newfound.bench.methods import find_method
from newfound.deep.network.identity import weights_id
from newfound.deep.settings import HARDWARE, Settings
from newfound.errors import InputError
from newfound.workflows.demo import DIGITS

if TYPE_CHECKING:
    from newfound.bench.method import BenchMethod

#: Starts of semi-supervised k-means, as in the code of Vaze et al. (2022).
N_STARTS = 100
#: How the settings for small images and a small network differ from those for 224 pixels.
SMALL = {"image_size": 32, "crop_min": 0.45, "crop_max": 1.0, "color_jitter": 0.5}
#: Settings that matter to a method that does not train.
_OF_START = frozenset({"image_size", "crop_max", "n_directions"})
#: Settings that matter when finished features are clustered.
_OF_CLUSTERING = frozenset(
    {"n_directions", "acceptance", "count_term", "whiten", "sizes", "n_starts"}
)
#: Settings that are not listed as changes: a case has them as fields, the runner sets them, or
#: they cannot change the result.
_NOT_CHANGES = frozenset(
    {"seed", "epochs", "model", "weights", "pca", "n_components", "n_components_init"} | HARDWARE
)


def bench_settings(
    dataset: str, model: str | None = None, *, method: str | None = None
) -> Settings:
    """The settings that all methods share on a data set.

    Parameters
    ----------
    dataset : str
        Id.
    model : str, optional
        Name of the backbone in timm. By default the field's ViT-B/16 with DINO weights, and a
        small network with random weights for digits. A ResNet sees CIFAR images at 32 pixels.
    method : str, optional
        Id of a method: then with its own defaults, such as no average of the weights.

    Returns
    -------
    Settings
        Training uses all labels and keeps the last epoch. It has 200 epochs, for digits 80.
    """
    if method is not None:
        return bench_settings(dataset, model).with_changes(**find_method(method).defaults)
    dataset = base_of(dataset)
    if dataset == "digits" and model in (None, DIGITS.network.model):
        return DIGITS.with_changes(rehearse=False, epochs=80)
    base = Settings(selection="last", rehearse=False)
    base = base if model is None else base.with_changes(model=model)
    if dataset in ("cifar10", "cifar100") and base.network.model.startswith("resnet"):
        return base.with_changes(**SMALL)
    return base


def make_case(method: str, dataset: str, settings: Settings, **options: Any) -> Case:
    """The case of a run. Settings that differ from the benchmark's are listed in it.

    Parameters
    ----------
    method, dataset : str
        Ids; a feature file is given by its path.
    settings : Settings
        Settings of the training.
    **options
        Other fields of `Case`. With ``pca=None`` the method's default is used, and with
        ``pretraining=None`` "ImageNet", or "none" for random weights. ``n_starts`` is the number
        of starts of semi-supervised k-means, ``knob`` the value of the method's own
        hyper-parameter. ``k="unknown"`` is the method's own way to find K.
    """
    cls = find_method(method)
    name = _record_name(dataset)
    n_starts, knob = options.pop("n_starts", N_STARTS), options.pop("knob", None)
    pca = options.pop("pca", None)
    pretraining = options.pop("pretraining", None)
    if pretraining is None:
        pretraining = "none" if settings.network.weights == "random" else "ImageNet"
    case = Case(
        method,
        name,
        seed=settings.run.seed,
        pca=cls.uses_pca and (cls.pca_by_default if pca is None else pca),
        epochs=settings.optimiser.epochs if cls.learns else 0,
        model=settings.network.model,
        weights=weights_id(settings.network.weights),
        pretraining=pretraining,
        changes=_changes(method, dataset, settings, n_starts) | _knob_change(cls, knob),
        **options,
    )
    if options.get("k", "unknown") == "unknown":
        case = replace(case, k=own_k(case))
    _check_variant(case, cls, dataset)
    return case


def own_k(case: Case) -> KSource:
    """How the method of a case finds K, or how K is found for it, unless it is told otherwise.

    Parameters
    ----------
    case : Case
        With its variant.
    """
    if case.joint or case.prototypes == "dbscan":
        return "own"
    return "brent" if case.prototypes in ("ward", "kmeans") else find_method(case.method).own_k


def _record_name(dataset: str) -> str:
    """The name of a data set in records: a feature file is named without folder and ending."""
    if not is_feature_file(dataset):
        return dataset
    name = Path(dataset).stem
    if name in DATASETS:
        raise InputError(f"{dataset} has the name of a data set. Give the file another name.")
    return name


def _knob_change(cls: type[BenchMethod], value: float | None) -> dict[str, float]:
    """The value of the method's own hyper-parameter, if it has one that is not a setting."""
    if value is None or cls.knob is None or value == cls.knob.value:
        return {}
    return {cls.knob.name: value}


def _changes(method: str, dataset: str, settings: Settings, n_starts: int) -> dict[str, Any]:
    """Settings that differ from the benchmark's and can change the result of the method."""
    cls = find_method(method)
    base = bench_settings(dataset, settings.network.model, method=method).as_dict()
    changes = {
        name: value
        for name, value in settings.as_dict().items()
        if name not in _NOT_CHANGES and value != base[name]
    }
    if n_starts != N_STARTS and cls.uses_starts:
        changes["n_starts"] = n_starts
    matters = _OF_START | _OF_CLUSTERING if cls.finds_k else _OF_START
    return changes if cls.learns else _only(changes, matters)


def _check_variant(case: Case, cls: type[BenchMethod], dataset: str) -> None:
    """Raise if the method cannot run what the case asks for."""
    if is_feature_file(dataset) and not cls.takes_features:
        raise InputError(f"{cls.title} learns from images; it cannot use features.")
    if case.prototypes not in get_args(PrototypeSource):
        choices = ", ".join(get_args(PrototypeSource))
        raise InputError(f"prototypes must be one of {choices}; got {case.prototypes!r}.")
    for name, kind in (("k", KSource), ("clustering", Clustering)):
        if getattr(case, name) not in get_args(kind):
            choices = ", ".join(get_args(kind))
            raise InputError(f"{name} must be one of {choices}; got {getattr(case, name)!r}.")
    if case.k == "own" and own_k(case) != "own":
        raise InputError(f"{cls.title} has no way of its own to find K; give brent or count.")
    if case.without not in (None, *PARTS):
        raise InputError(f"without must be one of {', '.join(PARTS)}; got {case.without!r}.")
    for variant in ("joint", "prototypes", "without"):
        if getattr(case, variant) not in (False, "mixture", None) and variant not in cls.variants:
            raise InputError(f"{cls.title} has no variant {variant}={getattr(case, variant)!r}.")


def without_training(case: Case, source: str) -> Case:
    """The same case on finished features: fields that describe training are cleared.

    Parameters
    ----------
    case : Case
        The case as it would be with training.
    source : str
        Path of the feature file. Its checksum takes the place of the weights.
    """
    changes = _only(case.changes, _OF_CLUSTERING)
    return replace(
        case, epochs=0, model="", weights=weights_id(source), pretraining="none", changes=changes
    )


def _only(changes: dict[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in changes.items() if name in names}
