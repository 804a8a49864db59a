"""What a training reports: a record of each epoch, and the listener that receives it.

This module does not need torch.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Epoch:
    """The numbers of one epoch: a line of ``epochs.jsonl``.

    Attributes
    ----------
    epoch : int
        Counted from 0.
    loss : float
        Mean over the batches.
    pcl_weight : float
        λ(t), the weight of the prototypical loss.
    learning_rate : float
        Learning rate of the epoch.
    n_components, n_novel : int or None
        K and K^n that the epoch was trained with, or, if moves come after the epoch, those after
        it; None for a method without prototypes.
    accuracy : float or None
        Share of the held-out labelled rows whose nearest prototype is that of their class, before
        the epoch; of all labelled rows, if none is held out.
    seconds, e_step_seconds : float
        Time that the whole epoch took, and its E-step.
    images_per_second : float
        Views that were trained on per second; the time includes the E-step.
    """

    epoch: int
    loss: float
    pcl_weight: float
    learning_rate: float
    n_components: int | None
    n_novel: int | None
    accuracy: float | None
    seconds: float
    e_step_seconds: float
    images_per_second: float


class Listener:
    """Receives the events of a training. This one ignores them; subclasses override some."""

    def start(self, n_epochs: int, first_epoch: int) -> None:
        """Training starts, or resumes at `first_epoch`."""

    def batch(self, epoch: int, n_done: int, n_batches: int) -> None:
        """A batch is done."""

    def epoch(self, record: Epoch) -> None:
        """An epoch is done."""

    def say(self, text: str) -> None:
        """A step outside of the epochs begins; `text` names it."""

    def step(self, text: str, done: int, total: int) -> None:
        """A step outside of the batches goes on; `done` of its `total` parts are done."""

    def end(self) -> None:
        """Training is over, or was interrupted."""
