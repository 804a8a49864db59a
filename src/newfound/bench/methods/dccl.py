"""DCCL: contrastive learning around the communities of the neighbour graph, which also give K."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from newfound.arrays import Floats, Ints
from newfound.bench.case import KSource
from newfound.bench.communities import label_communities
from newfound.bench.method import BenchMethod, Knob
from newfound.bench.methods.cms import accuracy
from newfound.bench.rivals.rival_input import LARGEST_TOTAL
from newfound.deep.losses import prototype_loss
from newfound.deep.method import Batch, Method, mixed_contrast
from newfound.deep.network.head import ProjectionHead
from newfound.deep.partition import Clusters
from newfound.deep.reassignment import on_device
from newfound.deep.settings import Settings
from newfound.labels import UNLABELLED
from newfound.mixture.assignment import prototypes_of
from newfound.mixture.counting.count import CategoryCount
from newfound.mixture.kmeans import SemiSupervisedKMeans
from newfound.mixture.projection import Projection, unit_rows
from newfound.mixture.rows import nearest_centre
from newfound.mixture.split_merge import number_components

#: Numbers of neighbours that are tried.
N_NEIGHBOURS = (2, 3, 5, 10, 15, 20, 30, 50, 100)
#: τ of the community term, τ of InfoNCE, and η, the momentum of the prototypes.
TEMPERATURE, CONTRASTIVE_TEMPERATURE, MOMENTUM = 0.1, 1.0, 0.9


class DCCL(BenchMethod):
    """DCCL: communities of the neighbour graph as categories, with prototypes by momentum.

    Before each epoch, communities of the graph of nearest neighbours of all features are found; all
    labelled rows of a class are one node of the graph, and two classes never share a community.
    With unit-length features zᵢ, the community s of row i and prototypes μ,

    L = (1 - λ) L_InfoNCE + λ L_SupCon - 1/2n Σᵢ log [exp(zᵢ·μₛ/τ) / Σₖ exp(zᵢ·μₖ/τ)].

    Prototypes start each epoch at the means of their communities and follow the batches,
    μₖ ← η μₖ + (1 - η) (mean of zᵢ in k), at unit length. After training, the communities of the
    finished features are the clusters, and their number is K. If K is given, semi-supervised
    k-means clusters the finished features, as for GCD.

    Departures
    ----------
    - DCCL and MGCE find communities with Infomap, whose package is under the AGPL. Here the same
      objective, the map equation with two levels, is minimised by a search of our own.
    - The number of neighbours is the one of 2, 3, 5, 10, 15, 20, 30, 50, 100 with which
      communities that see no label agree best with the labels, in the features before training;
      of equal ones the largest. The authors fix it and a least similarity. An edge has the weight
      1, or 2 if both rows have each other.
    - There are at most 1,000 communities, as in all searches for K here. Rows of smaller ones go to
      the nearest prototype.
    - Not checked against the authors' code: τ = 0.1 and η = 0.9. DCCL's loss that spreads
      prototypes and MGCE's several experts are left out, and communities are found in the space
      of the features, without a second head.
    - The instance term is that of our GCD, with its departures.
    """

    title = "DCCL"
    source = (
        "Pu, Zhong, Sebe: Dynamic Conceptional Contrastive Learning for Generalized Category "
        "Discovery. CVPR 2023"
    )
    takes_features = True
    learns_without_k = True
    uses_starts = True
    finds_k = True
    own_k: ClassVar[KSource] = "own"
    defaults: ClassVar[Mapping[str, Any]] = {**BenchMethod.defaults, "moves_every": 1}
    knob = Knob("prototype_temperature", TEMPERATURE, (0.05, 0.2))

    def _fit_images(self, pixels: npt.NDArray[np.uint8], codes: Ints) -> None:
        learner = CommunityContrast(self.own_settings(), int(codes.max()) + 1, len(pixels))
        clustering, self.settings = self.settings, learner.settings
        self._train(learner, pixels, codes)
        self.settings = clustering
        self._cluster(self.features_, codes, learner.n_neighbours)

    def own_settings(self) -> Settings:
        """The settings, with those that keep the E-step from counting and reducing."""
        return self.settings.with_changes(
            contrastive_temperature=CONTRASTIVE_TEMPERATURE,
            acceptance="literal",
            sizes="none",
            pca="off",
        )

    def _fit_features(self, X: Floats, codes: Ints) -> None:
        self._cluster(X, codes, None)

    def _cluster(self, X: Floats, codes: Ints, n_neighbours: int | None) -> None:
        """Communities, or k-means if K is given."""
        Z, seed = unit_rows(np.asarray(X, dtype=np.float32)), self.settings.run.seed
        if self.n_components is None:
            n_neighbours = n_neighbours or choose_neighbours(Z, codes, seed)
            self.labels_ = find_categories(Z, codes, n_neighbours, seed)
            self.n_components_ = int(self.labels_.max()) + 1
            self.k_source_ = "communities of the finished features"
            return
        k_means = SemiSupervisedKMeans(
            self.n_components, n_init=self.n_starts, max_iter=200, random_state=seed
        )
        self.labels_ = k_means.fit(Z, codes).labels_
        self.n_components_ = k_means.n_components_


def choose_neighbours(Z: Floats, codes: Ints, seed: int) -> int:
    """The number of neighbours with which communities agree best with labels they do not see.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        Features.
    codes : ndarray of shape (n,)
        Known class of each row or -1.
    seed : int
        Seed of the search.
    """
    z, none = on_device(Z), on_device(np.full(len(Z), UNLABELLED))
    labelled = codes != UNLABELLED

    def agreement(k: int) -> tuple[float, int]:
        found = label_communities(z, none, k, seed).cpu().numpy()
        return accuracy(codes, found, labelled), k  # of equal ones the largest

    return max(N_NEIGHBOURS, key=agreement)


def find_categories(Z: Floats, codes: Ints, n_neighbours: int, seed: int) -> Ints:
    """Category of each row: its community, known classes first.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        Unit-length features.
    codes : ndarray of shape (n,)
        Known class of each row or -1.
    n_neighbours : int
        Number of neighbours of each row in the graph.
    seed : int
        Seed of the search.
    """
    n_known = int(codes.max()) + 1
    labels = label_communities(on_device(Z), on_device(codes), n_neighbours, seed).cpu().numpy()
    largest = max(n_known, LARGEST_TOTAL)
    if labels.max() < largest:
        return labels
    sizes = np.bincount(labels)
    sizes[:n_known] = len(labels)  # known classes stay
    kept = np.isin(labels, np.argsort(-sizes, kind="stable")[:largest])
    found = number_components(labels[kept], n_known)[labels[kept]]
    prototypes = prototypes_of(Z[kept], codes[kept], found, n_known)
    labels[kept] = found
    labels[~kept] = nearest_centre(Z[~kept], prototypes.astype(Z.dtype))[0]
    return labels


class CommunityContrast(Method):
    """The head, the communities, and the loss of DCCL.

    Parameters
    ----------
    settings : Settings
        Settings of the training loop.
    n_known, n_rows : int
        K^l and the number of images.
    """

    uses_prototypes = True
    ends_with_mixture = False

    def __init__(self, settings: Settings, n_known: int, n_rows: int) -> None:
        super().__init__(settings)
        self._n_outputs = max(n_known, min(LARGEST_TOTAL, n_rows))

    @property
    def n_neighbours(self) -> int | None:
        """The number of neighbours, once it is chosen."""
        return int(self._head.n_neighbours) or None

    def head(self, n_features: int) -> nn.Module:
        """The projection, and beside it the prototypes."""
        self._head = _Head(n_features, self._n_outputs)
        return self._head

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
        """Find communities; between moves, the loop itself continues from the last partition."""
        if self.n_neighbours is None:
            self._head.n_neighbours.fill_(choose_neighbours(X, codes, seed))
        assert self.n_neighbours is not None
        found, n_known = find_categories(X, codes, self.n_neighbours, seed), int(codes.max()) + 1
        return Clusters(found, n_known, X, prototypes_of(X, codes, found, n_known), Projection())

    def loss(self, batch: Batch) -> Tensor:
        """Instance and community terms; also moves the prototypes."""
        assert batch.prototypes is not None
        means, head = batch.prototypes.means, self._head
        held = head.prototypes[: len(means)]
        mu = torch.where(head.epoch == batch.epoch, held, means)  # an E-step came before
        z, targets = batch.z.float().flatten(0, 1), torch.cat([batch.assigned, batch.assigned])
        loss = prototype_loss(z, mu, targets, self.settings.losses.prototype_temperature)
        with torch.no_grad():
            held.copy_(follow(mu, z, targets))
            head.epoch.fill_(batch.epoch)
        return loss + mixed_contrast(batch.h, batch.codes, self.settings.losses)


class _Head(ProjectionHead):
    """A projection head that carries what checkpoints must hold."""

    prototypes: Tensor
    epoch: Tensor
    n_neighbours: Tensor

    def __init__(self, n_features: int, n_outputs: int) -> None:
        super().__init__(n_features)
        self.register_buffer("prototypes", torch.zeros(n_outputs, n_features))
        self.register_buffer("epoch", torch.tensor(-1))
        self.register_buffer("n_neighbours", torch.tensor(0))


def follow(mu: Tensor, z: Tensor, labels: Tensor, momentum: float = MOMENTUM) -> Tensor:
    """Prototypes after a batch: those with rows in it move towards the mean of these rows.

    Parameters
    ----------
    mu : Tensor of shape (K, d)
        Unit-length prototypes.
    z : Tensor of shape (n, d)
        Unit-length features.
    labels : Tensor of int, shape (n,)
        Community of each row.
    momentum : float
        η.

    Returns
    -------
    Tensor of shape (K, d)
        Unit-length prototypes.
    """
    # a product, not additions in any order, whose last bits would vary
    shares = functional.one_hot(labels, len(mu)).to(mu.dtype)
    counts = shares.sum(dim=0)[:, None]
    means = shares.T @ z.to(mu.dtype) / counts.clamp(min=1)
    moved = functional.normalize(momentum * mu + (1 - momentum) * means, dim=1)
    return torch.where(counts > 0, moved, mu)
