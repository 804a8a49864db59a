"""Which weights a network starts from, in a word that does not depend on where they are."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from newfound.errors import InputError


def weights_id(weights: str) -> str:
    """The name of weights: a file is named by its checksum, wherever it is.

    Parameters
    ----------
    weights : str
        "hub", "offline", "random", the path of a file, or a checksum from an earlier call.
    """
    if weights in ("hub", "offline", "random"):
        return weights
    path = Path(weights)
    if not path.is_file() and re.fullmatch("[0-9a-f]{12}", weights):
        return weights
    if not path.is_file():
        raise InputError(f"There is no file of weights {weights}; give hub, offline or a file.")
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
