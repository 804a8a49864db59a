"""A fitted mixture in two files: arrays as safetensors, everything else as JSON.

Nothing is pickled, so reading a model never runs code from the file. A mixture that is read back
makes the same predictions as the one that was saved, to the last bit.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from newfound._version import __version__
from newfound.data.tables import AGAIN
from newfound.errors import InputError, require
from newfound.files import explained_errors, read_json, write_atomically, write_json
from newfound.mixture.counting.count import CategoryCount
from newfound.mixture.estimator import SplitMergeMixture
from newfound.mixture.prior import NIWPrior
from newfound.mixture.projection import Projection
from newfound.mixture.search import Pass
from newfound.mixture.split_merge import Move

NUMBERS, WORDS = "mixture.safetensors", "mixture.json"

#: Checkpoints of trainings, see `newfound.deep.checkpoint`.
_CHECKPOINTS = ("last.safetensors", "best.safetensors")

#: Increased when older files can no longer be read.
_FORMAT = 1

_ARRAYS = (
    *["labels_", "means_", "covariances_", "weights_", "prototypes_", "offsets_"],
    "stability_",
)
_VALUES = (
    *["n_known_", "n_novel_", "n_components_", "n_directions_", "n_features_in_", "n_iter_"],
    *["converged_", "_spherical_variance", "_n_features_out"],
)
#: What `sizes` was before: `expect_sizes`.
_SIZES_BEFORE = {None: "unknown", True: "alike", False: None}
_PROJECTION_ARRAYS = ("mean_", "components_", "explained_variance_ratio_")
_PRIOR = ("m", "kappa", "nu", "psi")


def save_mixture(mixture: SplitMergeMixture, folder: Path, *, encoder: dict[str, Any]) -> None:
    """Write a fitted mixture.

    Parameters
    ----------
    mixture : SplitMergeMixture
        Fitted. Its `callback` is not stored, and its `random_state` only if it is a number.
    folder : Path
        Folder of the two files; it is created if needed.
    encoder : dict
        What made the features, in plain values.
    """
    save = require("safetensors.numpy", "train").save
    write_atomically(folder / NUMBERS, save(_numbers_of(mixture)))
    write_json(folder / WORDS, {**_words_of(mixture), "encoder": encoder})


def load_mixture(folder: Path) -> tuple[SplitMergeMixture, dict[str, Any]]:
    """Read what `save_mixture` wrote.

    Parameters
    ----------
    folder : Path
        Folder of the two files.

    Returns
    -------
    mixture : SplitMergeMixture
        Fitted.
    encoder : dict
        What made the features.

    Raises
    ------
    InputError
        If a file is missing, damaged, or in another format.
    """
    for name in (NUMBERS, WORDS):
        if not (folder / name).is_file():
            raise InputError(f"There is no model in {folder}: {name} is missing.")
    words = read_json(folder / WORDS)
    if not isinstance(words, dict) or words.get("format") != _FORMAT:
        raise InputError(
            f"{folder / WORDS} is in a format that newfound {__version__} does not read. "
            "Run newfound again, into a new folder."
        )
    # Any missing key or wrong type in here means that the files were changed.
    with explained_errors(f"The model in {folder}", "is damaged", AGAIN):
        numbers = require("safetensors.numpy", "train").load((folder / NUMBERS).read_bytes())
        mixture = _mixture_from(numbers, words)
        _check_shapes(mixture)
        _check_encoder(words["encoder"])
        return mixture, words["encoder"]


def _check_encoder(encoder: dict[str, Any]) -> None:
    """Refuse a description that would lead to a file outside of the run, with a ValueError."""
    name = encoder.get("checkpoint", _CHECKPOINTS[0])
    if not all(isinstance(encoder.get(key, ""), str) for key in ("kind", "name", "sha256")):
        raise ValueError("the encoder is not described by texts")
    if name not in _CHECKPOINTS:
        raise ValueError(f"its checkpoint is {name!r}; expected {' or '.join(_CHECKPOINTS)}")


def _check_shapes(mixture: SplitMergeMixture) -> None:
    """Refuse arrays that do not belong together, with a ValueError."""
    k, q, d = mixture.n_components_, mixture.n_directions_, mixture.n_features_in_
    projection = mixture.projection_
    expected: dict[str, tuple[npt.NDArray[Any], tuple[int, ...]]] = {
        "prototypes_": (mixture.prototypes_, (k, q)),
        "means_": (mixture.means_, (k, q)),
        "weights_": (mixture.weights_, (k,)),
        "offsets_": (mixture.offsets_, (k,)),
        "stability_": (mixture.stability_, (k,)),
        "components_": (projection.components_, (q, d)),
        "mean_": (projection.mean_, (d,)),
    }
    for name, (array, shape) in expected.items():
        if array.shape != shape or array.dtype.kind != "f":
            raise ValueError(f"{name} has the shape {array.shape}; expected {shape}")


# -------------------------------------------------------------------------------------- to files


def _numbers_of(mixture: SplitMergeMixture) -> dict[str, npt.NDArray[Any]]:
    """All arrays, by name."""
    projection = mixture.projection_
    numbers = {name: getattr(mixture, name) for name in _ARRAYS}
    numbers |= {f"projection.{name}": getattr(projection, name) for name in _PROJECTION_ARRAYS}
    numbers |= {f"prior.{name}": getattr(mixture.prior_, name) for name in _PRIOR}
    if projection.whitening_ is not None:
        numbers["projection.whitening_"] = projection.whitening_
    if mixture.prior is not None:
        numbers |= {f"given_prior.{name}": getattr(mixture.prior, name) for name in _PRIOR}
    return {name: np.ascontiguousarray(value) for name, value in numbers.items()}


def _words_of(mixture: SplitMergeMixture) -> dict[str, Any]:
    """Everything that is not an array."""
    classes = mixture.classes_
    return {
        "format": _FORMAT,
        "version": __version__,
        "settings": _plain_settings(mixture),
        "projection": mixture.projection_.get_params(),
        "classes": {"type": classes.dtype.str, "names": classes.tolist()},
        "values": {name: _plain(getattr(mixture, name)) for name in _VALUES},
        "count": None if mixture.count_ is None else mixture.count_.as_plain(),
        "history": [asdict(done) for done in mixture.history_],
    }


def _plain_settings(mixture: SplitMergeMixture) -> dict[str, Any]:
    """Settings without those that a file cannot hold."""
    # A generator cannot be stored, and a number alone makes the same draws again.
    settings = {name: _plain(value) for name, value in mixture.get_params(deep=False).items()}
    if not isinstance(settings["random_state"], int):
        settings["random_state"] = None
    if mixture.count is not None:
        settings["count"] = mixture.count.as_plain()
    return {name: settings[name] for name in settings if name not in ("prior", "callback")}


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


# ------------------------------------------------------------------------------------ from files


def _mixture_from(numbers: dict[str, npt.NDArray[Any]], words: dict[str, Any]) -> SplitMergeMixture:
    settings = dict(words["settings"])
    if "expect_sizes" in settings:  # files of version 0.1.0
        settings["sizes"] = _SIZES_BEFORE[settings.pop("expect_sizes")]
    mixture = SplitMergeMixture(**settings)
    mixture.set_params(count=_count_from(settings["count"]))
    if "given_prior.m" in numbers:
        mixture.set_params(prior=_prior_from(numbers, "given_prior"))
    # Files from before sizes could be expected have no offsets, which is the same as zeros.
    numbers = {"offsets_": np.zeros(len(numbers["prototypes_"])), **numbers}
    for name in _ARRAYS:
        setattr(mixture, name, numbers[name])
    for name in _VALUES:
        setattr(mixture, name, words["values"][name])
    classes = words["classes"]
    mixture.classes_ = np.array(classes["names"], dtype=np.dtype(classes["type"]))
    mixture.prior_ = _prior_from(numbers, "prior")
    mixture.projection_ = _projection_from(numbers, words)
    mixture.count_ = _count_from(words["count"])
    mixture.n_novel_interval_ = None if mixture.count_ is None else mixture.count_.interval
    mixture.history_ = [_pass_from(done) for done in words["history"]]
    return mixture


def _prior_from(numbers: dict[str, npt.NDArray[Any]], name: str) -> NIWPrior:
    m, kappa, nu, psi = (numbers[f"{name}.{part}"] for part in _PRIOR)
    # Contiguous arrays have one axis at least, so the file holds the two numbers as rows of one.
    return NIWPrior(m, kappa.reshape(()), nu.reshape(()), psi)


def _projection_from(numbers: dict[str, npt.NDArray[Any]], words: dict[str, Any]) -> Projection:
    projection = Projection(**words["projection"])
    for name in _PROJECTION_ARRAYS:
        setattr(projection, name, numbers[f"projection.{name}"])
    projection.whitening_ = numbers.get("projection.whitening_")
    projection.n_directions_ = projection._n_features_out = len(projection.components_)
    projection.n_features_in_ = len(projection.mean_)
    return projection


def _count_from(values: dict[str, Any] | None) -> CategoryCount | None:
    return None if values is None else CategoryCount.from_plain(values)


def _pass_from(done: dict[str, Any]) -> Pass:
    moves = [
        Move(**{**move, "parents": (*move["parents"],), "children": (*move["children"],)})
        for move in done["moves"]
    ]
    return Pass(**{**done, "moves": moves})
