"""The E-step inside the loop: from features to categories and their prototypes.

The one state that is carried from epoch to epoch is the component of each row; everything else
is derived from it and from the features.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from newfound.arrays import Doubles, Floats, Ints
from newfound.deep.settings import EStepSettings
from newfound.deep.settle import fit_projection, nearest_rounds, on_device, project
from newfound.errors import DiscoveryWarning
from newfound.labels import UNLABELLED
from newfound.mixture.assignment import N_ROUNDS, prototypes_of
from newfound.mixture.counting.count import CategoryCount
from newfound.mixture.estimator import SplitMergeMixture, enough_to_whiten
from newfound.mixture.projection import EXACT_COLUMNS, Projection, unit_rows
from newfound.mixture.rows import nearest_centre
from newfound.mixture.split_merge import number_components

#: Rows whose products are added up at a time.
_CHUNK = 8192


@dataclass(frozen=True)
class Space:
    """The way from unit-length features to the space of the prototypes.

    Attributes
    ----------
    stages : tuple of (Tensor of shape (d,), Tensor of shape (d, q))
        Offset and directions; rows are at unit length before and after each.
    """

    stages: tuple[tuple[Tensor, Tensor], ...]

    def project(self, z: Tensor) -> Tensor:
        """Unit-length features (n, d) in the space, (n, q), at unit length."""
        for offset, directions in self.stages:
            z = functional.normalize((z - offset) @ directions, dim=1)
        return z

    def to(self, device: torch.device) -> Space:
        """The same on another device."""
        return Space(tuple((o.to(device), d.to(device)) for o, d in self.stages))


def principal_space(z: Tensor, n_directions: int) -> Space:
    """Principal directions of all features, found where they are.

    Parameters
    ----------
    z : Tensor of shape (n, d)
        Unit-length features.
    n_directions : int
        q; with d or more there is nothing to leave out, and the space is that of the features.

    Returns
    -------
    Space
        Of one stage, or of none.
    """
    if n_directions >= z.shape[1]:
        return Space(())
    mean = z.double().mean(dim=0)
    scatter = torch.zeros(z.shape[1], z.shape[1], dtype=torch.float64, device=z.device)
    for start in range(0, len(z), _CHUNK):
        centred = z[start : start + _CHUNK].double() - mean
        scatter += centred.T @ centred
    directions = torch.linalg.eigh(scatter).eigenvectors[:, -n_directions:]
    return Space(((mean.float(), directions.float().contiguous()),))


@dataclass(frozen=True)
class Clusters:
    """A partition, and the space it was found in.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        Component of each row, known classes first.
    n_known : int
        K^l.
    V : ndarray of shape (n, q)
        Rows in the space of the mixture.
    prototypes : ndarray of shape (K, q)
        Mean of the labelled rows of a known class; of all rows of a novel one, or weighted.
    projection : Projection
        From the reduced features to V.
    sizes : ndarray of shape (K,) or None
        Unlabelled rows that each component may be expected to hold.
    """

    labels: Ints
    n_known: int
    V: Floats
    prototypes: Doubles
    projection: Projection
    sizes: Doubles | None = None

    @property
    def n_components(self) -> int:
        """K."""
        return len(self.prototypes)

    def accuracy(self, codes: Ints, held_out: Ints) -> float | None:
        """Share of labelled rows whose nearest prototype is their class's; None without any.

        Parameters
        ----------
        codes : ndarray of shape (n,)
            Known class of each row or -1, of held-out rows too.
        held_out : ndarray of bool, shape (n,)
            Rows to look at; if there is none, all labelled rows are.
        """
        rows = held_out if held_out.any() else codes != UNLABELLED
        if not rows.any():
            return None
        nearest, _ = nearest_centre(self.V[rows], self.prototypes.astype(self.V.dtype))
        return float((nearest == codes[rows]).mean())


def mixture_for(settings: EStepSettings, n_columns: int, **changes: object) -> SplitMergeMixture:
    """The mixture that the settings ask for.

    Parameters
    ----------
    settings : EStepSettings
        Of the loop.
    n_columns : int
        d, the width of the features.
    **changes
        Parameters of the mixture to set otherwise.
    """
    parameters: dict[str, object] = {
        "n_components_init": settings.n_components_init,
        "n_components": None if changes.get("count") else settings.n_components,
        "n_directions": n_columns if settings.pca == "off" else settings.n_directions,
        "acceptance": settings.acceptance,
        "count_term": settings.count_term,
        "whiten": settings.whiten,
    }
    return SplitMergeMixture(**{**parameters, **changes})  # type: ignore[arg-type]


def known_count(codes: Ints, n_components: int) -> CategoryCount:
    """The count when K is known: components may still split and merge, by pairs.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Known class of each row or -1.
    n_components : int
        K.
    """
    n_known = int(codes.max()) + 1
    n_novel = max(0, n_components - n_known)
    return CategoryCount(
        n_novel=float(n_novel),
        interval=(float(n_novel), float(n_novel)),
        level=1.0,
        label_rate=float("nan"),
        novel_share=float("nan"),
        n_known=n_known,
        n_absent=0,
    )


@dataclass(frozen=True)
class Round:
    """What one E-step may do.

    Attributes
    ----------
    moves : bool
        Whether components may split and merge; otherwise K stays what it is.
    seed : int
        Seed of the mixture.
    count : CategoryCount or None
        The count that decides how many moves are made; None for a count in the features at hand.
    """

    moves: bool
    seed: int
    count: CategoryCount | None = None


def find_clusters(
    X: Floats,
    codes: Ints,
    labels: Ints | None,
    settings: EStepSettings,
    round: Round,
) -> Clusters:
    """Go on from a partition: to the nearest prototypes, and by splits and merges if wanted.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Features, reduced or not.
    codes : ndarray of shape (n,)
        Known class of each row or -1.
    labels : ndarray of shape (n,) or None
        The partition to go on from; None to start with k-means.
    settings : EStepSettings
        Of the loop.
    round : Round
        What this E-step may do.

    Returns
    -------
    Clusters
        The partition.
    """
    if labels is not None and not (round.moves and (round.count or settings.n_components is None)):
        return _settle(X, codes, labels, settings)
    changes: dict[str, object] = {"n_init": 1, "random_state": round.seed, "count": round.count}
    changes["expect_sizes"] = False  # the loop looks after sizes
    if settings.acceptance == "literal":
        changes["max_passes"] = 1  # Algorithm 1 makes one pass an epoch
    if not round.moves and settings.n_components is None:
        changes["n_components"] = _first_k(codes, settings)
    mixture = mixture_for(settings, X.shape[1], **changes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscoveryWarning)  # the end of training says it once
        if labels is None:
            mixture.fit(X, codes)
        else:
            mixture.refit(X, codes, labels)
    V = mixture.projection_.transform(X)
    return Clusters(mixture.labels_, mixture.n_known_, V, mixture.prototypes_, mixture.projection_)


def _settle(X: Floats, codes: Ints, labels: Ints, settings: EStepSettings) -> Clusters:
    """The same components on new features: rows go to their nearest prototypes."""
    n_known = int(codes.max()) + 1
    x, given = on_device(X), on_device(codes)
    keeps_all = settings.pca == "off" or X.shape[1] <= settings.n_directions
    if keeps_all and X.shape[1] < len(X) and X.shape[1] <= EXACT_COLUMNS:
        projection = fit_projection(x, given, whiten=_whitens(codes, settings))
        v = project(x, projection)
    else:  # some directions are left out
        V, projection = mixture_space(X, codes, settings)
        v = on_device(V)
    labels = np.where(codes == UNLABELLED, labels, codes)
    labels = number_components(labels, n_known)[labels]
    labels = nearest_rounds(v, given, on_device(labels), n_known, N_ROUNDS).cpu().numpy()
    labels = number_components(labels, n_known)[labels]
    V = v.cpu().numpy()
    return Clusters(labels, n_known, V, prototypes_of(V, codes, labels, n_known), projection)


def mixture_space(X: Floats, codes: Ints, settings: EStepSettings) -> tuple[Floats, Projection]:
    """Rows as the mixture sees them, and the way there.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Features, reduced or not.
    codes : ndarray of shape (n,)
        Known class of each row or -1.
    settings : EStepSettings
        Directions, and whether to whiten.

    Returns
    -------
    V : ndarray of shape (n, q)
        The rows.
    projection : Projection
        From X to V.
    """
    q = X.shape[1] if settings.pca == "off" else settings.n_directions
    projection = Projection(q, whiten=_whitens(codes, settings))
    projection.fit_in_order(X, codes, np.arange(len(X)))
    return projection.transform_in_order(X, np.arange(len(X))), projection


def _whitens(codes: Ints, settings: EStepSettings) -> bool:
    """Whether the mixture divides by the labelled classes' covariance."""
    if settings.whiten is None:
        return settings.acceptance == "calibrated" and enough_to_whiten(codes)
    return settings.whiten


