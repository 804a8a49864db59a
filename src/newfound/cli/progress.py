"""Progress on the terminal: the step, how far it is, and how long it will take."""

from __future__ import annotations

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


@contextmanager
def show_progress() -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar for work of several steps, on standard error of the first process.

    Yields
    ------
    callable
        To be called with the step, how much of it is done and how much there is (0 if unknown).
        The bar shows one step at a time; a note is printed above it and stays.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    console, others = Console(stderr=True), not is_first_process()
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
