"""BaCon: a classifier and a contrastive branch that advise each other, for classes of unequal size.

The clusters of the features say how large classes are, which keeps the classifier from making them
equal; the classifier says which images are alike, which the contrastive branch learns.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn
from torch.nn import functional

from newfound.arrays import Doubles, Floats, Ints
from newfound.bench.classifier import CosineClassifier, entropy_gap, labelled_cross_entropy
from newfound.bench.method import BenchMethod, ClassifierLearner, Knob
from newfound.bench.methods.simgcd import (
    STUDENT_TEMPERATURE,
    distillation_loss,
    teacher_temperature,
)
from newfound.deep.losses import contrastive_loss, supervised_contrastive_loss
from newfound.deep.method import Batch
from newfound.deep.network.head import ProjectionHead
from newfound.deep.partition import Clusters
from newfound.deep.settings import Settings
from newfound.labels import UNLABELLED
from newfound.mixture.assignment import prototypes_of
from newfound.mixture.counting.count import CategoryCount
from newfound.mixture.kmeans import SemiSupervisedKMeans
from newfound.mixture.projection import Projection, unit_rows

#: τ of InfoNCE; that of the supervised and of the soft term is 0.07.
CONTRASTIVE_TEMPERATURE = 1.0
#: Weight of the regularisation, and p, the power of the estimated sizes in it.
SIZE_WEIGHT, SIZE_POWER = 1.0, 1.1
#: Powers of the sizes: in the adjustment of logits, and β, in the rates at which rows are drawn for
#: the soft term.
ADJUSTMENT_POWER, RATE_POWER = 0.5, 0.5
#: Epochs before the soft term.
N_WARMUP = 1
#: Starts of the k-means that estimates sizes.
N_STARTS = 3


class BaCon(BenchMethod):
    """BaCon: self-balanced co-advice of a classifier and a contrastive branch.

    Sizes r of all K classes are estimated every 10 epochs: by k-means of all features, whose
    clusters are matched to the known classes. With the cosine classifier's p = softmax(z·c / 0.1),

    L_cls = (1 - λ) [ℓ(q′, p) + w (log K - H(p̃))] + λ ℓ(y, p), with p̃ ∝ p̄ / r^1.1,

    where q′ is SimGCD's teacher. With soft labels s = softmax(z·c / 0.1 - log r^0.5), the mean over
    both views, and weights s_i·s_j of the pairs of rows,

    L_con = (1 - λ) L_InfoNCE + λ/2 L_SupCon + λ/2 L_soft,

    L_soft = -mean_i Σ_j s_i·s_j log [exp(h_i·h_j / 0.07) / Σ_a exp(h_i·h_a / 0.07)] / Σ_j s_i·s_j,

    over all views of labelled rows and of those unlabelled rows that are drawn: the most confident
    ones of each predicted class k, each with the chance (min r / r_k)^0.5, but 1 if the batch has
    labels of that class. L is the sum of both. After training, semi-supervised k-means clusters the
    features.

    Departures
    ----------
    - Both branches share the trained part of the network; in the authors' code each has a copy of
      the last block, with an optimiser of its own.
    - The authors score the best epoch on a test set, clustered by k-means without labels. Here it
      is the last epoch, and semi-supervised k-means of all rows, as for GCD.
    - The k-means that estimates sizes has 3 starts; the authors' is that of scikit-learn.
    - In a run of fewer than 200 epochs the teacher's warm-up is shortened, as for SimGCD.
    - Batches hold 64 + 64 images, the authors' 256; their learning rate for CIFAR-10 is 0.01. The
      projection head has 256 outputs, the authors' 65,536. InfoNCE compares with rows of the
      other view only.
    """

    title = "BaCon"
    source = (
        "Bai, Liu, Wang, Chen, Mu, Li, Zhou, Feng, Wu, Hu: Towards Distribution-Agnostic "
        "Generalized Category Discovery. NeurIPS 2023"
    )
    uses_starts: ClassVar[bool] = True
    knob = Knob("size_weight", SIZE_WEIGHT, (0.5, 2.0))

    def _fit_images(self, pixels: npt.NDArray[np.uint8], codes: Ints) -> None:
        assert self.n_components is not None
        learner = BaConLearner(self.own_settings(), int(codes.max()) + 1, self.n_components)
        learner.knob = self.knob_value
        clustering, self.settings = self.settings, learner.settings
        self._train(learner, pixels, codes)
        self.settings = clustering
        k_means = SemiSupervisedKMeans(
            self.n_components,
            n_init=self.n_starts,
            max_iter=200,
            random_state=self.settings.run.seed,
        )
        self.labels_ = k_means.fit(unit_rows(self.features_), codes).labels_
        self.n_components_ = k_means.n_components_

    def own_settings(self) -> Settings:
        """The settings, with those that keep the E-step from counting and reducing."""
        return self.settings.with_changes(
            contrastive_temperature=CONTRASTIVE_TEMPERATURE,
            acceptance="literal",
            sizes="none",
            pca="off",
        )


class BaConLearner(ClassifierLearner):
    """The heads, the estimate of sizes, and the losses of BaCon."""

    knob = SIZE_WEIGHT
    uses_prototypes = True  # k-means comes before an epoch; its centres are not used
    ends_with_mixture = False
    reassigns = False

    def head(self, n_features: int) -> nn.Module:
        """Cosines with K prototypes, then the projection; beside them the estimated sizes."""
        self._head = _Head(n_features, self.n_components)
        return self._head

    def logits(self, h: Tensor) -> Tensor:
        """Cosines with the prototypes."""
        return h[..., : self.n_components].float()

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
        """Cluster without labels and estimate the sizes, if that is due."""
        if labels is None or moves:
            k_means = SemiSupervisedKMeans(self.n_components, n_init=N_STARTS, random_state=seed)
            labels = k_means.fit(X).labels_
            sizes = estimate_sizes(labels, codes, self.n_components)
            self._head.sizes.copy_(torch.from_numpy(sizes))
        n_known = int(codes.max()) + 1
        return Clusters(labels, n_known, X, prototypes_of(X, codes, labels, n_known), Projection())

    def loss(self, batch: Batch) -> Tensor:
        """L_cls + L_con."""
        settings, sizes = self.settings.losses, self._head.sizes.float()
        share, cosines = settings.supervised_weight, self.logits(batch.h)
        student = cosines / STUDENT_TEMPERATURE
        tau = teacher_temperature(batch.epoch, self.settings.optimiser.epochs)
        clustering = distillation_loss(student, cosines / tau)
        clustering = clustering + self.knob * sized_gap(student.softmax(dim=-1), sizes)
        loss = (1 - share) * clustering + share * labelled_cross_entropy(student, batch.codes)
        h = functional.normalize(batch.h[..., self.n_components :].float(), dim=-1)
        tau = settings.contrastive_temperature
        info = (contrastive_loss(h[0], h[1], tau) + contrastive_loss(h[1], h[0], tau)) / 2
        tau = settings.supervised_temperature
        supervised = supervised_contrastive_loss(h[0], h[1], batch.codes, tau)
        if batch.epoch >= N_WARMUP:
            soft = soft_labels(student.detach(), sizes)
            rows = draw_rows(soft, batch.codes, sizes)
            supervised = (supervised + soft_contrastive_loss(h, soft, rows, tau)) / 2
        return loss + (1 - share) * info + share * supervised


class _Head(nn.Module):
    """K cosines and a projection, side by side, and the estimated sizes."""

    sizes: Tensor

    def __init__(self, n_features: int, n_components: int) -> None:
        super().__init__()
        self.classifier = CosineClassifier(n_features, n_components)
        self.projection = ProjectionHead(n_features)
        # whole numbers: the average of the weights leaves them out, so an E-step can write them
        self.register_buffer("sizes", torch.ones(n_components, dtype=torch.int64))

    def forward(self, features: Tensor) -> Tensor:
        return torch.cat([self.classifier(features), self.projection(features).float()], dim=1)


def estimate_sizes(labels: Ints, codes: Ints, n_components: int) -> Doubles:
    """Sizes of all classes, from clusters that saw no label.

    Clusters are matched to the known classes so that the shares of labelled rows in them are
    largest. The sizes of the matched clusters go to the known classes in the order of their numbers
    of labels, those of the others to the novel classes, largest first.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        Cluster of each row.
    codes : ndarray of shape (n,)
        Known class of each row or -1.
    n_components : int
        K.

    Returns
    -------
    ndarray of shape (K,)
        At least 1 each.
    """
    n_known, labelled = int(codes.max()) + 1, codes != UNLABELLED
    sizes = np.maximum(np.bincount(labels, minlength=n_components), 1).astype(np.float64)
    overlap = np.zeros((n_components, n_known))
    np.add.at(overlap, (labels[labelled], codes[labelled]), 1)
    clusters, classes = linear_sum_assignment(overlap / sizes[:, None], maximize=True)
    found = np.empty(n_components)
    by_labels = np.argsort(np.bincount(codes[labelled], minlength=n_known), kind="stable")
    found[by_labels] = np.sort(sizes[clusters[np.argsort(classes)]])
    found[n_known:] = -np.sort(-np.delete(sizes, clusters))
    return found


def sized_gap(probabilities: Tensor, sizes: Tensor) -> Tensor:
    """How far p̄ is from r^1.1, as log K - H(p̃) with p̃ ∝ p̄ / r^1.1.

    It is 0 if the mean prediction p̄ is in proportion to r^1.1.

    Parameters
    ----------
    probabilities : Tensor of shape (..., K)
        p of all rows and views.
    sizes : Tensor of shape (K,)
        r.

    Returns
    -------
    Tensor
        Scalar, at least 0.
    """
    mean = probabilities.flatten(0, -2).mean(dim=0) / sizes**SIZE_POWER
    return entropy_gap((mean / mean.sum())[None])


def soft_labels(logits: Tensor, sizes: Tensor) -> Tensor:
    """s: probabilities that favour small classes, the mean over two views, shape (n, K).

    Parameters
    ----------
    logits : Tensor of shape (2, n, K)
        z·c / 0.1.
    sizes : Tensor of shape (K,)
        r.
    """
    adjustment = ADJUSTMENT_POWER * (sizes / sizes.sum()).log()
    return (logits - adjustment).softmax(dim=-1).mean(dim=0)


def draw_rows(soft: Tensor, codes: Tensor, sizes: Tensor) -> Tensor:
    """Which rows take part in the soft term: all labelled ones, and unlabelled ones by chance.

    Of the unlabelled rows of each predicted class, as many as are drawn with the rate of the class,
    and the most confident of them. Drawn by torch's global generator.

    Parameters
    ----------
    soft : Tensor of shape (n, K)
        s.
    codes : Tensor of int, shape (n,)
        Known class of each row or -1.
    sizes : Tensor of shape (K,)
        r.

    Returns
    -------
    Tensor of bool, shape (n,)
        The rows.
    """
    free, confidence, predicted = codes < 0, *soft.max(dim=1)
    outputs = torch.arange(len(sizes), device=codes.device)
    has_labels = (codes[:, None] == outputs).any(dim=0)
    rates = torch.where(has_labels, 1, (sizes.min() / sizes) ** RATE_POWER)
    # draws on the CPU are the same on every device
    drawn = torch.rand(len(codes)).to(codes.device) < rates[predicted]
    together = (predicted[:, None] == predicted) & free & free[:, None]
    n_drawn = (together & drawn).sum(dim=1)
    order = torch.arange(len(codes), device=codes.device)
    ahead = (confidence > confidence[:, None]) | (
        (confidence == confidence[:, None]) & (order < order[:, None])
    )
    rank = (together & ahead).sum(dim=1)
    return ~free | (free & (rank < n_drawn))


def soft_contrastive_loss(h: Tensor, soft: Tensor, rows: Tensor, temperature: float) -> Tensor:
    """L_soft: a supervised contrastive loss in which pairs have weights.

    Parameters
    ----------
    h : Tensor of shape (2, n, p)
        Unit-length outputs of the projection head.
    soft : Tensor of shape (n, K)
        s. A pair of rows has the weight s_i·s_j, two views of a row have the weight 1.
    rows : Tensor of bool, shape (n,)
        Rows that take part.
    temperature : float
        τ.

    Returns
    -------
    Tensor
        Scalar, the mean over the views of these rows; 0 without any.
    """
    views, n = h.flatten(0, 1), len(soft)
    itself = torch.eye(2 * n, dtype=torch.bool, device=h.device)
    weights = soft @ soft.T
    weights = torch.where(torch.eye(n, dtype=torch.bool, device=h.device), 1, weights)
    takes_part = torch.cat([rows, rows])
    weights = weights.repeat(2, 2) * (takes_part & ~itself)
    # other views are masked: cutting them out would change shapes from batch to batch
    logits = (views @ views.T / temperature).masked_fill(itself | ~takes_part, -torch.inf)
    logits = torch.where(takes_part[:, None], logits, 0)
    log_share = logits - logits.logsumexp(dim=1, keepdim=True)
    weighted = torch.where(weights > 0, weights * log_share, 0).sum(dim=1)
    per_view = -weighted / weights.sum(dim=1).clamp(min=1e-12)
    return torch.where(takes_part, per_view, 0).sum() / takes_part.sum().clamp(min=1)
