"""Small words for messages."""

from __future__ import annotations


def plural(n: int, singular: str, plural: str | None = None) -> str:
    """A number with its noun: "1 file", "3 files".

    Parameters
    ----------
    n : int
        The number.
    singular : str
        The noun for one.
    plural : str, optional
        The noun for other numbers, if it is not the singular with an s.
    """
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"
