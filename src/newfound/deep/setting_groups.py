"""The groups of settings: fields, defaults, lines of help, and the check of every value.

Users meet them as the attributes of `newfound.deep.settings.Settings`. No torch is needed here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from newfound.errors import InputError
from newfound.mixture.counting.novel_size import parse_sizes


def _setting(default: Any, text: str, *, least: float | None = None) -> Any:
    """A field with its line of help and, for a number, the least value."""
    return field(default=default, metadata={"help": text, "least": least})


@dataclass(frozen=True)
class Group:
    """Settings that are used together; each value is checked when the group is made."""

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for item in fields(self):
            _check(item.name, getattr(self, item.name), hints[item.name], item.metadata["least"])

    def _check_share(self, name: str) -> None:
        if getattr(self, name) > 1:
            raise InputError(f"{name} is a share between 0 and 1; got {getattr(self, name)}.")


@dataclass(frozen=True)
class NetworkSettings(Group):
    """Which network is trained, and which part of it."""

    model: str = _setting("vit_base_patch16_224.dino", "Name of the network in timm.")
    weights: str = _setting("hub", "Where its weights are from: hub, offline, random or a file.")
    trainable: Literal["last", "all"] | None = _setting(
        None, "Train the last block or stage, or all; by default all for random weights."
    )
    image_size: int = _setting(224, "Side of the network's input in pixels.", least=1)


@dataclass(frozen=True)
class ViewSettings(Group):
    """How a random view is made of an image."""

    crop_min: float = _setting(0.875, "Smallest window of a view, as a share of the side.")
    crop_max: float = _setting(0.875, "Largest window of a view, as a share of the side.")
    padding: float = _setting(0.0, "How far a window may reach over the border.", least=0)
    flip: bool = _setting(True, "Mirror half of the views left to right.")
    rotation: float = _setting(0.0, "Largest rotation of a view in degrees.", least=0)
    color_jitter: float = _setting(0.0, "Strength of colour changes; 0: no change.", least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_share("padding")
        if not 0 < self.crop_min <= self.crop_max <= 1:
            raise InputError(
                "crop_min and crop_max are shares of the side with 0 < crop_min <= crop_max <= 1; "
                f"got {self.crop_min} and {self.crop_max}."
            )


@dataclass(frozen=True)
class OptimiserSettings(Group):
    """How long and in which steps the weights are trained."""

    epochs: int = _setting(200, "Number of epochs.", least=1)
    n_labelled_per_batch: int = _setting(64, "Labelled images in a batch, N^l.", least=1)
    n_unlabelled_per_batch: int = _setting(64, "Unlabelled images in a batch, N^u.", least=1)
    accumulate: int = _setting(1, "Number of batches per step of the optimiser.", least=1)
    learning_rate: float = _setting(0.1, "Learning rate at the start of the cosine.", least=0)
    momentum: float = _setting(0.9, "Momentum of the optimiser.", least=0)
    weight_decay: float = _setting(5e-5, "Weight decay, of matrices only.", least=0)
    weight_average: float = _setting(
        0.99,
        "Decay of the running average of the weights that E-steps use (0.99: over about 100 "
        "steps); 0: no average.",
        least=0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("momentum", "weight_average"):
            if getattr(self, name) >= 1:
                raise InputError(f"{name} must be below 1; got {getattr(self, name)}.")

    @property
    def batch_size(self) -> int:
        """N^l + N^u, over all processes together."""
        return self.n_labelled_per_batch + self.n_unlabelled_per_batch


@dataclass(frozen=True)
class LossSettings(Group):
    """Weights and temperatures of the losses."""

    contrastive_temperature: float = _setting(1.0, "τ of the contrastive loss, Eq. 1.", least=1e-6)
    supervised_weight: float = _setting(
        0.35, "Share of the supervised contrastive loss; the paper has none.", least=0
    )
    supervised_temperature: float = _setting(0.07, "τ of the supervised loss.", least=1e-6)
    prototype_temperature: float = _setting(0.1, "τ of the prototypical loss, Eq. 2.", least=1e-6)
    prototype_weight: float = _setting(1.0, "Factor of the prototypical loss.", least=0)
    target_temperature: float = _setting(
        0.05,
        "τ of the soft targets of an unlabelled image, which come from its other view; "
        "0: use the prototype that the E-step assigned, as in the paper.",
        least=0,
    )
    warmup_epochs: int = _setting(
        20, "T: epochs over which the prototypical loss gains its full weight.", least=0
    )
    projection_head: bool = _setting(
        True, "Compute the contrastive losses behind an MLP; the paper does not."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_share("supervised_weight")


@dataclass(frozen=True)
class EStepSettings(Group):
    """How categories are found between epochs."""

    n_components: int | None = _setting(None, "Number of categories K, if it is known.", least=1)
    n_components_init: int | None = _setting(None, "K to start from.", least=1)
    acceptance: Literal["calibrated", "literal"] = _setting(
        "calibrated", "How splits and merges are accepted."
    )
    count_term: Literal["gamma", "factorial"] = _setting("gamma", "Γ(n) as (n-1)! or n!.")
    count_on: Literal["start", "now"] | None = _setting(
        None,
        "When to count the categories: start counts once, in the features before training; now "
        "counts again at each round of splits and merges. Default: start, but now for random "
        "weights, whose first features mean nothing.",
    )
    pca: Literal["all", "batch", "off"] = _setting(
        "all", "Principal directions of all features, of each batch (the paper), or none."
    )
    n_directions: int = _setting(128, "Number of principal directions q.", least=1)
    whiten: bool | None = _setting(
        None,
        "Whiten the features by the covariance within the labelled classes; by default only with "
        "10 known classes or more, and not with literal acceptance.",
    )
    sizes: str = _setting(
        "unknown",
        "What you know about the sizes of novel categories: unknown, alike (as large as known ones "
        "on average), the ratio of mean sizes, novel : known, such as 0.5, or none (take no "
        "account of sizes, as the paper; a count takes them to be alike).",
    )
    known_rows: Literal["all", "labelled"] | None = _setting(
        None,
        "Rows whose mean is the prototype of a known class in the loss: all of its component, or "
        "the labelled ones, as in the paper. Default: all, but labelled for random weights.",
    )
    moves_every: int = _setting(
        10, "Number of epochs between rounds of splits and merges.", least=1
    )
    moves_after_epoch: bool = _setting(
        False, "Split and merge after the epoch, as Algorithm 1 is written, instead of before."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        parse_sizes(self.sizes)


@dataclass(frozen=True)
class RunSettings(Group):
    """What is kept at the end, and how the work is spread over devices and memory."""

    selection: Literal["validation", "last"] = _setting(
        "validation", "Keep the epoch that is best on held-out labels, or the last one."
    )
    validation_share: float = _setting(0.1, "Share of the labels that are held out.", least=0)
    rehearse: bool = _setting(True, "Hide known classes at the end to test how reliable K is.")
    seed: int = _setting(0, "Seed for all random numbers.", least=0)
    precision: Literal["auto", "32-true", "bf16-mixed"] = _setting(
        "auto", "Number format in the network; auto is bf16-mixed on a GPU."
    )
    device: str | None = _setting(
        None, "Where to compute: cpu, cuda, cuda:1 or mps; by default on a GPU if there is one."
    )
    devices: int | None = _setting(None, "Processes on this machine; by default one.", least=1)
    num_nodes: int = _setting(1, "Number of machines, under torchrun.", least=1)
    compile: bool = _setting(False, "Compile the network: slower to start, faster to train.")
    token_cache: bool = _setting(
        True, "Keep the frozen part's outputs in memory for the features of the E-step."
    )
    n_stored_views: int = _setting(
        0,
        "Compute this many views of each image in the frozen part once, before training, and draw "
        "from them; 0: make new views in every epoch.",
        least=0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_share("validation_share")


def _check(name: str, value: Any, hint: Any, least: float | None) -> None:
    """Refuse a value of another type, one that is not among the choices, or one too small."""
    options = get_args(hint) if type(None) in get_args(hint) else (hint,)
    if value is None and type(None) in options:
        return
    kinds = [kind for kind in options if kind is not type(None)]
    if get_origin(kinds[0]) is Literal:
        choices = [choice for kind in kinds for choice in get_args(kind)]
        if value not in choices:
            raise InputError(f"{name} must be one of {', '.join(choices)}; got {value!r}.")
        return
    kind = (int, float) if kinds[0] is float else kinds[0]
    if not isinstance(value, kind) or (isinstance(value, bool) and kinds[0] is not bool):
        raise InputError(f"{name} must be of type {kinds[0].__name__}; got {value!r}.")
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{name} must be a finite number; got {value!r}.")
    if least is not None and not value >= least:
        raise InputError(f"{name} must be at least {least}; got {value!r}.")
