"""A process that dies at any file operation: the same command again gives the same result."""

import os
import subprocess
import sys

import pytest

#: Every n-th file operation is tried; `make faults` tries all of them.
STEP = max(1, 30 // int(os.environ.get("NEWFOUND_FAULTS", "1")))

#: Each trial is a fork, so that only one process imports everything. The audit hook sees every
#: file that is opened, renamed, removed or made; `os.fsync` has no event of its own.
_TRIALS = """
import os, shutil, sys
from pathlib import Path
import numpy as np
from samples import Blobs
from newfound.result.store import read_result
from newfound.workflows import fitting
from newfound.workflows.discover import discover
from newfound.workflows.update import update

fitting.N_DRAWS_OF_MOST_ROWS = fitting.N_CHECKS = 1
base, command, step = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "fsync"}

def job(run):
    if command == "discover":
        return discover(Blobs.without(8), out=run, n_categories=8)  # quick: nothing is counted
    return update(run, Blobs.without(8))[0]

def prepared(name):
    run = base / name
    if command == "update":
        shutil.copytree(base / "old", run)
    return run

def forked(work):
    process = os.fork()
    if process == 0:
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

def counted(run, limit):
    n, fsync = 0, os.fsync
    def hook(event, arguments):
        nonlocal n
        if event in EVENTS and (event == "fsync" or str(run) in str(arguments[0])):
            n += 1
            if n == limit:
                os.kill(os.getpid(), 9)
    def watched(handle):
        hook("fsync", ())
        return fsync(handle)
    os.fsync = watched
    sys.addaudithook(hook)
    job(run)
    (base / "n").write_text(str(n))

def content(run):
    result = read_result(run)
    return result.table.to_csv(), result.categories.to_csv(), result.features.tobytes()

if command == "update":
    old = Blobs.without(8)
    few = old.take(np.arange(0, len(old), 2))
    assert forked(lambda: discover(few, out=base / "old", rehearse=False)) == 0
whole = prepared("whole")
assert forked(lambda: counted(whole, 0)) == 0
expected, n_all, n_killed = content(whole), int((base / "n").read_text()), 0
for limit in range(1, n_all + 1, step):
    run = prepared(f"run{limit}")
    n_killed += forked(lambda: counted(run, limit)) == -9
    assert forked(lambda: job(run)) == 0, f"not resumed after operation {limit}"
    assert content(run) == expected, f"another result after operation {limit}"
    left = [path.name for path in run.rglob("*") if path.suffix == ".part" or path.name == ".next"]
    assert not left, f"{left} left after operation {limit}"
    shutil.rmtree(run)
print(n_all, n_killed)
"""


@pytest.mark.parametrize("command", ["discover", "update"])
def test_a_kill_at_any_file_operation_loses_nothing(tmp_path, command):
    tests = os.path.dirname(os.path.dirname(__file__))
    path = os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", _TRIALS, tmp_path, command, str(STEP)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    n_operations, n_killed = map(int, done.stdout.split())
    assert n_killed == len(range(1, n_operations + 1, STEP)) >= 3
