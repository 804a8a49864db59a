"""K^n over the epochs: GPC, literal GPC, and the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from newfound.bench.case import case_key
from newfound.bench.figures.canvas import COLOURS, DASHES, GREY, new_figure
from newfound.bench.figures.runs import Runs, describe, title_of
from newfound.bench.record import Record
from newfound.errors import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Counts(NamedTuple):
    """K^n after each epoch, one list per seed, in the order of the seeds."""

    title: str
    seeds: list[int]
    lines: list[list[int]]


def draw_counts(source: str, runs: Runs) -> Figure:
    """Draw K^n over the epochs, one line per seed.

    Parameters
    ----------
    source : str
        Id of the data set.
    runs : Runs
        Where the results are.
    """
    require("matplotlib", "train")
    from matplotlib.ticker import MaxNLocator

    gpc = runs.newest("gpc", source, where=_counts)
    literal = runs.newest("gpc-literal", source, like=gpc.case, where=_counts)
    figure = new_figure(
        6, 4, f"{title_of(source)}, $K^n$ found by the mixture; {describe(gpc.case)}"
    )
    axes = figure.add_subplot()
    truth = gpc.n_novel_true
    axes.axhline(truth, color=GREY, linewidth=4, zorder=0, label=f"true $K^n$ = {truth}")
    styles = zip(("GPC", "GPC literal"), (gpc, literal), COLOURS, DASHES, strict=False)
    for name, record, colour, dashes in styles:
        counts = counts_by_epoch(name, record, runs.records)
        for number, line in enumerate(counts.lines):
            axes.plot(
                range(1, len(line) + 1),
                line,
                color=colour,
                linestyle=dashes,
                linewidth=1.6,
                label=None if number else counts.title,
            )
    axes.set(xlabel="epoch", ylabel="number of novel categories $K^n$")
    axes.margins(x=0.02)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    # the truth stays visible even if all runs are far from it
    axes.set_ylim(-0.05 * max(1, truth), max(1.3 * truth, 1.05 * axes.get_ylim()[1]))
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3)
    return figure


def counts_by_epoch(name: str, record: Record, records: list[Record]) -> Counts:
    """K^n over the epochs of a run, and of all runs that differ from it only in their seed.

    Parameters
    ----------
    name : str
        Name of the method, for the legend.
    record : Record
        The run.
    records : list of Record
        All records. For each seed the newest one counts.
    """
    key = case_key(record.case, without=("seed",))
    by_seed = {
        other.case.seed: other
        for other in sorted(records, key=lambda other: other.date)
        if case_key(other.case, without=("seed",)) == key and other.split == record.split
    }
    seeds = sorted(by_seed)
    words = f"seeds {', '.join(map(str, seeds))}" if len(seeds) > 1 else f"seed {seeds[0]}"
    title = f"{name}, {record.case.epochs} epochs, {words}"
    return Counts(title, seeds, [by_seed[seed].n_novel_by_epoch for seed in seeds])


def _counts(record: Record) -> bool:
    """Whether K was unknown and was found in every epoch."""
    return record.case.k != "known" and len(record.n_novel_by_epoch) > 0
