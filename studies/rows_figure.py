"""Figure of All for every method on each data set, with K known and unknown.

python studies/rows_figure.py results/bench.jsonl docs/results/rows.png
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt

METHODS = {
    "kmeans": "k-means",
    "rankstats": "RankStats+",
    "uno": "UNO+",
    "orca": "ORCA",
    "gcd": "GCD",
    "simgcd": "SimGCD",
    "gpc-literal": "GPC, literal",
    "gpc": "GPC, ours",
}
DATASETS = {"cub": "CUB", "cifar100": "CIFAR-100", "cars": "Stanford Cars"}


def longest(records):
    """Scores of the runs with most epochs, then most seeds, by method and `known_k`."""
    groups = defaultdict(list)
    for record in records:
        setting = record["setting"]
        if setting["k_init"] is None:
            changes = json.dumps(setting["changes"], sort_keys=True)
            key = (record["method"], setting["known_k"], setting["epochs"], changes)
            groups[key].append(record["all"])
    best = {}
    ranked = sorted(groups.items(), key=lambda item: (item[0][2], len(item[1])))
    for (method, known, _, _), scores in ranked:
        best[method, known] = scores
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("picture", type=Path)
    given = parser.parse_args()
    records = [json.loads(line) for line in given.results.read_text().splitlines()]
    figure, axes = plt.subplots(1, len(DATASETS), figsize=(11, 3.4), sharey=True)
    places = {name: len(METHODS) - i for i, name in enumerate(METHODS)}
    for axis, (dataset, title) in zip(axes, DATASETS.items(), strict=True):
        scores = longest([r for r in records if r["dataset"] == dataset])
        for (method, known), values in scores.items():
            if method not in places:
                continue
            colour = "tab:red" if method == "gpc" else "tab:blue"
            inside = "white" if known else colour
            shift = 0.15 if known else -0.15
            axis.plot(
                np.mean(values), places[method] + shift, "o", color=colour, markerfacecolor=inside
            )
            axis.plot(values, [places[method] + shift] * len(values), "|", color=colour)
        axis.set_title(title)
        axis.set_xlabel("All, %")
        axis.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(list(places.values()), list(METHODS.values()))
    axes[0].plot([], [], "o", color="grey", markerfacecolor="white", label="K known")
    axes[0].plot([], [], "o", color="grey", label="K unknown")
    axes[0].legend(loc="upper right", fontsize=8)
    figure.tight_layout()
    figure.savefig(given.picture, dpi=120)


if __name__ == "__main__":
    main()
