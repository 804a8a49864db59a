"""Listeners of a training: progress for a person, TensorBoard, and a plot at the end.

This module loads torch only when TensorBoard is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from newfound.deep.pace import Pace, duration
from newfound.deep.records import Epoch, Listener
from newfound.errors import require
from newfound.progress import NOTE, Progress

#: Seconds from which a person is told how long a training takes, and how it would be shorter.
_WORTH_SAYING, _LONG = 60.0, 600.0


class ProgressListener(Listener):
    """Turns the events of a training into calls of a progress function.

    Parameters
    ----------
    progress : callable
        Called with the step, how much of it is done, and how much there is in all; 0 of 0 where
        that is unknown.
    advice : str, default=""
        What to do if the training takes long. It follows the estimate of the time, which is
        reported once, as a note, when it is stable.
    pace : Pace, optional
        What measures the time.
    """

    def __init__(self, progress: Progress, advice: str = "", pace: Pace | None = None) -> None:
        self._progress = progress
        self._advice = advice
        self._pace = pace or Pace()
        self._is_told = False
        self._n_epochs = 1
        self._numbers = ""  # those of the last epoch, shown beside the step

    def start(self, n_epochs: int, first_epoch: int) -> None:
        """Report the epochs: how many batches there are is not known yet."""
        self._n_epochs = n_epochs
        self._pace.start(n_epochs)
        self._progress("Training", first_epoch, n_epochs)

    def batch(self, epoch: int, n_done: int, n_batches: int) -> None:
        """Report the batches of all epochs, and how long the rest will take."""
        self._pace.batch(epoch, n_done, n_batches)
        done, total = epoch * n_batches + n_done, self._n_epochs * n_batches
        left = self._pace.seconds_left
        time = "" if left is None or done == total else f" · about {duration(left)} left"
        self._progress(f"Training{time}{self._numbers}", done, total)
        if left is not None and self._pace.is_stable and not self._is_told:
            self._is_told = True
            self._tell(left, self._pace.batch_seconds or 0.0, total - done)

    def _tell(self, seconds: float, per_batch: float, n_left: int) -> None:
        """Say how long the training will take and, if that is long, what would be shorter."""
        if seconds < _WORTH_SAYING:
            return
        words = f"Training will take about {duration(seconds)} more on this machine"
        words = f"{words} ({n_left:,} batches, {per_batch:.2g} s each)."
        if seconds >= _LONG and self._advice:
            words = f"{words} {self._advice}"
        self._progress(f"{NOTE}{words}", 0, 0)

    def epoch(self, record: Epoch) -> None:
        """Remember the numbers of the epoch for the next reports."""
        self._pace.epoch(record)
        numbers = [f"loss {record.loss:.3f}"]
        if record.n_components is not None:
            numbers.append(f"K {record.n_components}")
        if record.accuracy is not None:
            numbers.append(f"labelled accuracy {record.accuracy:.1%}")
        numbers.append(f"{record.images_per_second:,.0f} images/s")
        self._numbers = "".join(f" · {number}" for number in numbers)

    def say(self, text: str) -> None:
        """Report a step without a length."""
        self._progress(text, 0, 0)

    def step(self, text: str, done: int, total: int) -> None:
        """Report a step with its length."""
        self._progress(text, done, total)


class TensorBoard(Listener):
    """Writes the numbers of every epoch for TensorBoard.

    Parameters
    ----------
    folder : Path
        Folder that TensorBoard is to read.
    """

    def __init__(self, folder: Path) -> None:
        require("tensorboard", "train")
        self._folder = folder
        self._writer: Any = None

    def start(self, n_epochs: int, first_epoch: int) -> None:
        """Open the log; lines of an interrupted run from `first_epoch` on are dropped."""
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(self._folder), purge_step=first_epoch)

    def epoch(self, record: Epoch) -> None:
        """Write the numbers of an epoch."""
        for name, value in asdict(record).items():
            if name != "epoch" and value is not None:
                self._writer.add_scalar(name, value, record.epoch)

    def end(self) -> None:
        """Close the log."""
        if self._writer is not None:
            self._writer.close()


class Several(Listener):
    """Passes every event on to several listeners.

    Parameters
    ----------
    listeners : sequence of Listener
        Called in this order.
    """

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self._listeners = listeners

    def start(self, n_epochs: int, first_epoch: int) -> None:
        """Pass it on."""
        for listener in self._listeners:
            listener.start(n_epochs, first_epoch)

    def batch(self, epoch: int, n_done: int, n_batches: int) -> None:
        """Pass it on."""
        for listener in self._listeners:
            listener.batch(epoch, n_done, n_batches)

    def epoch(self, record: Epoch) -> None:
        """Pass it on."""
        for listener in self._listeners:
            listener.epoch(record)

    def say(self, text: str) -> None:
        """Pass it on."""
        for listener in self._listeners:
            listener.say(text)

    def step(self, text: str, done: int, total: int) -> None:
        """Pass it on."""
        for listener in self._listeners:
            listener.step(text, done, total)

    def end(self) -> None:
        """Pass it on."""
        for listener in self._listeners:
            listener.end()


def draw_history(history: Sequence[Epoch], path: Path) -> None:
    """Plot K, labelled accuracy and loss over the epochs.

    Parameters
    ----------
    history : sequence of Epoch
        Records, as in ``epochs.jsonl``.
    path : Path
        The picture to write; the suffix sets its format.
    """
    require("matplotlib", "train")
    from matplotlib.figure import Figure  # not pyplot, which needs a screen and has global state

    panels = [
        ("n_components", "categories K"),
        ("accuracy", "accuracy on held-out labels"),
        ("loss", "loss"),
    ]
    panels = [panel for panel in panels if getattr(history[0], panel[0]) is not None]
    figure = Figure(figsize=(4 * len(panels), 3), layout="constrained")
    for place, (name, title) in enumerate(panels, start=1):
        axes = figure.add_subplot(1, len(panels), place)
        axes.plot([record.epoch for record in history], [getattr(r, name) for r in history])
        axes.set_title(title)
        axes.set_xlabel("epoch")
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
