"""The files of a picture cache: pixels, and a journal that survives a kill.

``pixels.bin`` has one row for each picture that could be read, in the order of the paths.
``index.jsonl`` is the journal: its first line says which pictures and which size the cache is for;
then there is a line for each picture that is done. Pixels are on the disk before the line about
them is written, and an incomplete line is ignored. So the next call continues where the last one
stopped.
"""

from __future__ import annotations

import bisect
import errno
import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

#: A digest in the journal, see `pixel_digest`.
_DIGEST = re.compile("[0-9a-f]{16}")


class Entry(NamedTuple):
    """What the journal says about a file that is done."""

    n_bytes: int
    changed_ns: int
    digest: str  # of its pixels; empty if it could not be read
    reason: str  # why it could not be read; empty if it could


class Decoded(NamedTuple):
    """A picture as a thread has decoded it."""

    place: int
    entry: Entry
    pixels: npt.NDArray[np.uint8] | None


class CacheStore:
    """The two files of a cache, and the content of the journal.

    Parameters
    ----------
    folder : Path
        Where the files are; made if need be.
    key : str
        Which cache this is. The files of another one are replaced.
    size : int
        Side of the squares, in pixels.

    Attributes
    ----------
    entries : list of Entry
        One for each picture that is done, in the order of the paths.
    rows : list of int
        The row of each picture, which is the number of readable ones before it. It has one element
        more than `entries`.
    """

    def __init__(self, folder: Path, key: str, size: int) -> None:
        self.size = size
        self.row_bytes = 3 * size * size
        self.entries: list[Entry] = []
        self.rows = [0]
        self.pixels_path = folder / "pixels.bin"
        journal_path = folder / "index.jsonl"
        folder.mkdir(parents=True, exist_ok=True)
        length = self._read_journal(journal_path, key)
        if length == 0:  # another cache, or none; a process may still map the old file
            self.pixels_path.unlink(missing_ok=True)
        self.pixels_path.touch()
        self._pixels = self.pixels_path.open("r+b")
        self._journal = journal_path.open("ab")
        self._journal.truncate(length)  # drops an incomplete line, or the lines of another cache
        if length == 0:
            self._record([{"key": key}])
        n_whole = bisect.bisect_right(self.rows, self.n_bytes // self.row_bytes) - 1
        if n_whole < len(self.entries):  # the file of pixels is shorter than the journal says
            self._forget_from(n_whole)

    @property
    def n_bytes(self) -> int:
        """Length of the file of pixels."""
        return self.pixels_path.stat().st_size

    def __enter__(self) -> CacheStore:
        return self

    def __exit__(self, *error: object) -> None:
        with self._journal, self._pixels:
            pass

    def check_room(self, n_pictures: int) -> None:
        """Raise ENOSPC if the disk has too little room for all pictures."""
        needed = n_pictures * self.row_bytes - self.n_bytes
        if needed > shutil.disk_usage(self.pixels_path.parent).free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def put(self, chunk: Sequence[Decoded]) -> bool:
        """Write pictures, at the end or in the place of older ones.

        Returns
        -------
        bool
            False if a picture has become readable or unreadable, so that the rows of all later
            ones have moved. These are forgotten and must be put again.
        """
        written = []
        for place, entry, pixels in chunk:
            if place < len(self.entries) and bool(self.entries[place].reason) != bool(entry.reason):
                self._forget_from(place)
            if place > len(self.entries):
                break
            if pixels is not None:
                self._pixels.seek(self.rows[place] * self.row_bytes)
                self._pixels.write(pixels.data)
            self._set(place, entry)
            written.append([place, *entry])
        self._pixels.flush()
        os.fsync(self._pixels.fileno())
        self._record(written)
        return len(written) == len(chunk)

    def distrust(self, places: Sequence[int]) -> None:
        """Mark rows that are about to change: a kill must not leave new pixels with old lines."""
        lines = []
        for place in places:
            if not self.entries[place].reason:
                self._set(place, self.entries[place]._replace(n_bytes=-1))
                lines.append([place, *self.entries[place]])
        self._record(lines)

    def _set(self, place: int, entry: Entry) -> None:
        if place == len(self.entries):
            self.rows.append(self.rows[place] + (not entry.reason))
        self.entries[place : place + 1] = [entry]

    def _forget_from(self, place: int) -> None:
        """Forget the entries from here on, before their rows are overwritten."""
        self._cut(place)
        self._record([[place]])

    def _cut(self, place: int) -> None:
        del self.entries[place:], self.rows[place + 1 :]

    def _record(self, lines: Sequence[Any]) -> None:
        self._journal.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        self._journal.flush()
        os.fsync(self._journal.fileno())

    def _read_journal(self, path: Path, key: str) -> int:
        """Read the entries; return how many bytes of the journal are valid."""
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        if not lines or _parse(lines[0]) != {"key": key}:
            return 0
        length = len(lines[0])
        for line in lines[1:]:
            parsed = _parse(line)
            if not _is_line(parsed, len(self.entries)):
                break  # cut short or damaged: this and all later pictures are decoded again
            place, *entry = parsed
            if entry:
                self._set(place, Entry(*entry))
            else:
                self._cut(place)
            length += len(line)
        return length


def _is_line(parsed: Any, n_entries: int) -> bool:
    """Whether a line of the journal makes sense after so many entries."""
    if not isinstance(parsed, list) or len(parsed) not in (1, 5):
        return False
    place, *entry = parsed
    is_place = type(place) is int and 0 <= place <= n_entries
    if not entry or not is_place:
        return is_place
    n_bytes, changed, digest, reason = entry
    return (
        *[type(n_bytes), type(changed), type(digest), type(reason)],
        bool(_DIGEST.fullmatch(str(digest))),
    ) == (int, int, str, str, not reason)


def _parse(line: bytes) -> Any:
    """A line of the journal, or None if it is incomplete."""
    try:
        return json.loads(line) if line.endswith(b"\n") else None
    except (ValueError, RecursionError):
        return None
