"""What to ask a person first: categories, pairs that may be one, and labels that look wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from newfound.arrays import Bools, Ints
from newfound.mixture.halves import halve
from newfound.mixture.rows import squared_distances
from newfound.report.audit import Suspect, audit_labels
from newfound.report.doubt import SIGNS, Judgement, judge_categories
from newfound.result.result import Result
from newfound.words import things

#: Most questions, and most doubtful labels, that are kept.
MAX_QUESTIONS = 100
MAX_SUSPECTS = 200
#: Examples on each side of a doubtful label.
N_NEAREST = 3


class Pair(NamedTuple):
    """Two categories that may be one: their names, and how far they mix, None if not measured."""

    first: str
    second: str
    mixing: float | None


class Doubt(NamedTuple):
    """How doubtful a category is: a word, the weak signs in words, and a number from 0."""

    word: str
    weak: list[str]
    doubt: float


class Queues:
    """What a result leaves open, worked out once when it is read.

    Parameters
    ----------
    result : Result
        What was found.
    decided : set of str
        Items whose label a person has decided on.
    """

    def __init__(self, result: Result, decided: set[str]) -> None:
        judgement = judge_categories(result)
        self.doubts = {
            name: _doubt_of(result, judgement, code) for code, name in enumerate(result.names)
        }
        self.pairs = _pairs(result, judgement)
        ids = result.collection.ids
        given: Bools = result.collection.is_labelled & ~np.isin(ids, sorted(decided))
        suspects = audit_labels(result.V, result.assigned.labels, given) if given.any() else []
        self.n_suspects = len(suspects)
        self.suspects = [_view(result, suspect) for suspect in suspects[:MAX_SUSPECTS]]


def _doubt_of(result: Result, judgement: Judgement, code: int) -> Doubt:
    profiles, kind = result.profiles, result.collection.kind
    weak = [SIGNS[name].format(things=things(kind)) for name in judgement.weak[code]]
    numbers = profiles.stability[code], profiles.mean_confidence[code]
    certainty = float(np.prod([1.0 if np.isnan(x) else x for x in numbers]))
    return Doubt(judgement.words[code], weak, round(len(weak) + 1 - certainty, 4))


def _pairs(result: Result, judgement: Judgement) -> list[Pair]:
    """Pairs that mix come first, then each new category with the nearest other one."""
    names, sizes = result.names, result.profiles.sizes
    mixed = sorted(
        judgement.pairs,
        key=lambda pair: -pair.mixing * min(sizes[pair.first], sizes[pair.second]),
    )
    pairs = [Pair(names[pair.first], names[pair.second], pair.mixing) for pair in mixed]
    seen = {frozenset(pair[:2]) for pair in pairs}
    novel = np.arange(result.n_known, len(names))
    if result.prototypes.shape[1] and len(names) > 1 and len(novel):
        gaps = squared_distances(result.prototypes[novel], result.prototypes)
        gaps[np.arange(len(novel)), novel] = np.inf
        for i in np.argsort(gaps.min(axis=1), kind="stable"):
            pair = Pair(names[novel[i]], names[int(gaps[i].argmin())], None)
            if frozenset(pair[:2]) not in seen:
                seen.add(frozenset(pair[:2]))
                pairs.append(pair)
    return pairs[:MAX_QUESTIONS]


def _view(result: Result, suspect: Suspect) -> dict[str, Any]:
    """A doubtful label with the nearest items on both sides."""
    own = int(result.assigned.labels[suspect.row])
    return {
        "row": suspect.row,
        "id": result.collection.ids[suspect.row],
        "given": result.names[own],
        "suggested": result.names[suspect.elsewhere],
        "score": round(suspect.score, 4),
        "n_neighbours": suspect.n_neighbours,
        "n_asked": suspect.n_asked,
        "given_rows": nearest_in(result, suspect.row, own),
        "suggested_rows": nearest_in(result, suspect.row, suspect.elsewhere),
    }


def nearest_in(result: Result, row: int, code: int) -> list[int]:
    """Rows of a category that are nearest to a row, without the row itself."""
    members: Ints = np.flatnonzero(result.assigned.labels == code)
    members = members[members != row]
    differences = result.V[members] - result.V[row]
    order = np.argsort(np.square(differences).sum(axis=1), kind="stable")
    return members[order[:N_NEAREST]].tolist()


def smaller_half(result: Result, rows: Sequence[int]) -> list[int]:
    """The smaller of the two halves that the mixture would divide these rows into."""
    if len(rows) < 4 or not result.V.shape[1]:
        return []
    V = result.V[rows].astype(np.float64)
    mean = V.mean(axis=0)
    scatter = (V - mean).T @ (V - mean)
    one = np.zeros(len(rows), dtype=np.int64)
    side = halve(V, one, scatter[None], mean[None], np.array([0]))
    smaller = int((side == 1).sum() <= (side == 0).sum())
    return np.asarray(rows)[side == smaller].tolist()


def in_order(cards: Sequence[dict[str, Any]], pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """Cards in the order of what a decision would teach: the most doubtful first.

    Open new categories come first: those with weak signs, then those that may be one with another,
    then by size times doubt. Known categories and those that are decided on follow.
    """
    paired = {name for pair in pairs if pair.mixing is not None for name in pair[:2]}

    def key(card: dict[str, Any]) -> tuple[Any, ...]:
        return (
            card["decided"],
            card["kind"] != "novel",
            -len(card["weak"]),
            card["name"] not in paired,
            -card["size"] * card["doubt"],
            card["name"],
        )

    return sorted(cards, key=key)
