"""The gain from expected sizes of categories, and where nothing is expected.

    python studies/sizes.py FILE.npz … --out sizes.jsonl

Half of the classes are known. Their labels are drawn at random, or each class gets a fixed number
of labels. Classes have their own sizes, or are cut to between a tenth and all of their rows. K is
unknown.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np

from newfound import SplitMergeMixture
from newfound.errors import DiscoveryWarning
from newfound.metrics import discovery_scores

N_ROWS, QUOTA, SMALLEST = 8000, 8, 12


def some_rows(file):
    """Features and classes; a random part of a large set."""
    with np.load(file) as arrays:
        X, truth = arrays["X"].astype(np.float32), arrays["Y"]
    rows = np.random.default_rng(9).permutation(len(X))[:N_ROWS]
    return (X[rows], truth[rows]) if len(X) > N_ROWS else (X, truth)


def make_case(X, truth, permutation, *, tail, quota):
    """Features, classes and partial labels of one case."""
    rng = np.random.default_rng(permutation)
    n_classes = int(truth.max()) + 1
    if tail:
        kept = []
        for code in range(n_classes):
            own = rng.permutation(np.flatnonzero(truth == code))
            kept.append(own[: max(SMALLEST, int(len(own) * 10 ** -rng.random()))])
        rows = np.concatenate(kept)
        X, truth = X[rows], truth[rows]
    known = rng.permutation(n_classes)[: n_classes // 2]
    y = np.full(len(truth), -1)
    if quota:
        for code in known:
            own = rng.permutation(np.flatnonzero(truth == code))
            y[own[: min(QUOTA, len(own) // 2)]] = code
    else:
        rows = np.flatnonzero(np.isin(truth, known))
        chosen = np.random.RandomState(0).choice(rows, len(rows) // 2, replace=False)
        y[chosen] = truth[chosen]
    return X, truth, y


def scores(X, truth, y, sizes):
    """All, Old and New in %, K^n, and whether sizes were expected."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscoveryWarning)
        mixture = SplitMergeMixture(n_init=2, random_state=0, sizes=sizes).fit(X, y)
    free = y == -1
    found = discovery_scores(truth[free], mixture.labels_[free], np.unique(y[~free]))
    percent = [round(100 * share, 1) for share in (found.all, found.old, found.new)]
    return percent, mixture.n_novel_, bool(mixture.offsets_.any())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("features", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args()
    for file in given.features:
        X, truth = some_rows(file)
        for quota in (False, True):
            for tail in (False, True):
                for permutation in range(3):
                    case = make_case(X, truth, permutation, tail=tail, quota=quota)
                    without, n_novel, _ = scores(*case, None)
                    by_default, _, expected = scores(*case, "unknown")
                    line = json.dumps(
                        {
                            "features": file.stem,
                            "labels": "quota" if quota else "drawn",
                            "tail": tail,
                            "permutation": permutation,
                            "n_novel": n_novel,
                            "without": without,
                            "by_default": by_default,
                            "expected": expected,
                        }
                    )
                    print(line, flush=True)
                    if given.out is not None:
                        with given.out.open("a", encoding="utf-8") as lines:
                            lines.write(line + "\n")


if __name__ == "__main__":
    main()
