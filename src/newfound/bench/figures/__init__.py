"""``newfound bench figure``: the paper's figures, from runs that were made here.

What is drawn is worked out by functions that give arrays or numbers; drawing comes after.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from newfound.bench.figures.canvas import check_ending, save_figure
from newfound.errors import InputError

if TYPE_CHECKING:
    from newfound.bench.figures.runs import Runs

#: Id on the command line → module and function that gives a matplotlib figure.
_HOMES = {
    "tsne": ("maps", "draw_maps"),
    "prototypes": ("pictures", "draw_prototypes"),
    "variance": ("variance", "draw_variance"),
    "directions": ("directions", "draw_directions"),
    "k": ("epochs", "draw_counts"),
}
FIGURES = tuple(_HOMES)


def draw_figure(name: str, sources: list[str], runs: Runs, out: Path) -> None:
    """Draw a figure and write it to a file.

    Parameters
    ----------
    name : str
        One of `FIGURES`.
    sources : list of str
        Ids of data sets or paths of features: several for "variance", one for all others.
    runs : Runs
        Where everything lies.
    out : Path
        Its ending says the format: .png, .svg or .pdf.

    Raises
    ------
    InputError
        If there is no such figure or format, or a run is missing: the message has its command.
    """
    if name not in _HOMES:
        raise InputError(f"There is no figure {name!r}; there are {', '.join(FIGURES)}.")
    if len(sources) > 1 and name != "variance":
        raise InputError(f"The figure {name} is of one data set; got {', '.join(sources)}.")
    check_ending(out)
    module, function = _HOMES[name]
    draw = getattr(import_module(f"newfound.bench.figures.{module}"), function)
    save_figure(draw(sources if name == "variance" else sources[0], runs), out)
