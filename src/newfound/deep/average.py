"""A running mean of the weights: steadier features than those of the last step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


class WeightAverage:
    """Exponential mean over the steps of the optimiser, μ ← δₜ·μ + (1-δₜ)·w.

    δₜ = min(δ, (1+t)/(10+t)): over few steps the mean is of the last ones, so that weights that
    began at random are soon forgotten.

    Parameters
    ----------
    weights : dict of str to Tensor
        The present ones, by reference; tensors of whole numbers are left out.
    decay : float
        δ, in [0, 1); with 0 the mean is the present weights, and nothing is kept.
    """

    def __init__(self, weights: dict[str, Tensor], decay: float) -> None:
        self._decay = decay
        self._now = {name: w for name, w in weights.items() if w.is_floating_point() and decay > 0}
        self._mean = {name: w.detach().clone() for name, w in self._now.items()}
        self._n_steps = 0

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The mean of each tensor and the number of steps, for a checkpoint."""
        if not self._mean:
            return {}
        means = {f"average.{name}": mean for name, mean in self._mean.items()}
        return means | {"n_averaged": torch.tensor(self._n_steps)}

    @torch.no_grad()
    def load(self, tensors: dict[str, Tensor]) -> None:
        """Go on from `tensors` of a checkpoint."""
        for name, mean in self._mean.items():
            mean.copy_(tensors[f"average.{name}"])
        if self._mean:
            self._n_steps = int(tensors["n_averaged"])

    @torch.no_grad()
    def update(self) -> None:
        """Take in the weights after a step."""
        if self._mean:
            decay = min(self._decay, (1 + self._n_steps) / (10 + self._n_steps))
            now = [w.detach() for w in self._now.values()]
            torch._foreach_lerp_(list(self._mean.values()), now, 1 - decay)
            self._n_steps += 1

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Put the mean in the place of the weights, and the weights back afterwards."""
        self.swap()
        try:
            yield
        finally:
            self.swap()

    @torch.no_grad()
    def swap(self) -> None:
        """Exchange the mean and the weights."""
        for name, mean in self._mean.items():
            now = self._now[name]
            kept = now.clone()
            now.copy_(mean)
            mean.copy_(kept)


def weights_of_result(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights that a run's result has, from a checkpoint: their mean, where there is one.

    Parameters
    ----------
    tensors : dict of str to Tensor
        Of the checkpoint.

    Returns
    -------
    dict of str to Tensor
        By their names in the network.
    """
    prefix = "network."
    return {
        name[len(prefix) :]: tensors.get(f"average.{name}", tensor)
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
