"""Results files: one record per line, to which several processes may add at the same time.

A record is one write at the end of the file. So a process that is killed loses at most one line,
and two processes never write into each other's lines. Reading skips a line that was cut off, with
a warning, and refuses any other line that is not a record, with its file and line number.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from newfound.bench.case import Case, case_key
from newfound.bench.record import Record
from newfound.deep.settings import HARDWARE
from newfound.errors import DiscoveryWarning, InputError
from newfound.files import disk_errors

#: Where results are written and read by default, and the name of the file in a folder.
RESULTS_FOLDER = Path("runs/bench")
RESULTS_NAME = "bench.jsonl"

#: Annotation of a field → types that its value may have in a file.
_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "int | None": (int, type(None)),
    "bool | None": (bool, type(None)),
    "KSource": (str,),
    "Clustering": (str,),
    "list[float] | None": (list, type(None)),
    "str | None": (str, type(None)),
    "PrototypeSource": (str,),
    "Case": (Case,),
    "list[int]": (list,),
    "dict[str, Any]": (dict,),
    "dict[str, str]": (dict,),
}
_FLOATS = frozenset(item.name for item in fields(Record) if item.type == "float")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def results_file(place: Path) -> Path:
    """The results file at a place.

    Parameters
    ----------
    place : Path
        A ``.jsonl`` file, or a folder, whose ``bench.jsonl`` is meant. Neither needs to exist. A
        folder may hold other logs beside it, which are not read.

    Raises
    ------
    InputError
        If there is a file where a folder is expected, or a folder where a file is.
    """
    place = Path(place)
    is_file = place.suffix == ".jsonl"
    if is_file and place.is_dir():
        raise InputError(f"{place} is a folder; expected a file, because its name ends in .jsonl.")
    for folder in (place, *place.parents) if not is_file else place.parents:
        if folder.is_file():
            raise InputError(f"{folder} is a file; expected a folder, or a .jsonl file.")
    return place if is_file else place / RESULTS_NAME


#: Settings that older records lack, with what was done before they existed.
_BEFORE: dict[str, Any] = {"known_rows": "labelled"}


class RowsId(NamedTuple):
    """Which rows a run has: checksum of classes and labels, order of rows, checksum of files."""

    split: str
    layout: str
    files: str


def deciding(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings that can change a result, without K, which is the case's.

    Parameters
    ----------
    settings : dict
        All settings, as in a record.
    """
    left_out = HARDWARE | {"n_components"}
    return _BEFORE | {name: value for name, value in settings.items() if name not in left_out}


class Results:
    """A results file, to look up records and to add new ones.

    Parameters
    ----------
    place : Path
        The file, or a folder with ``bench.jsonl``.
    """

    def __init__(self, place: Path) -> None:
        self.file = results_file(place)

    def read(self) -> list[Record]:
        """All records of the file."""
        return read_records(self.file)

    def find(self, case: Case, rows: RowsId, settings: dict[str, Any]) -> Record | None:
        """The record of a case, if it was run before.

        Parameters
        ----------
        case : Case
            What would be run.
        rows : RowsId
            Which rows it would have.
        settings : dict
            All settings that it would have. A line without settings is never a match: nobody
            knows what was run.

        Returns
        -------
        Record or None
            The newest record of exactly this case.
        """
        wanted = deciding(settings)
        found = [
            record
            for record in self.read()
            if case_key(record.case) == case_key(case)
            and RowsId(record.split, record.layout, record.files) == rows
            and deciding(record.settings) == wanted
        ]
        return max(found, key=lambda record: record.date, default=None)

    def add(self, record: Record, *, unless: RowsId | None = None) -> bool:
        """Add a record as a line of the file. File and folder are created if necessary.

        Parameters
        ----------
        record : Record
            The outcome of a run.
        unless : RowsId, optional
            Which rows it had: nothing is added if there is a record of the same case with these
            rows and settings, because another process was faster.

        Returns
        -------
        bool
            Whether it was added.
        """
        line = _to_line(record).encode("ascii")
        with disk_errors(self.file.parent):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with _opened_alone(self.file) as handle:
                if unless is not None and self.find(record.case, unless, record.settings):
                    return False
                _append(handle, line, self.file)
        return True


