"""Classes of unequal sizes on finished features: methods that need no training, K in three ways.

    python studies/long_tails.py FILE.npz … --out results/long_tails.jsonl [--imbalance 10]
    python studies/long_tails.py --report results/long_tails.jsonl

Each file has X and y (true classes). It is cut twice, as the benchmark's long tails are: "large",
in which the large classes are known, and "one", in which ranks are random. The lines are records
of `newfound bench run`; files that were cut are written to --work.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np

from newfound.bench import commands
from newfound.bench.datasets.feature_file import load_feature_file
from newfound.bench.datasets.long_tail import LongTail, rows_to_keep
from newfound.bench.methods import NAMES
from newfound.bench.protocol import own_k
from newfound.bench.results import read_records
from newfound.bench.run import Place, run_case

METHODS = "kmeans,mixture,gcd,pim,cms,dccl"


def cut(file: Path, imbalance: float, known_first: bool, folder: Path) -> Path:
    """Write the file with a long tail."""
    data = load_feature_file(file)
    kept = rows_to_keep(data, LongTail(data.name, imbalance, known_first), np.random.RandomState(0))
    out = folder / f"{file.stem}-{'large' if known_first else 'one'}.npz"
    names = np.array(data.class_names)
    known = names[list(data.known)]
    np.savez(out, X=data.array[kept].astype(np.float32), y=names[data.truth[kept]], known=known)
    return out


def run(file: Path, draw: int, methods: str, place: Place) -> None:
    """All methods on one cut file, K in three ways."""
    variant = {"draw": draw, "n_starts": 20}
    for k in ("all", "unknown"):
        for one in commands._list_runs(methods, str(file), [0], {}, {**variant, "k": k}):
            record = run_case(one.case, one.settings, place, one.source)
            if record is not None:
                print(file.stem, draw, commands._sentence(record), record.case.method, flush=True)


def report(file: Path) -> None:
    """Mean All / Old / New over draws for each set and method, K given and found by the method."""
    rows = defaultdict(lambda: defaultdict(list))
    for record in read_records(file):
        for way, k in (("given", "known"), ("unknown", own_k(record.case))):
            if record.case.k == k:
                scores = record.all, record.old, record.new, record.n_novel
                rows[record.case.dataset, way, record.n_novel_true][record.case.method].append(
                    scores
                )
    methods = [name for name in NAMES if any(name in found for found in rows.values())]
    print("| set | K | " + " | ".join(methods) + " |\n" + "|---" * (2 + len(methods)) + "|")
    for (name, way, n_novel), found in sorted(rows.items()):
        means = {method: np.mean(values, axis=0) for method, values in found.items()}
        best = max(mean[0] for mean in means.values())
        cells = []
        for mean in (means.get(method) for method in methods):
            if mean is None:
                cells.append("–")
                continue
            first = f"**{mean[0]:.1f}**" if mean[0] == best else f"{mean[0]:.1f}"
            k = "" if way == "given" else f", K^n {mean[3]:.0f} of {n_novel}"
            cells.append(f"{first} / {mean[1]:.1f} / {mean[2]:.1f}{k}")
        n_draws = max(len(values) for values in found.values())
        print(f"| {name} ({n_draws}) | {way} | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--out", type=Path, default=Path("long_tails.jsonl"))
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--imbalance", type=float, default=10.0)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--work", type=Path, default=Path("runs/long_tails"))
    parser.add_argument("--report", type=Path)
    given = parser.parse_args()
    if given.report is not None:
        report(given.report)
        return
    given.work.mkdir(parents=True, exist_ok=True)
    place = Place(given.work, given.work, given.out)
    for draw in range(given.draws):
        for file in given.files:
            for known_first in (True, False):
                one = cut(file, given.imbalance, known_first, given.work)
                run(one, draw, given.methods, place)


if __name__ == "__main__":
    main()
