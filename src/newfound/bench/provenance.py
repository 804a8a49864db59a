"""Where a record comes from: commit, files, machine and versions."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from newfound import _version
from newfound.bench.datasets import DataSet
from newfound.bench.splits import Split
from newfound.result.record import installed_versions

#: Environment variable with the commit, for machines without the repository.
COMMIT_VARIABLE = "NEWFOUND_COMMIT"
_DIRTY = "-dirty"
_PACKAGES = ("numpy", "scikit-learn", "torch", "timm")


class Commit(NamedTuple):
    """The commit of the code ("" if it is not known), and whether nothing was changed since."""

    name: str = ""
    clean: bool | None = None


def code_commit(given: str | None = None) -> Commit:
    """The commit that runs.

    Parameters
    ----------
    given : str, optional
        The commit, with "-dirty" at its end if files were changed since, as ``git describe
        --always --dirty`` prints it. By default the environment variable NEWFOUND_COMMIT counts,
        then the repository of the code.
    """
    text = given or os.environ.get(COMMIT_VARIABLE, "")
    if text:
        return Commit(text.removesuffix(_DIRTY), not text.endswith(_DIRTY))
    return _of_repository()


@functools.cache
def _of_repository() -> Commit:
    """The commit at the first call: what is imported by then is what runs."""
    # an installed package may lie in somebody's repository without belonging to it
    if _git("ls-files", "--error-unmatch", Path(_version.__file__).name) is None:
        return Commit()
    return Commit(_git("rev-parse", "HEAD") or "", _git("status", "--porcelain", "-uno", ".") == "")


def _git(*words: str) -> str | None:
    """What git prints in the folder of the code; None if it fails."""
    try:
        done = subprocess.run(
            ["git", *words],
            cwd=Path(_version.__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def files_checksum(dataset: DataSet, split: Split) -> str:
    """12 hexadecimal digits that depend on the content of each row and on its label.

    Parameters
    ----------
    dataset : DataSet
        The files, or the array.
    split : Split
        Which rows take part, and their labels.
    """
    digest = hashlib.sha256(split.y.astype("<i8").tobytes())
    if dataset.paths is None:
        assert dataset.array is not None
        rows = dataset.array[split.rows]
        digest.update(f"{rows.dtype.str} {rows.shape}".encode())
        digest.update(np.ascontiguousarray(rows).data)
        return digest.hexdigest()[:12]
    for row in split.rows:
        path = dataset.paths[row]
        status = path.stat()
        digest.update(_file_digest(path, status.st_size, status.st_mtime_ns))
    return digest.hexdigest()[:12]


@functools.cache
def _file_digest(path: Path, size: int, changed: int) -> bytes:
    """Digest of a file, read once in a process while its size and time stay the same."""
    return hashlib.sha256(path.read_bytes()).digest()


def machine() -> str:
    """Name of the GPU or processor."""
    if torch.cuda.is_available():
        return str(torch.cuda.get_device_name())
    return f"{platform.machine()} CPU"


def versions() -> dict[str, str]:
    """Versions of the packages that a result depends on."""
    return {"newfound": _version.__version__, **installed_versions(_PACKAGES)}
