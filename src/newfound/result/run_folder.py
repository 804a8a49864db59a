"""A run folder: one run, one process at a time, and files that are complete or absent.

From the start of a run, the file ``started.json`` says which version, command and data the folder
is for. If a run is interrupted, by Ctrl-C or a power cut, the same command resumes it there.
Any other command is refused, so that no result is lost by mistake.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from newfound._version import __version__
from newfound.errors import InputError
from newfound.files import disk_errors, is_litter, read_json, remove_dead_parts, write_json
from newfound.own_folder import FolderInUseError, check_own, locked

STARTED = "started.json"
RUN = "run.json"
#: What `newfound trust` measured; like a page, it is about one result.
TRUST = "trust.json"
#: Of many rows: the categories of all, a folder that is moved as one; and what passes have brought.
LABELS, PASSES = "labels", "passes"
#: Major and minor versions of newfound whose run folders this version reads.
_READABLE_VERSIONS = ("0.1", "0.2")
#: Commands with an option to overwrite.
_CAN_OVERWRITE = ("discover", "train")
#: What `staged` does not replace: checkpoints, pages about an earlier result, and which edits it
#: has obeyed.
_PAGES = ("report.html", "changes.html", TRUST)
_NOT_OF_THE_RESULT = ("train", PASSES, "changes.json", "decisions.json", *_PAGES)
_STAGE = ".next"
#: How often, and how many seconds apart, a reader looks whether another process is done moving.
_LOOKS, _PAUSE = 200, 0.05

T = TypeVar("T")


@contextlib.contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """Write a whole result to a temporary folder, whose files replace the old ones at the end.

    If the process is killed before the end, the old result stays. If it is killed while the files
    are moved, `finish_staged` moves the rest: ``run.json`` is written last and moved last, so a
    temporary folder that has one is complete.

    Parameters
    ----------
    folder : Path
        The run folder.

    Yields
    ------
    Path
        The temporary folder to write to; write ``run.json`` last.
    """
    stage = folder / _STAGE
    check_own(folder)
    with disk_errors(folder):
        # First the file that marks the folder as complete, in case this is interrupted as well.
        (stage / RUN).unlink(missing_ok=True)
        _remove(stage)
        stage.mkdir(parents=True)
        yield stage
        finish_staged(folder)


def finish_staged(folder: Path) -> None:
    """Move the files of a complete temporary folder to their place, if there is one.

    Only a process that has the lock of the folder may do this; others call `settle`. Pages about
    the earlier result are removed first: they would be taken for pages about the new one.
    """
    stage = folder / _STAGE
    if not (stage / RUN).is_file():
        return
    for name in _PAGES:
        (folder / name).unlink(missing_ok=True)
    if (stage / LABELS).is_dir():
        _remove(folder / LABELS)
        os.replace(stage / LABELS, folder / LABELS)
    files = [path for path in sorted(stage.rglob("*")) if path.is_file() and path != stage / RUN]
    for path in (*files, stage / RUN):
        target = folder / path.relative_to(stage)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(path, target)
    _remove(stage)


def settle(folder: Path) -> None:
    """Finish what a killed process left, or wait while another process moves its files.

    Parameters
    ----------
    folder : Path
        The run folder.

    Raises
    ------
    InputError
        If the other process takes long, or the folder holds links.
    """
    check_own(folder)
    for look in range(_LOOKS):
        if not (folder / _STAGE / RUN).is_file():
            if (folder / _STAGE).is_dir():
                with contextlib.suppress(InputError, OSError), locked(folder):
                    _remove_remnants(folder)
            return
        try:
            with locked(folder):
                finish_staged(folder)
        except FolderInUseError:
            if look + 1 == _LOOKS:
                raise
            time.sleep(_PAUSE)


def read_settled(folder: Path, read: Callable[[], T]) -> T:
    """Read files that belong together, again if another process has replaced them meanwhile.

    Parameters
    ----------
    folder : Path
        The run folder.
    read : callable
        Reads them.
    """
    for _ in range(_LOOKS):
        settle(folder)
        before = _generation(folder)
        try:
            found = read()
        except InputError:
            if _generation(folder) == before:
                raise
            continue
        if _generation(folder) == before:
            return found
    raise InputError(f"{folder} is changed all the time by another process. Wait for its end.")


def _remove_remnants(folder: Path) -> None:
    """Remove what killed processes left unfinished; only with the lock of the folder."""
    if not (folder / _STAGE / RUN).is_file():
        _remove(folder / _STAGE)
    for place in (folder, *(folder / name for name in ("train", "pictures", "cache"))):
        remove_dead_parts(place)


def _generation(folder: Path) -> tuple[int, ...]:
    """What changes when a result is replaced: ``run.json`` is moved last."""
    try:
        status = (folder / RUN).stat()
    except FileNotFoundError:
        return ()
    is_moving = (folder / _STAGE / RUN).is_file()
    return is_moving, status.st_ino, status.st_mtime_ns, status.st_size


def _inode(path: Path) -> int | None:
    return path.stat().st_ino if path.exists() else None


def _remove(path: Path) -> None:
    """Remove a file of a run, or a folder with everything in it, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


# --------------------------------------------------------------------------------- runs in folders


