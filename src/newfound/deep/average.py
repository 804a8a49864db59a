"""A running mean of the weights, whose features are steadier than those of the last step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


class WeightAverage:
    """Exponential mean over the steps of the optimiser, μ ← δₜ·μ + (1-δₜ)·w.

    δₜ = min(δ, (1+t)/(10+t)): during the first steps the mean covers the latest ones only, so that
    random initial weights are soon forgotten.

    Parameters
    ----------
    weights : dict of str to Tensor
        The present weights, by reference; integer tensors are left out.
    decay : float
        δ, in [0, 1). With 0 nothing is stored: the mean is the present weights.
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
        """Restore the mean from the tensors of a checkpoint."""
        for name, mean in self._mean.items():
            mean.copy_(tensors[f"average.{name}"])
        if self._mean:
            self._n_steps = int(tensors["n_averaged"])

    @torch.no_grad()
    def update(self) -> None:
        """Update the mean with the weights after a step."""
        if self._mean:
            decay = min(self._decay, (1 + self._n_steps) / (10 + self._n_steps))
            now = [w.detach() for w in self._now.values()]
            torch._foreach_lerp_(list(self._mean.values()), now, 1 - decay)
            self._n_steps += 1

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Use the mean as weights inside a ``with`` block, and restore the weights after it."""
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
    """The weights of a run's result, from a checkpoint: their mean, if the file has one.

    Parameters
    ----------
    tensors : dict of str to Tensor
        Tensors of the checkpoint.

    Returns
    -------
    dict of str to Tensor
        Weights by their names in the network.
    """
    prefix = "network."
    return {
        name[len(prefix) :]: tensors.get(f"average.{name}", tensor)
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
