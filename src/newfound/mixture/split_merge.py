"""One pass of split and merge moves over a partition (Sec. 3.2 of the paper).

First every novel component may split along its halves, then neighbouring components may merge.
Labels veto: a component that holds labelled rows is never split, and two components that hold
different known classes are never merged. Children of a split do not take part in the merges.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from newfound.arrays import Bools, Doubles, Floats, Ints, Keys
from newfound.mixture.halves import halve
from newfound.mixture.hastings import CountTerm, log_evidence
from newfound.mixture.prior import NIWPrior
from newfound.mixture.rows import mix, squared_distances
from newfound.mixture.stats import GaussianStats

#: No split leaves a half of this many rows or fewer (below, a half's own rows say nothing).
SMALLEST_HALF = 5
#: How many nearest components are looked at as partners of a merge.
N_NEIGHBOURS = 3


Kind = Literal["split", "merge"]


@dataclass(frozen=True)
class Move:
    """One proposed move: the evidence that K rests on.

    Attributes
    ----------
    kind : {"split", "merge"}
        What was proposed.
    parents : tuple of int
        Components before the pass: one for a split, two for a merge.
    children : tuple of int
        Components after the pass: two for a split, one for a merge, none if it was refused.
    log_ratio : float
        log H_s or log H_m.
    accepted : bool
        Whether it was carried out.
    """

    kind: Kind
    parents: tuple[int, ...]
    children: tuple[int, ...]
    log_ratio: float
    accepted: bool


class Acceptance(Protocol):
    """Decides which proposals are carried out."""

    def __call__(
        self, kind: Kind, log_ratios: Doubles, counts: Doubles, uniforms: Doubles
    ) -> Bools:
        """Tell for each proposal whether it is accepted.

        Parameters
        ----------
        kind : {"split", "merge"}
            What is proposed.
        log_ratios : ndarray of shape (m,)
            log H of each proposal.
        counts : ndarray of shape (m,)
            Rows involved in it.
        uniforms : ndarray of shape (m,)
            A draw from (0, 1] for each.
        """
        ...


@dataclass(frozen=True)
class Rules:
    """What moves are judged by: the prior θ, the acceptance, and what Γ stands for."""

    prior: NIWPrior
    accept: Acceptance
    count_term: CountTerm = "gamma"


@dataclass(frozen=True)
class Components:
    """A partition and what the moves need to know of its components.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        Component of each row; the first `n_known` components are the known classes.
    n_known : int
        K^l.
    stats : GaussianStats
        Stacked statistics of the K components.
    evidence : ndarray of shape (K,)
        log [Γ(N) h(Z; θ)] of each.
    content : ndarray of uint64, shape (K,)
        What each holds, as the sum of the keys of its rows; seeds its draws.
    """

    labels: Ints
    n_known: int
    stats: GaussianStats
    evidence: Doubles
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
        """Describe the components of a partition of the rows V, whose content `keys` is."""
        n_components = max(int(labels.max()) + 1, n_known)
        stats = GaussianStats.from_labels(V, labels, n_components)
        content = np.zeros(n_components, dtype=np.uint64)
        np.add.at(content, labels, keys)
        evidence = log_evidence(stats, rules.prior, rules.count_term)
        return cls(labels, n_known, stats, evidence, content)

    @property
    def log_likelihood(self) -> float:
        """Σ log [Γ(N) h(Z; θ)]; its difference between two partitions is log H."""
        return float(self.evidence.sum())


@dataclass(frozen=True)
class _Proposals:
    """Proposed moves of one kind: parents (m, 1) or (m, 2), log ratios and verdicts (m,)."""

    kind: Kind
    parents: Ints
    log_ratios: Doubles
    accepted: Bools

    def moves(self, children: Callable[[Ints], tuple[int, ...]]) -> list[Move]:
        """Write them into the ledger; `children` numbers what became of accepted parents."""
        return [
            Move(
                self.kind,
                tuple(parents.tolist()),
                children(parents) if accepted else (),
                float(log_ratio),
                bool(accepted),
            )
            for parents, log_ratio, accepted in zip(
                self.parents, self.log_ratios, self.accepted, strict=True
            )
        ]


def split_merge_pass(
    V: Floats, components: Components, rules: Rules, seed: int
) -> tuple[Ints, list[Move]]:
    """Propose, veto, accept and apply one round of splits, then one of merges.

    Parameters
    ----------
    V : ndarray of shape (n, q)
        Projected features.
    components : Components
        The partition before the pass.
    rules : Rules
        Prior and acceptance.
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
    halves, splits = _propose_splits(V, components, rules, seed)
    is_split = np.zeros(n_components, dtype=bool)
    is_split[splits.parents[splits.accepted, 0]] = True
    merges = _propose_merges(components, ~is_split, rules, seed)

    # Each row's group: its component, the other half of a split, or the partner of a merge.
    target = np.arange(n_components)
    target[merges.parents[merges.accepted, 1]] = merges.parents[merges.accepted, 0]
    groups = target[labels]
    second_half = is_split[labels] & (halves % 2 == 1)
    groups[second_half] += n_components
    number_of = number_components(groups, components.n_known, 2 * n_components)

    moves = splits.moves(lambda p: (int(number_of[p[0]]), int(number_of[p[0] + n_components])))
    moves += merges.moves(lambda p: (int(number_of[p[0]]),))
    return number_of[groups], moves


