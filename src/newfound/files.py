"""Files that are written whole or not at all, and clear messages about disks that are full."""

from __future__ import annotations

import contextlib
import errno
import glob
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from newfound.errors import InputError, MissingExtraError

#: EEXIST and ENOTDIR: a file lies where a folder should be.
_NOT_WRITABLE = frozenset([errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST])
_FULL = frozenset([errno.ENOSPC, errno.EDQUOT])
#: What numpy says of a full disk, without a number: "640384 requested and 44000 written".
_SHORT = " requested and "

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
        If the disk is full, the folder cannot be written to, or the name is that of a folder.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder. Give the name of a file.")
    # In the same folder, because a rename is atomic only within one file system. The process id
    # keeps two runs from writing to the same file.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    with disk_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_dead_parts(path.parent, path.name)
        try:
            # "x": a link that was put in its place is not followed, the opening fails
            with temporary.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())  # else the new name may reach the disk before the content
            os.replace(temporary, path)
        except BaseException:  # an interrupt too leaves no half-written file behind
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Make a folder that appears under its name only when all of its files are written.

    Parameters
    ----------
    path : Path
        Its name. Missing folders above it are made.

    Yields
    ------
    Path
        A temporary folder beside it, to write to.

    Raises
    ------
    InputError
        If there is such a folder that is not empty.
    OSError
        If the disk is full, or the folder cannot be written to; see `disk_errors`.
    """
    path = Path(os.path.realpath(path))  # a link to a folder stays
    check_new_folder(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_dead_parts(path.parent, path.name)
    try:
        temporary.mkdir()
        yield temporary
        if path.is_dir():
            path.rmdir()  # fails if somebody has put something into it meanwhile
        os.replace(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def remove_dead_parts(folder: Path, name: str | None = None) -> None:
    """Remove what killed processes left of a file or folder, or of all; and our own part of it."""
    for part in folder.glob(f".{'*' if name is None else glob.escape(name)}.*.part"):
        process = part.name.split(".")[-2]
        if process == str(os.getpid()) or (process.isdecimal() and not is_alive(int(process))):
            if part.is_dir() and not part.is_symlink():
                shutil.rmtree(part)
            else:
                part.unlink(missing_ok=True)


def is_alive(process: int) -> bool:
    """Whether there is such a process on this machine; True if that cannot be known."""
    if os.name == "nt":  # there, the signal 0 would end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # of another user
        return True
    return True


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all, even if the power fails."""
    with whole_file(path) as file:
        file.write(content)


def check_new_file(path: Path, overwrite: bool) -> None:
    """Refuse to replace a file, unless it is empty or a person asks for that.

    A file of a run folder is not replaced even then: the run could not be read any more.
    """
    if path.is_dir() or (path.exists() and (path.parent / "started.json").is_file()):
        what = "a folder" if path.is_dir() else "a file of a run"
        raise InputError(f"{path} is {what}, which is not replaced. Give another name.")
    if not overwrite and path.exists() and path.stat().st_size > 0:
        raise InputError(
            f"{path} exists already. To replace it, pass --overwrite (in Python overwrite=True), "
            "or give another name."
        )


def check_new_folder(path: Path) -> None:
    """Refuse a folder in which there is something, and what cannot become a folder."""
    path = Path(os.path.realpath(path))
    advice = "It is not replaced. Give the name of a new folder, or remove this one first."
    if path.is_dir():
        held = sorted(entry.name for entry in path.iterdir())
        if held:
            raise InputError(f"{path} is a folder that holds {held[0]}. {advice}")
        if os.path.ismount(path):
            raise InputError(f"A disk is mounted at {path}. Give the name of a folder in it.")
    elif path.exists():
        raise InputError(f"{path} is a file, and a folder is to be written. {advice}")


def write_json(path: Path, content: Any) -> None:
    """Write plain values as JSON, whole or not at all."""
    write_atomically(path, json_bytes(content))


def json_bytes(content: Any) -> bytes:
    """Plain values as the content of a JSON file."""
    # NaN is not part of JSON, and other programs refuse it.
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False).encode()


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object that newfound wrote; anything else raises `InputError`."""
    with explained_errors(path, "cannot be read as JSON", "Run newfound into a new folder."):
        return parse_json(path.read_bytes())


def parse_json(content: bytes | str) -> dict[str, Any]:
    """A JSON object; anything else is a ValueError, also if it is nested too deeply."""
    try:
        values = json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(values, dict):
        raise ValueError(f"expected an object {{…}}, but it is a {type(values).__name__}")
    return values


@contextlib.contextmanager
def explained_errors(what: object, problem: str, advice: str) -> Iterator[None]:
    """Turn whatever goes wrong while a file is read into `InputError`.

    Decoders raise all kinds of errors on damaged files: of zip, zlib, tokens, numbers, memory.

    Parameters
    ----------
    what : object
        The file, or a name for it.
    problem : str
        What is wrong with it, as in "cannot be read as JSON".
    advice : str
        What a person can do, as a sentence.
    """
    try:
        yield
    except (InputError, MissingExtraError):
        raise
    except Exception as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        if isinstance(error, OSError) and error.strerror:
            reason = error.strerror
        elif isinstance(error, MemoryError):
            reason = "too large for the free memory"
        raise InputError(f"{what} {problem} ({reason}). {advice}") from error


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
        if error.errno in _FULL or (error.errno is None and _SHORT in str(error)):
            after = " It resumes where it stopped." if resumes else ""
            raise InputError(
                f"The disk with {folder} is full. Make room and run the same command again.{after}"
            ) from error
        if error.errno in _NOT_WRITABLE:
            raise InputError(
                f"{folder} cannot be written to ({error.strerror}). Choose another folder."
            ) from error
        raise
