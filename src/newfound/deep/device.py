"""Which device this process computes on: the one that was asked for, else a GPU if there is one."""

from __future__ import annotations

import torch

from newfound.errors import InputError

_chosen: torch.device | None = None  # a process computes on one device


def choose_device(name: str | None) -> torch.device:
    """Compute on this device from now on.

    Parameters
    ----------
    name : str or None
        ``cpu``, ``cuda``, ``cuda:1``, ``mps``; None for a GPU if there is one, else the CPU.

    Returns
    -------
    torch.device
        The device.

    Raises
    ------
    InputError
        If there is no such device here.
    """
    global _chosen
    _chosen = None if name is None else _checked(name)
    return current_device()


def current_device() -> torch.device:
    """The device that was chosen; by default a GPU if there is one, else the CPU."""
    return _chosen or torch.device("cuda" if torch.cuda.is_available() else "cpu")


def _checked(name: str) -> torch.device:
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    counts = {"cpu": 1, "cuda": torch.cuda.device_count(), "mps": torch.mps.device_count()}
    if device is not None and (device.index or 0) < counts.get(device.type, 0):
        return device
    here = [kind for kind, count in counts.items() if count]
    raise InputError(
        f"device is {name!r}, which this machine does not have, or torch does not see it. It has: "
        f"{', '.join(here)}. Leave the device out to take the best one."
    )
