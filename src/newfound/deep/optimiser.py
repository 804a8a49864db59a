"""The optimiser of the M-step and its learning rate."""

from __future__ import annotations

import math

import torch
from torch import nn

from newfound.deep.settings import OptimiserSettings


def make_optimiser(network: nn.Module, settings: OptimiserSettings) -> torch.optim.SGD:
    """SGD over the parameters that are trained, without decay on biases and norms.

    Parameters
    ----------
    network : nn.Module
        Parameters that need no gradient are left out.
    settings : OptimiserSettings
        Learning rate, momentum and weight decay.

    Returns
    -------
    torch.optim.SGD
        With one group for matrices and one for vectors.
    """
    trained = [value for value in network.parameters() if value.requires_grad]
    matrices = [value for value in trained if value.ndim > 1]
    vectors = [value for value in trained if value.ndim <= 1]
    groups = [
        {"params": matrices, "weight_decay": settings.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.SGD(groups, lr=settings.learning_rate, momentum=settings.momentum)


def cosine_rate(epoch: int, n_epochs: int, learning_rate: float) -> float:
    """Learning rate of an epoch: a half cosine from `learning_rate` to a thousandth of it.

    Parameters
    ----------
    epoch : int
        Counted from 0.
    n_epochs : int
        Number of epochs of the run.
    learning_rate : float
        The rate of epoch 0.
    """
    least = learning_rate * 1e-3
    return least + (learning_rate - least) * (1 + math.cos(math.pi * epoch / n_epochs)) / 2
