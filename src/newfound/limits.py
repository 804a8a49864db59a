"""How much memory a file may take: read from its header, before anything is unpacked.

A compressed file of 3 MB can hold an array of 8 GB. Such a file is refused above a limit, unless
a person raises the limit by an environment variable. A file that is about as large on the disk as
in memory surprises nobody, and has no limit.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

from newfound.errors import InputError

#: Environment variables that raise the limits, with what holds without them.
MAX_GB, DEFAULT_GB = "NEWFOUND_MAX_GB", 4.0
MAX_MEGAPIXELS, DEFAULT_MEGAPIXELS = "NEWFOUND_MAX_MEGAPIXELS", 100.0

#: A file may be this much larger in memory than on the disk, whatever its size.
_PLAIN = 2


def check_unpacked(path: Path, n_bytes: int) -> None:
    """Refuse a file that would take far more memory than its size on the disk suggests.

    Parameters
    ----------
    path : Path
        The file.
    n_bytes : int
        Bytes that its content takes in memory, by its header.

    Raises
    ------
    InputError
        If that is more than ``NEWFOUND_MAX_GB``, and more than twice the size on the disk.
    """
    on_disk = path.stat().st_size
    limit = _from_environment(MAX_GB, DEFAULT_GB)
    if n_bytes > max(limit * 1e9, _PLAIN * on_disk):
        raise InputError(
            f"{path} has {on_disk / 1e6:,.3g} MB, but unpacked it would take "
            f"{n_bytes / 1e9:,.4g} GB; the limit is {limit:g} GB. If you trust the file and have "
            f"the memory, set the environment variable {MAX_GB}={math.ceil(n_bytes / 1e9)}."
        )


def max_pixels() -> int:
    """Number of pixels above which a picture is not read."""
    return int(_from_environment(MAX_MEGAPIXELS, DEFAULT_MEGAPIXELS) * 1e6)


def _from_environment(name: str, default: float) -> float:
    text = os.environ.get(name, "")
    try:
        value = float(text) if text.strip() else default
    except ValueError:
        value = math.nan
    if not (value > 0 and math.isfinite(value)):
        raise InputError(f"The environment variable {name} must be a number above 0; got {text!r}.")
    return value
