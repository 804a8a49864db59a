"""CMS: contrastive learning of embeddings that are drawn to their neighbours, then Ward's tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from newfound.arrays import Bools, Floats, Ints
from newfound.bench.case import KSource
from newfound.bench.method import BenchMethod, Knob
from newfound.bench.rivals.rival_input import LARGEST_TOTAL
from newfound.bench.rivals.ward import N_WARD_LEAVES, nested_partitions
from newfound.deep.device import current_device
from newfound.deep.holdout import hold_out
from newfound.deep.losses import contrastive_loss, supervised_contrastive_loss
from newfound.deep.method import Batch, Method
from newfound.deep.network.head import ProjectionHead
from newfound.deep.settings import Settings
from newfound.errors import InputError
from newfound.labels import UNLABELLED
from newfound.metrics import match_clusters
from newfound.mixture.kmeans import group_free_rows

#: k, the number of neighbours, and α, their share in a mean.
N_NEIGHBOURS, NEIGHBOUR_SHARE = 8, 0.5
#: τ of the unsupervised term; that of the supervised term is 0.07.
TEMPERATURE = 0.3
#: Mean shifts of the finished embeddings, at most.
MAX_SHIFTS = 10
#: Rows whose neighbours are searched at once.
_CHUNK = 2048


class CMS(BenchMethod):
    """CMS: contrastive mean shift, then iterative mean shift and Ward's agglomerative clustering.

    With the unit-length output vᵢ of a projection head and its k = 8 nearest neighbours N(i) among
    all other images, the mean-shifted embedding is

    zᵢ = u / |u|, u = (1 - α) vᵢ + α/k Σ_{j ∈ N(i)} vⱼ, with α = 0.5, and
    L = (1 - λ) L_InfoNCE(z, z′; τ) + λ L_SupCon(v, v′; 0.07), with λ = 0.35.

    After training, all embeddings are shifted again and again, and clustered by Ward's method after
    each shift, until the accuracy on labels that the training did not see stops rising. If K is not
    given, it is the cut of the tree with the highest accuracy.

    Departures
    ----------
    - The authors choose K, the number of shifts and the epoch by the true classes of images of the
      test split. Here a share of the labels is held out for K and the shifts (the setting
      `validation_share`, 0.1), also if K is given, and the last epoch is used. Clusters are matched
      to classes over all labelled rows, and the accuracy is that of the held-out ones: a few rows
      of a class alone would fit any large K. If classes have too few labels to hold one out, all
      labelled rows are judged. Of equally good K the largest is used.
    - Neighbours are those among the latest embeddings that each image had in a batch (the mean of
      its two views), up to two epochs old. The authors embed all images before each epoch. In
      the first epoch, images that have not been seen yet count as zero.
    - The projection head is that of all methods here, with 256 outputs; the authors' has 768.
    - τ is 0.3 for every data set, and tuned. The authors have 0.25 for fine-grained sets, with a
      learning rate of 0.05, and 0.3 with 0.01 for the others.
    - InfoNCE compares with rows of the other view only; in the authors' code with those of both
      views, without the positive pair in the denominator.
    - Shifts end with the first one that does not raise the accuracy; the authors' after two such
      ones, judged by the labelled images of the training.
    - More than 6,000 rows are grouped by k-means before Ward's tree is built.
    """

    title = "CMS"
    source = (
        "Choi, Kang, Cho: Contrastive Mean-Shift Learning for Generalized Category Discovery. "
        "CVPR 2024"
    )
    takes_features = True
    learns_without_k = True
    finds_k = True
    own_k: ClassVar[KSource] = "own"
    knob = Knob("temperature", TEMPERATURE, (0.1, 1.0))

    def _fit_images(self, pixels: npt.NDArray[np.uint8], codes: Ints) -> None:
        self._require_k_or_labels(codes)
        run = self.settings.run
        held_out = hold_out(codes, run.validation_share, run.seed)
        learner = MeanShiftContrast(self.own_settings(), len(pixels))
        trained = self._train(learner, pixels, np.where(held_out, UNLABELLED, codes))
        head = trained.network.head.eval()
        device = next(head.parameters()).device
        with torch.no_grad():
            v = head(torch.from_numpy(trained.features).to(device))
        self._cluster(v, codes, held_out)

    def own_settings(self) -> Settings:
        """The settings, with the temperature of InfoNCE."""
        return self.settings.with_changes(contrastive_temperature=self.knob_value)

    def _fit_features(self, X: Floats, codes: Ints) -> None:
        self._require_k_or_labels(codes)
        v = torch.from_numpy(np.asarray(X, dtype=np.float32)).to(current_device())
        self._cluster(v, codes, codes != UNLABELLED)  # nothing was trained with these labels

    def _require_k_or_labels(self, codes: Ints) -> None:
        if self.n_components is None and (codes == UNLABELLED).all():
            raise InputError("CMS finds K by labelled rows; there are none. Give n_components.")

    def _cluster(self, v: Tensor, codes: Ints, judged: Bools) -> None:
        """Shift and cluster for as long as the accuracy on the judged rows rises."""
        judged = judged if judged.any() else codes != UNLABELLED
        best, v = -1.0, functional.normalize(v.float(), dim=1)
        for _ in range(MAX_SHIFTS + 1):
            accuracy, labels = self._cut(v.cpu().numpy(), codes, judged)
            if accuracy <= best:
                break
            best, self.labels_ = accuracy, labels
            v = shift(v)
        self.n_components_ = len(np.unique(self.labels_))
        if self.n_components is None:
            self.k_source_ = "Ward's tree on the finished features"

    def _cut(self, V: Floats, codes: Ints, judged: Bools) -> tuple[float, Ints]:
        """The cut of Ward's tree at the given K, or the best one, with its accuracy."""
        cuts = ward_cuts(V, codes, self.n_components, self.settings.run.seed)
        # K falls, and the first of equal ones is the one with the largest K
        return max(((accuracy(codes, labels, judged), labels) for labels in cuts), key=_first)


