"""Ids of novel categories that stay the same from run to run, and the changes between two runs.

A novel category has no name of its own. The numbers that a clustering gives its components are
valid for one run only. So the new partition is matched with the old one by the items that both
contain, and a category that is found again keeps its id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.optimize import linear_sum_assignment

from newfound.arrays import Ints
from newfound.words import first_few, plural

Table: TypeAlias = Any  # a pandas.DataFrame

#: Two categories are the same if they share at least this part of the smaller one.
SAME = 0.5
#: A category is split into parts that have at least this share of its items.
PART = 0.1


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
    renamed : dict of str
        Categories that are gone because they have another name now: name before → name now.
    merged : dict of list of str
        Categories that hold most of several earlier ones, with the names of these.
    split : dict of list of str
        Categories whose items are in several categories now, of which at least one is new.
    """

    n_before: int
    n_after: int
    added: list[str]
    removed: list[str]
    moved: list[tuple[str, str, str]]
    new: dict[str, int]
    gone: dict[str, str]
    resized: dict[str, tuple[int, int]]
    renamed: dict[str, str] = field(default_factory=dict)
    merged: dict[str, list[str]] = field(default_factory=dict)
    split: dict[str, list[str]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    @property
    def n_moved(self) -> int:
        """Number of items in another category, not counting those whose category was renamed."""
        return sum(self.renamed.get(before) != now for _, before, now in self.moved)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Changes:
        """Read what `as_dict` gave, after JSON has made lists of tuples."""
        moved = [(name, before, now) for name, before, now in values["moved"]]
        resized = {name: (before, now) for name, (before, now) in values["resized"].items()}
        return cls(**{**values, "moved": moved, "resized": resized})

    def __str__(self) -> str:
        return self.in_words()

    def in_words(self, thing: str = "item") -> str:
        """A summary, one line for each change of a category.

        Parameters
        ----------
        thing : str, default="item"
            What an item is called: "picture", "text" or "item".

        Returns
        -------
        str
            What became of categories first, then new ones, those that are gone, and sizes.
        """
        lines = [
            f"{self.n_after:,} {thing}s, {self.n_before:,} before: {len(self.added):,} added, "
            f"{len(self.removed):,} removed, {self.n_moved:,} in another category."
        ]
        lines += [f"Renamed: {old} is now {new}." for old, new in self.renamed.items()]
        lines += [
            f"Merged into {now}: {first_few([name for name in old if name != now])}."
            for now, old in self.merged.items()
        ]
        lines += [f"Split: {old} is now {first_few(new)}." for old, new in self.split.items()]
        named = {*self.renamed.values()}
        lines += [
            f"New category: {name} ({plural(size, thing)})."
            for name, size in self.new.items()
            if name not in named
        ]
        merged = (old for group in self.merged.values() for old in group)
        told = {*self.renamed, *self.split, *merged}
        lines += [
            f"Gone: {name}" + (f"; most of its {thing}s are now in {now}." if now else ".")
            for name, now in self.gone.items()
            if name not in told
        ]
        lines += [
            f"{'Grown' if now > before else 'Shrunk'}: {name}, "
            f"from {before:,} to {plural(now, thing)}."
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
    gone = {name: _successor(name, old, new) for name in old_sizes if name not in new_sizes}
    renamed, merged, split = _lineage(old, new)
    return Changes(
        n_before=len(old),
        n_after=len(new),
        added=[name for name in new if name not in old],
        removed=[name for name in old if name not in new],
        moved=[(name, old[name], new[name]) for name in both if old[name] != new[name]],
        new={name: size for name, size in new_sizes.items() if name not in old_sizes},
        gone=gone,
        resized={
            name: (old_sizes[name], size)
            for name, size in new_sizes.items()
            if name in old_sizes and old_sizes[name] != size
        },
        renamed=renamed,
        merged=merged,
        split=split,
    )


def _lineage(
    old: dict[str, str], new: dict[str, str]
) -> tuple[dict[str, str], dict[str, list[str]], dict[str, list[str]]]:
    """Which categories were renamed, merged and split, by the items that they share."""
    shared = Counter((old[item], new[item]) for item in new if item in old)
    old_sizes, new_sizes = _sizes(old), _sizes(new)
    parts: dict[str, list[str]] = {}
    sources: dict[str, list[str]] = {}
    renamed = {}
    for (before, now), n in sorted(shared.items(), key=lambda entry: (-entry[1], entry[0])):
        # a new category is a part of the one that most of it comes from
        is_part = now == before or (now not in old_sizes and n > SAME * new_sizes[now])
        if is_part and n >= PART * old_sizes[before]:
            parts.setdefault(before, []).append(now)
        if n > SAME * old_sizes[before] and (before not in new_sizes or before == now):
            sources.setdefault(now, []).append(before)
            is_most = n > SAME * new_sizes[now]
            if is_most and before not in new_sizes and now not in old_sizes:
                renamed[before] = now
    merged = {now: olds for now, olds in sources.items() if len(olds) > 1}
    in_merged = {name for olds in merged.values() for name in olds}
    split = {
        before: nows
        for before, nows in parts.items()
        # if most of it is elsewhere, it was given up
        if len(nows) > 1 and sum(shared[before, now] for now in nows) > SAME * old_sizes[before]
    }
    renamed = {before: now for before, now in renamed.items() if before not in in_merged}
    return renamed, merged, split


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
