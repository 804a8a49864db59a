"""The content of a cell: the paper's figure, whether it can be true, and the mean of our runs.

Our figure is the mean over runs of the table's budget that differ only in their seed, with the
standard deviation if there are several. In the main tables All is followed by the difference to
GPC, paired: the mean over the seeds that both have on the same split.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from newfound.bench.record import Record
from newfound.bench.tables.budget import Budgets
from newfound.bench.tables.plan import DATASETS, Column, Row, TablePlan
from newfound.bench.tables.selection import fits, one_group

#: Facts that do not depend on the run. A cell shows all values that occur.
FACTS = frozenset({"n_known", "n_novel_true", "n_labelled", "n_unlabelled"})
ACCURACIES = frozenset({"all", "old", "new"})
#: Mark of a difference between runs whose images were stored in other files, or it is not known.
OTHER_FILES = "‡"
#: Tolerance in percentage points; the paper's figures are rounded to 0.1.
TOLERANCE = 0.3


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


def fill_cell(
    plan: TablePlan,
    row: Row,
    column: Column,
    records: list[Record],
    budgets: Budgets | None,
) -> Cell:
    """The cell of a row and a column.

    Parameters
    ----------
    plan, row, column
        Position of the cell.
    records : list of Record
        Records of one backbone.
    budgets : Budgets or None
        The budgets of the table; None if no run was trained.

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
    seeds = _runs_of(row, column, show, records, budgets)
    if not seeds:
        return Cell(figure, "", marked)
    ours = _figure([_measured(record, show) for record in seeds], show)
    if plan.paired and show == "all":
        ours += _difference(seeds, _runs_of(_ours(row), column, show, records, budgets))
    return Cell(figure, ours, marked, _run(plan, seeds))


def _share(column: Column) -> float:
    return old_share(column.where["dataset"], column.where.get("overlap"))


def _runs_of(
    row: Row,
    column: Column,
    show: str,
    records: list[Record],
    budgets: Budgets | None,
) -> list[Record]:
    """The runs that a cell averages, one for each seed."""
    return one_group(
        record
        for record in records
        if fits(record.case, row, column)
        and _measure(record, show) is not None
        and (budgets is None or budgets.admits(record.case, row))
    )


def _ours(row: Row) -> Row:
    """The row of GPC to compare with: K given like the other's, or found by the count."""
    k = "known" if row.where.get("k") == "known" else "count"
    where = {name: row.where[name] for name in ("pretraining",) if name in row.where}
    return replace(row, where={**where, "method": "gpc", "pca": True, "k": k})


def _difference(seeds: list[Record], ours: list[Record]) -> str:
    """Mean and standard deviation of the differences to GPC with the same seed and split."""
    by_seed = {(record.case.seed, record.split): record for record in ours}
    found = [(record, by_seed.get((record.case.seed, record.split))) for record in seeds]
    pairs = [(one, other) for one, other in found if other and other is not one]
    if not pairs:
        return ""
    values = [one.all - other.all for one, other in pairs]
    spread = f" ± {stdev(values):.1f}" if len(values) > 1 else ""
    mark = OTHER_FILES if any(one.files != other.files for one, other in pairs) else ""
    return f" ({fmean(values):+.1f}{spread}{mark})".replace("-", "−")


def _measured(record: Record, show: str) -> float:
    value = _measure(record, show)
    assert value is not None  # such runs were left out
    return value


def _measure(record: Record, show: str) -> float | None:
    """The value of a record that is shown; None if the record has none."""
    name, _, epoch = show.partition("@")
    value = getattr(record, name)
    if epoch:
        value = value[int(epoch) - 1] if len(value) >= max(int(epoch), 1) else None
    return None if value is None or math.isnan(value) else float(value)


def _figure(values: list[float], show: str) -> str:
    mean = fmean(values)
    spread = len(values) > 1 and show != "seconds"
    whole = show not in ACCURACIES and mean == round(mean) and not spread
    text = f"{mean:,.0f}" if whole or show == "seconds" else f"{mean:,.1f}"
    return f"{text} ± {stdev(values):.1f}" if spread else text


def _run(plan: TablePlan, seeds: list[Record]) -> str:
    """How the records of a cell were run, in words."""
    record, case = seeds[0], seeds[0].case
    trained = case.epochs and record.checkpoint != "no training"
    words = [f"{case.epochs} epochs" if trained else "no training"]
    words.append(f"{len(seeds)} seed{'s' if len(seeds) > 1 else ''}")
    facts, n_images = DATASETS.get(case.dataset), record.n_labelled + record.n_unlabelled
    if facts is not None and case.overlap is None and case.labelled_only is None:
        all_images = facts["n_labelled"] + facts["n_unlabelled"]
        if abs(n_images - all_images) > 0.01 * all_images:
            words.append(f"{n_images:,} images instead of {all_images:,}")
    if plan.block == "model" or case.pretraining == "Target":
        words.append(f"weights {case.weights}")
    if case.trial is not None:
        words.append(f"tuned (trial {case.trial})")
    if case.changes:
        words.append("changed: " + ", ".join(f"{k}={v}" for k, v in sorted(case.changes.items())))
    return ", ".join([*words, *_origin(seeds)])


def _origin(seeds: list[Record]) -> list[str]:
    """The commits that ran, and what older lines do not say."""
    commits = sorted({record.commit[:10] for record in seeds if record.commit})
    dirty = any(record.clean is False for record in seeds)
    words = [f"commit {' and '.join(commits)}{' with changes' if dirty else ''}"] if commits else []
    if not all(record.commit for record in seeds):
        words.append("commit not recorded")
    if not all(record.settings for record in seeds):
        words.append("settings not recorded")
    return words


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
