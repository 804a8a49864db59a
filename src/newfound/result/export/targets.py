"""Files and folders to export to: how they may be called; nothing that exists is overwritten."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from newfound.errors import InputError
from newfound.files import disk_errors, is_litter
from newfound.progress import StepProgress, no_progress

#: Endings by which a person means a file. Any other dot may be part of a folder's name: birds.v2.
_FILE_ENDINGS = frozenset(
    [
        *[".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".parquet", ".pq", ".xml"],
        *[".html", ".md", ".xls", ".xlsx", ".yaml", ".yml", ".npy", ".npz", ".zip", ".tar"],
        *[".gz", ".tgz"],
    ]
)


@dataclass(frozen=True)
class Target:
    """Where an export goes, and how.

    Attributes
    ----------
    path : Path
        The file or folder to write, as an absolute path.
    link : bool
        Whether pictures are hard links to the originals, where that is possible, not copies.
    progress : callable
        Called with the number of pictures written so far and their total number.
    """

    path: Path
    link: bool = False
    progress: StepProgress = no_progress


def check_name(out: Path, to: str, endings: Sequence[str], *, may_be_folder: bool) -> None:
    """Refuse the name of a file where a folder is written, and the other way round.

    Parameters
    ----------
    out : Path
        The file or folder to write.
    to : str
        The format, for the message.
    endings : sequence of str
        The endings of the file that the format writes; none if it writes a folder only.
    may_be_folder : bool
        Whether the format writes a folder.
    """
    ending = out.suffix.lower()
    if ending in endings or (may_be_folder and (ending not in _FILE_ENDINGS or out.is_dir())):
        return
    if may_be_folder:
        or_file = f", or a file that ends in {endings[0]}" if endings else ""
        raise InputError(
            f"{to!r} writes a folder{or_file}, but {out} is the name of a {ending} file. Give, for "
            f"example, {_without_file_endings(out)}."
        )
    if out.is_dir():
        raise InputError(
            f"{out} is a folder, but {to!r} writes a file. Give, for example, "
            f"{out / ('categories' + endings[0])}."
        )
    example = out.with_suffix(endings[0]) if ending in _FILE_ENDINGS else f"{out}{endings[0]}"
    raise InputError(
        f"{to!r} writes a file that ends in {endings[0]}; got {out}. Give, for example, {example}."
    )


def _without_file_endings(path: Path) -> Path:
    """A name that can be a folder's: ``data`` for ``data.tar.gz``."""
    while path.suffix.lower() in _FILE_ENDINGS:
        path = path.with_suffix("")
    return path


def check_new_file(out: Path) -> None:
    """Refuse a file that exists, unless it is empty (shells make one with ``> out``)."""
    if out.is_dir():
        raise InputError(
            f"{out} is a folder, but this format is a file. Give the name of a new file."
        )
    if out.exists() and out.stat().st_size > 0:
        raise InputError(f"{out} exists already. Remove it, or give the name of a new file.")


@contextlib.contextmanager
def new_files(files: Sequence[Path]) -> Iterator[None]:
    """Write files that belong together; if writing fails, all of them are removed."""
    for file in files:
        check_new_file(file)
    try:
        yield
    except BaseException:  # an interrupt too: some of the files look like all of them
        for file in files:
            file.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def new_folder(out: Path) -> Iterator[None]:
    """Make a folder to write to; if writing fails, what was written is removed."""
    if out.exists() and not out.is_dir():
        raise InputError(
            f"{out} is a file, but this format is a folder. Give the name of a new folder."
        )
    with disk_errors(out, resumes=False):  # a failed export is removed
        is_new = not out.exists()
        out.mkdir(parents=True, exist_ok=True)
        before = set(out.iterdir())
        _check_empty(out, before)
        try:
            yield
        except BaseException:  # an interrupt too: half an export looks like a whole one
            for path in set(out.iterdir()) - before:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            if is_new:
                out.rmdir()
            raise


def _check_empty(out: Path, entries: Iterable[Path]) -> None:
    """Refuse a folder with files in it, apart from hidden ones and those of file managers."""
    names = sorted(path.name for path in entries)
    files = [name for name in names if not is_litter(name)]
    if files:
        raise InputError(
            f"{out} is not empty (it holds {', '.join(files[:3])}). Remove it if it is an older "
            "export, or choose a new folder."
        )
