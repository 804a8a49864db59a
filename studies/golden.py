"""Check that labels are the same as in an earlier commit, row by row.

A redesign must not change a single label. This script runs the commands of a user on fixed data
and compares the category of every item with a stored copy, ``golden/*.csv``. It uses only
the command line, so the same script runs on any commit:

    python studies/golden.py check [FEATURES ...]       # differences from the stored copies
    python studies/golden.py write [FEATURES ...]       # after an intended change

``FEATURES`` are further .npz files with ``X`` and ``Y``, such as ``imagenet50_moco.npz``. The
digits features, the demo and a short training need no file. It runs on one thread, so that the
order of sums does not change.
"""

import argparse
import csv
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np
from sklearn.datasets import load_digits

STORE = Path(__file__).parent / "golden"
#: Settings of a training of a few seconds on the demo's pictures.
SHORT_TRAINING = (
    *("--model", "test_resnet", "--weights", "random", "--image-size", "12", "--epochs", "6"),
    *("--no-flip", "--n-labelled-per-batch", "32", "--n-unlabelled-per-batch", "96"),
    *("--n-directions", "32", "--warmup-epochs", "3", "--moves-every", "2"),
    *("--selection", "validation"),
)


def newfound(*arguments):
    """Run a command as a user does."""
    subprocess.run([sys.executable, "-m", "newfound", *map(str, arguments)], check=True)


def features_with_labels(X, classes, path, n_rows):
    """Write features with half of the first half of the classes labelled, at most `n_rows`."""
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(len(X))[:n_rows])
    X, classes = np.asarray(X[rows], dtype=np.float32), np.asarray(classes[rows], dtype=np.int64)
    n_known = (classes.max() + 1) // 2
    y = np.where((classes < n_known) & (rng.random(len(rows)) < 0.5), classes, -1)
    np.savez(path, X=X, y=y)


def categories_of(run):
    """Category of each item by its id, or by its path in older runs without ids."""
    with open(run / "assignments.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {row.get("id", row["path"]): row["category"] for row in rows}


def found_in(work, feature_files):
    """Name → the categories that the current code finds."""
    digits = load_digits()
    features_with_labels(digits.data, digits.target, work / "digits.npz", 2000)
    for file in feature_files:
        with np.load(file, allow_pickle=False) as archive:
            features_with_labels(archive["X"], archive["Y"], work / f"{file.stem}.npz", 5000)
    found = {}
    for file in sorted(work.glob("*.npz")):
        newfound("discover", file, "--out", work / file.stem)
        found[file.stem] = categories_of(work / file.stem)
    newfound("demo", "--out", work / "demo")
    found["demo"] = categories_of(work / "demo" / "run-0-80")
    pictures, labels = work / "demo" / "pictures", work / "demo" / "labels-0.csv"
    newfound("train", pictures, "--labels", labels, "--out", work / "train", *SHORT_TRAINING)
    found["train"] = categories_of(work / "train")
    return found


def digest(categories):
    lines = "".join(f"{name},{categories[name]}\n" for name in sorted(categories))
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return dict(csv.reader(file))


def write(path, categories):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(sorted(categories.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["check", "write"])
    parser.add_argument("features", nargs="*", type=Path)
    parser.add_argument("--store", type=Path, default=STORE)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = found_in(Path(folder), options.features)
    n_different = 0
    for name, categories in found.items():
        path = options.store / f"{name}.csv"
        if options.what == "write":
            options.store.mkdir(exist_ok=True)
            write(path, categories)
            print(f"{name}: {len(categories)} items, digest {digest(categories)}")
            continue
        before = read(path)
        differ = [
            item for item in {**before, **categories} if before.get(item) != categories.get(item)
        ]
        n_different += len(differ)
        digests = f"{digest(before)} before, {digest(categories)} now"
        print(f"{name}: digest {digests}, {len(differ)} items differ")
    sys.exit(n_different > 0)


if __name__ == "__main__":
    main()
