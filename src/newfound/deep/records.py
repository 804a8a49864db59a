"""What there is to tell of a training: a line an epoch, and who listens. Needs no torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Epoch:
    """What one epoch did: a line of ``epochs.jsonl``.

    Attributes
    ----------
    epoch : int
        From 0.
    loss : float
        Mean over the batches.
    pcl_weight : float
        λ(t).
    learning_rate : float
        Of this epoch.
    n_components, n_novel : int or None
        K and K^n that the epoch trained with (after it, if moves come after it); None for a method
        without prototypes.
    accuracy : float or None
        Of the held-out labelled rows (of all labelled rows, if none is held out, by the nearest
        prototype) before the epoch.
    seconds, e_step_seconds : float
        Of the whole epoch, and of its E-step.
    images_per_second : float
        Views that went forward and backward, E-step included in the time.
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
    """Hears how the training goes on; this one says nothing."""

    def start(self, n_epochs: int, first_epoch: int) -> None:
        """Hear that training begins, or goes on from a checkpoint."""

    def batch(self, epoch: int, n_done: int, n_batches: int) -> None:
        """Hear that a batch is over."""

    def epoch(self, record: Epoch) -> None:
        """Hear that an epoch is over."""

    def say(self, text: str) -> None:
        """Hear what happens between epochs."""

    def end(self) -> None:
        """Hear that training is over."""
