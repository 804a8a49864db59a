"""How well the number of categories is found: our mixture, our count, and the rivals.

    python studies/find_k.py FILE.npz [FILE.npz ...] [--digits] --out results.jsonl
        [--jobs N] [--max-rows 6000] [--quick] [--special] [--only mixture|count|rivals]
    python studies/find_k.py --report results.jsonl

A file holds features X (n, d) and classes Y (n,). For every set there are 5 permutations of known
and novel classes, with 20, 50 and 80 % of the classes known and 50 or 20 % of their rows labelled.
Each of these is run by the mixture from several K^n_init and by the count once; the rivals run at
the label rate of 50 % only. Each case is appended to --out as one JSON line. Cases that are already
in the file are skipped, and cases that failed are tried again.

--special runs other cases instead: long tails, known classes that do not occur in the unlabelled
part, no novel class, and 20 known classes against all others.
"""

import os

# one thread per process; this must be set before numpy is loaded
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import json
import time
import warnings
from dataclasses import asdict
from pathlib import Path

import joblib
import numpy as np

from find_k_cases import Source, draw, key_of, list_cases, load, part_of, read_lines
from find_k_report import report


def run_case(case, source):
    """Run one case. An error becomes part of its line."""
    warnings.simplefilter("ignore")
    X, classes, y, known = draw(*load(source), case)
    line = asdict(case) | {
        "truth": len(np.unique(classes)) - len(known),
        "n_known": len(known),
        "n_rows": len(X),
        "true_rate": float(np.mean(y[np.isin(classes, known)] != -1)),
    }
    start = time.perf_counter()
    try:
        if part_of(case.method) == "rivals":
            line |= run_rival(case, X, y)
        elif case.method == "count":
            line |= run_count(X, y)
        else:
            line |= run_mixture(case, X, classes, y, known)
    except Exception as error:  # the failure of one method must not stop the others
        line["error"] = f"{type(error).__name__}: {error}"
    line["seconds"] = round(time.perf_counter() - start, 3)
    return line


def run_mixture(case, X, classes, y, known):
    from newfound import SplitMergeMixture
    from newfound.metrics import discovery_scores

    if case.init is None:
        mixture = SplitMergeMixture(n_components=len(np.unique(classes)), random_state=0)
    else:
        mixture = SplitMergeMixture(min(len(known) + case.init, len(X)), random_state=0)
    mixture.fit(X, y)
    free = y == -1
    scores = discovery_scores(classes[free], mixture.labels_[free], known)
    return {
        "n_novel": int(mixture.n_novel_),
        "interval": plain_interval(getattr(mixture, "n_novel_interval_", None)),
        "all": plain(scores.all),
        "old": plain(scores.old),
        "new": plain(scores.new),
    }


def run_count(X, y):
    from newfound import count_categories

    count = count_categories(X, y, random_state=0)
    return {
        "n_novel": float(count.n_novel),
        "interval": plain_interval(count.interval),
        "label_rate": plain(count.label_rate),
        "novel_share": plain(count.novel_share),
    }


def run_rival(case, X, y):
    from newfound.bench.rivals import RIVALS as FUNCTIONS

    return {"n_novel": FUNCTIONS[case.method](X, y, random_state=0)}


def plain(number):
    """A float that JSON can represent, or None."""
    return float(number) if np.isfinite(number) else None


def plain_interval(interval):
    return None if interval is None else [plain(end) for end in interval]


def run_all(cases, sources, out, jobs):
    """Run the cases that the file lacks and append them. Only this process writes."""
    done = {key_of(line) for line in read_lines(out) if "error" not in line}
    missing = [case for case in cases if case.key not in done]
    print(f"{len(cases)} cases, {len(cases) - len(missing)} already in {out}", flush=True)
    by_name = {source.name: source for source in sources}
    tasks = (joblib.delayed(run_case)(case, by_name[case.set]) for case in missing)
    start = time.perf_counter()
    with (
        joblib.parallel_config("loky", inner_max_num_threads=1),
        out.open("a", encoding="utf-8") as file,
    ):
        if out.stat().st_size and not out.read_text(encoding="utf-8").endswith("\n"):
            file.write("\n")  # a run that was killed has left an incomplete line
        run = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
        for number, line in enumerate(run(tasks), 1):
            file.write(json.dumps(line, allow_nan=False) + "\n")
            file.flush()
            left = (time.perf_counter() - start) / number * (len(missing) - number)
            print(f"[{number}/{len(missing)}, {left:.0f} s left] {describe(line)}", flush=True)


def describe(line):
    start = "" if line["init"] is None else f" from {line['init']}"
    found = line.get("error") or f"{line['n_novel']:.4g} of {line['truth']}"
    return (
        f"{line['set']}, {line['scenario']} {line['permutation']}, share {line['share']:.2g}, "
        f"rate {line['rate']:.2g}, {line['method']}{start}: {found}, {line['seconds']:.1f} s"
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, help=".npz files with X and Y")
    parser.add_argument("--digits", action="store_true", help="add scikit-learn's digits")
    parser.add_argument(
        "--out", type=Path, help="results file to append to, one JSON line per case"
    )
    parser.add_argument("--jobs", type=int, default=1, help="number of processes; -1 for all cores")
    parser.add_argument(
        "--max-rows", type=int, default=6000, help="largest number of rows drawn from a set"
    )
    parser.add_argument("--quick", action="store_true", help="one permutation, three starts")
    parser.add_argument("--special", action="store_true", help="long tails and other hard cases")
    parser.add_argument("--only", choices=["mixture", "count", "rivals"])
    parser.add_argument(
        "--report", type=Path, help="print the tables of this results file and stop"
    )
    arguments = parser.parse_args()
    if arguments.report is not None:
        report(arguments.report)
        return
    sources = [
        Source(file.stem, str(file.resolve()), arguments.max_rows) for file in arguments.files
    ]
    if arguments.digits:
        sources.append(Source("digits", None, arguments.max_rows))
    if not sources or arguments.out is None:
        parser.error("give --out and at least one .npz file or --digits; or give --report")
    cases = list_cases(sources, arguments.quick, arguments.special, arguments.only)
    run_all(cases, sources, arguments.out, arguments.jobs)
    report(arguments.out)


if __name__ == "__main__":
    main()
