"""Size, colours and line styles of all figures, and how they are saved."""

from __future__ import annotations

import io
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from newfound.errors import InputError, require
from newfound.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Paul Tol's "muted" scheme and black, which can be told apart with any kind of colour vision.
COLOURS = (
    *("#332288", "#CC6677", "#117733", "#88CCEE", "#DDCC77"),
    *("#882255", "#44AA99", "#999933", "#AA4499", "#000000"),
)
GREY = "#BBBBBB"
#: Solid, dashed and dotted, so that a figure can be read without colours.
DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)))

#: Ending of a file → metadata. There are no dates, so that the same figure has the same bytes.
_METADATA: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
_DPI = 200
#: Width of a title, for line breaks.
_LETTERS_PER_INCH = 12


def new_figure(width: float, height: float, title: str) -> Figure:
    """An empty figure with a title. It needs no screen and changes no global state.

    Parameters
    ----------
    width, height : float
        Size in inches.
    title : str
        What the figure shows, and from which run.
    """
    require("matplotlib", "train")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(textwrap.fill(title, int(_LETTERS_PER_INCH * width)), fontsize=10)
    return figure


def mark_directions(axes: Axes, q: int) -> None:
    """Draw a thin line at the number of principal directions that GPC uses.

    Parameters
    ----------
    axes : Axes
        Axes with the number of directions along x.
    q : int
        Number of directions of GPC.
    """
    axes.axvline(q, color=GREY, linewidth=1, zorder=0)
    axes.annotate(
        f"q = {q}",
        (q, 0.02),
        xycoords=axes.get_xaxis_transform(),
        xytext=(3, 0),
        textcoords="offset points",
        fontsize=8,
    )


def check_ending(out: Path) -> None:
    """Raise if the ending of a file is not a known format."""
    if out.suffix.lower() not in _METADATA:
        raise InputError(
            f"{out} ends in {out.suffix or 'nothing'!r}; give a name that ends in "
            f"{', '.join(_METADATA)}."
        )


def save_figure(figure: Figure, out: Path) -> None:
    """Write a figure in the format of the file's ending, completely or not at all.

    Parameters
    ----------
    figure : Figure
        The figure.
    out : Path
        File to write. Its folders are created if necessary.
    """
    import matplotlib

    check_ending(out)
    kind = out.suffix.lower()
    page = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "newfound"}):
        figure.savefig(page, format=kind[1:], dpi=_DPI, metadata=_METADATA[kind])
    write_atomically(out, page.getvalue())
