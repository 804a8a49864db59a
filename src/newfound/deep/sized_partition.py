"""A partition with expected sizes: optimal transport in place of the nearest prototype."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from newfound.arrays import Ints
from newfound.deep.partition import Clusters
from newfound.labels import UNLABELLED
from newfound.mixture.sizes import SOFTNESS, expected_sizes

_N_ROUNDS, _N_SCALINGS = 8, 10
#: Largest number of costs (rows times components) in memory at a time.
_CHUNK_ENTRIES = 1 << 26


def fit_expected_sizes(clusters: Clusters, codes: Ints, device: torch.device) -> Clusters:
    """Reassign unlabelled rows so that components get their expected sizes.

    Two steps alternate: the plan R = argmin Σ R·(d² + ε·log R), whose rows sum to 1 and whose
    columns sum to the expected sizes (Sinkhorn); and the novel prototypes, as means weighted by R.
    In the end each row goes to the component with its largest share.

    Parameters
    ----------
    clusters : Clusters
        The partition to start from.
    codes : ndarray of shape (n,)
        Known class of each row or -1.
    device : torch.device
        Device to compute on.

    Returns
    -------
    Clusters
        The new partition with its expected `sizes`; or the old partition, if a component would
        be left without rows.
    """
    n_known, free = clusters.n_known, np.flatnonzero(codes == UNLABELLED)
    if n_known == 0 or len(free) == 0:
        return clusters
    clusters = replace(
        clusters, sizes=expected_sizes(codes, clusters.labels, clusters.n_components)
    )

    def put(values: object) -> Tensor:
        return torch.as_tensor(values, dtype=torch.float32, device=device)

    prototypes, sizes = put(clusters.prototypes), put(clusters.sizes)
    chunks = torch.split(put(clusters.V[free]), max(1, _CHUNK_ENTRIES // len(sizes)))

    def costs() -> Iterator[Tensor]:
        return (torch.cdist(rows, prototypes).square() for rows in chunks)

    for _ in range(_N_ROUNDS):
        # costs of a single chunk are kept; those of many chunks are computed again
        kept = list(costs()) if len(chunks) == 1 else None
        nearest, sums, totals = [], torch.zeros_like(prototypes), torch.zeros_like(sizes)
        plans = transport_plan(lambda: kept or costs(), sizes, SOFTNESS)  # noqa: B023
        for rows, plan in zip(chunks, plans, strict=True):
            nearest.append(plan.argmax(dim=1))
            sums += plan.T @ rows
            totals += plan.sum(dim=0)
        prototypes[n_known:] = (sums / totals[:, None])[n_known:]
    labels = codes.copy()
    labels[free] = torch.cat(nearest).cpu().numpy()
    if len(np.unique(labels)) < clusters.n_components:
        return clusters
    return replace(clusters, labels=labels, prototypes=prototypes.cpu().double().numpy())


def transport_plan(
    costs: Callable[[], Iterable[Tensor]], sizes: Tensor, softness: float
) -> Iterator[Tensor]:
    """The entropic transport plan, chunk by chunk: rows sum to 1, columns sum to `sizes`.

    Parameters
    ----------
    costs : callable
        Returns the same chunks each time: cost of each row in each column, shape (rows, K).
    sizes : Tensor of shape (K,)
        Sum of each column; together the number of all rows.
    softness : float
        ε.

    Yields
    ------
    Tensor of shape (rows, K)
        A chunk of the plan after a few scalings; the columns are scaled last.
    """

    def log_shares(cost: Tensor) -> Tensor:
        return torch.sub(before, cost, alpha=1 / softness).log_softmax(dim=1)

    of_columns = torch.zeros_like(sizes)
    for _ in range(_N_SCALINGS):
        before = of_columns
        sums = torch.stack([log_shares(cost).logsumexp(dim=0) for cost in costs()])
        of_columns = before + sizes.log() - sums.logsumexp(dim=0)
    for cost in costs():
        yield (log_shares(cost) + (of_columns - before)).exp()
