"""Prototypes on the device, and the space in which the prototypical loss compares them with views.

The E-step fits principal directions once, on all features, and the loss uses the same directions
for prototypes and views. The paper fits them anew on each batch: `Prototypes.n_batch_directions`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from newfound.arrays import Floats, Ints
from newfound.deep.partition import Clusters
from newfound.deep.settings import EStepSettings
from newfound.deep.shard import ALONE, Shard
from newfound.labels import UNLABELLED
from newfound.mixture.projection import unit_rows

#: Number of rows that are multiplied at a time, so that float64 copies stay small.
_CHUNK = 8192


@dataclass(frozen=True)
class Space:
    """The map from unit-length features to the space of the prototypes.

    Attributes
    ----------
    stages : tuple of (Tensor of shape (d,), Tensor of shape (d, q))
        Offset and directions; rows have unit length before and after each stage.
    """

    stages: tuple[tuple[Tensor, Tensor], ...]

    def project(self, z: Tensor) -> Tensor:
        """Map unit-length features (n, d) to unit-length rows (n, q)."""
        for offset, directions in self.stages:
            z = functional.normalize((z - offset) @ directions, dim=1)
        return z

    def to(self, device: torch.device) -> Space:
        """The same map on another device."""
        return Space(tuple((o.to(device), d.to(device)) for o, d in self.stages))


def principal_space(z: Tensor, n_directions: int, shard: Shard = ALONE) -> Space:
    """Principal directions of all features, computed on the features' device.

    Parameters
    ----------
    z : Tensor of shape (m, d)
        Unit-length features of this process.
    n_directions : int
        q. If it is d or more, nothing is left out and the space is that of the features.
    shard : Shard, optional
        Adds up sums over the features of all processes.

    Returns
    -------
    Space
        A map of one stage, or of none.
    """
    if n_directions >= z.shape[1]:
        return Space(())
    mean = shard.mean(z.double())
    scatter = torch.zeros(z.shape[1], z.shape[1], dtype=torch.float64, device=z.device)
    for start in range(0, len(z), _CHUNK):
        centred = z[start : start + _CHUNK].double() - mean
        scatter += centred.T @ centred
    directions = torch.linalg.eigh(shard.total(scatter)).eigenvectors[:, -n_directions:]
    # eigenvectors of another kind of processor could have other signs
    directions = shard.same(directions.float().contiguous())
    return Space(((mean.float(), directions),))


@dataclass(frozen=True)
class Prototypes:
    """μ on the device, with the map from features to their space.

    Attributes
    ----------
    means : Tensor of shape (K, q), or (K, d) if PCA is not fitted on all features
        Prototypes.
    space : Space
        From unit-length features to the space of `means`.
    n_batch_directions : int
        q of principal directions that are fitted on each batch, as in the paper; 0: none.
    excess : Tensor of shape (K,) or None
        log(P/π): the share of unlabelled rows that a component has, over its expected share.
    """

    means: Tensor
    space: Space
    n_batch_directions: int = 0
    excess: Tensor | None = None

    def project(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Features and prototypes in their common space, (n, q) and (K, q).

        Parameters
        ----------
        z : Tensor of shape (n, d)
            Unit-length features.
        """
        if not self.n_batch_directions:
            return self.space.project(z), self.means
        # as in the paper: principal directions of the mini-batch; rows are neither centred first
        # nor scaled to unit length afterwards
        basis = torch.linalg.svd(z.detach().float(), full_matrices=False).Vh
        basis = basis[: self.n_batch_directions].T
        return z @ basis, self.means @ basis

    def to(self, device: torch.device) -> Prototypes:
        """The same prototypes on another device."""
        excess = None if self.excess is None else self.excess.to(device)
        return replace(
            self, means=self.means.to(device), space=self.space.to(device), excess=excess
        )


def prototypes_from(
    z: Tensor,
    codes: Ints,
    clusters: Clusters,
    reduced: Space,
    settings: EStepSettings,
    temperature: float,
) -> Prototypes:
    """Prototypes of a partition, in the space of the loss.

    Parameters
    ----------
    z : Tensor of shape (m, d)
        Unit-length features of this process.
    codes : ndarray of shape (n,)
        Known class of each row of all processes or -1.
    clusters : Clusters
        The partition, and which rows this process has.
    reduced : Space
        The map that was applied to the features before the mixture.
    settings : EStepSettings
        Whether the space is reduced to principal directions, and whether these come from all
        features or from each batch; and which rows are the prototype of a known class.
    temperature : float
        τ of the prototypical loss, which `Prototypes.excess` is measured with.

    Returns
    -------
    Prototypes
        With unit length, except for the paper's PCA of each batch.
    """

    def put(values: Floats) -> Tensor:
        return torch.as_tensor(np.ascontiguousarray(values), dtype=torch.float32, device=z.device)

    n_known, members = clusters.n_known, codes
    if settings.known_rows == "all":
        members = np.where(clusters.labels < n_known, clusters.labels, UNLABELLED)
    if settings.pca == "batch":
        means = put(clusters.prototypes_in(z.cpu().numpy(), members))
        return Prototypes(means, Space(()), settings.n_directions)
    if settings.pca == "all":
        projection = clusters.projection
        last = (put(projection.mean_), put(projection.directions))
        centres = clusters.prototypes
        if settings.known_rows == "all":
            of_known = clusters.prototypes_in(clusters.V, members)[:n_known]
            centres = np.concatenate([of_known, centres[n_known:]])
        prototypes = Prototypes(put(unit_rows(centres)), Space((*reduced.stages, last)))
    else:
        means = put(clusters.prototypes_in(z.cpu().numpy(), members))
        prototypes = Prototypes(functional.normalize(means, dim=1), Space(()))
    if clusters.sizes is None:
        return prototypes
    shard = clusters.shard
    free = torch.from_numpy(np.flatnonzero(codes[shard.own] == UNLABELLED)).to(z.device)
    shares = _mean_shares(z[free], prototypes, temperature, shard)
    return replace(prototypes, excess=(shares * clusters.sizes.sum() / put(clusters.sizes)).log())


def _mean_shares(z: Tensor, prototypes: Prototypes, temperature: float, shard: Shard) -> Tensor:
    """Mean of softmax(v·μ/τ) over the rows of all processes, shape (K,)."""
    total = torch.zeros(len(prototypes.means), device=z.device)
    for rows in torch.split(z, _CHUNK):
        v, mu = prototypes.project(rows)
        total += (v @ mu.T / temperature).softmax(dim=1).sum(dim=0)
    # a component that no row is near must not make the logarithm infinite
    return (shard.total(total) / shard.count(len(z))).clamp(min=torch.finfo(total.dtype).tiny)
