"""A partition that heeds expected sizes: the solver of the mixture, with rows on the device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from newfound.arrays import Doubles, Ints
from newfound.deep.holdout import LabelSplit
from newfound.deep.partition import Clusters
from newfound.deep.shard import ALONE, Shard
from newfound.labels import UNLABELLED
from newfound.mixture.counting.novel_size import Sizes
from newfound.mixture.sizes import SOFTNESS, ShareRows, expect_sizes, fit_sizes

#: Largest number of costs (rows times components) in memory at a time.
_CHUNK_ENTRIES = 1 << 26


def heed_sizes(
    clusters: Clusters,
    given: LabelSplit,
    sizes: Sizes | None,
    n_novel_rows: float,
    device: torch.device,
) -> Clusters:
    """Reassign unlabelled rows so that components get about their expected sizes.

    Parameters
    ----------
    clusters : Clusters
        The partition to start from.
    given : LabelSplit
        Known classes of the rows, with and without those that are held out.
    sizes : {"unknown", "alike"}, float or None
        What is known about the mean size of novel categories; None to expect nothing.
    n_novel_rows : float
        How many rows are novel; NaN if nobody has counted.
    device : torch.device
        Device to compute on.

    Returns
    -------
    Clusters
        The new partition with its `sizes`; or the old partition, if nothing can be expected, or a
        component would be left without rows.
    """
    codes, everything, n_known = given.codes, given.all_codes, clusters.n_known
    shard = clusters.shard
    free = np.flatnonzero(codes == UNLABELLED)
    if n_known == 0 or not (everything == UNLABELLED).any():
        return clusters
    # how labels were drawn shows in all of them; held-out rows are then unlabelled ones as well
    expected = expect_sizes(everything, clusters.labels, clusters.n_components, sizes, n_novel_rows)
    if expected is None:
        return clusters
    held_out = np.bincount(everything[free][everything[free] >= 0], minlength=clusters.n_components)
    expected = expected._replace(unlabelled=expected.unlabelled + held_out)
    labels = codes[shard.own].copy()
    is_free = labels == UNLABELLED
    rows = torch.as_tensor(clusters.V[is_free], dtype=torch.float32, device=device)
    share_rows = _share_on_device(rows, shard)
    fitted = fit_sizes(share_rows, clusters.prototypes, n_known, expected, clusters.before)
    if not fitted.converged:
        return clusters
    labels[is_free] = _nearest(rows, fitted.prototypes, fitted.offsets)
    labels = shard.whole(labels)
    if len(np.unique(labels)) < clusters.n_components:
        return clusters
    return replace(clusters, labels=labels, prototypes=fitted.prototypes, sizes=fitted.sizes)


def _share_on_device(rows: Tensor, shard: Shard = ALONE) -> ShareRows:
    """What `share_by_distance` does, on the device of the rows, for those of all processes."""

    def share(prototypes: Doubles, log_weights: Doubles) -> tuple[Doubles, Doubles]:
        weights = torch.as_tensor(log_weights, dtype=torch.float32, device=rows.device)
        total = torch.zeros(
            len(weights), 1 + rows.shape[1], dtype=torch.float64, device=rows.device
        )
        for chunk, squared in _distances(rows, prototypes):
            shares = torch.sub(weights, squared, alpha=1 / SOFTNESS).softmax(dim=1)
            total[:, 0] += shares.sum(dim=0)
            total[:, 1:] += shares.T @ chunk
        held, sums = np.split(shard.total(total).cpu().numpy(), [1], axis=1)
        return held[:, 0].clip(min=np.finfo(np.float32).tiny), sums

    return share


def _nearest(rows: Tensor, prototypes: Doubles, offsets: Doubles) -> Ints:
    """Component of each row, by squared distance less the offset."""
    less = torch.as_tensor(offsets, dtype=torch.float32, device=rows.device)
    chosen = [(squared - less).argmin(dim=1) for _, squared in _distances(rows, prototypes)]
    labels: Ints = torch.cat(chosen).cpu().numpy()
    return labels


def _distances(rows: Tensor, prototypes: Doubles) -> Iterator[tuple[Tensor, Tensor]]:
    """Chunks of rows, and their squared distances from prototypes less the rows' own lengths."""
    centres = torch.as_tensor(prototypes, dtype=torch.float32, device=rows.device)
    lengths = centres.square().sum(dim=1)
    for chunk in torch.split(rows, max(1, _CHUNK_ENTRIES // len(centres))):
        yield chunk, torch.addmm(lengths, chunk, centres.T, alpha=-2)
