"""Batch norm over the whole batch, of which each process has a part.

Otherwise the statistics of a batch, and with them the result, would depend on the number of
processes. torch's `SyncBatchNorm` does this on GPUs only, and does not know the activations that
timm's layers have beside their norm.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


class SharedBatchNorm(_BatchNorm):
    """Batch norm with the mean and the variance over the rows of all processes.

    Made by `share_batch_norm` only. All processes need equal numbers of rows.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Normalise, and apply what timm's `BatchNormAct2d` has beside its norm."""
        x = self._normalise(x) if self.training else super().forward(x)
        for name in ("drop", "act"):
            if hasattr(self, name):
                x = getattr(self, name)(x)
        return x

    def _normalise(self, x: Tensor) -> Tensor:
        """Normalise by the statistics of the batch, and remember them."""
        dims, shape = [0, *range(2, x.ndim)], [1, -1, *[1] * (x.ndim - 2)]
        n = x.numel() // x.shape[1] * torch.distributed.get_world_size()
        mean = _total(x.float().sum(dims)) / n
        centred = x.float() - mean.view(shape)
        variance = _total(centred.square().sum(dims)) / n
        if self.running_mean is not None and self.running_var is not None:
            assert self.num_batches_tracked is not None
            self.num_batches_tracked += 1
            share = 1 / int(self.num_batches_tracked) if self.momentum is None else self.momentum
            self.running_mean.lerp_(mean.detach(), share)
            self.running_var.lerp_(variance.detach() * n / (n - 1), share)
        normalised = centred * (variance + self.eps).rsqrt().view(shape)
        if self.affine:
            normalised = normalised * self.weight.view(shape) + self.bias.view(shape)
        return normalised.to(x.dtype)

    def _check_input_dim(self, input: Tensor) -> None:
        """Take inputs of all numbers of dimensions, as `SyncBatchNorm` does."""


class _Total(torch.autograd.Function):
    """Sum over all processes; so is its gradient."""

    @staticmethod
    def forward(ctx: Any, part: Tensor) -> Tensor:
        del ctx
        total = part.clone()
        torch.distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return _Total.forward(ctx, gradient)


def _total(part: Tensor) -> Tensor:
    total: Tensor = _Total.apply(part)  # type: ignore[no-untyped-call]
    return total


def share_batch_norm(network: nn.Module) -> None:
    """Let all batch norms of a network look at the rows of all processes.

    Parameters
    ----------
    network : nn.Module
        Changed in place. The modules stay the same objects, because a `Backbone` refers to some.
    """
    for module in network.modules():
        if isinstance(module, _BatchNorm):
            module.__class__ = SharedBatchNorm
