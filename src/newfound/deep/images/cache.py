"""Pictures decoded once: a file of uint8 pixels that is mapped into memory, not read into it.

Two files in a folder. ``pixels.bin`` has one row for each picture that could be read, in the
order of the paths. ``index.jsonl`` is a journal: a first line that says which pictures and which
size the cache is of, then a line for each picture that is done. Pixels reach the disk before the
line that speaks of them does, and a line that was cut off by a kill is void, so the next call goes
on where the last one stopped. Nothing here needs torch.
"""

from __future__ import annotations

import bisect
import contextlib
import errno
import hashlib
import json
import os
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import numpy.typing as npt

from newfound.arrays import Ints
from newfound.data.pictures import PictureError, read_picture, square_pixels
from newfound.errors import InputError

#: Raised when pixels of the same files would come out otherwise, so that old caches are left.
_FORMAT = 1

#: A chunk is decoded, then written and recorded: what a kill can cost, and what is held in memory.
_CHUNK_ROWS = 256
_CHUNK_BYTES = 32 * 2**20

_FULL = frozenset([errno.ENOSPC, errno.EDQUOT])
_NOT_WRITABLE = frozenset([errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST])


class PictureCache(NamedTuple):
    """Decoded pictures.

    Attributes
    ----------
    pixels : memmap of uint8, shape (n_kept, 3, size, size)
        One row for each picture that could be read, in the order of the paths; not writable.
    kept : ndarray of int64, shape (n_kept,)
        Index into the paths for each row of `pixels`.
    skipped : list of (int, str)
        Index into the paths and the reason, for each file that could not be read.
    fingerprint : str
        Identity of the data: the same for the same ids with the same pixels, wherever they lie.
    """

    pixels: np.memmap[Any, np.dtype[np.uint8]]
    kept: Ints
    skipped: list[tuple[int, str]]
    fingerprint: str


