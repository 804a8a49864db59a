"""RankStats+: two images are of one class if their features have the same largest values."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from newfound.bench.classifier import labelled_cross_entropy
from newfound.bench.method import ClassifierLearner, Knob
from newfound.bench.methods.joint import JointClassifier, JointMixture
from newfound.deep.method import Batch

#: k, the number of largest values whose positions must agree.
TOP_K = 5
#: Largest weight of the consistency, and the share of the epochs after which it is reached.
CONSISTENCY, RAMP_SHARE = 50.0, 0.75
#: AutoNovel's own value for small data sets, and one between.
KNOB = Knob("consistency", CONSISTENCY, (5.0, 15.0))
#: Keeps the logarithm finite.
_LEAST = 1e-7


class RankStats(JointClassifier):
    """RankStats+: AutoNovel's ranking statistics with one classifier for known and novel classes.

    Two unlabelled images i and j count as one class, s_ij = 1, if the k = 5 values of the
    backbone's feature that are largest in magnitude have the same positions. With p and p′ the
    softmax of the K outputs for the first and the second view:

    L_BCE = -mean_ij [s_ij log(p_i·p_j′) + (1 - s_ij) log(1 - p_i·p_j′)], over unlabelled rows,
    L_CE = -mean_i log p_i[y_i], over labelled rows,
    L_MSE = mean (p - p′)², over all rows and outputs,
    L = L_CE + L_BCE + ω(t)·L_MSE, with ω(t) = 50·exp(-5 (1 - t/T)²) up to T, then 50.

    The classifier is linear with a bias, on features that are not normalised. The cluster of a row
    is its largest output.

    Departures
    ----------
    - There are no earlier stages. The original pretrains on rotations and then on labels; here, as
      in the GCD paper, training starts from the weights of the backbone.
    - The cross-entropy is over all K outputs. The GCD paper says that the first K^l outputs are
      trained with it; in its authors' code the softmax is over all outputs. If it were over the
      first K^l only, nothing would keep images of known classes from novel outputs: on digits (8
      classes, 5 known, two seeds) Old was 22 % and 13 %, with all outputs 80 % and 59 %.
    - Pairs consist of unlabelled rows, as in AutoNovel. In the GCD authors' code they consist of
      all rows of the batch, and labelled rows are also compared by their ranking.
    - Values are ranked by magnitude, as in AutoNovel's paper. Its code ranks values after a ReLU,
      where this makes no difference.
    - Ties are broken by position.
    - T is three quarters of the epochs (150 of 200 in the original), and the largest weight is 50
      on all data sets (the original uses 5 for CIFAR-10 and SVHN). In the GCD authors' code L_MSE
      counts twice, for AutoNovel's two classifiers; here it counts once.
    - As for every method here, a batch holds exactly 64 labelled and 64 unlabelled images, the
      learning rate falls along a cosine and not in steps, the weight decay is 5e-5 (AutoNovel's:
      1e-4), and the last epoch is scored.
    - With ``joint=True`` the classifier is normalised, cos(z, w_k) / 0.1 without a bias, because
      its weights are cluster centres.
    """

    title: ClassVar[str] = "RankStats+"
    knob = KNOB
    source: ClassVar[str] = (
        "Han, Rebuffi, Ehrhardt, Vedaldi, Zisserman: AutoNovel. TPAMI 2021; adapted as in Vaze, "
        "Han, Vedaldi, Zisserman: Generalized Category Discovery. CVPR 2022"
    )

    def learner(self, n_known: int, n_components: int) -> ClassifierLearner:
        """The head and the loss that are trained."""
        kind = JointRanking if self.joint else Ranking
        return kind(self.settings, n_known, n_components)


def same_ranking(features: Tensor, top_k: int = TOP_K) -> Tensor:
    """Ranking statistics: which pairs of rows have their k largest values at the same positions.

    s_ij = 1 if top_k(z_i) = top_k(z_j) as sets, else 0. top_k(z) are the positions of the k values
    of z that are largest in magnitude; ties are broken by position.

    Parameters
    ----------
    features : Tensor of shape (n, d)
        z, of any length.
    top_k : int
        k. With d or more, all rows agree.

    Returns
    -------
    Tensor of bool, shape (n, n)
        s.
    """
    order = features.detach().abs().argsort(dim=1, descending=True, stable=True)
    places = order[:, :top_k].sort(dim=1).values
    return (places[:, None] == places).all(dim=2)


def pairwise_loss(p_a: Tensor, p_b: Tensor, same: Tensor, rows: Tensor) -> Tensor:
    """Binary cross-entropy of pairs: whether two images have the same class.

    L = -mean_ij [s_ij log(p_i·p_j′) + (1 - s_ij) log(1 - p_i·p_j′)], over all pairs (i, j) of
    the rows that count, including i = j.

    Parameters
    ----------
    p_a, p_b : Tensor of shape (n, K)
        p and p′, probabilities of the classes in the first and the second view.
    same : Tensor of bool, shape (n, n)
        s.
    rows : Tensor of bool, shape (n,)
        Which rows count.

    Returns
    -------
    Tensor
        Scalar; 0 if no row counts.
    """
    agreement = p_a @ p_b.T
    likelihood = torch.where(same, agreement, 1 - agreement).clamp(min=0)
    pairs = rows[:, None] & rows
    loss = torch.where(pairs, -(likelihood + _LEAST).log(), 0)
    return loss.sum() / pairs.sum().clamp(min=1)


def consistency_weight(epoch: int, n_epochs: int, largest: float = CONSISTENCY) -> float:
    """Weight of the consistency of two views, ω(t) = 50·exp(-5 (1 - t/T)²) up to T, then 50.

    Parameters
    ----------
    epoch : int
        t, counted from 0.
    n_epochs : int
        Number of epochs; T is three quarters of it.
    largest : float
        The weight from T on, in place of 50.
    """
    progress = min(1.0, epoch / max(1.0, RAMP_SHARE * n_epochs))
    return largest * math.exp(-5 * (1 - progress) ** 2)


def branch_loss(logits: Tensor, statistic: Tensor, codes: Tensor, weight: float) -> Tensor:
    """The loss of a classifier: labels, ranking statistics, and consistency of two views.

    L = L_CE + L_BCE + ω·mean (p - p′)².

    Parameters
    ----------
    logits : Tensor of shape (2, n, K)
        Outputs for the two views; -inf for an output that is not in use.
    statistic : Tensor of shape (n, d)
        The values that are ranked, from the first view.
    codes : Tensor of int, shape (n,)
        Known class of each row or -1.
    weight : float
        ω.

    Returns
    -------
    Tensor
        Scalar.
    """
    p_a, p_b = logits.softmax(dim=2)
    # outputs that are not in use (-inf) are left out of the mean
    consistency = (p_a - p_b).square().sum() / torch.isfinite(logits[0]).sum().clamp(min=1)
    pairs = pairwise_loss(p_a, p_b, same_ranking(statistic), codes < 0)
    return labelled_cross_entropy(logits[0], codes) + pairs + weight * consistency


class Ranking(ClassifierLearner):
    """One linear classifier for all K classes, trained by `branch_loss`."""

    knob = CONSISTENCY

    def head(self, n_features: int) -> nn.Module:
        """The classifier."""
        return self.classifier_for(n_features)

    def classifier_for(self, n_features: int) -> nn.Module:
        """K outputs with a bias, from features that are not normalised."""
        return nn.Linear(n_features, self.n_components)

    def loss(self, batch: Batch) -> Tensor:
        """`branch_loss` with the backbone's features ranked."""
        weight = consistency_weight(batch.epoch, self.settings.optimiser.epochs, self.knob)
        return branch_loss(batch.h.float(), batch.z[0], batch.codes, weight)

    def logits(self, h: Tensor) -> Tensor:
        """All outputs."""
        return h


class JointRanking(JointMixture, Ranking):
    """`Ranking` with a classifier whose outputs the mixture splits and merges."""