def _first(pair: tuple[float, Ints]) -> float:
    return pair[0]


def ward_cuts(V: Floats, codes: Ints, n_components: int | None, seed: int) -> Iterator[Ints]:
    """Partitions of all rows by Ward's tree, with K falling from the largest to K^l.

    Parameters
    ----------
    V : ndarray of shape (n, d)
        Embeddings.
    codes : ndarray of shape (n,)
        Known class of each row or -1; only their number matters.
    n_components : int or None
        K, if there is to be one partition only.
    seed : int
        Seed of the grouping of rows, which is done only for more than 6,000 rows.
    """
    least = max(1, int(codes.max()) + 1) if n_components is None else n_components
    largest = max(least, min(LARGEST_TOTAL, len(V) // 2)) if n_components is None else least
    free = np.full(len(V), UNLABELLED)
    leaves = group_free_rows(V, free, 0, N_WARD_LEAVES, np.random.RandomState(seed))
    for k, groups in nested_partitions(V, leaves, largest):
        if k < least:
            return
        yield np.unique(groups, return_inverse=True)[1][leaves]


def accuracy(codes: Ints, labels: Ints, judged: Bools) -> float:
    """Share of the judged rows in the cluster of their class; 0 if there are none.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Known class of each row or -1. Clusters are matched to classes over all labelled rows.
    labels : ndarray of shape (n,)
        Cluster of each row.
    judged : ndarray of bool, shape (n,)
        Labelled rows that count.
    """
    labelled = codes != UNLABELLED
    if not labelled.any():
        return 0.0
    matched = match_clusters(codes[labelled], labels[labelled])
    found = [matched.get(label, UNLABELLED) for label in labels[judged].tolist()]
    return float(np.mean(np.array(found) == codes[judged]))


class MeanShiftContrast(Method):
    """The head, the memory of all embeddings, and the loss of CMS.

    Parameters
    ----------
    settings : Settings
        Settings of the training loop.
    n_rows : int
        Number of images.
    """

    def __init__(self, settings: Settings, n_rows: int) -> None:
        super().__init__(settings)
        self._n_rows = n_rows

    def head(self, n_features: int) -> nn.Module:
        """The projection, and beside it the latest embedding of each image."""
        self._head = _Head(n_features, self._n_rows)
        return self._head

    def loss(self, batch: Batch) -> Tensor:
        """(1 - λ) L_InfoNCE(z, z′) + λ L_SupCon(v, v′); also updates the memory."""
        assert batch.rows is not None
        settings, memory = self.settings.losses, self._head.memory
        v = functional.normalize(batch.h.float(), dim=-1)
        z_a, z_b = mean_shift(v, memory, batch.rows)
        tau, share = settings.contrastive_temperature, settings.supervised_weight
        loss = (contrastive_loss(z_a, z_b, tau) + contrastive_loss(z_b, z_a, tau)) / 2
        supervised = supervised_contrastive_loss(
            v[0], v[1], batch.codes, settings.supervised_temperature
        )
        remember(memory, batch.rows, functional.normalize(v.detach().sum(dim=0), dim=1))
        return (1 - share) * loss + share * supervised


class _Head(ProjectionHead):
    """A projection head that carries the memory, so that checkpoints hold it."""

    memory: Tensor

    def __init__(self, n_features: int, n_rows: int) -> None:
        super().__init__(n_features)
        n_outputs = len(self[-1].bias)  # type: ignore[arg-type]
        self.register_buffer("memory", torch.zeros(n_rows, n_outputs))


def remember(memory: Tensor, rows: Tensor, values: Tensor) -> None:
    """Write values to rows of the memory, the last one where a row occurs twice in a batch.

    A plain assignment would leave it to chance on a GPU which of the two is written.
    """
    order = torch.arange(len(rows), device=rows.device)
    last = torch.zeros(len(memory), dtype=torch.long, device=rows.device)
    last.scatter_reduce_(0, rows, order, "amax")
    memory[rows] = values[last[rows]]


def mean_shift(v: Tensor, memory: Tensor, rows: Tensor) -> Tensor:
    """z: each embedding, drawn to its nearest neighbours in the memory.

    Parameters
    ----------
    v : Tensor of shape (..., n, p)
        Unit-length embeddings. The gradient passes through them.
    memory : Tensor of shape (N, p)
        Unit-length embeddings of all images, without gradient; 0 if there is none yet.
    rows : Tensor of int, shape (n,)
        Numbers of the images in the memory: no image is its own neighbour.

    Returns
    -------
    Tensor of shape (..., n, p)
        Unit-length embeddings.
    """
    with torch.no_grad():
        cosines = v @ memory.T
        cosines.scatter_(-1, rows[:, None].expand(*v.shape[:-1], 1), -torch.inf)
        k = min(N_NEIGHBOURS, len(memory) - 1)
        neighbours = memory[cosines.topk(k, dim=-1).indices].mean(dim=-2)
    return functional.normalize((1 - NEIGHBOUR_SHARE) * v + NEIGHBOUR_SHARE * neighbours, dim=-1)


@torch.no_grad()
def shift(v: Tensor) -> Tensor:
    """One mean shift of all embeddings among themselves.

    Parameters
    ----------
    v : Tensor of shape (n, p)
        Unit-length embeddings.
    """
    parts = torch.split(torch.arange(len(v), device=v.device), _CHUNK)
    return torch.cat([mean_shift(v[part], v, part) for part in parts])
