"""One pass of split and merge moves over a partition (Sec. 3.2 of the paper).

First every novel component may split into its two halves, then neighbouring components may merge.
Labels forbid some moves: a component that holds labelled rows is never split, and two known
classes are never merged. Children of a split do not take part in the merges.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from newfound.arrays import Bools, Doubles, Floats, Ints, Keys
from newfound.mixture.acceptance import Acceptance, Kind, Proposals
from newfound.mixture.halves import halve
from newfound.mixture.hastings import CountTerm, log_evidence
from newfound.mixture.prior import NIWPrior
from newfound.mixture.rows import mix, row_blocks, squared_distances
from newfound.mixture.stats import GaussianStats

#: A split is only made if each half has more rows than this; with fewer, the prior decides the
#: value of h, the marginal likelihood (D6).
SMALLEST_HALF = 5
#: Number of nearest components proposed as partners of a merge; all pairs are too many (D7).
N_NEIGHBOURS = 3


@dataclass(frozen=True)
class Move:
    """One proposed move, accepted or refused.

    Attributes
    ----------
    kind : {"split", "merge"}
        Kind of the move.
    parents : tuple of int
        Components before the pass: one for a split, two for a merge.
    children : tuple of int
        Components after the pass: two for a split, one for a merge, none if it was refused.
    log_ratio : float or None
        log H_s (Eq. 5) or log H_m (Eq. 6), the logarithm of the Hastings ratio. It decides on the
        move if the acceptance is literal. Otherwise it is only a record of the moves that were
        carried out, and None for the others.
    accepted : bool
        Whether it was carried out.
    """

    kind: Kind
    parents: tuple[int, ...]
    children: tuple[int, ...]
    log_ratio: float | None
    accepted: bool


@dataclass(frozen=True)
class Rules:
    """How moves are judged.

    Attributes
    ----------
    prior : NIWPrior
        θ.
    accept : Acceptance
        Decides which moves are carried out.
    count_term : {"gamma", "factorial"}
        What Γ stands for in Eq. 5 and 6.
    reads_ratios : bool
        Whether `accept` reads log H. If not, it is computed only for moves that are carried out.
    """

    prior: NIWPrior
    accept: Acceptance
    count_term: CountTerm = "gamma"
    reads_ratios: bool = True

    def log_evidence(self, stats: GaussianStats) -> Doubles:
        """Log [Γ(N) h(Z; θ)] of each of the stacked components."""
        return log_evidence(stats, self.prior, self.count_term)


@dataclass(frozen=True)
class Components:
    """A partition, and what the moves need to know about its components.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        Component of each row; the first `n_known` components are the known classes.
    n_known : int
        K^l, the number of known classes.
    stats : GaussianStats
        Stacked statistics of the K components.
    rules : Rules
        How moves of these components are judged.
    content : ndarray of uint64, shape (K,)
        Sum of the keys of its rows. It seeds the draws of a component, so that these depend
        neither on its number nor on the order of the rows.
    """

    labels: Ints
    n_known: int
    stats: GaussianStats
    rules: Rules
    content: Keys

    @classmethod
    def of(
        cls,
        V: Floats,
        labels: Ints,
        n_known: int,
        rules: Rules,
        keys: Keys,
    ) -> Components:
        """Describe the components of a partition of the rows V; `keys` are their hashes."""
        n_components = max(int(labels.max()) + 1, n_known)
        stats = GaussianStats.from_labels(V, labels, n_components)
        content = np.zeros(n_components, dtype=np.uint64)
        np.add.at(content, labels, keys)
        return cls(labels, n_known, stats, rules, content)

    @cached_property
    def evidence(self) -> Doubles:
        """Log [Γ(N) h(Z; θ)] of each component, shape (K,)."""
        return self.rules.log_evidence(self.stats)

    def evidence_of(self, some: Ints) -> Doubles:
        """`evidence` of some components, in the shape of `some`; that of others is not computed."""
        if self.rules.reads_ratios:
            return self.evidence[some]
        distinct, places = np.unique(some, return_inverse=True)
        return self.rules.log_evidence(self.stats[distinct])[places.reshape(some.shape)]

    @property
    def log_likelihood(self) -> float:
        """Σ log [Γ(N) h(Z; θ)]; its difference between two partitions is log H."""
        return float(self.evidence.sum())

    @property
    def inertia(self) -> float:
        """Sum of squared distances of the rows to the means of their components."""
        return float(np.trace(self.stats.scatter, axis1=1, axis2=2).sum())


def split_merge_pass(
    V: Floats, components: Components, rules: Rules, seed: int
) -> tuple[Ints, list[Move]]:
    """Propose, accept and apply one round of splits, then one of merges.

    Parameters
    ----------
    V : ndarray of shape (n, q)
        Projected features.
    components : Components
        The partition before the pass.
    rules : Rules
        How moves are judged.
    seed : int
        Seed of this pass.

    Returns
    -------
    labels : ndarray of shape (n,)
        The new partition. Known components keep their numbers, empty ones are dropped.
    moves : list of Move
        Every proposal, accepted or not.
    """
    labels, n_components = components.labels, len(components.stats)
    halved = _halve_novel(V, components)
    splits = _propose_splits(halved, components, seed)
    merges = _propose_merges(components, seed)
    n_novel = n_components - components.n_known
    split_accepted, merge_accepted = rules.accept(splits, merges, n_novel)
    if not rules.reads_ratios:
        splits.log_ratios[split_accepted] = _split_ratios(
            halved, splits.parents[split_accepted, 0], components
        )
        merges.log_ratios[merge_accepted] = _merge_ratios(
            merges.parents[merge_accepted], components
        )

    # each row's group: its component, the second half of a split, or the partner of a merge
    is_split = np.zeros(n_components, dtype=bool)
    is_split[splits.parents[split_accepted, 0]] = True
    # a pair is sorted and known classes come first, so that a merged class keeps its number
    target = np.arange(n_components)
    target[merges.parents[merge_accepted, 1]] = merges.parents[merge_accepted, 0]
    groups = target[labels]
    second_half = is_split[labels] & (halved.halves % 2 == 1)
    groups[second_half] += n_components
    number_of = number_components(groups, components.n_known, 2 * n_components)

    moves = _ledger(
        splits, split_accepted, lambda p: (number_of[p[0]], number_of[p[0] + n_components])
    )
    moves += _ledger(merges, merge_accepted, lambda p: (number_of[p[0]],))
    return number_of[groups], moves


def _ledger(
    proposals: Proposals, accepted: Bools, children: Callable[[Ints], tuple[Any, ...]]
) -> list[Move]:
    """List all proposals; `children` gives the new numbers after an accepted one."""
    return [
        Move(
            proposals.kind,
            tuple(parents.tolist()),
            tuple(int(child) for child in children(parents)) if done else (),
            None if np.isnan(log_ratio) else float(log_ratio),
            bool(done),
        )
        for parents, log_ratio, done in zip(
            proposals.parents, proposals.log_ratios, accepted, strict=True
        )
    ]


def number_components(labels: Ints, n_known: int, n_numbers: int | None = None) -> Ints:
    """Map old numbers to new ones without gaps; known ones keep theirs, empty ones get -1.

    Known components are kept even if they are empty: their numbers are those of the classes.
    """
    sizes = np.bincount(labels, minlength=max(n_numbers or 0, n_known))
    kept = (sizes > 0) | (np.arange(len(sizes)) < n_known)
    return np.where(kept, np.cumsum(kept) - 1, -1)


class _Halved(NamedTuple):
    """The novel components that are large enough, each divided into two halves."""

    halves: Ints  # (n,) 2i or 2i + 1 for a row of the i-th of these components, -1 for other rows
    stats: GaussianStats  # of the halves, stacked
    components: Ints  # number of the i-th component


def _halve_novel(V: Floats, components: Components) -> _Halved:
    """Divide the novel components into halves."""
    stats = components.stats
    novel = np.arange(components.n_known, len(stats))
    novel = novel[stats.count[novel] > 2 * SMALLEST_HALF]
    halves = halve(V, components.labels, stats.scatter, stats.mean, novel)
    return _Halved(halves, GaussianStats.from_labels(V, halves, 2 * len(novel)), novel)


def _propose_splits(halved: _Halved, components: Components, seed: int) -> Proposals:
    """Propose each split whose halves are large enough."""
    large = halved.stats.count.reshape(-1, 2).min(axis=1) > SMALLEST_HALF
    parents, first = halved.components[large], 2 * np.flatnonzero(large)
    log_ratios = np.full(len(parents), np.nan)
    if components.rules.reads_ratios:
        log_ratios = _split_ratios(halved, parents, components)
    gaps = _gaps(halved.stats, first, first + 1)
    uniforms = _uniforms(components.content[parents], seed)
    return Proposals("split", parents[:, None], log_ratios, gaps, uniforms)


def _propose_merges(components: Components, seed: int) -> Proposals:
    """Propose to merge every novel component with its nearest ones, known classes included."""
    pairs = _neighbours(components)
    log_ratios = np.full(len(pairs), np.nan)
    if components.rules.reads_ratios:
        log_ratios = _merge_ratios(pairs, components)
    gaps = _gaps(components.stats, pairs[:, 0], pairs[:, 1])
    # another seed than for splits, so that a component's split and merge are drawn independently
    uniforms = _uniforms(components.content[pairs].sum(axis=1), ~seed)
    return Proposals("merge", pairs, log_ratios, gaps, uniforms)


def _split_ratios(halved: _Halved, parents: Ints, components: Components) -> Doubles:
    """Log H_s (Eq. 5) of splits of the given components."""
    if len(parents) == 0:
        return np.empty(0)
    first = 2 * np.searchsorted(halved.components, parents)
    log_halves = np.empty((len(parents), 2))
    # in blocks: the statistics of all halves at once would be many (q, q) matrices
    for block in row_blocks(len(parents), 2 * halved.stats.n_features**2):
        both = np.stack([first[block], first[block] + 1], axis=1)
        log_halves[block] = components.rules.log_evidence(halved.stats[both.ravel()]).reshape(-1, 2)
    return log_halves.sum(axis=1) - components.evidence_of(parents)


def _merge_ratios(pairs: Ints, components: Components) -> Doubles:
    """Log H_m (Eq. 6) of merges of the given pairs."""
    if len(pairs) == 0:
        return np.empty(0)
    stats = components.stats
    log_ratios: Doubles = -components.evidence_of(pairs).sum(axis=1)
    for block in row_blocks(len(pairs), stats.n_features**2):
        both = stats[pairs[block, 0]] + stats[pairs[block, 1]]
        log_ratios[block] += components.rules.log_evidence(both)
    return log_ratios


def _gaps(stats: GaussianStats, first: Ints, second: Ints) -> Doubles:
    """N_1 N_2 / (N_1 + N_2) |μ_1 - μ_2|²: how much worse one mean fits than two."""
    n_first, n_second = stats.count[first], stats.count[second]
    shared = n_first * n_second / (n_first + n_second)
    return shared * np.square(stats.mean[first] - stats.mean[second]).sum(axis=-1)


def _neighbours(components: Components) -> Ints:
    """Pairs (i, j), i < j, of a novel component and one of its nearest, shape (m, 2)."""
    usable = np.flatnonzero(components.stats.count > 0)
    novel = usable[usable >= components.n_known]
    n_neighbours = min(N_NEIGHBOURS, len(usable) - 1)
    if len(novel) == 0 or n_neighbours < 1:
        return np.empty((0, 2), dtype=np.int64)
    mean = components.stats.mean
    distances = squared_distances(mean[novel], mean[usable])
    # no component is its own neighbour
    distances[np.arange(len(novel)), np.searchsorted(usable, novel)] = np.inf
    nearest = usable[np.argsort(distances, axis=1, kind="stable")[:, :n_neighbours]]
    pairs = np.stack([np.repeat(novel, n_neighbours), nearest.ravel()], axis=1)
    return np.unique(np.sort(pairs, axis=1), axis=0)


def _uniforms(content: Keys, seed: int) -> Doubles:
    """Draw a number from (0, 1] per component, from the content of its rows and the seed."""
    scrambled = mix(content + mix(np.array([seed & 0xFFFFFFFFFFFFFFFF], dtype=np.uint64)))
    # 53 bits are the precision of a double; half a step more excludes 0, which has no logarithm
    return (scrambled >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54
