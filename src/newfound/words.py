"""Small pieces of English that messages share: plurals, lists of names, sizes of files."""

from __future__ import annotations

import math
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


def file_size(n_bytes: int) -> str:
    """A size as file managers show it, in powers of 1000: ``812 B``, ``3.4 GB``."""
    size = float(n_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 99.95 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"


#: Shares in words, the largest first.
_SHARES = {
    0.8: "four fifths",
    0.75: "three quarters",
    0.67: "two thirds",
    0.5: "half",
    0.33: "a third",
    0.25: "a quarter",
    0.2: "a fifth",
    0.1: "a tenth",
}


def times_as_large(ratio: float) -> str:
    """A ratio of sizes in words: ``about a third as large``, ``about 2.5 times as large``.

    Parameters
    ----------
    ratio : float
        The size of one thing over that of the other, above 0.

    Returns
    -------
    str
        The words, without the other thing: "as known ones" may follow.
    """
    if ratio < 0.07:
        return "less than a tenth as large"
    if 0.9 <= ratio <= 1.1:
        return "about as large"
    if ratio > 1.1:
        times = f"{ratio:.0f}" if ratio >= 9.95 else f"{ratio:.1f}".removesuffix(".0")
        return f"about {times} times as large"
    nearest = min(_SHARES, key=lambda share: abs(math.log(share / ratio)))
    return f"about {_SHARES[nearest]} as large"


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
