"""``newfound bench figure``: the paper's figures, drawn from runs that were made here.

What is shown is computed by functions that return arrays or numbers; drawing comes after that. A
figure is imported when it is drawn, because most of them need torch and matplotlib.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from newfound.bench.figures.canvas import check_ending, save_figure
from newfound.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from newfound.bench.figures.runs import Runs

#: Draws a figure of one data set; only "variance" takes several.
_Draw: TypeAlias = "Callable[[list[str], Runs], Figure]"


def _tsne(sources: list[str], runs: Runs) -> Figure:
    from newfound.bench.figures.maps import draw_maps

    return draw_maps(sources[0], runs)


def _prototypes(sources: list[str], runs: Runs) -> Figure:
    from newfound.bench.figures.pictures import draw_prototypes

    return draw_prototypes(sources[0], runs)


def _variance(sources: list[str], runs: Runs) -> Figure:
    from newfound.bench.figures.variance import draw_variance

    return draw_variance(sources, runs)


def _directions(sources: list[str], runs: Runs) -> Figure:
    from newfound.bench.figures.directions import draw_directions

    return draw_directions(sources[0], runs)


def _k(sources: list[str], runs: Runs) -> Figure:
    from newfound.bench.figures.epochs import draw_counts

    return draw_counts(sources[0], runs)


#: Id on the command line → function that imports the figure and draws it.
_DRAWERS: dict[str, _Draw] = {
    "tsne": _tsne,
    "prototypes": _prototypes,
    "variance": _variance,
    "directions": _directions,
    "k": _k,
}
FIGURES = tuple(_DRAWERS)


def draw_figure(name: str, sources: list[str], runs: Runs, out: Path) -> None:
    """Draw a figure and write it to a file.

    Parameters
    ----------
    name : str
        One of `FIGURES`.
    sources : list of str
        Ids of data sets or paths of feature files: one, for "variance" also several.
    runs : Runs
        Where runs and results are.
    out : Path
        File to write. Its ending gives the format: .png, .svg or .pdf.

    Raises
    ------
    InputError
        If there is no such figure or format, or if a run is missing. The message then has the
        command that makes the run.
    """
    if name not in _DRAWERS:
        raise InputError(f"There is no figure {name!r}; choose one of {', '.join(FIGURES)}.")
    if len(sources) > 1 and name != "variance":
        raise InputError(f"The figure {name} takes one data set; got {', '.join(sources)}.")
    check_ending(out)
    save_figure(_DRAWERS[name](sources, runs), out)
