"""Rows of decoded pictures, read from their file when they are needed, and checked at first sight.

The file is read, not mapped into memory: reading a mapped file that was cut short meanwhile would
kill the process. The digest of each row is in the journal of the cache.
"""

from __future__ import annotations

import hashlib
import os
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from newfound.errors import InputError

_DIGEST_BYTES = 8


def pixel_digest(pixels: Any) -> str:
    """Digest of the pixels of one picture, in any contiguous buffer."""
    return hashlib.blake2b(pixels, digest_size=_DIGEST_BYTES).hexdigest()


class PixelFile:
    """An array of uint8 in a file, of which rows can be taken; whatever is taken was checked.

    Parameters
    ----------
    path : Path
        The file.
    shape : tuple of int
        Number of rows, and shape of a row.
    digests : sequence of str
        `pixel_digest` of each row.

    Attributes
    ----------
    shape : tuple of int
        As given.
    dtype : dtype
        Unsigned 8 bits.
    """

    dtype = np.dtype(np.uint8)

    def __init__(self, path: Path, shape: tuple[int, ...], digests: Sequence[str]) -> None:
        self.shape = shape
        self._path = path
        self._file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        weakref.finalize(self, os.close, self._file)
        self._lock = threading.Lock()  # the place in the file is shared by all threads
        self._digests = np.array([int(digest, 16) for digest in digests], dtype=np.uint64)
        self._is_checked = np.zeros(len(digests), dtype=np.bool_)

    def digest(self) -> str:
        """Digest of all rows, from their digests."""
        return hashlib.blake2b(self._digests.tobytes(), digest_size=16).hexdigest()

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return int(np.prod(self.shape))

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> npt.NDArray[np.uint8]:
        rows, *others = rows if isinstance(rows, tuple) else (rows,)
        numbers = np.arange(len(self))[rows]
        pixels = np.empty((numbers.size, *self.shape[1:]), dtype=np.uint8)
        for row, place in zip(numbers.reshape(-1).tolist(), pixels, strict=True):
            self._read(row, place)
        taken = pixels.reshape((*numbers.shape, *self.shape[1:]))
        return taken[(*[slice(None)] * numbers.ndim, *others)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self[:].astype(dtype or self.dtype, copy=False)

    def _read(self, row: int, place: npt.NDArray[np.uint8]) -> None:
        """Read a row into its place."""
        with self._lock:
            os.lseek(self._file, row * place.size, os.SEEK_SET)
            content = os.read(self._file, place.size)
        if len(content) == place.size:
            if not self._is_checked[row]:
                self._is_checked[row] = int(pixel_digest(content), 16) == self._digests[row]
            if self._is_checked[row]:
                place[...] = np.frombuffer(content, dtype=np.uint8).reshape(place.shape)
                return
        raise InputError(
            f"{self._path} is damaged: the pixels of row {row} are not those that were written. "
            f"Remove the folder {self._path.parent} and run the same command again: the pictures "
            "are then decoded again."
        )
