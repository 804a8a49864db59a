"""Results files: one record a line, several files in a folder, several processes that add to them.

A record is one write at the end of the file, so a process that is killed loses that line at most,
and two processes do not write into each other's lines. A line that stops in the middle is left out
with a warning; anything else that is no record is refused, with its file and line.
"""

from __future__ import annotations

import json
import math
import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from newfound.bench.case import Case, Record
from newfound.errors import DiscoveryWarning, InputError
from newfound.files import disk_errors

#: Annotation of a field → types that its value may have in a file.
_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "int | None": (int, type(None)),
    "str | None": (str, type(None)),
    "Prototypes": (str,),
    "Case": (Case,),
    "list[int]": (list,),
    "dict[str, Any]": (dict,),
    "dict[str, str]": (dict,),
}
_FLOATS = frozenset(item.name for item in fields(Record) if item.type == "float")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


class Results:
    """The records of a folder, and the file in it that new ones are added to.

    Parameters
    ----------
    file : Path
        Where records are added; all ``*.jsonl`` files beside it are read.
    """

    def __init__(self, file: Path) -> None:
        self.file = Path(file)

    def read(self) -> list[Record]:
        """All records of the folder."""
        return read_records(self.file.parent)

    def find(self, case: Case, split: str, layout: str) -> Record | None:
        """The record of a case, if it was run.

        Parameters
        ----------
        case : Case
            What would be run.
        split, layout : str
            On which rows: checksum of the split, and how the data set is stored.

        Returns
        -------
        Record or None
            The newest record of this very case, whichever file it is in.
        """
        found = [
            record
            for record in self.read()
            if case_key(record.case) == case_key(case)
            and (record.split, record.layout) == (split, layout)
        ]
        return max(found, key=lambda record: record.date, default=None)

    def add(self, record: Record) -> None:
        """Add a record as a line of the file, which is made if need be.

        Parameters
        ----------
        record : Record
            What came out of a run.
        """
        with disk_errors(self.file.parent):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            _append(self.file, _to_line(record).encode("ascii"))


def case_key(case: Case, *, without: tuple[str, ...] = ()) -> str:
    """A text that two cases share if and only if they are the same run.

    Parameters
    ----------
    case : Case
        What is run.
    without : tuple of str
        Fields that may differ.
    """
    values = {name: value for name, value in case.as_dict().items() if name not in without}
    return json.dumps(values, sort_keys=True)


def read_records(folder: Path) -> list[Record]:
    """All records of the ``*.jsonl`` files of a folder, in the order of names and lines.

    Lines of the log of a training run, which tell of an epoch, are no records and are left out.

    Parameters
    ----------
    folder : Path
        Where results are; one that is not there holds none.

    Returns
    -------
    list of Record
        What was run.

    Raises
    ------
    InputError
        If a line is whole but no record.

    Warns
    -----
    DiscoveryWarning
        If a line was written in half.
    """
    return [record for file in sorted(Path(folder).glob("*.jsonl")) for record in _records_of(file)]


def _records_of(file: Path) -> Iterator[Record]:
    for number, raw in enumerate(file.read_bytes().split(b"\n"), start=1):
        where = f"{file}, line {number}"
        try:
            line = raw.decode("utf-8").strip()
            values = json.loads(line) if line else None
        except ValueError as error:
            if not _is_cut(raw):
                raise InputError(f"{where}: this is no line of a results file ({error}).") from (
                    error
                )
            message = f"{where}: a line that was written in half is left out; its run is to do."
            warnings.warn(message, DiscoveryWarning, stacklevel=3)
            continue
        if line and not _is_epoch(values):
            yield _to_record(values, where)


def _is_cut(raw: bytes) -> bool:
    """Whether a line stops before its brackets are closed, as after a kill."""
    rest = _STRING.sub("", raw.decode("utf-8", errors="replace")).strip()
    opened = sum(rest.count(bracket) for bracket in "{[")
    closed = sum(rest.count(bracket) for bracket in "}]")
    return rest.startswith("{") and ('"' in rest or opened > closed)


def _is_epoch(values: Any) -> bool:
    """Whether a line is of the log of a training run."""
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
            # type() and not isinstance(): true is no number of epochs
            if type(value) not in _TYPES[str(item.type)]:
                raise InputError(f"{where}: {item.name} is {item.type}; got {value!r}.")
    return record


def _to_line(record: Record) -> str:
    """One line of standard JSON; NaN, which it does not have, is null."""
    values = record.as_dict()
    for name in _FLOATS:
        values[name] = None if math.isnan(values[name]) else values[name]
    try:
        return json.dumps(values, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise InputError(f"A record cannot be written as JSON: {error}.") from error


def _append(file: Path, line: bytes) -> None:
    """One write at the end, on a line of its own, also where the last line was cut."""
    handle = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        size = os.lseek(handle, 0, os.SEEK_END)
        if size:
            os.lseek(handle, -1, os.SEEK_END)
            line = line if os.read(handle, 1) == b"\n" else b"\n" + line
        if (written := os.write(handle, line)) != len(line):
            raise InputError(
                f"Only {written} of {len(line)} bytes of a record went into {file}. Make room on "
                "the disk and run the same command again."
            )
        os.fsync(handle)
    finally:
        os.close(handle)
