"""What an encoder is, and what encoding returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

#: Called with the number of finished items and the total number.
Progress: TypeAlias = Callable[[int, int], object]
Features: TypeAlias = npt.NDArray[np.float32]


class Encoded(NamedTuple):
    """Features of the items that could be encoded.

    Attributes
    ----------
    features : ndarray of shape (n_kept, d), float32
        One row per kept item, not normalised; d is 0 if nothing was encoded.
    kept : ndarray of shape (n_kept,)
        Numbers of the kept items, in order.
    skipped : list of (int, str)
        Numbers of the other items, each with the reason.
    encoder : str
        Name of the encoder. Encoding with this name gives features that can be compared with
        these.
    """

    features: Features
    kept: npt.NDArray[np.intp]
    skipped: list[tuple[int, str]]
    encoder: str


@dataclass(frozen=True)
class Encoder:
    """What turns items into features.

    Attributes
    ----------
    name : str
        Its name. Encoding with this name gives the same features again.
    identity : dict
        What its features depend on, beside the items.
    prepare : callable
        From one item to what the network takes; runs in threads.
    load : callable
        Loads the network and returns it as a function that maps a list of prepared items to
        features (n, d). Called only when there is something to encode.
    """

    name: str
    identity: dict[str, Any]
    prepare: Callable[[Any], Any]
    load: Callable[[], Callable[[list[Any]], Features]]


class Unusable(Exception):
    """An item cannot be encoded; the text is the reason."""
