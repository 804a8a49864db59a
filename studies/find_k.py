"""The number of categories from any start: our mixture, our count, and the rivals.

    python studies/find_k.py FILE.npz [FILE.npz ...] [--digits] --out results.jsonl
        [--jobs N] [--max-rows 6000] [--quick] [--special] [--only mixture|count|rivals]
    python studies/find_k.py --report results.jsonl

A file holds features X (n, d) and classes Y (n,). For every set 5 permutations of known and novel
classes, known shares 20, 50 and 80 %, label rates 50 and 20 %; the mixture from several K^n_init,
the count once for each, the rivals once at label rate 50 %. One JSON line a case is appended to
--out; cases that are already there are skipped, those that failed are tried again.

--special runs other cases instead: long tails, known classes that are absent from the unlabelled
part, no novel class at all, 20 known classes against all the rest.
"""

import os

# one thread a process, before numpy is loaded
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import json
import math
import time
import warnings
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path

import joblib
import numpy as np

SHARES = (0.2, 0.5, 0.8)
RATES = (0.5, 0.2)
N_PERMUTATIONS = 5
ALL_STARTS, FEW_STARTS = (3, 5, 10, 20, 30, 50, 100), (3, 20, 100)
RIVAL_RATE, COVERAGE_START = 0.5, 20
SPECIAL = ("long tail", "partial overlap", "no novel class", "20 known")
RIVALS = (
    "brent_search",
    "ward_labelled_score",
    "silhouette",
    "bic_mixture",
    "dirichlet_process",
    "deep_dpm_rule",
)


@dataclass(frozen=True)
class Source:
    """A feature set: an .npz file, or scikit-learn's digits."""

    name: str
    path: str | None
    max_rows: int


@dataclass(frozen=True)
class Case:
    """One line of the results: which data, which labels, which method."""

    set: str
    scenario: str
    permutation: int
    share: float
    rate: float
    method: str  # mixture, given K, count, or a rival
    init: int | None = None

    @property
    def key(self):
        return json.dumps(list(asdict(self).values()))

    @property
    def data(self):
        """What tells which rows and labels it is about, whatever the method."""
        return self.set, self.scenario, self.permutation, self.share, self.rate


# ---------------------------------------------------------------------------------- the cases


def list_cases(sources, quick, special, only):
    """All cases, permutation by permutation, so that a part of the run covers every set."""
    cases = []
    for permutation in range(1 if quick else N_PERMUTATIONS):
        starts = ALL_STARTS if permutation == 0 and not quick else FEW_STARTS
        for source in sources:
            for scenario, share, rate in draws_of(source, special):
                methods = [("count", None), ("given K", None)]
                methods += [("mixture", start) for start in starts]
                methods += [(name, None) for name in RIVALS if rate == RIVAL_RATE]
                cases += [
                    Case(source.name, scenario, permutation, share, rate, method, start)
                    for method, start in methods
                    if only in (None, part_of(method))
                ]
    return cases


def draws_of(source, special):
    """Scenario, known share and label rate of everything that is drawn from a set."""
    if not special:
        return [("plain", share, rate) for share in SHARES for rate in RATES]
    n_classes = len(np.unique(load(source)[1]))
    shares = (0.5, 0.5, 1.0, 20 / n_classes)
    wanted = SPECIAL if n_classes >= 100 else SPECIAL[:3]
    return [(name, share, 0.5) for name, share in zip(wanted, shares, strict=False)]


def part_of(method):
    return "rivals" if method in RIVALS else "count" if method == "count" else "mixture"


def load(source):
    """Features in float32 and classes 0 … K - 1, at most `max_rows` of them."""
    if source.path is None:
        from sklearn.datasets import load_digits

        X, Y = load_digits(return_X_y=True)
    else:
        with np.load(source.path, allow_pickle=False) as archive:
            X, Y = archive["X"], archive["Y"]
    if len(X) > source.max_rows:
        chosen = np.sort(np.random.default_rng(0).permutation(len(X))[: source.max_rows])
        X, Y = X[chosen], Y[chosen]
    return np.ascontiguousarray(X, dtype=np.float32), np.unique(Y, return_inverse=True)[1]


