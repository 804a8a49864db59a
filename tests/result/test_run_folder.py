"""Run folders: whole files, one process at a time, one run in a folder."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import newfound
from newfound.errors import InputError
from newfound.files import disk_errors, read_json, whole_file, write_atomically, write_json
from newfound.own_folder import locked
from newfound.result import run_folder
from newfound.result.run_folder import (
    check_run,
    finish_staged,
    is_finished,
    open_run,
    read_settled,
    record_start,
    reopen_run,
    staged,
)

HOLDER = """
import sys
from pathlib import Path
from newfound.result.run_folder import open_run
with open_run(Path(sys.argv[1]), command="discover", data="d"):
    print("held", flush=True)
    sys.stdin.read()
"""


def finish(folder, **values):
    """Write the end of a run."""
    write_json(folder / "run.json", {"version": newfound.__version__, **values})


def names(folder):
    return sorted(path.name for path in folder.rglob("*"))


# ------------------------------------------------------------------------------------- whole files


def test_a_file_is_written_with_the_folders_above_it(tmp_path):
    write_atomically(tmp_path / "a" / "b" / "file", b"content")
    assert (tmp_path / "a" / "b" / "file").read_bytes() == b"content"
    assert names(tmp_path / "a") == ["b", "file"]


@pytest.mark.parametrize("name", ["", ".", "..", "/"])
def test_a_folder_is_no_file(name):
    with pytest.raises(InputError, match=r"is a folder\. Give the name of a file"):
        write_atomically(Path(name), b"content")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_file_that_is_not_finished_leaves_the_old_one(tmp_path, error):
    write_atomically(tmp_path / "file", b"old")

    def write_half():
        with whole_file(tmp_path / "file") as file:
            file.write(b"half of the n")
            raise error

    with pytest.raises(error):
        write_half()
    assert (tmp_path / "file").read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_a_file_reaches_the_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(os, "fsync", lambda handle: seen.append(names(tmp_path)))
    write_atomically(tmp_path / "file", b"content")
    assert seen == [[f".file.{os.getpid()}.part"]]


def test_a_full_disk_is_told_in_words(tmp_path, monkeypatch):
    def fail(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(InputError, match=r"is full\. Make room and run the same command again"):
        write_atomically(tmp_path / "file", b"content")
    assert names(tmp_path) == []


def test_a_full_disk_is_told_in_words_when_numpy_notices_it():
    """The error has no number. `/dev/full` is a disk that is always full."""
    with Path("/dev/full").open("wb", buffering=0) as file:
        with pytest.raises(OSError, match="requested and 0 written"):
            np.zeros(1000).tofile(file)
        with pytest.raises(InputError, match="is full"), disk_errors(Path("run")):
            np.zeros(1000).tofile(file)


def test_another_error_of_the_system_passes(tmp_path, monkeypatch):
    def fail(handle):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output") as caught:
        write_atomically(tmp_path / "file", b"content")
    assert not isinstance(caught.value, InputError)


def test_numbers_that_json_does_not_know_are_refused(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "file.json", {"a": float("nan")})
    assert names(tmp_path) == []


def test_json_comes_back(tmp_path):
    write_json(tmp_path / "file.json", {"é": [1, None, 0.1]})
    assert read_json(tmp_path / "file.json") == {"é": [1, None, 0.1]}


def test_damaged_json_is_told_in_words(tmp_path):
    (tmp_path / "file.json").write_text('{"a": ')
    with pytest.raises(InputError, match=r"file\.json cannot be read"):
        read_json(tmp_path / "file.json")


# ---------------------------------------------------------------------------- results as a whole


def stage_result(folder, text):
    with staged(folder) as stage:
        write_atomically(stage / "a.csv", text.encode())
        write_atomically(stage / "model" / "b.bin", text.encode())
        finish(stage, text=text)


def result_in(folder):
    return (
        (folder / "a.csv").read_text(),
        (folder / "model" / "b.bin").read_text(),
        read_json(folder / "run.json")["text"],
    )


def test_a_stage_replaces_the_old_files_and_is_gone(tmp_path):
    stage_result(tmp_path, "old")
    (tmp_path / "mine.txt").touch()
    stage_result(tmp_path, "new")
    assert result_in(tmp_path) == ("new", "new", "new")
    assert names(tmp_path) == ["a.csv", "b.bin", "mine.txt", "model", "run.json"]


def test_a_stage_that_is_not_finished_leaves_the_old_files(tmp_path):
    stage_result(tmp_path, "old")

    def stage_half():
        with staged(tmp_path) as stage:
            write_atomically(stage / "a.csv", b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stage_half()
    check_run(tmp_path)
    assert result_in(tmp_path) == ("old", "old", "old")
    stage_result(tmp_path, "newer")
    assert result_in(tmp_path) == ("newer", "newer", "newer")


@pytest.mark.parametrize("n_moved", [0, 1, 2])
def test_a_kill_among_the_moves_is_made_good(tmp_path, monkeypatch, n_moved):
    stage_result(tmp_path, "old")
    moves = []
    move = os.replace

    def move_some(source, target):
        if ".part" not in str(source):
            if len(moves) == n_moved:
                raise KeyboardInterrupt
            moves.append(target)
        move(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", move_some)
        with pytest.raises(KeyboardInterrupt):
            stage_result(tmp_path, "new")
    assert len(moves) == n_moved
    check_run(tmp_path)
    assert result_in(tmp_path) == ("new", "new", "new")


@pytest.mark.parametrize("n_moved", range(5))
def test_labels_of_all_rows_go_with_the_result(tmp_path, monkeypatch, n_moved):
    """Killed among the moves: the labels are those of the new result, and none of the old one's."""

    def stage_with_labels(text, n_parts):
        with staged(tmp_path) as stage:
            for part in range(n_parts):
                write_atomically(stage / "labels" / f"part-{part}", text.encode())
            write_atomically(stage / "a.csv", text.encode())
            finish(stage, text=text)

    stage_with_labels("old", 3)
    operations = []

    def counted(operation):
        def perform(*arguments):
            if ".part" not in str(arguments[0]):
                if len(operations) == n_moved:
                    raise KeyboardInterrupt
                operations.append(operation)
            operation(*arguments)

        return perform

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", counted(os.replace))
        patch.setattr(run_folder.shutil, "rmtree", counted(shutil.rmtree))
        with pytest.raises(KeyboardInterrupt):
            stage_with_labels("new", 2)
    check_run(tmp_path)
    assert read_json(tmp_path / "run.json")["text"] == "new"
    parts = {path.name: path.read_text() for path in (tmp_path / "labels").iterdir()}
    assert parts == {"part-0": "new", "part-1": "new"}


