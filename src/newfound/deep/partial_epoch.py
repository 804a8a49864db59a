"""An epoch that is not finished: what a checkpoint in the middle of an epoch has to hold.

On a CPU an epoch may take hours. A checkpoint is therefore also written within an epoch, at most
every few minutes, so that it costs next to nothing on a GPU. The E-step of the epoch cannot be
repeated when such a run is resumed, because the weights have changed since; so its outcome is
stored too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from newfound.deep.components import FoundComponents
from newfound.deep.prototypes import Prototypes, Space

#: Least number of seconds between two checkpoints within an epoch.
SAVE_SECONDS = 300.0
#: Largest share of the time that may go into these checkpoints.
SAVE_SHARE = 0.005
#: Prefix of the tensors in a checkpoint.
_PREFIX = "partial."


@dataclass(frozen=True)
class PartialEpoch:
    """What an unfinished epoch needs to go on, beside the weights.

    Attributes
    ----------
    found : FoundComponents or None
        Of the epoch's E-step; None for a method without prototypes.
    losses : Tensor of shape (n_done,)
        Loss of each batch so far.
    seconds, e_step_seconds : float
        Time that the epoch has taken so far, and its E-step.
    """

    found: FoundComponents | None
    losses: Tensor
    seconds: float
    e_step_seconds: float

    def tensors(self, *, with_features: bool) -> dict[str, Tensor]:
        """Tensors for a checkpoint, by name.

        Parameters
        ----------
        with_features : bool
            Whether to store the features of the E-step. They are large, and only moves after the
            epoch need them.
        """
        tensors = {"losses": self.losses}
        if self.found is not None:
            found = self.found
            tensors |= {"found": torch.from_numpy(found.labels), "means": found.prototypes.means}
            for i, (offset, directions) in enumerate(found.prototypes.space.stages):
                tensors |= {f"offset.{i}": offset, f"directions.{i}": directions}
            if found.prototypes.excess is not None:
                tensors["excess"] = found.prototypes.excess
            if with_features:
                tensors["z"] = found.z
        return {f"{_PREFIX}{name}": value for name, value in tensors.items()}

    def as_json(self) -> dict[str, Any]:
        """All other values."""
        values: dict[str, Any] = {"seconds": self.seconds, "e_step_seconds": self.e_step_seconds}
        if self.found is not None:
            values["found"] = {
                "n_known": self.found.n_known,
                "accuracy": self.found.accuracy,
                "n_stages": len(self.found.prototypes.space.stages),
                "n_batch_directions": self.found.prototypes.n_batch_directions,
            }
        return values

    @classmethod
    def from_checkpoint(
        cls, tensors: dict[str, Tensor], plain: dict[str, Any], device: torch.device
    ) -> PartialEpoch:
        """What `tensors` and `as_json` gave, on the device."""
        own = {
            name.removeprefix(_PREFIX): value
            for name, value in tensors.items()
            if name.startswith(_PREFIX)
        }
        found, values = None, plain.get("found")
        if values is not None:
            stages = [
                (own[f"offset.{i}"], own[f"directions.{i}"]) for i in range(values["n_stages"])
            ]
            prototypes = Prototypes(
                own["means"], Space(tuple(stages)), values["n_batch_directions"], own.get("excess")
            )
            found = FoundComponents(
                z=own.get("z", own["means"][:0]).to(device),
                labels=own["found"].numpy(),
                n_known=values["n_known"],
                prototypes=prototypes.to(device),
                accuracy=values["accuracy"],
            )
        return cls(found, own["losses"], plain["seconds"], plain["e_step_seconds"])


class SaveTimer:
    """Says when a checkpoint within an epoch is due.

    Parameters
    ----------
    clock : callable
        Seconds from any start.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = clock()
        self._cost = 0.0

    def is_due(self) -> bool:
        """Whether so much time has passed that a checkpoint costs next to nothing."""
        return self._clock() - self._last >= max(SAVE_SECONDS, self._cost / SAVE_SHARE)

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Measure how long a checkpoint takes; the next one is due some time after it."""
        started = self._clock()
        yield
        self._last = self._clock()
        self._cost = self._last - started
