"""Time of a row of a table on finished features, and of GCD's k-means with 100 starts.

python studies/table.py [--features FILE.npz]   (X and y; synthetic features without it)
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

METHODS = "kmeans,gcd,gpc-literal,gpc"


def synthetic(path):
    """Write 200 synthetic classes with as many rows as CUB."""
    rng = np.random.default_rng(0)
    classes = np.arange(5994) % 200
    X = rng.normal(size=(200, 768))[classes] + 2 * rng.normal(size=(5994, 768))
    np.savez(path, X=X.astype(np.float32), y=classes)
    return path


def wall_seconds(command, threads):
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    started = time.perf_counter()
    subprocess.run(command, check=True, env=environment)
    return time.perf_counter() - started


def field_start(X, n_known, n_clusters, n_slice=40):
    """Seconds of k-means++ for one start as in the field's code, scaled up from a slice.

    For each new centre it computes the distances to all centres again, by broadcast differences.
    """
    rows, centres = X[:n_slice], X[:n_known]
    started = time.process_time()
    while len(centres) < n_clusters:
        nearest = ((rows[:, None, :] - centres[None, :, :]) ** 2).sum(axis=-1).min(axis=1)
        centres = np.vstack([centres, rows[nearest.argmax()]])
    return (time.process_time() - started) * len(X) / n_slice


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        features = arguments.features or synthetic(folder / "synthetic.npz")
        bench = [sys.executable, "-m", "newfound", "bench", "run"]
        where = ["--work", str(folder / "w"), "--results", str(folder / "r" / "r.jsonl")]
        starts = wall_seconds(
            [*bench, "gcd", str(features), "--k", "known", "--seed", "9", *where],
            arguments.threads,
        )
        seeds = ["--seed", "0", "--seed", "1", "--seed", "2"]
        row = wall_seconds(
            [*bench, METHODS, str(features), "--k", "known", *seeds, *where], arguments.threads
        )
        with np.load(features, allow_pickle=False) as archive:
            X, y = archive["X"].astype(np.float32), archive["y"]
    n_classes = len(np.unique(y))
    field = 100 * field_start(X, n_classes // 2, n_classes)
    size = f"{X.shape[0]:,} x {X.shape[1]}, K = {n_classes}, {arguments.threads} threads"
    print(f"\n{size}")
    print(f"  GCD's k-means, 100 starts     {starts:.0f} s   (goal: under 300)")
    print(f"  the field's seeding alone     {field:.0f} s, extrapolated: {field / starts:.0f} x")
    print(f"  {METHODS}, 3 seeds, K known: {row:.0f} s   (goal: under 300)")


if __name__ == "__main__":
    main()
