"""Files that are written whole or not at all, and clear messages about disks that are full."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from newfound.errors import InputError

#: EEXIST and ENOTDIR: a file lies where a folder should be.
_NOT_WRITABLE = frozenset([errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST])
_FULL = frozenset([errno.ENOSPC, errno.EDQUOT])

#: Files that operating systems leave in folders, in lower case.
_LITTER = frozenset(["thumbs.db", "ehthumbs.db", "desktop.ini", "icon\r"])


def is_litter(name: str) -> bool:
    """Whether an operating system left this file in a folder, or hid it: ``.DS_Store``."""
    return name.startswith(".") or name.lower() in _LITTER


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that appears under its name only when all of it is on the disk.

    Parameters
    ----------
    path : Path
        Its name. Missing folders above it are made.

    Yields
    ------
    binary file
        Open for writing.

    Raises
    ------
    InputError
        If the disk is full or the folder cannot be written to.
    """
    # In the same folder, because a rename is atomic only within one file system. The process id
    # keeps two runs from writing to the same file.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    with disk_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())  # else the new name may reach the disk before the content
            os.replace(temporary, path)
        except BaseException:  # an interrupt too leaves no half-written file behind
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all, even if the power fails."""
    with whole_file(path) as file:
        file.write(content)


def check_new_file(path: Path, overwrite: bool) -> None:
    """Refuse to replace a file, unless it is empty or a person asks for that."""
    if not overwrite and path.exists() and (path.is_dir() or path.stat().st_size > 0):
        raise InputError(
            f"{path} exists already. To replace it, pass --overwrite (in Python overwrite=True), "
            "or give another name."
        )


def write_json(path: Path, content: Any) -> None:
    """Write plain values as JSON, whole or not at all."""
    # NaN is not part of JSON, and other programs refuse it.
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    write_atomically(path, text.encode())


def read_json(path: Path) -> Any:
    """Read a JSON file that newfound wrote; a damaged one raises `InputError`."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise InputError(f"{path} cannot be read ({error}). Run newfound into a new folder.") from (
            error
        )


@contextlib.contextmanager
def disk_errors(folder: Path, *, resumes: bool = True) -> Iterator[None]:
    """Turn the errors of a full disk or a read-only folder into `InputError`.

    Parameters
    ----------
    folder : Path
        What is written to, for the message.
    resumes : bool, default=True
        Whether the same command, given again, goes on where it stopped.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            after = " It resumes where it stopped." if resumes else ""
            raise InputError(
                f"The disk with {folder} is full. Make room and run the same command again.{after}"
            ) from error
        if error.errno in _NOT_WRITABLE:
            raise InputError(
                f"{folder} cannot be written to ({error.strerror}). Choose another folder."
            ) from error
        raise
