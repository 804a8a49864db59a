"""Tables and figure of the situations, made from the lines of results files of `find_k.py`."""

import math
from statistics import median

from find_k_cases import NEIGHBOUR, NOTHING_NOVEL, SITUATION_START, SITUATIONS, case_of, code_of
from find_k_report import has_interval, mean, print_table, relative_error

RIVAL_TITLES = {"brent_search": "Brent", "ward_labelled_score": "Ward"}
EASY = 0.5  # sets whose classes can be told apart have at least this accuracy of 1-NN
MISS_WEIGHT = 2 / 0.1  # of the interval score at the level of 90 %
HALF = 0.5  # K^n need not be whole, so intervals are widened by a half


def missed_by(line):
    """Distance of the truth from the interval, which is widened by 1/2 on both sides."""
    low, high = line["interval"]
    return max(0.0, low - HALF - line["truth"], line["truth"] - high - HALF)


def holds(line):
    return float(missed_by(line) == 0)


def width(line):
    """Width over the truth; without a novel class, the width itself."""
    low, high = line["interval"]
    return (high - low) / max(1, line["truth"])


def interval_score(line):
    """Width plus a penalty for a missed truth, over the truth. Smaller is better."""
    return width(line) + MISS_WEIGHT * missed_by(line) / max(1, line["truth"])


def percent(value, lines):
    """Text of a mean over lines. Without a novel class it is a number of categories."""
    return f"{value:.1f}" if is_without_novel(lines) else f"{value:.0%}"


def is_without_novel(lines):
    return all(line["truth"] == 0 for line in lines)


def error_cell(lines):
    """Mean error; without a novel class, the mean K^n and how often it is 0 when rounded."""
    if is_without_novel(lines):
        zeros = sum(round(line["n_novel"]) == 0 for line in lines)
        return f"{mean(line['n_novel'] for line in lines):.1f}, {zeros}/{len(lines)}"
    return f"{mean(relative_error(line) for line in lines):.0%}"


def holds_cell(lines):
    return f"{mean(holds(line) for line in lines):.0%}"


def width_cell(lines):
    return percent(median(width(line) for line in lines), lines)


def score_cell(lines):
    return percent(mean(interval_score(line) for line in lines), lines)


def given_cell(lines):
    return f"{100 * mean(line['all'] for line in lines):.1f}"


def gain_cell(lines):
    return f"{100 * mean(line['gain'] for line in lines):+.1f}"


def spread_cell(lines):
    return percent(mean(line["spread"] for line in lines), lines)


def report_situations(lines):
    """Print errors, intervals and accuracies by situation and by set."""
    easy = easy_sets(lines)
    lines = with_comparisons([line for line in lines if line["method"] != NEIGHBOUR])
    columns = columns_of(lines)
    novel = [line for line in lines if line["scenario"] != NOTHING_NOVEL]
    easy_rows = ("1-NN >= 50 %", [line for line in novel if line["set"] in easy])
    ends = [("all with novel classes", novel), easy_rows]
    situations = [
        (name, [line for line in lines if line["scenario"] == name]) for name in SITUATIONS
    ]
    names = sorted({line["set"] for line in lines})
    sets = [(name, [line for line in novel if line["set"] == name]) for name in names]
    for what, rows in (("situation", situations), ("set, with novel classes", sets)):
        for title, of_title in columns.items():
            print_columns(f"{title}, by {what}", of_title, [*rows, *ends])
    print(f"\nSets with a 1-NN accuracy of at least {EASY:.0%}: {', '.join(sorted(easy))}")
    endless = sum(line["method"] == "count" and not has_interval(line) for line in lines)
    if endless:
        print(f"{endless} counts have no finite interval and are left out of its columns")


def print_columns(title, columns, rows):
    """Print a table. Each column has a head, a test that selects lines, and a cell function."""
    rows = [(name, mine) for name, mine in rows if mine]
    columns = [
        (head, selects, cell)
        for head, selects, cell in columns
        if any(selects(line) for _, mine in rows for line in mine)
    ]
    if not columns:
        return
    table = []
    for name, mine in rows:
        chosen = [[line for line in mine if selects(line)] for _, selects, _ in columns]
        cells = [
            cell(of_column) if of_column else math.nan
            for of_column, (_, _, cell) in zip(chosen, columns, strict=True)
        ]
        table.append((name, cells))
    print_table(title, [head for head, _, _ in columns], table)


def columns_of(lines):
    """Columns of the tables: title → (head, test of a line, cell function)."""
    codes = codes_in(lines)
    errors = [
        (f"{method} {code}", selects(method, code), error_cell)
        for method in ("count", "mixture")
        for code in codes
    ]
    errors += [(title, selects(name), error_cell) for name, title in RIVAL_TITLES.items()]
    intervals = [
        (f"{what} {code}", selects("count", code, has_interval), cell)
        for what, cell in (("holds", holds_cell), ("width", width_cell), ("score", score_cell))
        for code in codes
    ]
    accuracies = []
    for code in codes:
        accuracies += [
            (f"All given K {code}", selects("given K", code), given_cell),
            (f"found - given {code}", selects("mixture", code, lambda x: "gain" in x), gain_cell),
            (f"spread {code}", selects("mixture", code, lambda x: "spread" in x), spread_cell),
        ]
    return {
        "Mean error max(0, |K^n - truth| - 1/2) / truth": errors,
        "90 % interval of the count (holds, median width / truth, interval score)": intervals,
        "All of the mixture, and spread of K^n over K_init, (max - min) / truth": accuracies,
    }


