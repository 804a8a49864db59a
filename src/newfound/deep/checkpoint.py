"""Checkpoints: one safetensors file, with everything that is no tensor as JSON in its header.

A file appears under its name only when it is whole, so that a kill at any moment leaves the last
good one. Nothing is ever unpickled.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from newfound.errors import InputError
from newfound.files import write_atomically

#: Key of the JSON text in the header.
_HEADER = "newfound"


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
