"""A digest for every file of a result that newfound alone writes and reads back.

``digests.json`` is written with the result and moved with it. Each file is compared with its
digest when it is read, so that a flipped byte on a disk is an error and not another result. Tables
for people (``.csv``) have no digest: a person may open and save them. ``started.json`` has none
because a later run replaces it alone.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from newfound.data.tables import damaged
from newfound.files import read_json, write_json
from newfound.result.run_folder import STARTED

DIGESTS = "digests.json"
#: In ``run.json``: that there are digests. Runs of 0.1.0 have none.
KEY = "digests"


def write_digests(folder: Path, **contents: bytes) -> None:
    """Write the digests of all files in a folder.

    Parameters
    ----------
    folder : Path
        The folder.
    **contents
        Content of JSON files that are written after this one, by name without the ending.
    """
    found = {
        path.relative_to(folder).as_posix(): _digest_of(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".csv" and path.name != STARTED
    }
    found |= {f"{name}.json": hashlib.sha256(text).hexdigest() for name, text in contents.items()}
    write_json(folder / DIGESTS, {"sha256": found})


class CheckedFiles:
    """The files of a run folder, each compared with its digest.

    Parameters
    ----------
    folder : Path
        The run folder.
    run : dict
        Content of its ``run.json``.
    """

    def __init__(self, folder: Path, run: dict[str, Any]) -> None:
        self._folder = folder
        self._digests: Any = None
        # Either is enough: the word in run.json may be what is damaged.
        if KEY in run or (folder / DIGESTS).exists():
            self._digests = read_json(folder / DIGESTS).get("sha256")
            if not isinstance(self._digests, dict):
                raise damaged(folder / DIGESTS, "it holds no digests")

    def has(self, name: str) -> bool:
        """Whether the result has a file; one that an earlier result has left does not count."""
        return self._digests is not None and name in self._digests

    def file(self, name: str) -> Path:
        """The path of a file that is as it was written.

        Parameters
        ----------
        name : str
            Relative to the folder, with ``/``.

        Raises
        ------
        InputError
            If the file is missing, or its content is not what was written.
        """
        path = self._folder / name
        try:
            digest = _digest_of(path)
        except OSError as error:
            raise damaged(path, error.strerror) from error
        if self._digests is not None and digest != self._digests.get(name):
            raise damaged(path, "its content is not what was written")
        return path


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(2**20):
            digest.update(block)
        return digest.hexdigest()
