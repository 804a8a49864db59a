"""Progress on the terminal: the step, how far it is, and how long it will take.

Where standard error is no terminal but a file, a plain line now and then takes the place of bars.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from newfound.errors import require
from newfound.progress import NOTE

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

from newfound.workflows.processes import is_first_process  # noqa: E402

#: What follows this mark in the name of a step is a detail that changes while the step goes on.
DETAIL = " · "
#: Seconds between two lines in a file.
_PAUSE = 30.0


class PlainLines:
    """Progress as lines of text, for log files: at most one in half a minute, and all notes.

    Parameters
    ----------
    console : Console
        Where to print.
    clock : callable, optional
        Tells the seconds.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._last = clock()

    def __call__(self, step: str, done: int, total: int) -> None:
        """Print a note at once, and a step if the last line is old."""
        is_note, now = step.startswith(NOTE), self._clock()
        if not is_note and now - self._last < _PAUSE:
            return
        self._last = now
        how_far = f": {done} of {total}" if total else f": {done}" if done else ""
        line = step if is_note else f"{step}{how_far}"
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def show_progress() -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar for work of several steps, on standard error of the first process.

    Yields
    ------
    callable
        To be called with the step, how much of it is done and how much there is (0 if unknown).
        The bar shows one step at a time; a note is printed above it and stays. In a file there
        are lines instead.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    console, others = Console(stderr=True), not is_first_process()
    if not console.is_terminal and not others:
        yield PlainLines(console)
        return
    with Progress(*columns, console=console, transient=True, disable=others) as bars:
        shown: dict[str, TaskID] = {"": bars.add_task("Starting", total=None)}

        def report(step: str, done: int, total: int) -> None:
            if step.startswith(NOTE):
                bars.console.print(step, markup=False, highlight=False, soft_wrap=True)
                return
            name = step.partition(DETAIL)[0]
            if name not in shown:
                for task in shown.values():
                    bars.remove_task(task)
                shown.clear()
                shown[name] = bars.add_task(step, total=None)
            bars.update(shown[name], description=step, completed=done, total=total or None)

        yield report
