"""UNO+: one objective for labels and for pseudo-labels that use all classes evenly."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from newfound.bench.classifier import CosineClassifier
from newfound.bench.method import Classifier, ClassifierLearner, Knob
from newfound.deep.method import Batch

TEMPERATURE = 0.1
#: Number of heads for novel classes. As many over-clustering heads have 3 times the outputs.
N_HEADS, OVERCLUSTERING = 4, 3
#: Entropy weight and iterations of the Sinkhorn-Knopp algorithm.
EPSILON, N_ITERATIONS = 0.05, 3


class UNO(Classifier):
    """UNO+: swapped prediction of labels and balanced pseudo-labels in one cross-entropy.

    A known head has K^l prototypes and takes the unit-length feature z. Each of H = 4 novel heads
    has its own MLP g_h and K^n = K - K^l prototypes, and each of 4 over-clustering heads three
    times as many. Prototypes have unit length. The outputs of each head are joined with those of
    the known head: l_h = [C·z, C_h·g_h(z)], p_h = softmax(l_h / 0.1).

    The target t of a labelled row is its one-hot class. The targets of the unlabelled rows of a
    batch are the plan Q that spreads them evenly over ALL outputs, also known ones (the "+"),
    max_Q Tr(Q l_h) + ε H(Q), Q 1 = 1, Qᵀ 1 = n^u / K, by 3 iterations of Sinkhorn-Knopp with
    ε = 0.05. Each view is predicted from the other one's target,

    L_h = 1/2n Σᵢ [ℓ(tᵢ′, pᵢ) + ℓ(tᵢ, pᵢ′)], with the cross-entropy ℓ,

    and L is the mean over all heads. The novel head with the smallest loss over the last epoch
    decides the clusters.

    Departures
    ----------
    - There is no supervised pretraining on the known classes, and there are no small crops: all
      methods start from the same weights and see two views.
    - Batches hold 64 labelled and 64 unlabelled images; the authors' hold 256 or 512, drawn from
      all images. If K is more than 64, a plan gives less than one row to an output.
    - SGD, learning rate, weight decay and cosine are those of all methods, without the linear
      warm-up: 0.1 instead of 0.4, and 5e-5 instead of 1.5e-4. The views are those of all methods
      here. Tuning tries other rates and decays.
    - Over-clustering is by 3; the commands of the adapted version use 5.
    - Prototypes are normalised in the forward pass, with a gradient through it, instead of by a
      projection before each step.
    - Batch statistics in the MLPs are over both views together, and the MLPs are narrower for a
      backbone with fewer than 512 features.
    - There are 4 heads, as in the authors' commands for CIFAR.
    """

    title: ClassVar[str] = "UNO+"
    knob = Knob("temperature", TEMPERATURE, (0.05, 0.2))
    source: ClassVar[str] = (
        "Fini, Sangineto, Lathuilière, Zhong, Nabi, Ricci: A Unified Objective for Novel Class "
        "Discovery. ICCV 2021; adapted as in Vaze, Han, Vedaldi, Zisserman: Generalized Category "
        "Discovery. CVPR 2022"
    )

    def learner(self, n_known: int, n_components: int) -> UNOLearner:
        """The head and the loss that are trained."""
        return UNOLearner(self.settings, n_known, n_components)


class UNOLearner(ClassifierLearner):
    """The heads and the loss of UNO+."""

    knob = TEMPERATURE

    def head(self, n_features: int) -> nn.Module:
        """Known prototypes, novel heads and over-clustering heads, side by side."""
        self._head = _Head(n_features, self.n_known, self.n_components - self.n_known)
        return self._head

    def logits(self, h: Tensor) -> Tensor:
        """Cosines with the K prototypes of the head with the smallest loss."""
        clusters, _ = self._cut(h.float())
        return clusters[self._head.losses.argmin()]

    def loss(self, batch: Batch) -> Tensor:
        """The mean over heads of swapped predictions; also records the losses of novel heads."""
        clusters, over_clusters = self._cut(batch.h.float())
        losses = swapped_prediction(clusters, batch.codes, self.knob)
        self._head.add_losses(losses.detach(), batch.epoch)
        over = swapped_prediction(over_clusters, batch.codes, self.knob)
        return (losses.mean() + over.mean()) / 2

    def _cut(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs of each head, (H, ..., K^l + K^n) and (H, ..., K^l + 3·K^n), from (..., p)."""
        n_novel = N_HEADS * (self.n_components - self.n_known)
        parts = torch.split(h, [self.n_known, n_novel, OVERCLUSTERING * n_novel], dim=-1)
        known = parts[0].expand(N_HEADS, *parts[0].shape)
        novel, over = (
            part.reshape(*part.shape[:-1], N_HEADS, part.shape[-1] // N_HEADS).movedim(-2, 0)
            for part in parts[1:]
        )
        return torch.cat([known, novel], dim=-1), torch.cat([known, over], dim=-1)


class _Head(nn.Module):
    """All outputs side by side, and sums of losses by which the novel heads are compared."""

    losses: Tensor
    epoch: Tensor

    def __init__(self, n_features: int, n_known: int, n_novel: int) -> None:
        super().__init__()
        self.known = CosineClassifier(n_features, n_known)
        sizes = [n_novel] * N_HEADS + [OVERCLUSTERING * n_novel] * N_HEADS
        self.novel = nn.ModuleList(_projected_classifier(n_features, size) for size in sizes)
        self.register_buffer("losses", torch.zeros(N_HEADS))
        self.register_buffer("epoch", torch.tensor(-1))

    def forward(self, features: Tensor) -> Tensor:
        z = functional.normalize(features.float(), dim=1)
        return torch.cat([self.known(z), *(head(z) for head in self.novel)], dim=1)

    @torch.no_grad()
    def add_losses(self, losses: Tensor, epoch: int) -> None:
        """Add the losses of a batch to those of its epoch."""
        self.losses.mul_(self.epoch == epoch).add_(losses)
        self.epoch.fill_(epoch)


def _projected_classifier(n_features: int, n_outputs: int) -> nn.Sequential:
    """MLP d → 2048 → 256 followed by prototypes; narrower for a small backbone."""
    n_hidden, n_projected = min(2048, 4 * n_features), min(256, n_features)
    return nn.Sequential(
        nn.Linear(n_features, n_hidden),
        nn.BatchNorm1d(n_hidden),
        nn.ReLU(),
        nn.Linear(n_hidden, n_projected),
        CosineClassifier(n_projected, n_outputs),
    )


def swapped_prediction(cosines: Tensor, codes: Tensor, temperature: float = TEMPERATURE) -> Tensor:
    """Cross-entropy of each view with the target of the other.

    Parameters
    ----------
    cosines : Tensor of shape (H, 2, n, K)
        Cosines of two views with the prototypes of each head, known ones first.
    codes : Tensor of int, shape (n,)
        Known class of each row, the target of both views; -1 for a row with a pseudo-label.
    temperature : float
        τ of the predictions.

    Returns
    -------
    Tensor of shape (H,)
        Mean over rows and views.
    """
    unlabelled = codes < 0
    outputs = torch.arange(cosines.shape[-1], device=codes.device)
    given = (codes[:, None] == outputs).float()
    target = torch.where(unlabelled[:, None], deal_evenly(cosines.detach(), unlabelled), given)
    log_share = functional.log_softmax(cosines / temperature, dim=-1)
    return -(target.flip(1) * log_share).sum(dim=-1).mean(dim=(1, 2))


def deal_evenly(
    cosines: Tensor,
    rows: Tensor,
    *,
    epsilon: float = EPSILON,
    n_iterations: int = N_ITERATIONS,
) -> Tensor:
    """Soft pseudo-labels that use all outputs evenly, by Sinkhorn-Knopp.

    Starting from exp(l / ε), columns and rows are scaled to their sums in turn, rows last.

    Parameters
    ----------
    cosines : Tensor of shape (..., n, K)
        l.
    rows : Tensor of bool, shape (n,)
        Which rows are spread over the outputs. The values of other rows have no meaning.
    epsilon : float
        ε. With a smaller value labels are closer to one-hot.
    n_iterations : int
        Number of iterations.

    Returns
    -------
    Tensor of shape (..., n, K)
        Each row sums to 1, and each column, nearly, to the number of chosen rows / K.
    """
    log_plan = cosines / epsilon
    # a tiny weight instead of 0, because sums over no row at all would not be finite
    log_weight = torch.where(rows, 0.0, -1e4)[:, None]
    for _ in range(n_iterations):
        log_plan = log_plan - (log_plan + log_weight).logsumexp(dim=-2, keepdim=True)
        log_plan = log_plan.log_softmax(dim=-1)
    return log_plan.exp()
