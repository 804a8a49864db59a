"""ORCA: a margin slows down known classes while the network is unsure about novel ones."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from newfound.bench.classifier import CosineClassifier, entropy_gap, labelled_cross_entropy
from newfound.bench.method import Classifier, ClassifierLearner, Knob
from newfound.deep.method import Batch

#: s, the factor of cosines in logits.
SCALE = 10.0
#: Largest margin that is added to the cosine of the true class.
MARGIN_MAX = 0.5
#: η₁ and η₂, the weights of the pair loss and of the regulariser.
PAIR_WEIGHT = ENTROPY_WEIGHT = 1.0


class ORCA(Classifier):
    """ORCA: a loss on pairs of neighbours, an adaptive margin for labels, and a regulariser.

    With cosines of features and prototypes times s = 10 as logits, pᵢ = softmax(s cos(zᵢ, c)) in
    the first view and pᵢ′ in the second, L = η₁ L_P + L_S + η₂ R, η₁ = η₂ = 1:

    L_P = -1/n Σᵢ Σⱼ wᵢⱼ log ⟨pᵢ, pⱼ′⟩, where a labelled row i is paired with the other rows j of
    its class in the batch, wᵢⱼ = 1 / their number (or with itself if it is the only one), and an
    unlabelled row with the one of all other rows whose feature has the largest cosine with its own;
    L_S = -1/n^l Σᵢ log [e^{s(cosᵢ,y + λū)} / (e^{s(cosᵢ,y + λū)} + Σ_{k≠y} e^{s cosᵢ,k})] over
    the labelled rows, with ū the mean of 1 - max_k p over unlabelled rows and λū at most 0.5:
    while ū is high, the loss of a known class is low even if it is not yet learnt well;
    R = KL(p̄ ‖ uniform) = log K - H(p̄) with the mean p̄ of p over the batch.

    The cluster of a row is the prototype nearest to its feature.

    Departures
    ----------
    - A labelled row is paired with all other rows of its class in equal parts; the authors draw
      one of them. The expectation is the same, and nothing depends on the order of a batch.
    - ū is the mean over the first views of the previous epoch, during which the weights changed.
      The authors run the network over all unlabelled images between epochs. In the first epoch ū
      is 1 and the margin 0.5.
    - Batches hold 64 labelled and 64 unlabelled images. The authors' hold 512, labelled and
      unlabelled ones in proportion. In a smaller batch the nearest neighbour is less often of the
      same class.
    - SGD has the cosine schedule and the weight decay of all methods here, 5e-5, in place of two
      steps at epochs 140 and 180 and 5e-4. Tuning tries that decay.
    """

    title: ClassVar[str] = "ORCA"
    knob = Knob("entropy_weight", ENTROPY_WEIGHT, (0.5, 2.0))
    source: ClassVar[str] = "Cao, Brbić, Leskovec: Open-World Semi-Supervised Learning. ICLR 2022"

    def learner(self, n_known: int, n_components: int) -> ORCALearner:
        """The head and the loss that are trained."""
        return ORCALearner(self.settings, n_known, n_components)


class ORCALearner(ClassifierLearner):
    """The head and the loss of ORCA."""

    knob = ENTROPY_WEIGHT

    def head(self, n_features: int) -> nn.Module:
        """Cosines with K prototypes."""
        self._head = _Head(n_features, self.n_components)
        return self._head

    def logits(self, h: Tensor) -> Tensor:
        """Cosines with the prototypes."""
        return h.float()

    def loss(self, batch: Batch) -> Tensor:
        """L = η₁ L_P + L_S + η₂ R; also records the uncertainty of the unlabelled rows."""
        logits = SCALE * self.logits(batch.h)
        first, second = logits.softmax(dim=-1)
        self._head.start_epoch(batch.epoch)
        margin = self._head.uncertainty.clamp(max=MARGIN_MAX)
        supervised = labelled_cross_entropy(
            with_margin(logits[0], batch.codes, margin), batch.codes
        )
        pairs = pair_loss(first, second, pair_weights(batch.z[0].detach(), batch.codes))
        self._head.add(first.detach(), batch.codes < 0)
        return PAIR_WEIGHT * pairs + supervised + self.knob * entropy_gap(first)


class _Head(nn.Module):
    """A cosine classifier and its uncertainty about unlabelled rows.

    `uncertainty` is ū of the last complete epoch; `total` and `count` are the sums of the current
    epoch, `epoch`. All are buffers, so that a checkpoint has them.
    """

    uncertainty: Tensor
    total: Tensor
    count: Tensor
    epoch: Tensor

    def __init__(self, n_features: int, n_components: int) -> None:
        super().__init__()
        self.classifier = CosineClassifier(n_features, n_components)
        self.register_buffer("uncertainty", torch.tensor(1.0))
        self.register_buffer("total", torch.tensor(0.0))
        self.register_buffer("count", torch.tensor(0))
        self.register_buffer("epoch", torch.tensor(-1))

    def forward(self, features: Tensor) -> Tensor:
        cosines: Tensor = self.classifier(features)
        return cosines

    @torch.no_grad()
    def start_epoch(self, epoch: int) -> None:
        """In a new epoch, set ū to the mean of the previous one, if it had unlabelled rows."""
        continues = self.epoch == epoch
        keep = continues | (self.count == 0)
        mean = self.total / self.count.clamp(min=1)
        self.uncertainty.copy_(torch.where(keep, self.uncertainty, mean))
        self.total.mul_(continues)
        self.count.mul_(continues)
        self.epoch.fill_(epoch)

    @torch.no_grad()
    def add(self, probabilities: Tensor, unlabelled: Tensor) -> None:
        """Add the rows of a batch to the sums."""
        doubt = 1 - probabilities.amax(dim=-1)
        self.total.add_(torch.where(unlabelled, doubt, 0).sum())
        self.count.add_(unlabelled.sum())


def with_margin(logits: Tensor, codes: Tensor, margin: Tensor) -> Tensor:
    """Logits with s·margin added for the class of each labelled row.

    Parameters
    ----------
    logits : Tensor of shape (n, K)
        Cosines times s.
    codes : Tensor of int, shape (n,)
        Known class of each row or -1.
    margin : Tensor
        Scalar.

    Returns
    -------
    Tensor of shape (n, K)
        Logits.
    """
    is_class = codes[:, None] == torch.arange(logits.shape[1], device=codes.device)
    return logits + SCALE * margin * is_class


def pair_weights(z: Tensor, codes: Tensor) -> Tensor:
    """Weights of the pairs of rows that are treated as one class.

    Parameters
    ----------
    z : Tensor of shape (n, d)
        Unit-length features.
    codes : Tensor of int, shape (n,)
        Known class of each row or -1.

    Returns
    -------
    Tensor of shape (n, n)
        Each row sums to 1. A labelled row has equal weights for the other rows of its class, or
        weight 1 for itself if there are none; an unlabelled row has weight 1 for the nearest row.
    """
    itself = torch.eye(len(z), dtype=torch.bool, device=z.device)
    nearest = (z @ z.T).masked_fill(itself, -torch.inf).argmax(dim=1)
    is_nearest = nearest[:, None] == torch.arange(len(z), device=z.device)
    same = (codes[:, None] == codes) & ~itself
    same = torch.where(same.any(dim=1, keepdim=True), same, itself)
    chosen = torch.where(codes[:, None] >= 0, same, is_nearest)
    return chosen / chosen.sum(dim=1, keepdim=True)


def pair_loss(first: Tensor, second: Tensor, weights: Tensor) -> Tensor:
    """Binary cross-entropy of pairs that are treated as one class, -log ⟨pᵢ, pⱼ′⟩.

    Parameters
    ----------
    first, second : Tensor of shape (n, K)
        Predictions for the two views.
    weights : Tensor of shape (n, n)
        Weights of the pairs; each row sums to 1.

    Returns
    -------
    Tensor
        Scalar, the mean over rows.
    """
    agreement = (first @ second.T).clamp(min=1e-30)
    return -(weights * agreement.log()).sum() / len(first)
