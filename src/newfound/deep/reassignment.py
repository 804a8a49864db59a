"""The E-step without moves, on the device: rows are reassigned to the same components.

It computes what `Projection` and `nearest_labels` compute for the mixture, as matrix products of
whole chunks of rows, which a GPU does fast.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from newfound.arrays import Floats, Ints
from newfound.deep.device import current_device
from newfound.deep.shard import ALONE, Shard
from newfound.labels import UNLABELLED
from newfound.mixture.projection import ROUNDING, Projection, shrunk_covariance

_CHUNK = 8192


def fit_projection(x: Tensor, codes: Tensor, *, whiten: bool, shard: Shard = ALONE) -> Projection:
    """All principal directions of unit-length rows, as `Projection.fit` finds them.

    Parameters
    ----------
    x : Tensor of shape (m, d)
        Unit-length rows of this process; all processes together have more than d.
    codes : Tensor of int, shape (m,)
        Known class of each row or -1.
    whiten : bool
        Whether to divide by the labelled classes' covariance.
    shard : Shard, optional
        Adds up sums over the rows of all processes.

    Returns
    -------
    Projection
        A projection with n_directions = d.
    """
    n_rows = shard.count(len(x))
    mean = shard.total(_sum(x, lambda rows: rows.sum(dim=0))) / n_rows
    scatter = shard.total(_sum(x, lambda rows: (rows - mean).T @ (rows - mean)))
    within = None
    if whiten:
        labelled = torch.nonzero(codes != UNLABELLED)[:, 0]
        rows, classes = x[labelled].double(), codes[labelled]
        n_labelled, n_classes = shard.count(len(rows)), shard.largest(int(codes.max())) + 1
        rows -= _means(rows, classes, torch.ones_like(classes), n_classes, shard)[0][classes]
        moment = shard.total(rows.T @ rows) / n_labelled
        fourth = float(shard.mean(rows.square().sum(dim=1).square()))
        within = shrunk_covariance(moment.cpu().numpy(), fourth, n_labelled, n_classes)
    moments = mean.cpu().numpy(), (scatter / n_rows).cpu().numpy()
    # eigenvectors of another kind of processor could have other signs
    return shard.same(Projection.from_moments(*moments, within))


def project(x: Tensor, projection: Projection) -> Tensor:
    """Project unit-length rows, and scale them to unit length, in the precision of x."""
    parts = [projection.mean_, projection.directions]
    mean, matrix = (torch.from_numpy(np.ascontiguousarray(a)).to(x.device) for a in parts)
    projected = []
    for rows in torch.split(x, _CHUNK):
        v = (rows.double() - mean) @ matrix
        v[v.abs().amax(dim=1) < ROUNDING] = 0  # the mean itself has no direction
        projected.append(functional.normalize(v, dim=1).to(x.dtype))
    return torch.cat(projected)


def nearest_rounds(
    v: Tensor,
    codes: Tensor,
    labels: Tensor,
    n_known: int,
    n_rounds: int,
    shard: Shard = ALONE,
) -> Tensor:
    """Alternate prototypes and nearest-prototype labels, as `nearest_labels` does.

    Parameters
    ----------
    v : Tensor of shape (m, q)
        Rows of this process.
    codes : Tensor of int, shape (m,)
        Known class of each row or -1.
    labels : Tensor of int, shape (m,)
        Component of each row, none empty in all processes together.
    n_known : int
        K^l.
    n_rounds : int
        Largest number of rounds.
    shard : Shard, optional
        Adds up sums over the rows of all processes.

    Returns
    -------
    Tensor of int, shape (m,)
        Component of each row; labelled rows keep theirs.
    """
    n_components = max(shard.largest(int(labels.max())) + 1, n_known)
    is_free = codes == UNLABELLED
    # a known class: mean of its labelled rows; a novel category: mean of all its rows
    prototypes, _ = _means(v, labels, ~is_free | (labels >= n_known), n_components, shard)
    for _ in range(n_rounds):
        lengths = prototypes.square().sum(dim=1)
        nearest = torch.cat(
            [(lengths - 2 * (rows @ prototypes.T)).argmin(dim=1) for rows in torch.split(v, _CHUNK)]
        )
        nearest = torch.where(is_free, nearest, codes)
        if not shard.largest(int(not torch.equal(nearest, labels))):
            break
        labels = nearest
        means, counts = _means(v, labels, is_free, n_components, shard)
        filled = counts > 0
        filled[:n_known] = False  # prototypes of known classes do not move
        prototypes = torch.where(filled[:, None], means, prototypes)
    return labels


def on_device(X: Floats | Ints) -> Tensor:
    """An array as a tensor, on the GPU if there is one."""
    tensor = torch.from_numpy(np.ascontiguousarray(X))
    device = current_device()
    return tensor.to(device) if device.type == "cuda" else tensor  # others lack float64


def _sum(x: Tensor, part: Callable[[Tensor], Tensor]) -> Tensor:
    """Sum of `part` over chunks of rows, in float64."""
    first, *others = torch.split(x, _CHUNK)
    total = part(first.double())
    for rows in others:
        total += part(rows.double())
    return total


def _means(
    v: Tensor, labels: Tensor, counts: Tensor, n_components: int, shard: Shard
) -> tuple[Tensor, Tensor]:
    """Means (K, q) and numbers (K,) of the rows of each component, where `counts` is true."""
    sums = v.new_zeros(n_components, v.shape[1])
    numbers = v.new_zeros(n_components)
    for rows, own, weight in zip(
        torch.split(v, _CHUNK),
        torch.split(labels, _CHUNK),
        torch.split(counts, _CHUNK),
        strict=True,
    ):
        # a product, not atomic additions, whose order and last bits would vary
        shares = functional.one_hot(own, n_components).to(v.dtype) * weight[:, None]
        sums += shares.T @ rows
        numbers += shares.sum(dim=0)
    sums, numbers = shard.total(sums), shard.total(numbers)
    return sums / numbers[:, None].clamp(min=1), numbers