def _first_k(codes: Ints, settings: EStepSettings) -> int:
    """K_init: what was asked for, or K^l + K^l / 2, and 10 without labels."""
    n_known = int(codes.max()) + 1
    if settings.n_components_init is not None:
        return min(max(settings.n_components_init, n_known), len(codes))
    return min(n_known + max(1, n_known // 2) if n_known else 10, len(codes))


@dataclass(frozen=True)
class Prototypes:
    """μ on the device, and the way from features to their space.

    Attributes
    ----------
    means : Tensor of shape (K, q), or (K, d) where PCA is not of all features
        Prototypes.
    space : Space
        From unit-length features to them.
    n_batch_directions : int
        q of each batch's own directions, as the paper has it; 0: none.
    excess : Tensor of shape (K,) or None
        log(P/π): share of the unlabelled rows, over the share to be expected.
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
        # the paper: principal directions of the mini-batch, without its mean, not re-normalised
        basis = torch.linalg.svd(z.detach().float(), full_matrices=False).Vh
        basis = basis[: self.n_batch_directions].T
        return z @ basis, self.means @ basis

    def to(self, device: torch.device) -> Prototypes:
        """The same on another device."""
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
    """Prototypes in the space of the loss.

    Parameters
    ----------
    z : Tensor of shape (n, d)
        Unit-length features.
    codes : ndarray of shape (n,)
        Known class of each row or -1.
    clusters : Clusters
        The partition.
    reduced : Space
        What the features went through before the mixture.
    settings : EStepSettings
        Whether the space has principal directions, and whose.
    temperature : float
        τ of the prototypical loss, which `excess` is measured with.

    Returns
    -------
    Prototypes
        At unit length, but for the paper's PCA of each batch.
    """

    def put(values: Floats) -> Tensor:
        return torch.as_tensor(np.ascontiguousarray(values), dtype=torch.float32, device=z.device)

    if settings.pca == "batch":
        means = put(prototypes_of(z.cpu().numpy(), codes, clusters.labels, clusters.n_known))
        return Prototypes(means, Space(()), settings.n_directions)
    if settings.pca == "all":
        projection = clusters.projection
        last = (put(projection.mean_), put(projection.directions))
        prototypes = Prototypes(put(unit_rows(clusters.prototypes)), Space((*reduced.stages, last)))
    else:
        means = put(prototypes_of(z.cpu().numpy(), codes, clusters.labels, clusters.n_known))
        prototypes = Prototypes(functional.normalize(means, dim=1), Space(()))
    if clusters.sizes is None:
        return prototypes
    free = torch.from_numpy(np.flatnonzero(codes == UNLABELLED)).to(z.device)
    shares = _mean_shares(z[free], prototypes, temperature)
    return replace(prototypes, excess=(shares * clusters.sizes.sum() / put(clusters.sizes)).log())


def _mean_shares(z: Tensor, prototypes: Prototypes, temperature: float) -> Tensor:
    """Mean of softmax(v·μ/τ) over the rows, shape (K,)."""
    total = torch.zeros(len(prototypes.means), device=z.device)
    for rows in torch.split(z, _CHUNK):
        v, mu = prototypes.project(rows)
        total += (v @ mu.T / temperature).softmax(dim=1).sum(dim=0)
    return (total / len(z)).clamp(min=torch.finfo(total.dtype).tiny)
