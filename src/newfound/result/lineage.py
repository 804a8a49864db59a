"""Ids of novel categories that stay, from one run to the next, and what changed between the two.

A novel category has no name, only the items in it. Numbers that a clustering gives are of one run;
here the new partition is matched with the old one by the items that both have, and a category that
is the same by that keeps its id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.optimize import linear_sum_assignment

from newfound.arrays import Ints

Table: TypeAlias = Any  # a pandas.DataFrame

#: Two categories are the same if they share at least this much of the smaller one.
SAME = 0.5


def novel_ids(n: int, taken: Iterable[str] = (), after: int = 0) -> list[str]:
    """Ids for novel categories: ``new-001`` and on.

    Parameters
    ----------
    n : int
        How many.
    taken : iterable of str
        Names that are in use, those of known classes among them.
    after : int, default=0
        The highest number that was ever given: an id that is gone is not given again.

    Returns
    -------
    list of str
        The next free ones.
    """
    names = set(taken)
    found: list[str] = []
    number = after
    while len(found) < n:
        number += 1
        if (name := f"new-{number:03d}") not in names:
            found.append(name)
    return found


def highest_number(names: Iterable[str]) -> int:
    """The highest number among ids of novel categories, 0 without any."""
    numbers = [name.removeprefix("new-") for name in names if name.startswith("new-")]
    return max((int(number) for number in numbers if number.isdecimal()), default=0)


class Partition(NamedTuple):
    """Items and the novel component that each is in.

    Attributes
    ----------
    ids : sequence of str
        Ids of the items.
    labels : ndarray of shape (n,)
        Component of each item.
    known : sequence of str
        Names of the first components, the known classes.
    """

    ids: Sequence[str]
    labels: Ints
    known: Sequence[str]


def keep_ids(before: dict[str, str], now: Partition, after: int) -> list[str]:
    """Name the components of a new partition by the old one.

    The matching has the most shared items in total; two categories that share less than half
    of the smaller one are not the same. Numbers of the components play no part.

    Parameters
    ----------
    before : dict
        Item → id, of all items that were in a novel category.
    now : Partition
        The new one.
    after : int
        The highest number that was ever given.

    Returns
    -------
    list of str
        A name for each component: known classes first, then novel ones, which keep their id or
        have the next free one, the largest first.
    """
    order = _by_size(now)
    sizes = np.bincount(now.labels, minlength=len(now.known))
    old = sorted(set(before.values()) - set(now.known))
    shared = _count_shared(before, now, old, order)
    old_sizes = Counter(before.values())
    names: dict[int, str] = {}
    for row, column in zip(*linear_sum_assignment(-shared), strict=True):
        smaller = min(old_sizes[old[row]], sizes[order[column]])
        if shared[row, column] >= SAME * smaller:
            names[order[column]] = old[row]
    unnamed = [component for component in order if component not in names]
    taken = {*now.known, *old}
    names.update(zip(unnamed, novel_ids(len(unnamed), taken, after), strict=True))
    n_components = len(now.known) + len(order)
    return [*now.known, *(names[i] for i in range(len(now.known), n_components))]


def _by_size(now: Partition) -> list[int]:
    """Novel components, the largest first; of equal ones that with the first id."""
    first: dict[int, str] = {}
    for name, label in zip(now.ids, now.labels.tolist(), strict=True):
        first[label] = min(first.get(label, name), name)
    sizes = np.bincount(now.labels, minlength=len(now.known))
    novel = range(len(now.known), len(sizes))
    return sorted(novel, key=lambda i: (-sizes[i], first.get(i, "")))


def _count_shared(before: dict[str, str], now: Partition, old: list[str], order: list[int]) -> Ints:
    """Items that each old category, in rows, shares with each new component, in columns."""
    rows = {name: row for row, name in enumerate(old)}
    columns = {component: column for column, component in enumerate(order)}
    shared = np.zeros((len(old), len(order)), dtype=np.int64)
    for name, label in zip(now.ids, now.labels.tolist(), strict=True):
        row, column = rows.get(before.get(name, "")), columns.get(label)
        if row is not None and column is not None:
            shared[row, column] += 1
    return shared


# ------------------------------------------------------------------------------------ what changed


@dataclass(frozen=True)
class Changes:
    """What is otherwise than before.

    Attributes
    ----------
    n_before, n_after : int
        Number of items.
    added, removed : list of str
        Ids of items that are new, and of those that are gone.
    moved : list of (str, str, str)
        Id of an item, its category before, its category now.
    new : dict of int
        Categories that were not there before, with their size.
    gone : dict of str
        Categories that are no more, each with the one that most of its items are in now;
        an empty text where none of them is left.
    resized : dict of (int, int)
        Size before and now, of those that grew or shrank.
    """

    n_before: int
    n_after: int
    added: list[str]
    removed: list[str]
    moved: list[tuple[str, str, str]]
    new: dict[str, int]
    gone: dict[str, str]
    resized: dict[str, tuple[int, int]]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [
            f"{self.n_after} items, {self.n_before} before: {len(self.added)} are new, "
            f"{len(self.removed)} are gone, {len(self.moved)} changed their category."
        ]
        lines += [f"New category: {name} ({size} items)." for name, size in self.new.items()]
        lines += [
            f"Gone: {name}" + (f"; most of its items are in {now} now." if now else ".")
            for name, now in self.gone.items()
        ]
        lines += [
            f"{'Grown' if now > before else 'Shrunk'}: {name}, from {before} to {now} items."
            for name, (before, now) in self.resized.items()
        ]
        if len(lines) == 1 and not self.moved:
            lines.append("The categories are the same as before.")
        return "\n".join(lines)


def compare(before: Table, now: Table) -> Changes:
    """Tell what changed between two tables of assignments.

    Parameters
    ----------
    before, now : DataFrame
        With the columns ``id`` and ``category``, as `Result.table` has them.

    Returns
    -------
    Changes
        In lists and in words.
    """
    old = dict(zip(before["id"], before["category"], strict=True))
    new = dict(zip(now["id"], now["category"], strict=True))
    old_sizes, new_sizes = _sizes(old), _sizes(new)
    both = [name for name in new if name in old]
    return Changes(
        n_before=len(old),
        n_after=len(new),
        added=[name for name in new if name not in old],
        removed=[name for name in old if name not in new],
        moved=[(name, old[name], new[name]) for name in both if old[name] != new[name]],
        new={name: size for name, size in new_sizes.items() if name not in old_sizes},
        gone={name: _whereabouts(name, old, new) for name in old_sizes if name not in new_sizes},
        resized={
            name: (old_sizes[name], size)
            for name, size in new_sizes.items()
            if name in old_sizes and old_sizes[name] != size
        },
    )


def _sizes(categories: dict[str, str]) -> dict[str, int]:
    """Number of items in each category, in the order of the names."""
    sizes: dict[str, int] = {}
    for category in sorted(categories.values()):
        sizes[category] = sizes.get(category, 0) + 1
    return sizes


def _whereabouts(gone: str, old: dict[str, str], new: dict[str, str]) -> str:
    """The category that most items of one that is gone are in now."""
    sizes = _sizes({item: new[item] for item in old if old[item] == gone and item in new})
    return max(sizes, key=sizes.__getitem__, default="")
