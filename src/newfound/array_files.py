"""Arrays from files of NumPy. No other module reads ``.npy`` or ``.npz``.

Arrays of Python objects are refused, because reading them would run code from the file. Sizes are
taken from the header and compared with the file and with a limit before memory is taken.
"""

from __future__ import annotations

import hashlib
import math
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from newfound.errors import InputError
from newfound.files import explained_errors, whole_file
from newfound.limits import check_unpacked

#: Versions of the format, each with the function that reads its header.
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
    (3, 0): np.lib.format.read_array_header_2_0,  # the same, in UTF-8
}

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]
_DIGEST_BYTES = 16
_NPZ = "an .npz of plain arrays"
_ADVICE = "Save numbers or texts, not Python objects"


def write_array(path: Path, array: npt.NDArray[Any]) -> None:
    """Write an ``.npy`` file, whole or not at all, with a digest after the array.

    Parameters
    ----------
    path : Path
        The file. `np.load` reads it too.
    array : ndarray
        Plain numbers.
    """
    plain = np.ascontiguousarray(array)
    with whole_file(path) as file:
        np.save(file, plain, allow_pickle=False)
        file.write(_digest_of(plain))


def read_digested(path: Path) -> npt.NDArray[Any]:
    """Read what `write_array` wrote; `InputError` if it is anything else, or was damaged."""
    array = read_array(path)
    with path.open("rb") as file:
        file.seek(-min(path.stat().st_size, _DIGEST_BYTES), os.SEEK_END)
        if file.read() != _digest_of(array):
            raise InputError(f"{path} is damaged: its content is not what was written. Remove it.")
    return array


def _digest_of(array: npt.NDArray[Any]) -> bytes:
    digest = hashlib.blake2b(f"{array.dtype.str} {array.shape}".encode(), digest_size=_DIGEST_BYTES)
    digest.update(array.data)
    return digest.digest()


def read_array(path: Path, *, mapped: bool = False) -> npt.NDArray[Any]:
    """Read an ``.npy`` file.

    Parameters
    ----------
    path : Path
        The file.
    mapped : bool, default=False
        Map the file into memory, instead of reading it.

    Returns
    -------
    ndarray
        Its array.

    Raises
    ------
    InputError
        If the file is missing, damaged, an archive of arrays, or holds Python objects.
    """
    with explained_errors(path, "cannot be read as a plain array", f"{_ADVICE}: np.save(path, X)."):
        with path.open("rb") as file:
            if file.read(4) == b"PK\3\4":
                raise InputError(
                    f"{path} is an archive of arrays. Name it .npz, with the arrays X and y."
                )
            file.seek(0)
            n_bytes = _n_bytes(file)
            if n_bytes > path.stat().st_size - file.tell():
                raise ValueError(f"its header promises {n_bytes:,} bytes, which are not there")
        array: npt.NDArray[Any] = np.load(path, "r" if mapped else None, allow_pickle=False)
    return array


def read_archive(path: Path, names: Sequence[str], *, optional: Sequence[str] = ()) -> Arrays:
    """Read arrays of an ``.npz`` archive.

    Parameters
    ----------
    path : Path
        The file.
    names : sequence of str
        The arrays that it must have.
    optional : sequence of str
        Arrays that are read if they are there.

    Returns
    -------
    dict of ndarray
        The arrays by name.

    Raises
    ------
    InputError
        If the file is missing, damaged, or lacks an array, if an array holds Python objects, or
        if the arrays would take more memory than `check_unpacked` allows.
    """
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    how = f"np.savez(path, {', '.join(f'{name}={name}' for name in names)})."
    # np.load goes by the content of a file, not by its name, and may give a bare array.
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path} is not an .npz archive. Save one with {how}")
    with explained_errors(path, f"cannot be read as {_NPZ}", f"{_ADVICE}: {how}"):
        with zipfile.ZipFile(path) as archive:
            stored = {entry.filename: entry for entry in archive.infolist()}
            found = [name.removesuffix(".npy") for name in stored]
            missing = [name for name in names if name not in found]
            if missing:
                raise InputError(
                    f"{path} has the arrays {', '.join(found) or 'none'}, but no "
                    f"{' and no '.join(missing)}. Save it with {how}"
                )
            wanted = [name for name in (*names, *optional) if f"{name}.npy" in stored]
            check_unpacked(path, sum(_entry_bytes(archive, stored[f"{n}.npy"]) for n in wanted))
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in wanted}


def _entry_bytes(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> int:
    """Bytes of an array of an archive, which must all be in the archive."""
    with archive.open(entry) as file:
        n_bytes = _n_bytes(file)
    if n_bytes > entry.file_size:
        raise ValueError(f"the header of {entry.filename} promises {n_bytes:,} bytes")
    return n_bytes


def _n_bytes(file: IO[bytes]) -> int:
    """Bytes of an array by its header, after which the file is left."""
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"its format has the version {version}")
    shape, _, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    if min(shape, default=0) < 0:
        raise ValueError(f"its header has the shape {shape}")
    return int(math.prod(shape) * dtype.itemsize)
