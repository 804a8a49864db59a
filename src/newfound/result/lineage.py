"""Ids of novel categories that stay the same from run to run, and the changes between two runs.

A novel category has no name of its own. The numbers that a clustering gives its components are
valid for one run only. So the new partition is matched with the old one by the items that both
contain, and a category that is found again keeps its id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.optimize import linear_sum_assignment

from newfound.arrays import Ints
from newfound.words import plural

Table: TypeAlias = Any  # a pandas.DataFrame

#: Two categories are the same if they share at least this part of the smaller one.
SAME = 0.5


def novel_ids(n: int, taken: Iterable[str] = (), after: int = 0) -> list[str]:
    """Ids for novel categories: ``new-001``, ``new-002`` and so on.

    Parameters
    ----------
    n : int
        Number of ids.
    taken : iterable of str
        Names in use, including those of known classes.
    after : int, default=0
        The highest number used so far, also for categories that no longer exist: an id is never
        used twice.

    Returns
    -------
    list of str
        The next free ids.
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
    """The highest number among ids of novel categories, 0 if there is none."""
    numbers = [name.removeprefix("new-") for name in names if name.startswith("new-")]
    return max((int(number) for number in numbers if number.isdecimal()), default=0)


class Partition(NamedTuple):
    """Items and the component that each is in.

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
    """Name the components of a new partition after the categories of the old one.

    Components and old categories are matched such that the pairs share the most items in total.
    Two that share less than half of the smaller one do not count as the same. The numbers of the
    components do not matter.

    Parameters
    ----------
    before : dict
        Id of an item → id of its category, for all items that were in a novel category.
    now : Partition
        The new partition.
    after : int
        The highest number used so far in an id of a novel category.

    Returns
    -------
    list of str
        A name for each component: known classes first, then novel ones. A novel one keeps its id,
        or gets the next free one, the largest component first.
    """
    order = _by_size(now)
    sizes = np.bincount(now.labels, minlength=len(now.known))
    old = sorted(set(before.values()) - set(now.known))
    shared = _count_shared(before, now, old, order)
    old_sizes = Counter(before.values())
    names: dict[int, str] = {}
    for row, column in zip(*linear_sum_assignment(-shared), strict=True):
        # Measured by the smaller one: a category that doubled with new items is still the same.
        smaller = min(old_sizes[old[row]], sizes[order[column]])
        if shared[row, column] >= SAME * smaller:
            names[order[column]] = old[row]
    unnamed = [component for component in order if component not in names]
    # An old id that found no match is not free: its category is gone, not renamed.
    taken = {*now.known, *old}
    names.update(zip(unnamed, novel_ids(len(unnamed), taken, after), strict=True))
    n_components = len(now.known) + len(order)
    return [*now.known, *(names[i] for i in range(len(now.known), n_components))]


def _by_size(now: Partition) -> list[int]:
    """Novel components, the largest first; ties in the order of their first item id."""
    first: dict[int, str] = {}
    for name, label in zip(now.ids, now.labels.tolist(), strict=True):
        first[label] = min(first.get(label, name), name)
    sizes = np.bincount(now.labels, minlength=len(now.known))
    # The item id breaks ties, because the order of components changes with the seed.
    novel = range(len(now.known), len(sizes))
    return sorted(novel, key=lambda i: (-sizes[i], first.get(i, "")))


def _count_shared(before: dict[str, str], now: Partition, old: list[str], order: list[int]) -> Ints:
    """Number of items that old categories (rows) share with new components (columns)."""
    rows = {name: row for row, name in enumerate(old)}
    columns = {component: column for column, component in enumerate(order)}
    shared = np.zeros((len(old), len(order)), dtype=np.int64)
    for name, label in zip(now.ids, now.labels.tolist(), strict=True):
        row, column = rows.get(before.get(name, "")), columns.get(label)
        if row is not None and column is not None:
            shared[row, column] += 1
    return shared


# ---------------------------------------------------------------------------------------- changes


@dataclass(frozen=True)
class Changes:
    """Differences between two results.

    Attributes
    ----------
    n_before, n_after : int
        Number of items before and now.
    added, removed : list of str
        Ids of items that are new, and of items that are gone.
    moved : list of (str, str, str)
        For each item that changed category: its id, its category before, its category now.
    new : dict of int
        Categories that did not exist before, with their size.
    gone : dict of str
        Categories that no longer exist, each with the category that most of its items are in
        now, or an empty text if none of its items is left.
    resized : dict of (int, int)
        Categories that grew or shrank, with their size before and now.
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

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Changes:
        """Read what `as_dict` gave, after JSON has made lists of tuples."""
        moved = [(name, before, now) for name, before, now in values["moved"]]
        resized = {name: (before, now) for name, (before, now) in values["resized"].items()}
        return cls(**{**values, "moved": moved, "resized": resized})

    def __str__(self) -> str:
        lines = [
            f"{self.n_after} items, {self.n_before} before: {len(self.added)} added, "
            f"{len(self.removed)} removed, {len(self.moved)} in another category."
        ]
        lines += [
            f"New category: {name} ({plural(size, 'item')})." for name, size in self.new.items()
        ]
        lines += [
            f"Gone: {name}" + (f"; most of its items are now in {now}." if now else ".")
            for name, now in self.gone.items()
        ]
        lines += [
            f"{'Grown' if now > before else 'Shrunk'}: {name}, "
            f"from {before} to {plural(now, 'item')}."
            for name, (before, now) in self.resized.items()
        ]
        if len(lines) == 1 and not self.moved:
            lines.append("The categories are the same as before.")
        return "\n".join(lines)


def compare(before: Table, now: Table) -> Changes:
    """Compare two tables of items.

    Parameters
    ----------
    before, now : DataFrame
        Tables with the columns ``id`` and ``category``, such as `Result.table`.

    Returns
    -------
    Changes
        The differences; its ``str`` is a summary in words.
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
        gone={name: _successor(name, old, new) for name in old_sizes if name not in new_sizes},
        resized={
            name: (old_sizes[name], size)
            for name, size in new_sizes.items()
            if name in old_sizes and old_sizes[name] != size
        },
    )


def _sizes(categories: dict[str, str]) -> dict[str, int]:
    """Number of items in each category, sorted by name."""
    sizes: dict[str, int] = {}
    for category in sorted(categories.values()):  # so that ties do not depend on the row order
        sizes[category] = sizes.get(category, 0) + 1
    return sizes


def _successor(gone: str, old: dict[str, str], new: dict[str, str]) -> str:
    """The category that most items of a category that no longer exists are in now."""
    sizes = _sizes({item: new[item] for item in old if old[item] == gone and item in new})
    return max(sizes, key=sizes.__getitem__, default="")
