"""``newfound bench table``: the paper's figures and ours side by side, a table per backbone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from newfound.bench.case import Case
from newfound.bench.record import Record
from newfound.bench.tables.budget import Budgets, choose_budgets
from newfound.bench.tables.cells import (
    ACCURACIES,
    FACTS,
    OTHER_FILES,
    TOLERANCE,
    Cell,
    count_broken,
    fill_cell,
)
from newfound.bench.tables.paper_plans import PLANS
from newfound.bench.tables.plan import PAPER, Column, TablePlan
from newfound.bench.tables.selection import fits
from newfound.errors import InputError

#: Ids of tables, as users type them; 7 stands for 7a and 7b.
NAMES = tuple(sorted([*PLANS, "7"], key=lambda name: (int("0" + name.rstrip("ablt")) or 99, name)))

_PAPER_MODEL = "vit_base_patch16_224.dino"
#: Letters of notes. There is no q, because Unicode has no superscript q.
_LETTERS = "abcdefghijklmnoprstuvwxyz"


@dataclass(frozen=True)
class Line:
    """A row of a finished table: titles, cells, and whether a rule is drawn above it."""

    titles: tuple[str, ...]
    cells: tuple[Cell, ...]
    ruled: bool = False


@dataclass(frozen=True)
class Table:
    """A finished table. All parts are plain text; a renderer escapes them.

    Attributes
    ----------
    title : str
        Number and subject of the table, and our backbone.
    stub : tuple of str
        Headings of the columns that hold the titles of rows.
    groups : tuple of (str, tuple of str)
        Headings of groups of columns, and the headings of the columns of each group.
    rows : tuple of Line
        Rows in the paper's order, including rows that the paper does not have.
    notes : tuple of str
        Remarks on how to compare the figures.
    """

    title: str
    stub: tuple[str, ...]
    groups: tuple[tuple[str, tuple[str, ...]], ...]
    rows: tuple[Line, ...]
    notes: tuple[str, ...]


class Backbone(NamedTuple):
    """Where features come from. Records of different backbones never share a cell."""

    model: str
    weights: str
    pretraining: str


def make_tables(
    name: str, records: Sequence[Record], *, epochs: int | None = None, draw: int = 0
) -> list[Table]:
    """A table of the paper with our results, once for each backbone.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    records : sequence of Record
        All records; those that belong in the table are chosen from them.
    epochs : int, optional
        Number of epochs of the runs to show. By default the budget that fills most cells is
        shown, and a note says so.
    draw : int
        Which draw of labels to show.

    Returns
    -------
    list of Table
        At least one table. Without records it shows only the paper's figures.
    """
    if name not in NAMES:
        raise InputError(f"There is no table {name!r}; choose one of {', '.join(NAMES)}.")
    plans = [PLANS["7a"], PLANS["7b"]] if name == "7" else [PLANS[name]]
    records = [record for record in records if record.case.draw == draw]
    return [table for plan in plans for table in _tables_of(plan, records, epochs)]


def _tables_of(plan: TablePlan, records: Sequence[Record], epochs: int | None) -> list[Table]:
    blocks: dict[Backbone, list[Record]] = defaultdict(list)
    for record in records:
        if _belongs(plan, record.case):
            blocks[_backbone(plan, record.case)].append(record)
    order = sorted(blocks, key=lambda backbone: (backbone.model != _PAPER_MODEL, backbone))
    tables = [_build(plan, blocks[key], key, epochs) for key in order]
    return tables or [_build(plan, [], None, None)]


def _backbone(plan: TablePlan, case: Case) -> Backbone:
    if plan.block == "all":
        return Backbone("", "", "")
    if plan.block == "model":
        return Backbone(case.model, "", "")
    # such weights are trained on the data set's own images, so they differ between data sets
    weights = "of each data set" if case.pretraining == "Target" else case.weights
    return Backbone(case.model, weights, case.pretraining)


def _belongs(plan: TablePlan, case: Case) -> bool:
    """Whether a table shows the outcome of a case, and not only facts about its data."""
    rows = [row for row in plan.rows if plan.block == "all" or row.show not in FACTS]
    return any(fits(case, row, column) for row in rows for column in plan.columns)


def _build(
    plan: TablePlan, records: list[Record], backbone: Backbone | None, epochs: int | None
) -> Table:
    # facts about data do not depend on how long was trained
    budgets, about = (None, "") if plan.block == "all" else choose_budgets(plan, records, epochs)
    lines = _lines(plan, records, budgets)
    # if all cells were run in the same way, one note replaces the letters
    runs = list(dict.fromkeys(cell.note for line in lines for cell in line.cells if cell.note))
    letters = {run: _letter(number) for number, run in enumerate(runs)} if len(runs) > 1 else {}
    notes = [
        *_reading_notes(plan, backbone),
        *([about] if about else []),
        *([f"Ours: {runs[0]}."] if len(runs) == 1 else []),
        *(f"{letter}: {run}." for run, letter in letters.items()),
        *_sum_notes(plan),
        *PAPER[plan.name]["notes"],
    ]
    return Table(
        title=_title(plan, backbone),
        stub=plan.stub,
        groups=_groups(plan.columns),
        rows=tuple(
            replace(line, cells=tuple(_lettered(line.cells, letters, plan.columns)))
            for line in lines
        ),
        notes=tuple(notes),
    )


def _lines(plan: TablePlan, records: list[Record], budgets: Budgets | None) -> list[Line]:
    """All rows of the paper, and those of ours that have a figure."""
    lines = []
    ruled = False
    for row in plan.rows:
        cells = tuple(fill_cell(plan, row, column, records, budgets) for column in plan.columns)
        ruled = ruled or row.ruled  # the rule above a row that is left out goes to the next one
        if row.paper or any(cell.ours for cell in cells):
            lines.append(Line(row.titles, cells, ruled))
            ruled = False
    return lines


def _lettered(
    cells: Iterable[Cell], letters: dict[str, str], columns: Iterable[Column]
) -> Iterable[Cell]:
    """Cells with letters in place of notes. All, Old and New of one run share a letter."""
    last = None
    for cell, column in zip(cells, columns, strict=True):
        place = (column.group, cell.note) if column.show in ACCURACIES else None
        repeated = place is not None and place == last and column.show != "all"
        last = place
        yield replace(cell, note="" if repeated else letters.get(cell.note, ""))


def _letter(number: int) -> str:
    times, place = divmod(number, len(_LETTERS))
    return _LETTERS[place] * (times + 1)


def _groups(columns: Iterable[Column]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    groups: dict[str, tuple[str, ...]] = {}
    for column in columns:
        groups[column.group] = (*groups.get(column.group, ()), column.title)
    return tuple(groups.items())


def _title(plan: TablePlan, backbone: Backbone | None) -> str:
    title = f"Table {plan.name}: {PAPER[plan.name]['title']}"
    if backbone is None or plan.block == "all":
        return title
    if plan.block == "model":
        return f"{title}; ours: {backbone.model}"
    start = backbone.pretraining
    seen = "not pretrained" if start == "none" else f"pretrained on {start}"
    return f"{title}; ours: {backbone.model}, weights {backbone.weights}, {seen}"


def _reading_notes(plan: TablePlan, backbone: Backbone | None) -> list[str]:
    first = "The paper | ours: mean over seeds ± standard deviation; – means no result."
    if plan.paired:
        first += (
            " In brackets after All: the difference to GPC with the same seeds and split; "
            f"{OTHER_FILES}: from other files of the same images."
        )
    if backbone is None:
        return [first, "None of our runs belongs in this table yet."]
    alike = backbone.model == _PAPER_MODEL and backbone.pretraining in ("ImageNet", "")
    if plan.block == "all" or alike:
        return [first]
    return [
        first,
        "The paper's figures come from ViT-B/16 with DINO weights from ImageNet, ours do not: "
        "compare our rows with each other, not with the paper's.",
    ]


def _sum_notes(plan: TablePlan) -> list[str]:
    """A note on how many of the paper's results contradict arithmetic."""
    broken, total = count_broken(plan)
    if not total:
        return []
    both = [count_broken(PLANS[name]) for name in ("1", "3")]
    beside = f"; in Tables 1 and 3 together {sum(b for b, _ in both)} of {sum(t for _, t in both)}"
    return [
        f"† All differs from w·Old + (1 − w)·New by more than {TOLERANCE}, where w is the share of "
        f"Old rows among the unlabelled ones: {broken} of the paper's {total} results here"
        f"{beside if plan.name in ('1', '3') else ''}."
    ]
