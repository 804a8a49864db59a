"""Which categories to look at again: how clear each one is, and which two may be one.

Both rules take the known categories of the run as their measure, because what is usual depends on
the features and on the collection. They were chosen on 13 runs on 40 species of birds (24 known;
seven of the runs were asked for too many or too few categories). There, new categories called clear
were 89 % of one species on average, doubtful ones 79 %, mixed ones 54 %. Of the 21 pairs suggested
for a merge, 8 were the same species; in 12 of the other 13, one of the two was mixed. The level for
pairs, 5 %, is one of six that were tried, and the run of docs/gallery.md had a part in the choice:
at 10 %, 7 of 12 pairs were right, but that run had none. So these figures flatter the rules. On
three runs on texts, which had no part in any choice, clear ones were 96 % of one class, doubtful
ones 92 %, mixed ones 83 % (4 categories only), and no pair was suggested, so pairs are not checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np

from newfound.arrays import Bools, Doubles, Floats, Ints
from newfound.mixture.halves import halve
from newfound.mixture.rows import squared_distances

if TYPE_CHECKING:
    from newfound.result.result import Result

Word = Literal["clear", "doubtful", "mixed"]

#: A sign is weak if it is lower than in this share of the known categories, and lower than `_GOOD`.
_WEAK_SHARE = 0.1
_GOOD = 0.9

#: Below this a sign is weak if there are too few known categories to compare with.
_POOR = {"stability": 0.75, "confidence": 0.75, "neighbours": 0.5}
_ENOUGH_KNOWN = 5

#: Two categories may be one if they mix more than the halves of this share of the known ones, and
#: this much at least: 0 is not at all, 1 is at random.
_MIXING_SHARE = 0.05
_LEAST_MIXING = 0.3

#: How much halves of one category mix, if there are too few known categories to ask.
_USUAL_MIXING = 0.5

_N_NEIGHBOURS = 5
#: Most items of a category that are asked for their neighbours: enough for a mean.
_MAX_ASKED = 24
_MAX_MIXED = 60
_FEWEST = 4

#: What each weak sign means, in words.
SIGNS = {
    "stability": "repeated searches agree on it less than on known categories",
    "confidence": "its {things} could more often be in another category",
    "neighbours": "the {things} most similar to its own are often in other categories",
    "halves": "its two halves differ more than the two closest categories do",
}


@dataclass(frozen=True)
class Pair:
    """Two new categories that may be one.

    Attributes
    ----------
    first, second : int
        Codes of the categories.
    mixing : float
        How often the nearest items of an item are in the other category: 0 is never, 1 as often as
        if the items were shuffled.
    """

    first: int
    second: int
    mixing: float


@dataclass(frozen=True)
class Judgement:
    """How clear the categories are.

    Attributes
    ----------
    words : tuple of {"clear", "doubtful", "mixed"}
        A word for each category: clear without a weak sign, doubtful with one, mixed with more.
    weak : tuple of tuple of str
        The weak signs of each category, keys of `SIGNS`.
    pairs : tuple of Pair
        New categories to merge, perhaps; those that mix most come first.
    """

    words: tuple[Word, ...]
    weak: tuple[tuple[str, ...], ...]
    pairs: tuple[Pair, ...]


def judge_categories(result: Result) -> Judgement:
    """Judge each category by the known ones.

    Parameters
    ----------
    result : Result
        What was found. Without a model only stability and confidence are compared.

    Returns
    -------
    Judgement
        A word for each category, why, and the pairs that may be one category.
    """
    profiles, n_known = result.profiles, result.n_known
    members = [np.flatnonzero(result.assigned.labels == code) for code in range(len(result.names))]
    has_space = result.V.shape[1] > 0
    space = _Space(result.V) if has_space else None
    signs = {
        "stability": profiles.stability,
        "confidence": profiles.mean_confidence,
        "neighbours": _closeness(space, members, result.assigned.labels),
    }
    is_weak = {name: _weak(name, values, n_known) for name, values in signs.items()}
    is_weak["halves"] = _halves_differ(result)
    weak = tuple(
        tuple(name for name in SIGNS if is_weak[name][code]) for code in range(len(members))
    )
    words = tuple(_word(len(names)) for names in weak)
    return Judgement(words, weak, () if space is None else _pairs(space, members, n_known))


def _word(n_weak: int) -> Word:
    return "clear" if n_weak == 0 else "doubtful" if n_weak == 1 else "mixed"


def _weak(name: str, values: Doubles, n_known: int) -> Bools:
    """Where a sign is weaker than usual; unknown values are not."""
    known = values[:n_known][~np.isnan(values[:n_known])]
    level = _POOR[name]
    if len(known) >= _ENOUGH_KNOWN:
        level = min(_GOOD, float(np.quantile(known, _WEAK_SHARE)))
    with np.errstate(invalid="ignore"):
        return np.asarray(values < level)


def _halves_differ(result: Result) -> Bools:
    """Whether the halves of a category differ more than the two closest categories do."""
    evidence = result.profiles.evidence
    if evidence is None:
        return np.zeros(len(result.names), dtype=bool)
    closest = evidence.merge_gap[~np.isnan(evidence.merge_gap)].min(initial=np.inf)
    with np.errstate(invalid="ignore"):
        return np.asarray(evidence.split_gap > closest)


# ----------------------------------------------------------------------------- nearest items


class _Space:
    """The items in the mixture's space, and the nearest of some items to others."""

    def __init__(self, V: Floats) -> None:
        self.V = np.asarray(V, dtype=np.float32)
        self.squares = (self.V**2).sum(axis=1)

    def nearest(self, rows: Ints, among: Ints, k: int) -> Ints:
        """For each of the rows the k nearest others, as places in `among`; shape (m, k)."""
        distances = self.squares[among] - 2 * self.V[rows] @ self.V[among].T
        distances[rows[:, None] == among] = np.inf
        return np.argpartition(distances, k - 1, axis=1)[:, :k]