def read_records(place: Path) -> list[Record]:
    """All records at a place, in the order of the lines.

    Lines of the log of a training run, one per epoch, are not records and are skipped.

    Parameters
    ----------
    place : Path
        A ``.jsonl`` file; or a folder with ``bench.jsonl``, or whose folders have one each, which
        are read in the order of their names. A place that does not exist has no records.

    Returns
    -------
    list of Record
        What was run.

    Raises
    ------
    InputError
        If a complete line is not a record.

    Warns
    -----
    DiscoveryWarning
        If a line was cut off.
    """
    file = results_file(place)
    files = [file] if file.is_file() else sorted(Path(place).glob(f"*/{RESULTS_NAME}"))
    return [record for one in files for record in _records_of(one)]


def _records_of(file: Path) -> Iterator[Record]:
    for number, raw in enumerate(file.read_bytes().split(b"\n"), start=1):
        where = f"{file}, line {number}"
        try:
            line = raw.decode("utf-8").strip()
            values = json.loads(line) if line else None
        except ValueError as error:
            if not _is_cut(raw):
                raise InputError(
                    f"{where}: this is not a line of a results file ({error})."
                ) from error
            message = f"{where}: this line was cut off and is skipped; its run must be repeated."
            warnings.warn(message, DiscoveryWarning, stacklevel=3)
            continue
        if line and not _is_epoch(values):
            yield _to_record(values, where)


def _is_cut(raw: bytes) -> bool:
    """Whether a line ends before its brackets are closed, as after a kill."""
    rest = _STRING.sub("", raw.decode("utf-8", errors="replace")).strip()
    opened = sum(rest.count(bracket) for bracket in "{[")
    closed = sum(rest.count(bracket) for bracket in "}]")
    return rest.startswith("{") and ('"' in rest or opened > closed)


def _is_epoch(values: Any) -> bool:
    """Whether a line comes from the log of a training run."""
    return isinstance(values, dict) and "epoch" in values and "method" not in values


def _to_record(values: Any, where: str) -> Record:
    if not isinstance(values, dict):
        raise InputError(f"{where}: a record is an object in braces; got {values!r}.")
    empty = {name for name in _FLOATS if values.get(name, 0.0) is None}
    try:
        record = Record.from_dict(values | dict.fromkeys(empty, math.nan))
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    for part in (record, record.case):
        for item in fields(part):
            value = getattr(part, item.name)
            # type() and not isinstance(): `true` must not pass as a number of epochs
            if type(value) not in _TYPES[str(item.type)]:
                raise InputError(f"{where}: {item.name} must be {item.type}; got {value!r}.")
    return record


def _to_line(record: Record) -> str:
    """One line of standard JSON. NaN, which the standard lacks, is written as null."""
    values = record.as_dict()
    for name in _FLOATS:
        values[name] = None if math.isnan(values[name]) else values[name]
    try:
        return json.dumps(values, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise InputError(f"A record cannot be written as JSON: {error}.") from error


@contextlib.contextmanager
def _opened_alone(file: Path) -> Iterator[int]:
    """Open a file to add to it; another process that wants to add waits until it is closed."""
    handle = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        # Windows and some network drives have no such locks: there, a record may appear twice.
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)


def _append(handle: int, line: bytes, file: Path) -> None:
    """Write a line at the end with one call; after a line that was cut off, start a new one."""
    size = os.lseek(handle, 0, os.SEEK_END)
    if size:
        os.lseek(handle, -1, os.SEEK_END)
        line = line if os.read(handle, 1) == b"\n" else b"\n" + line
    if (written := os.write(handle, line)) != len(line):
        raise InputError(
            f"Only {written} of {len(line)} bytes of a record were written to {file}. Free "
            "some disk space and run the same command again."
        )
    # a result may have taken days: it should survive a crash of the machine
    os.fsync(handle)
