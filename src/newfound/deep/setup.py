"""What a training works with: network, optimiser, averaged weights and images, on one device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from lightning_fabric import Fabric
from lightning_fabric.wrappers import _FabricModule, _FabricOptimizer
from torch import Tensor

from newfound.arrays import ArrayLike
from newfound.deep.average import WeightAverage
from newfound.deep.images.feed import Feed
from newfound.deep.images.views import Views, views_for
from newfound.deep.method import Method
from newfound.deep.network.backbone import backbone_for
from newfound.deep.network.batch_norm import share_batch_norm
from newfound.deep.network.head import Network
from newfound.deep.optimiser import make_optimiser
from newfound.deep.settings import Settings


@dataclass(frozen=True)
class TrainingSetup:
    """The parts of a training that hold tensors.

    Attributes
    ----------
    fabric : Fabric
        The engine.
    network : Network
        Backbone and head.
    wrapped : module
        The network as the engine runs it, over all processes.
    optimiser : optimiser
        As the engine runs it.
    average : WeightAverage
        Running mean of the weights.
    views : Views
        How a view is made.
    feed : Feed
        The images.
    """

    fabric: Fabric
    network: Network
    wrapped: _FabricModule
    optimiser: _FabricOptimizer
    average: WeightAverage
    views: Views
    feed: Feed

    def weights(self) -> dict[str, Tensor]:
        """What training changes, by reference: trained parameters and all buffers."""
        return trained_weights(self.network)

    @torch.no_grad()
    def set_weights(self, tensors: dict[str, Tensor]) -> None:
        """Copy weights of a checkpoint into the network."""
        for name, value in self.weights().items():
            value.copy_(tensors[name])

    def put(self, values: npt.NDArray[np.int64]) -> Tensor:
        """An array on the device."""
        return torch.from_numpy(values).to(self.fabric.device, non_blocking=True)


def set_up(pixels: ArrayLike, settings: Settings, method: Method, fabric: Fabric) -> TrainingSetup:
    """Load the network and bring everything to the device.

    Parameters
    ----------
    pixels : ndarray of uint8, shape (n, 3, s, s)
        All images.
    settings : Settings
        Network, views, optimiser, seed.
    method : Method
        Makes the head.
    fabric : Fabric
        The engine.

    Returns
    -------
    TrainingSetup
        The parts, with the weights of epoch 0.
    """
    torch.manual_seed(settings.run.seed)  # for weights that start at random
    backbone = backbone_for(settings.network)
    network = Network(backbone, method.head(backbone.n_features))
    optimiser = make_optimiser(network, settings.optimiser)
    if fabric.world_size > 1:
        share_batch_norm(network)
    if fabric.device.type == "cuda" or settings.run.precision.startswith("bf16"):
        # twice as fast for convolutions
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    if settings.run.compile:
        network.compile()
    wrapped, wrapped_optimiser = fabric.setup(network, optimiser)
    decay = settings.optimiser.weight_average if method.averages_weights else 0.0
    return TrainingSetup(
        fabric=fabric,
        network=network,
        wrapped=wrapped,
        optimiser=wrapped_optimiser,
        # made after `setup`, because the running mean refers to the weights on the device
        average=WeightAverage(trained_weights(network), decay),
        views=views_for(backbone, settings.views),
        feed=Feed(pixels, fabric.device),
    )


def trained_weights(network: Network) -> dict[str, Tensor]:
    """Parameters that are trained and all buffers, by their names in a checkpoint."""
    trained = {name: value for name, value in network.named_parameters() if value.requires_grad}
    return {f"network.{name}": value for name, value in trained.items()} | {
        f"network.{name}": value for name, value in network.named_buffers()
    }
