"""SimGCD: a classifier of known and novel classes that learns from its own other view."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from newfound.bench.classifier import CosineClassifier, entropy_gap, labelled_cross_entropy
from newfound.bench.method import Classifier, ClassifierLearner, Knob
from newfound.deep.method import Batch, mixed_contrast
from newfound.deep.network.head import ProjectionHead
from newfound.deep.settings import Settings

#: τ of InfoNCE in the authors' code; that of the supervised term is 0.07.
CONTRASTIVE_TEMPERATURE = 1.0
#: Temperature of the student, and of the teacher at the start and after its warm-up.
STUDENT_TEMPERATURE = 0.1
TEACHER_TEMPERATURES = (0.07, 0.04)
#: The teacher's warm-up takes 30 of 200 epochs.
TEACHER_WARMUP, FULL_LENGTH = 30, 200
#: ε, the weight of the mean entropy.
ENTROPY_WEIGHT = 2.0


class SimGCD(Classifier):
    """SimGCD: self-distillation of a cosine classifier, with a high mean entropy.

    With unit-length features zᵢ and prototypes c_k, pᵢ = softmax(zᵢ·c / 0.1) is the student and
    qᵢ′ = softmax(zᵢ′·c / τ_t) the teacher, the same network on the other view without gradient;
    τ_t falls linearly from 0.07 to 0.04 in the warm-up. With all rows B and the labelled ones B^l:

    L_cls^u = 1/|B| Σᵢ ℓ(qᵢ′, pᵢ) + ε (log K - H(p̄)), p̄ the mean of p over both views,
    L_cls^s = 1/|B^l| Σᵢ ℓ(yᵢ, pᵢ), with the cross-entropy ℓ,
    L_rep = (1 - λ) L_InfoNCE + λ L_SupCon, behind a projection head, τ = 1 and 0.07,
    L = (1 - λ) L_cls^u + λ L_cls^s + L_rep, with λ = 0.35 and ε = 2.

    The cluster of a row is the prototype nearest to its feature.

    Departures
    ----------
    - ε is 2 for every data set: the default of the authors' code, and its value for CUB. Their
      scripts use 4 for CIFAR-100 and 1 for CIFAR-10, ImageNet-100, Stanford Cars and Aircraft,
      but such a choice needs labels of novel classes.
    - In a run of fewer than 200 epochs the teacher's warm-up of 30 epochs is shortened in
      proportion, so that it takes the same share of the run.
    - A batch holds exactly 64 labelled and 64 unlabelled images; the authors' holds 128 images,
      64 of each on average.
    - The contrastive losses are those of all methods here, with the authors' temperatures. InfoNCE
      compares with rows of the other view only (theirs with rows of both views), and the setting
      `supervised_weight` is used for both occurrences of λ.
    - No epoch is selected: the last one is scored, as in the authors' code.
    """

    title: ClassVar[str] = "SimGCD"
    knob = Knob("entropy_weight", ENTROPY_WEIGHT, (1.0, 4.0))
    source: ClassVar[str] = (
        "Wen, Zhao, Qi: Parametric Classification for Generalized Category Discovery: A Baseline "
        "Study. ICCV 2023"
    )

    def learner(self, n_known: int, n_components: int) -> SimGCDLearner:
        """The head and the loss that are trained."""
        return SimGCDLearner(self.settings, n_known, n_components)

    def own_settings(self) -> Settings:
        """The settings, with the authors' temperature of InfoNCE."""
        return self.settings.with_changes(contrastive_temperature=CONTRASTIVE_TEMPERATURE)


class SimGCDLearner(ClassifierLearner):
    """The head and the loss of SimGCD."""

    knob = ENTROPY_WEIGHT

    def __init__(self, settings: Settings, n_known: int, n_components: int) -> None:
        own = settings.with_changes(contrastive_temperature=CONTRASTIVE_TEMPERATURE)
        super().__init__(own, n_known, n_components)

    def head(self, n_features: int) -> nn.Module:
        """Cosines with K prototypes, then the projection for the contrastive losses."""
        return _Head(n_features, self.n_components)

    def logits(self, h: Tensor) -> Tensor:
        """Cosines with the prototypes."""
        return h[..., : self.n_components].float()

    def loss(self, batch: Batch) -> Tensor:
        """L = (1 - λ) L_cls^u + λ L_cls^s + L_rep."""
        share = self.settings.losses.supervised_weight
        cosines = self.logits(batch.h)
        student = cosines / STUDENT_TEMPERATURE
        tau = teacher_temperature(batch.epoch, self.settings.optimiser.epochs)
        clustering = distillation_loss(student, cosines / tau)
        clustering = clustering + self.knob * entropy_gap(student.softmax(dim=-1))
        supervised = labelled_cross_entropy(student, batch.codes)
        contrast = mixed_contrast(
            batch.h[..., self.n_components :], batch.codes, self.settings.losses
        )
        return (1 - share) * clustering + share * supervised + contrast


class _Head(nn.Module):
    """K cosines and a projection, side by side."""

    def __init__(self, n_features: int, n_components: int) -> None:
        super().__init__()
        self.classifier = CosineClassifier(n_features, n_components)
        self.projection = ProjectionHead(n_features)

    def forward(self, features: Tensor) -> Tensor:
        return torch.cat([self.classifier(features), self.projection(features).float()], dim=1)


def teacher_temperature(epoch: int, n_epochs: int) -> float:
    """τ_t, which falls linearly during the warm-up.

    Parameters
    ----------
    epoch : int
        Epoch, counted from 0.
    n_epochs : int
        Number of epochs of the run. The warm-up takes 30 epochs, or 15 % of a run of fewer than
        200 epochs.

    Returns
    -------
    float
        Temperature.
    """
    warmup = round(TEACHER_WARMUP * min(1.0, n_epochs / FULL_LENGTH))
    start, end = TEACHER_TEMPERATURES
    return start + (end - start) * min(1.0, epoch / max(1, warmup - 1))


def distillation_loss(student: Tensor, teacher: Tensor) -> Tensor:
    """Cross-entropy of each view's student with the other view's teacher.

    Parameters
    ----------
    student, teacher : Tensor of shape (2, n, K)
        Logits, divided by their temperatures.

    Returns
    -------
    Tensor
        Scalar, the mean over rows and views.
    """
    target = teacher.detach().softmax(dim=-1).flip(0)
    return -(target * student.log_softmax(dim=-1)).sum(dim=-1).mean()