def complete_stage(folder, text):
    """Leave a complete stage, as a process that is killed before the moves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_folder, "finish_staged", lambda folder: None)
        stage_result(folder, text)


def test_readers_leave_the_stage_of_a_living_process_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(run_folder, "_LOOKS", 2)
    monkeypatch.setattr(run_folder, "_PAUSE", 0)
    stage_result(tmp_path, "old")
    complete_stage(tmp_path, "new")
    with locked(tmp_path):
        for read in (check_run, is_finished):
            with pytest.raises(InputError, match="in use"):
                read(tmp_path)
        assert result_in(tmp_path) == ("old", "old", "old")
    check_run(tmp_path)  # the process is gone
    assert result_in(tmp_path) == ("new", "new", "new")


def test_what_changes_while_it_is_read_is_read_again(tmp_path):
    stage_result(tmp_path, "old")
    seen = []

    def read():
        first = (tmp_path / "a.csv").read_text()
        if not seen:
            stage_result(tmp_path, "new")
        seen.append((first, (tmp_path / "model" / "b.bin").read_text()))
        if len(set(seen[-1])) > 1:
            raise InputError("the files do not belong together")
        return seen[-1]

    assert read_settled(tmp_path, read) == ("new", "new")
    assert seen == [("old", "new"), ("new", "new")]


def test_pages_about_an_earlier_result_go_with_it(tmp_path):
    stage_result(tmp_path, "old")
    for name in ("report.html", "changes.html"):
        (tmp_path / name).touch()
    stage_result(tmp_path, "new")
    assert names(tmp_path) == ["a.csv", "b.bin", "model", "run.json"]


def test_nothing_is_finished_where_nothing_is_staged(tmp_path):
    finish_staged(tmp_path)
    assert names(tmp_path) == []


# --------------------------------------------------------------------------------------- the lock


def test_a_folder_is_made_and_says_what_it_is_for(tmp_path):
    with open_run(tmp_path / "a" / "run", command="discover", data="d") as folder:
        assert folder == tmp_path / "a" / "run"
        assert read_json(folder / "started.json") == {
            "version": newfound.__version__,
            "command": "discover",
            "data": "d",
        }


def test_a_folder_in_use_is_refused(tmp_path):
    with open_run(tmp_path, command="discover", data="d"):
        with (
            pytest.raises(InputError, match=rf"in use by process {os.getpid()}\. Wait"),
            open_run(tmp_path, command="discover", data="d"),
        ):
            pass
        finish(tmp_path)
        with pytest.raises(InputError, match="in use"), reopen_run(tmp_path):
            pass


def test_a_process_keeps_others_out_until_it_is_killed(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(InputError, match=rf"in use by process {holder.pid}\b"),
            open_run(tmp_path, command="discover", data="d"),
        ):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert (tmp_path / ".lock").read_text() == str(holder.pid)  # stale
    with open_run(tmp_path, command="discover", data="d"):
        assert (tmp_path / ".lock").read_text() == str(os.getpid())


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_run_that_stops_can_go_on(tmp_path, error):

    def stop():
        with open_run(tmp_path, command="discover", data="d"):
            (tmp_path / "cache").mkdir()
            raise error

    with pytest.raises(error):
        stop()
    with open_run(tmp_path, command="discover", data="d"):
        assert (tmp_path / "cache").is_dir()


# ------------------------------------------------------------------------------- the wrong folder


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"command": "embed"}, "holds a run of `newfound embed`, not of `newfound discover`"),
        ({"data": "e"}, r"another collection\. Choose another folder.*`newfound update"),
        ({"version": "0.0.9"}, r"written by newfound 0\.0\.9; this is"),
        ({"version": "17.1.0"}, r"written by newfound 17\.1\.0; this is"),
    ],
)
def test_the_folder_of_another_run_is_refused(tmp_path, changes, message):
    start = {"version": newfound.__version__, "command": "discover", "data": "d", **changes}
    write_json(tmp_path / "started.json", start)
    with (
        pytest.raises(InputError, match=message),
        open_run(tmp_path, command="discover", data="d"),
    ):
        pass
    assert read_json(tmp_path / "started.json") == start


@pytest.mark.parametrize("version", ["0.1.0", "0.2.99"])
def test_versions_with_the_same_format_are_read_and_resumed(tmp_path, version):
    start = {"version": version, "command": "discover", "data": "d"}
    write_json(tmp_path / "started.json", start)
    finish(tmp_path, version=version)
    check_run(tmp_path)
    with open_run(tmp_path, command="discover", data="d"):
        pass


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "assignments.csv").write_text("mine")
    with (
        pytest.raises(InputError, match=r"not empty \(it holds assignments\.csv\)"),
        open_run(tmp_path, command="discover", data="d"),
    ):
        pass
    assert names(tmp_path) == [".lock", "assignments.csv"]


def test_files_of_the_system_do_no_harm(tmp_path):
    for name in (".DS_Store", "Thumbs.db", "desktop.ini"):
        (tmp_path / name).touch()
    with open_run(tmp_path, command="discover", data="d"):
        pass


def test_a_folder_that_cannot_be_made_is_told_in_words(tmp_path):
    (tmp_path / "file").touch()
    with (
        pytest.raises(InputError, match=r"cannot be written to .* Choose another folder"),
        open_run(tmp_path / "file" / "run", command="discover", data="d"),
    ):
        pass


def test_a_folder_without_write_permission_is_told_in_words(tmp_path, monkeypatch):
    def refuse(*args):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(run_folder.os, "open", refuse)
    with (
        pytest.raises(InputError, match=r"cannot be written to \(Permission denied\)"),
        open_run(tmp_path, command="discover", data="d"),
    ):
        pass


def test_a_folder_that_is_not_there_holds_no_run(tmp_path):
    with pytest.raises(InputError, match=r"There is no run folder .*none\. Check the path"):
        check_run(tmp_path / "none")


def test_any_other_folder_holds_no_run(tmp_path):
    with pytest.raises(InputError, match=r"no finished run.*`newfound discover` wrote to"):
        check_run(tmp_path)


def test_a_run_that_did_not_finish_is_told_how_to(tmp_path):
    record_start(tmp_path, command="discover", data="d")
    with pytest.raises(InputError, match=r"did not finish\. Run the same command again to"):
        check_run(tmp_path)
    with pytest.raises(InputError, match=r"did not finish"), reopen_run(tmp_path):
        pass


def test_a_finished_run_of_another_version_is_refused(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"version": "0.0.1"}))
    with pytest.raises(InputError, match=r"Install newfound==0\.0\.1 to read it"):
        check_run(tmp_path)


# --------------------------------------------------------------------------- what killed runs leave


def test_what_a_killed_process_left_is_removed(tmp_path):
    with open_run(tmp_path, command="train", data="d"):
        finish(tmp_path)
    dead, alive = tmp_path / "train" / ".epochs.jsonl.999999999.part", tmp_path / ".a.1.part"
    for part in (dead, alive, tmp_path / ".next" / "model" / "mixture.json"):
        write_atomically(part, b"half")
    assert is_finished(tmp_path)  # killed after run.json was moved: the rest of the stage goes
    assert not (tmp_path / ".next").exists()
    with open_run(tmp_path, command="train", data="d"):
        assert not dead.exists()
        assert alive.exists()  # of another process


def test_the_stage_of_a_process_that_works_is_left_alone(tmp_path):
    with open_run(tmp_path, command="discover", data="d"):
        finish(tmp_path)
        write_atomically(tmp_path / ".next" / "assignments.csv", b"half")
        assert is_finished(tmp_path)
        assert (tmp_path / ".next" / "assignments.csv").exists()
