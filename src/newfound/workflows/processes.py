"""Which process this is, when several work together. Needs no torch."""

from __future__ import annotations

import os


def is_first_process() -> bool:
    """Whether this is the process that talks to the person and writes files.

    torchrun sets RANK; Lightning Fabric, which starts further processes for ``--devices``, sets
    LOCAL_RANK and NODE_RANK in them.
    """
    if "RANK" in os.environ:
        return os.environ["RANK"] == "0"
    return os.environ.get("LOCAL_RANK", "0") == "0" and os.environ.get("NODE_RANK", "0") == "0"