def number_components(labels: Ints, n_known: int, n_numbers: int | None = None) -> Ints:
    """Map old numbers to new ones without gaps; known ones keep theirs, empty ones get -1."""
    sizes = np.bincount(labels, minlength=max(n_numbers or 0, n_known))
    kept = (sizes > 0) | (np.arange(len(sizes)) < n_known)
    return np.where(kept, np.cumsum(kept) - 1, -1)


def _propose_splits(
    V: Floats, components: Components, rules: Rules, seed: int
) -> tuple[Ints, _Proposals]:
    """Halves of the novel components, and a verdict on each that is large enough to split."""
    stats = components.stats
    novel = np.arange(components.n_known, len(stats))
    novel = novel[stats.count[novel] > 2 * SMALLEST_HALF]
    halves = halve(V, components.labels, stats.scatter, stats.mean, novel)
    half_stats = GaussianStats.from_labels(V, halves, 2 * len(novel))
    large = half_stats.count.reshape(-1, 2).min(axis=1) > SMALLEST_HALF
    parents = novel[large]
    log_halves = np.zeros(2 * len(novel))
    both = np.repeat(large, 2)
    log_halves[both] = log_evidence(half_stats[both], rules.prior, rules.count_term)
    log_ratios = log_halves.reshape(-1, 2).sum(axis=1)[large] - components.evidence[parents]
    uniforms = _uniforms(components.content[parents], seed)
    accepted = rules.accept("split", log_ratios, stats.count[parents], uniforms)
    return halves, _Proposals("split", parents[:, None], log_ratios, accepted)


def _propose_merges(components: Components, eligible: Bools, rules: Rules, seed: int) -> _Proposals:
    """Verdicts on neighbouring pairs; accepted pairs are disjoint, the best ratio goes first."""
    stats, evidence = components.stats, components.evidence
    pairs = _neighbours(components, eligible)
    log_ratios = np.array(
        [
            log_evidence(stats[i] + stats[j], rules.prior, rules.count_term)
            - evidence[i]
            - evidence[j]
            for i, j in pairs
        ]
    ).reshape(len(pairs))
    counts = stats.count[pairs].sum(axis=1)
    uniforms = _uniforms(components.content[pairs].sum(axis=1), ~seed)
    wanted = rules.accept("merge", log_ratios, counts, uniforms)
    accepted = np.zeros(len(pairs), dtype=bool)
    is_used = np.zeros(len(stats), dtype=bool)
    for place in np.argsort(-log_ratios, kind="stable"):
        if wanted[place] and not is_used[pairs[place]].any():
            accepted[place] = True
            is_used[pairs[place]] = True
    return _Proposals("merge", pairs, log_ratios, accepted)


def _neighbours(components: Components, eligible: Bools) -> Ints:
    """Pairs (i, j), i < j, of a novel component and one of its nearest; shape (m, 2)."""
    usable = np.flatnonzero(eligible & (components.stats.count > 0))
    novel = usable[usable >= components.n_known]
    n_neighbours = min(N_NEIGHBOURS, len(usable) - 1)
    if len(novel) == 0 or n_neighbours < 1:
        return np.empty((0, 2), dtype=np.int64)
    mean = components.stats.mean
    distances = squared_distances(mean[novel], mean[usable])
    distances[np.arange(len(novel)), np.searchsorted(usable, novel)] = np.inf
    nearest = usable[np.argsort(distances, axis=1, kind="stable")[:, :n_neighbours]]
    pairs = np.stack([np.repeat(novel, n_neighbours), nearest.ravel()], axis=1)
    return np.unique(np.sort(pairs, axis=1), axis=0)


def _uniforms(content: Keys, seed: int) -> Doubles:
    """One draw from (0, 1] per component, from the content of its rows and the seed."""
    scrambled = mix(content + mix(np.array([seed & 0xFFFFFFFFFFFFFFFF], dtype=np.uint64)))
    return (scrambled >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54
