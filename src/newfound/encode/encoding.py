"""From items to features, in batches: stored features first, then the encoder.

An interrupted call loses at most the batch that it was working on.
"""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from newfound.data.pictures import PictureError
from newfound.encode.encoder import Encoded, Encoder, Features, Progress, Unusable
from newfound.encode.store import EmbeddingStore
from newfound.errors import InputError

Item = TypeVar("Item")
Other = TypeVar("Other")

_WORKERS = min(8, os.cpu_count() or 1)


def encode_items(
    items: list[Any],
    encoder: Encoder,
    key_of: Callable[[Any], bytes],
    cache: Path | None,
    batch_size: int,
    progress: Progress | None,
) -> Encoded:
    """Look up stored features, encode the other items in batches, and store their features.

    Parameters
    ----------
    items : list
        Pictures or texts.
    encoder : Encoder
        What turns them into features.
    key_of : callable
        SHA-256 of an item's content; raises `Unusable` for an item that has none.
    cache : Path or None
        Folder of stored features.
    batch_size : int
        Items that the network gets at a time.
    progress : callable or None
        Called with the number of finished items and the total number.

    Returns
    -------
    Encoded
        The features, with what was skipped.
    """
    if batch_size < 1:
        raise InputError(f"batch_size is {batch_size}; expected at least 1.")
    store = None if cache is None else EmbeddingStore(cache, encoder.identity)
    pool = ThreadPoolExecutor(_WORKERS)
    try:
        collected = Collected(len(items), progress)
        for index, key in enumerate(_in_order(pool, _try(key_of), items)):
            collected.expect(index, key)
        for keys, features in store.read() if store is not None else ():
            collected.fill(keys, features)
        for keys, features in _batches(pool, collected, items, encoder, key_of, batch_size):
            if store is not None:
                store.write(keys, features)
            collected.fill(keys, features)
        return collected.encoded(encoder.name)
    finally:
        pool.shutdown(cancel_futures=True)


def _batches(
    pool: ThreadPoolExecutor,
    collected: Collected,
    items: list[Any],
    encoder: Encoder,
    key_of: Callable[[Any], bytes],
    batch_size: int,
) -> Iterator[tuple[list[bytes], Features]]:
    """Encode items without features; the next batches are prepared while the network works."""

    def prepare(key: bytes) -> Any:
        item = items[collected.places[key][0]]
        prepared = encoder.prepare(item)
        if key_of(item) != key:  # features of new content must not be stored under the old key
            raise Unusable("the file changed while it was read")
        return prepared

    todo = collected.missing()
    outcomes = zip(todo, _in_order(pool, _try(prepare), todo, 2 * batch_size), strict=True)
    usable = _usable(outcomes, collected)
    network = None
    while batch := list(itertools.islice(usable, batch_size)):
        network = encoder.load() if network is None else network
        keys = [key for key, _ in batch]
        features = np.asarray(network([prepared for _, prepared in batch]), dtype=np.float32)
        finite = np.asarray(np.isfinite(features).all(axis=1))
        for i in np.flatnonzero(~finite):
            collected.skip(keys[i], "its features are not finite")
        yield [key for key, good in zip(keys, finite, strict=True) if good], features[finite]


def _usable(
    outcomes: Iterable[tuple[bytes, Any]], collected: Collected
) -> Iterator[tuple[bytes, Any]]:
    """Yield the prepared items; the others are skipped with their reason."""
    for key, outcome in outcomes:
        if isinstance(outcome, Unusable):
            collected.skip(key, str(outcome))
        else:
            yield key, outcome


def _try(function: Callable[[Item], Other]) -> Callable[[Item], Other | Unusable]:
    """The function, but the reason why an item cannot be used is returned, not raised."""

    def attempt(item: Item) -> Other | Unusable:
        try:
            return function(item)
        except Unusable as error:
            return error
        except PictureError as error:
            return Unusable(error.reason)
        except OSError as error:
            return Unusable(f"cannot be read: {error.strerror or error}")

    return attempt


def _in_order(
    pool: ThreadPoolExecutor,
    function: Callable[[Item], Other],
    items: Iterable[Item],
    ahead: int = 256,
) -> Iterator[Other]:
    """Yield results in the order of the items, with at most `ahead` of them computed in advance."""
    waiting: deque[Future[Other]] = deque()
    for item in items:
        waiting.append(pool.submit(function, item))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


class Collected:
    """Features of all items as they are computed; for an item without features, the reason."""

    def __init__(self, n_items: int, progress: Progress | None) -> None:
        self.places: dict[bytes, list[int]] = {}  #: key → the items with that content
        self._filled = np.zeros(n_items, dtype=bool)
        self._n_filled = 0
        self._reasons: dict[int, str] = {}
        self._features: Features | None = None
        self._progress = progress

    def expect(self, index: int, key: bytes | Unusable) -> None:
        """Note the key of an item, or why it cannot be used."""
        if isinstance(key, Unusable):
            self._reasons[index] = str(key)
        else:
            self.places.setdefault(key, []).append(index)

    def missing(self) -> list[bytes]:
        """Keys without features."""
        return [key for key, items in self.places.items() if not self._filled[items[0]]]

    def fill(self, keys: Sequence[bytes], features: Features) -> None:
        """Take features (n, d) of keys; those of other items are ignored."""
        for key, row in zip(keys, features, strict=True):
            items = self.places.get(key)
            if items is None:
                continue
            if self._features is None:
                self._features = np.zeros((len(self._filled), len(row)), dtype=np.float32)
            self._n_filled += 0 if self._filled[items[0]] else len(items)
            self._features[items] = row
            self._filled[items] = True
        self._report()

    def skip(self, key: bytes, reason: str) -> None:
        """Skip the items with this content."""
        self._reasons.update(dict.fromkeys(self.places[key], reason))
        self._report()

    def encoded(self, encoder: str) -> Encoded:
        """The result for the caller."""
        self._report()
        kept = np.flatnonzero(self._filled)
        features = self._features
        if features is None:
            features = np.zeros((0, 0), dtype=np.float32)
        elif len(kept) < len(features):
            features = features[kept]
        return Encoded(features, kept, sorted(self._reasons.items()), encoder)

    def _report(self) -> None:
        if self._progress is not None:
            self._progress(self._n_filled + len(self._reasons), len(self._filled))
