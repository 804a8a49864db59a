"""Plans of tables: their rows, their columns and the paper's figures, before anything is run.

The paper's figures are in ``paper.json``, as printed. Row and column each require certain fields
of a case. A record belongs in a cell if its case has the fields of both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Literal, NamedTuple, TypeAlias

from newfound.bench.case import USUAL, KSource

Where: TypeAlias = Mapping[str, Any]
Figures: TypeAlias = Mapping[str, Mapping[str, list[str]]]

_PAPER = json.loads(
    resources.files("newfound.bench").joinpath("paper.json").read_text(encoding="utf-8")
)
#: Id of a data set → title, numbers of classes, and the field's sizes of D^l and D^u.
DATASETS: dict[str, dict[str, Any]] = _PAPER["datasets"]
#: Id of a table → title, the paper's figures, and notes on them. One table is ours alone.
PAPER: dict[str, dict[str, Any]] = {
    **_PAPER["tables"],
    "lt": {"title": "Classes of unequal sizes, not in the paper", "rows": {}, "notes": []},
}

#: Fields that a case must have unless a table asks for something else.
PLAIN: Where = {**USUAL, "hidden": False}


class MethodRow(NamedTuple):
    """Title of a method, whether it has rows with and without PCA, and how it finds K itself."""

    title: str
    has_pca: bool = False
    own_k: KSource = "brent"


METHODS = {
    "kmeans": MethodRow("k-means", has_pca=True),
    "mixture": MethodRow("our mixture, frozen features", has_pca=True, own_k="count"),
    "rankstats": MethodRow("RankStats+"),
    "dualrank": MethodRow("DualRank"),
    "uno": MethodRow("UNO+"),
    "orca": MethodRow("ORCA"),
    "gcd": MethodRow("Vaze et al. (GCD)", has_pca=True),
    "pim": MethodRow("PIM"),
    "cms": MethodRow("CMS", own_k="own"),
    "dccl": MethodRow("DCCL", own_k="own"),
    "simgcd": MethodRow("SimGCD"),
    "bacon": MethodRow("BaCon"),
    "gpc-literal": MethodRow("GPC literal", has_pca=True, own_k="own"),
    "gpc": MethodRow("GPC", has_pca=True, own_k="count"),
}


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes
    ----------
    titles : tuple of str
        Texts of its first columns.
    where : mapping
        Fields that a case must have.
    paper : str
        Key of the paper's figures; "" if the paper does not have the row.
    show : str
        Attribute of a record that is shown, if not the column's.
    longer : bool
        Whether it shows runs with 1.5 times as many epochs as the other rows.
    ruled : bool
        Whether a rule is drawn above it.
    """

    titles: tuple[str, ...]
    where: Where
    paper: str = ""
    show: str = ""
    longer: bool = False
    ruled: bool = False


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    group, title : str
        Heading of its group of columns, and its own.
    where : mapping
        Fields that a case must have.
    paper, place : str, int
        Key and position of the paper's figure in its row.
    show : str
        Attribute of a record that is shown. With ``@200`` the value at epoch 200, with ``@0`` the
        value at the last epoch.
    """

    group: str
    title: str
    where: Where
    paper: str
    show: str
    place: int = 0


@dataclass(frozen=True)
class TablePlan:
    """A table before it is filled with results.

    Attributes
    ----------
    name : str
        Number of the table, with a letter where the paper has two tables under one number.
    stub : tuple of str
        Headings of the first columns, which hold the titles of rows.
    rows, columns : tuple
        Rows and columns.
    figures : mapping
        The paper's figures.
    block : {"backbone", "model", "all"}
        What our records must have in common to be shown in one table.
    paired : bool
        Whether All is followed by the paired difference to GPC.
    longest : bool
        Whether the longest budget is shown, instead of the one that fills most cells.
    """

    name: str
    stub: tuple[str, ...]
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    figures: Figures = field(default_factory=dict)
    block: Literal["backbone", "model", "all"] = "backbone"
    paired: bool = False
    longest: bool = False
