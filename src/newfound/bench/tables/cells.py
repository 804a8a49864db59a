"""The content of a cell: the paper's figure, whether it can be true, and the mean of our runs.

Our figure is the mean over runs that differ only in their seed. If there are several such groups,
the one with the most epochs counts. Groups that were trained for longer than GPC on this data set
count only if there is nothing else, because Table 6 needs GCD with 1.5 times as many epochs and
Table 12 needs GPC with 800.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from newfound.bench.case import Case, case_key
from newfound.bench.record import Record
from newfound.bench.tables.plan import DATASETS, PLAIN, Column, Row, TablePlan

#: Facts that do not depend on the run. A cell shows all values that occur.
FACTS = frozenset({"n_known", "n_novel_true", "n_labelled", "n_unlabelled"})
ACCURACIES = frozenset({"all", "old", "new"})
#: Tolerance in percentage points; the paper's figures are rounded to 0.1.
TOLERANCE = 0.3

_PAPER_EPOCHS = 200


@dataclass(frozen=True)
class Cell:
    """The paper's figure and ours.

    Attributes
    ----------
    paper, ours : str
        Figures; "" if there is none.
    marked : bool
        Whether the paper's All contradicts its Old and New.
    note : str
        Letter of the note that describes our runs; "" if all cells were run in the same way.
    """

    paper: str = ""
    ours: str = ""
    marked: bool = False
    note: str = ""


def fits(case: Case, row: Row, column: Column) -> bool:
    """Whether runs of a case belong in the cell of a row and a column."""
    asked = {**row.where, **column.where}
    return all(getattr(case, name) == value for name, value in asked.items()) and all(
        getattr(case, name) == value for name, value in PLAIN.items() if name not in asked
    )


def fill_cell(plan: TablePlan, row: Row, column: Column, records: list[Record]) -> Cell:
    """The cell of a row and a column.

    Parameters
    ----------
    plan, row, column
        Position of the cell.
    records : list of Record
        Records of one backbone.

    Returns
    -------
    Cell
        The cell. Its note describes our runs in words; a table turns it into a letter.
    """
    paper = plan.figures.get(row.paper, {}).get(column.paper, [])
    marked = column.show == "all" and len(paper) == 3 and breaks_sum(paper, _share(column))
    figure = paper[column.place] if paper else ""
    show = row.show or column.show
    found = [record for record in records if fits(record.case, row, column)]
    if show in FACTS:
        values = sorted({int(getattr(record, show)) for record in found})
        return Cell(figure, "; ".join(f"{value:,}" for value in values), marked)
    found = [record for record in found if _measure(record, show) is not None]
    seeds = _choose(plan, row, found, records)
    if not seeds:
        return Cell(figure, "", marked)
    measured = [value for record in seeds if (value := _measure(record, show)) is not None]
    return Cell(figure, _figure(measured, show, plan.spread), marked, _run(plan, seeds))


def _share(column: Column) -> float:
    return old_share(column.where["dataset"], column.where.get("overlap"))


def _choose(plan: TablePlan, row: Row, found: list[Record], records: list[Record]) -> list[Record]:
    """The records that a cell averages: one group of equal cases, the newest record per seed."""
    if not found:
        return []
    # a method must not win by longer training than GPC had
    limit = math.inf if plan.longest else _epochs_of_gpc(records, found[0].case.dataset)
    groups: dict[str, dict[int, Record]] = defaultdict(dict)
    for record in sorted(found, key=lambda record: record.date):
        if not row.longer or abs(record.case.epochs - 1.5 * limit) < 1:
            key = record.split + case_key(record.case, without=("seed",))
            groups[key][record.case.seed] = record

    def rank(group: dict[int, Record]) -> tuple[bool, int, int, str]:
        epochs = next(iter(group.values())).case.epochs
        short = epochs <= limit
        newest = max(record.date for record in group.values())
        # among runs that are too long, the shortest is nearest to the protocol
        return short, epochs if short else -epochs, len(group), newest

    return list(max(groups.values(), key=rank, default={}).values())


def _epochs_of_gpc(records: list[Record], dataset: str) -> int:
    """Number of epochs of the longest GPC run on a data set, up to the paper's 200."""
    cases = [record.case for record in records if record.case.dataset == dataset]
    epochs = [case.epochs for case in cases if case.method == "gpc"]
    return max((n for n in epochs if 0 < n <= _PAPER_EPOCHS), default=_PAPER_EPOCHS)


def _measure(record: Record, show: str) -> float | None:
    """The value of a record that is shown; None if the record has none."""
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


def _run(plan: TablePlan, seeds: list[Record]) -> str:
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
    if plan.block == "model" or case.pretraining == "Target":
        words.append(f"weights {case.weights}")
    if case.changes:
        words.append("changed: " + ", ".join(f"{k}={v}" for k, v in sorted(case.changes.items())))
    return ", ".join(words)


def breaks_sum(paper: Sequence[str], share: float) -> bool:
    """Whether All differs from w·Old + (1 − w)·New by more than 0.3.

    Parameters
    ----------
    paper : sequence of 3 str
        All, Old and New as printed, such as "55.4" or "55.3±0.4".
    share : float
        w, the share of Old rows among the unlabelled ones.
    """
    total, old, new = (float(figure.partition("±")[0]) for figure in paper)
    # 1e-9 allows for rounding, so that a difference of exactly 0.3 passes
    return abs(total - share * old - (1 - share) * new) > TOLERANCE + 1e-9


def old_share(dataset: str, overlap: int | None = None) -> float:
    """w, the share of Old rows in D^u. There are as many of them as labelled rows.

    Parameters
    ----------
    dataset : str
        Id.
    overlap : int, optional
        How many known classes occur in D^u, if not all. They are taken to be equal in size.
    """
    facts = DATASETS[dataset]
    new = facts["n_unlabelled"] - facts["n_labelled"]
    old = facts["n_labelled"] * (1 if overlap is None else overlap / facts["n_known"])
    return float(old / (old + new))


def count_broken(plan: TablePlan) -> tuple[int, int]:
    """How many of the paper's results in a table contradict the sum, and how many there are.

    Parameters
    ----------
    plan : TablePlan
        A table. Without columns All, Old and New both numbers are 0.
    """
    columns = [column for column in plan.columns if column.show == "all"]
    results = [
        breaks_sum(row[column.paper], _share(column))
        for row in plan.figures.values()
        for column in columns
        if len(row[column.paper]) == 3
    ]
    return sum(results), len(results)
