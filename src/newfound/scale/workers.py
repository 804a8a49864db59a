"""Passes on the workers of a Dask cluster. Dask is imported only when there is a client."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from newfound.errors import InputError, require
from newfound.progress import StepProgress
from newfound.scale.blocks import Features, Labels, Statistics, group_bounds
from newfound.scale.passes import Call, run_group

#: Seconds to wait for a scheduler.
_SECONDS_TO_CONNECT = 10
#: Seconds without any progress after which we look what workers do.
_SECONDS_BETWEEN_LOOKS = 30


class Sources(Protocol):
    """What a pass reads."""

    @property
    def features(self) -> Features:
        """Where the features are read."""
        ...

    @property
    def labels(self) -> Labels:
        """Where the labels are read."""
        ...


def connect(scheduler: str | None = None, workers: int | None = None) -> Any:
    """Connect to a Dask cluster, or start one of processes on this machine.

    Parameters
    ----------
    scheduler : str, optional
        Address of a scheduler, such as ``tcp://10.0.0.1:8786``.
    workers : int, optional
        Number of processes to start instead, with one thread each.

    Returns
    -------
    distributed.Client
        It becomes the default client, which all passes use. Close it, or use it in ``with``.

    Raises
    ------
    InputError
        If there is no scheduler at this address.
    """
    distributed = require("distributed", "scale")
    if scheduler is None:
        return distributed.Client(
            n_workers=workers or 1,
            threads_per_worker=1,
            # without an address, its page takes the port 8787, which only one cluster can have
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,  # errors of workers are raised here
        )
    try:
        return distributed.Client(scheduler, timeout=_SECONDS_TO_CONNECT)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"There is no Dask scheduler at {scheduler} ({error}). Start one with `dask "
            "scheduler`, and give the address that it prints."
        ) from error


def active_client() -> Any:
    """The default client of Dask, or None; Dask is not imported to find out."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None


def run_on_workers(
    client: Any, rows: Sources, call: Call, progress: StepProgress
) -> list[Statistics]:
    """Make a pass on the workers of a client; lost groups are computed again by Dask."""
    distributed = require("distributed", "scale")
    futures = client.compute(_tasks(rows, call))
    try:
        for n_done, future in enumerate(as_completed(client, futures), start=1):
            if future.status == "error":
                raise future.exception()
            progress(n_done, len(futures))
        return list(client.gather(futures))
    except distributed.KilledWorker as error:
        raise InputError(
            f"A part of the rows ended several workers, probably for want of memory ({error}). "
            "Give workers more memory, or fewer threads each; with `resume`, nothing is lost."
        ) from error
    except BaseException:  # an interrupt too: workers stop what nobody waits for
        client.cancel(futures)
        raise


def as_completed(client: Any, futures: Sequence[Any]) -> Iterator[Any]:
    """Futures in the order in which they are done.

    Dask pauses a worker whose memory is full. If the disk is full as well to which it would move
    data, it waits for ever, and so would we.

    Raises
    ------
    InputError
        If all workers wait for memory.
    """
    distributed = require("distributed", "scale")
    left, before = set(futures), None
    while left:
        try:
            for future in distributed.as_completed(left, timeout=_SECONDS_BETWEEN_LOOKS):
                left.discard(future)
                before = None
                yield future
        except distributed.TimeoutError:  # not that of Python before 3.11
            workers = client.scheduler_info(n_workers=-1)["workers"].values()
            now = [_activity(worker) for worker in workers]
            if now and now == before and all(is_paused for is_paused, *_ in now):
                folder = next(iter(workers))["local_directory"]
                raise InputError(
                    "All workers are paused: their memory is full, and they cannot move data to "
                    f"their disk (one has the folder {folder}). Make room there, or give workers "
                    "more memory, and run the same again; with `resume`, nothing is lost."
                ) from None
            before = now


def _activity(worker: Any) -> tuple[bool, int]:
    """Whether a worker is paused with nothing to finish, and how many bytes are on its disk."""
    metrics = worker["metrics"]
    is_paused = worker["status"] == "paused" and not metrics["task_counts"].get("executing")
    return is_paused, metrics["spilled_bytes"]["disk"]


def _tasks(rows: Sources, call: Call) -> list[Any]:
    """One delayed call per group; the arguments are one more task, so that they travel once."""
    delayed = require("dask", "scale").delayed
    shared = delayed(_open, pure=False)(_Shared(call))
    return [
        delayed(_run_group, pure=False)(
            shared, rows.features.cut(*group), rows.labels.cut(*group), group
        )
        for group in group_bounds(rows.features.shape[0])
    ]


class _Shared:
    """A call in a box that Dask does not open: it would look for tasks in every argument."""

    def __init__(self, call: Call) -> None:
        self.call = call


def _open(shared: _Shared) -> _Shared:
    return shared


def _run_group(shared: _Shared, *where: Any) -> Statistics:
    return run_group(shared.call, *where)


def lazy_vector(rows: Sources, call: Call) -> Any:
    """A Dask array of whole numbers, one chunk per group, computed when it is needed."""
    array = require("dask.array", "scale")
    delayed = require("dask", "scale").delayed
    bounds = group_bounds(rows.features.shape[0])
    parts = [
        array.from_delayed(delayed(_first)(task), (stop - start,), dtype=np.int64)
        for task, (start, stop) in zip(_tasks(rows, call), bounds, strict=True)
    ]
    return array.concatenate(parts)


def _first(results: Statistics) -> Any:
    return results[0]
