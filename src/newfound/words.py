"""Small pieces of English that messages share: plurals and lists of names."""

from __future__ import annotations

from collections.abc import Iterable


def plural(n: int, singular: str, plural: str | None = None) -> str:
    """A number and what it counts: ``1 file``, ``2 files``, ``1,200 files``.

    Parameters
    ----------
    n : int
        How many there are.
    singular : str
        The word for one, or a phrase with its verb: ``"file was skipped"``.
    plural : str, optional
        The word or phrase for any other number. By default `singular` with an "s".

    Returns
    -------
    str
        The number and the word that fits it.
    """
    word = singular if n == 1 else (plural or f"{singular}s")
    return f"{n:,} {word}"


def first_few(names: Iterable[object], n: int = 5) -> str:
    """The first `n` names, and how many more there are: ``a, b and 3 more``."""
    # An empty name would leave a gap between two commas that no reader notices.
    texts = [str(name) or "(empty)" for name in names]
    more = f" and {len(texts) - n} more" if len(texts) > n else ""
    return ", ".join(texts[:n]) + more


def any_of(names: Iterable[str]) -> str:
    """Names to choose from: ``csv, parquet or coco``."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


_THINGS = {"pictures": "picture", "texts": "text", "features": "item"}


def things(kind: str, n: int = 2) -> str:
    """What the items of a collection are called: ``pictures``, ``texts`` or ``items``.

    Parameters
    ----------
    kind : {"pictures", "texts", "features"}
        Kind of the collection.
    n : int, default=2
        How many are meant: 1 gives the singular.

    Returns
    -------
    str
        The word alone, without the number.
    """
    word = _THINGS[kind]
    return word if n == 1 else f"{word}s"