def draw(X, classes, case):
    """Features, classes and partial labels of a case; shares and rates of one permutation nest."""
    rng = np.random.default_rng([case.permutation, 4])
    n_classes = int(classes.max()) + 1
    order = rng.permutation(n_classes)
    n_known = max(1, round(case.share * n_classes))
    if case.share < 1:
        n_known = min(n_known, n_classes - 1)
    known = order[:n_known]
    luck = rng.random(len(classes))
    if case.scenario == "long tail":
        kept = thin(classes, rng.permutation(n_classes), luck)
        X, classes, luck = X[kept], classes[kept], rng.random(len(kept))
    rates = np.zeros(n_classes)
    rates[known] = case.rate
    if case.scenario == "partial overlap":
        rates[known[: max(1, n_known // 4)]] = 1.0
    # of every known class one row at least is labelled
    luckiest = np.full(n_classes, np.inf)
    np.minimum.at(luckiest, classes, luck)
    luck = np.where(luck == luckiest[classes], 0.0, luck)
    return X, classes, np.where(luck < rates[classes], classes, -1), np.sort(known)


def thin(classes, ranks, luck):
    """Rows of classes that shrink geometrically from 500 rows, or the largest there are, to 5."""
    available = np.bincount(classes)
    sizes = np.geomspace(5, max(5, min(500, available.max())), len(available)).round()
    by_luck = np.lexsort((luck, classes))
    place = np.empty(len(classes), dtype=int)
    place[by_luck] = np.arange(len(classes)) - np.repeat(
        np.cumsum(available) - available, available
    )
    return np.flatnonzero(place < sizes[ranks][classes])


# ------------------------------------------------------------------------------ running a case


def run_case(case, source):
    """Do one case; whatever goes wrong becomes part of its line."""
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
    except Exception as error:  # a part that is missing or fails must not end the others
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
    """A float that JSON can hold."""
    return float(number) if np.isfinite(number) else None


def plain_interval(interval):
    return None if interval is None else [plain(end) for end in interval]


def run_all(cases, sources, out, jobs):
    """Run what is missing in the file, and append to it; only this process writes."""
    done = {key_of(line) for line in read_lines(out) if "error" not in line}
    missing = [case for case in cases if case.key not in done]
    print(f"{len(cases)} cases, {len(cases) - len(missing)} of them already in {out}", flush=True)
    by_name = {source.name: source for source in sources}
    tasks = (joblib.delayed(run_case)(case, by_name[case.set]) for case in missing)
    start = time.perf_counter()
    with (
        joblib.parallel_config("loky", inner_max_num_threads=1),
        out.open("a", encoding="utf-8") as file,
    ):
        if out.stat().st_size and not out.read_text(encoding="utf-8").endswith("\n"):
            file.write("\n")  # the line that a killed run left half written
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


def read_lines(path):
    """Lines of a results file; one that was cut off by a kill is left out."""
    if not path.exists():
        return []
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError:
            continue
    return lines


def case_of(line):
    return Case(**{name: line[name] for name in Case.__dataclass_fields__})


def key_of(line):
    return case_of(line).key


# ---------------------------------------------------------------------------------- the tables


def report(path):
    """Print all tables of a results file; the last good line of a case counts."""
    latest = {}
    for line in read_lines(path):
        if "error" not in line or "error" in latest.get(key_of(line), line):
            latest[key_of(line)] = line
    failed = [line for line in latest.values() if "error" in line]
    good = [line for line in latest.values() if "error" not in line]
    plain_cases = [line for line in good if line["scenario"] == "plain"]
    if plain_cases:
        sets = sorted({line["set"] for line in plain_cases})
        report_errors(plain_cases, sets)
        report_shares(plain_cases)
        report_spread(plain_cases, sets)
        report_coverage(plain_cases, sets)
        report_accuracy(plain_cases, sets)
        report_rates(plain_cases, sets)
        report_seconds(plain_cases, sets)
    report_special([line for line in good if line["scenario"] != "plain"])
    for message, n in counted(f"{line['method']}: {line['error']}" for line in failed).items():
        print(f"\nFAILED {n} times: {message}")


def counted(items):
    counts = defaultdict(int)
    for item in items:
        counts[item] += 1
    return counts


def methods_in(lines, *, by_rate=True):
    """Row title → lines. Rivals saw label rate 50 % only, so ours is shown for that apart."""
    rows = {}
    for method in ("mixture", "count", *RIVALS):
        mine = [line for line in lines if line["method"] == method]
        rows[method] = mine
        if by_rate and method not in RIVALS:
            rows[f"{method}, rate {RIVAL_RATE}"] = [
                line for line in mine if line["rate"] == RIVAL_RATE
            ]
    return {title: mine for title, mine in rows.items() if mine}


def relative_error(line):
    """max(0, |K^n - truth| - 1/2) / truth; with no novel class, the absolute error."""
    return absolute_error(line) / max(1, line["truth"])


def absolute_error(line):
    return max(0.0, abs(line["n_novel"] - line["truth"]) - 0.5)


def distance(line):
    return abs(line["n_novel"] - line["truth"])


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else math.nan


def with_mean_over_sets(cells):
    """Cells of the sets and their mean, each set counting the same."""
    return [*cells, mean(cell for cell in cells if not math.isnan(cell))]


def by_set(lines, sets, measure):
    return with_mean_over_sets(
        [mean(measure(line) for line in lines if line["set"] == name) for name in sets]
    )


def print_table(title, columns, rows, form="{:.1%}"):
    """Rows of (title, cells) under column heads; NaN is an empty cell."""
    print(f"\n{title}")
    texts = [
        [name, *("" if math.isnan(cell) else form.format(cell) for cell in cells)]
        for name, cells in rows
    ]
    table = [["", *columns], *texts]
    widths = [max(len(row[i]) for row in table) for i in range(len(columns) + 1)]
    for row in table:
        cells = [text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True)]
        print("  " + "  ".join([row[0].ljust(widths[0]), *cells]))


def report_errors(lines, sets):
    heads = [*sets, "mean"]
    rows = [(name, by_set(mine, sets, relative_error)) for name, mine in methods_in(lines).items()]
    print_table("Mean error max(0, |K^n - truth| - 1/2) / truth (target 5 %)", heads, rows)
    rows = [
        (name, by_set(mine, sets, lambda line: (line["n_novel"] - line["truth"]) / line["truth"]))
        for name, mine in methods_in(lines).items()
    ]
    print_table("Bias, mean (K^n - truth) / truth", heads, rows, "{:+.1%}")
    few = [line for line in lines if line["truth"] < 10]
    few_sets = sorted({line["set"] for line in few})
    rows = [(name, by_set(mine, few_sets, distance)) for name, mine in methods_in(few).items()]
    if rows:
        print_table(
            "Mean |K^n - truth| where the truth is under 10", [*few_sets, "mean"], rows, "{:.2f}"
        )


def report_shares(lines):
    settings = [(share, rate) for rate in RATES for share in SHARES]
    rows = [
        (
            name,
            [
                mean(
                    relative_error(line)
                    for line in mine
                    if (line["share"], line["rate"]) == setting
                )
                for setting in settings
            ],
        )
        for name, mine in methods_in(lines, by_rate=False).items()
    ]
    heads = [f"share {share} rate {rate}" for share, rate in settings]
    print_table("Mean error by known share and label rate", heads, rows)


def grouped(lines):
    """Lines by the data they are about."""
    groups = defaultdict(list)
    for line in lines:
        groups[case_of(line).data].append(line)
    return groups


def report_spread(lines, sets):
    spreads = defaultdict(list)
    for data, mine in grouped([line for line in lines if line["method"] == "mixture"]).items():
        found = [line["n_novel"] for line in mine]
        if len(found) > 1:
            spreads[data[0]].append((max(found) - min(found)) / max(1, mine[0]["truth"]))
    if spreads:
        rows = [
            ("mean", with_mean_over_sets([mean(spreads[name]) for name in sets])),
            (
                "largest",
                with_mean_over_sets([max(spreads[name], default=math.nan) for name in sets]),
            ),
        ]
        print_table("Spread over K_init, (max - min) / truth (target 5 %)", [*sets, "mean"], rows)


def report_coverage(lines, sets):
    """One case a set, permutation and share: label rate 50 %, the mixture from 20."""
    rows = []
    for method, start in (("mixture", COVERAGE_START), ("count", None)):
        mine = [
            line
            for line in lines
            if (line["method"], line["init"], line["rate"]) == (method, start, RIVAL_RATE)
            and has_interval(line)
        ]
        if mine:
            wide = [line for line in mine if line["truth"] >= 10]
            rows.append((f"{method}: holds the truth", by_set(mine, sets, holds_truth)))
            rows.append((f"{method}: width / truth, truth >= 10", by_set(wide, sets, width)))
    if rows:
        print_table(
            "90 % interval (80 to 100 % should hold the truth, width at most 60 %)",
            [*sets, "mean"],
            rows,
        )


def has_interval(line):
    return bool(line["interval"]) and None not in line["interval"]


def holds_truth(line):
    low, high = line["interval"]
    return float(low <= line["truth"] <= high)


def width(line):
    low, high = line["interval"]
    return (high - low) / line["truth"]


def report_accuracy(lines, sets):
    """All/Old/New with K found minus the same with K given; the mean over starts first."""
    given = {case_of(line).data: line for line in lines if line["method"] == "given K"}
    pairs = [
        (line, given[case_of(line).data])
        for line in lines
        if line["method"] == "mixture" and case_of(line).data in given
    ]
    if not pairs:
        return
    rows = []
    for score in ("all", "old", "new"):
        usable = [(a, b) for a, b in pairs if a[score] is not None and b[score] is not None]
        rows += [
            (f"{score.title()}, K given", by_pair_set(usable, sets, lambda a, b, s=score: b[s])),
            (
                f"{score.title()}, K found minus K given",
                by_pair_set(usable, sets, lambda a, b, s=score: a[s] - b[s]),
            ),
        ]
    print_table("Accuracy (K found within 2 points of K given)", [*sets, "mean"], rows)


def by_pair_set(pairs, sets, measure):
    return with_mean_over_sets(
        [mean(measure(a, b) for a, b in pairs if a["set"] == name) for name in sets]
    )


def report_rates(lines, sets):
    """Does the count know the label rate?"""
    mine = [line for line in lines if line["method"] == "count" and line["label_rate"] is not None]
    rows = [
        (
            f"rate {rate}",
            by_set(
                [line for line in mine if line["rate"] == rate],
                sets,
                lambda line: line["label_rate"] / line["true_rate"] - 1,
            ),
        )
        for rate in RATES
    ]
    if mine:
        print_table(
            "Bias of the estimated label rate of the count", [*sets, "mean"], rows, "{:+.1%}"
        )


def report_seconds(lines, sets):
    everything = methods_in(lines, by_rate=False)
    rows = [
        (name, by_set(mine, sets, lambda line: line["seconds"]))
        for name, mine in everything.items()
    ]
    print_table("Seconds a case", [*sets, "mean"], rows, "{:.1f}")


def report_special(lines):
    """A table for each scenario; where nothing is novel, the error is in categories."""
    for scenario in SPECIAL:
        mine = [line for line in lines if line["scenario"] == scenario]
        if not mine:
            continue
        sets = sorted({line["set"] for line in mine})
        truths = [mean(line["truth"] for line in mine if line["set"] == name) for name in sets]
        heads = [f"{name} ({truth:.0f})" for name, truth in zip(sets, truths, strict=True)]
        measure, what, form = relative_error, "error", "{:.1%}"
        if scenario == "no novel class":
            measure, what, form = distance, "|K^n - truth|", "{:.2f}"
        rows = [
            (name, by_set(of_method, sets, measure))
            for name, of_method in methods_in(mine, by_rate=False).items()
        ]
        print_table(f"Special: {scenario}, mean {what} (truth)", [*heads, "mean"], rows, form)
        counts = [line for line in mine if line["method"] == "count" and has_interval(line)]
        if counts:
            rows = [("count: holds the truth", by_set(counts, sets, holds_truth))]
            print_table(f"Special: {scenario}, 90 % interval", [*heads, "mean"], rows)


# ----------------------------------------------------------------------------- the command line


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, help=".npz files with X and Y")
    parser.add_argument("--digits", action="store_true", help="add scikit-learn's digits")
    parser.add_argument("--out", type=Path, help="results, one JSON line a case; appended to")
    parser.add_argument("--jobs", type=int, default=1, help="processes; -1 for all cores")
    parser.add_argument("--max-rows", type=int, default=6000, help="rows drawn from a set")
    parser.add_argument("--quick", action="store_true", help="one permutation, three starts")
    parser.add_argument("--special", action="store_true", help="long tails and other hard cases")
    parser.add_argument("--only", choices=["mixture", "count", "rivals"])
    parser.add_argument("--report", type=Path, help="only print the tables of this file")
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
        parser.error("give at least one .npz file or --digits, and --out; or --report")
    cases = list_cases(sources, arguments.quick, arguments.special, arguments.only)
    run_all(cases, sources, arguments.out, arguments.jobs)
    report(arguments.out)


if __name__ == "__main__":
    main()
