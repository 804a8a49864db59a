"""Shared by the studies of speed and memory: data, CPU seconds, peak memory."""

import os
import subprocess
import sys
import time
from pathlib import Path

# one thread for us and for the peers; this must be set before numpy is loaded
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np


def load_features(path, n_rows=50_000, d=128):
    """Features and classes from an .npz file with X and Y, or 100 synthetic classes."""
    if path is not None:
        with np.load(Path(path), allow_pickle=False) as archive:
            return archive["X"].astype(np.float32), archive["Y"].astype(np.int64)
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 100, n_rows)
    centres = rng.normal(size=(100, d))
    X = centres[classes] + 1.5 * rng.normal(size=(n_rows, d))
    return X.astype(np.float32), classes


def partial_labels(classes, n_known=80, rate=0.5, seed=0):
    """Labels for half of the rows of the first classes, and -1 for all other rows."""
    rng = np.random.default_rng(seed)
    return np.where((classes < n_known) & (rng.random(len(classes)) < rate), classes, -1)


def cpu_seconds(function):
    """CPU seconds of a call, and its result."""
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def peak_extra_mebibytes(code):
    """Peak memory that `code` allocates after it calls ready(), in its own process."""
    prelude = "import tracemalloc\nready = tracemalloc.start\n"
    report = "\nprint(tracemalloc.get_traced_memory()[1] / 2**20)"
    done = subprocess.run(
        [sys.executable, "-c", prelude + code + report], capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[-1])


def print_table(title, rows):
    """Print rows of (what, measured, goal) under a title."""
    widths = [max(len(str(row[i])) for row in rows) for i in range(3)]
    print(f"\n{title}")
    for row in rows:
        print(
            "  "
            + "  ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True))
        )
    sys.stdout.flush()
