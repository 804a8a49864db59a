"""How compact classes and found categories are in finished features, before and after training.

    python studies/compactness.py cub FILE.npz ... --root data [--start START.npy]

The files are the outcomes of `newfound bench run` (WORK/outcomes), --start the features before
training (WORK/start-*.npy), all of the field's draw of labels. Prints the mean squared distance to
the mean of the class, or of the found category, as a share of the whole variance.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from newfound.bench.datasets import load_dataset
from newfound.bench.splits import make_split
from newfound.mixture.projection import unit_rows


def squared_distances(Z, groups):
    """Of each row to the mean of its group, as a share of the variance of all rows."""
    _, groups, counts = np.unique(groups, return_inverse=True, return_counts=True)
    sums = np.zeros((len(counts), Z.shape[1]))
    np.add.at(sums, groups, Z)
    within = np.square(Z - (sums / counts[:, None])[groups]).sum(axis=1)
    return within / np.square(Z - Z.mean(axis=0)).sum(axis=1).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--root", type=Path, default=Path("data"))
    parser.add_argument("--start", type=Path)
    given = parser.parse_args()
    split = make_split(load_dataset(given.dataset, given.root, incomplete=True))
    known, free = np.isin(split.truth, split.known), split.is_unlabelled
    parts = {"labelled": ~free, "known, unlabelled": free & known, "novel": free & ~known}
    found = [(file.stem, np.load(file)) for file in given.files]
    rows = [(name, one["features"], one["labels"]) for name, one in found]
    if given.start is not None:
        rows.insert(0, ("before training", np.load(given.start), None))
    for name, features, labels in rows:
        Z = unit_rows(features.astype(np.float64))
        for of, groups in (("true class", split.truth), ("found category", labels)):
            if groups is not None:
                shares = squared_distances(Z, groups)
                cells = (f"{part} {shares[mask].mean():.2f}" for part, mask in parts.items())
                print(f"{name}, {of}: " + ", ".join(cells))


if __name__ == "__main__":
    main()
