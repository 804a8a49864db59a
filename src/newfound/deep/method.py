"""What is learnt: a head and a loss. GPC's own is here; others take its place in the same loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from newfound.deep.estep import Prototypes
from newfound.deep.losses import (
    contrastive_loss,
    pcl_weight,
    prototype_loss,
    supervised_contrastive_loss,
)
from newfound.deep.network import ProjectionHead
from newfound.deep.settings import Settings


@dataclass(frozen=True)
class Batch:
    """One batch as a method sees it; views stand in the first dimension.

    Attributes
    ----------
    z : Tensor of shape (2, n, d)
        Unit-length features of the two views.
    h : Tensor of shape (2, n, p)
        Outputs of the head.
    codes : Tensor of int, shape (n,)
        Known class of each row, -1 where it is unlabelled.
    assigned : Tensor of int, shape (n,)
        Component of each row in the last E-step.
    prototypes : Prototypes or None
        Of the last E-step; None for a method that has none.
    epoch : int
        t, from 0.
    """

    z: Tensor
    h: Tensor
    codes: Tensor
    assigned: Tensor
    prototypes: Prototypes | None
    epoch: int


class Method(Protocol):
    """A way to learn a representation, to be plugged into `newfound.deep.trainer.train`."""

    @property
    def uses_prototypes(self) -> bool:
        """Whether an E-step comes before each epoch."""

    def head(self, n_features: int) -> nn.Module:
        """From features to what `loss` takes."""

    def loss(self, batch: Batch) -> Tensor:
        """The scalar to minimise, over the global batch."""


@dataclass(frozen=True)
class PrototypicalContrast:
    """L = L_CL + λ(t)·L_PCL, with the field's supervised term as a share of the first.

    Attributes
    ----------
    settings : Settings
        Temperatures, weights, warm-up, head.
    """

    settings: Settings

    @property
    def uses_prototypes(self) -> bool:
        """An E-step comes before each epoch."""
        return True

    def head(self, n_features: int) -> nn.Module:
        """MLP, or nothing as in the paper."""
        return ProjectionHead(n_features) if self.settings.projection_head else nn.Identity()

    def loss(self, batch: Batch) -> Tensor:
        """Eq. 3, both views by turns."""
        loss = _contrast(batch, self.settings)
        weight = self.settings.prototype_weight
        weight *= pcl_weight(batch.epoch, self.settings.warmup_epochs)
        if batch.prototypes is None or weight == 0:
            return loss
        v, mu = batch.prototypes.project(batch.z.flatten(0, 1))
        assigned = torch.cat([batch.assigned, batch.assigned])
        tau = self.settings.prototype_temperature
        return loss + weight * prototype_loss(v, mu, assigned, tau)


@dataclass(frozen=True)
class Contrast:
    """Contrastive learning alone: pretraining, and the representation of Vaze's GCD.

    Attributes
    ----------
    settings : Settings
        Temperatures, weight of the supervised term, head.
    """

    settings: Settings

    @property
    def uses_prototypes(self) -> bool:
        """No E-step: nothing is clustered."""
        return False

    def head(self, n_features: int) -> nn.Module:
        """MLP, or nothing."""
        return ProjectionHead(n_features) if self.settings.projection_head else nn.Identity()

    def loss(self, batch: Batch) -> Tensor:
        """Eq. 1 and the supervised term."""
        return _contrast(batch, self.settings)


def _contrast(batch: Batch, settings: Settings) -> Tensor:
    """(1 - w)·L_CL + w·L_supervised, on the outputs of the head."""
    h_a, h_b = functional.normalize(batch.h.float(), dim=-1)
    tau = settings.contrastive_temperature
    loss = (contrastive_loss(h_a, h_b, tau) + contrastive_loss(h_b, h_a, tau)) / 2
    share = settings.supervised_weight
    if share == 0:
        return loss
    supervised = supervised_contrastive_loss(h_a, h_b, batch.codes, settings.supervised_temperature)
    return (1 - share) * loss + share * supervised
