"""Draws in several processes."""

import subprocess
import sys

_LONG_DRAWS = """
import time
from newfound.mixture.counting.draws import run_draws

def draw(rows, seed):
    print("drawing", flush=True)
    time.sleep(300)

run_draws(draw, [None], [1, 2], 2, None)
"""


def test_the_processes_of_a_killed_run_end_with_it():
    """They computed on for minutes after a kill -9."""
    command = [sys.executable, "-c", _LONG_DRAWS]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert run.stdout.readline() == b"drawing\n"
    run.kill()
    run.wait()
    # standard output ends when the last process that has it is gone
    run.communicate(timeout=60)
