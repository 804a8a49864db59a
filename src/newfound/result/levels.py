"""Coarser and finer categories of a result: the tree with names, and its file ``levels.json``.

The tree belongs to the run that was counted. It stays with the run when a person chooses another
level, so that it is possible to go back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from newfound.arrays import Ints
from newfound.data.tables import Table, make_table
from newfound.errors import InputError
from newfound.mixture.granularity import CategoryTree, Join, grow_tree
from newfound.result.lineage import highest_number, novel_ids

if TYPE_CHECKING:
    from newfound.result.result import Result

LEVELS = "levels.json"
#: Novel categories are split until there are this many times as many, and at most this many more.
_TIMES_FINER, _MOST_MORE = 2, 100


@dataclass(frozen=True)
class Level:
    """The categories of a run on one level of its tree.

    Attributes
    ----------
    names : tuple of str
        Known classes, then novel categories.
    labels : ndarray of int, shape (n,)
        For each item, the position of its category in `names`.
    n_known : int
        K^l.
    table : DataFrame
        One row for each item: ``id``, ``given_label``, ``category``, ``kind``.
    """

    names: tuple[str, ...]
    labels: Ints
    n_known: int
    table: Table


@dataclass(frozen=True)
class Levels:
    """All levels of a run, from coarse to fine.

    Attributes
    ----------
    tree : CategoryTree
        Nested partitions of the items.
    names : tuple of str
        Name of each leaf. A category has the name of its smallest leaf, which is the largest of
        the run's categories in it.
    interval : tuple of float or None
        90 % interval of K, known and novel together; None if K was given.
    """

    tree: CategoryTree
    names: tuple[str, ...]
    interval: tuple[float, float] | None

    @classmethod
    def of(cls, result: Result) -> Levels:
        """Grow the tree of a result that has its model."""
        n_known, k = result.n_known, len(result.names)
        ends = result.record.n_novel_interval
        interval = None if ends is None else (n_known + ends[0], n_known + ends[1])
        wanted = max(_TIMES_FINER * result.n_novel, 0 if ends is None else ends[1])
        most = k + _MOST_MORE if math.isinf(wanted) else n_known + math.ceil(wanted)
        most = min(max(most, k), k + _MOST_MORE)
        tree = grow_tree(result.V, result.assigned.labels, n_known, k, most)
        after = max(result.record.last_id, highest_number(result.names))
        more = novel_ids(tree.finest - k, result.names, after)
        return cls(tree, (*result.names, *more), interval)

    @property
    def counted(self) -> int:
        """K of the run that the tree was grown from."""
        return self.tree.n_components

    def check(self, k: int) -> None:
        """Refuse a number of categories that no level has."""
        low, high = self.tree.coarsest, self.tree.finest
        if not low <= k <= high:
            raise InputError(
                f"There is no level with {k} categories; choose {low} to {high}. Known categories "
                f"({self.tree.n_known}) are neither merged nor split here, and parts of fewer than "
                "6 items are not split off."
            )

    def names_at(self, k: int) -> tuple[str, ...]:
        """Names of the categories of a level."""
        self.check(k)
        return tuple(self.names[leaf] for leaf in np.unique(self.tree.roots(k)))

    def places_at(self, k: int) -> list[str]:
        """For each item, the name of its category on a level."""
        names = self.names_at(k)
        return [names[code] for code in self.tree.cut(k).tolist()]

    def step(self, k: int) -> tuple[str, str, Join] | None:
        """The two categories that are one on the level of k and two on the next finer one."""
        join = self.tree.join_at(k)
        return None if join is None else (self.names[join.first], self.names[join.second], join)

    def fits(self, result: Result) -> bool:
        """Whether the result is one of the levels."""
        k = len(result.names)
        if len(self.tree.leaves) != len(result) or self.tree.n_known != result.n_known:
            return False
        if not self.tree.coarsest <= k <= self.tree.finest:
            return False
        places = [result.names[code] for code in result.assigned.labels.tolist()]
        return self.places_at(k) == places

    def as_json(self) -> dict[str, Any]:
        """Plain values; the leaves are one text, because they are many."""
        tree = self.tree
        return {
            "n_known": tree.n_known,
            "n_components": tree.n_components,
            "interval": self.interval and [_finite(end) for end in self.interval],
            "names": list(self.names),
            "joins": [asdict(join) for join in tree.joins],
            "leaves": " ".join(map(str, tree.leaves.tolist())),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Levels:
        """Read what `as_json` made; a ValueError or KeyError if it is damaged."""
        leaves = np.array(values["leaves"].split(), dtype=np.int64)
        joins = tuple(Join(**join) for join in values["joins"])
        tree = CategoryTree(leaves, joins, int(values["n_known"]), int(values["n_components"]))
        ends = values["interval"]
        interval = None if ends is None else (float(ends[0]), _infinite(ends[1]))
        names = tuple(str(name) for name in values["names"])
        if len(names) != tree.finest or leaves.min(initial=0) < 0 or tree.coarsest < tree.n_known:
            raise ValueError("its parts do not belong together")
        return cls(tree, names, interval)


def level_of(result: Result, levels: Levels, k: int) -> Level:
    """One level of a result as a table."""
    names = levels.names_at(k)
    labels: Ints = levels.tree.cut(k)
    if k == len(result.names):  # the result itself, in its own order
        names, labels = result.names, result.assigned.labels
    table = result.table
    columns = {
        "id": table["id"].to_numpy(),
        "given_label": table["given_label"].to_numpy(),
        "category": np.array(names, dtype=object)[labels],
        "kind": np.where(labels < result.n_known, "known", "novel").astype(object),
    }
    return Level(names, labels, result.n_known, make_table(columns))


def step_sentence(step: tuple[str, str, Join] | None, n_known: int) -> str:
    """The evidence for and against a join, in a sentence or two."""
    if step is None:
        return "Nothing is split further."
    first, second, join = step
    split = f"One step finer, {first} is divided into {first} and {second}."
    if join.apart is None or join.nearer is None:
        return split
    halves, classes = round(join.apart * n_known), round(join.nearer * n_known)
    return (
        f"{split} The two differ more than the halves of {halves} of {n_known} known categories "
        f"do, and less than {classes} of {n_known} known categories differ from their nearest."
    )


def steps_for_page(levels: Levels) -> list[dict[str, Any]]:
    """What a slider shows: one entry for each level, from coarse to fine."""
    low, high = levels.interval or (math.nan, math.nan)
    n_known = levels.tree.n_known
    return [
        {
            "k": k,
            "novel": k - n_known,
            "counted": k == levels.counted,
            "inside": bool(low - 0.5 <= k <= high + 0.5),
            "words": step_sentence(levels.step(k), n_known),
            "names": list(step[:2]) if (step := levels.step(k)) else [],
        }
        for k in range(levels.tree.coarsest, levels.tree.finest + 1)
    ]


def _finite(end: float) -> float | None:
    return float(end) if math.isfinite(end) else None


def _infinite(end: float | None) -> float:
    return math.inf if end is None else float(end)
