"""What a table is made of, before anything was run: rows, columns, the paper's figures.

The paper's figures are in ``paper.json``, as printed. A cell is a row and a column: the fields
that the two ask of a case, put together, say which records count there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Literal, TypeAlias

Where: TypeAlias = Mapping[str, Any]
Figures: TypeAlias = Mapping[str, Mapping[str, list[str]]]

_PAPER = json.loads(
    resources.files("newfound.bench").joinpath("paper.json").read_text(encoding="utf-8")
)
#: Id of a data set → title, numbers of classes, and sizes of D^l and D^u as the field has them.
DATASETS: dict[str, dict[str, Any]] = _PAPER["datasets"]
#: Id of a table → title, the paper's figures, and what is to be said about them.
PAPER: dict[str, dict[str, Any]] = _PAPER["tables"]

#: What a case is where a table does not ask for something else.
PLAIN: Where = {
    "k_init": None,
    "overlap": None,
    "n_old": None,
    "labelled_only": None,
    "prototypes": "mixture",
    "joint": False,
}
#: Id of a method → title, and whether there is a run with PCA and one without.
METHODS = {
    "kmeans": ("k-means", True),
    "rankstats": ("RankStats+", False),
    "dualrank": ("DualRank", False),
    "uno": ("UNO+", False),
    "orca": ("ORCA", False),
    "gcd": ("Vaze et al. (GCD)", True),
    "simgcd": ("SimGCD", False),
    "gpc-literal": ("GPC literal", True),
    "gpc": ("GPC", True),
}


@dataclass(frozen=True)
class Row:
    """A line of a table.

    Attributes
    ----------
    titles : tuple of str
        What stands at its left.
    where : mapping
        Fields that a case must have.
    paper : str
        Key of the paper's figures; "" for a row that the paper does not have.
    show : str
        What of a record is shown, if not what the column says.
    longer : bool
        Whether it is of 1.5 times the epochs of the others.
    ruled : bool
        Whether there is a line above.
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
        Its two headings.
    where : mapping
        Fields that a case must have.
    paper, place : str, int
        Where the paper's figure is in its row.
    show : str
        Attribute of a record; with ``@200`` the value at that epoch, with ``@0`` the last one.
    """

    group: str
    title: str
    where: Where
    paper: str
    show: str
    place: int = 0


@dataclass(frozen=True)
class Layout:
    """A table as it is, whatever was run.

    Attributes
    ----------
    name : str
        Its number, with a letter where the paper has two under one.
    stub : tuple of str
        Headings of what stands at the left of the rows.
    rows, columns : tuple
        Of it.
    figures : mapping
        The paper's.
    block : {"backbone", "model", "all"}
        What our records must share to stand in one table.
    spread : bool
        Whether the standard deviation over seeds is shown.
    longest : bool
        Whether the longest run counts, however long.
    """

    name: str
    stub: tuple[str, ...]
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    figures: Figures = field(default_factory=dict)
    block: Literal["backbone", "model", "all"] = "backbone"
    spread: bool = False
    longest: bool = False
