"""A training that is meant to end within minutes on a CPU."""

from __future__ import annotations

from typing import Any

from newfound.deep.network.backbone import load_backbone
from newfound.deep.settings import Settings
from newfound.errors import InputError

#: What a quick training changes. docs/training.md has measurements: smaller pictures or a higher
#: learning rate are a little faster, and made the features of birds worse.
QUICK: dict[str, Any] = {
    "epochs": 10,
    "warmup_epochs": 5,
    "learning_rate": 0.003,
    "image_size": 224,
    "n_stored_views": 2,
}


def shorten(settings: Settings) -> Settings:
    """Settings with few epochs, stored views, and pictures that are not large.

    Parameters
    ----------
    settings : Settings
        With the network. Its image size stays if it is smaller, or if the network takes no other.

    Returns
    -------
    Settings
        The same with the values of `QUICK`, as far as the network allows them: a network whose
        last block or stage is not known has no stored views.
    """
    network = settings.network
    size = min(QUICK["image_size"], network.image_size)
    try:
        # with random weights, which are at hand: only its structure is looked at
        backbone = load_backbone(network.model, "random", image_size=size, trainable="last")
    except InputError:
        size = network.image_size
        backbone = load_backbone(network.model, "random", image_size=size, trainable="last")
    is_partly_trained = (network.trainable or _by_default(network.weights)) == "last"
    changes = {**QUICK, "image_size": size}
    if not (is_partly_trained and backbone.is_split):
        changes["n_stored_views"] = 0
    return settings.with_changes(**changes)


def _by_default(weights: str) -> str:
    return "all" if weights == "random" else "last"
