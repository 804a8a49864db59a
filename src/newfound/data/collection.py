"""A `Collection`: items with ids, the labels that some of them have, and their content.

The content is pictures, features or texts. `newfound.data.reading` makes a collection from files;
pictures are only listed there and opened later. Whatever cannot be used is listed with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from newfound.arrays import Bools, Floats, Ints
from newfound.errors import InputError
from newfound.words import first_few, plural

#: Labels as a person gave them, texts or numbers; None where an item is unlabelled.
Labels: TypeAlias = npt.NDArray[np.object_]

#: Column → value of each item, None where it has none.
Metadata: TypeAlias = dict[str, list[str | None]]


@dataclass(frozen=True)
class Skipped:
    """An item that is left out.

    Attributes
    ----------
    path : str
        Its id: the path within the folder, or the id of the row.
    reason : str
        Why it is left out, in a few words.
    """

    path: str
    reason: str


# Without eq: comparing arrays gives an array, so a generated == would fail.
@dataclass(frozen=True, eq=False)
class Collection:
    """Items of which some are labelled: pictures, features or texts.

    Attributes
    ----------
    ids : list of str
        One unique id for each item: its path within the folder (with ``/``), the id that its
        table gives it, or the number of its row, starting at 0.
    y : ndarray of object, shape (n,)
        The label as it was given, text or number; None where an item is unlabelled.
    paths : list of Path, optional
        Picture files.
    features : ndarray of shape (n, d), optional
        Embeddings.
    texts : list of str, optional
        Texts. Exactly one of `paths`, `features` and `texts` is given.
    skipped : list of Skipped
        What was found and left out.
    root : Path, optional
        The folder or file that the collection was read from.
    metadata : dict of list
        Further columns of the table of texts or labels (`newfound.data.metadata`).
    """

    ids: list[str]
    y: Labels
    paths: list[Path] | None = None
    features: Floats | None = None
    texts: list[str] | None = None
    skipped: list[Skipped] = field(default_factory=list)
    root: Path | None = None
    metadata: Metadata = field(default_factory=dict)

    def __post_init__(self) -> None:
        contents = [part for part in (self.paths, self.features, self.texts) if part is not None]
        lengths = [len(self.ids), *[len(part) for part in (self.y, *contents)]]
        if len(contents) != 1 or len(set(lengths)) != 1:
            raise InputError(
                "A Collection needs exactly one of paths, features and texts, with one id and one "
                f"label for each item. Got {len(contents)} of the three, and the lengths {lengths}."
            )
        # Results, labels and later runs all refer to items by id.
        check_ids(self.ids, "the collection")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def kind(self) -> Literal["pictures", "features", "texts"]:
        """What the items are."""
        if self.paths is not None:
            return "pictures"
        return "features" if self.features is not None else "texts"

    @property
    def is_labelled(self) -> Bools:
        """Which items have a label, shape (n,)."""
        return np.array([label is not None for label in self.y], dtype=bool)

    def take(self, indices: Ints | Bools | Sequence[int]) -> Collection:
        """Select items, in the order of `indices`; the list of skipped items stays as it is."""
        # An empty list has no integer type of its own, and numpy would refuse it as an index.
        rows = np.arange(len(self))[np.asarray(indices, dtype=None if len(indices) else int)]
        return replace(
            self,
            ids=[self.ids[i] for i in rows],
            y=self.y[rows],
            paths=None if self.paths is None else [self.paths[i] for i in rows],
            features=None if self.features is None else self.features[rows],
            texts=None if self.texts is None else [self.texts[i] for i in rows],
            metadata={name: [values[i] for i in rows] for name, values in self.metadata.items()},
        )

    def without(self, skips: Iterable[tuple[int, str]]) -> Collection:
        """Leave items out; `skips` holds the index of each and the reason."""
        reasons = dict(skips)
        rest = self.take([i for i in range(len(self)) if i not in reasons])
        gone = [Skipped(self.ids[i], reason) for i, reason in sorted(reasons.items())]
        return replace(rest, skipped=[*self.skipped, *gone])


def without_unusable_rows(collection: Collection) -> Collection:
    """Skip texts that are empty, and rows of features in which a number is NaN or infinite.

    Parameters
    ----------
    collection : Collection
        Of any kind; pictures are not looked at.

    Returns
    -------
    Collection
        The other rows, with the skipped ones in its list.
    """
    skips: list[tuple[int, str]] = []
    if collection.features is not None:
        bad = np.flatnonzero(~np.isfinite(collection.features).all(axis=1))
        skips = [(int(i), "a feature is not a finite number") for i in bad]
    if collection.texts is not None:
        skips = [(i, "the text is empty") for i, text in enumerate(collection.texts) if not text]
    return collection.without(skips) if skips else collection


def check_ids(ids: Sequence[str], where: str) -> None:
    """Refuse ids that are empty or not unique; `where` says whose ids they are."""
    if "" in ids:
        raise InputError(f"An id in {where} is empty. Give every item an id, or none of them.")
    if len(set(ids)) < len(ids):
        repeated = [name for name, count in Counter(ids).items() if count > 1]
        raise InputError(f"Ids in {where} must be unique; these are not: {first_few(repeated)}.")


def check_discoverable(collection: Collection) -> None:
    """Refuse a collection in which there is nothing to discover, and say what is missing.

    Parameters
    ----------
    collection : Collection
        As `read_collection` gives it.

    Raises
    ------
    InputError
        If it is empty, has no label at all, or has no unlabelled item.
    """
    # Not part of reading: embed and predict also take collections without labels.
    n, things = len(collection), _THINGS[collection.kind]
    if n == 0:
        where = "" if collection.root is None else f" in {collection.root}"
        raise InputError(f"There are no {things}{where}.{why_empty(collection)}")
    if not collection.is_labelled.any():
        raise InputError(
            f"None of the {n} {things} has a label. newfound looks for new categories beside "
            f"known ones, so it needs some labels: {_HOW_TO_LABEL[collection.kind]}."
        )
    if collection.is_labelled.all():
        sizes = [f"{name!r}: {n}" for name, n in Counter(collection.y).most_common(3)]
        raise InputError(
            f"All {n} {things} have a label (most often {first_few(sizes)}), so there is nothing "
            f"to discover. {_HOW_TO_LEAVE_OPEN[collection.kind]}."
        )


_THINGS = {"pictures": "pictures", "features": "rows of features", "texts": "texts"}
_HOW_TO_LABEL = {
    "pictures": "give a table with the columns path and label, or sort some into class folders",
    "features": "give a table with the columns id and label, or save y beside X",
    "texts": "give them in a column 'label'",
}
_HOW_TO_LEAVE_OPEN = {
    "pictures": (
        "Leave the label empty where the category is not known, or put those pictures into a "
        "folder 'unlabelled'"
    ),
    "features": "Write -1 or an empty label where the category is not known",
    "texts": "Leave the label empty where the category is not known",
}


def main_cause(skipped: Sequence[Skipped]) -> tuple[Skipped, str]:
    """The first of those skipped for the commonest reason, and ", N of them for the same reason".

    The words are empty where they would say nothing: if all have that reason, or only one.
    """
    # A damaged file is named in its own reason, so reasons are compared without what follows "(".
    causes = [item.reason.partition(" (")[0] for item in skipped]
    cause, n = Counter(causes).most_common(1)[0]
    share = f", {n} of them for the same reason" if 1 < n < len(causes) else ""
    return skipped[causes.index(cause)], share


def why_empty(collection: Collection) -> str:
    """A hint at why nothing is left: why most items were skipped, or a wrong path."""
    if not collection.skipped:
        return " Check the path."
    first, share = main_cause(collection.skipped)
    counted = plural(len(collection.skipped), "item was skipped", "items were skipped")
    return f" {counted}{share}; the first is {first.path}: {first.reason}."
