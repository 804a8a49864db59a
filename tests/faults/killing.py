"""Kill a command again and again, run it once more each time, and compare with a run in peace.

python killing.py FOLDER COMMAND STEP N_MOMENTS

Each trial is a fork, so that only one process imports everything. The command dies at every
STEP-th file operation (a file opened, renamed, removed or made, or an fsync) and at N_MOMENTS
random moments. It prints the number of file operations and the numbers of both kinds of kills.
"""

import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import matplotlib.pyplot  # noqa: F401  (here what a training imports, so that not each trial does)
import numpy as np
import torch.utils.tensorboard  # noqa: F401
from samples import SMALL_TRAINING, Blobs, Digits

import newfound.deep.images.cache
import newfound.deep.network.vision
import newfound.deep.trainer  # noqa: F401
from newfound.deep.settings import Settings
from newfound.result.store import read_result
from newfound.workflows import fitting
from newfound.workflows.discover import discover
from newfound.workflows.train import train
from newfound.workflows.update import update

fitting.N_DRAWS_OF_MOST_ROWS = fitting.N_CHECKS = 1
EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "fsync"}


def job(base, command, run):
    if command == "discover":
        return discover(Blobs.without(8), out=run, n_categories=8)  # quick: nothing is counted
    if command == "train":
        return train(base / "pictures", base / "labels.csv", Settings(**SMALL_TRAINING), run)
    return update(run, Blobs.without(8))[0]


def prepare(base, command):
    """Write what the command starts from."""
    if command == "train":
        Digits.write(base / "pictures", range(60))
        Digits.write_labels(base / "labels.csv", range(60))
    if command == "update":
        old = Blobs.without(8)
        few = old.take(np.arange(0, len(old), 2))
        assert forked(lambda: discover(few, out=base / "old", rehearse=False)) == 0


def new_run(base, command, name):
    if command == "update":
        shutil.copytree(base / "old", base / name)
    return base / name


def forked(work, seconds=None):
    """Exit code of a process that works, killed after some seconds if they are given."""
    process = os.fork()
    if process == 0:
        work()
        os._exit(0)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(process, signal.SIGKILL)  # it may have ended: a zombie takes the signal, too
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def die_at(run, limit, work):
    """Do the work, dying at a file operation; return how many there were."""
    n, fsync = 0, os.fsync

    def hook(event, arguments):
        nonlocal n
        if event in EVENTS and (event == "fsync" or str(run) in str(arguments[0])):
            n += 1
            if n == limit:
                os.kill(os.getpid(), signal.SIGKILL)

    def watched(handle):  # fsync has no audit event of its own
        hook("fsync", ())
        return fsync(handle)

    os.fsync = watched
    sys.addaudithook(hook)
    work()
    return n


def content(run):
    result = read_result(run)
    return result.table.to_csv(), result.categories.to_csv(), result.features.tobytes()


def main(base, command, step, n_moments):
    prepare(base, command)
    whole = new_run(base, command, "whole")
    note = base / "n"
    begun = time.perf_counter()
    code = forked(lambda: note.write_text(str(die_at(whole, 0, lambda: job(base, command, whole)))))
    assert code == 0
    seconds, n_operations = time.perf_counter() - begun, int(note.read_text())
    expected = content(whole)

    def resumed(kill, when):
        run = new_run(base, command, "run")
        is_killed = kill(run) == -signal.SIGKILL
        assert forked(lambda: job(base, command, run)) == 0, f"not resumed after {when}"
        assert content(run) == expected, f"another result after {when}"
        left = [file.name for file in run.rglob("*") if file.name.endswith((".part", ".next"))]
        assert not left, f"{left} left after {when}"
        shutil.rmtree(run)
        return is_killed

    def at_operation(limit):
        return lambda run: forked(lambda: die_at(run, limit, lambda: job(base, command, run)))

    def at_moment(moment):
        return lambda run: forked(lambda: job(base, command, run), moment)

    limits = range(1, n_operations + 1, step)
    moments = [random.Random(i).random() * seconds for i in range(n_moments)]
    n_at_operations = sum(resumed(at_operation(one), f"operation {one}") for one in limits)
    n_at_moments = sum(resumed(at_moment(one), f"{one:.3f} s") for one in moments)
    print(n_operations, n_at_operations, n_at_moments)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
