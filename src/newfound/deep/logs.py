"""What can be looked at during and after training: TensorBoard, and a plot at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from newfound.deep.records import Epoch, Listener
from newfound.errors import require


class TensorBoard(Listener):
    """Writes every number of every epoch for TensorBoard.

    Parameters
    ----------
    folder : Path
        Where TensorBoard is to look.
    """

    def __init__(self, folder: Path) -> None:
        require("tensorboard", "train")
        self._folder = folder
        self._writer: Any = None

    def start(self, n_epochs: int, first_epoch: int) -> None:
        """Open the log; what an interrupted run wrote from `first_epoch` on is dropped."""
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
    """Passes everything on to several listeners.

    Parameters
    ----------
    listeners : sequence of Listener
        Told in this order.
    """

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self._listeners = listeners

    def start(self, n_epochs: int, first_epoch: int) -> None:
        """Tell all."""
        for listener in self._listeners:
            listener.start(n_epochs, first_epoch)

    def batch(self, epoch: int, n_done: int, n_batches: int) -> None:
        """Tell all."""
        for listener in self._listeners:
            listener.batch(epoch, n_done, n_batches)

    def epoch(self, record: Epoch) -> None:
        """Tell all."""
        for listener in self._listeners:
            listener.epoch(record)

    def say(self, text: str) -> None:
        """Tell all."""
        for listener in self._listeners:
            listener.say(text)

    def end(self) -> None:
        """Tell all."""
        for listener in self._listeners:
            listener.end()


def draw_history(history: Sequence[Epoch], path: Path) -> None:
    """Plot K, labelled accuracy and loss over the epochs.

    Parameters
    ----------
    history : sequence of Epoch
        As in ``epochs.jsonl``.
    path : Path
        Of the picture; its ending says the format.
    """
    require("matplotlib", "train")
    from matplotlib.figure import Figure  # without pyplot: no screen, no global state

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
