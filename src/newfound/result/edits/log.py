"""The file ``edits.csv``: one row for each decision, in the order in which they were taken.

It is a person's file. It is read however it was changed: with columns in another order, with
semicolons, without ids. Rows are only ever added to it; to undo one, a row ``undo`` names its id,
or a person deletes it.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import IO

from newfound.data.tables import escape_formula, unescape_formula
from newfound.errors import InputError
from newfound.files import disk_errors, write_atomically

EDITS = "edits.csv"
COLUMNS = ("id", "time", "action", "subject", "object", "value", "probability", "note")

#: Each action with the cells that it needs.
ACTIONS = {
    "merge": ("subject", "object"),
    "split": ("subject", "object"),
    "rename": ("subject", "value"),
    "confirm": ("subject",),
    "reject": ("subject",),
    "relabel": ("subject",),
    "move": ("subject", "object"),
    "same": ("subject", "object"),
    "different": ("subject", "object"),
    "granularity": ("subject",),
    "undo": ("subject",),
}

_SEPARATORS = ",;\t"


@dataclass(frozen=True)
class Edit:
    """One decision.

    Attributes
    ----------
    action : str
        One of `ACTIONS`.
    subject, object, value : str
        What it is about; their meaning depends on the action. A cell with several items has one
        id in each line.
    probability : str
        With which probability the question was drawn, for pairs that a sampler asked about.
    note : str
        Whatever a person wants to remember.
    id, time : str
        The id by which it can be undone, and when it was written. Both may be empty.
    row : int
        Row of the file as a spreadsheet numbers it: the header is row 1.
    """

    action: str
    subject: str
    object: str = ""
    value: str = ""
    probability: str = ""
    note: str = ""
    id: str = ""
    time: str = ""
    row: int = 0

    @property
    def content(self) -> tuple[str, str, str, str]:
        """What it says, without when and by which id."""
        return self.action, self.subject, self.object, self.value


def read_edits(folder: Path) -> list[Edit]:
    """Read the edits of a run.

    Parameters
    ----------
    folder : Path
        The run folder.

    Returns
    -------
    list of Edit
        In the order of the file; empty if there is none. Rows without any text are left out.

    Raises
    ------
    InputError
        If the file is no text in UTF-8, or has no columns ``action`` and ``subject``.
    """
    path = Path(folder) / EDITS
    if not path.is_file():
        return []
    table = _parse(path)
    if not table:
        return []
    header = _header(table[0], path)
    edits = []
    for row, cells in enumerate(table[1:], start=2):
        texts = {name: unescape_formula(cell) for name, cell in zip(header, cells, strict=False)}
        if any(text.strip() for text in texts.values()):
            edits.append(_edit_of(texts, row))
    return edits


def _edit_of(texts: dict[str, str], row: int) -> Edit:
    known = {name: texts.get(name, "") for name in COLUMNS}
    # Around a word of ours, blanks mean nothing. An id or a name may begin with one.
    stripped = {name: known[name].strip() for name in ("id", "time", "action", "probability")}
    return Edit(**{**known, **stripped, "action": stripped["action"].lower()}, row=row)


def active_edits(edits: Sequence[Edit]) -> list[Edit]:
    """The edits that count: without those that were undone, and without the undoing.

    An ``undo`` that is itself undone does not count either, so what it undid counts again.
    """
    undone: set[str] = set()
    counted: list[Edit] = []
    for edit in reversed(edits):
        if edit.id and edit.id in undone:
            continue
        if edit.action == "undo":
            undone.add(edit.subject.strip())
        else:
            counted.append(edit)
    return counted[::-1]


def check_cells(edit: Edit) -> None:
    """Refuse characters that a text file cannot hold."""
    for name in COLUMNS:
        text = getattr(edit, name)
        bad = [letter for letter in text if letter == "\0" or "\ud800" <= letter <= "\udfff"]
        if bad:
            raise InputError(f"The {name} has the character {bad[0]!r}. Leave it out.")


def add_edit(folder: Path, edit: Edit) -> Edit:
    """Add a decision to the file of a run; it is on the disk when this returns.

    Parameters
    ----------
    folder : Path
        The run folder.
    edit : Edit
        The decision. Without an id or a time it gets them.

    Returns
    -------
    Edit
        As it was written.

    Raises
    ------
    InputError
        If it has characters that a text file cannot hold.
    """
    check_cells(edit)
    path = Path(folder) / EDITS
    with disk_errors(path.parent), _locked(path) as file:
        edits = read_edits(path.parent)
        numbers = [int(n) for e in edits if (n := e.id[1:]).isdecimal() and len(n) < 19]
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        written = Edit(
            **{name: getattr(edit, name) for name in COLUMNS if name not in ("id", "time")},
            id=edit.id or f"e{max(numbers, default=0) + 1}",
            time=edit.time or now,
            row=max((e.row for e in edits), default=1) + 1,
        )
        _append(path, file, written)
    return written


def _append(path: Path, file: IO[bytes], edit: Edit) -> None:
    """Write one more row in the manner of the file."""
    text = path.read_text(encoding="utf-8-sig")
    table = _parse(path) if text.strip() else []
    header = _header(table[0], path) if table else list(COLUMNS)
    separator = _separator(text) if table else ","
    if set(COLUMNS) - set(header):
        # A person left out columns. Rows stay as they are, and the header gets the missing ones.
        header += [name for name in COLUMNS if name not in header]
        write_atomically(path, _lines([header, *table[1:], _cells(edit, header)], separator))
        return
    start = b"" if not text or text.endswith("\n") else b"\n"
    if not table:
        start = _lines([header], separator)
    file.write(start + _lines([_cells(edit, header)], separator))
    file.flush()
    os.fsync(file.fileno())


def _cells(edit: Edit, header: Sequence[str]) -> list[str]:
    return [escape_formula(getattr(edit, name)) if name in COLUMNS else "" for name in header]


def _lines(rows: Sequence[Sequence[str]], separator: str) -> bytes:
    r"""Rows of a CSV. The csv module does not quote a lone \\r if lines end with \\n."""
    special = {separator, '"', "\r", "\n"}

    def quoted(cell: str) -> str:
        return '"' + cell.replace('"', '""') + '"' if special & set(cell) else cell

    return "".join(separator.join(map(quoted, row)) + "\n" for row in rows).encode()


def _parse(path: Path) -> list[list[str]]:
    """All cells of the file, the header first."""
    try:
        text = path.read_bytes().decode("utf-8-sig")  # Excel begins its files with a mark
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not in UTF-8. Save it as 'CSV UTF-8'.") from error
    try:
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=_separator(text)))
    except csv.Error as error:
        raise InputError(f"{path} cannot be read as a CSV ({error}).") from error


def _separator(text: str) -> str:
    header = text.lstrip().partition("\n")[0]
    return max(_SEPARATORS, key=header.count)


def _header(cells: Sequence[str], path: Path) -> list[str]:
    header = [cell.strip().lower() for cell in cells]
    missing = [name for name in ("action", "subject") if name not in header]
    if missing:
        raise InputError(
            f"{path} needs a header with the columns {','.join(COLUMNS)}; it begins with "
            f"{','.join(cells)!r}. Only action and subject must be there."
        )
    return header


@contextmanager
def _locked(path: Path) -> Iterator[IO[bytes]]:
    """The file, open to add to it; a second writer waits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        except (ImportError, OSError):  # Windows, or a file system without locks
            pass
        yield file
