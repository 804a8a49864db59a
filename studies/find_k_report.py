"""Tables of the plain study of K, printed from the lines of a results file of `find_k.py`."""

import math
from collections import defaultdict

from find_k_cases import (
    COVERAGE_START,
    RATES,
    RIVAL_RATE,
    RIVALS,
    SHARES,
    SPECIAL,
    case_of,
)


def report_plain(lines):
    """Tables of the plain study and its special cases."""
    plain_cases = [line for line in lines if line["scenario"] == "plain"]
    if plain_cases:
        sets = sorted({line["set"] for line in plain_cases})
        report_errors(plain_cases, sets)
        report_shares(plain_cases)
        report_spread(plain_cases, sets)
        report_coverage(plain_cases, sets)
        report_accuracy(plain_cases, sets)
        report_rates(plain_cases, sets)
        report_seconds(plain_cases, sets)
    report_special([line for line in lines if line["scenario"] != "plain"])


def methods_in(lines, *, by_rate=True):
    """Row title → lines. Rivals ran at label rate 50 % only, so ours has an extra row for it."""
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
    """max(0, |K^n - truth| - 1/2) / truth; without a novel class, the absolute error."""
    return absolute_error(line) / max(1, line["truth"])


def absolute_error(line):
    return max(0.0, abs(line["n_novel"] - line["truth"]) - 0.5)


def distance(line):
    return abs(line["n_novel"] - line["truth"])


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else math.nan


def with_mean_over_sets(cells):
    """Cells of the sets, and their mean with equal weight for each set."""
    return [*cells, mean(cell for cell in cells if not math.isnan(cell))]


def by_set(lines, sets, measure):
    return with_mean_over_sets(
        [mean(measure(line) for line in lines if line["set"] == name) for name in sets]
    )


def print_table(title, columns, rows, form="{:.1%}"):
    """Print rows of (title, cells) under column heads. NaN is an empty cell, text stays."""

    def text_of(cell):
        if isinstance(cell, str):
            return cell
        return "" if math.isnan(cell) else form.format(cell)

    print(f"\n{title}")
    texts = [[name, *(text_of(cell) for cell in cells)] for name, cells in rows]
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
    """Lines grouped by their data."""
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
    """One case per set, permutation and share: label rate 50 %, the mixture starting from 20."""
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
    """All, Old and New with K found, minus the same with K given; starts are averaged first."""
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
    """How well the count estimates the label rate."""
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
    print_table("Seconds per case", [*sets, "mean"], rows, "{:.1f}")


def report_special(lines):
    """One table per scenario. Without a novel class, the error is in categories."""
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
