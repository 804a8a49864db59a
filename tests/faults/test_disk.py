"""A full or read-only disk, and two commands at once: one clear line, and nothing is lost."""

import errno
import os
import re

import pytest
from samples import Blobs

from newfound.errors import InputError
from newfound.own_folder import locked
from newfound.result.store import read_result
from newfound.workflows.discover import discover
from newfound.workflows.update import update


@pytest.fixture(scope="module")
def few():
    return Blobs.take(range(0, 240, 3))


def find(few, out):
    return discover(few, out=out, n_categories=9, rehearse=False)


MESSAGES = {
    errno.ENOSPC: "is full. Make room and run the same command again",
    errno.EDQUOT: "is full. Make room and run the same command again",
    errno.EROFS: "cannot be written to (Read-only file system). Choose another folder",
    errno.EACCES: "cannot be written to (Permission denied). Choose another folder",
}


@pytest.mark.parametrize("number", MESSAGES, ids=errno.errorcode.get)
@pytest.mark.parametrize("name", ["fsync", "replace", "mkdir"])
def test_a_disk_that_fails_is_named_and_the_same_command_goes_on(
    few, tmp_path, monkeypatch, number, name
):
    out = tmp_path / "run"
    calls, real = [], getattr(os, name)

    def fail(*arguments, **options):
        calls.append(arguments)
        if len(calls) >= 2:
            raise OSError(number, os.strerror(number))
        return real(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, name, fail)
        with pytest.raises(InputError, match=re.escape(MESSAGES[number])):
            find(few, out)
    assert not (out / "run.json").exists()
    found = find(few, out)
    assert read_result(out).table.equals(found.table)


def test_two_commands_do_not_share_a_folder(few, tmp_path):
    out = tmp_path / "run"
    before = find(few, out)
    with locked(out):
        for job in (
            lambda: discover(few, out=out, n_categories=9, rehearse=False, overwrite=True),
            lambda: update(out, Blobs.take(range(60))),
        ):
            with pytest.raises(InputError, match=f"in use by process {os.getpid()}"):
                job()
    assert read_result(out).table.equals(before.table)