def cache_pictures(
    paths: Sequence[Path],
    size: int,
    folder: Path,
    *,
    ids: Sequence[str] | None = None,
    n_threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> PictureCache:
    """Decode pictures to squares, once.

    A call with the same paths, ids and size goes on with what is in the folder; files that have
    changed (length or time of change), and files that could not be read, are tried again. Any
    other call replaces what is in the folder. One process at a time may write to a folder.

    Parameters
    ----------
    paths : sequence of Path
        The files.
    size : int
        Side of the squares, in pixels.
    folder : Path
        Where the cache lies; made if need be. 3 · size² bytes a picture.
    ids : sequence of str, optional
        Names of the pictures in the fingerprint; the files' names if not given.
    n_threads : int, optional
        Threads that decode; as many as there are processors if not given.
    progress : callable, optional
        Called with the number of pictures that are done, and of all, now and then.

    Returns
    -------
    PictureCache
        The pixels, which of the paths they are of, and what was skipped.

    Raises
    ------
    InputError
        If there is too little room on the disk, the folder cannot be written to, or no picture
        can be read.
    """
    paths = [Path(path) for path in paths]
    names = [path.name for path in paths] if ids is None else list(ids)
    if not paths or len(names) != len(paths) or size < 1:
        raise InputError(
            f"Got {len(paths)} paths, {len(names)} ids and the size {size}. "
            "Give at least one path, an id for each, and a size of at least 1 pixel."
        )
    pool = ThreadPoolExecutor(n_threads or joblib.cpu_count(), "newfound-decode")
    try:
        with (
            _disk_errors(folder, len(paths), size),
            _Store(folder, _key(paths, names, size), size) as store,
        ):
            store.check_room(len(paths))
            _bring_up_to_date(store, paths, pool, progress or (lambda done, total: None))
    finally:
        pool.shutdown(cancel_futures=True)
    return _as_cache(store, names)


class _Entry(NamedTuple):
    """What is known of a file that is done."""

    n_bytes: int
    changed_ns: int
    digest: str  # of its pixels; empty where it could not be read
    reason: str  # why it could not be read


class _Decoded(NamedTuple):
    """A picture as it comes from a thread."""

    place: int
    entry: _Entry
    pixels: npt.NDArray[np.uint8] | None


def _look_at(path: Path) -> tuple[int, int]:
    """Length and time of change: what tells that a file is another one now."""
    try:
        status = path.stat()
    except OSError:
        return -1, -1
    return status.st_size, status.st_mtime_ns


def _decode(place: int, path: Path, size: int) -> _Decoded:
    file = _look_at(path)  # before reading: a change while it is read shows the next time
    try:
        square = square_pixels(read_picture(path, at_least=size), size)
    except PictureError as error:
        return _Decoded(place, _Entry(*file, "", error.reason), None)
    pixels = np.ascontiguousarray(square.transpose(2, 0, 1))
    digest = hashlib.blake2b(pixels.data, digest_size=8).hexdigest()
    return _Decoded(place, _Entry(*file, digest, ""), pixels)


def _decode_ahead(
    pool: ThreadPoolExecutor, paths: Sequence[Path], size: int, places: Sequence[int]
) -> Iterator[list[_Decoded]]:
    """Chunks in order; the next one is under way while this one is being written."""
    n = max(1, min(_CHUNK_ROWS, _CHUNK_BYTES // (3 * size * size)))
    pending: deque[list[Future[_Decoded]]] = deque()
    for start in range(0, len(places), n):
        chunk = places[start : start + n]
        pending.append([pool.submit(_decode, place, paths[place], size) for place in chunk])
        if len(pending) > 1:
            yield [future.result() for future in pending.popleft()]
    while pending:
        yield [future.result() for future in pending.popleft()]


def _bring_up_to_date(
    store: _Store,
    paths: Sequence[Path],
    pool: ThreadPoolExecutor,
    tell: Callable[[int, int], object],
) -> None:
    """Decode what has changed since, in place, then what is not there yet."""
    files = pool.map(_look_at, paths[: len(store.entries)])
    again = [
        place
        for place, (entry, file) in enumerate(zip(store.entries, files, strict=True))
        if entry.reason or (entry.n_bytes, entry.changed_ns) != file
    ]
    store.distrust(again)
    done = len(store.entries) - len(again)
    tell(done, len(paths))
    for chunk in _decode_ahead(pool, paths, store.size, again):
        if not store.put(chunk):
            break
        done += len(chunk)
        tell(done, len(paths))
    for chunk in _decode_ahead(pool, paths, store.size, range(len(store.entries), len(paths))):
        store.put(chunk)
        tell(len(store.entries), len(paths))


class _Store:
    """The two files of a cache, and what the journal says.

    Attributes
    ----------
    entries : list of _Entry
        One for each picture that is done, in the order of the paths.
    rows : list of int
        The row of each picture: the number of readable ones before it. One more than entries.
    """

    def __init__(self, folder: Path, key: str, size: int) -> None:
        self.size = size
        self.row_bytes = 3 * size * size
        self.entries: list[_Entry] = []
        self.rows = [0]
        self.pixels_path = folder / "pixels.bin"
        journal_path = folder / "index.jsonl"
        folder.mkdir(parents=True, exist_ok=True)
        length = self._read_journal(journal_path, key)
        if length == 0:  # another cache, or none; the file of an old one may be in use
            self.pixels_path.unlink(missing_ok=True)
        self.pixels_path.touch()
        self._pixels = self.pixels_path.open("r+b")
        self._journal = journal_path.open("ab")
        self._journal.truncate(length)  # drops a line that was cut off, or another cache's
        if length == 0:
            self._record([{"key": key}])
        n_whole = bisect.bisect_right(self.rows, self.n_bytes // self.row_bytes) - 1
        if n_whole < len(self.entries):  # pixels that the journal speaks of are gone
            self._forget_from(n_whole)

    @property
    def n_bytes(self) -> int:
        """Length of the file of pixels."""
        return self.pixels_path.stat().st_size

    def __enter__(self) -> _Store:
        return self

    def __exit__(self, *error: object) -> None:
        with self._journal, self._pixels:
            pass

    def check_room(self, n_pictures: int) -> None:
        """Refuse to begin what cannot end."""
        needed = n_pictures * self.row_bytes - self.n_bytes
        if needed > shutil.disk_usage(self.pixels_path.parent).free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def put(self, chunk: Sequence[_Decoded]) -> bool:
        """Write pictures, at the end or in the place of older ones.

        Returns
        -------
        bool
            False if a picture has got or lost its row, so that all behind it have moved. Those
            are forgotten, and to be put again.
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
        """Note that rows are about to change: new pixels must not pass for those of an old file."""
        lines = []
        for place in places:
            if not self.entries[place].reason:
                self._set(place, self.entries[place]._replace(n_bytes=-1))
                lines.append([place, *self.entries[place]])
        self._record(lines)

    def _set(self, place: int, entry: _Entry) -> None:
        if place == len(self.entries):
            self.rows.append(self.rows[place] + (not entry.reason))
        self.entries[place : place + 1] = [entry]

    def _forget_from(self, place: int) -> None:
        """Forget the entries from here on, before their rows are given to others."""
        self._cut(place)
        self._record([[place]])

    def _cut(self, place: int) -> None:
        del self.entries[place:], self.rows[place + 1 :]

    def _record(self, lines: Sequence[Any]) -> None:
        self._journal.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        self._journal.flush()
        os.fsync(self._journal.fileno())

    def _read_journal(self, path: Path, key: str) -> int:
        """Read the entries; returns how many bytes of the journal are good."""
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        if not lines or _parse(lines[0]) != {"key": key}:
            return 0
        length = len(lines[0])
        for line in lines[1:]:
            parsed = _parse(line)
            if parsed is None:
                break
            place, *entry = parsed
            if entry:
                self._set(place, _Entry(*entry))
            else:
                self._cut(place)
            length += len(line)
        return length


def _parse(line: bytes) -> Any:
    """A line of the journal, or None if it was cut off."""
    try:
        return json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None


def _key(paths: Sequence[Path], names: Sequence[str], size: int) -> str:
    """Tell one cache from another: these files under these names, at this size."""
    places = [str(path.absolute()) for path in paths]
    return _hash([[_FORMAT, size], *zip(names, places, strict=True)])


def _hash(items: Iterable[Any]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for item in items:
        digest.update(json.dumps(item).encode() + b"\n")
    return digest.hexdigest()


def _as_cache(store: _Store, names: Sequence[str]) -> PictureCache:
    kept = [place for place, entry in enumerate(store.entries) if not entry.reason]
    skipped = [(place, entry.reason) for place, entry in enumerate(store.entries) if entry.reason]
    if not kept:
        raise InputError(
            f"None of the {len(names)} pictures can be read. "
            f"The first, {names[0]}: {skipped[0][1]}. Check what was given as pictures."
        )
    shape = (len(kept), 3, store.size, store.size)
    return PictureCache(
        np.memmap(store.pixels_path, np.uint8, "r", shape=shape),
        np.array(kept, dtype=np.int64),
        skipped,
        _hash([store.size, *[(names[place], store.entries[place].digest) for place in kept]]),
    )


@contextlib.contextmanager
def _disk_errors(folder: Path, n_pictures: int, size: int) -> Iterator[None]:
    """Say what the operating system's errors mean here."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise InputError(
                f"The disk is full: {n_pictures} pictures of {size} x {size} pixels need "
                f"{_in_words(3 * size * size * n_pictures)}, and {_in_words(_free_bytes(folder))} "
                f"are free in {folder}. Make room, or choose another folder or a smaller size; "
                "what is decoded already is kept."
            ) from error
        if error.errno in _NOT_WRITABLE:
            raise InputError(
                f"The pictures cannot be kept in {folder} ({error.strerror}). "
                "Choose a folder that you may write to."
            ) from error
        raise


def _free_bytes(folder: Path) -> int:
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    return shutil.disk_usage(there).free


def _in_words(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.1f} MB"
