"""Categories of the sizes that may be expected: a soft assignment in place of the nearest one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from newfound.arrays import Ints
from newfound.deep.estep import Clusters
from newfound.labels import UNLABELLED
from newfound.mixture.sizes import expected_sizes

#: ε: how soft the assignment is, in squared distances of unit-length rows.
_SOFTNESS = 0.04
_N_ROUNDS, _N_SCALINGS = 8, 10


def balance(clusters: Clusters, codes: Ints, device: torch.device) -> Clusters:
    """Re-assign unlabelled rows so that components get the sizes to be expected.

    By turns the plan R = argmin Σ R·(d² + ε·log R) with rows that sum to 1 and columns that sum to
    `expected_sizes` (Sinkhorn), and the novel prototypes as means weighted by it. Each row then
    goes where most of it is.

    Parameters
    ----------
    clusters : Clusters
        The partition to begin with.
    codes : ndarray of shape (n,)
        Known class of each row or -1.
    device : torch.device
        Where to compute.

    Returns
    -------
    Clusters
        The new partition (or the old one, if a component would be left without rows), with
        `sizes`.
    """
    n_known, free = clusters.n_known, np.flatnonzero(codes == UNLABELLED)
    if n_known == 0 or len(free) == 0:
        return clusters
    clusters = replace(
        clusters, sizes=expected_sizes(codes, clusters.labels, clusters.n_components)
    )

    def put(values: object) -> Tensor:
        return torch.as_tensor(values, dtype=torch.float32, device=device)

    V, prototypes = put(clusters.V[free]), put(clusters.prototypes)
    sizes = put(clusters.sizes)
    for _ in range(_N_ROUNDS):
        plan = transport(torch.cdist(V, prototypes).square(), sizes, _SOFTNESS)
        shares = plan[:, n_known:]
        prototypes[n_known:] = (shares.T @ V) / shares.sum(dim=0)[:, None]
    labels = codes.copy()
    labels[free] = plan.argmax(dim=1).cpu().numpy()
    if len(np.unique(labels)) < clusters.n_components:
        return clusters
    return replace(clusters, labels=labels, prototypes=prototypes.cpu().double().numpy())


def transport(cost: Tensor, sizes: Tensor, softness: float) -> Tensor:
    """The entropic transport plan: rows sum to 1, columns to `sizes`.

    Parameters
    ----------
    cost : Tensor of shape (n, K)
        Of a row in a column.
    sizes : Tensor of shape (K,)
        Their sum is n.
    softness : float
        ε.

    Returns
    -------
    Tensor of shape (n, K)
        After a few scalings, the last one of the columns.
    """
    logits = -cost / softness
    of_columns = torch.zeros_like(sizes)
    for _ in range(_N_SCALINGS):
        of_rows = -(logits + of_columns).logsumexp(dim=1, keepdim=True)
        of_columns = sizes.log() - (logits + of_rows).logsumexp(dim=0)
    return (logits + of_rows + of_columns).exp()
