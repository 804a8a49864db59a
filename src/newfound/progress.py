"""How long work reports its progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

#: Called with the step, how much of it is done, and how much there is; 0 if that is unknown.
Progress: TypeAlias = Callable[[str, int, int], object]


def no_progress(step: str, done: int, total: int) -> None:
    """Ignore the report."""
