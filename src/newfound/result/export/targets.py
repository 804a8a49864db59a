"""Files and folders to export to; nothing that exists is overwritten."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from newfound.errors import InputError
from newfound.files import disk_errors, is_litter


def check_new_file(out: Path) -> None:
    """Refuse a file that exists, unless it is empty (shells make one with ``> out``)."""
    if out.is_dir():
        raise InputError(
            f"{out} is a folder, but this format is a file. Give the name of a new file."
        )
    if out.exists() and out.stat().st_size > 0:
        raise InputError(f"{out} exists already. Remove it, or give the name of a new file.")


@contextlib.contextmanager
def new_folder(out: Path) -> Iterator[None]:
    """Make a folder to write to; if writing fails, what was written is removed."""
    if out.exists() and not out.is_dir():
        raise InputError(
            f"{out} is a file, but this format is a folder. Give the name of a new folder."
        )
    with disk_errors(out):
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
