"""A process that dies at any moment: the same command again gives the same result."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

MORE = int(os.environ.get("NEWFOUND_FAULTS", "1"))
#: Every n-th file operation is tried, `make faults` tries all of them (in a training every fourth).
STEPS = {"discover": 30, "update": 30, "train": 120}
N_MOMENTS = MORE


@pytest.mark.parametrize("command", ["discover", "update", *["train"] * (MORE > 1)])
def test_a_kill_at_any_moment_loses_nothing(tmp_path, command):
    tests = Path(__file__).parents[1]
    path = os.pathsep.join([str(tests), os.environ.get("PYTHONPATH", "")])
    step = max(1, STEPS[command] // MORE)
    script = Path(__file__).with_name("killing.py")
    done = subprocess.run(
        [sys.executable, script, tmp_path, command, str(step), str(N_MOMENTS)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    n_operations, n_at_operations, n_at_moments = map(int, done.stdout.split()[-3:])
    print(f"{command}: {n_operations} operations, killed {n_at_operations} + {n_at_moments} times")
    assert n_at_operations == len(range(1, n_operations + 1, step)) >= 2
    assert n_at_moments <= N_MOMENTS
