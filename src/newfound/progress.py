"""How long-running functions report progress: the callbacks that they all take."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

#: Progress of a run of several steps, called with (step, done, total): the name of the current
#: step, how much of it is done, and how much there is. What it returns is ignored.
Progress: TypeAlias = Callable[[str, int, int], object]

#: A "step" whose name begins with this is a message that a person should read and that should stay
#: visible: ``progress("Note: Training will take about 3 hours.", 0, 0)``.
NOTE = "Note: "

#: Progress within one step, called with (done, total). ``functools.partial(progress, "Encoding")``
#: makes one from a `Progress`.
StepProgress: TypeAlias = Callable[[int, int], object]


def no_progress(*args: object) -> None:
    """Report nothing: the default where a `Progress` or a `StepProgress` is optional."""
