"""What stands in a cell: the paper's figure, whether it can be true, and the mean of our runs.

Our figure is the mean over seeds of runs that differ in their seed alone. Of several such sets the
one with most epochs counts, but not with more than GPC was trained for on this data set (Table 6
has GCD at 1.5 times that, Table 12 has GPC at 800), unless there is nothing else.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from newfound.bench.case import Case, case_key
from newfound.bench.record import Record
from newfound.bench.tables.layout import DATASETS, PLAIN, Column, Layout, Row

#: What is so before a run begins; all values that there are stand in the cell.
FACTS = frozenset({"n_known", "n_novel_true", "n_labelled", "n_unlabelled"})
ACCURACIES = frozenset({"all", "old", "new"})
#: In percentage points; figures are rounded to 0.1.
TOLERANCE = 0.3

_PAPER_EPOCHS = 200


@dataclass(frozen=True)
class Cell:
    """The paper's figure and ours.

    Attributes
    ----------
    paper, ours : str
        Figures; "" where there is none.
    marked : bool
        Whether the paper's All is not what its Old and New give.
    note : str
        Letter of the note that says how ours was run; "" if all cells were run alike.
    """

    paper: str = ""
    ours: str = ""
    marked: bool = False
    note: str = ""


def fits(case: Case, row: Row, column: Column) -> bool:
    """Whether runs of a case belong into the cell of a row and a column."""
    asked = {**row.where, **column.where}
    return all(getattr(case, name) == value for name, value in asked.items()) and all(
        getattr(case, name) == value for name, value in PLAIN.items() if name not in asked
    )


def fill_cell(layout: Layout, row: Row, column: Column, records: list[Record]) -> Cell:
    """The cell of a row and a column.

    Parameters
    ----------
    layout, row, column
        Where it is.
    records : list of Record
        Those of one backbone.

    Returns
    -------
    Cell
        Its note still says in words how ours was run.
    """
    paper = layout.figures.get(row.paper, {}).get(column.paper, [])
    marked = column.show == "all" and len(paper) == 3 and breaks_sum(paper, _share(column))
    figure = paper[column.place] if paper else ""
    show = row.show or column.show
    found = [record for record in records if fits(record.case, row, column)]
    if show in FACTS:
        values = sorted({int(getattr(record, show)) for record in found})
        return Cell(figure, "; ".join(f"{value:,}" for value in values), marked)
    found = [record for record in found if _measure(record, show) is not None]
    seeds = _choose(layout, row, found, records)
    if not seeds:
        return Cell(figure, "", marked)
    measured = [value for record in seeds if (value := _measure(record, show)) is not None]
    return Cell(figure, _figure(measured, show, layout.spread), marked, _run(layout, seeds))


def _share(column: Column) -> float:
    return old_share(column.where["dataset"], column.where.get("overlap"))


def _choose(layout: Layout, row: Row, found: list[Record], records: list[Record]) -> list[Record]:
    """Of the records of a cell those that differ in their seed alone, the newest of each seed."""
    if not found:
        return []
    limit = math.inf if layout.longest else _epochs_of_gpc(records, found[0].case.dataset)
    groups: dict[str, dict[int, Record]] = defaultdict(dict)
    for record in sorted(found, key=lambda record: record.date):
        if not row.longer or abs(record.case.epochs - 1.5 * limit) < 1:
            key = record.split + case_key(record.case, without=("seed",))
            groups[key][record.case.seed] = record

    def rank(group: dict[int, Record]) -> tuple[bool, int, int, str]:
        epochs = next(iter(group.values())).case.epochs
        short = epochs <= limit
        newest = max(record.date for record in group.values())
        return short, epochs if short else -epochs, len(group), newest

    return list(max(groups.values(), key=rank, default={}).values())


def _epochs_of_gpc(records: list[Record], dataset: str) -> int:
    """How long GPC was trained on a data set, within the paper's 200 epochs."""
    cases = [record.case for record in records if record.case.dataset == dataset]
    epochs = [case.epochs for case in cases if case.method == "gpc"]
    return max((n for n in epochs if 0 < n <= _PAPER_EPOCHS), default=_PAPER_EPOCHS)


def _measure(record: Record, show: str) -> float | None:
    """What is shown of a record; None where it has no such value."""
    name, _, epoch = show.partition("@")
    value = getattr(record, name)
    if epoch:
        value = value[int(epoch) - 1] if len(value) >= max(int(epoch), 1) else None
    return None if value is None or math.isnan(value) else float(value)


def _figure(values: list[float], show: str, spread: bool) -> str:
    mean = fmean(values)
    whole = show not in ACCURACIES and mean == round(mean) and not spread
    text = f"{mean:,.0f}" if whole or show == "seconds" else f"{mean:,.1f}"
    return f"{text} ± {stdev(values):.1f}" if spread and len(values) > 1 else text


def _run(layout: Layout, seeds: list[Record]) -> str:
    """How the records of a cell were run, in words."""
    record, case = seeds[0], seeds[0].case
    trained = case.epochs and record.checkpoint != "no training"
    words = [f"{case.epochs} epochs" if trained else "no training"]
    words.append(f"{len(seeds)} seed{'s' if len(seeds) > 1 else ''}")
    facts, n_images = DATASETS[case.dataset], record.n_labelled + record.n_unlabelled
    if case.overlap is None and case.labelled_only is None:
        all_images = facts["n_labelled"] + facts["n_unlabelled"]
        if abs(n_images - all_images) > 0.01 * all_images:
            words.append(f"{n_images:,} images instead of {all_images:,}")
    if layout.block == "model" or case.pretraining == "Target":
        words.append(f"weights {case.weights}")
    if case.changes:
        words.append("changed: " + ", ".join(f"{k}={v}" for k, v in sorted(case.changes.items())))
    return ", ".join(words)


def breaks_sum(paper: Sequence[str], share: float) -> bool:
    """Whether All = w·Old + (1 − w)·New is off by more than 0.3.

    Parameters
    ----------
    paper : sequence of 3 str
        All, Old and New as printed, such as "55.4" or "55.3±0.4".
    share : float
        w, the share of Old rows among the unlabelled ones.
    """
    total, old, new = (float(figure.partition("±")[0]) for figure in paper)
    return abs(total - share * old - (1 - share) * new) > TOLERANCE + 1e-9


def old_share(dataset: str, overlap: int | None = None) -> float:
    """w: share of Old rows in D^u, of which there are as many as labelled ones.

    Parameters
    ----------
    dataset : str
        Id.
    overlap : int, optional
        Known classes that D^u holds, if not all; taken as equal in size.
    """
    facts = DATASETS[dataset]
    new = facts["n_unlabelled"] - facts["n_labelled"]
    old = facts["n_labelled"] * (1 if overlap is None else overlap / facts["n_known"])
    return float(old / (old + new))


def count_broken(layout: Layout) -> tuple[int, int]:
    """How many of the paper's results in a table break the sum, and of how many.

    Parameters
    ----------
    layout : Layout
        A table; one without All, Old and New has none.
    """
    columns = [column for column in layout.columns if column.show == "all"]
    results = [
        breaks_sum(row[column.paper], _share(column))
        for row in layout.figures.values()
        for column in columns
        if len(row[column.paper]) == 3
    ]
    return sum(results), len(results)
