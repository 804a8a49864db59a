"""Candidates for the loss, judged by hidden known classes of a picture set, small enough for a CPU.

    python studies/m_step.py cub base "contrastive_temperature=0.1,prototype_weight=0" \
        --root data --out candidates.jsonl --seeds 0 1 2

Only pictures of known classes take part: half of these classes keep their labels (half of their
pictures), the other half plays novel, and K is given. So the truth of really novel classes cannot
choose anything. A candidate is a list of settings of `newfound train`, "base" is none. Candidates
of a seed share their stored views and are compared in pairs. `--report FILE` prints the means.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch

from newfound.bench.datasets import load_dataset
from newfound.bench.methods import find_method
from newfound.bench.protocol import bench_settings
from newfound.bench.provenance import code_commit
from newfound.bench.run import rows_of
from newfound.bench.splits import hide_known, make_split
from newfound.deep.images.view_pairs import shared_views
from newfound.metrics import discovery_scores

#: A budget for one core: small pictures, few views and epochs; λ(t) and moves in proportion.
BUDGET = {"image_size": 96, "n_stored_views": 4, "epochs": 10, "warmup_epochs": 2, "moves_every": 5}


def known_pictures(name, root, work, settings):
    """Pixels, labels and true classes of the pictures of known classes, half of them hidden."""
    data = load_dataset(name, root, incomplete=True)
    split = hide_known(make_split(data))
    rows = np.flatnonzero(split.is_scored | (split.y != -1))
    return rows_of(data, split, settings, work)[rows], split.y[rows], split.truth[rows], split.known


def values_of(candidate):
    """Settings that a candidate names."""
    pairs = [part.split("=") for part in candidate.split(",") if "=" in part]
    return {name: json.loads(text) for name, text in pairs}


def run(given):
    """One line for each candidate and seed."""
    torch.set_num_threads(1)
    commit, clean = code_commit(None)
    for seed in given.seeds:
        with shared_views():
            for candidate in given.candidates:
                values = {**BUDGET, "model": given.model, "weights": "offline", "seed": seed}
                values |= values_of(candidate)
                settings = bench_settings(given.dataset, given.model, method=given.method)
                settings = settings.with_changes(**values)
                X, y, truth, known = known_pictures(given.dataset, given.root, given.work, settings)
                started, n_classes = time.time(), len(np.unique(truth))
                with tempfile.TemporaryDirectory() as folder:
                    method = find_method(given.method)(
                        n_classes, settings=settings, folder=Path(folder)
                    )
                    labels = method.fit(X, y).labels_
                free = y == -1
                scores = discovery_scores(truth[free], labels[free], known)
                parts = ("all", "old", "new")
                shown = {part: round(100 * getattr(scores, part), 2) for part in parts}
                line = {"dataset": given.dataset, "method": given.method, "candidate": candidate}
                line |= {"seed": seed, **shown, "seconds": round(time.time() - started)}
                line |= {"commit": commit, "clean": clean, "settings": settings.as_dict()}
                with given.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
                print(given.dataset, given.method, candidate, seed, shown, flush=True)


def report(file):
    """Mean All / Old / New of each candidate, and its difference to base over the same seeds."""
    found = defaultdict(dict)
    for text in file.read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        scores = np.array([line["all"], line["old"], line["new"]])
        found[line["dataset"], line["method"], line["candidate"]][line["seed"]] = scores
    print("| set | method | candidate | seeds | All / Old / New | All, less base |")
    print("|---" * 6 + "|")
    for (name, method, candidate), by_seed in sorted(found.items()):
        base = found.get((name, method, "base"), {})
        less = [scores[0] - base[seed][0] for seed, scores in by_seed.items() if seed in base]
        mean = " / ".join(f"{value:.1f}" for value in np.mean(list(by_seed.values()), axis=0))
        pairs = ", ".join(f"{value:+.1f}" for value in less)
        print(f"| {name} | {method} | {candidate} | {len(by_seed)} | {mean} | {pairs} |")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", nargs="?")
    parser.add_argument("candidates", nargs="*", default=["base"])
    parser.add_argument("--method", default="gpc")
    parser.add_argument("--model", default="tf_efficientnet_lite2")
    parser.add_argument("--root", type=Path, default=Path("data"))
    parser.add_argument("--work", type=Path, default=Path("runs/m_step"))
    parser.add_argument("--out", type=Path, default=Path("m_step.jsonl"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--report", type=Path)
    given = parser.parse_args()
    if given.report is not None:
        report(given.report)
    else:
        run(given)


if __name__ == "__main__":
    main()
