"""Names of files and folders, made from names that people gave.

A category may be called ``../x``, ``CON`` or nothing at all. Its folder must still stay where it
belongs, on every file system.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

#: A name in two parts, stem and ending; a number goes between them to make it distinct.
NameParts: TypeAlias = tuple[str, str]

#: Length in bytes. File systems allow 255, and a number and an ending are still to come.
_LONGEST_NAME = 120
_LONGEST_ENDING = 16  # characters
_FORBIDDEN = frozenset('<>:"/\\|?*')
#: Names of devices on Windows, which no file may have, whatever its ending.
_RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])\s*(\..*)?", re.I)


def safe_name(text: str) -> str:
    """A name that every file system takes: not a path, not hidden, not reserved, not too long."""
    name = "".join("_" if _is_unsafe(character) else character for character in text).strip(" ")
    # Cutting bytes may leave half a character at the end, which is dropped.
    name = name.encode()[:_LONGEST_NAME].decode("utf-8", "ignore").rstrip(" .")
    if name.startswith("."):
        name = f"_{name[1:]}"
    return f"_{name}" if not name or _RESERVED.fullmatch(name) else name


def _is_unsafe(character: str) -> bool:
    """Whether a character is forbidden, a control character or a line break."""
    return character in _FORBIDDEN or unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")


def split_name(path: Path) -> NameParts:
    """The stem and the ending of a file's name, both safe."""
    stem, ending = os.path.splitext(path.name)
    ending = "".join("_" if _is_unsafe(c) else c for c in ending[:_LONGEST_ENDING])
    return safe_name(stem), ending.rstrip(" .")


def same_file(stem: str, ending: str) -> str:
    """A key that is equal for names that some file system takes for the same file."""
    # Windows and macOS ignore case, and macOS also how accents are composed.
    return unicodedata.normalize("NFC", (stem + ending)).casefold()


def same_stem(stem: str, ending: str) -> str:
    """A key that is equal for names that differ in their endings only."""
    del ending
    return same_file(stem, "")


def distinct(
    parts: Iterable[NameParts],
    key: Callable[[str, str], str] = same_file,
    taken: Iterable[str] = (),
) -> list[str]:
    """Make names distinct: one whose key is already used gets a number.

    Parameters
    ----------
    parts : iterable of NameParts
        Stems and endings. Earlier ones keep their names.
    key : callable, default=same_file
        What must differ, as a function of stem and ending.
    taken : iterable of str
        Names that are used already.

    Returns
    -------
    list of str
        One name for each of `parts`, in their order: ``a.png``, ``a-2.png``, …
    """
    used = {key(name, "") for name in taken}
    # The last number of each name is kept, because trying all from 2 takes quadratic time.
    numbers: Counter[str] = Counter()
    names = []
    for stem, ending in parts:
        first, new = key(stem, ending), stem
        while key(new, ending) in used:
            numbers[first] += 1
            new = f"{stem}-{numbers[first] + 1}"
        used.add(key(new, ending))
        names.append(new + ending)
    return names
