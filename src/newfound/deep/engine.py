"""Where training runs: Lightning Fabric on a CPU, one or more GPUs, or several machines."""

from __future__ import annotations

import atexit
import os
from typing import Any

import numpy as np
import torch
from lightning_fabric import Fabric
from torch import Tensor

from newfound.arrays import Ints
from newfound.deep.device import choose_device
from newfound.deep.settings import RunSettings
from newfound.errors import InputError
from newfound.words import plural


def start_engine(settings: RunSettings, batch_size: int) -> Fabric:
    """Open the devices of the settings; under torchrun, join the other processes.

    Parameters
    ----------
    settings : RunSettings
        Precision, devices and nodes.
    batch_size : int
        Images in a batch, which all processes share.

    Returns
    -------
    Fabric
        The engine, launched.
    """
    device = choose_device(settings.device)
    precision: Any = settings.precision
    if precision == "auto":
        precision = "bf16-mixed" if device.type == "cuda" else "32-true"
    under_torchrun = torch.distributed.is_torchelastic_launched()
    devices: Any = settings.devices or ("auto" if under_torchrun else 1)
    if under_torchrun and device.type != "cuda":
        devices = _processes_here()
    if device.index is not None and not under_torchrun:
        devices = [device.index] if settings.devices in (None, 1) else settings.devices
    several = under_torchrun or settings.devices not in (None, 1)
    if not under_torchrun:
        _check_processes(settings, device.type, batch_size)
    fabric = Fabric(
        accelerator="auto" if settings.device is None else device.type,
        devices=devices,
        num_nodes=settings.num_nodes,
        strategy="ddp" if several else "auto",
        precision=precision,
    )
    fabric.launch()
    if several:
        atexit.register(_leave_processes)
    _check_batch(batch_size, fabric.world_size)
    return fabric


def _check_processes(settings: RunSettings, device: str, batch_size: int) -> None:
    """Refuse what cannot work before any process is started."""
    n = settings.devices or 1
    n_here = torch.cuda.device_count() if device == "cuda" else max(2, os.cpu_count() or 1)
    if n > n_here:
        kind = "GPU" if device == "cuda" else "processor core"
        raise InputError(
            f"{n} processes were asked for (devices), but this machine has {plural(n_here, kind)}. "
            f"Ask for {n_here} at most."
        )
    if settings.num_nodes > 1:
        raise InputError(
            f"{settings.num_nodes} machines were asked for (num_nodes), but this process was not "
            "started by torchrun. Start it on each machine with: torchrun … -m newfound …"
        )
    _check_batch(batch_size, n)


def _check_batch(batch_size: int, n_processes: int) -> None:
    if batch_size % n_processes:
        raise InputError(
            f"A batch of {batch_size} images does not divide among {n_processes} processes; "
            "change n_labelled_per_batch or n_unlabelled_per_batch."
        )


def _leave_processes() -> None:
    """Close what connects the processes; else threads of gloo may abort a process at its end."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def _processes_here() -> int:
    """Processes that torchrun started on this machine."""
    return int(os.environ["LOCAL_WORLD_SIZE"])


def share_of(rows: Ints, fabric: Fabric) -> Ints:
    """The rows of a batch that this process works on."""
    return rows[fabric.global_rank :: fabric.world_size]


def whole_order(rows: Ints, fabric: Fabric) -> Ints:
    """The rows of a batch in the order in which `gather` joins them."""
    return np.concatenate([rows[rank :: fabric.world_size] for rank in range(fabric.world_size)])


def gather(part: Tensor, fabric: Fabric, dim: int = 0) -> Tensor:
    """Join the parts of all processes along `dim`, with gradients.

    Each process computes the loss of the whole batch. The gradient of a part is the sum over all
    processes; DDP then takes the mean over processes, which makes it the gradient of one loss.
    """
    if fabric.world_size == 1:
        return part
    parts = fabric.all_gather(part, sync_grads=part.requires_grad)
    return torch.cat(list(parts), dim=dim)
