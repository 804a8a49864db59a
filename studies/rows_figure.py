"""Figure of All for every method on each data set, with K given, counted, and found by the method.

python studies/rows_figure.py results/cub results/cars docs/results/equal.png
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import matplotlib
import numpy as np

from newfound.bench.methods import NAMES, find_method
from newfound.bench.protocol import own_k
from newfound.bench.results import read_records

matplotlib.use("Agg")
from matplotlib import pyplot as plt

TITLES = {"cub": "CUB", "cifar100": "CIFAR-100", "cars": "Stanford Cars"}
#: Name of a series: marker, filled or not, and how far it lies below the middle of its row.
SERIES = {
    "K given": ("o", False, 0.24),
    "K by our count": ("o", True, 0.08),
    "K by its own search": ("s", True, -0.08),
    "its features, our mixture, our count": ("^", False, -0.24),
}


def series_of(case):
    """Name of the series that a run belongs to; None if it is not shown."""
    if case.k_init is not None or case.without is not None or case.draw or case.hidden:
        return None
    if case.clustering == "mixture":
        return "its features, our mixture, our count" if case.k == "count" else None
    if case.k in ("known", "count"):
        return "K given" if case.k == "known" else "K by our count"
    return "K by its own search" if case.k == own_k(case) else None


def longest(records):
    """Scores by method and series: those of the runs with most epochs, then most seeds."""
    groups = defaultdict(lambda: defaultdict(list))
    for record in records:
        name = series_of(record.case)
        if name is not None:
            budget = record.case.epochs, str(sorted(record.case.changes.items()))
            groups[record.case.method, name][budget].append(record.all)
    return {
        key: max(runs.items(), key=lambda item: (item[0][0], len(item[1])))[1]
        for key, runs in groups.items()
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("picture", type=Path)
    given = parser.parse_args()
    records = [record for place in given.results for record in read_records(place)]
    datasets = [name for name in TITLES if any(r.case.dataset == name for r in records)]
    by_set = [longest([r for r in records if r.case.dataset == name]) for name in datasets]
    shown = {method for scores in by_set for method, _ in scores}
    methods = [name for name in NAMES if name in shown]
    places = {name: len(methods) - i for i, name in enumerate(methods)}
    size = (max(6.0, 3.7 * len(datasets)), 0.4 * len(methods) + 1)
    figure, axes = plt.subplots(1, len(datasets), figsize=size, sharey=True, squeeze=False)
    for axis, name, scores in zip(axes[0], datasets, by_set, strict=True):
        for (method, series), values in scores.items():
            marker, filled, shift = SERIES[series]
            colour = "tab:red" if method in ("gpc", "mixture") else "tab:blue"
            look = {"color": colour, "markerfacecolor": colour if filled else "white"}
            axis.plot(np.mean(values), places[method] + shift, marker, **look)
            axis.plot(values, [places[method] + shift] * len(values), "|", color=colour)
        axis.set(title=TITLES[name], xlabel="All, %")
        axis.grid(axis="x", alpha=0.3)
    axes[0, 0].set_yticks(list(places.values()), [find_method(name).title for name in methods])
    for series, (marker, filled, _) in SERIES.items():
        inside = "grey" if filled else "white"
        axes[0, 0].plot([], [], marker, color="grey", markerfacecolor=inside, label=series)
    entries = axes[0, 0].get_legend_handles_labels()
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.legend(*entries, loc="lower center", ncol=2, fontsize=7)
    figure.savefig(given.picture, dpi=120)


if __name__ == "__main__":
    main()
