"""Does the word of `trust_report` keep its promise? Nine in ten solid runs hold the truth.

    python studies/trust.py run data/sets cub.npz --out trust.jsonl --permutations 3 --jobs 16
    python studies/trust.py table trust.jsonl

Sets are .npz files, or folders of them, with X and the classes as Y or y. Each case is a set in one
of the situations of `find_k_cases.py`. A case that is in the file is not run again. A case is
counted as right if the true number of novel classes is in the run's 90 % interval, with both ends
rounded as the report shows them. `run` ends with the table.
"""

import argparse
import json
import math
import time
import warnings
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from find_k_cases import SITUATIONS, Case, Source, draw, read_lines, read_set

from newfound import SplitMergeMixture
from newfound.mixture.trust.report import trust_report
from newfound.mixture.trust.verdict import TrustReport, judge

WORDS = ("solid", "shaky", "don't")


def list_sources(paths, max_rows):
    """All sets, by name. Two files of one name would be one set in the results."""
    files = [f for path in paths for f in (sorted(path.glob("*.npz")) if path.is_dir() else [path])]
    missing = [str(path) for path in [*paths, *files] if not path.exists()]
    if missing or not files:
        raise SystemExit(f"no feature set at {', '.join(missing or map(str, paths))}")
    twice = [name for name, n in Counter(file.stem for file in files).items() if n > 1]
    if twice:
        raise SystemExit(f"several files are called {', '.join(twice)}: rename them")
    return [Source(file.stem, str(file), max_rows) for file in files]


def list_cases(sources, situations, permutations):
    """All cases, in an order that covers sets and situations evenly if it is interrupted."""
    cases = []
    for permutation in range(permutations):
        for shift in range(len(situations)):
            for place, source in enumerate(sources):
                cases.append((source, situations[(shift + place) % len(situations)], permutation))
    return cases


def case_of(source, name, permutation):
    situation = SITUATIONS[name]
    n_classes = len(np.unique(read_set(source)[1]))
    share = situation.n_known / n_classes if situation.n_known else situation.share
    rate = None if situation.quota else situation.rate
    return Case(source.name, name, permutation, share, rate, "trust")


def measure(source, case):
    """One line of the results: the truth, the count, and what the report says."""
    X, classes, y, known = draw(source, case)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mixture = SplitMergeMixture(random_state=case.permutation).fit(X, y)
        started = time.perf_counter()
        report = trust_report(X, y, mixture=mixture, n_jobs=1)
    return {
        "n_rows": len(X),
        "truth": len(np.setdiff1d(np.unique(classes), known)),
        "n_novel": mixture.n_novel_,
        "seconds": round(time.perf_counter() - started, 1),
        **report.as_json(),
    }


def run_case(source, name, permutation, end):
    """The line of a case; one with `error` if it failed, None if there is no time left."""
    if time.time() > end:
        return None
    line = {"set": source.name, "scenario": name, "permutation": permutation}
    try:
        return line | measure(source, case_of(source, name, permutation))
    except Exception as error:  # one case must not end a study of hours
        return line | {"error": f"{type(error).__name__}: {error}"}


def run(options):
    """Run what is not in the file yet; every line is written as soon as it is there."""
    fields = ("set", "scenario", "permutation")
    lines = [line for line in read_lines(options.out) if "error" not in line]
    done = {tuple(line[name] for name in fields) for line in lines}
    cases = list_cases(
        list_sources(options.files, options.max_rows), options.situations, options.permutations
    )
    end = time.time() + 60 * options.minutes
    work = [
        delayed(run_case)(source, name, permutation, end)
        for source, name, permutation in cases
        if (source.name, name, permutation) not in done
    ]
    print(f"{len(cases)} cases, {len(cases) - len(work)} of them done before", flush=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    parallel = Parallel(n_jobs=options.jobs, return_as="generator_unordered", batch_size=1)
    for line in parallel(work):
        if line is None:
            continue
        with options.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        said = line.get("error") or f"{line['word']} {is_right(line)} {line['seconds']} s"
        print(line["set"], line["scenario"], line["permutation"], said, sep=", ", flush=True)


def is_right(line):
    """Whether the interval, rounded as it is shown, holds the truth; a high end may be missing."""
    low, high = line["measures"]["interval"]
    return round(low) <= line["truth"] <= (round(high) if math.isfinite(high) else high)


def print_tables(lines):
    """How many runs of each word hold the truth, over all and by situation."""
    failed = [line for line in lines if "error" in line]
    lines = [line for line in lines if "error" not in line]
    if failed:
        print(f"{len(failed)} runs failed, for example: {failed[0]['error']}")
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


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("files", nargs="+", type=Path, help="sets, or files of results")
    parser.add_argument("--situations", nargs="+", choices=SITUATIONS, default=list(SITUATIONS))
    parser.add_argument("--permutations", type=int, default=1, help="draws of known classes")
    parser.add_argument("--max-rows", type=int, default=3000)
    parser.add_argument("--minutes", type=float, default=60, help="start no case after this time")
    parser.add_argument("--jobs", type=int, default=1, help="cases at the same time")
    parser.add_argument("--out", type=Path, default=Path("trust.jsonl"))
    options = parser.parse_args(arguments)
    if options.what == "run":
        run(options)
        options.files = [options.out]
    print_tables([line for path in options.files for line in read_lines(path)])


if __name__ == "__main__":
    main()
