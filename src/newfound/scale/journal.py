"""The journal of a fit: results of finished passes, so that an interrupted fit can resume.

A fit is a fixed sequence of passes over the rows, each with its arguments. Started again with the
same seed, it asks for the same passes; those in the journal are read instead of made. Without
workers, a long pass is resumed where it was interrupted, up to half a minute.
"""

from __future__ import annotations

import hashlib
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from newfound.files import whole_file
from newfound.scale.blocks import Statistics
from newfound.scale.passes import Call

#: How often the results of a pass under way are written.
SECONDS_BETWEEN_WRITES = 30.0


class Journal:
    """A folder with one ``.npz`` file for each finished pass, and one for a pass under way.

    Parameters
    ----------
    folder : Path
        Where the files are; it is made when they are written. Delete it to start anew.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._written = time.monotonic()

    def look_up(self, call: Call, rows: str) -> list[Statistics]:
        """Results of the first groups, or of all, if the same pass was made before."""
        try:
            with np.load(self._path(call, rows), allow_pickle=False) as archive:
                stored = {name: archive[name] for name in archive.files}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile):
            return []  # missing or damaged: the pass is made again
        n_groups, n_arrays = (int(number) for number in stored["shape"])
        return [tuple(stored[f"{g}_{a}"] for a in range(n_arrays)) for g in range(n_groups)]

    def add(self, call: Call, rows: str, results: list[Statistics], *, is_done: bool) -> None:
        """Keep the results of the first groups of a pass: of all, or now and then."""
        if not is_done and time.monotonic() - self._written < SECONDS_BETWEEN_WRITES:
            return
        arrays: dict[str, Any] = {
            f"{g}_{a}": array for g, group in enumerate(results) for a, array in enumerate(group)
        }
        with whole_file(self._path(call, rows)) as file:
            np.savez(file, shape=np.array([len(results), len(results[0])]), **arrays)
        self._written = time.monotonic()

    def _path(self, call: Call, rows: str) -> Path:
        """File of a pass; its name is a digest of all that the results depend on."""
        digest = hashlib.sha256(f"{rows}:{call.digest()}".encode())
        return self.folder / f"{call.function.__name__}-{digest.hexdigest()[:16]}.npz"
