"""A folder that newfound writes to: one process at a time, and nothing in it leads elsewhere.

A link in such a folder would make newfound read or overwrite files that lie elsewhere, and a pipe
would make it wait for ever. The path to the folder itself may be a link.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from newfound.errors import InputError
from newfound.files import disk_errors

_LOCK = ".lock"
_IN_USE = frozenset([errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK])
#: Not on Windows, where links need rights that few have.
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)


class FolderInUseError(InputError):
    """Another process has the folder."""


def check_own(folder: Path) -> None:
    """Refuse a folder in which there is anything but files and folders.

    Parameters
    ----------
    folder : Path
        The folder. A missing one is fine.

    Raises
    ------
    InputError
        Names the link, pipe or device.
    """
    pending = [folder]
    while pending:
        try:
            entries = list(os.scandir(pending.pop()))
        except (FileNotFoundError, NotADirectoryError):
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                pending.append(Path(entry.path))
            elif not entry.is_file(follow_symlinks=False):
                kind = "a link" if entry.is_symlink() else "not a file"
                raise InputError(
                    f"{entry.path} is {kind}. In a folder that newfound writes to there may be "
                    "files and folders only. Remove it, or choose another folder."
                )


def open_own(path: Path, flags: int) -> int:
    """Open a file that is changed in place.

    Parameters
    ----------
    path : Path
        The file.
    flags : int
        As for `os.open`.

    Returns
    -------
    int
        The descriptor.

    Raises
    ------
    InputError
        If the file is a link, or has a second name, under which it would be changed too.
    """
    try:
        handle = os.open(path, flags | _NO_FOLLOW, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise InputError(f"{path} is a link. Remove it, or choose another folder.") from error
        raise
    status = os.fstat(handle)
    if stat.S_ISREG(status.st_mode) and status.st_nlink <= 1:
        return handle
    os.close(handle)
    raise InputError(
        f"{path} is not a file, or has a second name (a hard link) whose content would be changed "
        "too. Copy the folder, and use the copy."
    )


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder.

    The operating system releases the lock of a process that dies. Nothing is locked on systems
    without `fcntl`, and on file systems that do not support locks.

    Parameters
    ----------
    folder : Path
        The folder; it must exist.

    Raises
    ------
    FolderInUseError
        If another process has it.
    InputError
        If it holds links, or cannot be written to.
    """
    check_own(folder)
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    with disk_errors(folder):
        handle = open_own(folder / _LOCK, os.O_RDWR | os.O_CREAT)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _IN_USE:  # any other error: the file system has no locks
                raise _in_use(folder, os.pread(handle, 100, 0)) from error
        # For the message of a second process; the lock itself does not need it.
        with disk_errors(folder):
            os.ftruncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(handle)


def _in_use(folder: Path, owner: bytes) -> InputError:
    process = owner.decode("ascii", "replace").strip()
    who = f"process {process}" if process else "another process"
    return FolderInUseError(
        f"{folder} is in use by {who}. Wait until it has finished, or choose another folder."
    )
