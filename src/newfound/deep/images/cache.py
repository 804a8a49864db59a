"""Pictures are decoded once, into a file of uint8 pixels.

A call that is interrupted continues where it stopped; `newfound.deep.images.cache_store` says how.
Nothing here needs torch.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np

from newfound.arrays import ArrayLike, Ints
from newfound.data.pictures import PictureError, read_picture, square_pixels
from newfound.deep.images.cache_store import CacheStore, Decoded, Entry
from newfound.deep.images.pixel_file import PixelFile, pixel_digest
from newfound.errors import InputError

#: Increase this when the same files would give other pixels: old caches are then not used.
_FORMAT = 1

#: A chunk is decoded, written and recorded: what a kill can cost, and what is held in memory.
_CHUNK_ROWS = 256
_CHUNK_BYTES = 32 * 2**20

_FULL = frozenset([errno.ENOSPC, errno.EDQUOT])
_NOT_WRITABLE = frozenset([errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST])


class PictureCache(NamedTuple):
    """Decoded pictures.

    Attributes
    ----------
    pixels : PixelFile, shape (n_kept, 3, size, size)
        One row for each picture that could be read, in the order of the paths; not writable.
    kept : ndarray of int64, shape (n_kept,)
        Index into the paths for each row of `pixels`.
    skipped : list of (int, str)
        Index into the paths and the reason, for each file that could not be read.
    fingerprint : str
        Identity of the data: the same for the same ids with the same pixels, in any folder.
    """

    pixels: ArrayLike
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

    A call with the same paths, ids and size continues with what is in the folder. Files that have
    changed (by length or modification time) and files that could not be read are tried again. Any
    other call replaces what is in the folder. Only one process at a time may write to a folder.

    Parameters
    ----------
    paths : sequence of Path
        The files.
    size : int
        Side of the squares, in pixels.
    folder : Path
        Where the cache is; made if need be. A picture takes 3 · size² bytes.
    ids : sequence of str, optional
        Names of the pictures in the fingerprint; the files' names if not given.
    n_threads : int, optional
        Threads that decode; as many as there are processors if not given.
    progress : callable, optional
        Called from time to time with the number of pictures that are done, and of all.

    Returns
    -------
    PictureCache
        The pixels, the paths that they belong to, and what was skipped.

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
            CacheStore(folder, _key(paths, names, size), size) as store,
        ):
            store.check_room(len(paths))
            _bring_up_to_date(store, paths, pool, progress or (lambda done, total: None))
    finally:
        pool.shutdown(cancel_futures=True)
    return _as_cache(store, names)


def _look_at(path: Path) -> tuple[int, int]:
    """Length and modification time, which show that a file has changed."""
    try:
        status = path.stat()
    except OSError:
        return -1, -1
    return status.st_size, status.st_mtime_ns


def _decode(place: int, path: Path, size: int) -> Decoded:
    file = _look_at(path)  # before reading, so that a change during the reading shows next time
    try:
        square = square_pixels(read_picture(path, at_least=size), size)
    except PictureError as error:
        return Decoded(place, Entry(*file, "", error.reason), None)
    pixels = np.ascontiguousarray(square.transpose(2, 0, 1))
    return Decoded(place, Entry(*file, pixel_digest(pixels.data), ""), pixels)


def _decode_ahead(
    pool: ThreadPoolExecutor, paths: Sequence[Path], size: int, places: Sequence[int]
) -> Iterator[list[Decoded]]:
    """Chunks in order; the next one is decoded while this one is written."""
    n = max(1, min(_CHUNK_ROWS, _CHUNK_BYTES // (3 * size * size)))
    pending: deque[list[Future[Decoded]]] = deque()
    for start in range(0, len(places), n):
        chunk = places[start : start + n]
        pending.append([pool.submit(_decode, place, paths[place], size) for place in chunk])
        if len(pending) > 1:
            yield [future.result() for future in pending.popleft()]
    while pending:
        yield [future.result() for future in pending.popleft()]


def _bring_up_to_date(
    store: CacheStore,
    paths: Sequence[Path],
    pool: ThreadPoolExecutor,
    progress: Callable[[int, int], object],
) -> None:
    """Decode files that have changed, in place, then files that are not there yet."""
    files = pool.map(_look_at, paths[: len(store.entries)])
    again = [
        place
        for place, (entry, file) in enumerate(zip(store.entries, files, strict=True))
        if entry.reason or (entry.n_bytes, entry.changed_ns) != file
    ]
    store.distrust(again)
    done = len(store.entries) - len(again)
    progress(done, len(paths))
    for chunk in _decode_ahead(pool, paths, store.size, again):
        if not store.put(chunk):
            break
        done += len(chunk)
        progress(done, len(paths))
    for chunk in _decode_ahead(pool, paths, store.size, range(len(store.entries), len(paths))):
        store.put(chunk)
        progress(len(store.entries), len(paths))


def _key(paths: Sequence[Path], names: Sequence[str], size: int) -> str:
    """Identity of a cache: these files under these names, at this size."""
    places = [str(path.absolute()) for path in paths]
    return _hash([[_FORMAT, size], *zip(names, places, strict=True)])


def _hash(items: Iterable[Any]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for item in items:
        digest.update(json.dumps(item).encode() + b"\n")
    return digest.hexdigest()


def _as_cache(store: CacheStore, names: Sequence[str]) -> PictureCache:
    kept = [place for place, entry in enumerate(store.entries) if not entry.reason]
    skipped = [(place, entry.reason) for place, entry in enumerate(store.entries) if entry.reason]
    if not kept:
        raise InputError(
            f"None of the {len(names)} pictures can be read. "
            f"The first, {names[0]}: {skipped[0][1]}. Check the folder or list of pictures."
        )
    shape = (len(kept), 3, store.size, store.size)
    digests = [store.entries[place].digest for place in kept]
    return PictureCache(
        PixelFile(store.pixels_path, shape, digests),
        np.array(kept, dtype=np.int64),
        skipped,
        _hash([store.size, *zip([names[place] for place in kept], digests, strict=True)]),
    )


@contextlib.contextmanager
def _disk_errors(folder: Path, n_pictures: int, size: int) -> Iterator[None]:
    """Explain errors of the disk: what is missing, and what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise InputError(
                f"The disk is full: {n_pictures} pictures of {size} x {size} pixels need "
                f"{_format_bytes(3 * size * size * n_pictures)}, and "
                f"{_format_bytes(_free_bytes(folder))} are free in {folder}. Make room, or choose "
                "another folder or a smaller size; pictures that are decoded already are kept."
            ) from error
        if error.errno in _NOT_WRITABLE:
            raise InputError(
                f"The pictures cannot be stored in {folder} ({error.strerror}). "
                "Choose a folder that you can write to."
            ) from error
        raise


def _free_bytes(folder: Path) -> int:
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    return shutil.disk_usage(there).free


def _format_bytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.1f} MB"
