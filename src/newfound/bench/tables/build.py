"""``newfound bench table``: the paper's figures and ours, side by side, a table a backbone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from newfound.bench.case import Case
from newfound.bench.record import Record
from newfound.bench.tables.cells import (
    ACCURACIES,
    FACTS,
    TOLERANCE,
    Cell,
    count_broken,
    fill_cell,
    fits,
)
from newfound.bench.tables.layout import PAPER, Column, Layout
from newfound.bench.tables.paper import LAYOUTS
from newfound.errors import InputError

#: Ids of tables, as users type them; 7 is 7a and 7b.
NAMES = tuple(sorted([*LAYOUTS, "7"], key=lambda name: (int(name.rstrip("ab")), name)))

_PAPER_MODEL = "vit_base_patch16_224.dino"
#: Without q, which has no superscript.
_LETTERS = "abcdefghijklmnoprstuvwxyz"


@dataclass(frozen=True)
class Line:
    """A row of a finished table: titles, cells, and whether there is a rule above."""

    titles: tuple[str, ...]
    cells: tuple[Cell, ...]
    ruled: bool = False


@dataclass(frozen=True)
class Table:
    """A finished table, plain text in all its parts.

    Attributes
    ----------
    title : str
        Number, subject and our backbone.
    stub : tuple of str
        Headings of the titles of the rows.
    groups : tuple of (str, tuple of str)
        Headings over one or more columns, and those of the columns.
    rows : tuple of Line
        In the paper's order, rows that the paper does not have among them.
    notes : tuple of str
        What to know before comparing.
    """

    title: str
    stub: tuple[str, ...]
    groups: tuple[tuple[str, tuple[str, ...]], ...]
    rows: tuple[Line, ...]
    notes: tuple[str, ...]


class Backbone(NamedTuple):
    """What features come from; records of different ones are never in one cell."""

    model: str
    weights: str
    pretraining: str


def make_tables(name: str, records: Sequence[Record]) -> list[Table]:
    """A table of the paper with our results, once for each backbone among them.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    records : sequence of Record
        All there are; those that belong into the table are picked out.

    Returns
    -------
    list of Table
        At least one: without records it has the paper's figures alone.
    """
    if name not in NAMES:
        raise InputError(f"There is no table {name!r}; there are {', '.join(NAMES)}.")
    layouts = [LAYOUTS["7a"], LAYOUTS["7b"]] if name == "7" else [LAYOUTS[name]]
    return [table for layout in layouts for table in _tables_of(layout, records)]


def _tables_of(layout: Layout, records: Sequence[Record]) -> list[Table]:
    blocks: dict[Backbone, list[Record]] = defaultdict(list)
    for record in records:
        if _belongs(layout, record.case):
            blocks[_backbone(layout, record.case)].append(record)
    order = sorted(blocks, key=lambda backbone: (backbone.model != _PAPER_MODEL, backbone))
    return [_build(layout, blocks[key], key) for key in order] or [_build(layout, [], None)]


def _backbone(layout: Layout, case: Case) -> Backbone:
    if layout.block == "all":
        return Backbone("", "", "")
    if layout.block == "model":
        return Backbone(case.model, "", "")
    # pretrained on each data set's own images: other weights for each
    weights = "of each data set" if case.pretraining == "Target" else case.weights
    return Backbone(case.model, weights, case.pretraining)


def _belongs(layout: Layout, case: Case) -> bool:
    """Whether a table shows what came out of a case, not only what data it was run on."""
    rows = [row for row in layout.rows if layout.block == "all" or row.show not in FACTS]
    return any(fits(case, row, column) for row in rows for column in layout.columns)


def _build(layout: Layout, records: list[Record], backbone: Backbone | None) -> Table:
    lines = [
        Line(
            row.titles,
            tuple(fill_cell(layout, row, column, records) for column in layout.columns),
            row.ruled,
        )
        for row in layout.rows
    ]
    runs = list(dict.fromkeys(cell.note for line in lines for cell in line.cells if cell.note))
    letters = {run: _letter(number) for number, run in enumerate(runs)} if len(runs) > 1 else {}
    notes = [
        *_reading_notes(layout, backbone),
        *([f"Ours: {runs[0]}."] if len(runs) == 1 else []),
        *(f"{letter}: {run}." for run, letter in letters.items()),
        *_sum_notes(layout),
        *PAPER[layout.name]["notes"],
    ]
    return Table(
        title=_title(layout, backbone),
        stub=layout.stub,
        groups=_groups(layout.columns),
        rows=tuple(
            replace(line, cells=tuple(_lettered(line.cells, letters, layout.columns)))
            for line in lines
        ),
        notes=tuple(notes),
    )


def _lettered(
    cells: Iterable[Cell], letters: dict[str, str], columns: Iterable[Column]
) -> Iterable[Cell]:
    """Cells with the letters of their notes; one letter does for All, Old and New."""
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


def _title(layout: Layout, backbone: Backbone | None) -> str:
    title = f"Table {layout.name}: {PAPER[layout.name]['title']}"
    if backbone is None or layout.block == "all":
        return title
    if layout.block == "model":
        return f"{title}; ours: {backbone.model}"
    start = backbone.pretraining
    seen = "not pretrained" if start == "none" else f"pretrained on {start}"
    return f"{title}; ours: {backbone.model}, weights {backbone.weights}, {seen}"


def _reading_notes(layout: Layout, backbone: Backbone | None) -> list[str]:
    first = "The paper | ours, mean over seeds; – where there is nothing."
    if backbone is None:
        return [first, "No run of ours belongs into this table yet."]
    alike = backbone.model == _PAPER_MODEL and backbone.pretraining in ("ImageNet", "")
    if layout.block == "all" or alike:
        return [first]
    return [
        first,
        "The paper's figures are of ViT-B/16 with DINO weights from ImageNet, ours are not: "
        "compare our rows with each other, not with the paper's.",
    ]


def _sum_notes(layout: Layout) -> list[str]:
    """How many results of the paper are not what they must be by arithmetic."""
    broken, total = count_broken(layout)
    if not total:
        return []
    both = [count_broken(LAYOUTS[name]) for name in ("1", "3")]
    beside = f"; in Tables 1 and 3 together {sum(b for b, _ in both)} of {sum(t for _, t in both)}"
    return [
        f"† All is not w·Old + (1 − w)·New within {TOLERANCE}, w being the share of Old rows "
        f"among the unlabelled: {broken} of the paper's {total} results here"
        f"{beside if layout.name in ('1', '3') else ''}."
    ]
