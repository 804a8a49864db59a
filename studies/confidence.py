"""How often confidences are right, before and after calibration on hidden known classes.

    python studies/confidence.py FILE.npz ... [--classes 24 16] [--rows 40] [--seeds 3]

``FILE.npz`` has ``X`` and ``Y``. For each seed, known and novel classes are drawn, half of the rows
of known classes are labelled, and the confidence of each unlabelled row is compared with the truth:
its category is right if the best one-to-one match of categories and classes says so. One line for
each file and kind: in each bin, the mean confidence and the share that is right, in %.
"""

import argparse
import warnings
from pathlib import Path

import measure  # noqa: F401  (fixes the threads before numpy loads)
import numpy as np
from scipy.optimize import linear_sum_assignment

from newfound import SplitMergeMixture
from newfound.mixture.counting.calibration import calibrate_confidence

EDGES = (0, 0.5, 0.8, 0.95, 1.0001)


def draw(X, classes, n_known, n_novel, n_rows, seed):
    """Features, classes numbered with the known ones first, and partial labels."""
    rng = np.random.default_rng([7, seed])
    chosen = rng.permutation(np.unique(classes))[: n_known + n_novel]
    rows = [rng.permutation(np.flatnonzero(classes == k))[:n_rows] for k in chosen]
    truth = np.repeat(np.arange(len(rows)), [len(part) for part in rows])
    y = np.where((truth < n_known) & (rng.random(len(truth)) < 0.5), truth, -1)
    return X[np.concatenate(rows)], truth, y


def is_right(labels, truth):
    """Whether each row is in the category that is matched with its class."""
    shared = np.zeros((labels.max() + 1, truth.max() + 1))
    np.add.at(shared, (labels, truth), 1)
    categories, classes = linear_sum_assignment(-shared)
    match = np.full(labels.max() + 1, -1)
    match[categories] = classes
    return match[labels] == truth


def bins_of(confidence, right):
    place = np.digitize(confidence, EDGES) - 1
    cells = []
    for i in range(len(EDGES) - 1):
        part = place == i
        text = f"{100 * confidence[part].mean():.1f} → {100 * right[part].mean():.1f}"
        cells.append(f"{text} ({part.sum()})" if part.any() else "–")
    return "   ".join(cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--classes", nargs=2, type=int, default=(24, 16))
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for file in options.files:
        with np.load(file, allow_pickle=False) as archive:
            X = archive["X"].astype(np.float32)
            names = archive["Y"] if "Y" in archive else archive["y"]
        classes = np.unique(names, return_inverse=True)[1]
        found = {"mixture": [], "calibrated": []}
        right = []
        for seed in range(options.seeds):
            part, truth, y = draw(X, classes, *options.classes, options.rows, seed)
            mixture = SplitMergeMixture(random_state=seed).fit(part, y)
            calibration = calibrate_confidence(mixture, part, y, random_state=seed)
            free = y == -1
            labels = mixture.labels_[free]
            raw = mixture.predict_proba(part[free])[np.arange(len(labels)), labels]
            found["mixture"].append(raw)
            found["calibrated"].append(calibration(raw))
            right.append(is_right(labels, truth[free]))
        right = np.concatenate(right)
        for kind, parts in found.items():
            print(f"{file.stem:30} {kind:10} {bins_of(np.concatenate(parts), right)}", flush=True)


if __name__ == "__main__":
    main()
