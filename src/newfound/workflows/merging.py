"""Old and new items of a run together: which ids they get, which labels count, where they start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from newfound.arrays import Floats, Ints
from newfound.data.collection import Collection, Skipped
from newfound.data.metadata import joined
from newfound.errors import InputError
from newfound.labels import encode_labels
from newfound.result.assign import assign
from newfound.result.result import Result
from newfound.workflows.encoding import EncodedItems


class MergedItems(NamedTuple):
    """Old and new items together.

    Attributes
    ----------
    collection : Collection
        The old items in their order, then the new ones.
    features : ndarray of shape (n, d)
        Their features.
    start : ndarray of shape (n,)
        For each item, the category it starts in, as its code in the earlier run.
    old_changed : bool
        Whether labels or features of old items have changed.
    """

    collection: Collection
    features: Floats
    start: Ints
    old_changed: bool


def merge_items(old: Result, more: EncodedItems) -> MergedItems:
    """Add items to those of a result. An item that is there already is updated."""
    ids = _ids_for(old, more)
    place = {name: row for row, name in enumerate(old.collection.ids)}
    new = np.array([i for i, name in enumerate(ids) if name not in place], dtype=np.int64)
    again = np.array([i for i, name in enumerate(ids) if name in place], dtype=np.int64)
    rows = np.array([place[ids[i]] for i in again], dtype=np.int64)
    features = np.concatenate([old.features, more.features[new].astype(old.features.dtype)])
    features[rows] = more.features[again]
    renamed = replace(more.collection, ids=ids)
    y = [*old.collection.y, *renamed.y[new]]
    for row, label in zip(rows, renamed.y[again], strict=True):
        y[row] = y[row] if label is None else label
    collection = _joined(old.collection, renamed.take(new), features, y)
    start = old.assigned.labels
    if len(new):
        start = np.concatenate([start, _nearest_categories(old, more.features[new])])
    n_old = len(old.collection)
    old_changed = not (
        np.allclose(features[:n_old], old.features)
        and _as_texts(old.collection.y) == collection.y[:n_old].tolist()
    )
    return MergedItems(collection, features, start, old_changed)


def _nearest_categories(old: Result, features: Floats) -> Ints:
    assert old.mixture is not None  # `encode_like` has refused a run without a model
    assigned, _ = assign(old.mixture, features)
    return assigned.labels


def start_partition(old: Result, merged: MergedItems) -> Ints:
    """The partition to start from: known classes in sorted order, then the other categories."""
    known = [str(name) for name in encode_labels(merged.collection.y).classes.tolist()]
    start = [old.names[code] for code in merged.start]
    promoted = _promoted_categories(old, start, merged.collection.y)
    start = [promoted.get(name, name) for name in start]
    names = [*known, *sorted(set(start) - set(known))]
    number = {name: i for i, name in enumerate(names)}
    return np.array([number[name] for name in start], dtype=np.int64)


def _promoted_categories(old: Result, start: Sequence[str], y: Iterable[Any]) -> dict[str, str]:
    """Novel categories that now have labels of a new class, with that class.

    All items of such a category start in the class, not only the labelled ones: a person who
    labels a few items of a category names the category.
    """
    were_known = set(old.names[: old.n_known])
    labels: dict[str, Counter[str]] = {}
    for category, label in zip(start, y, strict=True):
        if category not in were_known and label is not None and label not in were_known:
            labels.setdefault(category, Counter())[label] += 1
    return {category: given.most_common(1)[0][0] for category, given in labels.items()}


def _joined(old: Collection, new: Collection, features: Floats, y: Sequence[Any]) -> Collection:
    """Two collections as one, with labels as texts."""
    labels = np.empty(len(y), dtype=object)
    labels[:] = _as_texts(y)
    skipped: dict[str, Skipped] = {item.path: item for item in (*old.skipped, *new.skipped)}
    return Collection(
        ids=[*old.ids, *new.ids],
        y=labels,
        paths=None if old.paths is None else [*old.paths, *(new.paths or [])],
        features=None if old.features is None else features,
        texts=None if old.texts is None else [*old.texts, *(new.texts or [])],
        skipped=list(skipped.values()),
        root=old.root,
        metadata=joined([(old.metadata, len(old)), (new.metadata, len(new))]),
    )


def _as_texts(y: Iterable[Any]) -> list[str | None]:
    return [None if label is None else str(label) for label in y]


def _ids_for(old: Result, more: EncodedItems) -> list[str]:
    """Ids for more items: their own id, or one with the name of the folder or file in front.

    The second form is used if another item of the run already has the id.
    """
    place = {name: row for row, name in enumerate(old.collection.ids)}
    paths = old.collection.paths or []
    by_path = {str(path): old.collection.ids[row] for row, path in enumerate(paths)}
    root = more.collection.root
    stem = "more" if root is None else root.name
    ids = []
    for row, name in enumerate(more.collection.ids):
        path = "" if more.collection.paths is None else str(more.collection.paths[row])
        choices = [by_path[path]] if path in by_path else [name, f"{stem}/{name}"]
        free = [c for c in choices if c not in place or _is_same(old, place[c], more, row)]
        if not free:
            raise InputError(
                f"The run already has an item {name!r} with other content. Give new items ids of "
                "their own."
            )
        ids.append(free[0])
    return ids


def _is_same(old: Result, place: int, more: EncodedItems, row: int) -> bool:
    """Whether an item with the same id is the same item."""
    before, now = old.collection, more.collection
    if before.paths is not None and now.paths is not None:
        return before.paths[place] == now.paths[row]
    if before.root is not None and before.root == now.root:
        return True
    if before.texts is not None and now.texts is not None:
        return before.texts[place] == now.texts[row]
    return np.array_equal(old.features[place], more.features[row])
