"""The number of novel categories from pairs that a person has judged: the same, or different.

A category of n items gets 1/n from each of them, so that the number of categories is Σ_i 1/n_i,
where n_i is the size of item i's category. Both the items and their partners are sampled, by
similarity, as in nested importance sampling (Perez, Sheldon, Van Horn and Maji, 2023, arXiv
2312.05287):

1. An item i is drawn among those that the mixture calls novel, in proportion to 1/s_i, where s_i is
   the size of its component.
2. A partner j is drawn with a probability that falls with its rank r among the neighbours of i.

The paper weighs each answer by the inverse of its probability and inverts the estimate of each n_i.
That is unbiased in the limit, and takes hundreds of answers: an item of the same category that lies
far away is drawn seldom, and then weighs very much (``docs/research/review.md`` has figures). Some
dozens are enough if labels help: f(t), the probability that a neighbour of rank r = t n_i is in the
same category, is learnt from labelled rows. Then each answer has the probability γ f(r / n_i), or
one minus it, and the sizes are n_i = s_i exp(θ + τ ε_i) with normal ε_i. With M rows
in novel components,

    K^n = M mean(1 / n_i) = K_0 exp(-θ + τ² / 2),

where K_0 is what the component sizes would give. θ, τ and γ are integrated over a grid, and the
likelihood of θ is blurred, since known categories are no perfect model of novel ones. The prior
of K^n is the count with its interval, so that without answers nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from newfound.arrays import Bools, Doubles, Floats, Ints
from newfound.mixture.counting.count import CategoryCount
from newfound.mixture.rows import squared_distances

#: Partners that are drawn for one item: two show how much sizes differ.
N_PARTNERS = 2
#: Ranks of neighbours, in units of the size of the category.
_EDGES = np.array(
    [0, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95, 1.1, 1.3, 1.6, 2, 3, 5, 10, 20, 50, np.inf]
)
_CENTRES = np.append((_EDGES[:-2] + _EDGES[1:-1]) / 2, 2 * _EDGES[-2])
_MAX_EXAMPLES = 150
#: The grid: log stretch of the sizes, how much it differs, and how far novel rows scatter more.
_THETAS = np.linspace(-2.5, 2.5, 101)
_TAUS = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
_GAMMAS = np.array([1.0, 0.85, 0.7, 0.55])
#: Normal quantiles, over which an item's own size is averaged.
_NODES = ndtri((np.arange(9) + 0.5) / 9)
#: How far f may differ between known and novel categories, in the logarithm of the rank.
_STRETCH = 0.15
#: How probable it is that the count is plainly wrong, and how much wider its error is then, in
#: log(1 + K^n). With a larger share the first answers would widen the interval.
_OUTSIDE, _WIDER = 0.02, 0.7
#: No answer is certain.
_SLIP = 0.02
_GOLDEN = (np.sqrt(5) - 1) / 2


class Partition(NamedTuple):
    """Rows and their components, as the mixture sees them now.

    Attributes
    ----------
    V : ndarray of shape (n, q)
        Rows in a space in which near ones are alike.
    labels : ndarray of int, shape (n,)
        Component of each row; the first K^l are the known classes.
    is_labelled : ndarray of bool, shape (n,)
        Rows whose label is given.
    n_known : int
        K^l.
    """

    V: Floats
    labels: Ints
    is_labelled: Bools
    n_known: int

    @property
    def sizes(self) -> Doubles:
        """Size of each row's component, shape (n,)."""
        return np.bincount(self.labels)[self.labels].astype(np.float64)

    @property
    def is_novel(self) -> Bools:
        """Rows in novel components."""
        return ~self.is_labelled & (self.labels >= self.n_known)

    def ranks(self, row: int) -> Ints:
        """Rank of every row among the neighbours of a row: 0 for the nearest, n - 1 for itself."""
        squares = squared_distances(self.V, self.V[row : row + 1])[:, 0]
        squares[row] = np.inf
        ranks = np.empty(len(squares), dtype=np.int64)
        ranks[np.argsort(squares, kind="stable")] = np.arange(len(squares))
        return ranks