def _closeness(space: _Space | None, members: list[Ints], labels: Ints) -> Doubles:
    """Share of the nearest items of a category's items that are in it, for each category."""
    shares = np.full(len(members), np.nan)
    everything = np.arange(len(labels))
    for code, rows in enumerate(members):
        k = min(_N_NEIGHBOURS, len(rows) - 1)
        if space is not None and k > 0:
            found = space.nearest(_spread(rows, _MAX_ASKED), everything, k)
            shares[code] = (labels[found] == code).mean()
    return shares


def _mixing(space: _Space, first: Ints, second: Ints) -> float:
    """How often nearest items are on the other side: 0 is never, 1 as often as by chance."""
    both = np.concatenate([first, second])
    k = min(_N_NEIGHBOURS, len(both) - 1)
    shares = []
    for own, other, is_other in (
        (first, second, np.arange(len(both)) >= len(first)),
        (second, first, np.arange(len(both)) < len(first)),
    ):
        by_chance = len(other) / (len(both) - 1)
        shares.append(is_other[space.nearest(own, both, k)].mean() / by_chance)
    return float(np.mean(shares))


def _pairs(space: _Space, members: list[Ints], n_known: int) -> tuple[Pair, ...]:
    """Pairs of new categories that mix as much as halves of known ones do."""
    samples = [_spread(rows, _MAX_MIXED) for rows in members]
    halves = [_halves_mixing(space, rows) for rows in samples[:n_known] if len(rows) >= 2 * _FEWEST]
    usual = _USUAL_MIXING
    if len(halves) >= _ENOUGH_KNOWN:
        usual = max(_LEAST_MIXING, float(np.quantile(halves, _MIXING_SHARE)))
    means = np.stack([space.V[rows].mean(axis=0) if len(rows) else space.V[0] for rows in members])
    codes = [code for code in range(n_known, len(members)) if len(members[code]) >= _FEWEST]
    found = [
        Pair(first, second, _mixing(space, samples[first], samples[second]))
        for first, second in _close_pairs(means, codes)
    ]
    found = [pair for pair in found if pair.mixing >= usual]
    return tuple(sorted(found, key=lambda pair: (-pair.mixing, pair.first, pair.second)))


def _close_pairs(means: Floats, codes: list[int]) -> list[tuple[int, int]]:
    """Pairs in which one is among the three nearest of the other: the only ones that can mix."""
    if len(codes) <= _FEWEST:
        return list(combinations(codes, 2))
    distances = squared_distances(means[codes], means[codes])
    np.fill_diagonal(distances, np.inf)
    order = np.argsort(distances, axis=1, kind="stable")[:, :3]
    pairs = {
        (min(codes[i], codes[j]), max(codes[i], codes[j]))
        for i, near in enumerate(order.tolist())
        for j in near
    }
    return sorted(pairs)


def _halves_mixing(space: _Space, rows: Ints) -> float:
    """How much the two halves of one category mix."""
    V = space.V[rows].astype(np.float64)
    mean = V.mean(axis=0)
    scatter = (V - mean).T @ (V - mean)
    one = np.zeros(len(rows), dtype=np.int64)
    side = halve(V, one, scatter[None], mean[None], np.array([0]))
    first, second = rows[side == 0], rows[side == 1]
    # Equal items have no halves: they could not mix more.
    return _mixing(space, first, second) if len(first) and len(second) else 1.0


def _spread(rows: Ints, at_most: int) -> Ints:
    """At most this many of the rows, evenly spread."""
    if len(rows) <= at_most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, at_most).round().astype(np.int64)]
