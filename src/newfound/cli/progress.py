"""Progress on the terminal: what is going on, how far it is, and how long it will take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from newfound.deep.records import Epoch, Listener
from newfound.errors import require

require("rich", "cli")

from rich.console import Console  # noqa: E402
from rich.progress import (  # noqa: E402
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)


@contextmanager
def bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar for one step, on standard error.

    Parameters
    ----------
    what : str
        What is being done.

    Yields
    ------
    callable
        To be called with how much is done and how much there is.
    """
    with steps() as tell:
        yield lambda done, total: tell(what, done, total)


@contextmanager
def steps() -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar for work of several steps, on standard error.

    Yields
    ------
    callable
        To be called with the step, how much of it is done and how much there is (0: unknown).
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        shown: dict[str, TaskID] = {"": progress.add_task("Starting", total=None)}

        def tell(step: str, done: int, total: int) -> None:
            if step not in shown:
                for task in shown.values():
                    progress.remove_task(task)
                shown.clear()
                shown[step] = progress.add_task(step, total=None)
            progress.update(shown[step], completed=done, total=total or None)

        yield tell


class TrainingBar(Listener):
    """A bar over all batches, with the numbers of the last epoch."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[numbers]}"),
        )
        self._progress = Progress(*columns, console=self._console, transient=True)
        self._task = self._progress.add_task("Training", total=None, numbers="")
        self._n_epochs = 1

    def start(self, n_epochs: int, first_epoch: int) -> None:
        """Show the bar."""
        self._n_epochs = n_epochs
        if first_epoch:
            self._console.print(f"Going on from epoch {first_epoch} of {n_epochs}.")
        self._progress.start()

    def batch(self, epoch: int, n_done: int, n_batches: int) -> None:
        """Move the bar."""
        self._progress.update(
            self._task,
            description=f"Epoch {epoch + 1} of {self._n_epochs}",
            completed=epoch * n_batches + n_done,
            total=self._n_epochs * n_batches,
        )

    def epoch(self, record: Epoch) -> None:
        """Show the numbers of the epoch."""
        numbers = f"loss {record.loss:.3f}"
        if record.n_components is not None:
            numbers += f" · λ {record.pcl_weight:.2f} · K {record.n_components}"
        if record.accuracy is not None:
            numbers += f" · labelled accuracy {record.accuracy:.1%}"
        numbers += f" · {record.images_per_second:,.0f} images/s"
        self._progress.update(self._task, numbers=numbers)

    def say(self, text: str) -> None:
        """Show what happens after the last epoch."""
        self._progress.update(self._task, description=text)

    def end(self) -> None:
        """Take the bar away."""
        self._progress.stop()
