"""Checkpoints: one safetensors file, with everything that is no tensor as JSON in its header.

A file appears under its name only when it is whole, so that a kill at any moment leaves the last
good one. Nothing is ever unpickled.
"""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from newfound.errors import InputError

#: Key of the JSON text in the header.
_HEADER = "newfound"


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file that is there whole or not at all, also when the power fails.

    Parameters
    ----------
    path : Path
        Its name.
    content : bytes
        What it is to hold.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        if error.errno == errno.ENOSPC:
            raise InputError(
                f"The disk is full: {path} needs {len(content) / 2**20:.0f} MiB. Make room and run "
                "the same command again; it goes on from the last checkpoint."
            ) from error
        raise


def save_checkpoint(path: Path, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Write tensors and plain values to one file.

    Parameters
    ----------
    path : Path
        Ends in ``.safetensors``.
    tensors : dict of Tensor
        By name.
    state : dict
        What JSON can hold.
    """
    # clones: two names for one storage, and views of a larger one, are not allowed in the file
    plain = {name: value.detach().cpu().clone().contiguous() for name, value in tensors.items()}
    write_atomically(path, save(plain, metadata={_HEADER: json.dumps(state)}))


def load_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_checkpoint` wrote.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    tensors : dict of Tensor
        By name, on the CPU.
    state : dict
        The plain values.
    """
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            header = (file.metadata() or {}).get(_HEADER)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise InputError(f"{path} is no checkpoint ({error}). Remove it to start again.") from error
    if header is None:
        raise InputError(f"{path} was not written by newfound. Choose another run folder.")
    return tensors, json.loads(header)


def differences(before: dict[str, Any], now: dict[str, Any]) -> str:
    """What differs between two sets of settings, in words; empty if nothing does."""
    names = sorted(set(before) | set(now))
    return ", ".join(
        f"{name} was {before.get(name)!r} and is {now.get(name)!r}"
        for name in names
        if before.get(name) != now.get(name)
    )
