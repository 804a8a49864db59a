"""The order of the known classes inside the mixture: by what their rows hold, not by their names.

Users see the classes sorted by name. Random draws, ties and the last digits of sums depend on some
order of the classes. If that were the order of the names, a class that is renamed would change the
result. So all computations number the classes by the content of their labelled rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from newfound.arrays import Floats, Ints, Keys
from newfound.labels import UNLABELLED, PartialLabels

_Array = TypeVar("_Array", bound=npt.NDArray[Any])


@dataclass(frozen=True)
class ClassOrder:
    """Two ways to number the known classes: by name, as users see them, and by content.

    Novel components come after the known classes and have the same number in both.

    Attributes
    ----------
    by_content : ndarray of int, shape (K^l,)
        Number by content of each class, in the order of the names.
    by_name : ndarray of int, shape (K^l,)
        Number by name of each class, in the order of the content.
    """

    by_content: Ints
    by_name: Ints

    @classmethod
    def of(cls, partial: PartialLabels, keys: Keys, weights: Floats | None = None) -> ClassOrder:
        """Order the classes by the hashes of their labelled rows, in whatever order these come.

        Parameters
        ----------
        partial : PartialLabels
            Partial labels.
        keys : ndarray of uint64, shape (n,)
            Hash of each row, from `row_keys`.
        weights : ndarray of shape (n,), optional
            Weight of each row, 1 by default. A weight of 2 is the same as the row given twice.
        """
        weights = np.ones(len(keys)) if weights is None else weights
        rows = np.flatnonzero(partial.is_labelled & (weights > 0))
        codes, keys = partial.codes[rows], keys[rows]
        sizes = np.bincount(codes, weights[rows], minlength=partial.n_known)
        # each different row counts once, however often it is given
        order = np.lexsort((keys, codes))
        codes, keys = codes[order], keys[order]
        is_first = np.ones(len(keys), dtype=bool)
        is_first[1:] = (keys[1:] != keys[:-1]) | (codes[1:] != codes[:-1])
        content = np.zeros(partial.n_known, dtype=np.uint64)
        np.add.at(content, codes[is_first], keys[is_first])
        # classes of the same rows cannot be told apart by content: these stay in order of names
        by_name = np.lexsort((sizes, content))
        by_content = np.empty_like(by_name)
        by_content[by_name] = np.arange(len(by_name))
        return cls(by_content, by_name)

    def number_by_content(self, labels: Ints) -> Ints:
        """Components or classes numbered by content, for numbers by name; -1 stays."""
        return _renumber(labels, self.by_content)

    def number_by_name(self, labels: Ints) -> Ints:
        """Components or classes numbered by name, for numbers by content; -1 stays."""
        return _renumber(labels, self.by_name)

    def sort_by_name(self, components: _Array) -> _Array:
        """Bring something about each component (K, ...) from the order of content to that of names.

        Parameters
        ----------
        components : ndarray of shape (K, ...)
            Known classes by content, then novel components.

        Returns
        -------
        ndarray of shape (K, ...)
            Known classes by name, then novel components.
        """
        sorted_: _Array = components.copy()
        sorted_[: len(self.by_content)] = components[self.by_content]
        return sorted_


def _renumber(labels: Ints, number_of: Ints) -> Ints:
    """Map the numbers of known classes; leave -1 and the numbers of novel components."""
    known = (labels != UNLABELLED) & (labels < len(number_of))
    renumbered = labels.astype(np.int64)
    renumbered[known] = number_of[labels[known]]
    return renumbered
