"""Every setting of the deep loop, with the paper's values where it gives them.

This module needs no torch, so that the command line can list its options quickly.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

from newfound.errors import InputError


def _setting(default: Any, text: str, *, least: float | None = None) -> Any:
    """A field with its line of documentation and, for a number, the least value."""
    return field(default=default, metadata={"help": text, "least": least})


#: What the paper says, where later work has other habits.
_LETTER: dict[str, Any] = {
    "projection_head": False,
    "supervised_weight": 0.0,
    "contrastive_temperature": 1.0,
    "prototype_temperature": 1.0,
    "target_temperature": 0.0,
    "size_weight": 0.0,
    "weight_average": 0.0,
    "pca": "batch",
    "count_term": "factorial",
    "acceptance": "literal",
    "whiten": False,
    "moves_every": 1,
    "moves_after_epoch": True,
    "selection": "validation",
}


@dataclass(frozen=True)
class Settings:
    """How to train; each field's line of documentation is the help of the option of that name.

    Examples
    --------
    >>> Settings(epochs=3).epochs, Settings.paper().acceptance
    (3, 'literal')
    """

    model: str = _setting("vit_base_patch16_224.dino", "Name of the network in timm.")
    weights: str = _setting("hub", "Where its weights are from: hub, offline, random or a file.")
    trainable: Literal["last", "all"] | None = _setting(
        None, "Train the last block or stage, or all; by default all for random weights."
    )
    image_size: int = _setting(224, "Side of the network's input in pixels.", least=1)
    crop_min: float = _setting(0.875, "Smallest window of a view, as a share of the side.")
    crop_max: float = _setting(0.875, "Largest window of a view, as a share of the side.")
    padding: float = _setting(0.0, "How far a window may reach over the border.", least=0)
    flip: bool = _setting(True, "Mirror half of the views left to right.")
    rotation: float = _setting(0.0, "Largest turn of a view in degrees.", least=0)
    color_jitter: float = _setting(0.0, "Strength of changes in colour; 0 leaves it.", least=0)

    epochs: int = _setting(200, "Number of epochs.", least=1)
    n_labelled_per_batch: int = _setting(64, "Labelled images in a batch, N^l.", least=1)
    n_unlabelled_per_batch: int = _setting(64, "Unlabelled images in a batch, N^u.", least=1)
    accumulate: int = _setting(1, "Batches for each step of the optimiser.", least=1)
    learning_rate: float = _setting(0.1, "Learning rate at the start of the cosine.", least=0)
    momentum: float = _setting(0.9, "Momentum of the optimiser.", least=0)
    weight_decay: float = _setting(5e-5, "Weight decay, of matrices only.", least=0)
    weight_average: float = _setting(
        0.99,
        "Share of the past in the running mean of the weights that E-steps use; 0: none.",
        least=0,
    )

    contrastive_temperature: float = _setting(0.1, "τ of the contrastive loss, Eq. 1.", least=1e-6)
    supervised_weight: float = _setting(
        0.35, "Share of the supervised contrastive loss; the paper has none.", least=0
    )
    supervised_temperature: float = _setting(0.07, "τ of the supervised loss.", least=1e-6)
    prototype_temperature: float = _setting(0.1, "τ of the prototypical loss, Eq. 2.", least=1e-6)
    prototype_weight: float = _setting(1.0, "Factor of the prototypical loss.", least=0)
    target_temperature: float = _setting(
        0.05,
        "τ of the shares in the prototypes that an image's other view gives it; "
        "0: all in the one of the E-step, as in the paper.",
        least=0,
    )
    size_weight: float = _setting(
        1.0,
        "Weight of novel categories being as large as known ones, in E-step and loss; 0: none.",
        least=0,
    )
    warmup_epochs: int = _setting(20, "T: epochs until the prototypical loss counts.", least=0)
    projection_head: bool = _setting(
        True, "Put the contrastive losses behind an MLP; the paper does not."
    )

    n_components: int | None = _setting(None, "Number of categories K, if it is known.", least=1)
    n_components_init: int | None = _setting(None, "K to start from.", least=1)
    acceptance: Literal["calibrated", "literal"] = _setting(
        "calibrated", "How splits and merges are accepted."
    )
    count_term: Literal["gamma", "factorial"] = _setting("gamma", "Γ(n) as (n-1)! or n!.")
    count_on: Literal["start", "now"] | None = _setting(
        None,
        "Count the categories once, in the features before training, or in those of the moment; "
        "by default now for random weights, which say nothing at the start.",
    )
    pca: Literal["all", "batch", "off"] = _setting(
        "all", "Principal directions of all features, of each batch (the paper), or none."
    )
    n_directions: int = _setting(128, "Number of principal directions q.", least=1)
    whiten: bool | None = _setting(
        None, "Divide by the labelled classes' covariance; by default as the mixture decides."
    )
    moves_every: int = _setting(
        10, "Epochs from one round of splits and merges to the next.", least=1
    )
    moves_after_epoch: bool = _setting(
        False, "Split and merge after the epoch, as Algorithm 1 is written, instead of before."
    )

    selection: Literal["validation", "last"] = _setting(
        "validation", "Keep the epoch that is best on held-out labels, or the last one."
    )
    validation_share: float = _setting(0.1, "Share of the labels that are held out.", least=0)
    rehearse: bool = _setting(True, "Hide known classes at the end to see how far to trust K.")

    seed: int = _setting(0, "Seed of everything random.", least=0)
    precision: Literal["auto", "32-true", "bf16-mixed"] = _setting(
        "auto", "Numbers in the network; auto is bf16-mixed on a GPU."
    )
    devices: int | None = _setting(None, "Processes on this machine; by default one.", least=1)
    num_nodes: int = _setting(1, "Number of machines, under torchrun.", least=1)
    compile: bool = _setting(False, "Compile the network: slower to start, faster to train.")
    token_cache: bool = _setting(
        True, "Keep the inputs of the trained part in memory for the features of the E-step."
    )
    n_stored_views: int = _setting(
        0,
        "Views of each image that pass the frozen part once, to draw from; 0: always new.",
        least=0,
    )

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for item in fields(self):
            _check(item.name, getattr(self, item.name), hints[item.name], item.metadata["least"])
        if not 0 < self.crop_min <= self.crop_max <= 1:
            raise InputError(
                "crop_min and crop_max are shares of the side with 0 < crop_min <= crop_max <= 1; "
                f"got {self.crop_min} and {self.crop_max}."
            )
        for name in ("supervised_weight", "validation_share"):
            if getattr(self, name) > 1:
                raise InputError(f"{name} is a share between 0 and 1; got {getattr(self, name)}.")
        if self.weight_average >= 1:
            raise InputError(f"weight_average must be below 1; got {self.weight_average}.")

    @classmethod
    def paper(cls, **changes: Any) -> Settings:
        """The letter of the paper, where later work has other habits."""
        return cls(**{**_LETTER, **changes})

    def to_the_letter(self) -> Settings:
        """These settings, but the paper's where later work has other habits."""
        return replace(self, **_LETTER)

    @classmethod
    def pretraining(cls, **changes: Any) -> Settings:
        """Self-supervised pretraining from nothing on small images: SimCLR with a ResNet-18."""
        habits: dict[str, Any] = {
            "model": "resnet18",
            "weights": "random",
            "image_size": 32,
            "crop_min": 0.45,
            "crop_max": 1.0,
            "color_jitter": 0.5,
            "n_unlabelled_per_batch": 512,
            "learning_rate": 0.4,
            "weight_decay": 5e-4,
            "contrastive_temperature": 0.2,
            "supervised_weight": 0.0,
            "selection": "last",
            "rehearse": False,
        }
        return cls(**{**habits, **changes})

    def with_changes(self, **changes: Any) -> Settings:
        """These settings with some of them changed."""
        known = {item.name for item in fields(self)}
        unknown = sorted(set(changes) - known)
        if unknown:
            raise InputError(
                f"There is no setting {', '.join(unknown)}; there are {', '.join(sorted(known))}."
            )
        return replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """All settings as plain values, for JSON."""
        return asdict(self)


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
    if least is not None and not value >= least:
        raise InputError(f"{name} must be at least {least}; got {value!r}.")