@contextlib.contextmanager
def open_run(folder: Path, *, command: str, data: str, overwrite: bool = False) -> Iterator[Path]:
    """Start a run in a folder, or resume an interrupted one.

    Parameters
    ----------
    folder : Path
        The run folder; it is created if needed.
    command : str
        The command of newfound; a folder is for one command.
    data : str
        Fingerprint of the data; a folder is for one collection.
    overwrite : bool
        Replace the run in the folder, whatever it is. Its result stays until the new one is
        written, but its checkpoints and its report are removed. If that is interrupted, the same
        call resumes.

    Yields
    ------
    Path
        The folder, locked until the end.

    Raises
    ------
    InputError
        If the folder cannot be written to, is in use, holds files that are not of a run, or is
        for another version, command or collection.
    """
    folder = Path(folder)
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    # Locked before anything is read: two processes that start together must not both find it empty.
    with locked(folder):
        finish_staged(folder)
        _remove_remnants(folder)
        if not (folder / STARTED).exists():
            _check_empty(folder)
        elif not overwrite:
            check_same(folder, command=command, data=data)
        redo = overwrite and _clear_for_redo(folder, command, data)
        record_start(folder, command=command, data=data, redo=redo)
        before = _inode(folder / LABELS)
        yield folder
        if redo:
            if before == _inode(folder / LABELS):  # of the run that is replaced
                _remove(folder / LABELS)
            record_start(folder, command=command, data=data)


@contextlib.contextmanager
def reopen_run(folder: Path) -> Iterator[Path]:
    """Lock the folder of a finished run, to change it.

    Parameters
    ----------
    folder : Path
        Folder of a run of this version.

    Yields
    ------
    Path
        The folder, locked until the end.
    """
    check_run(folder)
    with locked(folder):
        finish_staged(folder)
        yield folder


def record_start(folder: Path, *, command: str, data: str, redo: bool = False) -> None:
    """Write which version, command and data a folder is for, and whether a run is redone."""
    start = start_of(command, data)
    write_json(folder / STARTED, {**start, "redo": True} if redo else start)


def start_of(command: str, data: str) -> dict[str, str]:
    """What ``started.json`` says."""
    return {"version": __version__, "command": command, "data": data}


def is_finished(folder: Path) -> bool:
    """Whether a folder holds a finished run."""
    folder = Path(folder)
    settle(folder)  # a run that was killed at the very end is a finished run
    # Trainings of version 0.1.0 have a run.json of another kind.
    return (folder / RUN).is_file() and read_json(folder / RUN).get("version") is not None


def _clear_for_redo(folder: Path, command: str, data: str) -> bool:
    """Remove what a new run must not find; True if this redoes a run, also a second time."""
    if not (folder / STARTED).exists():
        return False
    before = read_json(folder / STARTED)
    same = (before.get("command"), before.get("data")) == (command, data)
    if same and (before.get("redo") or not is_finished(folder)):
        return bool(before.get("redo"))  # interrupted: what there is belongs to this run
    for name in _NOT_OF_THE_RESULT:
        _remove(folder / name)
    return True


def check_run(folder: Path) -> None:
    """Refuse a folder that holds no finished run, or one of another version.

    Parameters
    ----------
    folder : Path
        The run folder.

    Raises
    ------
    InputError
        The message says what to do instead.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"There is no run folder {folder}. Check the path.")
    settle(folder)  # a run that was killed at the very end is a finished run
    if not (folder / RUN).is_file():
        what = (
            "The run did not finish. Run the same command again to resume it."
            if (folder / STARTED).exists()
            else "Give the folder that `newfound discover` wrote to (--out)."
        )
        raise InputError(f"{folder} holds no finished run: there is no {RUN}. {what}")
    version = read_json(folder / RUN).get("version")
    if version is None and (folder / "last.safetensors").is_file():
        raise InputError(
            f"{folder} was written by `newfound train` of version 0.1.0, whose folders hold no "
            "full result. Run that command again with the same options: it converts the folder "
            "without training again."
        )
    _check_version(folder, version or "unknown")


def check_same(folder: Path, *, command: str, data: str) -> None:
    """Refuse to resume another run than the one that was started here."""
    before = read_json(folder / STARTED)
    _check_version(folder, before.get("version", "unknown"))
    or_overwrite = ", or pass --overwrite to replace it" if command in _CAN_OVERWRITE else ""
    if before.get("command") != command:
        raise InputError(
            f"{folder} holds a run of `newfound {before.get('command')}`, not of `newfound "
            f"{command}`. Choose another folder{or_overwrite}."
        )
    if before.get("data") != data:
        raise InputError(
            f"{folder} holds a run on another collection. Choose another folder{or_overwrite}. To "
            f"add items to that run, use `newfound update {folder}`."
        )


def _check_version(folder: Path, version: object) -> None:
    """Refuse a run of a version whose folders cannot be read."""
    if ".".join(str(version).split(".")[:2]) not in _READABLE_VERSIONS:
        raise InputError(
            f"{folder} was written by newfound {version}; this is {__version__}. "
            f"Install newfound=={version} to read it, or run into a new folder."
        )


def _check_empty(folder: Path) -> None:
    """Refuse to write to a folder with files that have nothing to do with a run."""
    others = sorted(path.name for path in folder.iterdir() if not is_litter(path.name))
    if others:
        raise InputError(
            f"{folder} is not empty (it holds {', '.join(others[:3])}) and is no run folder. "
            "Choose a new or an empty folder."
        )