class Question(NamedTuple):
    """Two rows to judge, and with which probability they were drawn."""

    first: int
    second: int
    probability: float


class Answer(NamedTuple):
    """Two rows that the sampler drew, and whether they are the same."""

    first: int
    second: int
    same: bool


def draw_questions(partition: Partition, n: int, rng: np.random.Generator) -> list[Question]:
    """Draw pairs to ask a person about.

    Parameters
    ----------
    partition : Partition
        What was found.
    n : int
        Number of questions.
    rng : Generator
        Draws them. A longer list begins with the same questions.

    Returns
    -------
    list of Question
        Empty if nothing is novel.
    """
    if len(partition.labels) < 3 or not partition.is_novel.any():
        return []
    sizes = partition.sizes
    share = np.where(partition.is_novel, 1 / sizes, 0.0)
    by_component = np.argsort(partition.labels, kind="stable")
    cumulative = np.cumsum(share[by_component]) / share.sum()
    at, questions = rng.random(), []
    for _ in range(-(-n // N_PARTNERS)):
        at = (at + _GOLDEN) % 1  # spread evenly over the components, however many are drawn
        first = int(by_component[np.searchsorted(cumulative, at * cumulative[-1])])
        p = partner_probabilities(partition, first)
        n_partners = min(N_PARTNERS, int((p > 0).sum()))
        for second in rng.choice(len(p), n_partners, replace=False, p=p):
            probability = share[first] / share.sum() * p[second]
            questions.append(Question(first, int(second), float(probability)))
    return questions[:n]


def partner_probabilities(partition: Partition, first: int) -> Doubles:
    """With which probability each row is drawn as the partner of a row; 0 for the row itself."""
    p: Doubles = 1 / (1 + (partition.ranks(first) / partition.sizes[first]) ** 2)
    p[first] = 0.0
    return p / p.sum()


def purity_by_rank(partition: Partition, rng: np.random.Generator) -> Doubles:
    """How probable it is that a neighbour is the same, by its rank, learnt from labelled rows.

    Parameters
    ----------
    partition : Partition
        Its labelled rows are examples.
    rng : Generator
        Draws them.

    Returns
    -------
    ndarray of shape (n_bins,)
        f at ranks r = t n_i, for bins of t; it never rises.
    """
    labelled, codes = partition.is_labelled, partition.labels
    n_bins = len(_EDGES) - 1
    n_same, n_all = np.zeros(n_bins), np.zeros(n_bins)
    n_labels, sizes = np.bincount(codes[labelled], minlength=1), np.bincount(codes)
    rows = np.flatnonzero(labelled)
    for row in rng.permutation(rows[n_labels[codes[rows]] > 1])[:_MAX_EXAMPLES]:
        code = codes[row]
        place = _bin(partition.ranks(int(row)) / sizes[code])
        same = labelled & (codes == code)
        same[row] = False
        n_all += np.bincount(place, minlength=n_bins)
        # each labelled row stands for some rows of its class: not all of these have labels
        n_same += np.bincount(place[same], minlength=n_bins) * (sizes[code] / n_labels[code])
    guess = 1 / (1 + _EDGES[:-1] ** 2)
    return np.minimum.accumulate(np.minimum(1, (n_same + guess) / (n_all + 1)))


def _bin(t: Doubles) -> Ints:
    return np.searchsorted(_EDGES, t, side="right") - 1


class AnswerCounter:
    """Combines a count with judged pairs; what was worked out once is kept for the next answer.

    Parameters
    ----------
    count : CategoryCount
        What is believed without answers; its interval says how firmly.
    partition : Partition
        As it is now; the pairs may have been drawn from another one.
    """

    def __init__(self, count: CategoryCount, partition: Partition) -> None:
        self._prior, self._partition = count, partition
        self._purity = purity_by_rank(partition, np.random.default_rng(0))
        self._likelihoods: dict[tuple[Answer, ...], Doubles] = {}

    def count(self, answers: Sequence[Answer]) -> CategoryCount:
        """K^n with its interval.

        Parameters
        ----------
        answers : sequence of Answer
            About pairs that `draw_questions` drew. Pairs that somebody chose would bias it.

        Returns
        -------
        CategoryCount
            The count without answers if none can be used.
        """
        prior, partition = self._prior, self._partition
        drawn = _by_item(answers, partition)
        if not drawn:
            return prior
        own = float((1 / partition.sizes[partition.is_novel]).sum())
        log_k = np.log(own) - _THETAS[:, None] + _TAUS**2 / 2
        logs = np.sum([self._likelihood(tuple(some)) for some in drawn], axis=0)
        likelihood = np.exp(logs - np.max(logs)).mean(axis=-1)
        # novel categories may lie closer or wider than known ones, whatever the number of answers
        blur = np.exp(-0.5 * ((_THETAS[:, None] - _THETAS) / _STRETCH) ** 2)
        weights = (blur @ likelihood) * _prior(prior, log_k)
        tails = np.array([0.5, 0.5 - prior.level / 2, 0.5 + prior.level / 2])
        order = np.argsort(log_k, axis=None, kind="stable")
        mass = weights.ravel()[order]
        shares = (np.cumsum(mass) - mass / 2) / mass.sum()
        middle, low, high = np.exp(np.interp(tails, shares, log_k.ravel()[order])).tolist()
        return replace(prior, n_novel=middle, interval=(low, high))

    def _likelihood(self, answers: tuple[Answer, ...]) -> Doubles:
        if answers not in self._likelihoods:
            self._likelihoods[answers] = _log_likelihood(answers, self._partition, self._purity)
        return self._likelihoods[answers]


def _by_item(answers: Sequence[Answer], partition: Partition) -> list[list[Answer]]:
    """Answers by their first item, without items that are not novel: they have no unknown size."""
    drawn: dict[int, list[Answer]] = {}
    known = {a.first for a in answers if a.same and partition.is_labelled[a.second]}
    for answer in answers:
        if partition.is_novel[answer.first] and answer.first not in known:
            drawn.setdefault(answer.first, []).append(answer)
    return list(drawn.values())


def _prior(count: CategoryCount, log_k: Doubles) -> Doubles:
    """Density of K^n by the count, with wide tails: the truth may lie outside its interval."""
    low, high = np.log1p(count.interval)
    narrow = max(float(high - low) / (2 * float(ndtri(0.5 + count.level / 2))), 0.02)
    gap = np.log1p(np.exp(log_k)) - np.log1p(count.n_novel)
    wide = narrow + _WIDER
    densities = [np.exp(-0.5 * (gap / error) ** 2) / error for error in (narrow, wide)]
    return (1 - _OUTSIDE) * densities[0] + _OUTSIDE * densities[1]


def _log_likelihood(answers: Sequence[Answer], partition: Partition, purity: Doubles) -> Doubles:
    """Log probability of the answers about one item, over the grid (θ, τ, γ)."""
    row = answers[0].first
    t = partition.ranks(row)[[a.second for a in answers]] / partition.sizes[row]
    x = np.exp(_THETAS[:, None, None] + _TAUS[:, None] * _NODES)  # (θ, τ, ε)
    f = np.interp(t / x[..., None], _CENTRES, purity)[..., None, :]
    f = f * _GAMMAS[:, None]  # (θ, τ, ε, γ, answers)
    f = _SLIP + (1 - 2 * _SLIP) * f
    same = np.array([a.same for a in answers])
    likelihood = np.where(same, f, 1 - f).prod(axis=-1)
    return np.log(likelihood.mean(axis=2))