def selects(method, code=None, condition=None):
    """Test whether a line is of a method and a code. The mixture's main start counts."""

    def test(line):
        return (
            line["method"] == method
            and code in (None, code_of(line))
            and line["init"] in (None, SITUATION_START)
            and (condition is None or condition(line))
        )

    return test


def codes_in(lines):
    """The tags of the lines; "now" is the last."""
    return sorted({code_of(line) for line in lines}, key=lambda code: (code == "now", code))


def easy_sets(lines):
    """Sets in which the nearest neighbour of most rows is of the same class."""
    return {
        line["set"] for line in lines if line["method"] == NEIGHBOUR and line["accuracy"] >= EASY
    }


def with_comparisons(lines):
    """Lines; those of the mixture with All found minus All given and the spread over starts."""
    given, starts = {}, {}
    for line in lines:
        if line["method"] == "given K":
            given[draw_of(line)] = line["all"]
        elif line["method"] == "mixture":
            starts.setdefault(draw_of(line), []).append(line["n_novel"])
    compared = []
    for line in lines:
        if line["method"] == "mixture":
            found = starts[draw_of(line)]
            if draw_of(line) in given:
                line = line | {"gain": line["all"] - given[draw_of(line)]}
            if len(found) > 1:
                line = line | {"spread": (max(found) - min(found)) / max(1, line["truth"])}
        compared.append(line)
    return compared


def draw_of(line):
    return case_of(line).data, code_of(line)


def draw_figure(lines, path):
    """Draw the error of K^n by situation above, and how often the interval holds it below."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    lines = [line for line in lines if line["method"] != NEIGHBOUR]
    names = [name for name in SITUATIONS if any(line["scenario"] == name for line in lines)]
    figure, (errors, coverage) = plt.subplots(
        2, 1, figsize=(12, 7), sharex=True, height_ratios=[3, 2]
    )
    styles = series_of(codes_in(lines))
    for number, (title, test, style) in enumerate(styles):
        mine = [line for line in lines if test(line)]
        if not mine:
            continue
        shift = (number - (len(styles) - 1) / 2) * 0.16
        of_novel = [line for line in mine if line["truth"] > 0]
        draw_means(errors, names, of_novel, relative_error, shift, style | {"label": title})
        with_interval = [line for line in mine if line.get("interval") and has_interval(line)]
        draw_means(coverage, names, with_interval, holds, shift, style)
    errors.set_yscale("symlog", linthresh=0.1, linscale=0.5)
    top = 1.3 * errors.dataLim.y1
    ticks = [tick for tick in (0, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if tick <= top]
    errors.set_yticks(ticks, [f"{100 * tick:.0f} %" for tick in ticks])
    errors.set_yticks([], minor=True)
    errors.set_ylim(-0.01, top)
    errors.set_ylabel("mean error of K$^n$, over the truth")
    errors.legend(ncols=len(styles), loc="lower center", bbox_to_anchor=(0.5, 1), frameon=False)
    coverage.axhline(0.9, color="black", linestyle="--", linewidth=1)
    coverage.text(len(names) - 0.45, 0.9, "90 %", va="center")
    coverage.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    coverage.set_ylim(-0.05, 1.05)
    coverage.set_ylabel("90 % intervals that\nhold the truth")
    coverage.set_xlim(-0.5, len(names) - 0.5)
    coverage.set_xticks(range(len(names)), names, rotation=35, ha="right", rotation_mode="anchor")
    for axis in (errors, coverage):
        axis.grid(axis="y", alpha=0.3)
        for place in range(0, len(names), 2):
            axis.axvspan(place - 0.5, place + 0.5, color="black", alpha=0.04, linewidth=0)
    if NOTHING_NOVEL in names:
        place = names.index(NOTHING_NOVEL)
        errors.text(place, 0.05, "the truth\nis 0", ha="center", va="center", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def series_of(codes):
    """Legend, test of a line and style of each series, in the colours of Okabe and Ito."""
    shades = {"before": {"color": "#56B4E9", "marker": "o"}, "now": {"color": "#0072B2"}}
    ours = [
        (f"our count, {code}", selects("count", code), {"marker": "s"} | shades.get(code, {}))
        for code in codes
    ]
    return [
        *ours,
        ("Brent's search", selects("brent_search"), {"color": "#D55E00", "marker": "^"}),
        ("Ward's tree", selects("ward_labelled_score"), {"color": "#CC79A7", "marker": "D"}),
    ]


def draw_means(axis, names, lines, measure, shift, style):
    """One mark per situation: the mean over sets and permutations."""
    means = [mean(measure(line) for line in lines if line["scenario"] == name) for name in names]
    places = [place + shift for place in range(len(names))]
    axis.plot(places, means, linestyle="", markersize=7, **style)
