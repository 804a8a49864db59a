"""What is learnt: a head and a loss. The paper's is here; others can replace it in the loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from newfound.arrays import Floats, Ints
from newfound.deep.losses import (
    contrastive_loss,
    pcl_weight,
    prototype_loss,
    shares_of_other_view,
    size_loss,
    supervised_contrastive_loss,
)
from newfound.deep.network.head import ProjectionHead
from newfound.deep.partition import Clusters, Round, find_clusters
from newfound.deep.prototypes import Prototypes
from newfound.deep.settings import LossSettings, Settings
from newfound.mixture.counting.count import CategoryCount


@dataclass(frozen=True)
class Batch:
    """One batch, as a method gets it; the first dimension of `z` and `h` is the view.

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
        Prototypes of the last E-step; None for a method that has none.
    epoch : int
        t, counted from 0.
    rows : Tensor of int, shape (n,), or None
        Numbers of the rows among all images, for a method that remembers something of each.
    """

    z: Tensor
    h: Tensor
    codes: Tensor
    assigned: Tensor
    prototypes: Prototypes | None
    epoch: int
    rows: Tensor | None = None


class Method(ABC):
    """A way to learn a representation, for `newfound.deep.trainer.train`.

    Attributes
    ----------
    settings : Settings
        All settings: temperatures, weights, warm-up, E-step.
    uses_prototypes : bool
        Whether an E-step comes before each epoch.
    ends_with_mixture : bool
        Whether a mixture is fitted to the finished features, if there are E-steps.
    averages_weights : bool
        Whether the E-step and the result use the running mean of the weights.
    expects_sizes : bool
        Whether the E-step heeds expected sizes, unless the setting ``sizes`` is "none".
    reassigns : bool
        Whether between moves rows only go to the nearest prototype, in the process that has them;
        otherwise `partition` is asked in each epoch.
    sizes_in_training, sizes_at_end : bool
        Whether it does so during training (D27), and in the final mixture (D28).
    """

    uses_prototypes: bool = False
    ends_with_mixture: bool = True
    averages_weights: bool = False
    expects_sizes: bool = False
    reassigns: bool = True
    sizes_in_training: bool = True
    sizes_at_end: bool = True

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @abstractmethod
    def head(self, n_features: int) -> nn.Module:
        """The module from features to what `loss` takes."""

    @abstractmethod
    def loss(self, batch: Batch) -> Tensor:
        """The scalar to minimise, over the batch of all processes."""

    def partition(
        self,
        X: Floats,
        codes: Ints,
        labels: Ints | None,
        *,
        moves: bool,
        seed: int,
        count: CategoryCount | None,
    ) -> Clusters:
        """The partition of an E-step, by default that of the mixture; see `find_clusters`.

        It is called in the first process, with the rows of all processes.
        """
        return find_clusters(X, codes, labels, self.settings.estep, Round(moves, seed, count))


class PrototypicalContrast(Method):
    """L = L_CL + λ(t)·(L_PCL + L_size), where L_CL may have a supervised share."""

    uses_prototypes = True
    averages_weights = True
    expects_sizes = True

    def head(self, n_features: int) -> nn.Module:
        """An MLP, or nothing as in the paper."""
        return ProjectionHead(n_features) if self.settings.losses.projection_head else nn.Identity()

    def loss(self, batch: Batch) -> Tensor:
        """Eq. 3, with each view once as the anchor."""
        loss = mixed_contrast(batch.h, batch.codes, self.settings.losses)
        weight = self.settings.losses.prototype_weight
        weight *= pcl_weight(batch.epoch, self.settings.losses.warmup_epochs)
        if batch.prototypes is None or weight == 0:
            return loss
        v, mu = batch.prototypes.project(batch.z.flatten(0, 1))
        tau, is_free = self.settings.losses.prototype_temperature, batch.codes < 0
        targets = torch.cat([batch.assigned, batch.assigned])
        if self.settings.losses.target_temperature > 0:
            of_targets = self.settings.losses.target_temperature
            targets = shares_of_other_view(v, mu, batch.assigned, is_free, of_targets)
        loss = loss + weight * prototype_loss(v, mu, targets, tau)
        if batch.prototypes.excess is None:
            return loss
        sized = size_loss(v, mu, batch.prototypes.excess, torch.cat([is_free, is_free]), tau)
        return loss + weight * sized


class Contrast(Method):
    """Contrastive learning alone: pretraining, and the representation of Vaze's GCD."""

    def head(self, n_features: int) -> nn.Module:
        """An MLP, or nothing."""
        return ProjectionHead(n_features) if self.settings.losses.projection_head else nn.Identity()

    def loss(self, batch: Batch) -> Tensor:
        """Eq. 1 and the supervised term."""
        return mixed_contrast(batch.h, batch.codes, self.settings.losses)


def mixed_contrast(h: Tensor, codes: Tensor, settings: LossSettings) -> Tensor:
    """(1 - w)·L_CL + w·L_supervised.

    Parameters
    ----------
    h : Tensor of shape (2, n, p)
        Outputs of a projection head for two views.
    codes : Tensor of int, shape (n,)
        Known class of each row or -1.
    settings : LossSettings
        w (``supervised_weight``) and the temperatures.

    Returns
    -------
    Tensor
        Scalar.
    """
    h_a, h_b = functional.normalize(h.float(), dim=-1)
    tau = settings.contrastive_temperature
    loss = (contrastive_loss(h_a, h_b, tau) + contrastive_loss(h_b, h_a, tau)) / 2
    share = settings.supervised_weight
    if share == 0:
        return loss
    supervised = supervised_contrastive_loss(h_a, h_b, codes, settings.supervised_temperature)
    return (1 - share) * loss + share * supervised
