"""The network that turns images into features, in two parts: a frozen one and a trained one.

The paper trains the last block of a DINO ViT-B/16 and reads its class token. Here any timm network
works: its last block (transformers) or stage (convolutional networks) is trained, together with
what follows it. Everything before stays frozen, so its outputs can be stored.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn

from newfound.deep.device import choose_device
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
        Its name in timm.
    image_size : int
        Side s of the square images.
    trainable : {"last", "all"}
        Train the last block or stage and what follows it, or everything.

    Attributes
    ----------
    n_features : int
        Length d of a feature.
    mean, std : tuple of 3 floats
        Mean and standard deviation of each channel, for images in [0, 1].
    trainable : {"last", "all"}
        What is trained. It is "all" also if the last part of the network was not found.

    Notes
    -----
    The frozen part has no gradients. It stays in evaluation mode even after `train`, so that its
    batch statistics and outputs do not change. If the forward pass of a network is more than a
    chain of its parts, `before` does nothing: features and the trained part are the same, but the
    frozen part runs again each time.
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
        """Whether `before` runs a frozen part; if not, it returns its images."""
        return self._cut is not None and bool(self._cut.before)

    def frozen_tensors(self) -> dict[str, Tensor]:
        """Weights and batch statistics that training does not change, by name."""
        if self._cut is None:
            return {}
        parts = [*self._cut.after, *self._cut.head]
        moving = {id(x) for part in parts for x in part.state_dict(keep_vars=True).values()}
        state: dict[str, Tensor] = self.network.state_dict(keep_vars=True)
        return {name: value for name, value in state.items() if id(value) not in moving}

    def before(self, images: Tensor) -> Tensor:
        """Run the frozen part.

        Parameters
        ----------
        images : Tensor of shape (n, 3, s, s)
            Normalised images.

        Returns
        -------
        Tensor of shape (n, ...)
            Inputs of the trained part; the images themselves if everything is trained.
        """
        if self._cut is None:
            return images
        with torch.no_grad():
            for step in self._cut.before:
                images = step(images)
        return images

    def map(self, inputs: Tensor) -> Tensor:
        """Run the trained part up to the pooling.

        Parameters
        ----------
        inputs : Tensor of shape (n, ...)
            What `before` returned.

        Returns
        -------
        Tensor of shape (n, C, h, w), (n, h, w, C) or (n, T, C)
            The map of a CNN, with channels in the network's own order, or all tokens.
        """
        if self._cut is not None and self.is_split:
            for step in self._cut.after:
                inputs = step(inputs)
            return inputs
        features: Tensor = self.network.forward_features(inputs)
        return features

    def pool(self, map: Tensor) -> Tensor:
        """Pool what `map` returned to one feature per image.

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
        """What `map` returned, place by place, in one layout for all kinds of networks.

        Parameters
        ----------
        map : Tensor of shape (n, ...)
            A map or tokens.

        Returns
        -------
        Tensor of shape (n, L, C)
            A vector for each place of the picture, without tokens that have no place, such as the
            class token.
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
        """Put the trained part, and only that, into training mode.

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
                f"The last block or stage of {self.name} was not found. Everything is trained, as "
                "with trainable='all'. That takes longer and changes all pretrained weights.",
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
        """Pass one image through the network, for the width of a feature and to check the cut."""
        generator = torch.Generator().manual_seed(0)  # the global generator must not move
        image = torch.randn(1, 3, self.image_size, self.image_size, generator=generator)
        self.eval()
        with torch.no_grad():
            try:
                whole = self.network.forward_head(
                    self.network.forward_features(image), pre_logits=True
                )
            except Exception as error:  # timm's networks raise different errors
                raise InputError(
                    f"{self.name} does not take images of {self.image_size} × {self.image_size} px "
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
        except Exception:  # not a chain: a part needs more than the output of the one before
            return False
        return parts.shape == whole.shape and torch.allclose(parts, whole, rtol=1e-4, atol=1e-6)


def load_backbone(
    model: str = "vit_base_patch16_224.dino",
    weights: str = "hub",
    *,
    image_size: int = 224,
    trainable: Trainable | None = None,
) -> Backbone:
    """Load a timm network with weights, to be trained in part or as a whole.

    Parameters
    ----------
    model : str
        timm's name of the network, with or without the tag of its weights.
    weights : str
        Where weights come from: ``"hub"`` (timm's hub, downloaded once), ``"offline"`` (a pip
        package of the extra ``offline``; EfficientNet-lite0, 1 and 2), ``"random"`` (drawn from
        torch's global generator), or the path of a file: safetensors, or a state dict saved by
        torch. Only tensors are read from a file, and a classifier in it is ignored.
    image_size : int
        Side of the square images. Transformers are built for this size. Up to 64 px, a ResNet with
        random weights has the stem of the CIFAR ResNets: a first convolution of 3 × 3 with stride
        1, and no max-pooling. So has a ResNet from a file that contains such a convolution.
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
        If the model is unknown, its weights are not available or do not fit, or it does not take
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


def load_encoder(model: str, weights: str, device: str | None = None) -> Backbone:
    """Load a backbone for features without training.

    Parameters
    ----------
    model, weights : str
        As for `load_backbone`; the image size is the model's own.
    device : str, optional
        Where to compute, such as ``cpu``; by default on a GPU if there is one.

    Returns
    -------
    Backbone
        The network, in evaluation mode.
    """
    check_model(model)
    backbone = load_backbone(model, weights, image_size=native_size(model), trainable="all")
    return backbone.eval().to(choose_device(device))


def _three(values: Any) -> tuple[float, float, float]:
    """One value per channel; 0.5 if the network does not say."""
    red, green, blue = values if values is not None else (0.5, 0.5, 0.5)
    return float(red), float(green), float(blue)
