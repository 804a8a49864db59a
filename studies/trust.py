"""Does the word of `trust_report` keep its promise? Nine in ten solid runs hold the truth.

    python studies/trust.py run --sets data/sets --out trust.jsonl --max-rows 1500 --minutes 20
    python studies/trust.py table trust.jsonl

Each case is a feature set in one of the situations of `find_k_cases.py`. A case that is in the file
is not run again. A case is counted as right if the true number of novel classes is in the run's
90 % interval, with both ends rounded as the report shows them.
"""

import argparse
import json
import time
import warnings
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
from find_k_cases import SITUATIONS, Case, Source, draw, read_lines, read_set

from newfound import SplitMergeMixture
from newfound.mixture.trust.report import Effort, trust_report
from newfound.mixture.trust.verdict import TrustReport, judge

WORDS = ("solid", "shaky", "don't")


def list_cases(folder, permutations, max_rows):
    """All cases, in an order that covers sets and situations evenly if it is interrupted."""
    sources = [Source(path.stem, str(path), max_rows) for path in sorted(folder.glob("*.npz"))]
    cases = []
    for permutation in range(permutations):
        for shift in range(len(SITUATIONS)):
            for place, source in enumerate(sources):
                name = list(SITUATIONS)[(shift + place) % len(SITUATIONS)]
                cases.append((source, name, permutation))
    return cases


def case_of(source, name, permutation):
    situation = SITUATIONS[name]
    n_classes = len(np.unique(read_set(source)[1]))
    share = situation.n_known / n_classes if situation.n_known else situation.share
    rate = None if situation.quota else situation.rate
    return Case(source.name, name, permutation, share, rate, "trust")


def measure(source, case, n_jobs):
    """One line of the results: the truth, the count, and what the report says."""
    X, classes, y, known = draw(source, case)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mixture = SplitMergeMixture(random_state=case.permutation).fit(X, y)
        started = time.perf_counter()
        report = trust_report(
            *(X, y), mixture=mixture, effort=Effort(n_draws=10, n_fits=2), n_jobs=n_jobs
        )
    truth = len(np.setdiff1d(np.unique(classes), known))
    return {
        "set": case.set,
        "scenario": case.scenario,
        "permutation": case.permutation,
        "n_rows": len(X),
        "truth": truth,
        "n_novel": mixture.n_novel_,
        "seconds": round(time.perf_counter() - started, 1),
        **report.as_json(),
    }


def is_right(line):
    low, high = line["measures"]["interval"]
    return round(low) <= line["truth"] <= round(high)


def print_tables(lines):
    """How many runs of each word hold the truth, over all and by situation."""
    judged = [(judge(TrustReport.from_json(line).measures).word, line) for line in lines]
    print(f"{len(judged)} runs; truth in the interval: {share([line for _, line in judged])}")
    print("\nword      runs  truth in the interval  error of K^n (median)")
    for word in WORDS:
        some = [line for said, line in judged if said == word]
        errors = [abs(line["n_novel"] - line["truth"]) / max(1, line["truth"]) for line in some]
        error = f"{np.median(errors):.0%}" if errors else "–"
        print(f"{word:8}  {len(some):4}  {share(some):21}  {error}")
    for key in ("scenario", "set"):
        groups = defaultdict(list)
        for word, line in judged:
            groups[line[key]].append((word, line))
        print(f"\n{key:24} solid shaky don't  solid with truth")
        for name, some in groups.items():
            counts = Counter(word for word, _ in some)
            solid = [line for word, line in some if word == "solid"]
            columns = " ".join(f"{counts[word]:5}" for word in WORDS)
            print(f"{name:24} {columns}  {share(solid)}")


def share(lines):
    n = sum(map(is_right, lines))
    return f"{n} of {len(lines)}" + (f" ({n / len(lines):.0%})" if lines else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--sets", type=Path, default=Path("data/sets"))
    parser.add_argument("--out", type=Path, default=Path("trust.jsonl"))
    parser.add_argument("--permutations", type=int, default=1)
    parser.add_argument("--max-rows", type=int, default=3000)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    if options.what == "table":
        print_tables([line for path in options.files for line in read_lines(path)])
        return
    fields = ("set", "scenario", "permutation")
    done = {tuple(line[name] for name in fields) for line in read_lines(options.out)}
    end = time.monotonic() + 60 * options.minutes
    for source, name, permutation in list_cases(
        options.sets, options.permutations, options.max_rows
    ):
        if (source.name, name, permutation) in done or time.monotonic() > end:
            continue
        line = measure(source, case_of(source, name, permutation), options.jobs)
        with options.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(line["set"], name, line["word"], is_right(line), f"{line['seconds']} s", flush=True)


if __name__ == "__main__":
    main()
