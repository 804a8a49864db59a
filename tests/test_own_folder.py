"""Links, pipes and second names in folders that newfound writes to."""

import os
import subprocess
import sys

import pytest

from newfound.errors import InputError
from newfound.files import read_json, write_atomically, write_json
from newfound.own_folder import check_own, locked, open_own
from newfound.result.run_folder import check_run, open_run, reopen_run, staged


@pytest.fixture
def victim(tmp_path):
    """A folder with a file that must stay as it is."""
    (tmp_path / "victim" / "deep").mkdir(parents=True)
    (tmp_path / "victim" / "precious").write_text("content")
    write_json(tmp_path / "victim" / "run.json", {"mine": True})
    return tmp_path / "victim"


@pytest.fixture
def run(tmp_path):
    """A finished run."""
    with open_run(tmp_path / "run", command="discover", data="d") as folder:
        write_json(folder / "run.json", {"version": "0.2.0"})
    return tmp_path / "run"


def stage(folder):
    with staged(folder) as place:
        write_atomically(place / "model" / "a", b"new")
        write_json(place / "run.json", {"version": "0.2.0"})


def opened(folder):
    with open_run(folder, command="discover", data="d"):
        pass


def reopened(folder):
    with reopen_run(folder):
        pass


@pytest.mark.parametrize("use", [opened, reopened, check_run, stage])
@pytest.mark.parametrize(
    ("name", "target"),
    [(".lock", "precious"), (".next", ""), ("model", ""), ("cache", "deep"), ("new", "nowhere")],
)
def test_a_link_in_a_run_folder_is_refused_and_its_target_stays(run, victim, use, name, target):
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(victim / target)
    with pytest.raises(InputError, match=rf"{name} is a link.*choose another folder"):
        use(run)
    assert (victim / "precious").read_text() == "content"
    assert read_json(victim / "run.json") == {"mine": True}
    assert sorted(os.listdir(victim)) == ["deep", "precious", "run.json"]


def test_a_pipe_is_not_waited_for(run):
    os.mkfifo(run / "assignments.parquet")
    with pytest.raises(InputError, match=r"assignments\.parquet is not a file"):
        check_run(run)


def test_the_path_to_a_run_folder_may_be_a_link(run, tmp_path):
    (tmp_path / "link").symlink_to(run)
    check_run(tmp_path / "link")
    opened(tmp_path / "link")
    check_own(tmp_path / "link")


def test_a_second_name_of_the_lock_is_refused(run, victim):
    (run / ".lock").unlink()
    os.link(victim / "precious", run / ".lock")
    with pytest.raises(InputError, match="has a second name"):
        opened(run)
    assert (victim / "precious").read_text() == "content"


def test_a_file_that_becomes_a_link_is_not_opened(tmp_path, victim):
    (tmp_path / "file").symlink_to(victim / "precious")
    with pytest.raises(InputError, match="is a link"):
        open_own(tmp_path / "file", os.O_RDWR)


def test_a_link_in_place_of_a_part_is_not_followed(tmp_path, victim):
    (tmp_path / f".a.csv.{os.getpid()}.part").symlink_to(victim / "precious")
    write_atomically(tmp_path / "a.csv", b"new")
    assert (tmp_path / "a.csv").read_bytes() == b"new"
    assert not (tmp_path / "a.csv").is_symlink()
    assert (victim / "precious").read_text() == "content"


def test_parts_of_dead_processes_are_removed_and_those_of_living_ones_stay(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for process in (dead.pid, os.getppid()):
        (tmp_path / f".a.csv.{process}.part").touch()
    (tmp_path / f".b.csv.{dead.pid}.part").touch()
    write_atomically(tmp_path / "a.csv", b"new")
    left = {f".a.csv.{os.getppid()}.part", f".b.csv.{dead.pid}.part", "a.csv"}
    assert set(os.listdir(tmp_path)) == left


def test_a_missing_folder_holds_no_links(tmp_path):
    check_own(tmp_path / "missing")


def test_a_lock_is_free_again(tmp_path):
    for _ in range(2):
        with locked(tmp_path):
            pass
