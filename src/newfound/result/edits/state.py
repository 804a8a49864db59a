"""Where items are while edits are replayed: their category, their label, and what holds them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from newfound.result.lineage import SAME

#: The place of an item whose category was rejected: it goes to the nearest other one.
NOWHERE = ""


@dataclass(frozen=True)
class Effect:
    """What one edit means for single items. It stays the same, whatever categories are later.

    Attributes
    ----------
    labelled : dict of list of str
        Class → items that get it as their label.
    held : dict of list of str
        Novel category → items that stay in it.
    placed : dict of list of str
        Category → items that go there, and that later items may draw away again.
    unlabelled : list of str
        Items that lose their label.
    dissolved : list of str
        Items of a category that is none.
    apart : tuple of two lists of str
        Items of two categories that are different, or two single items.
    together : list of str
        Two items that are in the same category.
    """

    labelled: dict[str, list[str]] = field(default_factory=dict)
    held: dict[str, list[str]] = field(default_factory=dict)
    placed: dict[str, list[str]] = field(default_factory=dict)
    unlabelled: list[str] = field(default_factory=list)
    dissolved: list[str] = field(default_factory=list)
    apart: tuple[list[str], ...] = ()
    together: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Plain values, without those that are empty."""
        return {name: value for name, value in asdict(self).items() if value}


class State:
    """Categories, labels and links of all items.

    Parameters
    ----------
    place : dict of str
        Item → category.
    labels : dict of (str or None)
        Item → given label.
    found : dict of str, optional
        Item → category in the last result.
    at : callable, optional
        Number of categories → the place of each item on that level of the last result.
    """

    def __init__(
        self,
        place: dict[str, str],
        labels: dict[str, str | None],
        found: dict[str, str] | None = None,
        at: Callable[[int], dict[str, str]] | None = None,
    ) -> None:
        self.place = place
        self.labels = labels
        self.found = found or {}
        self.at = at
        #: Items that stay in a novel category, with the row that says so.
        self.held: dict[str, int] = {}
        #: Item → row of the last edit that put it somewhere.
        self.put_by: dict[str, int] = {}
        #: Names that are gone → row of the edit, and the name that its items have now.
        self.gone: dict[str, tuple[int, str]] = {}
        #: Rows of edits that say "different" and "same", with the items.
        self.apart: list[tuple[int, Sequence[str], Sequence[str]]] = []
        self.together: list[tuple[int, str, str]] = []
        #: Items whose label a person has decided on.
        self.decided: set[str] = set()
        self._members: dict[str, dict[str, None]] = {}
        for item, category in place.items():
            self._members.setdefault(category, {})[item] = None
        self._n_labelled: dict[str, int] = {}
        for label in labels.values():
            if label is not None:
                self._n_labelled[label] = self._n_labelled.get(label, 0) + 1

    def members(self, category: str) -> list[str]:
        """Items of a category, in the order of the run."""
        return list(self._members.get(category, ()))

    @property
    def categories(self) -> list[str]:
        """Names of all categories that have items."""
        return [name for name, items in self._members.items() if items and name != NOWHERE]

    def is_class(self, name: str) -> bool:
        """Whether items have this label."""
        return self._n_labelled.get(name, 0) > 0

    def apply(self, effect: Effect, row: int) -> None:
        """Put items where an edit says."""
        for group in (effect.unlabelled, *effect.held.values()):
            for item in group:
                self._label(item, None)
        for category, items in effect.labelled.items():
            for item in items:
                self._label(item, category)
                self._put(item, category, row)
                self.held.pop(item, None)
                self.decided.add(item)
        for category, items in effect.held.items():
            for item in items:
                self._put(item, category, row)
                self.held[item] = row
                self.decided.add(item)
        for category, items in effect.placed.items():
            for item in items:
                self._put(item, category, row)
        self.decided.update(effect.unlabelled)
        if effect.dissolved:
            self._dissolve(effect.dissolved, row)
        if effect.apart:
            self._keep_apart(effect.apart, row)
        if effect.together:
            self.together.append((row, *effect.together))  # type: ignore[arg-type]

    def _label(self, item: str, label: str | None) -> None:
        before = self.labels[item]
        if before is not None:
            self._n_labelled[before] -= 1
        if label is not None:
            self._n_labelled[label] = self._n_labelled.get(label, 0) + 1
        self.labels[item] = label

    def _put(self, item: str, category: str, row: int) -> None:
        self._members[self.place[item]].pop(item, None)
        self._members.setdefault(category, {})[item] = None
        self.place[item] = category
        self.put_by[item] = row

    def _dissolve(self, items: Sequence[str], row: int) -> None:
        """Take items out of the category that they make up, also if it has formed again."""
        for category in self.categories:
            both = _shared(items, self._members[category])
            is_it = len(both) > SAME * max(len(items), len(self._members[category]))
            if is_it and not self.is_class(category):
                for item in both:
                    self._put(item, NOWHERE, row)

    def _keep_apart(self, sides: Sequence[Sequence[str]], row: int) -> None:
        first, second = sides
        self.apart.append((row, first, second))
        shared = self.where_both(first, second)
        if shared is None or self.is_class(shared) or len(second) == 1:
            return
        # The model has put two categories together that a person keeps apart.
        for item in _shared(second, self._members[shared]):
            self._put(item, f"{shared} (2)", row)

    def where_both(self, first: Sequence[str], second: Sequence[str]) -> str | None:
        """The category that has most items of both sides; None if there is none."""
        for category in {self.place[item] for item in first if item in self.place}:
            members = self._members[category]
            if all(len(_shared(side, members)) > SAME * len(side) for side in (first, second)):
                return category if category != NOWHERE else None
        return None


def _shared(items: Iterable[str], members: dict[str, None]) -> list[str]:
    return [item for item in items if item in members]
