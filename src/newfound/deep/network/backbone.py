"""The network that turns images into features, in two parts: a frozen one and a trained one.

The paper trains the last block of a DINO ViT-B/16 and reads its class token. Here any timm network
will do: its last block (transformers) or stage (convolutional networks) is trained, together with
what follows it, and all that is before stays as it came, so that its outputs can be kept.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn

from newfound.deep.network.cut import Cut, find_cut
from newfound.deep.network.weights import check_model, load_network, native_size
from newfound.deep.settings import NetworkSettings
from newfound.errors import DiscoveryWarning, InputError

Trainable: TypeAlias = Literal["last", "all"]


class Backbone(nn.Module):
    """A timm network in two parts: `before` (frozen) and `after` (trained).

    Parameters
    ----------
    network : nn.Module
        A timm network without classifier (``num_classes=0``).
    name : str
        What it is called in timm.
    image_size : int
        Side s of the square images it will get.
    trainable : {"last", "all"}
        Train the last block or stage and what follows it, or everything.

    Attributes
    ----------
    n_features : int
        Length d of a feature.
    mean, std : tuple of 3 floats
        What images in [0, 1] are normalised with, per channel.
    trainable : {"last", "all"}
        What is trained: "all" also when the last part of the network could not be told.

    Notes
    -----
    The frozen part has no gradients and stays in evaluation mode whatever `train` is told, so that
    its batch statistics and outputs do not move. A network whose forward pass is more than a chain
    of its parts has a `before` that does nothing: its features are the same and the same part is
    trained, but the frozen part has to be run again each time.
    """

    mean: tuple[float, float, float]
    std: tuple[float, float, float]

    def __init__(
        self, network: nn.Module, *, name: str, image_size: int, trainable: Trainable
    ) -> None:
        super().__init__()
        self.network: Any = network  # timm's methods are not those of every nn.Module
        self.name = name
        self.image_size = image_size
        self.trainable = trainable
        cfg: Mapping[str, Any] = getattr(network, "pretrained_cfg", None) or {}
        self.mean = _three(cfg.get("mean"))
        self.std = _three(cfg.get("std"))
        self._cut = find_cut(network) if trainable == "last" else None
        if self._cut is None:
            self._train_everything()
        else:
            self._freeze(self._cut)
        self._probe()

    @property
    def is_split(self) -> bool:
        """Whether there is a frozen part that `before` runs: if not, it returns its images."""
        return self._cut is not None and bool(self._cut.before)

    def before(self, images: Tensor) -> Tensor:
        """Run the frozen part.

        Parameters
        ----------
        images : Tensor of shape (n, 3, s, s)
            Normalised images.

        Returns
        -------
        Tensor of shape (n, ...)
            Inputs of the trained part; the images themselves when everything is trained.
        """
        if self._cut is None:
            return images
        with torch.no_grad():
            for step in self._cut.before:
                images = step(images)
        return images

    def map(self, inputs: Tensor) -> Tensor:
        """Run the trained part up to where it is pooled.

        Parameters
        ----------
        inputs : Tensor of shape (n, ...)
            What `before` returned.

        Returns
        -------
        Tensor of shape (n, C, h, w), (n, h, w, C) or (n, T, C)
            The map of a CNN, with the channels where the network has them, or all tokens.
        """
        if self._cut is not None and self.is_split:
            for step in self._cut.after:
                inputs = step(inputs)
            return inputs
        features: Tensor = self.network.forward_features(inputs)
        return features

    def pool(self, map: Tensor) -> Tensor:
        """One feature for each image from what `map` returned.

        Parameters
        ----------
        map : Tensor of shape (n, ...)
            A map or tokens.

        Returns
        -------
        Tensor of shape (n, d)
            Features, not normalised: the class token of a ViT, the pooled map of a CNN.
        """
        features: Tensor = self.network.forward_head(map, pre_logits=True)
        return features

    def locations(self, map: Tensor) -> Tensor:
        """What `map` returned, place by place, the same for every family of networks.

        Parameters
        ----------
        map : Tensor of shape (n, ...)
            A map or tokens.

        Returns
        -------
        Tensor of shape (n, L, C)
            A vector for each place of the picture; without tokens that stand for no place, such
            as the class token.
        """
        if map.ndim == 3:
            return map[:, getattr(self.network, "num_prefix_tokens", 0) :]
        if getattr(self.network, "output_fmt", "NCHW") == "NHWC":
            return map.flatten(1, 2)
        return map.flatten(2).transpose(1, 2)

    def after(self, inputs: Tensor) -> Tensor:
        """Run the trained part.

        Parameters
        ----------
        inputs : Tensor of shape (n, ...)
            What `before` returned.

        Returns
        -------
        Tensor of shape (n, d)
            Features, not normalised: the class token of a ViT, the pooled map of a CNN.
        """
        return self.pool(self.map(inputs))

    def forward(self, images: Tensor) -> Tensor:
        """Features (n, d) of normalised images (n, 3, s, s)."""
        return self.after(self.before(images))

    def train(self, mode: bool = True) -> Backbone:
        """Put the trained part into training mode, and only that.

        Parameters
        ----------
        mode : bool, default=True
            False puts everything into evaluation mode.

        Returns
        -------
        Backbone
            This module.
        """
        super().train(mode)
        if self._cut is not None:
            self.network.train(False)
            for part in (*self._cut.after, *self._cut.head):
                part.train(mode)
        return self

    def _train_everything(self) -> None:
        if self.trainable == "last":
            warnings.warn(
                f"The last block or stage of {self.name} cannot be told: everything is trained, "
                "with trainable='all'. That takes more time and forgets more of the weights.",
                DiscoveryWarning,
                stacklevel=4,
            )
        self.trainable = "all"
        self.requires_grad_(True)

    def _freeze(self, cut: Cut) -> None:
        self.requires_grad_(False)
        for part in (*cut.after, *cut.head):
            part.requires_grad_(True)

    def _probe(self) -> None:
        """One image through the network: the width of a feature, and whether the cut is right."""
        generator = torch.Generator().manual_seed(0)  # leaves the global one as it is
        image = torch.randn(1, 3, self.image_size, self.image_size, generator=generator)
        self.eval()
        with torch.no_grad():
            try:
                whole = self.network.forward_head(
                    self.network.forward_features(image), pre_logits=True
                )
            except Exception as error:  # timm's networks say it each in their own way
                raise InputError(
                    f"{self.name} cannot take images of {self.image_size} × {self.image_size} px "
                    f"({error}). Pass another image_size (--image-size), such as 224."
                ) from error
            self.n_features: int = whole.shape[1]
            if self._cut is not None and not self._agrees(image, whole):
                self._cut = self._cut._replace(before=[])
        self.train()

    def _agrees(self, image: Tensor, whole: Tensor) -> bool:
        """Whether the two parts, one after the other, give what the whole gives."""
        try:
            parts = self(image)
        except Exception:  # no chain: a part wants more than the output of the one before
            return False
        return parts.shape == whole.shape and torch.allclose(parts, whole, rtol=1e-4, atol=1e-6)


def load_backbone(
    model: str = "vit_base_patch16_224.dino",
    weights: str = "hub",
    *,
    image_size: int = 224,
    trainable: Trainable | None = None,
) -> Backbone:
    """A timm network with weights, ready to be trained in part or as a whole.

    Parameters
    ----------
    model : str
        timm's name of the network, with or without the tag of its weights.
    weights : str
        Where weights come from: ``"hub"`` (timm's hub, downloaded once), ``"offline"`` (a pip
        package of the extra ``offline``; EfficientNet-lite0, 1 and 2), ``"random"`` (drawn from
        torch's global generator), or the path of a file: safetensors, or a state dict saved by
        torch, of which only tensors are read. A classifier in the file is ignored.
    image_size : int
        Side of the square images. Transformers are built for it. A ResNet with random weights
        gets the stem of the CIFAR ResNets up to 64 px: a first convolution of 3 × 3 with stride 1
        and no max-pooling; one from a file, if the file has that convolution.
    trainable : {"last", "all"}, optional
        What is trained. By default everything if the weights are random, else the last block
        (transformers) or stage (CNNs), with the layers that follow it.

    Returns
    -------
    Backbone
        The network on the CPU, in training mode.

    Raises
    ------
    InputError
        If the model is not known, its weights cannot be had or do not fit, or it cannot take
        images of this size.
    MissingExtraError
        If packages are missing; the message has the pip command.
    """
    if trainable not in (None, "last", "all"):
        raise InputError(f"trainable is {trainable!r}; expected 'last' or 'all'.")
    network = load_network(model, weights, image_size)
    if trainable is None:
        trainable = "all" if weights == "random" else "last"
    return Backbone(network, name=model, image_size=image_size, trainable=trainable)


def backbone_for(settings: NetworkSettings) -> Backbone:
    """The backbone that the settings name.

    Parameters
    ----------
    settings : NetworkSettings
        Network, weights, image size, and what is trained.
    """
    return load_backbone(
        settings.model,
        settings.weights,
        image_size=settings.image_size,
        trainable=settings.trainable,
    )


def load_encoder(model: str, weights: str) -> Backbone:
    """A backbone for features as they are: at its own image size, on the GPU if there is one.

    Parameters
    ----------
    model, weights : str
        As for `load_backbone`.

    Returns
    -------
    Backbone
        The network, in evaluation mode.
    """
    check_model(model)
    backbone = load_backbone(model, weights, image_size=native_size(model), trainable="all")
    return backbone.eval().to("cuda" if torch.cuda.is_available() else "cpu")


def _three(values: Any) -> tuple[float, float, float]:
    """A value per channel; 0.5 where the network comes without."""
    red, green, blue = values if values is not None else (0.5, 0.5, 0.5)
    return float(red), float(green), float(blue)
