"""How well the number of categories is found: our mixture, our count, and the rivals.

    python studies/find_k.py FILE.npz [FILE.npz ...] [--digits] --out results.jsonl
        [--jobs N] [--max-rows 6000] [--quick] [--special] [--only mixture|count|rivals]
    python studies/find_k.py --situations FILE.npz [FILE.npz ...] [--digits] --out results.jsonl
        [--permutations 5] [--count-permutations 20] [--tag before] [--only ...] [--jobs N]
    python studies/find_k.py --report results.jsonl [more.jsonl ...] [--figure FILE.png]

A file holds features X (n, d) and classes Y or y (n,). For every set there are 5 permutations of
known and novel classes, with 20, 50 and 80 % of the classes known and 50 or 20 % of their rows
labelled. Each of these is run by the mixture from several K^n_init and by the count once; the
rivals run at the label rate of 50 % only. Each case is appended to --out as one JSON line. Cases
that are already in the file are skipped, and cases that failed are tried again.

--special runs other cases instead: long tails, known classes that do not occur in the unlabelled
part, no novel class, and 20 known classes against all others.

--situations runs the situations in which classes differ in size or labels are few. Every line has
the --tag as "code", so that runs of two versions of the package can be compared.
"""

import os

# one thread per process; this must be set before numpy is loaded
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import json
import time
import warnings
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import joblib
import numpy as np

from find_k_cases import (
    NEIGHBOUR,
    SITUATIONS,
    Source,
    code_of,
    draw,
    is_of_situations,
    key_of,
    latest_lines,
    list_cases,
    list_situation_cases,
    load,
    part_of,
    read_lines,
)
from find_k_report import report_plain
from find_k_situations import draw_figure, report_situations


def run_case(case, source):
    """Run one case. An error becomes part of its line."""
    warnings.simplefilter("ignore")
    if case.method == NEIGHBOUR:
        return asdict(case) | {"accuracy": neighbour_accuracy(*load(source))}
    X, classes, y, known = draw(source, case)
    of_known = np.isin(classes, known)
    truth = len(np.unique(classes)) - len(known)
    line = asdict(case) | {
        "truth": truth,
        "n_known": len(known),
        "n_rows": len(X),
        "true_rate": float(np.mean(y[of_known] != -1)),
        "true_novel_size": float(np.sum(~of_known) / truth) if truth else None,
    }
    start, cpu_start = time.perf_counter(), time.process_time()
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
    line["cpu_seconds"] = round(time.process_time() - cpu_start, 3)
    return line


def neighbour_accuracy(X, classes):
    """Share of rows whose nearest other row, by cosine around the mean, is of their class."""
    V = X - X.mean(axis=0)
    V /= np.linalg.norm(V, axis=1, keepdims=True) + 1e-9
    nearness = V @ V.T
    np.fill_diagonal(nearness, -np.inf)
    return float(np.mean(classes[nearness.argmax(axis=1)] == classes))


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
    found = {
        "n_novel": float(count.n_novel),
        "interval": plain_interval(count.interval),
        "label_rate": plain(count.label_rate),
        "novel_share": plain(count.novel_share),
    }
    if hasattr(count, "novel_size"):  # versions that do not take the sizes from known classes
        found |= {
            "novel_size": plain(count.novel_size),
            "novel_size_interval": plain_interval(count.novel_size_interval),
            "sizes_from": count.sizes_from,
            "alike": plain(count.alike),
        }
    return found


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
    what = f"{line['set']}, {line['scenario']} {line['permutation']}"
    if line["method"] == NEIGHBOUR:
        return f"{what}, {NEIGHBOUR}: {line['accuracy']:.1%}"
    if line["scenario"] not in SITUATIONS:
        what += f", share {line['share']:.2g}, rate {line['rate']:.2g}"
    start = "" if line["init"] is None else f" from {line['init']}"
    found = line.get("error") or f"{line['n_novel']:.4g} of {line['truth']}"
    return f"{what}, {line['method']}{start}: {found}, {line['seconds']:.1f} s"


def report(paths, figure):
    """Print all tables of results files, and draw the figure of the situations."""
    lines = latest_lines(paths)
    good = [line for line in lines if "error" not in line]
    others = [line for line in good if not is_of_situations(line)]
    for code in sorted({code_of(line) for line in others}):
        print(f"\nCode: {code}")
        report_plain([line for line in others if code_of(line) == code])
    situations = [line for line in good if is_of_situations(line)]
    if situations:
        report_situations(situations)
    if figure is not None:
        draw_figure(situations, figure)
    failed = [f"{line['method']}: {line['error']}" for line in lines if "error" in line]
    for message, n in Counter(failed).items():
        print(f"\nFAILED {n} times: {message}")


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
    parser.add_argument(
        "--situations", action="store_true", help="classes of different sizes, few labels"
    )
    parser.add_argument(
        "--permutations", type=int, default=5, help="of the mixture and rivals in --situations"
    )
    parser.add_argument(
        "--count-permutations", type=int, default=20, help="of the count in --situations"
    )
    parser.add_argument("--tag", default="now", help="version of the package, kept in every line")
    parser.add_argument("--only", choices=["mixture", "count", "rivals"])
    parser.add_argument(
        "--report", type=Path, nargs="+", help="print the tables of these results files and stop"
    )
    parser.add_argument("--figure", type=Path, help="with --report: draw the situations here")
    arguments = parser.parse_args()
    if arguments.report is not None:
        report(arguments.report, arguments.figure)
        return
    sources = [
        Source(file.stem, str(file.resolve()), arguments.max_rows) for file in arguments.files
    ]
    if arguments.digits:
        sources.append(Source("digits", None, arguments.max_rows))
    if not sources or arguments.out is None:
        parser.error("give --out and at least one .npz file or --digits; or give --report")
    if arguments.situations:
        cases = list_situation_cases(
            sources, arguments.permutations, arguments.count_permutations, arguments.only
        )
    else:
        cases = list_cases(sources, arguments.quick, arguments.special, arguments.only)
    cases = [replace(case, code=arguments.tag) for case in cases]
    run_all(cases, sources, arguments.out, arguments.jobs)
    report([arguments.out], arguments.figure)


if __name__ == "__main__":
    main()
